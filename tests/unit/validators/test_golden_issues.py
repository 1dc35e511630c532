"""One broken input per code; the whole output of each is pinned in tests/golden/validators.

Run with UPDATE_GOLDEN=1 to write the pinned files anew, then read the difference.
"""

import json
import os
import sys
from collections.abc import Callable
from functools import partial, reduce
from pathlib import Path
from typing import Any

import pytest

from fabula.models.keys import MARK
from fabula.schemas.canonical import canonical_bytes, pretty_bytes
from fabula.testing.katha_folders import rehash, write_jsonl, write_records, write_release, write_run
from fabula.testing.katha_samples import sample_bundles, with_variant_questions
from fabula.validators.katha.validation import validate
from fabula.validators.report import CODES

GOLDEN = Path(__file__).parents[2] / "golden" / "validators"
Bundles = list[dict[str, Any]]
Edit = Callable[[Bundles], None]
CASES: dict[str, Callable[[Path], Path]] = {}


def run_case(code: str, *, again: bool = True, count: int = 2) -> Callable[[Edit], Edit]:
    """Register a run whose bundles an edit breaks; ``again`` brings the hashes up to date afterwards."""

    def register(edit: Edit) -> Edit:
        def build(folder: Path) -> Path:
            bundles = sample_bundles(count)
            edit(bundles)
            for bundle in bundles if again else ():
                rehash(bundle)
            return write_run(folder / "run", bundles)

        CASES[code] = build
        return edit

    return register


EDITS: dict[str, dict[str, Any]] = {
    "timestamp": {"0.record.provenance.created_at": "1 January 2025"},
    "unknown-field": {"0.record.mood": "calm", "0.record.scenes.2.camera": {"lens": 35}},
    "id-form": {
        "0.record.questions.0.question_id": "../../etc/passwd",
        "0.variants.1.pair_id": "pair \u2764",
    },
    "story-reference": {
        "0.record.scenes.1.story_id": "kb25k_0002",
        "0.variants.0.base_story_id": "kb25k_0002",
    },
    "language-tag": {"0.record.language": "English (US)"},
    "unlisted-value": {
        "0.record.questions.0.question_type": "casual",
        "0.record.transitions.0.transition_type": "miracle",
    },
    "unfamiliar-value": {"0.record.provenance.source_dataset": "Grimm"},
    "scene-order": {"0.record.scenes.3.scene_index": 5},
    "scene-empty": {"0.record.scenes.4.scene_text": " \n"},
    "moral-target": {
        "0.record.transitions.0.moral_target": "honesty",
        "1.record.transitions.3.moral_target": None,
    },
    "question-scene": {
        "0.record.questions.0.target_scene": 6,
        "0.record.questions.1.evidence_scenes": [0, 3],
    },
    "question-transition": {"0.record.questions.0.target_transition": [2, 4]},
    "question-evidence": {
        "0.record.questions.0.evidence_scenes": [],
        "0.record.questions.1.evidence_scenes": [3, 3],
    },
    "answer-not-accepted": {"0.record.questions.0.gold_answer": "bad luck"},
    "answer-leak": {"0.record.questions.1.question": "Who was afraid, and why?"},
    "variant-scene": {"0.variants.0.changed_scene_id": 9},
    "variant-delta": {"0.variants.0.semantic_delta": " "},
    "variant-context": {
        "0.variants.0.subset": "validation",
        "0.variants.1.narrative_type": "social_interaction",
    },
    "secret-removed": {"0.record.scenes.1.action": f"The {MARK} waits.", "1.variants.0.semantic_delta": MARK},
    "rights-notice": {
        "0.record.source_text": "Copyright 2019 by A. Writer. All rights reserved.\nISBN 978-3-16-148410-0",
        "1.record.source_text": "Copyright 1911 by B. Teller. Published by Heron House Press, London, 1987.",
    },
    "rights": {"0.record.provenance.source_rights_status": "unresolved"},
    "license": {"0.record.provenance.dataset_license": ""},
    "review-mismatch": {
        "0.record.evidence_status": {"human_evidence_accepted": True, "resolution": "not_reviewed"},
        "1.record.evidence_status.resolution": "unanimous",
    },
    "check-mismatch": {"0.checks.0.passed": False, "1.checks.0.passed": None},
    "producer-path": {"0.producers.0.path": "scenes", "1.producers.0.path": "$.shots[*]"},
}
"""Code -> what is put where, in two sample bundles."""


def put(bundles: Bundles, edits: dict[str, Any]) -> None:
    for path, value in edits.items():
        *above, last = (int(part) if part.isdigit() else part for part in path.split("."))
        holder = reduce(lambda inner, part: inner[part], above, bundles)
        holder[last] = value


for _code, _edits in EDITS.items():
    run_case(_code)(partial(put, edits=_edits))


def file_case(code: str) -> Callable[[Callable[[Path], Path]], Callable[[Path], Path]]:
    """Register a function that writes a broken data set and returns its path."""

    def register(build: Callable[[Path], Path]) -> Callable[[Path], Path]:
        CASES[code] = build
        return build

    return register


def first_line() -> bytes:
    return canonical_bytes(sample_bundles(1)[0]["record"]) + b"\n"


def raw_file(folder: Path, content: bytes) -> Path:
    (folder / "stories.jsonl").write_bytes(content)
    return folder / "stories.jsonl"


@file_case("encoding")
def _(folder: Path) -> Path:
    return raw_file(folder, first_line() + '{"title": "Fuchs und Kränich"}\n'.encode("latin-1"))


@file_case("byte-order-mark")
def _(folder: Path) -> Path:
    return raw_file(folder, b"\xef\xbb\xbf" + canonical_bytes(sample_bundles(1)[0]) + b"\n")


@file_case("json")
def _(folder: Path) -> Path:
    nul, trailing, number = b'{"a": "\x00"}\n', b'{"a": [1, 2,]}\n', b'{"a": NaN}\n'
    return raw_file(folder, nul + trailing + number + b'{"a": "\\ud800"}\n' + b"[" * 100_000 + b"\n")


@file_case("truncated")
def _(folder: Path) -> Path:
    return raw_file(folder, canonical_bytes(sample_bundles(1)[0]) + b"\n" + first_line()[:100])


@file_case("json-object")
def _(folder: Path) -> Path:
    return raw_file(folder, b'["a", "list"]\n"text"\nnull\n')


@file_case("repeated-key")
def _(folder: Path) -> Path:
    line = canonical_bytes(sample_bundles(1)[0]).replace(b'"record":{', b'"record":{"title":"other",', 1)
    return raw_file(folder, line + b"\n")


@file_case("line-length")
def _(folder: Path) -> Path:
    return raw_file(folder, b'{"a": "' + b"x" * (64 * 1024 * 1024) + b'"}\n')


@file_case("kind")
def _(folder: Path) -> Path:
    return raw_file(folder, b'{"name": "a", "value": 1}\n{"kind": "shots", "payload": {}}\n')


@file_case("missing-file")
def _(folder: Path) -> Path:
    release = write_release(folder / "release", sample_bundles(2))
    for name in ("contrastive_variants.jsonl", "statistics.json", "moral_balance_requirements.json"):
        (release / name).unlink()
    return release


@file_case("schema")
def _(folder: Path) -> Path:
    run, bundles = write_run(folder / "run", sample_bundles(2)), sample_bundles(2)
    record = bundles[0]["record"]
    del record["title"]
    record["scenes"][0]["scene_index"] = 0
    record["scenes"][1]["action"] = 7
    record["questions"] = "none"
    bundles[0]["variants"][0]["changed_scene_id"] = True
    bundles[1]["checks"][0]["passed"] = "yes"
    write_records(run / "records.jsonl", bundles)
    return run


@file_case("empty")
def _(folder: Path) -> Path:
    return write_run(folder / "run", [])


@file_case("envelope")
def _(folder: Path) -> Path:
    run = write_run(folder / "run", sample_bundles(1))
    envelope = json.loads((run / "records.jsonl").read_bytes())
    write_jsonl(run / "records.jsonl", [{**envelope, "id": "kb25k_0009", "schema_version": "2"}])
    return run


@run_case("id-repeated")
def _(bundles: Bundles) -> None:
    bundles.append(json.loads(json.dumps(bundles[0])))


@run_case("scene-count")
def _(bundles: Bundles) -> None:
    record = bundles[0]["record"]
    record["source_text"] = record["story_text"] = record["scenes"][0]["scene_text"]
    record |= {"scenes": record["scenes"][:1], "transitions": [], "questions": [], "moral_label": None}
    bundles[0]["variants"] = []


@run_case("scene-span")
def _(bundles: Bundles) -> None:
    bundles[0]["record"]["scenes"][1]["scene_text"] += " And more."
    del bundles[1]["record"]["scenes"][4], bundles[1]["record"]["transitions"][3]


@run_case("story-text")
def _(bundles: Bundles) -> None:
    bundles[0]["record"]["source_text"] += "The moral: be kind.\n"


@run_case("character-unknown")
def _(bundles: Bundles) -> None:
    bundles[0]["record"]["scenes"][0]["characters"].append("the Wolf")


@run_case("transition-link")
def _(bundles: Bundles) -> None:
    bundles[0]["record"]["transitions"][1]["to_scene"] = 4
    del bundles[1]["record"]["transitions"][0]


@run_case("answer-repeated")
def _(bundles: Bundles) -> None:
    question = bundles[0]["record"]["questions"][1]
    question["accepted_answers"].append(f"  {question['gold_answer'].upper()}!")


@run_case("answer-empty")
def _(bundles: Bundles) -> None:
    bundles[0]["record"]["questions"][0]["accepted_answers"] += ["?!", "Something."]


@run_case("moral-answer")
def _(bundles: Bundles) -> None:
    for bundle, label in zip(bundles, ("honesty", None), strict=True):
        bundle["record"]["moral_label"] = label
        for transition in bundle["record"]["transitions"]:
            transition["moral_target"] = label if transition["moral_target"] else None
        for variant in bundle["variants"]:
            variant["original_moral"] = label


@run_case("temporal-order")
def _(bundles: Bundles) -> None:
    question = bundles[0]["record"]["questions"][4]
    question["gold_answer"] = "came home safe"
    question["accepted_answers"] = ["came home safe"]


@run_case("variant-reference", again=False)
def _(bundles: Bundles) -> None:
    bundles[0]["record"]["provenance"]["contrastive_variant_ids"].pop()


@run_case("variant-same")
def _(bundles: Bundles) -> None:
    record, variant = bundles[0]["record"], bundles[0]["variants"][0]
    variant["contrastive_scene_text"] = record["scenes"][3]["scene_text"]
    variant["contrastive_story_text"] = record["story_text"]


@run_case("variant-text")
def _(bundles: Bundles) -> None:
    variant = bundles[0]["variants"][0]
    variant["contrastive_story_text"] = variant["contrastive_story_text"].replace("One morning", "One night")


@run_case("entity-lost")
def _(bundles: Bundles) -> None:
    variant, texts = bundles[0]["variants"][0], [s["scene_text"] for s in bundles[0]["record"]["scenes"]]
    variant["contrastive_scene_text"] = "Then nobody came."
    variant["contrastive_story_text"] = " ".join([*texts[:3], "Then nobody came.", texts[4]])


@run_case("variant-moral")
def _(bundles: Bundles) -> None:
    bundles[0]["variants"][0]["original_moral"] = "honesty"
    bundles[0]["variants"][1]["contrastive_moral"] = bundles[0]["record"]["moral_label"]


@run_case("variant-answer")
def _(bundles: Bundles) -> None:
    variants = with_variant_questions(bundles[0])["variants"]
    told = ["so Dekilomu came home safe", "in safety at home"]
    variants[0]["questions"][0] |= {"gold_answer": told[0], "accepted_answers": told}
    asked = bundles[0]["record"]["questions"][0]
    variants[1]["questions"][0] |= {"question": asked["question"].upper()}
    variants[1]["questions"][0]["accepted_answers"] += asked["accepted_answers"]


@run_case("hash", again=False)
def _(bundles: Bundles) -> None:
    bundles[0]["record"]["language"] = "en-GB"
    bundles[0]["record"]["scenes"][0]["objects"] = ["a sword"]
    bundles[0]["variants"][0]["semantic_delta"] = "something else changes"


@file_case("text-encoding")
def _(folder: Path) -> Path:
    bundle = sample_bundles(1)[0]
    bundle["record"]["scenes"][0]["weight"] = 1
    return raw_file(folder, canonical_bytes(bundle).replace(b'"weight":1', b'"weight":1e999') + b"\n")


@run_case("incomplete")
def _(bundles: Bundles) -> None:
    for scene in bundles[0]["record"]["scenes"]:
        scene["generation_prompt"] = None
    bundles[1]["record"]["narrative_type"] = None
    for variant in bundles[1]["variants"]:
        variant["narrative_type"] = None


@file_case("orphan")
def _(folder: Path) -> Path:
    release = write_release(folder / "release", sample_bundles(2))
    variants = release / "contrastive_variants.jsonl"
    stray = {**json.loads(variants.read_bytes().splitlines()[0]), "base_story_id": "kb25k_0100"}
    write_jsonl(variants, [*map(json.loads, variants.read_bytes().splitlines()), stray])
    return release


def review(story_id: str, moral: str) -> dict[str, Any]:
    return {
        "story_id": story_id, "decision": "accepted", "validation_status": "human_adjudicator_accepted",
        "evidence_source": "story text", "protocol_complete": True, "annotator_ids": ["a1", "a2", "a3"],
        "adjudicator_id": None, "resolution": "unanimous", "final_moral_label": moral,
        "correction_flags": [], "signed_at": "2025-02-01T00:00:00Z",
    }  # fmt: skip


def reviewed(bundles: Bundles) -> None:
    for bundle in bundles:
        bundle["record"]["validation_status"] = "human_review_complete"
        bundle["record"]["evidence_status"] = {"human_evidence_accepted": True, "resolution": "unanimous"}


@file_case("review-unproven")
def _(folder: Path) -> Path:
    bundles = sample_bundles(2)
    reviewed(bundles)
    release = write_release(folder / "release", bundles)
    write_jsonl(release / "human_validation.jsonl", [review("kb25k_0001", "compassion")])
    write_jsonl(release / "strict_gold_400.jsonl", [review("kb25k_0002", "courage")])
    return release


@file_case("review-unbound")
def _(folder: Path) -> Path:
    bundles = sample_bundles(1)
    reviewed(bundles)
    release = write_release(folder / "release", bundles)
    write_jsonl(release / "human_validation.jsonl", [review("kb25k_0001", "compassion")])
    return release


@file_case("review-stale")
def _(folder: Path) -> Path:
    bundles = sample_bundles(1)
    reviewed(bundles)
    release = write_release(folder / "release", bundles)
    read = {"seen_sha256": "0" * 64, "content_sha256": "0" * 64}
    write_jsonl(release / "human_validation.jsonl", [{**review("kb25k_0001", "compassion"), **read}])
    return release


@file_case("review-differs")
def _(folder: Path) -> Path:
    bundles = sample_bundles(2)
    reviewed(bundles)
    release = write_release(folder / "release", bundles)
    adjudicated = {"resolution": "human_adjudicated", "annotator_ids": ["a1", "a1"]}
    rows = [review("kb25k_0001", "honesty"), {**review("kb25k_0002", "courage"), **adjudicated}]
    write_jsonl(release / "human_validation.jsonl", rows)
    return release


@file_case("vote")
def _(folder: Path) -> Path:
    release = write_release(folder / "release", sample_bundles(2))
    vote = {"kind": "review", "rater": "r1", "item": "kb25k_0001", "criterion": "moral_label"}
    rows = [
        {**vote, "answer": "correct"},
        {**vote, "answer": "correct"},
        {**vote, "answer": "fine"},
        {**vote, "item": "kb25k_0009", "rater": "r2", "answer": "correct"},
        {**vote, "criterion": "recoverability_qa", "part": "kb25k_0001_q99", "answer": "valid"},
        {**vote, "kind": "review", "rater": "r3"},
    ]
    write_jsonl(release / "votes.jsonl", rows)
    return release


@file_case("simulated-unmarked")
def _(folder: Path) -> Path:
    bundles = sample_bundles(2)
    reviewed(bundles)
    release = write_release(folder / "release", bundles)
    people = {"annotator_ids": ["a1", "simulated-2", "a3"]}
    rows = [review("kb25k_0001", "compassion"), {**review("kb25k_0002", "courage"), **people}]
    write_jsonl(release / "human_validation.jsonl", rows)
    return release


def same_text(bundles: Bundles, source: int, target: int) -> None:
    """Give one story the text of another; scenes and variants follow, ids stay."""
    texts = [scene["scene_text"] for scene in bundles[source]["record"]["scenes"]]
    record = bundles[target]["record"]
    record["source_text"] = bundles[source]["record"]["source_text"].upper()
    record["story_text"] = bundles[source]["record"]["story_text"].upper()
    for scene, text in zip(record["scenes"], texts, strict=True):
        scene |= {"scene_text": text.upper(), "characters": []}
    for variant in bundles[target]["variants"]:
        changed = [text.upper() for text in texts]
        changed[variant["changed_scene_id"] - 1] = variant["contrastive_scene_text"]
        variant["contrastive_story_text"] = " ".join(changed)


@run_case("near-duplicate", count=8)
def _(bundles: Bundles) -> None:
    same_text(bundles, 0, 7)


@run_case("split-leak")
def _(bundles: Bundles) -> None:
    same_text(bundles, 0, 1)


@run_case("split-retelling")
def _(bundles: Bundles) -> None:
    same_text(bundles, 0, 1)
    record = bundles[1]["record"]
    scene = record["scenes"][4]
    scene["scene_text"] = "At last the people of that country sang until the stars came out over the hills."
    texts = [one["scene_text"] for one in record["scenes"]]
    record["source_text"], record["story_text"] = "\n\n".join(texts) + "\n", " ".join(texts)
    for variant in bundles[1]["variants"]:
        at = variant["changed_scene_id"] - 1
        changed = [*texts[:at], variant["contrastive_scene_text"], *texts[at + 1 :]]
        variant["contrastive_story_text"] = " ".join(changed)


@run_case("split-twin")
def _(bundles: Bundles) -> None:
    bundles[0]["record"]["title"], bundles[1]["record"]["title"] = "The Fox and the Crow", "Crow and Fox"


def moved(bundles: Bundles, split: str) -> None:
    for bundle in bundles:
        bundle["record"]["split"] = split
        for variant in bundle["variants"]:
            variant["subset"] = split


@run_case("split-size", count=40)
def _(bundles: Bundles) -> None:
    moved(bundles[:10], "validation")


@run_case("split-strata", count=40)
def _(bundles: Bundles) -> None:
    for bundle in bundles:
        narrative = "counterfactual_pair" if bundle["record"]["split"] != "train" else "moral_semantic"
        bundle["record"]["narrative_type"] = narrative
        for variant in bundle["variants"]:
            variant["narrative_type"] = narrative


@file_case("assignment")
def _(folder: Path) -> Path:
    run = write_run(folder / "run", sample_bundles(3))
    first, second, _ = map(json.loads, (run / "assignments.jsonl").read_bytes().splitlines())
    rows = [{**first, "split": "validation"}, {**second, "stratum": "moral_semantic/*"}]
    write_jsonl(run / "assignments.jsonl", [*rows, second, {**first, "id": "kb25k_0009"}])
    return run


def changed_document(path: Path, change: Callable[[Any], None]) -> None:
    document = json.loads(path.read_bytes())
    change(document)
    path.write_bytes(pretty_bytes(document))


@file_case("statistics")
def _(folder: Path) -> Path:
    release = write_release(folder / "release", sample_bundles(20))
    changed_document(release / "statistics.json", lambda it: it["totals"].update(stories=5000))
    return release


@file_case("moral-balance")
def _(folder: Path) -> Path:
    release = write_release(folder / "release", sample_bundles(20))
    balance = release / "moral_balance_requirements.json"
    changed_document(
        balance, lambda it: it.update(tolerance_status="within_tolerance", automatic_relabeling=0)
    )
    return release


@file_case("balance")
def _(folder: Path) -> Path:
    run = write_run(folder / "run", sample_bundles(2))
    changed_document(
        run / "balance.json", lambda it: it["moral_labels"]["courage"].update(observed=2, deviation=0)
    )
    changed_document(run / "balance.json", lambda it: it["strata"].popitem())
    return run


@file_case("producer-missing")
def _(folder: Path) -> Path:
    release = write_release(folder / "release", sample_bundles(3))
    first, second, _ = map(json.loads, (release / "producers.jsonl").read_bytes().splitlines())
    second["fields"][0]["path"] = "$.plot"
    write_jsonl(
        release / "producers.jsonl", [second, second, {**first, "id": "kb25k_0009"}, {"id": "x", "fields": 5}]
    )
    return release


@file_case("manifest")
def _(folder: Path) -> Path:
    bundles = sample_bundles(5)
    bundles[0]["record"]["provenance"]["created_at"] = "2025-01-02T00:00:00Z"
    release = write_release(folder / "release", bundles)
    changed_document(release / "release.json", lambda it: it.update(visibility="hidden"))
    return release


WORDED_BY_PYTHON = ("json", "text-encoding")
"""Their texts quote the interpreter, whose wording changes between versions."""


@pytest.mark.parametrize("code", CASES)
def test_validate_when_input_breaks_one_rule_reports_the_pinned_issues(code: str, tmp_path: Path) -> None:
    report = validate(CASES[code](tmp_path))
    text = "".join(f"{issue.level}: {issue}\n" for issue in report.issues)
    golden = GOLDEN / f"{code}.txt"
    if os.environ.get("UPDATE_GOLDEN") == "1":
        golden.write_text(text, "utf-8")
    assert code in report.counts
    if code in WORDED_BY_PYTHON and sys.version_info[:2] != (3, 11):
        return
    assert text == golden.read_text("utf-8")


def test_cases_when_listed_cover_every_code_and_nothing_else() -> None:
    assert set(CASES) == set(CODES)
    assert {path.stem for path in GOLDEN.glob("*.txt")} == set(CODES)
