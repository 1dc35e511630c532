"""Packing a version after another: its number, what it says about the one before, and what is refused."""

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fabula.errors import ConfigError, InputError
from fabula.kinds.registry import form_of_release
from fabula.kinds.verbs import pack, verify
from fabula.releases.diff.since import check_changes, options_since
from fabula.releases.katha.form import FORM
from fabula.releases.options import PackOptions
from fabula.releases.pack.packing import PackResult
from fabula.schemas.canonical import Json, sha256_file
from fabula.testing.katha_folders import rehash, write_run
from fabula.testing.katha_samples import sample_bundles
from fabula.testing.made_runs import suite_run

NAME = "fables"


@pytest.fixture(scope="module")
def old(tmp_path_factory: pytest.TempPathFactory) -> PackResult:
    """A release of seven public stories and a hidden one; not to be changed."""
    folder = tmp_path_factory.mktemp("old")
    who = {"creators": ("Ana", "Bo"), "contact": "ana@example.org"}
    options = PackOptions("0.1.0", name=NAME, title="Fables", **who, allow_drafts=True)
    return pack(write_run(folder / "run", sample_bundles(8)), folder / "fables", options)


@pytest.fixture
def make(tmp_path: Path, old: PackResult) -> Callable[..., Path]:
    """Write the run of a second version; return the run folder."""

    def run(change: Callable[[list[Json]], Any] = lambda _: None, count: int = 8) -> Path:
        bundles = copy.deepcopy(sample_bundles(count))
        change(bundles)
        for bundle in bundles:
            rehash(bundle)
        return write_run(tmp_path / "run", bundles)

    return run


def after(old: PackResult, version: str, **more: Any) -> PackOptions:
    return PackOptions(version, **{"name": NAME, "since": old.folder, **more}, allow_drafts=True)


def retitled(bundles: list[Json]) -> None:
    bundles[0]["record"]["title"] = "Another title"


def retold(bundles: list[Json]) -> None:
    bundles[0]["record"]["scenes"][1]["action"] = "rests"


def drop_first(bundles: list[Json]) -> None:
    del bundles[0]


def into(split: str) -> Callable[[list[Json]], None]:
    def change(bundles: list[Json]) -> None:
        bundles[0]["record"]["split"] = split
        for variant in bundles[0]["variants"]:
            variant["subset"] = split

    return change


@pytest.mark.slow
@pytest.mark.parametrize(
    ("change", "count", "version", "step"),
    [
        (lambda _: None, 8, "0.1.1", "patch"),
        (retitled, 8, "0.1.1", "patch"),
        (lambda _: None, 9, "0.2.0", "minor"),
        (retold, 8, "0.2.0", "major"),
        (drop_first, 8, "0.2.0", "major"),
    ],
)
def test_pack_when_the_version_is_auto_counts_on_from_what_changed(
    old, make, tmp_path, change, count, version, step
):
    made = pack(make(change, count), tmp_path / "new", after(old, "auto"))
    document = json.loads((made.folder / "release.json").read_bytes())
    changes = json.loads((made.folder / "changes.json").read_bytes())
    assert (made.version, document["version"], changes["version"]) == (version,) * 3
    assert changes["step"] == step and f"a {step} step from 0.1.0" in made.notes[0]
    previous = {"version": "0.1.0", "sha256": sha256_file(old.folder / "release.json")}
    assert document["previous"] == changes["previous"] == previous
    assert f"Version {version}" in document["about"]["citation"]
    assert verify(made.folder, quick=True).issues == ()


def test_changes_when_written_name_ids_paths_and_kinds_and_no_values(old, make, tmp_path):
    made = pack(make(retold, 9), tmp_path / "new", after(old, "auto"))
    text = (made.folder / "changes.json").read_text("utf-8")
    changes = json.loads(text)
    assert changes["added"]["annotations.jsonl"] == ["kb25k_0009"]
    path = {"file": "annotations.jsonl", "id": "kb25k_0001", "path": "$.scenes[1].action", "kind": "changed"}
    assert path in changes["changed"]
    assert "rests" not in text
    assert {name for one in changes["changed"] for name in one} == {"file", "id", "path", "kind"}


@pytest.mark.slow
def test_changes_when_hidden_stories_change_hold_numbers_of_them_only(old, make, tmp_path):
    def change(bundles: list[Json]) -> None:
        assert bundles[4]["record"]["split"] == "hidden_test"
        bundles[4]["record"]["title"] = "A secret title"

    made = pack(make(change, 8), tmp_path / "new", after(old, "auto"))
    text = (made.folder / "changes.json").read_text("utf-8")
    assert json.loads(text)["hidden_test"]["commitments"] == {"kept": 0, "gone": 1, "new": 1}
    assert json.loads(text)["step"] == "major"
    for part in ("kb25k_0005", "secret", json.dumps(sample_bundles(8)[4]["record"]["title"])):
        assert part not in text
    assert verify(made.folder, quick=True).issues == ()


@pytest.mark.parametrize("version", ["0.1.0", "0.1.1", "0.0.9", "0.1.0+again"])
def test_pack_when_the_version_is_too_low_is_refused_and_leaves_nothing(old, make, tmp_path, version):
    with pytest.raises(ConfigError, match=r"is too low: since 0\.1\.0, 1 story changed") as caught:
        pack(make(retold), tmp_path / "new", after(old, version))
    assert "pack it as 0.2.0" in caught.value.fix
    assert sorted(path.name for path in tmp_path.iterdir()) == ["run"]


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (into("validation"), "in split validation, and was in train in version 0.1.0"),
        (into("hidden_test"), "in split hidden_test, and was in public in version 0.1.0"),
    ],
)
def test_pack_when_a_story_moves_to_another_split_is_refused(old, make, tmp_path, change, text):
    with pytest.raises(InputError, match=text):
        pack(make(change), tmp_path / "new", after(old, "auto"))


def test_pack_when_the_release_before_does_not_fit_is_refused(old, make, tmp_path, refusals, snapshot):
    run, wrong = make(), [{"since": None}, {"name": "other"}, {"version": "automatic"}]
    said = refusals(
        lambda given: pack(run, tmp_path / "new", after(old, **{"version": "auto", **given})), wrong
    )
    assert said.replace(str(old.folder), "OLD") == snapshot


@pytest.mark.parametrize("since", ["nothing", "run", "hidden"])
def test_pack_when_the_folder_before_is_no_public_release_is_refused(old, make, tmp_path, since):
    run = make()
    assert old.hidden is not None
    folder = {"nothing": tmp_path / "nothing", "run": run, "hidden": old.hidden}[since]
    with pytest.raises(InputError, match=r"a release folder|a public release"):
        pack(run, tmp_path / "new", after(old, "auto", since=folder))


def test_options_when_taken_over_are_those_that_a_person_gave(old: PackResult, tmp_path: Path) -> None:
    assert options_since(old.folder) == {
        "name": NAME, "title": "Fables", "creators": ("Ana", "Bo"), "contact": "ana@example.org",
        "usual_license": "CC-BY-4.0",
    }  # fmt: skip
    given = PackOptions(
        "0.1.0", name=NAME, url="https://example.org/fables", citation="@misc{x,\n}", allow_drafts=True
    )
    made = pack(write_run(tmp_path / "run", sample_bundles(6)), tmp_path / "other", given)
    found = options_since(made.folder)
    assert (found["url"], found["citation"]) == ("https://example.org/fables", "@misc{x,\n}")


@pytest.mark.parametrize(
    ("file", "change", "text"),
    [
        ("changes.json", lambda one: one.update(version="0.3.0"), "should be"),
        ("changes.json", lambda one: one["previous"].update(sha256="0" * 64), "should be"),
        ("changes.json", lambda one: one.update(step="major", version="0.1.1"),
         "a major step makes 0.1.1 of 0.1.0"),
        ("changes.json", lambda one: one["previous"].update(version="one"),
         "'one' is not a semantic version"),
        ("changes.json", lambda one: one["added"].update({"annotations.jsonl": ["no"]}),
         "no is not in annotations"),
        ("changes.json", lambda one: one["removed"].update({"annotations.jsonl": ["kb25k_0001"]}),
         "kb25k_0001 is in"),
        ("release.json", lambda one: one.pop("previous"), "changes.json is there without it"),
    ],
)  # fmt: skip
def test_verify_when_changes_and_release_disagree_says_where(
    old, make, tmp_path, helpers, file, change, text
):
    folder = pack(make(retold, 9), tmp_path / "new", after(old, "auto")).folder
    document = json.loads((folder / "release.json").read_bytes())
    assert list(check_changes(folder, document, FORM.changes)) == []
    helpers.edit_json(folder / file, change)
    found = check_changes(folder, json.loads((folder / "release.json").read_bytes()), FORM.changes)
    assert text in " ".join(issue.message for issue in found)


def test_pack_when_the_run_is_of_a_suite_counts_on_as_well(tmp_path: Path) -> None:
    seeds = [
        {"prompt": "A dog rolls over, begs for a treat, and then catches it."},
        {"prompt": "A man opens a door, and then walks out."},
    ]

    def packed(name: str, rows: list[Json], options: PackOptions) -> Path:
        return pack(suite_run(tmp_path / name, rows), tmp_path / f"{name}-suite", options).folder

    given = {"license": "CC-BY-4.0", "languages": ("zh-Hant", "en")}
    first = packed("one", seeds[:1], PackOptions("0.1.0", **given, allow_drafts=True))
    known = options_since(first)
    assert (known["name"], known["usual_license"]) == ("fabula-event-suite", "CC-BY-4.0")
    assert known["languages"] == ("en", "zh-Hant")
    second = packed("two", seeds, PackOptions("auto", since=first, **known, allow_drafts=True))
    assert json.loads((second / "croissant_metadata.json").read_bytes())["inLanguage"] == ["en", "zh-Hant"]
    document = json.loads((second / "release.json").read_bytes())
    assert document["version"] == "0.2.0"
    assert document["previous"]["sha256"] == sha256_file(first / "release.json")
    assert verify(second, quick=True).ok
    assert list(check_changes(second, document, form_of_release(second).changes)) == []
    stories = write_run(tmp_path / "stories", sample_bundles(6))
    options = PackOptions("auto", name="fabula-event-suite", since=first, allow_drafts=True)
    with pytest.raises(InputError, match=r"\$\.kind: it is katha, and events in"):
        pack(stories, tmp_path / "new", options)


def test_pack_when_the_runs_salt_is_another_says_that_nothing_can_be_shown(old, make, tmp_path):
    run = make()
    alone = PackOptions("0.1.0", name=NAME, allow_drafts=True)
    pack(run, tmp_path / "alone", alone)  # the run gets a salt of its own
    notes = pack(run, tmp_path / "next", after(old, "auto")).notes
    assert any("with another salt" in note for note in notes)
