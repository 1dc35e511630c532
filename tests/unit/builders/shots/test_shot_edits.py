"""Corrections of shot scripts: any field, either language; only corrected texts are translated again."""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from fabula.builders.shots.building import ShotOptions, build_shots
from fabula.engine.edits import edits_of
from fabula.errors import ConfigError, RunError
from fabula.kinds.verbs import continue_run, correct
from fabula.releases.shots.imports import import_set
from fabula.releases.shots.tree import read_shot_set
from fabula.testing.drawn_shots import draw_shot_set
from fabula.testing.model_server import ModelServer
from fabula.testing.shots_model import answer

HAT = (
    "On a windy morning Mira walked along the river with her new hat. A gust tore the hat from her head. She"
    " ran after it to the bank. An old ferryman saw the hat on the water. The ferryman laughed and caught it"
    " with his pole. At night Mira and the ferryman ate soup in his hut."
)
SIGNED = {"who": "ana", "why": "clearer"}
SETTING, STATIC = "Setting Description", "Static Shot Description"
CAMERA, ONSTAGE, PLOT = "Shot Perspective Design", "Characters Appearing", "Plot Correspondence"


def write_stories(folder: Path, count: int = 2) -> Path:
    row = {
        "id": "hat", "title": "The Hat", "language": "en", "text": HAT, "source_collection": "own",
        "rights_status": "public_domain_or_rights_compatible",
    }  # fmt: skip
    rows = [row, {**row, "id": "boat", "title": "The Boat", "text": HAT.replace("hat", "cap")}]
    path = folder / "stories.jsonl"
    path.write_text("".join(json.dumps(one) + "\n" for one in rows[:count]), "utf-8")
    return path


@pytest.fixture(scope="module")
def by_rules(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("rules")
    given = folder / "given.jsonl"
    cast = {
        "Mira": {
            "name_ch": "米拉",
            "tag": "realistic_human",
            "prompt_en": "A woman.",
            "prompt_ch": "一个女人。",
        },
        "Ferryman": {"name_ch": "船夫"},
    }
    given.write_text(json.dumps({"id": "hat", "characters": cast}) + "\n", "utf-8")
    options = ShotOptions(workers=0, created_at="2026-01-01T00:00:00Z", shots=6, scripts=given)
    build_shots(write_stories(folder), folder / "run", options)
    return folder / "run"


@pytest.fixture
def run(by_rules: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(by_rules, tmp_path / "run"))


class Drafted:
    """A run that a model drafted, and the server that it asks."""

    def __init__(self, folder: Path, server: ModelServer, count: int = 1) -> None:
        self.run, self.server, self.folder, self.count = folder / "run", server, folder, count
        self.build()

    def build(self, **more: Any) -> None:
        models = {"openai:tested": {"base_url": self.server.openai_url}}
        build_shots(
            write_stories(self.folder, self.count),
            self.run,
            ShotOptions(
                workers=0, created_at="2026-01-01T00:00:00Z", shots=6, model="openai:tested", models=models,
                **more,
            ),
        )  # fmt: skip

    def asked(self) -> int:
        return len(self.server.log)


@pytest.fixture
def drafted(tmp_path: Path) -> Iterator[Drafted]:
    with ModelServer(answer) as server:
        yield Drafted(tmp_path, server)


def script(run: Path, number: str = "01") -> Any:
    return json.loads((run / "ViStory" / number / "story.json").read_text("utf-8"))


def shot(run: Path, place: int, field: str) -> Any:
    return script(run)["Shots"][place][field]


def at(place: int, field: str, language: str) -> str:
    return f"$.Shots[{place}]['{field}'].{language}"


def edit(run: Path, path: str, new: Any) -> Any:
    return correct(run, "hat", path, new, **SIGNED).edit.old


def lines(run: Path, name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (run / name).read_text("utf-8").splitlines()]


def producers(run: Path) -> list[dict[str, str]]:
    found: list[dict[str, str]] = lines(run, "producers.jsonl")[-1]["producers"]
    return found


def test_texts_when_edited_in_either_language_stand_in_the_script_and_survive_reruns(run: Path) -> None:
    boat = (run / "ViStory/02/story.json").read_bytes()
    assert edit(run, at(2, SETTING, "en"), "A muddy river bank") == shot(run, 2, SETTING)["en"]
    assert edit(run, at(2, SETTING, "ch"), "泥泞的河岸") is None
    edit(run, at(0, STATIC, "en"), "Mira walks by the river.")
    report = continue_run(run, workers=0)
    ran = {stage.name: stage.ran for stage in report.stages if stage.ran}
    assert ran == {"load_stories": 2, "apply_edits": 1, "translate_edits": 1, "assemble_scripts": 1}
    assert shot(run, 2, SETTING) == {"en": "A muddy river bank", "ch": "泥泞的河岸"}
    assert shot(run, 0, STATIC)["en"] == "Mira walks by the river."
    assert (run / "ViStory/02/story.json").read_bytes() == boat
    made = lines(run, "producers.jsonl")[0]["producers"]
    assert {"path": at(2, SETTING, "ch"), "producer": "edit:ana"} in made
    before = (run / "scripts.jsonl").read_bytes()
    assert continue_run(run, workers=0).totals["failed"] == 0
    assert (run / "scripts.jsonl").read_bytes() == before


@pytest.mark.parametrize(
    ("language", "text"), [("en", "Close up, back view, low-angle shot"), ("ch", "特写，背面，仰视镜头")]
)
def test_perspective_when_edited_in_one_language_holds_for_both(run: Path, language: str, text: str) -> None:
    edit(run, at(3, CAMERA, language), text)
    continue_run(run, workers=0)
    words = shot(run, 3, CAMERA)
    edit(run, at(4, CAMERA, "en"), words["en"])
    continue_run(run, workers=0)
    assert shot(run, 4, CAMERA) == words
    assert words["en"].startswith("Close up, back")
    found = [one["code"] for one in lines(run, "findings.jsonl")[0]["findings"]]
    assert "camera-repeated" in found, "the rules look at the edited script"


def test_cast_when_edited_changes_both_lists_and_the_counts(run: Path) -> None:
    edit(run, at(1, ONSTAGE, "en"), ["Mira", "Ferryman"])
    edit(run, at(3, ONSTAGE, "ch"), ["米拉"])
    edit(run, "$.Shots[4]['Characters Appearing'].en[0]", "Mira")
    continue_run(run, workers=0)
    assert shot(run, 1, ONSTAGE) == {"en": ["Mira", "Ferryman"], "ch": ["米拉", "船夫"]}
    assert shot(run, 3, ONSTAGE)["en"] == ["Mira"]
    counts = {key: one["num_of_appearances"] for key, one in script(run)["Characters"].items()}
    assert counts == {"Mira": 5, "Ferryman": 2}


def test_sheet_and_labels_when_edited_stand_in_script_and_facts(run: Path) -> None:
    for path, new in {
        "$.Characters.Mira.tag": "unrealistic_human",
        "$.Characters.Mira.gender": "female",
        "$.Characters['Ferryman'].prompt_en": "An old man in a straw hat.",
        "$.Characters.Mira.prompt_en": "A girl in a green coat.",
        "$.labels.style": "anime",
        "$.labels.story_type": "folktale",
        "$.labels.realistic": False,
    }.items():
        edit(run, path, new)
    continue_run(run, workers=0)
    sheets = script(run)["Characters"]
    assert (sheets["Mira"]["tag"], sheets["Mira"]["prompt_en"]) == (
        "unrealistic_human",
        "A girl in a green coat.",
    )
    assert sheets["Mira"]["prompt_ch"] == "一个女人。", "what the author gave stands"
    assert sheets["Ferryman"]["prompt_en"] == "An old man in a straw hat."
    facts = lines(run, "ViStory/stories.jsonl")[0]
    assert (facts["style"], facts["realistic"]) == ("anime", False)
    assert facts["characters"]["Mira"]["gender"] == "female"
    assert script(run)["Story_type"] == {"en": "folktale", "ch": "民间故事"}


def test_plot_when_an_end_moves_the_neighbour_follows(run: Path) -> None:
    first, second = (shot(run, place, PLOT)["en"] for place in (1, 2))
    made = correct(run, "hat", at(1, PLOT, "en"), f"{first} She", **SIGNED)
    assert [(one.path, one.new) for one in made.also] == [(at(2, PLOT, "en"), second.removeprefix("She "))]
    assert continue_run(run, workers=0).totals["failed"] == 0
    assert shot(run, 1, PLOT)["en"].endswith(" She")


REFUSED = [
    (at(9, SETTING, "en"), "x", "the script has 6 shots"),
    ("$.Characters.Nobody.tag", "non_human", "the characters Mira, Ferryman"),
    ("$.Shots[0].index", 3, "numbers, counts and keys"),
    ("$.Characters.Mira.num_of_appearances", 3, "numbers, counts and keys"),
    ("$.Shots[0]['Setting Description']", {"en": "x"}, "one field at a time"),
    ("$.Shots", [], "one field at a time"),
    ("$.Story_type.en", "war", r"\$\.labels\.story_type"),
    ("$.plot", "x", "no field that can be edited"),
    (at(0, SETTING, "en"), " ", "expected a text"),
    (at(0, CAMERA, "en"), "Fish-eye", "Fish-eye is no shot distance"),
    (at(0, CAMERA, "en"), "Back view", "names a shot distance"),
    (at(0, ONSTAGE, "en"), ["Nobody"], "Nobody is no character; there are Mira, Ferryman"),
    (at(0, ONSTAGE, "en"), ["Mira", "Mira"], "one character twice"),
    (at(0, ONSTAGE, "en"), "Mira", "expected a list"),
    ("$.Characters.Mira.tag", "human", "expected one of"),
    ("$.labels.style", "cubist", "expected one of"),
    ("$.labels.realistic", "yes", "true, false or null"),
    ("Shots", "x", "starts with"),
]


@pytest.mark.parametrize(("path", "new", "expected"), REFUSED)
def test_edit_when_it_cannot_be_applied_is_refused_at_once(run, path, new, expected):
    with pytest.raises(ConfigError, match=expected):
        edit(run, path, new)
    assert edits_of(run, "hat") == ()


def test_translation_when_its_original_is_edited_is_asked_for_alone(drafted: Drafted) -> None:
    before = script(drafted.run)
    asked = drafted.asked()
    edit(drafted.run, at(3, SETTING, "en"), "A reed bed at dusk")
    continue_run(drafted.run, workers=0)
    after = script(drafted.run)
    assert drafted.asked() == asked + 1
    assert "A reed bed at dusk" in drafted.server.log[-1].asked.text
    assert after["Shots"][3][SETTING]["en"] == "A reed bed at dusk"
    # The stand-in numbers the shots that it is shown.
    assert (before["Shots"][3][SETTING]["ch"], after["Shots"][3][SETTING]["ch"]) == (
        "第4处景色，白天",
        "第1处景色，白天",
    )
    after["Shots"][3][SETTING] = before["Shots"][3][SETTING]
    assert after == before
    made = {one["path"]: one["producer"] for one in producers(drafted.run)}
    assert made[at(3, SETTING, "en")] == "edit:ana"
    assert made[at(3, SETTING, "ch")].startswith("openai:tested via shots/translate_shots")
    continue_run(drafted.run, workers=0)
    drafted.build()
    assert drafted.asked() == asked + 1, "nothing is asked again"
    assert script(drafted.run)["Shots"][3][SETTING]["en"] == "A reed bed at dusk"


def test_translation_when_edited_after_it_was_asked_for_again_is_taken(drafted: Drafted) -> None:
    edit(drafted.run, at(3, SETTING, "en"), "A reed bed at dusk")
    continue_run(drafted.run, workers=0)
    asked = drafted.asked()
    edit(drafted.run, at(3, SETTING, "ch"), "黄昏的芦苇丛")
    continue_run(drafted.run, workers=0)
    assert drafted.asked() == asked
    assert script(drafted.run)["Shots"][3][SETTING]["ch"] == "黄昏的芦苇丛"


def test_name_and_looks_when_edited_are_translated_for_that_character_alone(drafted: Drafted) -> None:
    before, asked = script(drafted.run)["Characters"], drafted.asked()
    edit(drafted.run, "$.Characters.Mira.prompt_en", "Wears a red scarf.")
    continue_run(drafted.run, workers=0)
    after = script(drafted.run)["Characters"]
    assert drafted.asked() == asked + 1
    assert "Ferryman" not in drafted.server.log[-1].asked.text
    assert after["Mira"]["prompt_en"] == "Wears a red scarf."
    assert after["Mira"]["name_ch"] == before["Mira"]["name_ch"], "the name stays as it was translated"
    assert after["Ferryman"] == before["Ferryman"]


def test_imported_set_when_edited_says_how_it_is_corrected(tmp_path: Path) -> None:
    import_set(draw_shot_set(tmp_path / "data"), tmp_path / "run", "2026-01-01T00:00:00Z")
    with pytest.raises(
        RunError,
        match=r"(?s)kind import-shots cannot be corrected, only katha, shots.*copy its folder ViStory",
    ):
        correct(tmp_path / "run", "01", "$.Characters.Mira.tag", "non_human", **SIGNED)
    copy = shutil.copytree(tmp_path / "run/ViStory", tmp_path / "copy/ViStory")
    path = copy / "01/story.json"
    path.write_text(path.read_text("utf-8").replace("a stone bridge", "a wooden bridge"), "utf-8")
    made = import_set(tmp_path / "copy", tmp_path / "corrected", "2026-01-01T00:00:00Z")
    assert made.shot_set.counts() == read_shot_set(tmp_path / "run")[0].counts()


def test_chinese_story_when_edited_is_corrected_under_ch(tmp_path: Path) -> None:
    text = "清晨，米拉走过石桥。风吹走了她的帽子。她跑到河边。老船夫看见了帽子。"
    row = {
        "id": "hat", "title": "帽子", "language": "zh", "text": text, "source_collection": "own",
        "rights_status": "public_domain_or_rights_compatible",
    }  # fmt: skip
    (tmp_path / "stories.jsonl").write_text(json.dumps(row) + "\n", "utf-8")
    given = {"id": "hat", "characters": {"Mira": {"name_ch": "米拉"}, "Old Ferryman": {"name_ch": "老船夫"}}}
    (tmp_path / "given.jsonl").write_text(json.dumps(given) + "\n", "utf-8")
    options = ShotOptions(
        workers=0, created_at="2026-01-01T00:00:00Z", shots=4, scripts=tmp_path / "given.jsonl"
    )
    build_shots(tmp_path / "stories.jsonl", tmp_path / "run", options)
    run = tmp_path / "run"
    edit(run, at(0, SETTING, "ch"), "清晨的石桥")
    edit(run, at(0, SETTING, "en"), "A stone bridge in the morning")
    edit(run, at(2, ONSTAGE, "ch"), ["老船夫", "米拉"])
    edit(run, "$.Characters['Old Ferryman'].name_en", "the old ferryman")
    edit(run, '$.Characters["Old Ferryman"].prompt_ch', "戴草帽的老人。")
    assert continue_run(run, workers=0).totals["failed"] == 0
    assert shot(run, 0, SETTING) == {"en": "A stone bridge in the morning", "ch": "清晨的石桥"}
    assert shot(run, 2, ONSTAGE) == {"en": ["Old Ferryman", "Mira"], "ch": ["老船夫", "米拉"]}
    sheet = script(run)["Characters"]["Old Ferryman"]
    assert (sheet["name_en"], sheet["name_ch"], sheet["prompt_ch"], sheet["prompt_en"]) == (
        "the old ferryman", "老船夫", "戴草帽的老人。", None,
    )  # fmt: skip
