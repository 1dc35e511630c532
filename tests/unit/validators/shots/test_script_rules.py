"""Every rule about scripts: a sound script breaks none, a changed one breaks the rule meant."""

from functools import reduce
from typing import Any

import pytest

from fabula.models.keys import MARK
from fabula.schemas.shots import CharacterFacts, ShotScript, StoryFacts
from fabula.testing.drawn_shots import drawn_script
from fabula.validators.shots.script_rules import (
    Camera,
    check_facts,
    check_plot,
    check_script,
    is_jump,
    is_repeated,
    read_camera,
    shot_statistics,
)


def found(document: Any) -> set[str]:
    return {one.code for one in check_script(ShotScript.model_validate(document), "01/story.json")}


def test_a_sound_script_breaks_no_rule() -> None:
    assert list(check_script(ShotScript.model_validate(drawn_script()), "01")) == []


GONE = object()
SHOT, MIRA, ONSTAGE = "Shots.0", "Characters.Mira", "Shots.0.Characters Appearing"
PLOT, TOLD, CAMERA = (
    f"{SHOT}.{name}" for name in ("Plot Correspondence", "Static Shot Description", "Shot Perspective Design")
)


def changed(changes: dict[str, Any]) -> Any:
    """Return a script with values at other places, steps parted by dots."""
    script = drawn_script()
    for path, value in changes.items():
        *above, last = (int(part) if part.isdigit() else part for part in path.split("."))
        holder = reduce(lambda inner, part: inner[part], above, script)
        if value is GONE:
            del holder[last]
        else:
            holder[last] = value
    return script


SOUND = drawn_script()
ONE = {name: dict(SOUND["Characters"]["Mira"]) for name in ("Mira", "Bob")}
CHANGES: dict[str, dict[str, Any]] = {
    "no-shots": {"Shots": []},
    "shot-count": {"Shots": SOUND["Shots"][:2]},
    "shots-from-zero": {f"Shots.{place}.index": place for place in range(len(SOUND["Shots"]))},
    "shot-order": {"Shots.1.index": 1},
    "missing-field": {f"{SHOT}.Setting Description": GONE},
    "language-key": {"Story_type.zh": SOUND["Story_type"]["ch"], "Story_type.ch": GONE},
    "one-language": {f"{PLOT}.ch": GONE},
    "language-letters": {f"{PLOT}.ch": "A tale begins."},
    "list-length": {ONSTAGE: {"en": ["Mira"], "ch": []}},
    "onstage-list": {f"{ONSTAGE}.en": "Mira, Bob"},
    "onstage-count": {ONSTAGE: {"en": ["Mira", "Old Tomas", "The Fox", "Mira"], "ch": ["米拉"] * 4}},
    "onstage-repeated": {ONSTAGE: {"en": ["Mira", "Mira"], "ch": ["米拉", "米拉"]}},
    "onstage-unknown": {ONSTAGE: {"en": ["Mira "], "ch": ["米拉"]}},
    "onstage-language": {ONSTAGE: {"en": ["Mira"], "ch": ["狐狸"]}},
    "onstage-unnamed": {f"{TOLD}.en": "Rain falls."},
    "offstage-named": {f"{TOLD}.en": "Mira stands still while the fox looks on"},
    "repeated-name": {"Characters.The Fox.name_en": "mira "},
    "setting-character": {f"{SHOT}.Setting Description.en": "Mira's house"},
    "secret-removed": {f"{MIRA}.prompt_en": f"A girl {MARK}"},
    "tag": {f"{MIRA}.tag": GONE},
    "character-text": {f"{MIRA}.prompt_ch": " "},
    "appearances": {f"{MIRA}.num_of_appearances": 99},
    "never-onstage": {"Characters": {**SOUND["Characters"], **ONE}},
    "camera": {f"{CAMERA}.en": "a drone shot"},
    "camera-distance": {f"{CAMERA}.en": "Side view"},
    "camera-repeated": {
        "Shots.1.Shot Perspective Design": SOUND["Shots"][0]["Shot Perspective Design"],
    },
    "camera-jump": {f"{CAMERA}.en": "Wide shot", "Shots.1.Shot Perspective Design.en": "Close up"},
    "camera-language": {f"{CAMERA}.ch": "特写"},
}  # fmt: skip


@pytest.mark.parametrize("code", CHANGES)
def test_a_script_when_changed_breaks_the_rule(code: str) -> None:
    assert code in found(changed(CHANGES[code]))


MORE: dict[str, tuple[str, dict[str, Any]]] = {
    "a list in English only": ("one-language", {f"{ONSTAGE}.ch": GONE}),
    "a list in Chinese only": ("one-language", {f"{ONSTAGE}.en": GONE}),
    "no list at all": ("missing-field", {ONSTAGE: {}}),
    "a list under zh": ("language-key", {f"{ONSTAGE}.zh": ["米拉"], f"{ONSTAGE}.ch": GONE}),
    "a name under zh": ("language-key", {f"{MIRA}.name_zh": "米拉", f"{MIRA}.name_ch": GONE}),
    "no count": ("appearances", {f"{MIRA}.num_of_appearances": GONE}),
    "a Chinese text that names nobody": ("onstage-unnamed", {f"{TOLD}.ch": "下雨了。"}),
    "an article is no name": (
        "onstage-unnamed", {"Shots.2.Static Shot Description.en": "Mira and Tomas by the well"},
    ),
    "a Chinese name of nobody": ("onstage-unknown", {ONSTAGE: {"ch": ["鬼"]}}),
    "four in Chinese": ("onstage-count", {ONSTAGE: {"ch": ["米拉", "老托马斯", "狐狸", "米拉"]}}),
}  # fmt: skip


@pytest.mark.parametrize("what", MORE)
def test_a_script_when_changed_otherwise_breaks_the_rule_too(what: str) -> None:
    code, changes = MORE[what]
    assert code in found(changed(changes))


def of_every_shot(name: str) -> dict[str, Any]:
    return {f"Shots.{place}.{name}": GONE for place in range(len(SOUND["Shots"]))}


CHINESE = of_every_shot("Shot Perspective Design.en")
AGAIN = {"Shots.1.Shot Perspective Design.ch": SOUND["Shots"][0]["Shot Perspective Design"]["ch"]}
WHOLE: dict[str, tuple[dict[str, Any], set[str]]] = {
    "names in Chinese only": (of_every_shot("Characters Appearing.en"), {"one-language"}),
    "perspectives in Chinese only": (CHINESE, {"one-language"}),
    "a perspective again, in Chinese": ({**CHINESE, **AGAIN}, {"one-language", "camera-repeated"}),
    "a Chinese perspective of no list": ({f"{CAMERA}.ch": "无人机镜头"}, {"camera"}),
    "a part of a name is enough": (
        {"Shots.1.Static Shot Description": {"en": "Mira by Tomas", "ch": "米拉在托马斯旁边"}}, set(),
    ),
}  # fmt: skip


@pytest.mark.parametrize("what", WHOLE)
def test_a_script_in_one_language_or_with_part_of_a_name_breaks_these_rules_and_no_others(what: str) -> None:
    changes, codes = WHOLE[what]
    assert found(changed(changes)) == codes


FACTS: dict[str, dict[str, Any]] = {
    "facts-character": {"characters": {"mira": {"gender": "female"}}},
    "facts-word": {"characters": {"Mira": {"gender": "f"}}},
    "facts-realistic": {"realistic": True},
}


@pytest.mark.parametrize("code", FACTS)
def test_facts_when_they_do_not_fit_the_script_are_found(code: str) -> None:
    script = ShotScript.model_validate(drawn_script())
    people = {"Mira": {"gender": "other"}}
    sound = {"story_id": "01", "style": "anime", "culture": "chinese", "characters": people}
    assert list(check_facts(StoryFacts.model_validate(sound), script, "stories.jsonl:1")) == []
    facts = StoryFacts.model_validate({**sound, **FACTS[code]})
    assert {one.code for one in check_facts(facts, script, "stories.jsonl:1")} == {code}


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ({"en": "Mira waits for Old Tomas"}, True),
        ({"ch": "米拉等老托马斯"}, True),
        ({"en": "Mira waits for old people"}, False),
        ({"en": "Mira stands alone", "ch": "米拉站着"}, False),
    ],
)
def test_a_description_that_names_somebody_off_stage_is_found(text: dict[str, str], named: bool) -> None:
    script = drawn_script()
    script["Shots"][0]["Static Shot Description"].update(text)
    assert ("offstage-named" in found(script)) is named


def test_a_name_within_the_name_of_somebody_on_stage_is_no_other() -> None:
    script = drawn_script()
    script["Characters"]["Tomas"] = {**script["Characters"]["Mira"], "name_en": "Tomas", "name_ch": "托马斯"}
    shot = script["Shots"][1]  # Mira and Old Tomas are on stage
    assert shot["Characters Appearing"]["en"] == ["Mira", "Old Tomas"]
    issues = check_script(ShotScript.model_validate(script), "01")
    assert [one for one in issues if one.code == "offstage-named"] == []


# Perspectives in the words of scripts and in those of the judge.


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Medium shot, eye level shot", ("medium_shot", None, "eye_level_shot")),
        ("Wide shot, rear view, bird's eye view shot", ("wide_shot", "back_view", "birds_eye_view_shot")),
        ("low-angle shot; Close-up.", ("close_up", None, "low_angle_shot")),
        ("中景，平视镜头", ("medium_shot", None, "eye_level_shot")),
        ("", (None, None, None)),
    ],
)
def test_read_camera_finds_the_words_of_the_lists(text: str, words: tuple[str | None, ...]) -> None:
    camera = read_camera(text)
    assert camera.words == words
    assert camera.unknown == ()


def test_read_camera_when_a_part_is_in_no_list_or_the_second_of_its_kind_keeps_it() -> None:
    assert read_camera("Full shot, from a drone, wide shot").unknown == ("from a drone", "wide shot")


def test_camera_in_the_judges_words_moves_close_ups_one_step() -> None:
    assert Camera("close_up", "front_view", "dutch_angle_shot").for_judge() == (
        "extreme close-up", "front view", "tilted shot",
    )  # fmt: skip
    assert Camera("medium_close_up", None, "inverted_shot").for_judge() == ("close-up",)


@pytest.mark.parametrize("language", ["en", "ch"])
def test_camera_when_written_is_read_again(language: str) -> None:
    camera = Camera("full_shot", "side_view", "high_angle_shot")
    assert read_camera(camera.text(language)) == camera


def test_neighbouring_shots_are_told_to_be_alike_or_to_jump() -> None:
    wide, near = read_camera("wide shot"), read_camera("close up")
    assert is_jump(wide, near) and is_jump(near, wide)
    assert not is_jump(wide, read_camera("medium close up"))
    assert is_repeated(wide, read_camera("Wide shot"))
    assert not is_repeated(wide, read_camera("wide shot, side view"))
    assert not is_repeated(Camera(), Camera())


# Whether the plots of a script are the whole story.

STORY = "A fox saw grapes.  It leapt. It left."


def test_statistics_when_two_stories_are_counted_say_who_is_known_how_well(in_lines, snapshot) -> None:
    facts = StoryFacts(
        story_id="01", style="ink_painting", culture="indian", realistic=True,
        characters={"Mira": CharacterFacts(gender="female")},
    )  # fmt: skip
    one = ShotScript.model_validate({**drawn_script(), "Shots": drawn_script()["Shots"][:1]})
    whole = ShotScript.model_validate(drawn_script())
    found = shot_statistics([(whole, facts, {"Mira": 2}), (one, None, {"Mira": 1})])
    assert in_lines({name: found[name] for name in found if name != "published"}) == snapshot
    assert shot_statistics([])["totals"]["shots_per_story"] == 0.0


def plot_findings(plots: list[str], language: str = "en") -> list[str]:
    shots = [
        {"index": number, "Plot Correspondence": {language: text}} for number, text in enumerate(plots, 1)
    ]
    script = ShotScript.model_validate({"Shots": shots})
    return [f"{one.code} {one.path}" for one in check_plot(script, STORY, language, "01")]


def test_plots_when_they_are_the_story_but_for_white_space_are_fine() -> None:
    assert plot_findings(["A fox saw grapes.", "It leapt.\nIt left."]) == []


@pytest.mark.parametrize(
    ("plots", "path"),
    [
        (["A fox saw grapes.", "It left."], "$.Shots[1]['Plot Correspondence'].en"),
        (["It leapt.", "A fox saw grapes. It left."], "$.Shots[0]['Plot Correspondence'].en"),
        (["A fox saw grapes.", "It leapt."], "$.Shots"),
    ],
)
def test_plots_when_something_is_missing_or_out_of_order_are_reported(plots: list[str], path: str) -> None:
    assert plot_findings(plots) == [f"plot-coverage {path}"]
