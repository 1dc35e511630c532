"""What speaks for and against a new scene at a sentence, on sentences whose answer a reader can see."""

import pytest

from fabula.builders.text.analyze_story import analyze
from fabula.builders.text.boundaries import divide
from fabula.builders.text.openings import opening_costs, paragraph_starts
from fabula.builders.text.segments import Analysis
from fabula.schemas.text import normalize_text


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


def test_paragraphs_when_the_story_is_told_in_another_text_are_unknown() -> None:
    assert paragraph_starts("One came.\n\nTwo went.", "One came, and two went.") == frozenset()


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
