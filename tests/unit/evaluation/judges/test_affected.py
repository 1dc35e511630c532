"""Which judgements stay valid under another version, and that judging again asks for exactly the others."""

import copy
import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from fabula.evaluation.archive.archive import read_archive
from fabula.evaluation.katha.requests import EvaluateOptions, estimate_evaluation, evaluate_katha
from fabula.evaluation.katha.scoring import Affected, Fate, _set_of, affected_judgements
from fabula.releases.loading import Release
from fabula.schemas.canonical import Json
from fabula.testing.drawn_storyboards import draw_outputs, judged_release
from fabula.testing.judge_model import JudgeModel
from fabula.testing.katha_folders import rehash
from fabula.testing.katha_samples import sample_bundles
from fabula.testing.model_server import ModelServer

COUNT = 4
Change = Callable[[list[Json]], Any]


@pytest.fixture
def old(tmp_path: Path) -> Release:
    return judged_release(tmp_path / "old", sample_bundles(COUNT))


@pytest.fixture
def make(tmp_path: Path) -> Callable[[Change], Release]:
    """Write a second version of the release, changed."""

    def version(change: Change, count: int = COUNT) -> Release:
        bundles = copy.deepcopy(sample_bundles(count))
        change(bundles)
        for bundle in bundles:
            rehash(bundle)
        return judged_release(tmp_path / "new", bundles)

    return version


@pytest.fixture
def server(old: Release) -> Iterator[ModelServer]:
    with ModelServer(JudgeModel(old.records)) as running:
        yield running


@pytest.fixture
def judge(tmp_path: Path, server: ModelServer, old: Release) -> Callable[..., Path]:
    """Judge drawn storyboards of a release; return the run folder."""
    boards = draw_outputs(tmp_path / "drawn", old.records)

    def run(release: Release, out: str, *judges: str, **more: Any) -> Path:
        asked = tuple(f"{server.openai_url}#{name}" for name in judges or ("one",))
        options = EvaluateOptions(judges=asked, workers=0, created_at="2026-01-01T00:00:00Z", **more)
        server.handler = JudgeModel(release.records)
        evaluate_katha(release.path, more.pop("outputs", boards), tmp_path / out, options)
        return tmp_path / out

    return run


def redone(found: Affected, fate: Fate = "redo") -> Counter[tuple[str, str]]:
    """Kind and condition -> judgements of a fate, of all judges."""
    counts: Counter[tuple[str, str]] = Counter()
    for (kind, condition, _), row in found.counts.items():
        counts[kind, condition] += row[fate]
    return +counts


def reworded(bundles: list[Json]) -> None:
    bundles[0]["record"]["questions"][1]["question"] = "What was felt in the middle of it all?"


def accepted(bundles: list[Json]) -> None:
    bundles[0]["record"]["questions"][1]["accepted_answers"].append("dread")


def retold(bundles: list[Json]) -> None:
    record = bundles[0]["record"]
    record["story_text"] = record["story_text"] + " So it was."
    record["scenes"][4]["scene_text"] += " So it was."


def bookkeeping(bundles: list[Json]) -> None:
    record = bundles[0]["record"]
    record.update(title="Another title", split="validation")
    record["scenes"][0]["action"] = "waits"
    record["transitions"][0]["causality"] = "chance"
    record["provenance"]["source_reference"] = "book 9"


def varied(bundles: list[Json]) -> None:
    bundles[0]["variants"][0]["contrastive_story_text"] += " Alas."


def shorter(bundles: list[Json]) -> None:
    del bundles[0]["record"]["scenes"][4]


def dropped(bundles: list[Json]) -> None:
    del bundles[0]["record"]["questions"][1]


def several(bundles: list[Json]) -> None:
    for change in (reworded, varied, accepted, bookkeeping):
        change(bundles)


Q = "question"
WITH_PICTURES = {(Q, "image"): 6, (Q, "text_image"): 6, ("moral_label", "image"): 1,
                 ("moral_label", "text_image"): 1, ("contrast", "image"): 2}  # fmt: skip
WITH_TEXT = {(Q, "text"): 6, (Q, "text_image"): 6, ("moral_label", "text"): 1,
             ("moral_label", "text_image"): 1, ("contrast", "image"): 2}  # fmt: skip
CHANGES: list[tuple[Change, Mapping[tuple[str, str], int]]] = [
    (lambda _: None, {}),
    (bookkeeping, {}),
    (accepted, {}),
    (reworded, {(Q, "text"): 1, (Q, "image"): 1, (Q, "text_image"): 1}),
    (retold, WITH_TEXT),
    (varied, {("contrast", "image"): 1}),
    (shorter, WITH_PICTURES),
]


@pytest.mark.slow
def test_affected_when_records_change_are_those_that_a_judge_would_be_asked_otherwise(old, make, judge):
    run = judge(old, "run", "one", "two")
    for change, expected in CHANGES:
        found = affected_judgements(run, old.path, make(change).path)
        assert redone(found) == {key: 2 * count for key, count in expected.items()}, change
        redo = 2 * sum(expected.values())
        assert found.totals() == {"valid": 184 - redo, "redo": redo, "gone": 0} and found.new == {}


@pytest.mark.slow
def test_affected_when_a_question_or_a_story_goes_are_gone_and_what_is_new_is_counted(old, make, judge):
    run = judge(old, "run")
    found = affected_judgements(run, old.path, make(dropped).path)
    assert redone(found, "gone") == {(Q, condition): 1 for condition in ("text", "image", "text_image")}

    def change(bundles: list[Json]) -> None:
        del bundles[0]

    found = affected_judgements(run, old.path, make(change, 6).path)
    assert found.new == {
        ("contrast", "image"): 2,
        **{("moral_label", name): 1 for name in ("image", "text", "text_image")},
        **{("question", name): 6 for name in ("image", "text", "text_image")},
    }, "one public story is new; the hidden one is in no release folder"
    assert any("new: 6 of kind question under image" in line for line in found.lines())
    document = json.loads(json.dumps(found.as_json()))
    assert document["totals"]["gone"] == 23


def test_affected_when_a_matcher_gave_verdicts_lets_them_go_with_the_accepted_answers(
    old: Release, make: Callable[..., Release], judge: Callable[..., Path], server: ModelServer
) -> None:
    matcher = f"{server.openai_url}#matcher"
    run = judge(old, "run", matcher=matcher, questions_only=True, stories=("kb25k_0001",))
    found = affected_judgements(run, old.path, make(accepted).path)
    assert redone(found) == {("match", condition): 1 for condition in ("text", "image", "text_image")}
    found = affected_judgements(run, old.path, make(reworded).path)
    assert redone(found) == {
        (kind, condition): 1 for kind in ("match", Q) for condition in ("text", "image", "text_image")
    }


@pytest.mark.slow
@pytest.mark.parametrize("change", [several, retold, dropped])
def test_evaluation_when_another_version_reuses_it_asks_exactly_what_is_affected(
    old: Release,
    make: Callable[..., Release],
    judge: Callable[..., Path],
    server: ModelServer,
    change: Change,
    tmp_path: Path,
) -> None:
    first = judge(old, "run")
    new = make(change)
    found = affected_judgements(first, old.path, new.path)
    options = EvaluateOptions(judges=(f"{server.openai_url}#one",), workers=0, reuse=[first])
    plan = estimate_evaluation(new.path, tmp_path / "drawn", tmp_path / "again", options)
    assert plan.calls == found.totals()["redo"], "a dry run tells the same number beforehand"
    log = len(server.log)
    second = judge(new, "again", reuse=[first])
    asked = [exchange.asked for exchange in server.log[log:]]
    assert len(asked) == found.totals()["redo"]
    with_pictures = sum(count for (_, shown), count in redone(found).items() if shown != "text")
    assert sum(bool(one.images) for one in asked) == with_pictures
    before = {one.key(): one.raw for one in read_archive(first).judgements}
    again = {one.key(): one.raw for one in read_archive(second).judgements}
    assert len(before.items() & again.items()) >= found.totals()["valid"]
    assert len(again) == len(before) - found.totals()["gone"]


@pytest.mark.parametrize(
    ("label", "prompts"),
    [
        ("judge/question_image@3#0123abcd", "main"),
        ("judge/heldout/question_image@1#0123abcd", "heldout"),
        ("judge/strict/question_text@1#0123abcd", "strict"),
        ("house:judge/question_text@1#0123abcd", "main"),
        ("", "main"),
    ],
)
def test_set_of_prompts_when_read_from_a_label_is_that_of_its_folder(label, prompts):
    assert _set_of(label) == prompts
