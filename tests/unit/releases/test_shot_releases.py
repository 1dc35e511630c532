"""Shot scripts as a release: packed from a build and from an import, verified, loaded, compared, damaged."""

import errno
import json
from pathlib import Path

import pytest

from fabula.errors import InputError, TargetError
from fabula.kinds.verbs import diff, pack, verify
from fabula.releases.options import PackOptions
from fabula.releases.shots.form import LEFT_OUT, may_be_released
from fabula.releases.shots.imports import (
    REQUESTS,
    export_requests,
    import_set,
    read_story_facts,
    with_provenance,
)
from fabula.releases.shots.requests import RequestOptions
from fabula.releases.shots.tree import FOLDER, read_shot_set
from fabula.testing.drawn_shots import draw_shot_set
from fabula.testing.made_runs import CREATED, shots_run

OPTIONS = PackOptions("0.1.0", license="CC-BY-4.0", languages=("en", "zh"))
FREE = {"Mira": "CC0-1.0", "Old Tomas": "public domain"}


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """An imported set of two stories, of which the images of two characters may be given away."""
    return shots_run(draw_shot_set(tmp_path / "data"), tmp_path / "run", FREE)


@pytest.fixture
def release(run: Path, tmp_path: Path) -> Path:
    pack(run, tmp_path / "dist", OPTIONS)
    return tmp_path / "dist"


def test_pack_when_a_set_is_imported_holds_scripts_tables_and_free_images(run: Path, tmp_path: Path) -> None:
    result = pack(run, tmp_path / "dist", OPTIONS)
    assert result.counts == {"stories": 2, "shots": 10, "characters": 6, "references": 8}
    assert any("4 reference images stay out" in note for note in result.notes)
    dist = tmp_path / "dist"
    for name in ("01/story.json", "02/image/Mira/01.png"):
        assert (dist / FOLDER / name).read_bytes() == (run / FOLDER / name).read_bytes()
    assert not (dist / FOLDER / "01/image/The Fox").exists()
    left_out = [json.loads(line) for line in (dist / LEFT_OUT).read_text("utf-8").splitlines()]
    assert {(one["character"], one["rights"]) for one in left_out} == {("The Fox", None)}
    report = verify(dist)
    assert report.ok, report.issues
    assert report.checked["rows read back twice"] == 2 + 10 + 6 + 8 + 8
    pack(run, tmp_path / "again", OPTIONS)
    assert (tmp_path / "again/SHA256SUMS").read_bytes() == (dist / "SHA256SUMS").read_bytes()


@pytest.mark.parametrize(
    ("name", "code"),
    [
        (f"{FOLDER}/01/story.json", "official"),
        (f"{FOLDER}/01/image/Mira/00.png", "official"),
        (f"{FOLDER}/references.jsonl", "file-hash"),
        ("scripts.jsonl", "record-hash"),
        ("data/shots/test.parquet", "file-hash"),
        (LEFT_OUT, "file-hash"),
    ],
)
def test_verify_when_a_file_was_changed_says_which(release: Path, name: str, code: str) -> None:
    content = (release / name).read_bytes()
    changed = content.replace(b"stone", b"solid") if name.endswith(".json") else content
    changed = changed.replace(b"stands still", b"stands there")
    (release / name).write_bytes(changed if changed != content else content[:-1] + b"\n\n"[:1] + b" ")
    report = verify(release, quick=True)
    assert not report.ok
    assert any(issue.where.startswith(name) for issue in report.issues), report.issues
    assert code in {issue.code for issue in report.issues}


def test_pack_when_a_script_was_changed_by_hand_is_refused(run: Path, tmp_path: Path) -> None:
    path = run / FOLDER / "01/story.json"
    path.write_text(path.read_text("utf-8").replace("stands still", "runs"), "utf-8")
    with pytest.raises(
        InputError, match=r"ViStory/01/story\.json: the script is not the one in scripts\.jsonl"
    ):
        pack(run, tmp_path / "dist", OPTIONS)
    assert not (tmp_path / "dist").exists()


def test_pack_when_rules_find_errors_lists_them(tmp_path: Path) -> None:
    source = draw_shot_set(tmp_path / "data")
    path = source / FOLDER / "02/story.json"
    script = json.loads(path.read_text("utf-8"))
    script["Shots"][0]["Characters Appearing"]["en"] = ["Nobody"]
    script["Shots"][1]["index"] = 7
    path.write_text(json.dumps(script), "utf-8")
    import_set(source, tmp_path / "run", CREATED)
    with pytest.raises(InputError) as refused:
        pack(tmp_path / "run", tmp_path / "dist", OPTIONS)
    for code in ("onstage-unknown", "shot-order"):
        assert f"[{code}]" in str(refused.value)


def test_diff_when_a_shot_changes_names_it_and_asks_for_a_version(
    run: Path, release: Path, tmp_path: Path
) -> None:
    source = tmp_path / "data"
    path = source / FOLDER / "01/story.json"
    path.write_text(path.read_text("utf-8").replace("a stone bridge", "a wooden bridge"), "utf-8")
    import_set(source, tmp_path / "run2", CREATED)
    options = PackOptions("auto", license="CC-BY-4.0", languages=("en", "zh"), since=release)
    result = pack(tmp_path / "run2", tmp_path / "next", options)
    assert result.version == "0.2.0"  # before 1.0.0 a change of meaning counts up the second number
    assert "1 script changed in meaning" in result.notes[0]
    found = diff(release, tmp_path / "next")
    assert [(one.file, one.id) for one in found.changed] == [("scripts.jsonl", "01")]
    assert any("Setting Description" in change.path for change in found.changed[0].changes)
    assert verify(tmp_path / "next").ok


@pytest.mark.parametrize(
    ("rights", "free"),
    [
        ("CC0-1.0", True), ("cc-by-4.0", True), ("public domain", True), (" MIT ", True),
        (None, False), ("", False), ("fair use", False), ("not under CC-BY-4.0", False), ("other", False),
    ],
)  # fmt: skip
def test_rights_when_they_name_a_licence_let_an_image_go(rights: str | None, free: bool) -> None:
    assert may_be_released(rights) is free


# Sets of shot scripts brought in and out, with what is known of their images.


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    return draw_shot_set(tmp_path / "data")


def test_import_set_when_sound_keeps_fields_bytes_and_facts(tree: Path, tmp_path: Path) -> None:
    facts = {"story_id": "01", "style": "storybook", "culture": None, "realistic": False, "characters": {}}
    (tree / "ViStory/stories.jsonl").write_text(json.dumps(facts) + "\n")
    made = import_set(tree, tmp_path / "run")
    assert made.report.counts == {"facts-realistic": 1, "facts-word": 1}  # Mira is realistic
    again, _ = read_shot_set(tmp_path / "run")
    assert again.sha256 == made.shot_set.sha256
    name = "ViStory/01/story.json"
    assert json.loads((tmp_path / "run" / name).read_bytes()) == json.loads((tree / name).read_bytes())
    image = "ViStory/01/image/Mira/00.png"
    assert (tmp_path / "run" / image).read_bytes() == (tree / image).read_bytes()
    assert read_story_facts(again)["01"].style == "storybook"


def test_import_set_when_imported_twice_keeps_source_and_rights(tree: Path, tmp_path: Path) -> None:
    first = import_set(tree, tmp_path / "one")
    path = first.out / "ViStory/references.jsonl"
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    lines[0] |= {"source": "drawn for the set", "rights": "CC0-1.0"}
    lines[1] |= {"source": "somewhere", "sha256": "0" * 64}  # of another image: it says nothing of this one
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    second = import_set(first.out, tmp_path / "two")
    again, _ = read_shot_set(second.out)
    one, other, *_ = sorted(with_provenance(again), key=lambda one: (one.story_id, one.file))
    assert (one.source, one.rights) == ("drawn for the set", "CC0-1.0")
    assert other.source is None


def test_import_set_when_a_line_is_wrong_says_which(tree: Path, tmp_path: Path) -> None:
    (tree / "ViStory/stories.jsonl").write_text('{"story_id": "01", "mood": 3}\n')
    with pytest.raises(InputError, match=r"stories.jsonl:1 \$.mood"):
        import_set(tree, tmp_path / "run")


def test_import_set_when_it_fails_on_the_way_leaves_nothing(
    tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("fabula.releases.shots.imports.write_imported_run", fail)
    (tmp_path / "runs").mkdir()
    with pytest.raises(TargetError, match="No space left"):
        import_set(tree, tmp_path / "runs/vistory")
    assert list((tmp_path / "runs").iterdir()) == []


def test_export_requests_when_capped_writes_lines_and_their_images(tree: Path, tmp_path: Path) -> None:
    shot_set, _ = read_shot_set(tree)
    told = export_requests(shot_set, tmp_path / "out", RequestOptions(references=1, max_chars=40))
    lines = [json.loads(line) for line in (tmp_path / "out" / REQUESTS).read_text("utf-8").splitlines()]
    assert told["requests"] == len(lines) == 10
    assert all(len(line["references"]) <= 1 for line in lines)
    assert all((tmp_path / "out" / one["file"]).is_file() for line in lines for one in line["references"])
    with pytest.raises(TargetError, match="a folder with files"):
        export_requests(shot_set, tmp_path / "out")
