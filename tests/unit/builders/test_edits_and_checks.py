"""Edits of a draft, and what the rules find in it: each case by what it changes of a draft by rules."""

import re
from collections.abc import Callable
from typing import Any

import pytest

from fabula.builders.katha.checks.settling import CODES
from fabula.builders.katha.drafts import maker_of
from fabula.engine.stage import Failed
from fabula.schemas.paths import get_at

FIRST_HALF, SECOND_HALF = (
    "On a hot afternoon a thirsty ant climbed down a blade of grass to drink from a spring.",
    "Her feet slipped on the wet grass, and the current swept her toward the stones.",
)
MAKER = "openai:any via katha/write_questions@1#0123456789ab"
Fields = dict[str, Any]
Edits = tuple[tuple[str, Any], ...]


def apply(katha: Any, fields: Fields, *edits: tuple[Any, ...]) -> Any:
    """Apply edits, each a path and a new value, and the old one where it is not the one that is there."""
    rows = []
    for path, new, *old in edits:
        try:
            there = get_at(fields, path)
        except (LookupError, ValueError):
            there = "a"
        rows.append({"id": "x", "path": path, "old": old[0] if old else there, "new": new,
                     "who": "ann", "why": "test"})  # fmt: skip
    return katha.run_stage("apply_edits", {**fields, "edits": rows})


@pytest.fixture(scope="module")
def told(katha: Any, in_lines: Any) -> Callable[[Fields, Any], str]:
    """Tells a draft and what the rules find in it, a line each; or why an edit failed."""
    return lambda fields, outcome: _told(katha, fields, outcome, in_lines)


def _told(katha: Any, fields: Fields, outcome: Any, in_lines: Any) -> str:
    if isinstance(outcome, Failed):
        return f"{outcome.code}: {outcome.reason}"
    draft = {name: part for name, part in outcome.fields["draft"].items() if name != "producers"}
    made = [
        f"{line} by {maker_of(line.partition(':')[0], outcome.fields['draft']['producers'])}"
        if line.startswith("$.") else line
        for line in in_lines(draft).splitlines()
    ]  # fmt: skip
    return "\n".join([*made, *found(katha, fields, outcome.fields["draft"])])


def found(katha: Any, fields: Fields, draft: Fields) -> list[str]:
    """Return each finding about a draft as a line, and what becomes of its record."""
    checks = katha.run_stage("verify_record", {**fields, "draft": draft}).fields["checks"]
    record = katha.run_stage("assemble_records", {**fields, "draft": draft, "checks": checks})
    lines = [f"{one['code']} {one['path']} {one['passed']}: {one['note']}" for one in checks]
    return [*lines, record.fields["bundle"]["record"]["validation_status"]]


def changed(tale: Fields, part: str, number: int, **values: Any) -> list[Fields]:
    return [{**one, **values} if place == number else one for place, one in enumerate(tale[part])]


QUESTION = {"question_id": "kb25k_0001_q01"}
EDITS: dict[str, Edits] = {
    "an action": (("$.scenes[1].action", "The dove drops a leaf"),),
    "what a scene must show": (("$.scenes[1].visual_must_show", ["a purple leaf"]),),
    "what it must show, and its prompt": (
        ("$.scenes[1].visual_must_show", ["a purple leaf"]),
        ("$.scenes[1].generation_prompt", "A leaf", "a purple leaf, thirsty ant, dove"),
        ("$.scenes[1].emotion", "joy"),
    ),
    "a moral label": (("$.moral_label", "courage"),),
    "an answer of a person": (
        ("$.questions[0].gold_answer", "being grateful"), ("$.moral_label", "courage"),
    ),
    "answers of a person": (
        ("$.questions[0].accepted_answers", ["gratitude", "being grateful", "thankfulness", "thanks"]),
        ("$.moral_label", "courage"),
    ),
    # what fails
    "another title was there": (("$.title", "New", "Another"),),
    "half of a boundary": (("$.scenes[0].scene_text", FIRST_HALF),),
    "a part without fields": (("$.questions[0]", QUESTION), ("$.moral_label", "courage")),
    "another question": (("$.questions[0].question_id", "b"),),
    **{path: ((path, "b", "a"),) for path in
       ("$.story_text", "$.source_text", "$.scenes[9].action", "$.scenes[0].mood", "$", "scenes[0]",
        "$.scenes[*].action")},
}  # fmt: skip


@pytest.fixture(scope="module")
def plain(katha: Any, tale: Fields, told: Any) -> str:
    return told(tale, apply(katha, tale))


@pytest.mark.parametrize("case", EDITS)
def test_edits_when_applied_change_what_goes_with_them_or_fail(
    katha, tale, told, plain, case, difference, snapshot
) -> None:
    text = told(tale, apply(katha, tale, *EDITS[case]))
    assert (difference(plain, text) if "\n" in text else text) == snapshot


def test_boundary_when_moved_in_both_scenes_renews_their_long_prompts(katha, tale) -> None:
    second = f"{SECOND_HALF} {tale['scenes'][1]['scene_text']}"
    outcome = apply(katha, tale, ("$.scenes[0].scene_text", FIRST_HALF), ("$.scenes[1].scene_text", second))
    for scene, text in zip(outcome.fields["draft"]["scenes"], (FIRST_HALF, second), strict=False):
        assert scene["scene_text"] == text and text in scene["generation_prompt_long"]


MODEL = {"scenes_by": "openai:m katha/describe_scenes@1", "questions_by": MAKER}


def test_what_rules_make_anew_of_a_model_is_credited_to_them_and_nothing_else(katha, tale) -> None:
    edits = (("$.scenes[1].visual_must_show", ["a purple leaf"]), ("$.moral_label", "courage"))
    producers = apply(katha, {**tale, **MODEL}, *edits).fields["draft"]["producers"]
    places = [f"$.scenes[1].{name}" for name in tale["scenes"][1]]
    places += [f"$.questions[0].{name}" for name in tale["questions"][0]]
    made = {place: maker_of(place, producers) for place in places}
    assert {place for place, who in made.items() if who == "rules@1"} == {
        "$.scenes[1].generation_prompt", "$.scenes[1].generation_prompt_long", "$.questions[0].gold_answer",
        "$.questions[0].accepted_answers", "$.questions[0].required_evidence",
    }  # fmt: skip
    assert set(made.values()) == {"rules@1", "edit:ann", *MODEL.values()}
    assert maker_of("$.scenes[0].generation_prompt", producers) == MODEL["scenes_by"]


@pytest.mark.parametrize(
    ("path", "change"),
    [
        ("$.questions[0]", {"question_id": "kb25k_0001_q99"}), ("$.scenes[1]", {"scene_index": 3}),
        ("$.transitions[0]", {"to_scene": 3}), ("$.variants[0]", {"pair_id": "other"}),
    ],
)  # fmt: skip
def test_edit_when_a_whole_part_is_replaced_may_not_change_its_ids(katha, tale, told, path, change, snapshot):
    old, name = get_at(tale, path), re.split(r"[.[]", path)[1]
    assert told(tale, apply(katha, tale, (path, {**old, **change}))) == snapshot
    fewer = apply(katha, tale, (f"$.{name}", tale[name][:-1]))
    assert isinstance(fewer, Failed) and "the number of parts" in fewer.reason
    assert not isinstance(apply(katha, tale, (path, old)), Failed)


def test_label_when_a_story_had_none_reaches_the_moral_choice(katha, tale) -> None:
    bare = [{**part, "moral_target": None} for part in tale["transitions"]]
    bare[1]["transition_type"] = "moral_choice"
    fields = {**tale, "moral_label": None, "transitions": bare}
    draft = apply(katha, fields, ("$.moral_label", "patience")).fields["draft"]
    assert [part["moral_target"] for part in draft["transitions"]] == [None, "patience", None, None]


# What the rules find in a draft.

CHANGES: dict[str, tuple[str, int, Fields]] = {
    "another answer": ("questions", 0, {"gold_answer": "a dragon", "accepted_answers": ["a dragon"]}),
    "the answer is not accepted": ("questions", 0, {"accepted_answers": ["the wind"]}),
    "somebody else": ("scenes", 0, {"characters": ["dragon"]}),
    "nobody is left": ("variants", 0, {"contrastive_scene_text": "Nobody came."}),
    "in another word": ("variants", 1, {"contrastive_scene_text": "The elephants saw doves."}),
    "with another article": ("variants", 1, {"contrastive_scene_text": "An ant and that dove slept."}),
    "another whole": ("variants", 0, {"contrastive_story_text": "x"}),
    "no action": ("scenes", 0, {"action": "The ant drinks", "state": "wet"}),
    "another scene": ("transitions", 0, {"to_scene": 3}),
}  # fmt: skip


@pytest.mark.parametrize("case", CHANGES)
def test_checks_when_something_is_wrong_mark_the_record_for_review(katha, tale, case, difference, snapshot):
    part, number, values = CHANGES[case]
    draft = {**tale["draft"], part: changed(tale["draft"], part, number, **values)}
    before, after = (found(katha, tale, some) for some in (tale["draft"], draft))
    assert difference("\n".join(before), "\n".join(after)) == snapshot


def test_checks_when_the_draft_is_sound_leave_only_what_no_rule_settles_open(katha, tale) -> None:
    unsettled = {check["code"] for check in tale["checks"] if check["passed"] is not True}
    screens = {code for code in unsettled if code.startswith("screen_")}
    assert screens == {"screen_harmful_content", "screen_wordplay", "screen_external_knowledge"}
    asked = [part for part in tale["draft"]["questions"] if part["question_type"] != "moral"]
    across = any(question["target_transition"] for question in asked)
    nobody = {*CODES} - {"question_not_guessable", "question_worth_asking"}  # which no record lacks
    nobody -= set() if across else {"question_depends_on_transition"}
    assert unsettled - screens == {*nobody, "incomplete"}


def test_checks_when_a_person_answers_in_other_words_have_no_verdict(katha) -> None:
    loaded = katha.load(
        [("stories", katha.samples / "stories.jsonl"), ("records", katha.samples / "gold.jsonl")]
    )
    fields = loaded["kb25k_0001"]
    unjudged = {key: value for key, value in fields["given"].items() if key != "checks"}
    made = katha.draft({**fields, "given": unjudged})
    verdicts = {check["passed"] for check in made["checks"] if check["code"] == "answerable"}
    assert None in verdicts and False not in verdicts
    assert made["bundle"]["record"]["validation_status"] == "review_needed"
