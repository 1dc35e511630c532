"""The parts of the rules planner, each on texts small enough to see the answer."""

import pytest

from fabula.builders.text.boundaries import analyze, divide, opening_costs, paragraph_starts, scene_spans
from fabula.builders.text.segments import Analysis, segment_text, trim
from fabula.schemas.text import normalize_text


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
    ("text", "span"), [(" \n a b\t ", (3, 6)), ("ab", (0, 2)), (" ", (1, 1)), ("", (0, 0))]
)
def test_span_when_trimmed_has_no_white_space_at_its_ends(text, span) -> None:
    assert trim(text, 0, len(text)) == span


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


def test_scenes_when_a_time_word_opens_a_sentence_begin_there() -> None:
    # Five sentences of five words: 2 + 3 and 3 + 2 cost the same, but for the cue.
    plain = "He ran and ran on. He sat by the fire. He ate up his bread. {} He slept like a stone."
    starts = {}
    for sentence in ("He came by once more.", "Soon he came by again."):
        text = plain.format(sentence)
        starts[sentence] = text[divide(text, analysed(text), 2)[1][0] :].split()[0:2]
    assert list(starts.values()) == [["He", "ate"], ["Soon", "he"]]


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


# What speaks for and against a new scene at a sentence, on sentences whose answer a reader can see.


def read(text: str) -> Analysis:
    return Analysis.from_json(analyze({"normalized_text": text, "language": "en"}))


def costs(text: str) -> list[float]:
    return list(opening_costs(text, read(text), frozenset()).values())


def scenes(text: str, count: int) -> list[str]:
    normal = normalize_text(text)
    spans = divide(normal, read(normal), count, paragraph_starts(text, normal))
    assert spans is not None
    return [normal[start:end] for start, end in spans]


@pytest.mark.parametrize(
    ("text", "starts"),
    [
        ("One came.\n\nTwo\nwent.", {0, 10}),
        ("One came.\nTwo went.\n", {0, 10}),
        ("One came and\nwent. Two\nwent.", {0}),
        ("One came.", {0}),
    ],
)
def test_paragraphs_when_lines_are_empty_or_end_sentences_are_known(text, starts) -> None:
    assert paragraph_starts(text, normalize_text(text)) == starts


@pytest.mark.parametrize(
    ("dear", "cheap"),
    [
        # An answer belongs to what was said, and what is said to its announcement.
        ('The fox ate. "Who is there?" asked the hen. "I," said the dog.', "The hen ate. The dog went in."),
        ("The fox came to the gate. \"Open the gate,\" she said.", "The fox came to it. The gate fell."),
        # A result and a pronoun go on; a time begins.
        ("The fox lay ill. So the hen went home.", "The fox lay ill. The hen went home."),
        ("The fox lay ill. He ate nothing.", "The fox lay ill. The fox ate nothing."),
        ("The fox lay ill. The fox ate nothing.", "The fox lay ill. On Tuesday the fox ate nothing."),
        ("The fox lay ill. The fox ate nothing.", "The fox lay ill. Six years afterwards the fox ate."),
        ("The fox lay ill. The fox ate nothing.", "The fox lay ill. One winter's night the fox ate."),
        # What was only just opened is not over.
        ("That evening the fox lay in bed. The dog ate.", "The fox lay ill in his bed. The dog ate."),
    ],
)  # fmt: skip
def test_a_scene_when_the_sentence_goes_on_begins_there_at_a_higher_cost(dear, cheap) -> None:
    assert costs(dear)[-1] > costs(cheap)[-1]


def test_sentences_when_a_quotation_ends_with_a_full_stop_are_two() -> None:
    text = '"Sit down. You keep the sun off me." Nobody had asked the giant to sit.'
    segments = read(text).segments
    assert [text[s.start : s.end] for s in segments][-1] == "Nobody had asked the giant to sit."


def test_scenes_when_paragraphs_are_marked_begin_with_them() -> None:
    # By length alone the second scene would begin with the third or the fourth of six like sentences.
    plain = ["The fox ran and ran.", "The hen sat and sat."] * 3
    marked = [*plain[:4], "\n\n" + plain[4], plain[5]]
    assert [scene.count(".") for scene in scenes(" ".join(marked), 2)] == [4, 2]


def test_scenes_when_people_talk_keep_question_and_answer_together() -> None:
    text = (
        'The king sat in his hall. A beggar came in. "What do you want?" asked the king. '
        '"Bread," said the beggar. The cook brought a loaf. The next day the beggar was a prince.'
    )
    parts = scenes(text, 3)
    assert any("What do you want" in part and "Bread" in part for part in parts)
    assert parts[-1].startswith("The next day")
