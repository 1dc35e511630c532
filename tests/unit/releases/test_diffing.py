"""Diffs of packed releases: what changed, the step that is due, and what is refused."""

import copy
import json
import shutil
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fabula.errors import ConfigError, InputError
from fabula.kinds.verbs import diff, pack, verify
from fabula.releases.diff.compare import ReleaseDiff
from fabula.releases.diff.form import Change, Step, changes_between
from fabula.releases.diff.since import as_json, lines, render_page
from fabula.releases.options import PackOptions
from fabula.releases.shots.tree import FOLDER
from fabula.schemas.canonical import Json, canonical_text, pretty_bytes
from fabula.schemas.paths import CHANGES
from fabula.testing.drawn_shots import draw_reference, draw_shot_set
from fabula.testing.katha_folders import rehash, write_run
from fabula.testing.katha_samples import sample_bundles
from fabula.testing.made_runs import shots_run, suite_run

OLD, NEW = "0.1.0", "0.2.0"
BundleChange = Callable[[list[Json]], Any]


@pytest.fixture(scope="module")
def old(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A release of seven public stories and a hidden one; not to be changed."""
    folder = tmp_path_factory.mktemp("old")
    run = write_run(folder / "run", sample_bundles(8))
    return pack(run, folder / "fables", PackOptions(OLD, allow_drafts=True)).folder


@pytest.fixture
def changed(tmp_path: Path) -> Callable[..., Path]:
    """Pack the same bundles after a change of them."""

    def make(change: BundleChange, version: str = NEW, **options: Any) -> Path:
        bundles = copy.deepcopy(sample_bundles(8))
        change(bundles)
        for bundle in bundles:
            rehash(bundle)
        run, given = write_run(tmp_path / "run", bundles), PackOptions(version, **options, allow_drafts=True)
        return pack(run, tmp_path / f"new-{version}", given).folder

    return make


def named(found: ReleaseDiff) -> set[tuple[str, str, str]]:
    """Return id, path and kind of every change that is no hash of the record itself."""
    return {
        (record.id, change.path, change.kind)
        for record in found.changed
        for change in record.changes
        if "sha256" not in change.path and "hash" not in change.path
    }


def drop(bundles: list[Json], place: int) -> None:
    del bundles[place]


def test_diff_when_a_release_is_compared_with_itself_finds_nothing(old: Path) -> None:
    found = diff(old, old)
    assert (found.step, found.problem, found.reasons) == (Step.NONE, None, ())
    assert not (found.added or found.removed or found.changed or any(found.sections.values()))
    assert str(found.due) == OLD


def small_changes(bundles: list[Json]) -> None:
    bundles[0]["record"]["title"] = "Another title"
    bundles[1]["record"]["provenance"]["source_reference"] = "book 2"
    bundles[2]["producers"][0]["producer"] = "hand:ana"


def another_variant(bundles: list[Json]) -> None:
    ids = {"variant_id": "kb25k_0001_v3", "pair_id": "kb25k_0001_p3"}
    bundles[0]["variants"].append(bundles[0]["variants"][0] | ids)


def move(bundles: list[Json]) -> None:
    bundles[0]["record"]["split"] = "validation"
    for variant in bundles[0]["variants"]:
        variant["subset"] = "validation"


CHANGED: dict[str, BundleChange] = {
    "an answer": lambda all_: all_[0]["record"]["questions"][1].update(
        gold_answer="x", accepted_answers=["x"]
    ),
    "an accepted answer more": lambda all_: all_[0]["record"]["questions"][1]["accepted_answers"].append("a"),
    "an action": lambda all_: all_[0]["record"]["scenes"][2].update(action="rests"),
    "a cause": lambda all_: all_[0]["record"]["transitions"][0].update(causality="chance"),
    "a question less": lambda all_: all_[0]["record"]["questions"].pop(2),
    "a variant": lambda all_: all_[0]["variants"][0].update(semantic_delta="said otherwise"),
    "a variant more": another_variant,
    "titles, references and makers": small_changes,
    "a story more": lambda all_: all_.extend(copy.deepcopy(sample_bundles(9)[8:])),
    "a story less": lambda all_: drop(all_, 0),
    "another split": move,
}


@pytest.mark.parametrize("what", CHANGED)
def test_diff_when_records_change_tells_what_and_the_step_that_is_due(old, changed, what, snapshot):
    assert "\n".join(lines(diff(old, changed(CHANGED[what])))) == snapshot


def test_diff_when_a_withdrawn_story_goes_says_why(old, changed, helpers):
    new = changed(CHANGED["a story less"])
    reason = {"id": "kb25k_0001", "reason": "the source asked for it"}
    helpers.edit_json(new / "release.json", lambda one: one.update(withdrawn={"stories": [reason]}))
    (gone,) = diff(old, new).gone
    assert (gone.how, gone.reason) == ("withdrawn", "the source asked for it")
    assert any("withdrawn: the source asked for it" in line for line in lines(diff(old, new)))


def test_diff_when_a_hidden_story_changes_tells_its_number_and_nothing_else(old, changed):
    salt = old.with_name(f"{old.name}-hidden.salt")
    new = changed(lambda all_: all_[4]["record"].update(title="A secret title"), salt=salt)
    found = diff(old, new)
    assert (found.hidden.kept, found.hidden.gone, found.hidden.fresh) == (0, 1, 1)
    assert found.reasons[0] == (Step.MAJOR, "1 story of the hidden test changed or gone")
    shown = json.dumps(as_json(found)) + "\n".join(lines(found))
    assert "kb25k_0005" not in shown and "secret title" not in shown
    assert diff(old.with_name(f"{old.name}-hidden"), new.with_name(f"{new.name}-hidden")).changed


def test_diff_when_commitments_are_under_two_salts_goes_by_the_number_of_hidden_stories(old, changed):
    found = diff(old, changed(lambda all_: all_[4]["record"].update(title="A secret title"), "0.1.1"))
    assert (found.hidden.kept, found.hidden.reasons()) == (None, [])
    assert any("nobody outside can tell" in line for line in lines(found))
    found = diff(old, changed(lambda all_: drop(all_, 4)))
    assert found.reasons == ((Step.MAJOR, "1 story of the hidden test gone"),)


def test_diff_when_the_same_version_has_other_content_is_a_problem(old, changed):
    new = changed(lambda all_: all_[0]["record"].update(title="Another title"), OLD)
    assert "both say version 0.1.0, and their content differs" in str(diff(old, new).problem)


def test_diff_when_the_version_is_too_low_or_goes_back_is_a_problem(old, changed):
    new = changed(lambda all_: all_.extend(copy.deepcopy(sample_bundles(9)[8:])), "0.1.1")
    assert "a minor step is due, which makes it 0.2.0" in str(diff(old, new).problem)
    assert "are the two swapped?" in str(diff(new, old).problem)


def test_diff_when_the_schema_has_another_version_names_the_fields(old, tmp_path, helpers):
    new = Path(shutil.copytree(old, tmp_path / "new"))
    for number in range(2):
        helpers.edit_line(new / "annotations.jsonl", number, lambda row: row.update(mood="calm"))
    helpers.edit_json(new / "release.json", lambda one: one.update(schema_version="2", version="1.0.0"))
    helpers.reseal(new)
    found = diff(old, new)
    assert found.schema == ("1", "2")
    assert found.fields == {"annotations.jsonl": {"$.mood": "added"}}
    assert found.reasons[0] == (Step.MAJOR, "the schema of the records is version 2, and was 1")


def test_diff_when_a_line_is_not_what_its_hash_says_refuses_instead_of_missing_it(old, tmp_path, helpers):
    new = Path(shutil.copytree(old, tmp_path / "new"))
    path = new / "annotations.jsonl"
    path.write_bytes(path.read_bytes().replace(b"the", b"teh", 1))  # release.json says what it said
    told = "1 with another hash: kb25k_0001"
    for pair, words in (((old, new), rf"{told}; other lines: 1\n.*release verify"), ((new, old), told)):
        with pytest.raises(InputError, match=words):
            diff(*pair)
    helpers.edit_line(path, 0, lambda row: row.update(title="x"))
    helpers.reseal(new)
    helpers.edit_line(path, 0, lambda row: row.update(title="y"))
    with pytest.raises(InputError, match=told):
        diff(old, new)


def test_diff_when_release_json_says_odd_things_refuses_them(old, tmp_path, refusals, snapshot):
    new = Path(shutil.copytree(old, tmp_path / "new"))
    document = json.loads((new / "release.json").read_bytes())

    def compare(part: dict[str, Any]) -> None:
        (new / "release.json").write_bytes(pretty_bytes({**document, **part}))
        diff(old, new)

    said = refusals(compare, [
        {"records": None}, {"records": {"annotations.jsonl": []}}, {"records": {"../x": {}}},
        {"records": {"annotations.jsonl": {"a": 1}}}, {"version": "one"}, {"version": None},
        {"records": {"annotations.jsonl": {"kb25k_0001": "0" * 64}}}, {"visibility": "hidden"},
        {"format": 99}, {"kind": "clips"},
    ])  # fmt: skip
    assert said.replace(str(old.parent), "") == snapshot


def test_diff_when_written_as_json_names_every_value(old: Path, changed: Callable[..., Path]) -> None:
    new = changed(lambda all_: all_[0]["record"]["scenes"][2].update(action="rests"))
    document = json.loads(json.dumps(as_json(diff(old, new))))
    (record,) = document["changed"]
    (change,) = (one for one in record["changes"] if one["path"] == "$.scenes[2].action")
    assert change["new"] == "rests" and change["old"].endswith("faces trouble")
    assert document["step"]["due"] == "major" and document["step"]["next_version"] == NEW


def test_diff_when_the_releases_are_of_suites_goes_prompt_by_prompt(tmp_path: Path) -> None:
    seeds = [
        {"prompt": "A dog rolls over, begs for a treat, and then catches it.", "author": "ana"},
        {"prompt": "A man opens a door, and then walks out."},
    ]
    others = [{**seeds[0], "author": "bo"}, {"prompt": "A cat jumps up, eats a fish, and then runs off."}]
    folders = []
    for name, rows in (("one", seeds), ("two", others)):
        options = PackOptions("0.1.0", license="CC-BY-4.0", languages=("en",), allow_drafts=True)
        folders.append(pack(suite_run(tmp_path / name, rows), tmp_path / f"{name}-suite", options).folder)
    found = diff(*folders)
    assert [one.id for one in found.gone] == ["A_man_opens_a_door_and_then_walks_out.mp4"]
    assert len(found.added["prompts.jsonl"]) == 1
    assert {path for _, path, _ in named(found)} == {"$.producers.prompt"}
    assert [(step, why) for step, why in found.reasons] == [
        (Step.MAJOR, "1 prompt gone"),
        (Step.MINOR, "1 prompt added"),
        (Step.PATCH, "1 prompt changed otherwise"),
    ]


# Reference images in a diff: by character and content, in text, JSON and page, and the step due.

OPTIONS = PackOptions("0.1.0", license="CC-BY-4.0", languages=("en", "zh"))
ImageChange = Callable[[Path], object]


@pytest.fixture
def releases(tmp_path: Path) -> Callable[[ImageChange], ReleaseDiff]:
    """Two releases of one set, the second after a change of its tree."""

    def make(change: ImageChange) -> ReleaseDiff:
        source = draw_shot_set(tmp_path / "data")
        later = PackOptions("auto", license="CC-BY-4.0", since=tmp_path / "old")
        for name, options in (("old", OPTIONS), ("new", later)):
            if options is later:
                change(source / FOLDER)
            pack(shots_run(source, tmp_path / f"run-{name}"), tmp_path / name, options)
        return diff(tmp_path / "old", tmp_path / "new")

    return make


def add(folder: Path) -> None:
    (folder / "01/image/Mira/02.png").write_bytes(draw_reference("Mira", 7))


def exchange(folder: Path) -> None:
    (folder / "02/image/The Fox/01.png").write_bytes(draw_reference("The Fox", 9))


def remove(folder: Path) -> None:
    (folder / "01/image/Old Tomas/01.png").unlink()


@pytest.mark.parametrize(
    ("change", "found", "why"),
    [
        (add, ("01", "Mira", "image/Mira/02.png", "added"), "1 reference image added"),
        (exchange, ("02", "The Fox", "image/The Fox/01.png", "changed"), "1 reference image changed"),
        (remove, ("01", "Old Tomas", "image/Old Tomas/01.png", "removed"), "1 reference image removed"),
    ],
)
def test_image_when_it_differs_is_told_by_character_and_asks_for_a_major_step(releases, change, found, why):
    compared = releases(change)
    (one,) = compared.sections["images"]
    assert (one.story_id, one.character, one.file, one.kind) == found
    assert not [path for path, _ in compared.sections["documents"] if "/image/" in path]
    assert (compared.step, compared.problem) == (Step.MAJOR, None)
    assert (Step.MAJOR, why) in compared.reasons
    assert as_json(compared)["images"] == [asdict(one)]
    listed = json.loads((compared.new.folder / CHANGES).read_text("utf-8"))["images"]
    assert listed == [dict(zip(("story_id", "character", "file", "kind"), found, strict=True))]
    assert verify(compared.new.folder).ok


# Diffs of releases that name subsets: which came, went, or have other members.

Pack = Callable[..., Path]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_run(tmp_path_factory.mktemp("subsets") / "run", sample_bundles(24))


@pytest.fixture
def packed(run: Path, tmp_path: Path) -> Pack:
    def make(name: str, version: str, *subsets: str, **more: Any) -> Path:
        options = PackOptions(version, subsets=subsets, **more, allow_drafts=True)
        return pack(run, tmp_path / name, options).folder

    return make


@pytest.mark.slow
def test_diff_when_subsets_differ_lists_who_came_and_went(packed: Pack) -> None:
    old = packed("old", "0.1.0", "lite=6", "even=1/category", "small=3")
    new = packed("new", "0.2.0", "lite=8", "even=1/category", "small=none", "more=4", since=old)
    found = diff(old, new)
    lite, more, small = found.sections["subsets"]
    assert (lite.name, lite.kind, lite.asked, lite.stories) == ("lite", "changed", ("6", "8"), (6, 8))
    assert (len(lite.came), lite.went) == (2, ())
    assert (more.name, more.kind, len(more.came)) == ("more", "added", 4)
    assert (small.name, small.kind, len(small.went)) == ("small", "removed", 3)
    assert [(step, why) for step, why in found.reasons] == [
        (Step.MAJOR, "the subset small is gone"),
        (Step.MINOR, "0 stories left the subset lite, 2 came"),
        (Step.MINOR, "the subset more is new"),
    ]
    told = list(lines(found))
    assert "subsets: 3" in told
    assert f"  lite changed: 6 (6) -> 8 (8); came: {', '.join(lite.came)}" in told
    assert [one["name"] for one in as_json(found)["subsets"]] == ["lite", "more", "small"]
    kept = json.loads((new / "changes.json").read_bytes())
    assert kept["subsets"] == as_json(found)["subsets"]


@pytest.mark.slow
def test_pack_when_a_subset_loses_stories_asks_for_a_major_step(packed: Pack) -> None:
    old = packed("old", "1.0.0", "lite=6")
    with pytest.raises(ConfigError, match="2 stories left the subset lite, 0 came"):
        packed("new", "1.1.0", "lite=4", since=old)


# -- Differences between JSON documents, by path

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.sampled_from([0.0, 1.0, 2.5]) | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=3), inner, max_size=4),
    max_leaves=12,
)


@pytest.mark.slow
@settings(max_examples=200, deadline=None)
@given(VALUES, VALUES)
def test_changes_when_two_documents_differ_in_bytes_are_never_empty(old: Any, new: Any) -> None:
    assert bool(changes_between(old, new)) == (canonical_text(old) != canonical_text(new))


def asked(*questions: tuple[str, int]) -> Json:
    return {"questions": [{"question_id": name, "q": value} for name, value in questions]}


@pytest.mark.parametrize(
    ("old", "new", "found"),
    [
        (asked(("a", 1), ("b", 2)), asked(("a", 1), ("c", 3), ("b", 2)), ("$.questions[1]", "added")),
        (asked(("a", 1), ("c", 3), ("b", 2)), asked(("a", 1), ("b", 2)), ("$.questions[1]", "removed")),
        (asked(("a", 1), ("b", 1), ("c", 1)), asked(("b", 1), ("c", 1), ("a", 1)),
         ("$.questions", "reordered")),
        (asked(("a", 1), ("a", 2)), asked(("a", 1), ("a", 3)), ("$.questions[1].q", "changed")),
    ],
)  # fmt: skip
def test_changes_when_parts_have_ids_go_by_these_and_leave_the_others_alone(old, new, found) -> None:
    assert [(one.path, one.kind) for one in changes_between(old, new)] == [found]


@pytest.mark.parametrize(
    ("old", "new", "changes"),
    [
        ({"a": 1}, {"a": True}, [Change("$.a", "changed", 1, True)]),
        ({"a": 1}, {"a": 1.0}, [Change("$.a", "changed", 1, 1.0)]),
        ({"a": [1, {"b": 1}]}, {"a": [1, {"b": 1.0}]}, [Change("$.a[1].b", "changed", 1, 1.0)]),
        ({}, {"a": None}, [Change("$.a", "added", None, None)]),
        ({"a": None}, {}, [Change("$.a", "removed", None, None)]),
        ({"odd key": 1}, {"odd key": 2}, [Change('$["odd key"]', "changed", 1, 2)]),
        ({"a": ["x", "z"]}, {"a": ["x", "y", "z"]}, [Change("$.a[1]", "added", None, "y")]),
        ({"a": ["x", "y", "z"]}, {"a": ["x", "z"]}, [Change("$.a[1]", "removed", "y", None)]),
        ({"a": []}, {"a": {}}, [Change("$.a", "changed", [], {})]),
        ([1, 2], [1, 3], [Change("$[1]", "changed", 2, 3)]),
    ],
)
def test_changes_when_values_differ_have_path_and_both_values(old: Any, new: Any, changes: Any) -> None:
    assert list(map(repr, changes_between(old, new))) == list(map(repr, changes))


def test_change_when_written_keeps_absent_apart_from_null() -> None:
    assert Change("$.a", "added", None, None).as_json() == {"path": "$.a", "kind": "added", "new": None}
    assert Change("$.a", "removed", 1, None).as_json() == {"path": "$.a", "kind": "removed", "old": 1}


# The page of a diff: whole, escaped, and loading nothing.

HOSTILE = '</td></table><script>alert("x")</script>\u202e<img src=x onerror=y>'


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> ReleaseDiff:
    folder = tmp_path_factory.mktemp("diff")
    bundles = copy.deepcopy(sample_bundles(7))
    bundles[0]["record"]["scenes"][1]["action"] = HOSTILE
    for bundle in bundles:
        rehash(bundle)
    folders = []
    for version, stories in (("0.1.0", sample_bundles(6)), ("0.1.1", bundles)):
        run = write_run(folder / f"run-{version}", stories)
        options = PackOptions(version, title=HOSTILE[:20], allow_drafts=True)
        folders.append(pack(run, folder / version, options).folder)
    return diff(*folders)


def test_page_when_rendered_shows_changes_step_and_problem_and_escapes_every_value(found):
    page = render_page(found, [["kind", "valid"], ["question", "<3>"]]).replace("<wbr>", "")
    assert "$.scenes[1].action" in page and "kb25k_0007" in page
    assert "Step due: <strong>major</strong>; next version: 0.2.0" in page
    assert "the new release says version 0.1.1" in page
    assert "<script" not in page and "<img" not in page and "\u202e" not in page
    assert "&lt;script&gt;alert" in page and "&lt;3&gt;" in page
