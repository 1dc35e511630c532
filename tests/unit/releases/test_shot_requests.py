"""Requests to generators: parts, limits, priorities, context."""

import json
from pathlib import Path
from typing import Any

import pytest

from fabula.errors import ConfigError
from fabula.releases.shots.requests import RequestOptions, shot_requests
from fabula.releases.shots.tree import ShotSet, read_shot_set
from fabula.testing.drawn_shots import draw_shot_set, drawn_script


@pytest.fixture
def shot_set(tmp_path: Path) -> ShotSet:
    draw_shot_set(tmp_path, stories=1)
    script = drawn_script()
    script["Shots"][2]["Characters Appearing"]["en"].reverse()  # the fox first, who appears least
    (tmp_path / "ViStory/01/story.json").write_text(json.dumps(script), "utf-8")
    return read_shot_set(tmp_path)[0]


def requests(shot_set: ShotSet, **options: Any) -> list[Any]:
    return list(shot_requests(shot_set, RequestOptions(**options)))


def test_request_when_nothing_is_chosen_has_every_part_in_order(shot_set: ShotSet) -> None:
    first = requests(shot_set)[0]
    assert first["prompt"].splitlines() == [
        "Medium shot, low-angle shot", "Part 1 of the tale.", "Mira stands still",
        "Mira: wears a coat of colour (200, 40, 40)", "Daytime, a dry well",
    ]  # fmt: skip
    assert (first["cut"], first["width"], first["height"], first["seed"]) == (0, 1344, 768, 42)
    assert first["references"] == [{"character": "Mira", "file": "01/image/Mira/00.png"}]
    assert (shot_set.folder / first["references"][0]["file"]).is_file()


def test_request_when_references_are_few_goes_by_number_of_appearances(shot_set: ShotSet) -> None:
    third = requests(shot_set, references=2)[2]
    assert [one["character"] for one in third["references"]] == ["Mira", "Old Tomas"]
    assert third["left_out"] == ["The Fox"]
    many = requests(shot_set, per_character=2)[0]
    assert [one["file"][-6:] for one in many["references"]] == ["00.png", "01.png"]


def test_request_when_the_prompt_is_too_long_is_cut_between_words_and_says_so(shot_set: ShotSet) -> None:
    whole = requests(shot_set)[0]["prompt"]
    cut = requests(shot_set, max_chars=20)[0]
    assert cut["prompt"] == "Medium shot,"
    assert cut["cut"] == len(whole) - len("Medium shot,")
    chinese = requests(shot_set, language="ch", max_chars=4, parts=("setting",))[0]
    assert chinese["prompt"] == "白天，枯"


def test_request_shows_earlier_shots_where_asked(shot_set: ShotSet) -> None:
    assert [one["previous"] for one in requests(shot_set, previous=2)] == [[], [1], [1, 2], [2, 3], [3, 4]]
    assert requests(shot_set)[4]["previous"] == []


@pytest.mark.parametrize(
    ("option", "options"),
    [
        ("--language", {"language": "fr"}), ("--part", {"parts": ("lights",)}), ("--part", {"parts": ()}),
        ("--max-chars", {"max_chars": 0}), ("--references", {"references": -1}),
        ("--per-character", {"per_character": 0}), ("--width", {"width": 1}),
    ],
)  # fmt: skip
def test_request_when_an_option_is_wrong_names_it(
    shot_set: ShotSet, option: str, options: dict[str, Any]
) -> None:
    with pytest.raises(ConfigError, match=option):
        requests(shot_set, **options)
