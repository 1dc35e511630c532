"""Executing a pipeline: only what is missing runs, filters choose, outputs follow, errors are clear."""

import json
import re
import signal
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from fabula.engine.config import RunSettings, resolve_config
from fabula.engine.execute import Options, RunRequest, execute
from fabula.engine.manifest import read_manifest
from fabula.engine.pipeline import Pipeline, load_pipeline
from fabula.engine.pool import WorkerPool
from fabula.engine.status import RunReport, read_report, run_status, show_item
from fabula.errors import BelowThreshold, ConfigError, InputError, Interrupted, RunError, TargetError
from fabula.prompts.loader import load_prompt
from fabula.schemas.canonical import sha256_file
from fabula.testing import toy_pipeline as toys
from fabula.testing.toy_pipeline import HERE, toy
from fabula.tests.unit.engine.conftest import Listener

Ran = Callable[[RunReport], dict[str, int]]
ALL = {"read_lines": 4, "work": 4, "count": 4, "number": 4, "shorten": 4, "assemble": 4}


def outputs(folder: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in (folder / "lines.jsonl").read_text().splitlines()]


# -- what runs and what does not


def test_execute_when_new_makes_everything_and_writes_sorted_outputs(run, tmp_path, ran):
    report = run()
    assert ran(report) == ALL
    assert report.totals == {"made": 4, "rejected": 0, "failed": 0, "pending": 0}
    assert outputs(tmp_path / "run")[0] == {"id": "a", "text": "ant!", "count": 1, "number": 0, "short": "a"}
    assert [line["id"] for line in outputs(tmp_path / "run")] == ["a", "b", "c", "d"]


@pytest.mark.parametrize(
    ("given", "line", "again"),
    [
        ({"pipeline": toy("WORK_V2")}, "b bee", {"work": 4}),  # what it makes is the same: there it ends
        # count and shorten read the text; what they make stays the same; number reads nothing of it
        ({"sets": ["work.suffix=?"]}, "b bee", {"work": 4, "count": 4, "shorten": 4, "assemble": 4}),
        ({}, "b bear", {"read_lines": 4, "work": 1, "count": 4, "shorten": 1, "assemble": 1}),
    ],
    ids=["version", "setting", "one line"],
)
def test_execute_when_something_changes_runs_what_depends_on_it(run, ran, lines, given, line, again):
    run()
    lines.write_text(lines.read_text().replace("b bee", line))
    assert ran(run(**given)) == again


def test_execute_when_setting_is_set_back_reuses_the_old_results(run, ran, tmp_path):
    run()
    before = (tmp_path / "run" / "lines.jsonl").read_bytes()
    run(sets=["work.suffix=?"])
    assert ran(run()) == {}
    assert (tmp_path / "run" / "lines.jsonl").read_bytes() == before


def test_execute_when_library_changes_runs_that_stage(run, ran, monkeypatch):
    pipeline = toy("WORK_WITH_LIBRARY")
    run(pipeline=pipeline)
    assert ran(run(pipeline=pipeline)) == {}
    monkeypatch.setattr("importlib.metadata.version", lambda _: "99")
    assert ran(run(pipeline=pipeline)) == {"work": 4}


def test_execute_when_prompt_changes_runs_that_stage_and_says_why(run, ran, monkeypatch, tmp_path):
    pipeline = toy("WORK_WITH_PROMPT")
    run(pipeline=pipeline)
    assert ran(run(pipeline=pipeline)) == {}
    real = load_prompt("scene_image")
    assert read_manifest(tmp_path / "run").prompts == {"scene_image": real.sha256}
    monkeypatch.setattr("fabula.prompts.loader.load_prompt", lambda _: replace(real, sha256="0" * 64))
    status = run_status(tmp_path / "run", pipeline)
    assert status.stages[1].reasons == {"prompt scene_image changed": 4}
    assert ran(run(pipeline=pipeline)) == {"work": 4}
    assert read_manifest(tmp_path / "run").prompts == {"scene_image": "0" * 64}


def test_report_when_outputs_are_settled_names_their_hashes_and_the_manifests(run, tmp_path):
    def hashes() -> tuple[str, dict[str, str]]:
        return sha256_file(tmp_path / "run" / "run.json"), {
            "lines.jsonl": sha256_file(tmp_path / "run" / "lines.jsonl")
        }

    first = run()
    assert (first.manifest_sha256, first.outputs) == hashes()
    again = run()
    assert (again.manifest_sha256, again.outputs) == (first.manifest_sha256, first.outputs)
    other = run(sets=["work.suffix=?"])
    assert (other.manifest_sha256, other.outputs) == hashes()
    assert other.manifest_sha256 != first.manifest_sha256
    assert other.outputs != first.outputs
    left = run(sets=["work.suffix=."], stages=("work",))
    assert (left.manifest_sha256, left.outputs) == (None, {})
    assert read_report(tmp_path / "run") == left


# -- items that are not made


def test_execute_when_items_are_rejected_or_fail_lists_every_one(run, lines, tmp_path):
    lines.write_text("z zoo\na reject\nb fail\nc raise\nd\n" + "".join(f"m{n} moth\n" for n in range(40)))
    report = run()
    assert report.totals == {"made": 41, "rejected": 2, "failed": 2, "pending": 0}
    told = [(item.id, item.stage, item.status, item.code, item.meaning) for item in report.items]
    failed = "The stage could not do its work on the item."
    assert told == [
        ("a", "work", "rejected", "unwanted", "asked for"),
        ("b", "work", "failed", "tired", failed),
        ("c", "work", "failed", "exception", failed),
        ("d", "read_lines", "rejected", "empty", "no words"),
    ]
    assert read_report(tmp_path / "run") == report


def test_execute_when_failed_before_is_not_tried_again_unless_asked(run, lines, ran, monkeypatch):
    lines.write_text(lines.read_text() + "e fail\n")
    sets = ["run.threshold=0.5"]
    run(sets=sets)
    assert ran(run(sets=sets)) == {}
    assert ran(run(sets=sets, retry_failed=True)) == {"work": 1}
    monkeypatch.setattr(toys, "OUTCOMES", {})
    again = {"work": 1, "count": 5, "number": 5, "shorten": 1, "assemble": 1}
    assert ran(run(sets=sets, retry_failed=True)) == again
    assert run(sets=sets).totals["failed"] == 0


def test_execute_when_too_few_are_made_writes_everything_and_raises(run, lines, tmp_path):
    lines.write_text(lines.read_text() + "e fail\nf reject\n")
    with pytest.raises(BelowThreshold, match=r"4 of 5 items were made, a share of 0\.8"):
        run()
    assert read_report(tmp_path / "run").totals["failed"] == 1
    assert len(outputs(tmp_path / "run")) == 4
    assert run(sets=["run.threshold=0.8"]).share == 0.8


def test_execute_when_every_item_is_rejected_writes_everything_and_raises(run, lines, tmp_path):
    lines.write_text("a reject\nb reject\n")
    with pytest.raises(BelowThreshold, match="no item was made: all 2 that were tried were rejected"):
        run()
    assert read_report(tmp_path / "run").totals == {"made": 0, "rejected": 2, "failed": 0, "pending": 0}
    assert outputs(tmp_path / "run") == []
    assert run(sets=["run.threshold=0"]).share == 0.0


def test_execute_when_stages_are_left_out_counts_waiting_items_as_on_their_way(run, lines):
    lines.write_text("a reject\nb fail\n" + "".join(f"m{n} moth\n" for n in range(19)))
    assert run(stages=("read_lines", "work")).totals["pending"] == 19
    with pytest.raises(BelowThreshold, match=r"19 of 21 items were made or are on their way"):
        lines.write_text(lines.read_text() + "c fail\n")
        run(stages=("read_lines", "work"))


@pytest.mark.parametrize(
    ("made", "reason"),
    [
        (lambda *_: toys.Made({"txt": 1}), r"declares the fields \['text'\] and made \['txt'\]"),
        (lambda *_: toys.Rejected("other", "r"), "rejected with 'other', which it does not declare"),
        (lambda *_: None, "returned NoneType, not an outcome"),
        (lambda *_: toys.Made({"text": float("nan")}), "not JSON compliant"),
        (lambda *_: toys.Made({"text": "\ud800"}), "surrogates not allowed"),
    ],
)
def test_execute_when_stage_breaks_its_declaration_fails_the_item(run, monkeypatch, made, reason):
    monkeypatch.setattr(toys.WORK, "run", made)
    report = run(sets=["run.threshold=0"])
    assert report.totals["failed"] == 4
    assert report.items[0].code == "exception"
    assert report.items[0].reason is not None
    assert re.search(reason, report.items[0].reason)


def test_execute_when_expand_gives_an_id_twice_names_it(run: Callable, lines: Path) -> None:
    lines.write_text("a ant\nb bee\na ape\n")
    with pytest.raises(InputError, match=r"item a: two items have this id"):
        run()


def test_execute_when_expand_gives_an_id_that_cannot_be_stored_names_it(run, monkeypatch):
    child = toys.Child("a\ud800", toys.Made({"words": ["x"]}))
    monkeypatch.setattr(toys.READ, "run", lambda *_: iter([child]))
    with pytest.raises(InputError, match=r"'a\\ud800': expected an id in Unicode"):
        run()


def test_execute_when_gather_leaves_an_item_out_is_our_bug(run, monkeypatch):
    monkeypatch.setattr(toys.COUNT, "run", lambda *_: {"a": {"count": 1}})
    with pytest.raises(ValueError, match=r"must give fields for every item; wrong: \['b', 'c', 'd'\]"):
        run()


# -- filters


def test_execute_when_limited_runs_the_first_items_of_the_source(run, tmp_path, ran):
    report = run(limit=2)
    assert report.totals == {"made": 2, "rejected": 0, "failed": 0, "pending": 2}
    assert [line["id"] for line in outputs(tmp_path / "run")] == ["a", "c"]
    assert {item.id: item.status for item in report.items} == {"b": "pending", "d": "pending"}
    assert {item.meaning for item in report.items} == {"The stage has not been run on the item."}
    assert run().totals["made"] == 4


def test_execute_when_items_are_chosen_runs_those(run: Callable, ran: Ran) -> None:
    report = run(items=("b", "d"))
    assert report.totals == {"made": 2, "rejected": 0, "failed": 0, "pending": 2}
    assert ran(report)["work"] == 2
    with pytest.raises(ConfigError, match="no items x, y"):
        run(items=("x", "a", "y"))


def test_execute_when_stages_are_chosen_runs_those_and_writes_no_outputs(run, tmp_path, ran):
    report = run(stages=("read_lines", "work"))
    assert ran(report) == {"read_lines": 4, "work": 4}
    assert report.totals["pending"] == 4
    assert not (tmp_path / "run" / "lines.jsonl").exists()
    assert ran(run()) == {"count": 4, "number": 4, "shorten": 4, "assemble": 4}


def test_execute_when_an_option_is_wrong_says_so(run, refusals, snapshot):
    wrong = [{"stages": ("nope",)}, {"limit": -1}, {"workers": -1}, {"item_timeout": 0}]
    assert refusals(lambda options: run(**options), wrong) == snapshot


# -- the folder


def test_execute_when_run_exists_keeps_its_creation_time_and_sources(run, tmp_path, monkeypatch, ran):
    run()
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1800000000")
    config = resolve_config(toy())
    request = RunRequest(tmp_path / "run", toy(), config, options=Options(workers=0))
    assert ran(execute(request)) == {}
    assert read_manifest(tmp_path / "run").created_at == "2023-11-14T22:13:20Z"
    with pytest.raises(ConfigError, match="created at 2023-11-14T22:13:20Z"):
        execute(RunRequest(tmp_path / "run", toy(), config, created_at="2026-01-01T00:00:00Z"))


def test_execute_when_continued_takes_all_settings_but_the_workers_from_the_run(run, tmp_path, monkeypatch):
    run(sets=["run.item_timeout=7.5", "run.threshold=1", "run.seed=3", "run.workers=5", "work.suffix=?"])
    config = read_manifest(tmp_path / "run").config(load_pipeline(toy()))
    assert config.run == RunSettings(workers=None, item_timeout=7.5, threshold=1, seed=3)
    assert config.stages["work"] == toys.WorkSettings(suffix="?")
    seen: list[float] = []
    real = WorkerPool.__init__

    def watched(self: WorkerPool, workers: int, item_timeout: float) -> None:
        seen.append(item_timeout)
        real(self, workers, item_timeout)

    monkeypatch.setattr(WorkerPool, "__init__", watched)
    execute(RunRequest(tmp_path / "run", toy(), config, options=Options(workers=0)))
    assert set(seen) == {7.5}


def test_execute_when_folder_was_moved_with_its_edits_finds_them(run, tmp_path, ran):
    run()
    (tmp_path / "run" / "edits.jsonl").write_text("")
    assert ran(run()) == {"read_lines": 4}
    (tmp_path / "run").rename(tmp_path / "moved")
    request = RunRequest(tmp_path / "moved", toy(), resolve_config(toy()), options=Options(workers=0))
    assert ran(execute(request)) == {}


@pytest.mark.parametrize(
    ("place", "words"),
    [("run", "a file is there"), ("run/thesis.tex", r"other files and no run: thesis\.tex")],
)
def test_execute_when_target_is_a_file_or_holds_other_files_is_refused(run, tmp_path, place, words):
    (tmp_path / place).parent.mkdir(exist_ok=True)
    (tmp_path / place).write_text("mine")
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(TargetError, match=words):
        run()
    assert sorted(tmp_path.rglob("*")) == before and (tmp_path / place).read_text() == "mine"


def test_execute_when_run_is_of_another_kind_or_newer_is_refused(run: Callable, tmp_path: Path) -> None:
    run()
    with pytest.raises(RunError, match="of kind toy, not other"):
        run(pipeline=Pipeline("other", toy().stages, toy().finish))
    path = tmp_path / "run" / "run.json"
    path.write_text(path.read_text().replace('"format": 1', '"format": 7'))
    with pytest.raises(RunError, match="format 7 is of a newer Fabula"):
        run()


def test_execute_when_finish_meets_a_full_disk_says_so_and_writes_next_time(run, tmp_path, ran):
    with pytest.raises(TargetError, match="No space left"):
        run(pipeline=toy(finish=f"{HERE}:broken_finish"))
    assert ran(run()) == {}
    assert len(outputs(tmp_path / "run")) == 4


# -- being told, being stopped


def test_execute_when_stopped_between_stages_keeps_what_is_done(run: Callable, ran: Ran) -> None:
    listener = Listener("stage", "count", lambda: signal.raise_signal(signal.SIGINT))
    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(Interrupted, match="the same command continues it"):
        run(reporter=listener)
    assert signal.getsignal(signal.SIGINT) is before
    kinds = [event.kind for event in listener.events]
    assert "stopping" in kinds
    assert "run-done" not in kinds
    assert kinds[-1] == "closed"
    assert ran(run()) == {"number": 4, "shorten": 4, "assemble": 4}


def test_execute_when_told_twice_to_stop_does_not_wait(run: Callable, ran: Ran) -> None:
    def twice() -> None:
        signal.raise_signal(signal.SIGTERM)
        signal.raise_signal(signal.SIGINT)

    with pytest.raises(Interrupted, match="stopped at once"):
        run(reporter=Listener("stage", "number", twice))
    assert ran(run()) == {"number": 4, "shorten": 4, "assemble": 4}


def test_show_item_when_failed_has_the_traceback(run: Callable, lines: Path, tmp_path: Path) -> None:
    lines.write_text("a raise\n")
    with pytest.raises(BelowThreshold):
        run()
    view = show_item(tmp_path / "run", toy(), "a")
    assert view.stages[1].reads == {"words": ["raise"]}
    assert "RuntimeError: asked to raise" in (view.stages[1].evidence or "")
