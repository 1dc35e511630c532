"""Adding stories to a run: nothing that is there moves, and only what is new is worked on."""

import json
import shutil
from pathlib import Path

import pytest

from fabula.builders.katha import extend
from fabula.builders.katha.building import BuildOptions, build_katha
from fabula.builders.katha.extend import ExtendOptions, extend_katha
from fabula.engine.manifest import read_manifest
from fabula.engine.status import run_status
from fabula.errors import InputError, RunError
from fabula.kinds.verbs import continue_run, pipeline_of, withdraw
from fabula.validators.katha.validation import validate

GATHERED = ("load_stories", "find_duplicates", "choose_stories", "find_retellings", "assign_splits")
NOW = ExtendOptions(created_at="2026-03-01T00:00:00Z", workers=0)
FIRST = 5


@pytest.fixture(scope="module")
def rows(katha) -> list[dict]:
    lines = (katha.samples / "stories.jsonl").read_text("utf-8").splitlines()
    return [json.loads(line) for line in lines]


@pytest.fixture(scope="module")
def built(rows, tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("extended")
    write(folder / "stories.jsonl", *rows[:FIRST])
    options = BuildOptions(created_at="2026-01-01T00:00:00Z", workers=0)
    build_katha(folder / "stories.jsonl", folder / "run", options)
    return folder / "run"


@pytest.fixture
def run(built, tmp_path) -> Path:
    return Path(shutil.copytree(built, tmp_path / "run"))


@pytest.fixture
def new(tmp_path) -> Path:
    return tmp_path / "new.jsonl"


def write(path: Path, *stories: dict) -> Path:
    path.write_text("".join(json.dumps(story, ensure_ascii=False) + "\n" for story in stories), "utf-8")
    return path


def records(run: Path) -> dict[str, bytes]:
    lines = (run / "records.jsonl").read_bytes().splitlines()
    return {json.loads(line)["id"]: line for line in lines}


def splits(run: Path) -> dict[str, str]:
    lines = (run / "assignments.jsonl").read_text("utf-8").splitlines()
    return {row["id"]: row["split"] for row in map(json.loads, lines)}


def worked(report) -> int:
    return sum(stage.ran for stage in report.run.stages if stage.name not in GATHERED)


def test_extend_when_stories_are_new_adds_them_and_moves_nothing(run, new, rows) -> None:
    before, assigned = records(run), splits(run)
    report = extend_katha(run, write(new, *rows[FIRST : FIRST + 2]), NOW)
    after = records(run)
    assert report.added == tuple(row["id"] for row in rows[FIRST : FIRST + 2])
    assert {key: line for key, line in after.items() if key in before} == before
    assert {key: split for key, split in splits(run).items() if key in before} == assigned
    times = {
        key: json.loads(line)["payload"]["record"]["provenance"]["created_at"] for key, line in after.items()
    }
    assert {times[key] for key in before} == {"2026-01-01T00:00:00Z"}
    assert {times[key] for key in report.added} == {"2026-03-01T00:00:00Z"}
    assert (report.before["stories"], report.after["stories"]) == (FIRST, FIRST + 2)
    assert {issue.code for issue in validate(run).issues} == {"incomplete"}
    assert "extended by new.jsonl at 2026-03-01T00:00:00Z" in run_status(run, pipeline_of(run)).lines()


def test_extend_when_stories_are_new_runs_the_stages_for_them_alone(run, new, rows) -> None:
    report = extend_katha(run, write(new, *rows[FIRST : FIRST + 2]), NOW)
    maps = [stage.name for stage in report.run.stages if stage.name not in GATHERED]
    assert worked(report) == 2 * len(maps)
    assert worked(extend_katha(run, write(new.with_name("c.jsonl"), rows[FIRST + 2]), NOW)) == len(maps)


def test_extend_when_all_at_once_or_in_two_steps_gives_the_first_step_the_same_records(run, new, rows):
    extend_katha(run, write(new, rows[FIRST]), NOW)
    first = records(run)
    extend_katha(run, write(new.with_name("c.jsonl"), rows[FIRST + 1]), NOW)
    assert first.items() <= records(run).items()
    assert [source.name for source in read_manifest(run).sources] == ["stories.jsonl", "new.jsonl", "c.jsonl"]


def test_extend_when_some_stories_are_there_already_takes_the_others(run, new, rows) -> None:
    report = extend_katha(run, write(new, rows[0], rows[FIRST]), NOW)
    assert (report.added, report.known) == ((rows[FIRST]["id"],), (rows[0]["id"],))
    assert report.lines()[0] == "1 story added to 5, which stay as they were; in the run already: 1 of 2"


def test_extend_when_tried_only_tells_what_the_stages_would_turn_away(run, new, rows) -> None:
    twin = {**rows[FIRST], "id": "twin"}
    short = {**rows[FIRST + 1], "id": "short", "text": "A crow sat. It flew."}
    write(new, rows[FIRST], twin, short)
    journal = (run / "journal.sqlite").read_bytes()
    tried = extend_katha(run, new, ExtendOptions(dry_run=True))
    assert (run / "journal.sqlite").read_bytes() == journal
    assert tried.added == (rows[FIRST]["id"],)
    assert {item.id: item.code for item in tried.stopped} == {"twin": "near_duplicate", "short": "too_short"}
    assert tried.lines()[0] == "1 story can be added to 5, which stay as they are"
    assert any("twin rejected in screen_stories (near_duplicate): 100% like" in one for one in tried.lines())
    done = extend_katha(run, new, NOW)
    assert (done.added, done.stopped) == (tried.added, tried.stopped)


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (
            {"text": "A hen sat. A dog came. The hen flew up. The dog went home. All slept."},
            "with another text: ",
        ),
        ({"language": "fr"}, r"in fr, which by its id is \w+ \(en\) in another version"),
        ({"title": "Other"}, 'same text and another title: "Other"'),
        ({"id": "kb25k_0001-fr", "language": "fr", "text": "Un renard courut."}, "in another version"),
        ({"id": "KB25K_0001_pt-BR", "language": "pt-BR", "text": "Um corvo."}, "in another version"),
        ({"id": "fresh"}, r"fresh, 100% like kb25k_0001: \".*\"; in the run: \""),
        ({"id": "KB25K_0001"}, "ids may not differ in case alone"),
    ],
)
def test_extend_when_the_run_has_the_story_is_refused_with_the_match(run, new, rows, change, expected):
    before, manifest = records(run), (run / "run.json").read_bytes()
    with pytest.raises(InputError, match=expected) as caught:
        extend_katha(run, write(new, {**rows[0], **change}, rows[FIRST]), NOW)
    assert "new.jsonl:1" in str(caught.value)
    assert (records(run), (run / "run.json").read_bytes()) == (before, manifest)


def test_extend_when_stories_nearly_equal_each_other_keeps_the_first_and_says_so(run, new, rows) -> None:
    twin = {**rows[FIRST], "id": "twin"}
    report = extend_katha(run, write(new, rows[FIRST], twin), NOW)
    assert report.added == (rows[FIRST]["id"],)
    assert [(item.id, item.code) for item in report.stopped] == [("twin", "near_duplicate")]


def test_extend_when_a_story_was_withdrawn_refuses_its_id_for_ever(run, new, rows) -> None:
    withdraw(run, rows[0]["id"], who="ana", why="not free")
    continue_run(run, workers=0)
    other = {**rows[FIRST], "id": rows[0]["id"]}
    for story in (rows[0], other):
        with pytest.raises(InputError, match=r"new\.jsonl:2, id: .*withdrawn by ana: not free"):
            extend_katha(run, write(new, rows[FIRST], story), NOW)
    with pytest.raises(InputError, match="100% like"):
        extend_katha(run, write(new, {**rows[0], "id": "again"}), NOW)
    report = extend_katha(run, write(new, rows[FIRST]), NOW)
    assert (report.kept, len(report.added)) == (FIRST - 1, 1)


def test_extend_when_a_source_of_the_run_changed_names_it(built, new, rows, tmp_path) -> None:
    folder = tmp_path / "other"
    shutil.copytree(built.parent, folder)
    run = folder / "run"
    options = BuildOptions(created_at="2026-01-01T00:00:00Z", workers=0)
    build_katha(folder / "stories.jsonl", run, options)
    write(folder / "stories.jsonl", *rows[: FIRST + 1])
    with pytest.raises(InputError, match=r"stories\.jsonl: .*it has changed since"):
        extend_katha(run, write(new, rows[FIRST]), NOW)
    (folder / "stories.jsonl").unlink()
    with pytest.raises(InputError, match="No such file"):
        extend_katha(run, write(new, rows[FIRST]), NOW)


def test_extend_when_a_record_would_change_after_all_replaces_nothing(run, new, rows, monkeypatch) -> None:
    before, manifest = records(run), (run / "run.json").read_bytes()
    read = extend.read_base

    def wrong(folder, moved=()):
        base = read(folder, moved)
        base.records[rows[0]["id"]] = "0" * 64
        return base

    monkeypatch.setattr(extend, "read_base", wrong)
    with pytest.raises(RunError, match=r"1 records would change.*, such as kb25k_0001"):
        extend_katha(run, write(new, rows[FIRST]), NOW)
    assert (records(run), (run / "run.json").read_bytes()) == (before, manifest)
    assert continue_run(run, workers=0).totals["made"] == FIRST
    assert records(run) == before


def test_build_when_the_run_was_extended_keeps_what_was_added(built, run, new, rows) -> None:
    extend_katha(run, write(new, rows[FIRST]), NOW)
    after = records(run)
    build_katha(built.parent / "stories.jsonl", run, BuildOptions(workers=0))
    assert records(run) == after


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"", "an empty file"),
        (b'{"id": "x"', r"is missing \(column"),
        ("{'id'}".encode("utf-16"), "UTF-16"),
        (b'{"id": "a b"}\n', "1 to 64 of a-z"),
    ],
)
def test_extend_when_the_new_file_is_bad_says_where_and_writes_nothing(run, new, data, expected) -> None:
    new.write_bytes(data)
    manifest = (run / "run.json").read_bytes()
    with pytest.raises(InputError, match=expected):
        extend_katha(run, new, NOW)
    assert (run / "run.json").read_bytes() == manifest


def test_extend_when_a_record_is_given_for_a_story_that_is_there_is_refused(run, new, rows, tmp_path) -> None:
    given = write(tmp_path / "hand.jsonl", {"story_id": rows[0]["id"], "moral_label": "courage"})
    options = ExtendOptions(records=given, workers=0)
    with pytest.raises(InputError, match="a hand-written record"):
        extend_katha(run, write(new, rows[FIRST]), options)
