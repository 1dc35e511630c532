"""Figures of suites and of episodes: what they hold is what is counted."""

import xml.etree.ElementTree as ElementTree
from collections import Counter
from pathlib import Path

import pytest

from fabula.errors import TargetError
from fabula.releases.entities.figures import episode_figures
from fabula.releases.entities.tree import read_entity_set
from fabula.releases.events.figures import draw_cloud
from fabula.releases.figures import wrapped, write_figures
from fabula.testing.written_episodes import write_episodes
from fabula.validators.entities.view import view_of

SVG = "{http://www.w3.org/2000/svg}"


def texts(figure: str) -> list[str]:
    return ["".join(node.itertext()) for node in ElementTree.fromstring(figure).iter(f"{SVG}text")]


def test_cloud_when_words_are_drawn_gives_more_frequent_ones_more_room() -> None:
    figure = draw_cloud(Counter({"river": 9, "hat": 3, "bridge": 1}))
    sizes = {
        node.text: float(node.get("font-size", 0))
        for node in ElementTree.fromstring(figure).iter(f"{SVG}text")
    }
    assert sizes["river"] > sizes["hat"] > sizes["bridge"]


def test_episode_when_drawn_shows_registry_strip_and_every_shot(tmp_path: Path) -> None:
    entity_set, _ = read_entity_set(write_episodes(tmp_path / "data"))
    figures = episode_figures(entity_set)
    episode = entity_set.episodes[0]
    first = {name: figure for name, figure in figures.items() if name.startswith("001-")}
    assert sorted(name.split("-")[-1] for name in first)[:2] == ["registry.svg", "strip.svg"]
    for figure in first.values():
        ElementTree.fromstring(figure)
    (timeline,) = [figure for name, figure in first.items() if "timeline" in name]
    said = "".join("".join(texts(timeline)).split())
    for shot in view_of(episode.episode_id, episode.script).shots:
        assert "".join(shot.action.split()) in said


def test_figures_when_the_folder_is_there_are_not_written(tmp_path: Path) -> None:
    write_figures(tmp_path / "out", {"one.svg": "<svg/>"})
    assert (tmp_path / "out/one.svg").read_text() == "<svg/>"
    with pytest.raises(TargetError):
        write_figures(tmp_path / "out", {"one.svg": "<svg/>"})


def test_wrapped_when_a_text_is_long_keeps_every_word() -> None:
    text = "a " * 50 + "word"
    lines = list(wrapped(text, 100))
    assert len(lines) > 2
    assert " ".join(lines) == text
