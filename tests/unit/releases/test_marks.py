import re

import pytest

from fabula.releases.hidden.marks import Marks

STORY = " ".join(f"word{number}" for number in range(60))
OPENING = STORY[:120]
CHINESE = (
    "从前有一个渔夫住在海边每天清晨出海打鱼" * 2
    + "有一天他捕到了一条会说话的金鱼金鱼请求他放了自己并答应实现他的三个愿望" * 2
)


@pytest.fixture
def marks() -> Marks:
    """What gives away one English and one Chinese story."""
    quotes = frozenset(
        {OPENING, STORY[-120:], CHINESE[:80], "one two three four five and nothing more of it"}
    )
    return Marks(re.compile(b"kb25k_0002"), quotes, {"a_1": STORY, "a_2": CHINESE}, frozenset())


@pytest.mark.parametrize(
    "text",
    [
        OPENING,
        f"He said: {OPENING} and so on",
        OPENING.replace(" ", "\n   "),
        f"{'x ' * 500}{STORY[-120:]}",
        f"说：{CHINESE[:80]}。",
    ],
    ids=["alone", "within", "wrapped", "late", "unspaced"],
)
def test_a_quote_when_it_stands_anywhere_in_a_text_is_found(marks, text):
    assert any("characters of a hidden story, from" in found for found in marks.findings(text))
    assert marks.findings(text)  # and again
    assert not any(part in found for found in marks.findings(text) for part in (OPENING[:20], CHINESE[:13]))


@pytest.mark.parametrize("text", ["", "short", OPENING[1:-1], OPENING.upper(), "x" * 5000, " " * 500])
def test_a_text_when_it_holds_no_quote_is_clean(marks, text):
    assert marks.findings(text) == []


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (STORY.replace("word20", "other").upper(), "a text like the hidden story a_1"),
        (
            STORY.upper() + " ".join(f"more{number}" for number in range(200)),
            "holds most of the hidden story a_1",
        ),
        (CHINESE[20:], "a text like the hidden story a_2"),
        (STORY.upper()[: len(STORY) // 2] + "x" * 300, None),
    ],
    ids=["a word less", "among others", "unspaced", "half"],
)
def test_a_text_when_it_is_like_a_hidden_story_is_told(marks, text, told):
    found = [one for one in marks.findings(text) if "hidden story a_" in one]
    assert (found == []) if told is None else (len(found) == 1 and told in found[0])


def test_marks_when_there_is_no_hidden_story_find_nothing():
    assert Marks(re.compile(b"(?!)"), frozenset(), {}, frozenset()).findings(STORY) == []
