"""The official tree of shot scripts: round trips, and every kind of broken set."""

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from fabula.errors import TargetError
from fabula.releases.shots.imports import import_set
from fabula.releases.shots.tree import read_shot_set, write_shot_set
from fabula.testing.drawn import draw_panel, picture_bytes
from fabula.testing.drawn_shots import draw_shot_set, drawn_script


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    return draw_shot_set(tmp_path / "data")


def codes(tree: Path) -> dict[str, int]:
    return read_shot_set(tree)[1].counts


def test_read_shot_set_when_sound_finds_nothing_wrong(tree: Path) -> None:
    shot_set, report = read_shot_set(tree)
    assert report.counts == {}
    assert report.checked == {"stories": 2, "shots": 10, "characters": 6, "references": 12}
    mira = shot_set.by_id["01"].references["Mira"]
    assert [image.file for image in mira] == ["image/Mira/00.png", "image/Mira/01.png"]
    assert (mira[0].width, mira[0].height) == (160, 160)
    assert shot_set.path(mira[0]).is_file()


def test_write_shot_set_when_read_again_is_equal_and_unknown_fields_are_kept(tree, tmp_path):
    path = tree / "ViStory/01/story.json"
    document = json.loads(path.read_text("utf-8"))
    document["note"] = {"by": "somebody", "numbers": [1, 2.5, None]}
    document["Shots"][0]["Story Board"] = "x"
    del document["Characters"]["Mira"]["num_of_appearances"]
    path.write_text(json.dumps(document), "utf-8-sig")
    shot_set, report = read_shot_set(tree)
    assert report.counts == {"appearances": 1, "byte-order-mark": 1}
    write_shot_set(shot_set, tmp_path / "copy")
    written = json.loads((tmp_path / "copy/ViStory/01/story.json").read_text("utf-8"))
    assert written == document
    assert list(written["Characters"]) == list(document["Characters"])
    again = read_shot_set(tmp_path / "copy")[0]
    assert again.sha256 == shot_set.sha256
    for image in (one for story in shot_set.stories for part in story.references.values() for one in part):
        assert again.path(image).read_bytes() == shot_set.path(image).read_bytes()
    with pytest.raises(TargetError):
        write_shot_set(shot_set, tmp_path / "copy")


def _script(tree: Path, text: bytes) -> None:
    (tree / "ViStory/01/story.json").write_bytes(text)


def test_references_when_their_folder_is_decomposed_are_the_character_s(tree: Path, tmp_path: Path) -> None:
    script = drawn_script()
    script["Characters"] = {
        ("Zo\u00eb" if key == "Mira" else key): sheet for key, sheet in script["Characters"].items()
    }
    _script(tree, json.dumps(script).encode())
    (tree / "ViStory/01/image/Mira").rename(tree / "ViStory/01/image/Zoe\u0308")
    shot_set, report = read_shot_set(tree)
    assert "unknown-folder" not in report.counts and "no-reference" not in report.counts
    first, _ = shot_set.by_id["01"].references["Zo\u00eb"]
    assert first.file == "image/Zo\u00eb/00.png" and shot_set.path(first).is_file()
    write_shot_set(shot_set, tmp_path / "copy")
    assert (tmp_path / "copy/ViStory/01/image/Zo\u00eb/00.png").is_file()
    (tree / "ViStory/01/image/Zo\u00eb").mkdir()
    assert read_shot_set(tree)[1].counts["unknown-folder"] == 1


PICTURE = picture_bytes(draw_panel(2, (90, 90)))
SCRIPT, MIRA = "01/story.json", "01/image/Mira"


def named(key: str) -> bytes:
    """Return a script with a character of another name, of whom there are no images."""
    people = drawn_script()["Characters"]
    return json.dumps({**drawn_script(), "Characters": {**people, key: people["Mira"]}}).encode()


FILES: dict[str, tuple[dict[str, bytes], str]] = {
    "latin-1": ({SCRIPT: '{"Story_type": "é"}'.encode("latin-1")}, "encoding"),
    "cut": ({SCRIPT: b'{"Shots": ['}, "json"),
    "empty": ({SCRIPT: b""}, "json"),
    "a list": ({SCRIPT: b"[]"}, "json"),
    "deep": ({SCRIPT: b"[" * 200_000}, "json"),
    "two of one name": ({SCRIPT: b'{"Characters": {"A": {}, "A": {}}, "Shots": []}'}, "repeated-key"),
    "a number for a list": ({SCRIPT: b'{"Shots": 3}'}, "shape"),
    "no images": ({SCRIPT: named("Bob")}, "no-reference"),
    "outside": ({SCRIPT: named("../../secret")}, "unsafe-name"),
    "stray in set": ({"notes.txt": b"x"}, "stray-file"),
    "stray in story": ({"01/old.json": b"x"}, "stray-file"),
    "text as reference": ({f"{MIRA}/a.txt": b"x"}, "stray-file"),
    "text named jpg": ({f"{MIRA}/a.jpg": b"x"}, "unreadable-picture"),
    "sixty": (
        {
            f"{MIRA}/{number + 10}.png": picture_bytes(draw_panel(number % 20 + 1, (80, 80 + number)))
            for number in range(60)
        }, "many-references",
    ),
    "tiny": ({f"{MIRA}/9.png": picture_bytes(draw_panel(2, (20, 20)))}, "small-picture"),
    "twice": ({f"{MIRA}/8.png": PICTURE, "01/image/The Fox/9.png": PICTURE}, "repeated-picture"),
    "misnamed": ({f"{MIRA}/9.jpg": PICTURE}, "odd-picture"),
}  # fmt: skip
"""Case -> what is written where, and what is found."""

BROKEN: dict[str, tuple[Callable[[Path], object], str]] = {
    "no script": (lambda tree: (tree / "ViStory/01/story.json").unlink(), "missing-script"),
    "same number": (lambda tree: (tree / "ViStory/1").mkdir(), "repeated-story"),
    "folder of nobody": (lambda tree: (tree / "ViStory/01/image/mira ").mkdir(), "unknown-folder"),
}


@pytest.mark.parametrize("name", [*FILES, *BROKEN])
def test_read_shot_set_when_broken_reports_it_and_keeps_the_other_story(tree: Path, name: str) -> None:
    if name in FILES:
        files, code = FILES[name]
        for place, content in files.items():
            (tree / "ViStory" / place).write_bytes(content)
    else:
        change, code = BROKEN[name]
        change(tree)
    shot_set, report = read_shot_set(tree)
    assert code in report.counts
    assert "02" in shot_set.by_id
    assert all(issue.cure for issue in report.issues)


@pytest.mark.parametrize(
    ("value", "told"),
    [
        ("NaN", "[json] expected a JSON object, found NaN, which is not a JSON number"),
        ("1e999", "[json] expected a JSON object, found the number 1e999, which is too large"),
        ('"\\ud800"', "[encoding] an escape such as \\ud800 stands for half a character"),
    ],
)
def test_read_shot_set_when_a_value_could_not_be_written_again_names_the_file(tree, tmp_path, value, told):
    path = tree / "ViStory/01/story.json"
    path.write_text(path.read_text("utf-8").replace("{", f'{{"note": {value},', 1), "utf-8")
    shot_set, report = read_shot_set(tree)
    assert [story.story_id for story in shot_set.stories] == ["02"]
    assert [str(one).split("\n")[0] for one in report.issues] == [f"01/story.json {told}"]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="the system has no pipes")
def test_import_set_when_there_are_pipes_names_them_and_does_not_wait(tree: Path, tmp_path: Path) -> None:
    for name in ("01/story.json", "02/image/Mira/00.png"):
        (tree / "ViStory" / name).unlink()
        os.mkfifo(tree / "ViStory" / name)
    made = import_set(tree, tmp_path / "run")
    assert made.report.counts == {"missing-script": 1, "unreadable-picture": 1}
    assert [story.story_id for story in made.shot_set.stories] == ["02"]


def test_read_shot_set_when_a_link_leads_outside_does_not_follow_it(tree: Path, tmp_path: Path) -> None:
    secret = tmp_path / "secret.png"
    secret.write_bytes(picture_bytes(draw_panel(3, (90, 90))))
    (tree / "ViStory/01/image/Mira/9.png").symlink_to(secret)
    shot_set, report = read_shot_set(tree)
    assert report.counts == {"stray-file": 1}
    assert len(shot_set.by_id["01"].references["Mira"]) == 2


def test_read_shot_set_when_a_key_has_a_slash_finds_its_nested_folder(tree: Path) -> None:
    _script(tree, named("Mira/young"))
    folder = tree / "ViStory/01/image/Mira/young"
    folder.mkdir()
    (folder / "00.png").write_bytes(picture_bytes(draw_panel(4, (90, 90))))
    story = read_shot_set(tree)[0].by_id["01"]
    assert [len(story.references[key]) for key in ("Mira", "Mira/young")] == [2, 1]


@pytest.mark.parametrize(
    ("name", "lines", "found"),
    [
        ("stories.jsonl", ['{"story_id": "01", "realistic": "perhaps"}'], {"facts-line": 1}),
        ("stories.jsonl", ['{"story_id": "01"}', '{"story_id": "01"}'], {"facts-line": 1}),
        ("stories.jsonl", ['{"story_id": "77"}'], {"facts-story": 1}),
        ("stories.jsonl", ['{"story_id": "02", "culture": "martian"}'], {"facts-word": 1}),
        ("references.jsonl", ['{"story_id": "02"}'], {"facts-line": 5}),  # five fields are missing
        ("references.jsonl", ["no json"], {"facts-line": 1}),
    ],
)
def test_read_shot_set_when_the_files_beside_the_stories_are_wrong_reports_it(tree, name, lines, found):
    (tree / "ViStory" / name).write_text("".join(f"{line}\n" for line in lines), "utf-8")
    assert codes(tree) == found
    (first, *_) = read_shot_set(tree)[1].issues
    assert first.where == f"{name}:{len(lines)}"
