"""A character's name that is corrected changes in the texts that use it, and nowhere else."""

import json
import shutil
from pathlib import Path

import pytest

from fabula.builders.shots.building import ShotOptions, build_shots
from fabula.builders.text.segments import Renaming
from fabula.kinds.verbs import continue_run, correct
from fabula.validators.shots.script_rules import FIELDS

SETTING, STATIC, PLOT = FIELDS["setting"], FIELDS["static"], FIELDS["plot"]
SIGNED = {"who": "ana", "why": "her name in the book"}
TEXT = (
    "Mira walked along the river. An old ferryman saw Mira's hat. Mira waved."
    " The ferryman laughed. Mira slept."
)


@pytest.mark.parametrize(
    ("old", "new", "text", "expected"),
    [
        ("Mira", "Ana", "Mira's hat, Miranda and MIRA; Mira.", "Ana's hat, Miranda and MIRA; Ana."),
        ("Tomas", "Ana", "Tomas' hat and Tomas’ coat", "Ana's hat and Ana’s coat"),
        ("Tomas", "James", "Tomas' hat, Tomas's hat", "James' hat, James's hat"),
        ("Mira", "James", "Mira's hat", "James's hat"),
        ("Tomas", "Ana", "'Tomas' is what they call him", "'Ana' is what they call him"),
        (
            "the old man",
            "the miller",
            "The old man sat. So the old man ate.",
            "The miller sat. So the miller ate.",
        ),
        ("Rose", "Lily", "Rose holds a rose.", "Lily holds a rose."),
        ("Tom", "Jim", "Tom and Old Tom, Tom-Tom", "Jim and Old Tom, Jim-Jim"),
        ("Zoé", "Léa", "Zoé, Zoés, a Zoé", "Léa, Zoés, a Léa"),
        ("A. B.", "C. D.", "A. B. came; AxBx did not", "C. D. came; AxBx did not"),
        ("米拉", "安娜", "米拉的帽子，小米拉也在。", "安娜的帽子，小米拉也在。"),
        ("Mira", r"\\1", "Mira", r"\\1"),
    ],
)
def test_renaming_when_a_text_uses_a_name_changes_that_name_alone(old, new, text, expected) -> None:
    assert Renaming(old, new, ("Old Tom", "小米拉"))(text) == expected


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("names")
    row = {
        "id": "hat", "title": "The Hat", "language": "en", "text": TEXT, "source_collection": "own",
        "rights_status": "public_domain_or_rights_compatible",
    }  # fmt: skip
    cast = {
        "Mira": {"name_ch": "米拉", "tag": "realistic_human", "prompt_en": "Mira is a woman in a red coat.",
                 "prompt_ch": "米拉是一个女人。"},
        "Ferryman": {"name_ch": "船夫", "tag": "realistic_human", "prompt_en": "He knows Mira's father.",
                     "prompt_ch": "一个认识米拉父亲的人。"},
    }  # fmt: skip
    (folder / "stories.jsonl").write_text(json.dumps(row) + "\n", "utf-8")
    (folder / "given.jsonl").write_text(json.dumps({"id": "hat", "characters": cast}) + "\n", "utf-8")
    options = ShotOptions(
        workers=0, created_at="2026-01-01T00:00:00Z", shots=5, scripts=folder / "given.jsonl"
    )
    build_shots(folder / "stories.jsonl", folder / "run", options)
    for path, text in (
        (f"$.Shots[0]['{SETTING}'].en", "The river near Mira's house"),
        (f"$.Shots[0]['{SETTING}'].ch", "米拉家附近的河"),
        (f"$.Shots[1]['{STATIC}'].en", "Mira turns; Miranda does not."),
        (f"$.Shots[1]['{PLOT}'].ch", "船夫看见米拉的帽子。"),
    ):
        correct(folder / "run", "hat", path, text, **SIGNED)
    continue_run(folder / "run", workers=0)
    return folder / "run"


@pytest.fixture
def run(built: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(built, tmp_path / "run"))


def script(run: Path) -> dict:
    return json.loads((run / "ViStory/01/story.json").read_text("utf-8"))


def test_name_when_corrected_in_the_storys_language_changes_in_its_texts_and_is_told(run: Path) -> None:
    made = correct(run, "hat", "$.Characters.Mira.name_en", "Anna", **SIGNED)
    changed = {edit.path: edit.new for edit in made.also}
    assert changed["$.Characters.Mira.prompt_en"] == "Anna is a woman in a red coat."
    assert changed["$.Characters.Ferryman.prompt_en"] == "He knows Anna's father."
    assert changed[f"$.Shots[0]['{SETTING}'].en"] == "The river near Anna's house"
    assert changed[f"$.Shots[1]['{STATIC}'].en"] == "Anna turns; Miranda does not."
    assert all(path.endswith("en") and PLOT not in path for path in changed)
    assert made.notes and "'Mira' stays in" in made.notes[0]
    assert continue_run(run, workers=0).totals["failed"] == 0
    after = script(run)
    assert after["Characters"]["Mira"]["name_en"] == "Anna"
    texts = [after["Shots"][n][name]["en"] or "" for n in range(5) for name in (SETTING, STATIC)]
    assert not any("Mira" in text.replace("Miranda", "") for text in texts)
    assert "".join(one[PLOT]["en"].replace(" ", "") for one in after["Shots"]) == TEXT.replace(" ", "")


def test_name_when_corrected_in_the_other_language_changes_there_plots_too(run: Path) -> None:
    before = script(run)
    made = correct(run, "hat", "$.Characters.Mira.name_ch", "安娜", **SIGNED)
    changed = {edit.path: edit.new for edit in made.also}
    assert changed[f"$.Shots[1]['{PLOT}'].ch"] == "船夫看见安娜的帽子。"
    assert changed[f"$.Shots[0]['{SETTING}'].ch"] == "安娜家附近的河"
    assert changed["$.Characters.Ferryman.prompt_ch"] == "一个认识安娜父亲的人。"
    assert (made.notes, continue_run(run, workers=0).totals["failed"]) == ((), 0)
    after = script(run)
    assert "米拉" not in json.dumps(after, ensure_ascii=False)
    for place, shot in enumerate(after["Shots"]):
        assert {name: shot[name]["en"] for name in FIELDS.values()} == {
            name: before["Shots"][place][name]["en"] for name in FIELDS.values()
        }


def test_name_when_it_becomes_that_of_another_character_is_told_at_once(run: Path) -> None:
    made = correct(run, "hat", "$.Characters.Ferryman.name_en", "Mira", **SIGNED)
    assert "repeated-name" in [issue.code for issue in made.issues]
    again = correct(run, "hat", "$.Characters.Ferryman.name_en", "The Ferryman", **SIGNED)
    assert "repeated-name" not in [issue.code for issue in again.issues]
