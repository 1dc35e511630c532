"""Building shot scripts without any model: what the tree holds, and what the text does not tell is null."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import fabula
from fabula.builders.shots.building import ShotOptions, Terms, build_shots, import_references
from fabula.errors import InputError
from fabula.releases.shots.imports import read_story_facts, with_provenance
from fabula.releases.shots.tree import ShotSet, read_shot_set
from fabula.testing.drawn_shots import draw_reference
from fabula.validators.report import ValidationReport

SAMPLES = Path(fabula.__file__).parent / "builders" / "katha" / "samples" / "stories.jsonl"
CREATED = "2026-01-01T00:00:00Z"
HAT = (
    "On a windy morning Mira walked along the river with her new hat. A gust tore the hat from her head. She"
    " ran after it to the bank. An old ferryman saw the hat on the water. The ferryman laughed and caught it"
    " with his pole. At night Mira and the ferryman ate soup in his hut."
)
BRIDGE = (
    "清晨，米拉走过石桥。风吹走了她的帽子。她跑到河边。老船夫看见了帽子。"
    "他用长竿捞起了它。晚上他们在小屋里喝汤。"
)


def row(text: str = HAT, **more: Any) -> dict[str, Any]:
    base = {"id": "hat", "title": "The Hat", "language": "en", "text": text, "source_collection": "own"}
    return {**base, "rights_status": "public_domain_or_rights_compatible", **more}


def write(path: Path, rows: list[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(one, ensure_ascii=False) + "\n" for one in rows), "utf-8")
    return path


def build(folder: Path, rows: list[dict[str, Any]], **options: Any) -> tuple[ShotSet, ValidationReport]:
    stories = write(folder / "stories.jsonl", rows)
    build_shots(stories, folder / "run", ShotOptions(workers=0, created_at=CREATED, **options))
    return read_shot_set(folder / "run")


def facts(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "run/ViStory/stories.jsonl").read_text().splitlines()]


def test_samples_when_built_by_rules_lack_only_what_no_word_tells(tmp_path: Path) -> None:
    report = build_shots(SAMPLES, tmp_path / "run", ShotOptions(workers=0, created_at=CREATED))
    assert report.totals["made"] == 24
    shots, found = read_shot_set(tmp_path / "run")
    # Rules neither translate nor look through a camera, nobody gave reference images or says what people are.
    assert {issue.code for issue in found.issues} == {
        "camera-distance", "character-text", "missing-field", "no-reference", "one-language", "tag",
    }  # fmt: skip
    assert [story.story_id for story in shots.stories][:3] == ["01", "02", "03"]
    assert all(4 <= len(story.script.shots) <= 30 for story in shots.stories)


def test_story_when_built_by_rules_is_told_whole_and_in_order(tmp_path: Path) -> None:
    shots, _ = build(tmp_path, [row()], shots=6)
    (story,) = shots.stories
    assert " ".join(shot.plot.of("en") for shot in story.script.shots if shot.plot) == HAT
    assert [shot.characters for shot in story.script.shots] == [
        ("Mira",), (), (), ("Ferryman",), ("Ferryman",), ("Mira", "Ferryman"),
    ]  # fmt: skip
    mira, ferryman = story.script.characters["Mira"], story.script.characters["Ferryman"]
    assert (mira.tag, mira.num_of_appearances, mira.prompt_en) == (None, 2, None)
    assert (ferryman.tag, ferryman.num_of_appearances) == ("realistic_human", 3)
    assert {shot.static.of("en") for shot in story.script.shots if shot.static} <= {""}
    settings = [shot.setting.of("en") for shot in story.script.shots if shot.setting]
    assert settings[0].startswith("Morning, river") and settings[-1].startswith("Night, hut")


def test_characters_when_given_are_all_there_are_and_keep_what_is_given(tmp_path: Path) -> None:
    given = {
        "id": "hat", "author": "ana", "shots": 4, "style": "anime", "realistic": False, "culture": "japanese",
        "characters": {
            "Mira": {"name_ch": "米拉", "gender": "female", "ethnicity": "as the author says"},
            "Ferryman": {"name_ch": "船夫", "tag": "unrealistic_human", "prompt_en": "An old man in a hat."},
        },
    }  # fmt: skip
    path = write(tmp_path / "given.jsonl", [given])
    shots, _ = build(tmp_path, [row()], scripts=path)
    (story,) = shots.stories
    assert len(story.script.shots) == 4
    assert list(story.script.characters) == ["Mira", "Ferryman"]
    assert story.script.characters["Mira"].tag is None
    assert story.script.characters["Ferryman"].prompt_en == "An old man in a hat."
    last = story.script.shots[-1].onstage
    assert last is not None and (last.en, last.ch) == (("Mira", "Ferryman"), ("米拉", "船夫"))
    (known,) = facts(tmp_path)
    assert (known["style"], known["culture"], known["realistic"]) == ("anime", "japanese", False)
    assert known["characters"]["Mira"] == {"gender": "female", "ethnicity": "as the author says"}
    assert known["characters"]["Ferryman"]["ethnicity"] is None


def test_chinese_story_when_built_by_rules_stands_under_ch(tmp_path: Path) -> None:
    given = write(
        tmp_path / "given.jsonl",
        [{"id": "hat", "characters": {"Mira": {"name_ch": "米拉"}, "Ferryman": {"name_ch": "老船夫"}}}],
    )
    shots, found = build(tmp_path, [row(BRIDGE, language="zh")], scripts=given, shots=4)
    (story,) = shots.stories
    first = story.script.shots[0]
    assert first.plot is not None and first.plot.ch is not None and first.plot.en is None
    assert first.characters == ("Mira",)
    assert first.onstage is not None and first.onstage.ch == ("米拉",)
    assert "language-letters" not in {issue.code for issue in found.issues}
    # What rules do not know is reported, not made up.
    assert {issue.code for issue in found.errors} == {"missing-field", "tag"}


@pytest.mark.parametrize(
    ("change", "code"), [({"language": "hi"}, "language"), ({"text": "A dog ran. It slept."}, "too_short")]
)
def test_story_when_it_cannot_be_a_script_is_rejected_with_its_code(tmp_path, change, code):
    stories = write(tmp_path / "stories.jsonl", [row(), row(**{"id": "other", **change})])
    report = build_shots(stories, tmp_path / "run", ShotOptions(workers=0, created_at=CREATED))
    (gone,) = [item for item in report.items if item.status == "rejected"]
    assert gone.code == code


def test_numbers_when_stories_are_added_do_not_move(tmp_path: Path) -> None:
    build(tmp_path, [row(), row(id="7")])
    shots, _ = build(tmp_path, [row(), row(id="7"), row(id="later")])
    assert [story.story_id for story in shots.stories] == ["01", "02", "07"]
    shots, _ = build(tmp_path, [row(), row(id="7")], replace_sources=True)
    assert [story.story_id for story in shots.stories] == ["01", "07"]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"id": "other"}, "a story of this build"),
        ({"id": "hat", "style": "sketchy"}, "one of: photorealistic"),
        ({"id": "hat", "characters": {"../x": {}}}, "cannot be the name of a folder"),
        ({"id": "hat", "characters": {"Mira": {"tag": "human"}}}, "one of: realistic_human"),
        ({"id": "hat", "shots": 40}, "given.jsonl:1 $.shots: at most 30 is wanted here, found 40"),
    ],
)
def test_given_facts_when_wrong_are_reported_before_anything_is_built(tmp_path, given, said):
    path = write(tmp_path / "given.jsonl", [given])
    with pytest.raises(InputError) as raised:
        build(tmp_path, [row()], scripts=path)
    assert said in str(raised.value)


# -- Reference images into a built set: checked one by one, with source and rights

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


def test_links_when_they_lead_out_of_the_folder_are_not_followed(run, images, tmp_path):
    (tmp_path / "secret.png").write_bytes(draw_reference("Old Tomas"))
    (images / "hat" / "Mira" / "link.png").symlink_to(tmp_path / "secret.png")
    assert codes(import_references(images, run, OURS)) == Counter({"stray-file": 1})


@pytest.mark.parametrize("line", ['{"file": "hat/none.png"}', "{", '{"file": 3}'])
def test_lines_of_terms_when_damaged_are_reported_before_anything_is_copied(run, images, line):
    (images / "references.jsonl").write_text(line + "\n", "utf-8")
    with pytest.raises(InputError):
        import_references(images, run, OURS)
    assert not list(run.rglob("*.png"))
