"""What generators are given for episodes: every way to adapt a script, worked out by hand."""

import json
from pathlib import Path
from typing import Any

import pytest

from fabula.errors import ConfigError, TargetError
from fabula.releases.entities.requests import RequestOptions, entity_requests, write_requests
from fabula.releases.entities.tree import EntitySet, read_entity_set
from fabula.testing.written_episodes import CAST, SHOTS, write_episodes

ANA, CUP = CAST["Character 1"][1], CAST["Object 1"][1]


@pytest.fixture
def episodes(tmp_path: Path) -> EntitySet:
    return read_entity_set(write_episodes(tmp_path / "data"))[0]


def asked(episodes: EntitySet, **options: Any) -> list[Any]:
    return list(entity_requests(episodes, RequestOptions(**options)))


def test_requests_when_nothing_is_asked_for_are_the_prompts_of_the_files(episodes: EntitySet) -> None:
    lines = asked(episodes)
    prompts = [shot.prompt for episode in episodes.episodes for shot in episode.script.shots()]
    assert [line["prompt"] for line in lines] == prompts
    assert [line["file"] for line in lines][:3] == [
        "ep_a/001_001.mp4", "ep_a/001_002.mp4", "ep_a/002_001.mp4",
    ]  # fmt: skip
    assert [line["continues"] for line in lines[:5]] == [
        None, "ep_a/001_001.mp4", None, "ep_a/002_001.mp4", "ep_a/002_002.mp4",
    ]  # fmt: skip
    assert [line["seed"] for line in lines] == [42, 43, 44, 45, 46, 42, 43]


def test_requests_when_headers_are_left_out_or_injected_describe_who_is_asked_for(
    episodes: EntitySet,
) -> None:
    last = SHOTS[4][1]
    assert asked(episodes, header="none")[4]["prompt"] == last
    assert asked(episodes, header="first")[4]["prompt"] == last
    injected = asked(episodes, header="all")[4]
    assert injected["prompt"].splitlines() == [
        f"Ana: {ANA}", f"Ben: {CAST['Character 2'][1]}", f"The Garden: {CAST['Location 2'][1]}",
        f"the red cup: {CUP}", "", last,
    ]  # fmt: skip
    cup = injected["entities"][3]
    assert cup == {
        "name": "the red cup", "as": "the red cup", "type": "object", "label": "Object 1", "description": CUP,
        "described": True, "shown_in": ["ep_a/001_001.mp4"],
    }  # fmt: skip
    first = asked(episodes, header="first")
    assert first[0]["prompt"] == asked(episodes)[0]["prompt"]
    assert [one["described"] for one in first[1]["entities"]] == [False, True, False]


def test_requests_when_ids_stand_for_names_replace_whole_names_only(
    episodes: EntitySet, tmp_path: Path
) -> None:
    line = asked(episodes, ids=("character",))[1]
    assert line["prompt"].endswith("[character2] runs into The Kitchen and waves at [character1].")
    assert [one["as"] for one in line["entities"]] == ["[character1]", "[character2]", "The Kitchen"]
    both = asked(episodes, ids=("character", "location", "object"), header="none")[0]
    assert both["prompt"] == "[character1] fills [object1] at the sink of [location1]."
    path = tmp_path / "data/scripts/ep_a.json"
    text = path.read_text("utf-8").replace("the red cup", "the cup of Ana")
    path.write_text(text, "utf-8")
    again = asked(read_entity_set(tmp_path / "data")[0], ids=("character",), header="none")[0]
    assert again["prompt"] == "[character1] fills the cup of Ana at the sink of The Kitchen."


def test_requests_when_prompts_are_too_long_are_cut_at_a_space_and_counted(episodes: EntitySet) -> None:
    line = asked(episodes, header="none", max_chars=12)[0]
    assert (line["prompt"], line["cut_off"]) == ("Ana fills", len(SHOTS[0][1]) - 9)


def test_requests_when_the_registry_lacks_a_name_leave_it_undescribed(tmp_path: Path) -> None:
    folder = write_episodes(tmp_path / "data")
    path = folder / "scripts/ep_b.json"
    document = json.loads(path.read_bytes())
    document["entity_schedule"]["1:2"]["objects"].append("microphone")
    path.write_text(json.dumps(document), "utf-8")
    line = asked(read_entity_set(folder)[0], header="all", ids=("object",))[-1]
    assert "microphone" not in line["prompt"]
    last = line["entities"][-1]
    assert (last["name"], last["as"], last["label"], last["description"]) == (
        "microphone", "[object2]", None, None,
    )  # fmt: skip


def test_requests_when_written_are_one_line_each_in_a_new_folder(episodes: EntitySet, tmp_path: Path) -> None:
    told = write_requests(episodes, tmp_path / "out", RequestOptions(max_chars=60))
    assert told == {"requests": 7, "shots": 7, "cut": 5}
    lines = (tmp_path / "out/requests.jsonl").read_text("utf-8").splitlines()
    assert [json.loads(line)["key"] for line in lines[:2]] == ["1:1", "1:2"]
    with pytest.raises(TargetError):
        write_requests(episodes, tmp_path / "out")
    with pytest.raises(ConfigError, match="--split"):
        write_requests(episodes, tmp_path / "other", RequestOptions(split="none"))
