"""Figure 4 of StoryEval from its published suite."""

import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

from fabula.releases.events.figures import class_groups, event_figures, word_counts
from fabula.releases.events.suites import load_suite

pytestmark = pytest.mark.parity
SVG = "{http://www.w3.org/2000/svg}"


def texts(figure: str) -> list[str]:
    return ["".join(node.itertext()) for node in ElementTree.fromstring(figure).iter(f"{SVG}text")]


def test_suite_when_published_has_the_groups_that_the_paper_names(reference: Path) -> None:
    suite = load_suite(reference / "storyeval/prompts/all_prompts.json")
    groups = class_groups(suite)
    assert groups["object", "creative", "hard"] == 14  # Figure 4
    assert sum(count for group, count in groups.items() if {"creative", "hard"} <= set(group)) == 44
    figures = event_figures(suite)
    shown = texts(figures["upset.svg"])
    assert {"423 prompts by class", "Retrieval", "Human", "14", "110"} <= set(shown)
    assert "Medium" not in shown
    words = texts(figures["words.svg"])
    assert len(words) > 50
    assert not {"person", "man", "the"} & set(words)
    assert words[0] in dict(word_counts(suite).most_common(2))
