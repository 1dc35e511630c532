"""Shot scripts as a release: packed from a build and from an import, verified, loaded, compared, damaged."""

import json
from pathlib import Path

import pytest

from fabula.errors import InputError
from fabula.kinds.verbs import diff, pack, verify
from fabula.releases.options import PackOptions
from fabula.releases.shots.form import LEFT_OUT, may_be_released
from fabula.releases.shots.imports import import_set, with_provenance, write_facts
from fabula.releases.shots.tree import FOLDER, read_shot_set
from fabula.testing.drawn_shots import draw_shot_set

CREATED = "2026-01-01T00:00:00Z"
OPTIONS = PackOptions("0.1.0", license="CC-BY-4.0", languages=("en", "zh"))
FREE = {"Mira": "CC0-1.0", "Old Tomas": "public domain"}


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """An imported set of two stories, of which the images of two characters may be given away."""
    source = draw_shot_set(tmp_path / "data")
    shot_set, _ = read_shot_set(source)
    images = [
        one.model_copy(update={"source": "drawn", "rights": FREE.get(one.character)})
        for one in with_provenance(shot_set)
    ]
    write_facts(shot_set.folder, (), images)
    import_set(source, tmp_path / "run", CREATED)
    return tmp_path / "run"


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
