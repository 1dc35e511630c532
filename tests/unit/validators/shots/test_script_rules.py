"""Every rule about scripts: a sound script breaks none, a changed one breaks the rule meant."""

from collections.abc import Callable
from typing import Any

import pytest

from fabula.models.keys import MARK
from fabula.schemas.shots import ShotScript, StoryFacts
from fabula.testing.drawn_shots import drawn_script
from fabula.validators.shots.script_rules import (
    Camera,
    check_facts,
    check_plot,
    check_script,
    is_jump,
    is_repeated,
    read_camera,
)

Change = Callable[[Any], object]


def found(document: Any) -> set[str]:
    return {one.code for one in check_script(ShotScript.model_validate(document), "01/story.json")}


def test_a_sound_script_breaks_no_rule() -> None:
    assert list(check_script(ShotScript.model_validate(drawn_script()), "01")) == []


def _onstage(script: Any, names: list[str], other: list[str]) -> None:
    script["Shots"][0]["Characters Appearing"] = {"en": names, "ch": other}


CHANGES: dict[str, Change] = {
    "no-shots": lambda script: script["Shots"].clear(),
    "shot-count": lambda script: script["Shots"].__delitem__(slice(2, None)),
    "shots-from-zero": lambda script: [
        shot.update(index=place) for place, shot in enumerate(script["Shots"])
    ],
    "shot-order": lambda script: script["Shots"][1].update(index=1),
    "missing-field": lambda script: script["Shots"][0].pop("Setting Description"),
    "language-key": lambda script: script["Story_type"].update(zh=script["Story_type"].pop("ch")),
    "one-language": lambda script: script["Shots"][0]["Plot Correspondence"].pop("ch"),
    "language-letters": lambda script: script["Shots"][0]["Plot Correspondence"].update(ch="A tale begins."),
    "list-length": lambda script: _onstage(script, ["Mira"], []),
    "onstage-list": lambda script: script["Shots"][0]["Characters Appearing"].update(en="Mira, Bob"),
    "onstage-count": lambda script: _onstage(script, ["Mira", "Old Tomas", "The Fox", "Mira"], ["米拉"] * 4),
    "onstage-repeated": lambda script: _onstage(script, ["Mira", "Mira"], ["米拉", "米拉"]),
    "onstage-unknown": lambda script: _onstage(script, ["Mira "], ["米拉"]),
    "onstage-language": lambda script: _onstage(script, ["Mira"], ["狐狸"]),
    "onstage-unnamed": lambda script: script["Shots"][0]["Static Shot Description"].update(en="Rain falls."),
    "offstage-named": lambda script: script["Shots"][0]["Static Shot Description"].update(
        en="Mira stands still while the fox looks on"
    ),
    "repeated-name": lambda script: script["Characters"]["The Fox"].update(name_en="mira "),
    "setting-character": lambda script: script["Shots"][0]["Setting Description"].update(en="Mira's house"),
    "secret-removed": lambda script: script["Characters"]["Mira"].update(prompt_en=f"A girl {MARK}"),
    "tag": lambda script: script["Characters"]["Mira"].pop("tag"),
    "character-text": lambda script: script["Characters"]["Mira"].update(prompt_ch=" "),
    "appearances": lambda script: script["Characters"]["Mira"].update(num_of_appearances=99),
    "never-onstage": lambda script: script["Characters"].update(Bob=dict(script["Characters"]["Mira"])),
    "camera": lambda script: script["Shots"][0]["Shot Perspective Design"].update(en="a drone shot"),
    "camera-distance": lambda script: script["Shots"][0]["Shot Perspective Design"].update(en="Side view"),
    "camera-repeated": lambda script: script["Shots"][1].update(
        {"Shot Perspective Design": script["Shots"][0]["Shot Perspective Design"]}
    ),
    "camera-jump": lambda script: [
        script["Shots"][place]["Shot Perspective Design"].update(en=text)
        for place, text in enumerate(("Wide shot", "Close up"))
    ],
    "camera-language": lambda script: script["Shots"][0]["Shot Perspective Design"].update(ch="特写"),
}


@pytest.mark.parametrize("code", CHANGES)
def test_a_script_when_changed_breaks_the_rule(code: str) -> None:
    script = drawn_script()
    CHANGES[code](script)
    assert code in found(script)


MORE: dict[str, tuple[str, Change]] = {
    "a list in English only": (
        "one-language", lambda script: script["Shots"][0]["Characters Appearing"].pop("ch"),
    ),
    "a list in Chinese only": (
        "one-language", lambda script: script["Shots"][0]["Characters Appearing"].pop("en"),
    ),
    "no list at all": (
        "missing-field", lambda script: script["Shots"][0]["Characters Appearing"].clear(),
    ),
    "a list under zh": (
        "language-key",
        lambda script: script["Shots"][0]["Characters Appearing"].update(
            zh=script["Shots"][0]["Characters Appearing"].pop("ch")
        ),
    ),
    "a name under zh": (
        "language-key",
        lambda script: script["Characters"]["Mira"].update(
            name_zh=script["Characters"]["Mira"].pop("name_ch")
        ),
    ),
    "no count": (
        "appearances", lambda script: script["Characters"]["Mira"].pop("num_of_appearances"),
    ),
    "a Chinese text that names nobody": (
        "onstage-unnamed", lambda script: script["Shots"][0]["Static Shot Description"].update(ch="下雨了。"),
    ),
    "an article is no name": (
        "onstage-unnamed",
        lambda script: script["Shots"][2]["Static Shot Description"].update(en="Mira and Tomas by the well"),
    ),
    "a Chinese name of nobody": (
        "onstage-unknown",
        lambda script: script["Shots"][0].update({"Characters Appearing": {"ch": ["鬼"]}}),
    ),
    "four in Chinese": (
        "onstage-count",
        lambda script: script["Shots"][0].update(
            {"Characters Appearing": {"ch": ["米拉", "老托马斯", "狐狸", "米拉"]}}
        ),
    ),
}  # fmt: skip


@pytest.mark.parametrize("what", MORE)
def test_a_script_when_changed_otherwise_breaks_the_rule_too(what: str) -> None:
    code, change = MORE[what]
    script = drawn_script()
    change(script)
    assert code in found(script)


def test_a_script_in_chinese_only_counts_by_chinese_names() -> None:
    script = drawn_script()
    for shot in script["Shots"]:
        del shot["Characters Appearing"]["en"]
    assert found(script) == {"one-language"}


def test_perspectives_in_chinese_only_are_read_in_chinese() -> None:
    script = drawn_script()
    for shot in script["Shots"]:
        del shot["Shot Perspective Design"]["en"]
    assert found(script) == {"one-language"}
    script["Shots"][1]["Shot Perspective Design"]["ch"] = script["Shots"][0]["Shot Perspective Design"]["ch"]
    assert found(script) == {"one-language", "camera-repeated"}


def test_a_chinese_perspective_of_no_list_is_found() -> None:
    script = drawn_script()
    script["Shots"][0]["Shot Perspective Design"]["ch"] = "无人机镜头"
    assert found(script) == {"camera"}


def test_a_part_of_a_name_is_enough() -> None:
    script = drawn_script()
    script["Shots"][1]["Static Shot Description"] = {"en": "Mira by Tomas", "ch": "米拉在托马斯旁边"}
    assert found(script) == set()


FACTS: dict[str, dict[str, Any]] = {
    "facts-character": {"characters": {"mira": {"gender": "female"}}},
    "facts-word": {"characters": {"Mira": {"gender": "f"}}},
    "facts-realistic": {"realistic": True},
}


@pytest.mark.parametrize("code", FACTS)
def test_facts_when_they_do_not_fit_the_script_are_found(code: str) -> None:
    script = ShotScript.model_validate(drawn_script())
    sound = {
        "story_id": "01",
        "style": "anime",
        "culture": "chinese",
        "characters": {"Mira": {"gender": "other"}},
    }
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
