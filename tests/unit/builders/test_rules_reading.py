"""The parts of the rules planner, each on texts small enough to see the answer."""

import pytest

from fabula.builders.text.analyze_story import analyze
from fabula.builders.text.boundaries import divide
from fabula.builders.text.segments import Analysis, Segment, segment_text
from fabula.builders.text.spans import scene_spans
from fabula.builders.text.words import pick, share


def analysed(text, language="en"):
    return Analysis.from_json(analyze({"normalized_text": text, "language": language}))


def names(text):
    return [entity.name for entity in analysed(text).entities]


def clauses(text, language="en"):
    return [text[s.start : s.end] for s in segment_text(text, language, language == "en")]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The fox ran home, and the crow flew away.", ["The fox ran home,", "and the crow flew away."]),
        ("The fox slept until the crow came back.", ["The fox slept", "until the crow came back."]),
        ("He bought figs, dates, and ripe olives.", ["He bought figs, dates, and ripe olives."]),
        ("The jar held 10,000 gold coins of old.", ["The jar held 10,000 gold coins of old."]),
        ('"Stop it, and let me go," he said.', ['"Stop it, and let me go," he said.']),
        ("Mr. Fox ran. He hid.", ["Mr. Fox ran.", "He hid."]),
        ("... He ran away.", ["... He ran away."]),
    ],
)
def test_segments_when_cut_end_at_sentences_and_clauses(text, expected) -> None:
    assert clauses(text) == expected


@pytest.mark.parametrize(
    ("text", "language", "expected"),
    [
        ("राजा आया। वह गया।", "hi", ["राजा आया।", "वह गया।"]),
        ("狐狸跳起来，想摘葡萄。它走了！", "zh", ["狐狸跳起来，", "想摘葡萄。", "它走了！"]),
        ("جاء الفأر وقرض الحبال، ثم نجا الأسد منها.", "ar", ["جاء الفأر وقرض الحبال،", "ثم نجا الأسد منها."]),
    ],
)
def test_segments_when_not_english_are_cut_at_punctuation(text, language, expected) -> None:
    assert clauses(text, language) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The wolf saw a lamb. The wolf was hungry.", ["wolf"]),  # the lamb is in one sentence alone
        ("Everyone loved Hermes. Hermes rose.", ["Hermes"]),
        ("King Shibi slept. Then King Shibi woke.", ["Shibi"]),
        ("Silence fell. The wind blew. Suddenly it rained. Silence fell.", []),
        ("The onions talked. The onions wept.", []),
        ("They lived in Mathura. They came from Mathura.", []),
        ("On Monday we ate. We slept on Monday.", []),
        ("On Tuesday Mara came. Mara sang.", ["Mara"]),
        ("He met Mara, and she ran. The boy saw Mara again.", ["Mara"]),
        ("SALT was dear, and SALT was rare. They wanted SALT.", []),
        ("She saw the Thames. Boats were on the Thames.", []),
        ("I told the Fox to go. Then the Fox ran.", ["Fox"]),
        ("I went home. I slept, and I woke.", []),
        ("We saw a judge. The judge was old.", []),  # a verb as well
    ],
)
def test_characters_when_two_sentences_name_them_are_found_and_nobody_else(text, expected) -> None:
    assert names(text) == expected


def test_scenes_when_nothing_else_speaks_are_of_equal_length() -> None:
    text = " ".join(["Aa bb cc dd."] * 12)
    segments = segment_text(text, "xx", False)
    spans = divide(text, Analysis(False, segments, ()), 4)
    assert [text[a:b].count(".") for a, b in spans] == [3, 3, 3, 3]


def test_scenes_when_a_time_word_opens_a_sentence_begin_there() -> None:
    # Five sentences of five words: 2 + 3 and 3 + 2 cost the same, but for the cue.
    plain = "He ran and ran on. He sat by the fire. He ate up his bread. {} He slept like a stone."
    starts = {}
    for sentence in ("He came by once more.", "Soon he came by again."):
        text = plain.format(sentence)
        starts[sentence] = text[divide(text, analysed(text), 2)[1][0] :].split()[0:2]
    assert list(starts.values()) == [["He", "ate"], ["Soon", "he"]]


def test_scenes_when_segments_are_too_few_are_none() -> None:
    text = "He ran."
    assert divide(text, Analysis(True, (Segment(0, 7, 0, 0),), ()), 2) is None


def test_chance_when_asked_depends_on_its_parts_alone() -> None:
    assert share("a", "b") == share("a", "b") != share("ab", "")
    drawn = [share("story", str(n)) for n in range(1000)]
    assert min(drawn) >= 0 and max(drawn) < 1 and abs(sum(drawn) / 1000 - 0.5) < 0.05
    assert pick(["x"], "any") == "x"


@pytest.mark.parametrize(
    ("text", "scenes", "expected"),
    [
        ("a b c", ["a b", "c"], ((0, 3), (4, 5))),
        ("他来了。她走了。", ["他来了。", "她走了。"], ((0, 4), (4, 8))),
        ("a b c", ["a  b", "c"], ((0, 3), (4, 5))),
        ("a b c", ["a", "c"], None),
        ("a b c", ["a b c", ""], None),
        ("a b c", ["a b"], None),
        ("a b c", ["c", "a b"], None),
    ],
)
def test_spans_when_scenes_cover_the_text_are_exact_else_none(text, scenes, expected) -> None:
    assert scene_spans(text, scenes) == expected
