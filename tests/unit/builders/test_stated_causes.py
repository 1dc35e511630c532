"""Causes that a text states, and how they are denied: sentences whose reading is plain."""

import pytest

from fabula.builders.katha.stated_causes import find_breaks, find_causes
from fabula.builders.text.analyze_story import analyze
from fabula.builders.text.reading import StoryView


def view(text: str) -> StoryView:
    story = {"id": "s1", "title": "T", "language": "en", "text": text, "normalized_text": text}
    return StoryView(story, analyze(story), [text])


@pytest.mark.parametrize(
    ("text", "cause", "effect"),
    [
        ("The well sank so low that a boy was sent down.", "the well sank so low that a boy was sent down",
         "a boy was sent down"),
        ("The rope broke, and so the boy seized the other one.",
         "the rope broke, and so the boy seized the other one", "the boy seized the other one"),
        ("The fox ran home because the dog barked.", "the fox ran home because the dog barked",
         "the fox ran home"),
        ("The ant was busy. So the hen went home.", "the ant was busy, so the hen went home",
         "the hen went home"),
        ("Because the ant was busy, the hen went home.", "because the ant was busy, the hen went home",
         "the hen went home"),
        ("The owl stayed at home, because it was dark.", "the owl stayed at home, because it was dark",
         "the owl stayed at home"),
        ("It was dark, so the hen went home.", "it was dark, so the hen went home", "the hen went home"),
    ],
)  # fmt: skip
def test_cause_when_a_connective_states_it_is_told_whole(text, cause, effect) -> None:
    (found,) = find_causes(view(text))
    assert (found.text, found.effect) == (cause, effect)


@pytest.mark.parametrize(
    "text",
    [
        "The fox ran home. The hen slept.",
        "The fox spread a net so that the hen would fall.",
        "The fox had slept since the hen went home.",
        '"The fox ran home because the dog barked," said the hen.',
        "The fox ran so far that I lost him.",
        "That only made it worse, so the fox ran home.",
        "She ran home because the dog barked.",
        "The fox saw the hen, so they say, in the barn.",
        "A heron, driven by hunger, flew to the pond.",
        "The rain fell so hard that the gutters broke.",
        "The fox was so tired that he could not run.",
        "The day was over, so the hen was glad.",
        "The hen laughed, because no hen had ever owned one.",
        "The shelf was low, so the boy gave the orders, since the girl had lost the book.",
        "The girl laughed; but the ford was dry, and the fish gasped, so the boy sat down.",
        "The man saw the boy. Dov was cold, so he ran home.",
    ],
)
def test_cause_when_nothing_states_it_or_somebody_is_not_named_is_not_told(text) -> None:
    assert find_causes(view(text)) == ()


@pytest.mark.parametrize(
    ("text", "changed"),
    [
        ("The well sank so low that a boy was sent down.",
         "The well sank very low; yet it was not for that reason that a boy was sent down."),
        ("The rope broke, so the boy seized the other one.",
         "The rope broke; yet it was not for that reason that the boy seized the other one."),
        ("The fox ran home because the dog barked.", "The fox ran home, though not because the dog barked."),
        ("The fox did not run because the dog barked.", None),
        ("The fox ran home because the dog barked, and the hen woke.", None),
        ("The rope broke, so the boy seized the other one, and the hen woke.", None),
        ("The boy pulled, but the rope broke, so the hen went home.", None),
        ("The rain fell so hard that the gutters broke.", None),
        ("The shelf was low, so the boy gave the orders, since the girl had lost the book.", None),
    ],
)  # fmt: skip
def test_link_when_it_is_denied_keeps_both_sides(text, changed) -> None:
    made = [text[: link.start] + link.new + text[link.end :] for link in find_breaks(view(text))]
    assert made == ([] if changed is None else [changed])
