"""The parts of the rules planner, each on texts small enough to see the answer."""

import pytest

from fabula.builders.katha.annotate_transitions import find_links, intention_of
from fabula.builders.katha.contrast_rules import (
    break_causal_link,
    flatten_emotion,
    remove_consequence,
    reorder_events,
    replace_outcome,
    reverse_motivation,
)
from fabula.builders.katha.label_story import moral_label, narrative_type
from fabula.builders.katha.question_rules import accepted_answers
from fabula.builders.text.boundaries import divide
from fabula.builders.text.emotions import dominant, emotion_words
from fabula.builders.text.reading import StoryView
from fabula.builders.text.segments import Analysis, Feeling, Segment, segment_text, strip_lead
from fabula.builders.text.spans import scene_spans
from fabula.builders.text.words import base_form, pick, share
from fabula.testing.katha_rules import Rules

PLANNER = Rules()


def analyze(text, language="en"):
    return Analysis.from_json(PLANNER.analyze({"normalized_text": text, "language": language}))


def names(text, character=True):
    return [entity.name for entity in analyze(text).entities if entity.character is character]


def clauses(text, language="en"):
    return [text[s.start : s.end] for s in segment_text(text, language, language == "en")]


def view(*scenes, language="en"):
    text = " ".join(scenes)
    story = {"id": "t", "title": "T", "normalized_text": text, "language": language}
    return StoryView(story, PLANNER.analyze(story), scenes)


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
    ("clause", "core"),
    [
        ("and so the fox ran,", "the fox ran"),
        ("But when he came home,", "he came home"),
        ("After a mile he stopped.", "After a mile he stopped"),
        ("After he stopped.", "he stopped"),
        ("Before sunset a fox came", "Before sunset a fox came"),
        ("So what?", "So what"),
    ],
)
def test_lead_when_a_connective_is_stripped_unless_a_preposition(clause, core) -> None:
    assert strip_lead(clause) == core


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("A wolf drinking upstream saw a lamb.", ["wolf", "lamb"]),
        ("King Shibi slept. Then Shibi woke, and the king wept.", ["King Shibi", "king"]),
        ("Everyone loved Hermes. Hermes rose.", ["Hermes"]),
        ("Silence fell. The wind blew. Suddenly it rained.", []),
        ("A fowler crept near. The current swept on.", ["fowler"]),
        ("He can fly and fool a judge.", ["judge"]),
        ("They lived in Mathura. They came from Mathura.", []),
        ("On Monday I went to see Uncle Tom.", ["Uncle Tom"]),
    ],
)
def test_characters_when_named_are_found(text, expected) -> None:
    assert names(text) == expected


def test_things_when_listed_or_repeated_are_found() -> None:
    text = "She set the pitcher on the shelf. The shelf broke. In the time of need the water rose."
    assert names(text, character=False) == ["pitcher", "shelf", "water"]


@pytest.mark.parametrize(
    ("text", "emotion"),
    [
        ("The hare was afraid.", "fear"),
        ("The hare was not afraid.", None),
        ("The hare was sad and glad.", None),
        ("The hare ate a carrot.", None),
        ("The hare was glad, and joy filled her, though she was sad.", "joy"),
    ],
)
def test_emotion_when_words_tell_it_is_named_else_null(text, emotion) -> None:
    assert dominant(analyze(text).feelings) == emotion


def test_emotion_words_when_of_two_emotions_weigh_half() -> None:
    table = emotion_words()
    assert table["afraid"] == (("fear", 1.0),)
    shared = [emotions for emotions in table.values() if len(emotions) == 2]
    assert shared and all(weight == 0.5 for emotions in shared for _, weight in emotions)
    assert max(map(len, table.values())) == 2


def test_dominant_emotion_when_below_the_threshold_is_null() -> None:
    assert dominant([Feeling(0, "x", "fear", 0.4)]) is None


def test_scenes_when_nothing_else_speaks_are_of_equal_length() -> None:
    text = " ".join(["Aa bb cc dd."] * 12)
    segments = segment_text(text, "xx", False)
    spans = divide(text, Analysis(False, segments, (), ()), 4)
    assert [text[a:b].count(".") for a, b in spans] == [3, 3, 3, 3]


def test_scenes_when_a_time_word_opens_a_sentence_begin_there() -> None:
    # Five sentences of five words: 2 + 3 and 3 + 2 cost the same, but for the cue.
    plain = "He ran and ran on. He sat by the fire. He ate up his bread. {} He slept like a stone."
    starts = {}
    for sentence in ("He came by once more.", "Soon he came by again."):
        text = plain.format(sentence)
        starts[sentence] = text[divide(text, analyze(text), 2)[1][0] :].split()[0:2]
    assert list(starts.values()) == [["He", "ate"], ["Soon", "he"]]


def test_scenes_when_segments_are_too_few_are_none() -> None:
    text = "He ran."
    assert divide(text, Analysis(True, (Segment(0, 7, 0, 0),), (), ()), 2) is None


@pytest.mark.parametrize(
    ("text", "kind", "effect", "reason"),
    [
        ("The fox fled because the dog barked.", "cause", "The fox fled", "the dog barked"),
        ("Because the dog barked, the fox fled far.", "cause", "the fox fled far", "the dog barked"),
        ("The dog barked loudly, so the fox fled far.", "cause", "the fox fled far", "The dog barked loudly"),
        ("The fox crept in to steal a hen.", "purpose", "The fox crept in", "to steal a hen"),
        ("The fox crept in, hoping to catch a hen.", "purpose", "The fox crept in", "hoping to catch a hen"),
    ],
)
def test_links_when_a_connective_states_them_are_found(text, kind, effect, reason) -> None:
    (link,) = find_links(view(text, "The end came."))
    assert (link.kind, link.effect, link.reason) == (kind, effect, reason)


@pytest.mark.parametrize(
    "text", ["The fox wanted to see a hen.", "He ran so far away.", "The dog barked. The fox fled."]
)
def test_links_when_none_is_stated_are_none(text) -> None:
    assert find_links(view(text, "The end came.")) == ()


def test_intention_when_stated_is_quoted_else_null() -> None:
    told = view("The fox decided to steal a hen.", "He ran.")
    assert intention_of(told, (0, 1)) == "The fox decided to steal a hen"
    assert intention_of(told, (1,)) is None


def test_answers_when_derived_are_distinct_and_not_in_the_question() -> None:
    found = accepted_answers("but the old fox ran home, and slept", "What did the crow do?", english=True)
    assert found == (
        "but the old fox ran home, and slept",
        "the old fox ran home, and slept",
        "old fox ran home, and slept",
        "the old fox ran home",
    )


@pytest.mark.parametrize(
    ("gold", "question"),
    [("he was it", "Who?"), ("the fox", "Was it the fox?"), ("", "Why?"), ("a " * 40, "Why?")],
)
def test_answers_when_degenerate_leaked_or_too_long_are_none(gold, question) -> None:
    assert accepted_answers(gold, question, english=True) is None


@pytest.mark.parametrize(
    ("operation", "scene", "expected"),
    [
        (
            remove_consequence,
            "The mouse chewed, and the net broke open.",
            "The mouse chewed, and the net did not break open.",
        ),
        (reverse_motivation, "Out of pity the man came.", "Out of spite the man came."),
        (replace_outcome, "At last the lion escaped.", "At last the lion was caught."),
        (flatten_emotion, "Afraid of dogs, he wept.", "Aware of dogs, he waited."),
        (break_causal_link, "He ran because it rained.", "He ran for no reason that anyone could see."),
        (reorder_events, "He ran. He slept. He ate.", "He ran. He ate. He slept."),
    ],
)
def test_operation_when_it_applies_changes_the_scene(operation, scene, expected) -> None:
    found = [change.text for change in operation(view("The end of it came.", scene), 1)]
    assert expected in found


@pytest.mark.parametrize(
    "operation", [reverse_motivation, replace_outcome, flatten_emotion, break_causal_link, reorder_events]
)
def test_operation_when_nothing_applies_finds_nothing(operation) -> None:
    assert list(operation(view("The man sat down.", "The man stood up."), 1)) == []


@pytest.mark.parametrize(
    ("past", "base"),
    [("jumped", "jump"), ("loved", "love"), ("stopped", "stop"), ("carried", "carry"), ("ran", "run"),
     ("refused", "refuse"), ("longed", "long"), ("opened", "open"), ("died", "die"), ("rolled", "roll")],
)  # fmt: skip
def test_base_form_when_past_is_found(past, base) -> None:
    assert base_form(past) == base


def test_labels_when_cue_words_settle_them_else_null() -> None:
    assert moral_label("He was brave and bold, and he dared to go.") == "courage"
    assert moral_label("The moral is that patience pays.") == "patience"
    assert moral_label("He was brave and kind.") is None
    assert narrative_type("He ran.") is None


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
