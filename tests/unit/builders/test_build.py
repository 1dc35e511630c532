"""The whole builder on the engine, and the files that it leaves."""

import ast
import asyncio
import importlib
import inspect
import json
import re
from collections import Counter
from pathlib import Path

import pytest

import fabula
import fabula.builders.katha
from fabula.builders.drafting import Preview
from fabula.builders.katha.building import BuildOptions, build_katha, build_request
from fabula.builders.katha.checks.settling import APPLIED, SCREEN, SCREENED
from fabula.builders.katha.choosing.screen_stories import CRITERIA
from fabula.kinds.verbs import preview_story
from fabula.releases.katha.selection import CHECKS
from fabula.schemas.values import vocabulary
from fabula.validators.report import CODES

CREATED = "2026-01-01T00:00:00Z"


def build(sources, out, **options):
    return build_katha(sources, out, BuildOptions(created_at=CREATED, workers=0, **options))


@pytest.fixture(scope="module")
def run(katha, tmp_path_factory):
    out = tmp_path_factory.mktemp("katha") / "run"
    report = build(katha.samples / "stories.jsonl", out, records=katha.samples / "gold.jsonl")
    assert report.totals["made"] == 24
    return out


def test_records_when_written_are_sorted_envelopes(run) -> None:
    rows = [json.loads(line) for line in (run / "records.jsonl").read_text("utf-8").splitlines()]
    assert [row["id"] for row in rows] == sorted(row["id"] for row in rows)
    assert {(row["kind"], row["schema_version"]) for row in rows} == {("katha", "1")}
    assert all(row["payload"]["record"]["provenance"]["created_at"] == CREATED for row in rows)


def test_assignments_when_written_agree_with_the_records(run) -> None:
    records = [
        json.loads(line)["payload"]["record"]
        for line in (run / "records.jsonl").read_text("utf-8").splitlines()
    ]
    rows = [json.loads(line) for line in (run / "assignments.jsonl").read_text("utf-8").splitlines()]
    assert [(row["id"], row["split"]) for row in rows] == [(r["story_id"], r["split"]) for r in records]
    assert {row["stratum"] for row in rows} == {"*"}


def test_balance_when_written_counts_against_the_published_shares(run) -> None:
    balance = json.loads((run / "balance.json").read_text("utf-8"))
    assert balance["moral_labels"]["wisdom"] == {"observed": 2, "target": 1.9968, "deviation": 0.0032}
    assert sum(entry["observed"] for entry in balance["transition_types"].values()) == 96
    assert balance["question_types"]["moral"]["target"] == 24.0
    assert sum(balance["strata"]["*"].values()) == 24
    assert 0 <= balance["split_tolerance"]["overall"] < 0.05


def test_build_when_scenes_are_set_in_one_place_follows_everywhere(katha, tmp_path) -> None:
    report = build(
        katha.samples / "stories.jsonl", tmp_path / "r", settings={"draft_scenes.scenes": 4}, limit=2
    )
    assert report.totals["made"] == 2
    for line in (tmp_path / "r" / "records.jsonl").read_text("utf-8").splitlines():
        record = json.loads(line)["payload"]["record"]
        assert (len(record["scenes"]), len(record["transitions"])) == (4, 3)


DRAFTING = (
    "assess_story",
    "normalise_story",
    "draft_scenes",
    "annotate_transitions",
    "write_questions",
    "write_contrastives",
    "repair_draft",
)


def request_of(**options):
    return build_request("stories.jsonl", "run", BuildOptions(**options)).config.stages


def test_planner_when_named_is_set_for_every_stage_that_drafts_before_single_settings() -> None:
    stages = request_of(
        planner="model", model="openai:a", settings=["draft_scenes.planner=rules", "draft_scenes.scenes=4"]
    )
    planners = {name: stages[name].planner for name in DRAFTING}
    assert planners == {**dict.fromkeys(DRAFTING, "model"), "draft_scenes": "rules"}
    assert stages["draft_scenes"].scenes == 4


def test_edit_when_put_into_the_run_changes_one_field_and_says_who(katha, tmp_path) -> None:
    out = tmp_path / "r"
    build(katha.samples / "stories.jsonl", out, limit=2)
    change = {"id": "kb25k_0001", "path": "$.title", "old": "The Dove and the Ant", "new": "Dove and Ant"}
    (out / "edits.jsonl").write_text(json.dumps({**change, "who": "ann", "why": "shorter"}) + "\n")
    build(katha.samples / "stories.jsonl", out, limit=2)
    first, second = (
        json.loads(line)["payload"] for line in (out / "records.jsonl").read_text("utf-8").splitlines()
    )
    assert first["record"]["title"] == "Dove and Ant"
    assert {"path": "$.title", "producer": "edit:ann"} in first["producers"]
    assert second["record"]["title"] == "The Woodcutter's Axe"


def test_near_duplicates_when_added_with_a_smaller_id_leave_the_story_that_was_made(katha, tmp_path) -> None:
    stories, out = tmp_path / "stories.jsonl", tmp_path / "r"
    first, second = (katha.samples / "stories.jsonl").read_text("utf-8").splitlines()[:2]
    stories.write_text(f"{first}\n{second}\n", "utf-8")
    build(stories, out)
    before = (out / "records.jsonl").read_bytes()
    copy = {**json.loads(first), "id": "a_copy"}
    stories.write_text(f"{first}\n{second}\n{json.dumps(copy)}\n", "utf-8")
    report = build(stories, out)
    assert [(item.id, item.code) for item in report.items] == [("a_copy", "near_duplicate")]
    assert (out / "records.jsonl").read_bytes() == before


def test_moral_label_when_edited_in_a_run_leaves_records_that_validate(katha, tmp_path) -> None:
    from fabula.validators.katha.validation import validate

    out = tmp_path / "r"
    build(katha.samples / "stories.jsonl", out, limit=3)
    change = {"id": "kb25k_0003", "path": "$.moral_label", "old": "patience", "new": "courage"}
    (out / "edits.jsonl").write_text(json.dumps({**change, "who": "ann", "why": "it is"}) + "\n")
    build(katha.samples / "stories.jsonl", out, limit=3)
    record = json.loads((out / "records.jsonl").read_text("utf-8").splitlines()[2])["payload"]["record"]
    (question,) = (q for q in record["questions"] if q["question_type"] == "moral")
    assert (record["moral_label"], question["gold_answer"]) == ("courage", "courage")
    assert "patience" not in question["accepted_answers"]
    assert record["validation_status"] == "review_needed"
    assert {issue.code for issue in validate(out).issues} == {"incomplete"}


# Showing what a stage would ask, from Python.


def test_preview_when_a_loop_is_running_as_in_a_notebook_shows_the_request(tmp_path: Path) -> None:
    text = " ".join(f"The fox saw crow number {number} with a piece of cheese." for number in range(40))
    story = {"id": "s1", "title": "The Fox", "language": "en", "text": text}
    story |= {"source_collection": "mine", "rights_status": "public_domain_or_rights_compatible"}
    (tmp_path / "stories.jsonl").write_text(json.dumps(story))

    async def in_a_cell() -> list[Preview]:
        return preview_story(tmp_path / "stories.jsonl", "s1", "katha/assess_story")

    (shown,) = asyncio.run(in_a_cell())
    assert shown.prompt.startswith("katha/assess_story@")
    assert "The fox saw crow" in str(shown.request.messages[-1].parts[0])


# The codes of checks that a release may count are those that stages make.


def test_check_codes_when_listed_are_those_that_stages_make_and_no_others() -> None:
    made = {*CODES, *(f"{SCREEN}{code}" for code in (*SCREENED, *CRITERIA.values()))}
    for check in APPLIED:
        made |= {check.code, *check.models, *check.rules}
    root = Path(inspect.getfile(fabula.builders.katha)).parent
    for path in root.rglob("*.py"):
        tree = ast.parse(path.read_text("utf-8"))
        dotted = ".".join(path.relative_to(root).with_suffix("").parts)
        for call in ast.walk(tree):
            if isinstance(call, ast.Call) and getattr(call.func, "id", "") in ("make_check", "_verdict"):
                code = call.args[0]
                if isinstance(code, ast.Constant):
                    made.add(str(code.value))
                elif isinstance(code, ast.Name) and code.id.isupper():
                    module = importlib.import_module(f"fabula.builders.katha.{dotted}")
                    made.add(str(getattr(module, code.id)))
    assert made | {"narrative_drawable", "prompt_incomplete"} == CHECKS


# -- Contrastive variants of the sample records: each type of change comes often and changes its scene alone

SAMPLES = Path(fabula.__file__).parent / "builders" / "katha" / "samples"
GOLD, LATER = (
    [json.loads(line) for line in (SAMPLES / name).read_text("utf-8").splitlines()]
    for name in ("gold.jsonl", "later_gold.jsonl")
)


def test_samples_when_counted_have_each_change_six_times_and_twelve_other_morals() -> None:
    variants = [variant for record in GOLD for variant in record["variants"]]
    kinds = Counter(variant["change_type"] for variant in variants)
    assert set(kinds) == set(vocabulary("change_type").values)
    assert min(kinds.values()) >= 6, kinds
    assert sum(variant["contrastive_moral"] is not None for variant in variants) >= 12
    assert {len(record["variants"]) for record in (*GOLD, *LATER)} == {2}


@pytest.mark.parametrize("record", [*GOLD, *LATER], ids=lambda record: record["story_id"])
def test_variant_when_read_has_no_sentence_of_another_scene_and_no_moral_of_its_story(record) -> None:
    texts = [scene["scene_text"] for scene in record["scenes"]]
    for variant in record["variants"]:
        changed = variant["changed_scene_id"] - 1
        others = [text for number, text in enumerate(texts) if number != changed]
        sentences = re.split(r"(?<=[.!?]) ", variant["contrastive_scene_text"])
        assert [s for s in sentences if any(s in text for text in others)] == [], variant["variant_id"]
        assert variant["contrastive_moral"] != record["moral_label"]
        temporal = variant["variant_kind"] == "temporal_contrast"
        assert temporal == (variant["change_type"] == "reorder_events")
    assert record["variants"][0]["change_type"] != record["variants"][1]["change_type"]
