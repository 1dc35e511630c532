"""What an evaluation checks before it asks, and what it leaves behind when it stops early."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fabula.errors import BudgetStop, InputError, ModelUnavailable, TargetError
from fabula.evaluation import running
from fabula.evaluation.archive.archive import EVALUATION, JUDGEMENTS, Archive, read_archive
from fabula.evaluation.archive.keeping import EARLIER
from fabula.evaluation.archive.replies import lacks
from fabula.evaluation.katha.requests import EvaluateOptions, evaluate_katha
from fabula.evaluation.recoverability.matching import Definitions
from fabula.evaluation.recoverability.score import score_folder
from fabula.kinds.evaluations import export_so_far
from fabula.kinds.verbs import continue_run
from fabula.releases.loading import Release
from fabula.releases.verify.files import check_intact
from fabula.schemas.canonical import pretty_bytes, sha256_file
from fabula.schemas.paths import ANNOTATIONS, RELEASE, VARIANTS
from fabula.testing.drawn_storyboards import draw_outputs, drawn_release
from fabula.testing.judge_model import JudgeModel
from fabula.testing.model_server import Asked, ModelServer, ServerError

Evaluate = Callable[..., Archive]
PRICES = {"input": 1.0, "output": 2.0}


@pytest.fixture
def release(tmp_path: Path) -> Release:
    return drawn_release(tmp_path / "release", 3)


@pytest.fixture
def evaluate(tmp_path: Path, release: Release, boards: Path, server: ModelServer) -> Evaluate:
    """Judge the drawn storyboards by models at a server; return the archive."""

    def run(*names: str, at: ModelServer = server, outputs: Any = None, **given: Any) -> Archive:
        patience = given.pop("patience", 0)
        judges = [f"{at.openai_url}#{name}" for name in names or ("one",)]
        models = {judge: {"attempts": 1, "patience": patience, "prices": PRICES} for judge in judges}
        options = EvaluateOptions(
            judges=judges, models=models, workers=0, created_at="2026-01-01T00:00:00Z", **given
        )
        evaluate_katha(release.path, outputs or boards, tmp_path / "run", options)
        return read_archive(tmp_path / "run")

    return run


@pytest.mark.slow
def test_stop_when_the_cost_limit_is_reached_leaves_what_was_answered_and_says_so(
    evaluate: Evaluate, server: ModelServer, tmp_path: Path, release: Release
) -> None:
    with pytest.raises(BudgetStop, match=r"jsonl has \d+ replies so far, \d+ questions not asked"):
        evaluate(max_cost=0.04)
    partial = read_archive(tmp_path / "run")
    unasked, unreached = lacks(partial.manifest.environment)
    assert len(partial.judgements) == server.count > 0
    assert unreached == 0
    notes = score_folder(tmp_path / "run", release.path, Definitions(resamples=0)).notes
    assert f"the evaluation is not finished ({unasked} questions not asked yet)" in notes[1]
    asked = server.count
    whole = evaluate()
    assert server.count == asked + unasked == len(whole.judgements), "nothing is asked twice"
    assert "incomplete" not in whole.manifest.environment
    assert {one.key() for one in partial.judgements} < {one.key() for one in whole.judgements}
    assert not [path.name for path in (tmp_path / "run").iterdir() if path.name.startswith(".archive")]


def test_stop_when_a_judge_goes_down_keeps_the_replies_before(evaluate, release, tmp_path):
    model, answered = JudgeModel(release.records), 7

    def handler(asked: Asked) -> Any:
        nonlocal answered
        answered -= 1
        return model(asked) if answered >= 0 else ServerError(503)

    with ModelServer(handler) as failing, pytest.raises(ModelUnavailable, match="has 7 replies so far"):
        evaluate(at=failing)
    assert len(read_archive(tmp_path / "run").judgements) == 7


@pytest.mark.slow
def test_export_so_far_when_a_run_was_killed_reads_its_journal_and_leaves_it_alone(evaluate, tmp_path):
    with pytest.raises(BudgetStop):
        evaluate(max_cost=0.04)
    run = tmp_path / "run"
    partial = (run / JUDGEMENTS).read_bytes()
    for name in (JUDGEMENTS, EVALUATION, "frames.jsonl"):
        (run / name).unlink()  # as a kill leaves it
    before = sorted(path.name for path in run.iterdir())
    archive = export_so_far(run, tmp_path / "copy")
    assert (tmp_path / "copy" / JUDGEMENTS).read_bytes() == partial
    assert archive.manifest.environment["incomplete"]["unasked"]
    assert all("path" not in source for source in archive.manifest.environment["sources"])
    assert sorted(path.name for path in run.iterdir()) == before
    with pytest.raises(TargetError, match="the folder is not empty"):
        export_so_far(run, tmp_path / "copy")


@pytest.mark.slow
def test_evaluation_when_items_failed_marks_what_is_missing(evaluate, release, tmp_path):
    model = JudgeModel(release.records)
    down = release.records[0].story_text[:40]

    def handler(asked: Asked) -> Any:
        if not asked.images and down in str(asked.messages):
            return ServerError(500)
        return model(asked)

    with ModelServer(handler) as failing:
        archive = evaluate(at=failing, patience=60, settings=["run.threshold=0"])
    assert lacks(archive.manifest.environment)[0] > 0
    assert archive.judgements


SETTINGS = [["run.seed=7"], ["judge_text.max_tokens=99"], ["prepare_images.quality=50"]]
CHANGES: list[tuple[dict[str, Any], bool]] = [
    ({"names": ("two",)}, True),
    ({"questions_only": True}, True),
    ({"limit": 1}, True),
    ({"prompts": "heldout"}, False),
    *(({"settings": [*settings], "names": ("two",)}, False) for settings in SETTINGS),
]


@pytest.mark.slow
@pytest.mark.parametrize(("change", "alike"), CHANGES)
@pytest.mark.filterwarnings("ignore:what was in .* is kept in:UserWarning")
def test_evaluation_when_the_folder_holds_one_keeps_every_reply_in_one_archive_or_beside_it(
    evaluate: Evaluate, tmp_path: Path, change: dict[str, Any], alike: bool
) -> None:
    first = evaluate()
    names = change.get("names", ())
    now = evaluate(*names, **{name: value for name, value in change.items() if name != "names"})
    folder = tmp_path / "run"
    assert [path.name for path in folder.glob("earlier*")] == ([] if alike else ["earlier-1"])
    kept = now if alike else read_archive(folder / "earlier-1")
    assert all(one in kept.judgements for one in first.judgements)
    if alike:
        assert now.manifest.subject == first.manifest.subject
        assert score_folder(
            folder, definitions=Definitions(resamples=0), release=tmp_path / "release"
        ).methods


@pytest.mark.slow
def test_evaluation_when_each_judges_other_stories_and_methods_is_the_union_of_both(
    evaluate: Evaluate, release: Release, boards: Path, tmp_path: Path
) -> None:
    other = draw_outputs(tmp_path / "other", release.records, side=128)
    stories = [record.story_id for record in release.records]
    first = evaluate(stories=stories[:1])
    second = evaluate("two", outputs=[other], stories=stories[1:])
    assert {one.key() for one in first.judgements} < {one.key() for one in second.judgements}
    assert [*second.manifest.subject["methods"]] == ["drawn", "other"]
    assert second.manifest.protocol["stories"]["count"] == 3
    again = evaluate("two", outputs=[other], stories=stories[1:])
    assert again == second, "evaluating again changes nothing"
    continue_run(tmp_path / "run", workers=0)
    assert read_archive(tmp_path / "run") == second, "nor does continuing the run"


@pytest.mark.slow
def test_evaluation_when_killed_before_the_union_is_united_by_the_next(evaluate, monkeypatch, tmp_path):
    first = evaluate()
    monkeypatch.setattr(running, "unite", lambda folder, form: ())
    evaluate("two")
    monkeypatch.undo()
    assert (tmp_path / "run" / EARLIER).is_dir()
    now = evaluate("three")
    assert now.manifest.protocol["judges"] == [f"compatible:{name}" for name in ("one", "three", "two")]
    assert {one.key() for one in first.judgements} < {one.key() for one in now.judgements}
    assert not [*(tmp_path / "run").glob("earlier*")]


@pytest.mark.slow
def test_evaluation_when_the_release_is_another_keeps_the_earlier_archive_apart(evaluate, release, tmp_path):
    first = evaluate()
    lines = (release.path / ANNOTATIONS).read_text("utf-8").splitlines(keepends=True)
    (release.path / ANNOTATIONS).write_text("".join(lines[:1]), encoding="utf-8")
    with pytest.warns(UserWarning, match="is kept in .*earlier-1"):
        evaluate("two")
    assert read_archive(tmp_path / "run" / "earlier-1") == first


def test_release_when_a_file_is_not_the_one_packed_is_refused_before_anybody_is_asked(
    evaluate: Evaluate, release: Release, server: ModelServer
) -> None:
    document = json.loads((release.path / RELEASE).read_bytes())
    files = {
        name: {"bytes": (release.path / name).stat().st_size, "sha256": sha256_file(release.path / name)}
        for name in (ANNOTATIONS, VARIANTS)
    }
    stated = {**files, "LICENSE": {"bytes": 1, "sha256": "0" * 64}, "../outside": files[VARIANTS]}
    (release.path / RELEASE).write_bytes(pretty_bytes(document | {"files": files}))
    check_intact(release.path)
    (release.path / RELEASE).write_bytes(pretty_bytes(document | {"files": stated}))
    with (release.path / VARIANTS).open("ab") as file:
        file.write(b"\n")
    with pytest.raises(InputError) as refused:
        evaluate()
    (cause,) = refused.value.problems
    assert cause.found == (
        f"1 file was changed after packing: {VARIANTS}; "
        "2 files were removed after packing: ../outside, LICENSE"
    )
    assert server.count == 0
