"""Reference images into a built set: checked one by one, with source and rights."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from fabula.builders.shots.building import ShotOptions, build_shots
from fabula.builders.shots.references import Terms, import_references
from fabula.errors import InputError
from fabula.releases.shots.imports import read_story_facts, with_provenance
from fabula.releases.shots.tree import read_shot_set
from fabula.testing.drawn_shots import draw_reference

STORY = {
    "id": "hat", "title": "The Hat", "language": "en", "source_collection": "own",
    "rights_status": "public_domain_or_rights_compatible",
    "text": "Mira went to the river. A ferryman saw Mira. Mira waved. The ferryman laughed. Mira slept.",
}  # fmt: skip
OURS = Terms(source="drawn by Ana", rights="CC0-1.0")


@pytest.fixture
def run(tmp_path: Path) -> Path:
    stories = tmp_path / "stories.jsonl"
    stories.write_text(json.dumps(STORY) + "\n", "utf-8")
    out = tmp_path / "run"
    build_shots(stories, out, ShotOptions(workers=0, created_at="2026-01-01T00:00:00Z"))
    return out


@pytest.fixture
def images(tmp_path: Path) -> Path:
    folder = tmp_path / "images"
    for key, number in (("Mira", 0), ("Mira", 1), ("Ferryman", 2)):
        place = folder / "hat" / key
        place.mkdir(parents=True, exist_ok=True)
        (place / f"look {number}.png").write_bytes(draw_reference("Mira", number))
    return folder


def codes(report: Any) -> Counter[str]:
    return Counter(report.counts)


def test_images_when_imported_lie_in_the_tree_with_source_and_rights(run: Path, images: Path) -> None:
    report = import_references(images, run, OURS)
    assert (codes(report), report.checked) == (Counter(), {"images": 3})
    shots, found = read_shot_set(run)
    assert "no-reference" not in found.counts
    noted = with_provenance(shots)
    assert [one.file for one in noted if one.character == "Mira"] == [
        "image/Mira/00.png",
        "image/Mira/01.png",
    ]
    assert {(one.source, one.rights) for one in noted} == {("drawn by Ana", "CC0-1.0")}
    assert (shots.folder / "01/image/Ferryman/00.png").read_bytes() == draw_reference("Mira", 2)
    assert read_story_facts(shots)


def test_images_when_imported_again_are_reported_and_not_doubled(run: Path, images: Path) -> None:
    import_references(images, run, OURS)
    report = import_references(images, run, Terms(rights="other"))
    assert (codes(report), report.checked) == (Counter({"repeated-picture": 3}), {"images": 0})
    shots, _ = read_shot_set(run)
    assert {one.rights for one in with_provenance(shots)} == {"CC0-1.0"}


def test_bad_images_when_imported_are_reported_each_with_its_reason(run: Path, images: Path) -> None:
    place = images / "hat" / "Mira"
    (place / "broken.jpg").write_bytes(b"this is text")
    (place / "notes.txt").write_text("later")
    (place / "zz.png").write_bytes(draw_reference("Mira", 0))
    (images / "hat" / "mira ").mkdir()
    (images / "99" / "Nobody").mkdir(parents=True)
    (images / "hat" / "Ferryman" / "look 2.png").unlink()
    report = import_references(images, run, OURS)
    assert codes(report) == Counter(
        {
            "unreadable-picture": 1, "stray-file": 2, "repeated-picture": 1, "unknown-folder": 1,
            "no-reference": 1,
        }
    )  # fmt: skip
    assert "differs only in space or case" in "".join(map(str, report.issues))
    assert report.checked == {"images": 2}


def test_images_when_nobody_says_their_rights_stay_out(run: Path, images: Path) -> None:
    lines = [{"file": "hat/Mira/look 0.png", "source": "a film", "rights": "licensed, contract 12"}]
    (images / "references.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")
    report = import_references(images, run)
    assert codes(report) == Counter({"no-rights": 2, "no-reference": 1})
    assert not report.ok
    shots, _ = read_shot_set(run)
    assert [(one.source, one.rights) for one in with_provenance(shots)] == [
        ("a film", "licensed, contract 12")
    ]


def test_links_when_they_lead_out_of_the_folder_are_not_followed(
    run: Path, images: Path, tmp_path: Path
) -> None:
    (tmp_path / "secret.png").write_bytes(draw_reference("Old Tomas"))
    (images / "hat" / "Mira" / "link.png").symlink_to(tmp_path / "secret.png")
    assert codes(import_references(images, run, OURS)) == Counter({"stray-file": 1})


@pytest.mark.parametrize("line", ['{"file": "hat/none.png"}', "{", '{"file": 3}'])
def test_lines_of_terms_when_damaged_are_reported_before_anything_is_copied(
    run: Path, images: Path, line: str
) -> None:
    (images / "references.jsonl").write_text(line + "\n", "utf-8")
    with pytest.raises(InputError):
        import_references(images, run, OURS)
    assert not list(run.rglob("*.png"))
