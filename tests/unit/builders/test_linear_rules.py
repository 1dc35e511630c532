"""The rules do work in proportion to a text's length, whatever it is made of: counted in calls."""

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

import pytest

from fabula.builders.katha.choosing.screen_stories import event_share, personal_data
from fabula.builders.katha.draft_scenes import describe_scenes, draft_scene_texts
from fabula.builders.text.boundaries import analyze
from fabula.schemas.canonical import Json
from fabula.schemas.text import normalize_text

UNITS = {
    "no full stop": "the fox ran and the hen saw him because he was hungry ",
    "commas alone": "a, ",
    "clauses": "the fox ran home, the hen was sad, ",
    "words in a row": "fox, hen, ",
    "one word": "fox ",
    "no spaces": "abc",
    "spaces": "a   ",
    "quotes": '"',
    "quotes never closed": "“a ",
    "quoted words": '"he said, and ran" ',
    "Chinese": "狐狸跑到河边然后看见了鸟",
    "Chinese with commas": "狐狸跑，",
    "Thai": "สุนัขจิ้งจอก",
    "emoji": "🦊 ",
    "brackets": "( ",
    "and": "fox and ",
    "and, with verbs": "and ran ",
    "newlines": "the fox ran\n\n",
    "semicolons": "fox; ",
    "dashes": "the fox — ",
    "names": "Anna and Berta saw Carl ",
    "capital letters": "A ",
    "a title again and again": "Dr. ",
    "numbers": "1,000 ",
    "apostrophes": "' ",
    "feelings": "happy sad ",
    "sentences": "The fox ran. ",
}
SIZE = 1500
SLACK = 2.3
"""How many times the calls may grow where the text grows twofold; in proportion they grow by 2."""
SENTENCES = "The fox ran home because he was hungry, and the hen saw him. Anna was sad. They left."


def text_of(unit: str, size: int) -> str:
    return normalize_text((unit * (size // len(unit) + 1))[:size])


def names_of(size: int) -> str:
    """A text in which no name stands twice."""
    letters = "abcdefghijklmnopqrstuvwxyz"
    names = (letters[n % 26].upper() + letters[n // 26 % 26] + letters[n // 676] for n in range(size // 8))
    return " ".join(f"{name} saw" for name in names)


def story_of(text: str) -> Json:
    return {
        "id": "s1", "title": "A title", "language": "en", "normalized_text": text,
        "narrative_type": None, "moral_label": None,
    }  # fmt: skip


def draft(text: str) -> None:
    story = story_of(text)
    personal_data(text)
    analysis = analyze(story)
    event_share(text, analysis)
    texts = draft_scene_texts({"text": text, **story}, analysis, 5)
    if texts is not None:
        describe_scenes(story, analysis, texts)


def calls_of(work: Callable[[str], None], text: str) -> int:
    """How many functions, Python's and the interpreter's own, a piece of work calls."""
    count = 0

    def look(_frame: FrameType, event: str, _argument: Any) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(look)
    try:
        work(text)
    finally:
        sys.setprofile(before)
    return count


@pytest.fixture(scope="module", autouse=True)
def _lists_are_loaded() -> None:
    draft(SENTENCES)


@pytest.mark.parametrize("name", [*UNITS, "names that differ"])
def test_rules_when_a_text_grows_do_work_in_proportion(name: str) -> None:
    sizes = (SIZE, 2 * SIZE, 4 * SIZE)
    texts = [names_of(size) if name not in UNITS else text_of(UNITS[name], size) for size in sizes]
    calls = [calls_of(draft, text) for text in texts]
    assert calls[2] <= SLACK * calls[1] + 2000, calls
    assert calls[2] <= SLACK * SLACK * calls[0] + 2000, calls
