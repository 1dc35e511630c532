"""The parts of the rules planner, each on texts small enough to see the answer."""

import pytest

from fabula.builders.katha.action_questions import ask_actions
from fabula.builders.katha.annotate_transitions import describe_transitions, intention_of
from fabula.builders.katha.contrast_rules import (
    break_causal_link,
    flatten_emotion,
    replace_outcome,
    reverse_motivation,
)
from fabula.builders.katha.label_story import moral_label, narrative_type
from fabula.builders.katha.question_rules import accepted_answers, ask_questions
from fabula.builders.text.boundaries import divide
from fabula.builders.text.emotions import emotion_words
from fabula.builders.text.reading import StoryView
from fabula.builders.text.segments import Analysis, Segment, segment_text, strip_lead
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
    ("text", "feelings"),
    [
        ("The hare was very afraid.", [("the hare", "afraid", "fear")]),
        ("The hare trembled with fear.", [("the hare", "fear", "fear")]),
        ("The hare was afraid of the dog.", [("the hare", "afraid", "fear")]),
        ("The hare was not afraid.", []),
        ("The hare had been afraid.", []),
        ("Nobody was afraid.", []),
        ('"The hare was afraid," he said.', []),
        ("The hare ate a carrot.", []),
    ],
)
def test_feelings_when_a_clause_tells_them_are_known_with_who_feels(text, feelings) -> None:
    felt = view(text, "The end came.").felt(0)
    assert [(one.statement.subject, one.word, one.emotion) for one in felt] == feelings


def test_emotion_of_a_scene_when_it_tells_two_is_null() -> None:
    told = view("The hare was afraid. The fox was glad.", "The hare was sad.")
    assert (told.emotion(0), told.emotion(1)) == (None, "sadness")


def test_emotion_words_when_of_two_emotions_weigh_half() -> None:
    table = emotion_words()
    assert table["afraid"] == (("fear", 1.0),)
    shared = [emotions for emotions in table.values() if len(emotions) == 2]
    assert shared and all(weight == 0.5 for emotions in shared for _, weight in emotions)
    assert max(map(len, table.values())) == 2


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
    ("text", "statements"),
    [
        ("A hungry fox ran home and hid.", ["the hungry fox ran home", "the hungry fox hid"]),
        ("One winter the fox, a thief, ran home.", [None]),
        ("The fox who saw the crow laughed.", [None]),
        ("The fox saw that the crow slept.", [None]),
        ("The wounded lion left behind cried.", [None]),
        ("The lion was caught and killed.", ["the lion was caught", None]),
        ('The fox cried, "I am lost!"', [None]),
        ("The crow, the fox thought, was old.", [None]),
        ("He bought figs, dates, and ripe olives.", [None]),
        ("By evening the pebbles lifted the water.", ["the pebbles lifted the water"]),
        ("The two men and the dog sat in the shade.", ["the two men and the dog sat in the shade"]),
        ("Goats ate the young trees.", ["goats ate the young trees"]),
    ],
)
def test_clauses_when_read_are_whole_else_unread(text, statements) -> None:
    read = view(text, "The end came.").statements[: len(statements)]
    assert [said and said.text for said in read] == statements


@pytest.mark.parametrize(
    ("text", "last"),
    [
        ("The fox met a hen. The hen saw a dog. The dog barked. He ran.", "the dog ran"),
        ("The fox saw the wolf. He ran.", None),
        ("The king met the girl. She wept.", "the girl wept"),
        ("The king met the queen's servant. He wept.", None),
        ("The tiger was hungry, so he forgot his promise.", "the tiger forgot his promise"),
        ("The owl met a mole. The owl looked at his wig.", None),
        ("The fox shook his head.", "the fox shook his head"),
        ("A dog became a judge. He slept.", "the dog slept"),
        ("Because he was poor, the potter worked.", "the potter worked"),
        ("The mice met the owl. They ran.", "the mice ran"),
        ("The others came. They laughed.", None),
    ],
)
def test_pronouns_when_one_noun_fits_are_replaced_else_the_clause_is_unread(text, last) -> None:
    said = view(text, "The end came.").statements[-2]
    assert (said and said.text) == last


@pytest.mark.parametrize(
    ("text", "effect", "cause"),
    [
        ("The fox fled because the dog barked.", "the fox fled", "the dog barked"),
        ("Because the dog barked, the fox fled far.", "the fox fled far", "the dog barked"),
        ("The dog barked loudly, so the fox fled far.", "the fox fled far", "the dog barked loudly"),
        ("The dog barked. Therefore the fox fled.", "the fox fled", "the dog barked"),
        ("The fox was so afraid that he fled.", "the fox fled", "the fox was very afraid"),
        ("The fox fled, for the dog barked.", "the fox fled", "the dog barked"),
    ],
)
def test_causes_when_both_clauses_are_read_are_found(text, effect, cause) -> None:
    (link,) = view(text, "The end came.").links
    assert (link.effect.text, link.cause.plain) == (effect, cause)


@pytest.mark.parametrize(
    "text",
    [
        "The fox wanted to see a hen.",
        "He ran so far away.",
        "The dog barked. The fox fled.",
        "The fox hid the hen so he could eat it.",
        "The fox fled because nobody helped.",
        "The dog barked, he said, because the fox fled.",
        "When the dog slept because the fox fled, it rained.",
        "The fox waited for the dog. The fox slept.",
        "The fox saw that a liar is not believed, because the dog barked.",
    ],
)
def test_causes_when_none_is_stated_or_read_are_none(text) -> None:
    assert view(text, "The end came.").links == ()


def test_intention_when_stated_is_quoted_else_null() -> None:
    told = view("A fox decided to steal a hen.", "He ran.")
    assert intention_of(told, (0, 1)) == "the fox decided to steal a hen"
    assert intention_of(told, (1,)) is None


@pytest.mark.parametrize(
    ("text", "question"),
    [
        ("A fox carried the hen home.", "Why did the fox carry the hen home?"),
        ("The dogs were afraid.", "Why were the dogs afraid?"),
        ("The dog could not swim.", "Why could the dog not swim?"),
        ("The dog had a bone.", "Why did the dog have a bone?"),
        ("The dog had lost a bone.", "Why had the dog lost a bone?"),
        ("The dog didn't bark.", "Why did the dog not bark?"),
    ],
)
def test_question_when_asked_about_a_clause_is_grammatical(text, question) -> None:
    said = view(text, "The end came.").statements[0]
    assert said is not None and said.asks("Why") == question


def asked(*scenes, **fields):
    told = view(*scenes)
    return [
        (question["question_type"], question["question"], question["gold_answer"])
        for question in ask_questions(told, describe_transitions(told, None), None)
    ]


def test_questions_when_the_story_says_it_outright_are_asked() -> None:
    assert asked("The dog barked.", "Therefore the fox fled.") == [
        ("causal", "Why did the fox flee?", "the dog barked"),
    ]
    assert asked("The fox fled because the dog barked.", "The end was near.") == [
        ("consequence", "What happened because the dog barked?", "the fox fled")
    ]
    assert asked("The end was near.", "The fox laughed with relief.") == [
        ("emotional", "How did the fox feel in scene 2?", "relief")
    ]
    assert asked("The dog barked.", "The fox fled. The fox was glad.") == []


@pytest.mark.parametrize(
    ("scenes", "question", "gold"),
    [
        (("The girl dried the cup with a towel.", "The end came."),
         "In scene 1, what did the girl dry with a towel?", "the cup"),
        (("The girl unrolled the carpet; the boy laughed.", "The end came."),
         "In scene 1, what did the girl unroll?", "the carpet"),
    ],
)  # fmt: skip
def test_actions_when_a_clause_has_one_thing_are_asked_for(scenes, question, gold) -> None:
    found = [asked for asked in ask_actions(view(*scenes)) if asked.gold == gold]
    assert [asked.question for asked in found] == [question]


@pytest.mark.parametrize(
    "scenes",
    [
        ("The girl folded every letter.", "The end came."),
        ("Each night the girl folded the letter.", "The end came."),
        ("The girl would have folded the letter.", "The end came."),
        ("The girl folded the letter. The boy folded the cloth.", "The end came."),
        ("The girl dreamed that the boy folded the letter.", "The end came."),
        ('"The girl folded the letter," said the boy.', "The end came."),
        ("The girl took her time.", "The end came."),
        ("A girl met a woman. She folded the letter.", "The end came."),
        ("The girl folded the letter. Another girl slept.", "The end came."),
        ("The girl folded the letter.", "The letter was old."),
        ("The girl carried away a spoon; at noon, a cup.", "The end came."),
        ("The girl turned the page.", "The end came."),
        ("The girl sat in a chair.", "The end came."),
        ("The girl pulled herself onto the rock.", "The end came."),
        ("The girl folded the letter, the cloth and the map.", "The end came."),
    ],
)
def test_actions_when_the_text_is_not_plain_are_not_asked_for(scenes) -> None:
    assert ask_actions(view(*scenes)) == []


@pytest.mark.parametrize(
    ("text", "clauses"),
    [
        ("The fox, who was last, ran home.", ["the fox ran home"]),
        ("The boy, the cat, the fox ran home.", []),
        ("The girl opened the box, and found a ring.", ["the girl opened the box", "the girl found a ring"]),
        ("The girl saw that it rained, and left the room.", []),
        ("The fox ran home, over the hill.", ["the fox ran home"]),
    ],
)
def test_clauses_when_they_stand_in_longer_sentences_are_read(text, clauses) -> None:
    assert [said.text for said in view(text, "The end came.").said_in(0)] == clauses


@pytest.mark.parametrize(
    "scenes",
    [
        ("The dog had barked.", "The fox fled."),
        ("The dog barked.", "The fox did not flee."),
        ("The fox wept and was glad.", "The end was near."),
        ("He was glad.", "They fled."),
    ],
)
def test_questions_when_the_answer_is_not_certain_are_not_asked(scenes) -> None:
    assert asked(*scenes) == []


def test_answers_when_derived_are_distinct_and_not_in_the_question() -> None:
    forms = ["The fox ran home", "he ran home", "the crow", "so"]
    found = accepted_answers("the fox ran home", "What did the crow do?", extra=forms)
    assert found == ("the fox ran home", "he ran home")


@pytest.mark.parametrize(
    ("gold", "question"),
    [("he was it", "Who?"), ("the fox", "Was it the fox?"), ("", "Why?"), ("a " * 40, "Why?")],
)
def test_answers_when_degenerate_leaked_or_too_long_are_none(gold, question) -> None:
    assert accepted_answers(gold, question) is None


@pytest.mark.parametrize(
    ("operation", "scene", "expected"),
    [
        (reverse_motivation, "The man came out of pity.", "The man came out of spite."),
        (reverse_motivation, "The man kindly came. The man gave the bread gladly.",
         "The man kindly came. The man gave the bread unwillingly."),
        (replace_outcome, "At last the lion slept, and the mouse escaped.",
         "At last the lion slept, and the mouse was caught."),
        (replace_outcome, "The tortoise won the race.", "The tortoise lost the race."),
        (flatten_emotion, "The crow flew. The fox was afraid.", "The crow flew. The fox was calm."),
        (break_causal_link, "The man ran because the dog barked.",
         "The man ran, though not because the dog barked."),
    ],
)  # fmt: skip
def test_operation_when_it_applies_changes_the_scene(operation, scene, expected) -> None:
    assert expected in [change.text for change in operation(view("The end of it came.", scene), 1)]


@pytest.mark.parametrize(
    ("operation", "scene"),
    [
        (reverse_motivation, "The man took pity on the pitiful dog."),
        (replace_outcome, "The mouse escaped through the hole."),
        (replace_outcome, "The mouse thanked the lion with a song."),
        (flatten_emotion, "The fox was so afraid that he fled."),
        (flatten_emotion, "The fox was afraid and wept."),
        (flatten_emotion, "The fox was afraid, so he fled."),
        (break_causal_link, "The man did not run because the dog barked."),
        (break_causal_link, "The man ran because the dog barked, and the hen woke."),
        (break_causal_link, "The man ran because he was old and because it rained."),
    ],
)
def test_operation_when_the_change_might_not_be_sound_finds_nothing(operation, scene) -> None:
    assert list(operation(view("The man sat down.", scene), 1)) == []


def test_outcome_when_something_is_told_after_it_is_not_changed() -> None:
    told = view("The tortoise won the race.", "The hare wept.")
    assert list(replace_outcome(told, 0)) == []


@pytest.mark.parametrize(
    ("past", "base"),
    [("jumped", "jump"), ("loved", "love"), ("stopped", "stop"), ("carried", "carry"), ("ran", "run"),
     ("refused", "refuse"), ("longed", "long"), ("opened", "open"), ("died", "die"), ("rolled", "roll")],
)  # fmt: skip
def test_base_form_when_past_is_found(past, base) -> None:
    assert base_form(past) == base


def test_labels_when_the_text_settles_them_else_null() -> None:
    assert moral_label("He was brave and bold, and he dared to go.") is None
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
