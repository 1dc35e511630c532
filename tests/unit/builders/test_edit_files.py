"""A file of corrections from a review is checked whole, bound to what was reviewed, and added once."""

import json
import shutil
from pathlib import Path

import pytest

from fabula.builders.katha.building import BuildOptions, build_katha
from fabula.engine.edits import NAME, edits_of, read_edits, run_ids
from fabula.engine.manifest import read_manifest
from fabula.errors import ConfigError, InputError
from fabula.evaluation.archive.archive import release_sha256
from fabula.kinds.verbs import continue_run, correct, correct_from, pack
from fabula.releases.options import PackOptions
from fabula.testing.review_exports import write_edits

FIRST, SECOND = "kb25k_0001", "kb25k_0002"
SIGNED = {"who": "r1, r2", "why": "recoverability_qa needs_edit: names the event"}


@pytest.fixture(scope="module")
def built(katha, tmp_path_factory) -> Path:
    """A finished run of two stories."""
    folder = tmp_path_factory.mktemp("katha")
    rows = (katha.samples / "stories.jsonl").read_bytes().splitlines(keepends=True)[:2]
    (folder / "stories.jsonl").write_bytes(b"".join(rows))
    options = BuildOptions(created_at="2026-01-01T00:00:00Z", workers=0, settings=["run.threshold=1"])
    build_katha(folder / "stories.jsonl", folder / "run", options)
    return folder / "run"


@pytest.fixture
def run(built, tmp_path) -> Path:
    return Path(shutil.copytree(built, tmp_path / "run"))


@pytest.fixture(scope="module")
def release(built, tmp_path_factory) -> Path:
    """The release of that run, of whose stories one may be hidden."""
    options = PackOptions("0.1.0", license="CC-BY-4.0", allow_drafts=True)
    return pack(built, tmp_path_factory.mktemp("packed") / "out", options).folder


@pytest.fixture
def file(tmp_path):
    """Write a file of corrections with these rows."""
    return lambda *rows, **header: write_edits(tmp_path / "edits.jsonl", rows, **header)


def record(run: Path, story: str = FIRST) -> dict:
    lines = (run / "records.jsonl").read_text("utf-8").splitlines()
    return next(json.loads(line)["payload"]["record"] for line in lines if json.loads(line)["id"] == story)


def edit(run: Path, path: str, new, story: str = FIRST, **more) -> dict:
    """A correction of a value as it stands in the run's records."""
    value = record(run, story)
    for step in path.removeprefix("$.").replace("[", ".").replace("]", "").split("."):
        value = value[int(step) if step.isdigit() else step]
    return {"id": story, "path": path, "old": value, "new": new, **SIGNED, **more}


def problems(run: Path, file: Path, **how) -> list[str]:
    with pytest.raises(InputError) as caught:
        correct_from(run, file, **how)
    assert edits_of(run, FIRST) == edits_of(run, SECOND) == ()
    return [f"{problem.where.rpartition('/')[2]} {problem.what}" for problem in caught.value.problems]


def test_corrections_when_all_fit_are_added_with_what_follows_and_a_second_time_add_nothing(run, file):
    rows = [edit(run, "$.questions[0].gold_answer", "a net of rope"), edit(run, "$.title", "Once", SECOND)]
    applied = correct_from(run, file(*rows))
    assert [row.path for row in applied.added] == ["$.questions[0].gold_answer", "$.title"]
    assert [row.path for row in applied.also] == ["$.questions[0].accepted_answers"]
    assert applied.also[0].new[0] == "a net of rope"
    before = (run / NAME).read_bytes()
    again = correct_from(run, file(*rows))
    assert (again.added, again.also, again.known) == ((), (), 2)
    assert (run / NAME).read_bytes() == before
    assert continue_run(run, workers=0).totals["failed"] == 0
    assert record(run)["questions"][0]["gold_answer"] == "a net of rope"
    assert record(run, SECOND)["title"] == "Once"
    assert correct_from(run, file(*rows)).known == 2


def test_a_file_when_it_grew_adds_what_is_new(run, file):
    first = edit(run, "$.title", "Once")
    correct_from(run, file(first))
    second = edit(run, "$.title", "Twice", SECOND)
    applied = correct_from(run, file(first, second))
    assert ([row.id for row in applied.added], applied.known) == ([SECOND], 1)


def test_corrections_when_any_does_not_fit_are_all_refused_and_each_is_told(run, file):
    rows = [
        edit(run, "$.title", "Once"),
        {**edit(run, "$.title", "Once", SECOND), "old": "Another title"},
        {**edit(run, "$.title", "x"), "path": "$.nothing"},
        {**edit(run, "$.title", "x"), "id": "kb25k_0009"},
        edit(run, "$.moral_label", "greed"),
        edit(run, "$.questions[0].question_id", "q"),
    ]
    found = problems(run, file(*rows))
    assert [text.partition(" ")[0] for text in found] == [f"edits.jsonl:{n}" for n in (4, 6, 7, 3, 5)]
    by_line = dict(text.split(" ", 1) for text in found)
    assert 'the reviewers saw "Another title", and now "' in by_line["edits.jsonl:3"]
    assert "$.nothing cannot be corrected: nothing at $.nothing; $ has title" in by_line["edits.jsonl:4"]
    assert "the run has no item kb25k_0009" in by_line["edits.jsonl:5"]
    assert "expected one of compassion" in by_line["edits.jsonl:6"]
    assert "ids" in by_line["edits.jsonl:7"]


def test_a_value_when_a_waiting_correction_changed_it_is_not_what_the_reviewers_saw(run, file):
    row = edit(run, "$.title", "Once")
    correct(run, FIRST, "$.title", "Meanwhile", who="ana", why="clearer")
    with pytest.raises(InputError, match='and now "Meanwhile" stands there'):
        correct_from(run, file(row))
    assert [known.new for known in edits_of(run, FIRST)] == ["Meanwhile"]


def test_what_a_file_corrects_itself_is_not_done_again_for_it(run, file):
    gold, answers = "$.questions[0].gold_answer", "$.questions[0].accepted_answers"
    rows = [edit(run, gold, "a net"), edit(run, answers, ["a net", "the net"])]
    applied = correct_from(run, file(*rows))
    assert (len(applied.added), applied.also) == (2, ())
    assert continue_run(run, workers=0).totals["failed"] == 0
    assert record(run)["questions"][0]["accepted_answers"] == ["a net", "the net"]


def test_parts_that_follow_a_corrected_label_are_corrected_against_what_the_reviewers_saw(run, file):
    before = record(run)
    number = next(n for n, part in enumerate(before["transitions"]) if part["moral_target"] is not None)
    path = f"$.transitions[{number}].moral_target"
    other = "wisdom" if before["moral_label"] != "wisdom" else "courage"
    rows = [edit(run, "$.moral_label", other), edit(run, path, None)]
    assert rows[1]["old"] == before["moral_label"]
    applied = correct_from(run, file(*rows))
    assert applied.added[1].old == other  # what stands there once the label is corrected
    assert continue_run(run, workers=0).totals["failed"] == 0
    assert record(run)["transitions"][number]["moral_target"] is None


def test_a_boundary_when_both_scenes_are_in_the_file_moves_once(run, file):
    first, second = (scene["scene_text"] for scene in record(run)["scenes"][:2])
    word, _, rest = second.partition(" ")
    rows = [edit(run, "$.scenes[0].scene_text", f"{first} {word}"), edit(run, "$.scenes[1].scene_text", rest)]
    applied = correct_from(run, file(*rows))
    assert (len(applied.added), applied.also, applied.issues) == (2, (), ())
    assert continue_run(run, workers=0).totals["failed"] == 0


def test_withdrawals_in_a_file_take_the_record_out_and_end_its_corrections(run, file):
    gone = {
        "id": FIRST,
        "path": "$",
        "old": None,
        "new": None,
        "who": "a1",
        "why": "safety unsafe: too harsh",
    }
    late = edit(run, "$.title", "x")
    assert problems(run, file(gone, late)) == [
        f"edits.jsonl:3 {FIRST}: line 2 withdraws this item, and nothing is left to correct"
    ]
    assert correct_from(run, file(gone)).added[0].path == "$"
    assert correct_from(run, file(gone)).known == 1
    report = continue_run(run, workers=0)
    assert next(item for item in report.items if item.id == FIRST).code == "withdrawn"
    with pytest.raises(InputError, match="this item was withdrawn by a1"):
        correct_from(run, file(late))


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"who": "a\nb"}, "who is no name in one line"),
        ({"who": "x" * 101}, "who is no name in one line"),
        ({"why": " "}, "why is empty"),
        ({"path": "$", "new": None, "why": "a\nb"}, "why is not one line"),
        ({"path": "title"}, "this is not a JSON path"),
        ({"note": 1}, "this line is not an edit"),
    ],
)
def test_a_line_when_it_is_no_signed_correction_is_refused_with_its_number(run, file, change, text):
    found = problems(run, file({**edit(run, "$.title", "x"), **change}))
    assert found[0].startswith("edits.jsonl:2 ") and text in found[0]


@pytest.mark.parametrize(
    "first",
    [b"", b"{", b"[]", b'{"id": "a"}', b'{"format": 2, "release": null, "run": null, "simulated": false}',
     b'{"format": 1, "release": "x", "run": null, "simulated": false}',
     b'{"format": 1, "release": null, "run": null, "simulated": "no"}'],
)  # fmt: skip
def test_a_file_when_its_first_line_does_not_say_what_was_reviewed_is_refused(run, tmp_path, first):
    path = tmp_path / "edits.jsonl"
    path.write_bytes(first + b"\n")
    assert "does not say what was reviewed" in problems(run, path)[0]
    with pytest.raises(InputError, match="cannot be read"):
        correct_from(run, tmp_path)
    with pytest.raises(InputError, match=r"none\.jsonl"):
        correct_from(run, tmp_path / "none.jsonl")


def test_corrections_when_programs_made_them_are_marked_in_the_run_for_good(run, file):
    rows = [edit(run, "$.title", "Once", who="a1"), edit(run, "$.title", "Twice", SECOND, who="simulated-1")]
    applied = correct_from(run, file(*rows, simulated=True))
    assert applied.file.simulated
    assert [known.who for known in read_edits(run / NAME)] == ["simulated-a1", "simulated-1"]
    assert correct_from(run, file(*rows, simulated=True)).known == 2
    continue_run(run, workers=0)
    lines = (run / "records.jsonl").read_text("utf-8")
    assert "edit:simulated-a1" in lines and "edit:simulated-1" in lines


def test_a_run_when_another_was_reviewed_is_refused_and_its_own_id_lasts(run, file):
    row = edit(run, "$.title", "Once")
    with pytest.raises(ConfigError, match="another run was reviewed than"):
        correct_from(run, file(row, run="0" * 64))
    (own,) = run_ids(read_manifest(run))
    correct_from(run, file(row, run=own))
    continue_run(run, workers=0)
    assert run_ids(read_manifest(run)) == (own,)


def test_corrections_when_their_release_is_given_are_bound_to_it(run, file, release):
    sha256 = release_sha256(release)
    row = edit(run, "$.title", "Once")
    with pytest.raises(ConfigError, match="says that another release was reviewed"):
        correct_from(run, file(row, release="0" * 64), release=release)
    with pytest.raises(ConfigError, match="says that no release was reviewed"):
        correct_from(run, file(row), release=release)
    unknown = correct_from(run, file(row, release=sha256), dry_run=True)
    assert "was not given with --release" in unknown.notes[0]
    assert correct_from(run, file(row, release=sha256), release=release).notes == ()


def test_a_release_when_its_stories_are_others_than_those_of_the_run_is_refused(
    katha, run, file, release, tmp_path
):
    rows = (katha.samples / "stories.jsonl").read_text("utf-8").splitlines()[:2]
    other = [
        json.dumps({**json.loads(row), "text": json.loads(row)["text"] + " So it went."}) for row in rows
    ]
    (tmp_path / "stories.jsonl").write_text("\n".join(other), "utf-8")
    options = BuildOptions(created_at="2026-01-01T00:00:00Z", workers=0, settings=["run.threshold=1"])
    build_katha(tmp_path / "stories.jsonl", tmp_path / "other", options)
    row = edit(run, "$.title", "Once")
    with pytest.raises(InputError, match=f"{FIRST} of the run is another story than that of the release"):
        correct_from(tmp_path / "other", file(row, release=release_sha256(release)), release=release)


def test_records_when_they_changed_since_the_release_are_told_and_values_that_stand_are_corrected(
    run, file, release
):
    row = edit(run, "$.title", "Once")
    correct(run, FIRST, "$.questions[0].question", "What did the ant do then?", who="ana", why="clearer")
    continue_run(run, workers=0)
    applied = correct_from(run, file(row, release=release_sha256(release)), release=release)
    assert applied.notes[0].startswith("1 record has changed in the run since the release was packed")
