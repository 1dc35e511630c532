"""Reference images in a diff: by character and content, in text, JSON and page, and the step due."""

import json
import re
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

import pytest

from fabula.kinds.verbs import diff, pack, verify
from fabula.releases.diff.compare import ReleaseDiff
from fabula.releases.diff.render import as_json, lines, render_page
from fabula.releases.diff.version import Step
from fabula.releases.options import PackOptions
from fabula.releases.shots.imports import import_set, with_provenance, write_facts
from fabula.releases.shots.tree import FOLDER, read_shot_set
from fabula.schemas.layout import CHANGES
from fabula.testing.drawn_shots import draw_reference, draw_shot_set

CREATED = "2026-01-01T00:00:00Z"
OPTIONS = PackOptions("0.1.0", license="CC-BY-4.0", languages=("en", "zh"))
Change = Callable[[Path], object]


def free(source: Path) -> None:
    """Say of all images that they may be given away."""
    shot_set, _ = read_shot_set(source)
    images = [one.model_copy(update={"rights": "CC0-1.0"}) for one in with_provenance(shot_set)]
    write_facts(shot_set.folder, (), images)


@pytest.fixture
def releases(tmp_path: Path) -> Callable[[Change], ReleaseDiff]:
    """Two releases of one set, the second after a change of its tree."""

    def make(change: Change) -> ReleaseDiff:
        source = draw_shot_set(tmp_path / "data")
        later = PackOptions("auto", license="CC-BY-4.0", since=tmp_path / "old")
        for name, options in (("old", OPTIONS), ("new", later)):
            if options is later:
                change(source / FOLDER)
            free(source)
            import_set(source, tmp_path / f"run-{name}", CREATED)
            pack(tmp_path / f"run-{name}", tmp_path / name, options)
        return diff(tmp_path / "old", tmp_path / "new")

    return make


def add(folder: Path) -> None:
    (folder / "01/image/Mira/02.png").write_bytes(draw_reference("Mira", 7))


def exchange(folder: Path) -> None:
    (folder / "02/image/The Fox/01.png").write_bytes(draw_reference("The Fox", 9))


def remove(folder: Path) -> None:
    (folder / "01/image/Old Tomas/01.png").unlink()


def rename(folder: Path) -> None:
    (folder / "01/image/Mira/01.png").rename(folder / "01/image/Mira/05.png")


@pytest.mark.parametrize(
    ("change", "found", "why"),
    [
        (add, ("01", "Mira", "image/Mira/02.png", "added"), "1 reference image added"),
        (exchange, ("02", "The Fox", "image/The Fox/01.png", "changed"), "1 reference image changed"),
        (remove, ("01", "Old Tomas", "image/Old Tomas/01.png", "removed"), "1 reference image removed"),
    ],
)
def test_image_when_it_differs_is_told_by_character_and_asks_for_a_major_step(
    releases: Callable[[Change], ReleaseDiff], change: Change, found: tuple[str, ...], why: str
) -> None:
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


def test_image_when_only_its_name_changes_does_not_differ(
    releases: Callable[[Change], ReleaseDiff],
) -> None:
    compared = releases(rename)
    assert (list(compared.sections["images"]), compared.step) == ([], Step.PATCH)


def test_text_when_images_differ_has_a_line_for_each_character(
    releases: Callable[[Change], ReleaseDiff],
) -> None:
    compared = releases(lambda folder: (add(folder), exchange(folder), remove(folder)))
    text = list(lines(compared))
    start = text.index("characters with other reference images: 3")
    assert text[start + 1 : start + 3] == ["  01 Mira: added 02.png", "  01 Old Tomas: removed 01.png"]
    assert re.fullmatch(r"  02 The Fox: changed 01\.png \([0-9a-f]{8} -> [0-9a-f]{8}\)", text[start + 3])


def test_page_when_images_differ_shows_them_before_and_after_and_loads_nothing(
    releases: Callable[[Change], ReleaseDiff],
) -> None:
    compared = releases(lambda folder: (add(folder), exchange(folder), remove(folder)))
    page = render_page(compared)
    assert "<h2>Reference images: 3</h2>" in page
    assert (
        page.count('<img src="data:image/jpeg;base64,') == 4
    )  # one added, one removed, two of a changed one
    assert "img-src data:;" in page
    assert not re.search(r'(src|href)\s*=\s*"(?!data:)', page)
    for file in (compared.new.folder / FOLDER / "02/image/The Fox").iterdir():
        file.write_bytes(b"no picture")
    assert "cannot be shown" in render_page(compared)


def test_images_when_their_story_is_added_ask_for_nothing_of_their_own(tmp_path: Path) -> None:
    for name, stories in (("old", 1), ("new", 2)):
        source = draw_shot_set(tmp_path / f"data-{name}", stories=stories)
        free(source)
        import_set(source, tmp_path / f"run-{name}", CREATED)
        pack(tmp_path / f"run-{name}", tmp_path / name, OPTIONS)
    compared = diff(tmp_path / "old", tmp_path / "new")
    assert {one.story_id for one in compared.sections["images"]} == {"02"}
    assert compared.step is Step.MINOR
