"""Whatever a reply says within its schema, it is either sent back or makes a part that every rule accepts."""

import copy
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fabula.builders.katha import write_questions
from fabula.builders.katha.annotate_transitions import read_transitions, transitions_shown
from fabula.builders.katha.checks import rules as read_checks
from fabula.builders.katha.checks.rules import rule_checks
from fabula.builders.katha.draft_scenes import SCENE_FIELDS, read_division, read_scenes, scenes_shown
from fabula.builders.katha.drafts import type_problem
from fabula.builders.katha.write_contrastives import read_variants, variants_shown
from fabula.builders.katha.write_questions import questions_shown, read_questions
from fabula.engine.stage import BadReply
from fabula.prompts.loader import load_prompt
from fabula.testing.endurance import rounds

pytestmark = pytest.mark.endurance
TEXTS = (
    *("Mira", "the fisherman", "hat", "gratitude", "", " ", "unclear", "米拉", "\u200d\u0000", "<<<", "it"),
    *("The gust took the hat.", "She was happy.", "a fisherman swung his rod", "Mira was happy"),
)
SMALL = settings(
    max_examples=rounds(600),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
WANTED = {"causal": 2, "emotional": 2, "moral": 1, "consequence": 1, "temporal_order": 1}


def values(schema: Any) -> st.SearchStrategy[Any]:
    """Values that satisfy a schema."""
    if "anyOf" in schema:
        return st.one_of([values(choice) for choice in schema["anyOf"]])
    if "enum" in schema:
        return st.sampled_from(schema["enum"])
    kind = schema["type"]
    if isinstance(kind, list):
        return st.one_of([values({**schema, "type": one}) for one in kind])
    if kind == "object":
        return st.fixed_dictionaries({key: values(inner) for key, inner in schema["properties"].items()})
    if kind == "array":
        return st.lists(values(schema["items"]), max_size=4)
    simple = {
        "string": st.one_of(st.sampled_from(TEXTS), st.text(max_size=20)),
        "integer": st.integers(-1, 9),
        "boolean": st.booleans(),
        "null": st.none(),
    }
    return simple[kind]


def spoiled(draw: st.DrawFn, prompt_id: str, name: str, good: list[Any]) -> dict[str, Any]:
    """A reply made of good entries, with up to three fields, or an entry, changed to anything."""
    schema = load_prompt(f"katha/{prompt_id}").reply.schema["properties"][name]["items"]
    entries = copy.deepcopy(good)
    for _ in range(draw(st.integers(0, 3))):
        entry = draw(st.sampled_from(entries))
        field = draw(st.sampled_from(sorted(entry)))
        entry[field] = draw(values(schema["properties"][field]))
    if draw(st.integers(0, 9)) == 0:
        entries.append(draw(values(schema)))
    return {name: draw(st.permutations(entries)) if draw(st.booleans()) else entries}


def cast_of(draft: dict[str, Any]) -> list[Any]:
    names = {name for scene in draft["scenes"] for name in scene["characters"]}
    return [{"name": name, "look": "somebody"} for name in sorted(names)]


def holds(draft: dict[str, Any], story: Any, part: str, made: Any) -> None:
    """The part has its type, and no rule finds anything in the record with it."""
    assert type_problem(part, made) is None
    found = rule_checks(story, {**draft, part: made})
    assert [check for check in found if check["passed"] is False and part in check["path"]] == []


@pytest.mark.slow
@SMALL
@given(data=st.data())
def test_scenes_when_described_in_any_way_go_back_or_hold(hat, draft, data) -> None:
    texts = [scene["scene_text"] for scene in draft["scenes"]]
    more = {"first_segment": None, "emotion_words": hat.story["text"]}
    good = [{**part, **more} for part in scenes_shown(draft["scenes"])]
    reply = spoiled(data.draw, "draft_scenes", "scenes", good) | {"cast": cast_of(draft)}
    try:
        made = read_scenes(reply, hat.story, texts, range(1, len(texts) + 1))
    except BadReply as problem:
        assert str(problem)
        return
    holds(draft, hat.story, "scenes", made)


@SMALL
@given(firsts=st.lists(st.integers(-1, 9), min_size=3, max_size=4, unique=True), sort=st.booleans())
def test_scenes_when_divided_in_any_way_go_back_or_cover_the_story(hat, draft, firsts, sort) -> None:
    numbers = sorted(firsts) if sort else firsts
    fields = {name: draft["scenes"][0][name] for name in SCENE_FIELDS}
    fields |= {"emotion_words": None}
    scenes = [{"scene": n, "first_segment": first, **fields} for n, first in enumerate(numbers, start=1)]
    reply = {"cast": cast_of(draft), "scenes": scenes}
    count = len(hat.analysis["segments"])
    sound = len(numbers) == 3 and numbers == sorted(numbers) and numbers[0] == 1 and numbers[-1] <= count
    try:
        made = read_division(reply, hat.story, hat.analysis, 3)
    except BadReply:
        assert not sound
        return
    assert sound
    assert " ".join(scene["scene_text"] for scene in made) == hat.story["normalized_text"]


@SMALL
@given(data=st.data())
def test_transitions_when_described_in_any_way_go_back_or_hold(hat, draft, data) -> None:
    texts = [scene["scene_text"] for scene in draft["scenes"]]
    good = [{**part, "emotion_words": hat.story["text"]} for part in transitions_shown(draft["transitions"])]
    reply = spoiled(data.draw, "annotate_transitions", "transitions", good)
    reply["moral_from_scene"] = data.draw(st.integers(0, 6))
    try:
        made = read_transitions(reply, hat.story, texts, "gratitude")
    except BadReply as problem:
        assert str(problem)
        return
    holds(draft, hat.story, "transitions", made)


@SMALL
@given(data=st.data())
def test_questions_when_written_in_any_way_go_back_or_hold(hat, draft, data) -> None:
    good = [{**part, "told_by": hat.story["text"]} for part in questions_shown(draft["questions"], None)]
    reply = spoiled(data.draw, "write_questions", "questions", good)
    try:
        made = read_questions(reply, hat.story, draft["scenes"], "gratitude", WANTED)
    except BadReply as problem:
        assert str(problem)
        return
    kept = write_questions.STEP.settle(made, hat.sketch(), write_questions.Settings())
    holds(draft, hat.story, "questions", kept["questions"])


@SMALL
@given(data=st.data())
def test_variants_when_written_in_any_way_go_back_or_hold(hat, draft, data) -> None:
    good = [{**part, "later_scene": 5, "depends": "x y"} for part in variants_shown(draft["variants"])]
    reply = spoiled(data.draw, "write_contrastives", "variants", good)
    labels = (draft["narrative_type"], "gratitude")
    try:
        made = read_variants(reply, hat.story, draft["scenes"], labels, [1, 2])
    except BadReply as problem:
        assert str(problem)
        return
    holds(draft, hat.story, "variants", made)


def everything(draft: dict[str, Any]) -> dict[str, range]:
    return {name: range(len(draft[name])) for name in ("scenes", "transitions", "questions", "variants")}


READERS = {
    "answer_questions": lambda reply, _: read_checks.read_answers(reply, 2),
    "check_answers": lambda reply, _: read_checks.read_judgements(reply, [1, 2]),
    "guess_answers": lambda reply, _: read_checks.read_guess(reply),
    "read_variants": lambda reply, _: read_checks.read_contrasts(reply, 2),
    "check_record": lambda reply, draft: read_checks.read_record(
        reply, draft, everything(draft), [2] * len(draft["questions"])
    ),
}


def test_replies_to_checks_when_read_are_what_they_say_by_question() -> None:
    said = {"status": "recoverable", "short": "the fox", "full": " The  fox. ", "own_words": "an animal"}
    answers = [{"number": 2, **said, "status": "unclear"}, {"number": 1, **said}]
    assert read_checks.read_answers({"answers": answers}, 2) == [("the fox", "an animal"), ()]
    guess = {"status": "guessed", "answer": " a  fox "}
    guesses = [{**guess, **more} for more in ({}, {"answer": " "}, {"status": "unknown"})]
    assert list(map(read_checks.read_guess, guesses)) == ["a fox", None, None]
    first = {"number": 1, "gold_supported": True, "wrong_answers": [1, 3], "remark": None}
    second = {"number": 2, "gold_supported": False, "wrong_answers": [], "remark": "no " * 200}
    assert read_checks.read_judgements({"questions": [second, first]}, [3, 0]) == [
        read_checks.Judged(True, frozenset({0, 2}), ""),
        read_checks.Judged(False, frozenset(), ("no " * 100)),
    ]
    for wrong in (0, 4):
        strange = {"questions": [{**first, "wrong_answers": [wrong]}]}
        with pytest.raises(BadReply, match=f"question 1 has 3 other answers; wrong_answers names {wrong}"):
            read_checks.read_judgements(strange, [3])


@pytest.mark.parametrize("prompt_id", READERS)
def test_judgement_when_given_in_any_way_goes_back_or_covers_everything(draft, prompt_id) -> None:
    @SMALL
    @given(reply=values(load_prompt(f"katha/{prompt_id}").reply.schema))
    def any_reply(reply: Any) -> None:
        try:
            READERS[prompt_id](reply, draft)
        except BadReply as problem:
            assert str(problem)

    any_reply()
