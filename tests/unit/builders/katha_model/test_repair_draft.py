"""One repair of a draft: what is written again, what its writer is told, and which version stays."""

from typing import Any

import pytest

from fabula.builders.katha.drafts import LISTS, make_draft
from fabula.builders.katha.repair_draft import SPEC, RepairSettings, choose, in_words, run
from fabula.engine.stage import Item, NoAnswer
from fabula.testing.asked_prompts import prompt_of
from fabula.testing.katha_model import KathaModel

BOTH = {"planner": "model", "model": "openai:writer", "verifier": "openai:reader"}
MAKERS = {f"{name}_by": "openai:writer via katha/x@1" for name in (*LISTS, "labels")}


class Scripted:
    """The stand-in, in whose judgements of the record some entries are otherwise, call by call.

    ``faults`` has for each such call: list -> number of a part -> what is otherwise. ``writes`` has for a
    prompt what is otherwise in the parts that are written again.
    """

    def __init__(self, *faults: dict[str, dict[int, Any]], **writes: Any) -> None:
        self.faults, self.writes, self.asked = list(faults), writes, []

    def __call__(self, asked: Any) -> Any:
        reply, prompt = KathaModel()(asked), str(prompt_of(asked)).removeprefix("katha/")
        self.asked.append((prompt, asked.text))
        if prompt == "check_record":
            keys = {"scenes": "scene", "transitions": "from_scene"}
            for name, numbers in (self.faults.pop(0) if self.faults else {}).items():
                for entry in reply[name]:
                    entry.update(numbers.get(entry[keys.get(name, "number")], {}))
        changed = self.writes.get(prompt)
        if isinstance(changed, Exception):
            return changed
        for name in LISTS if changed else ():
            for entry in reply.get(name, ()):
                entry.update(changed)
        return reply

    def texts(self, prompt: str) -> list[str]:
        return [text for name, text in self.asked if name == prompt]


def repaired(
    model: Any, hat: Any, draft: Any, script: Any, settings: Any = None, **changes: Any
) -> dict[str, Any]:
    fields = {
        "story": hat.story, "analysis": hat.analysis, "given": None, "narrative": None,
        "narrative_by": None, "spare_questions": [], **draft, **MAKERS, **changes,
    }  # fmt: skip
    item = Item("tale_1", {name: fields[name] for name in SPEC.reads})
    return dict(
        model.run(
            run(item, model.tools(script, RepairSettings(**(BOTH if settings is None else settings))))
        ).fields
    )


def open_findings(fields: dict[str, Any]) -> list[str]:
    return [check["path"] for check in fields["judged"] if check["passed"] is False]


WRONG = {"contradicted": ["state"], "remark": "The hat still flies."}
IN_THE_AIR = {"state": "The hat is in the air."}
Faults = dict[str, dict[int, Any]]
REPAIRS: dict[str, tuple[tuple[Faults, ...], dict[str, Any]]] = {
    "nothing is wrong": ((), {}),
    "the better version stays": (({"scenes": {2: WRONG}},), {"draft_scenes": IN_THE_AIR}),
    "the second is no better": (
        ({"scenes": {2: WRONG}}, {"scenes": {2: {**WRONG, "contradicted": ["action"]}}}),
        {"draft_scenes": IN_THE_AIR},
    ),
    "the moral is not supported": (({"questions": {4: {"gold_supported": False}}},), {}),  # no writer can act
    "both halves in scene 1": (({"questions": {2: {"earlier_scene": 1, "later_scene": 1}}},), {}),
    "halves in scenes 1 and 4": (({"questions": {2: {"earlier_scene": 1, "later_scene": 4}}},), {}),
    # an effect before its cause: nothing to go by
    "halves in scenes 4 and 1": (({"questions": {2: {"earlier_scene": 4, "later_scene": 1}}},), {}),
    # one picture shows no order
    "an order in scene 1": (({"questions": {1: {"earlier_scene": 1, "later_scene": 1}}},), {}),
    "a wrong answer in the second": (
        ({"questions": {1: {"one_answer": False}}}, {"questions": {1: {"wrong_answers": [1]}}}),
        {"write_questions": {"gold_answer": "the gust", "other_answers": ["a wind", "a storm"]}},
    ),
    "a wrong accepted answer": (({"questions": {1: {"wrong_answers": [1], "remark": "Vaguer."}}},), {}),
    "every list": (
        ({
            "scenes": {1: WRONG}, "transitions": {2: {"contradicted": ["causality"], "remark": "No."}},
            "questions": {1: {"one_answer": False}, 3: {"drawable": False}},
            "variants": {2: {"possible": False}},
        },), {},
    ),
    "no answer": (
        ({"scenes": {2: WRONG}},), {"draft_scenes": NoAnswer("refused", "I cannot help with that")},
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", REPAIRS)
def test_draft_when_repaired_differs_by_what_its_log_says(
    model, hat, draft, case, in_lines, difference, snapshot
) -> None:
    faults, writes = REPAIRS[case]
    script = Scripted(*faults, **writes)
    fields = repaired(model, hat, draft, script)
    kept = {name: draft[name] for name in LISTS}
    chosen = {name: fields["repaired"][name] or part for name, part in kept.items()}
    told = {
        "asked": [name for name, _ in script.asked], "open": open_findings(fields),
        "by": [f"{name}: {by.partition('@')[0]}" for name, by in fields["repaired_by"].items() if by],
        "log": [{key: entry[key] for key in ("part", "number", "outcome", "findings")}
                for entry in fields["repair_log"]],
        "left out": [check["note"] for check in fields["judged"] if "left out" in check["note"]],
    }  # fmt: skip
    assert f"{in_lines(told)}\n{difference(in_lines(kept), in_lines(chosen))}" == snapshot


def test_writer_when_asked_again_is_told_what_was_found_and_judges_see_that_part_alone(model, hat, draft):
    script = Scripted({"scenes": {2: WRONG}}, draft_scenes=IN_THE_AIR)
    (entry,) = repaired(model, hat, draft, script)["repair_log"]
    (told,) = script.texts("draft_scenes")
    assert "Write the description of scene 2 anew as a whole" in told
    assert '"name": "Mira"' in told, "as it stands in characters"
    assert "scene 2, state: the story does not bear it out: The hat still flies." in told
    assert (entry["first"]["state"], entry["second"]["state"]) == (
        draft["scenes"][1]["state"], IN_THE_AIR["state"],
    )  # fmt: skip
    first, again = script.texts("check_record")
    assert first.endswith("variants and the labels.")
    assert "Judge 1 scenes, 0 transitions, 0 questions, 0 variants" in again


def test_writers_of_every_list_when_asked_again_are_told_which_parts(model, hat, draft) -> None:
    script = Scripted(*REPAIRS["every list"][0])
    repaired(model, hat, draft, script)
    for prompt, words in (
        ("write_questions", "Write question 1, 3 anew, each as a whole"),
        ("write_contrastives", "Write contrast 2 anew"),
        ("annotate_transitions", "Write the transition from scene 2 anew"),
    ):
        assert words in script.texts(prompt)[0]


def test_prompt_when_rules_made_it_too_long_goes_to_no_writer(model, hat, draft) -> None:
    draft["scenes"][0]["generation_prompt"] = "word " * 90
    script = Scripted()
    assert repaired(model, hat, draft, script)["repaired"] == dict.fromkeys(LISTS)
    assert len(script.asked) == 3


def test_readings_when_judged_come_with_reader_judge_and_verdict(model, hat, draft) -> None:
    def read(asked: Any) -> Any:
        reply = KathaModel()(asked)
        if prompt_of(asked) == "katha/answer_questions":
            reply["answers"][0]["full"] = "as another reader says it"
        return reply

    (reading,) = repaired(model, hat, draft, read)["readings"]
    assert reading["question_id"] == draft["questions"][0]["question_id"]
    assert reading["producer"].startswith("openai:reader via katha/answer_questions@")
    assert (reading["answer"], reading["judge"], reading["verdict"]) == (
        "as another reader says it", "openai:reader", True,
    )  # fmt: skip


def test_list_when_its_writer_is_away_is_repaired_later(model, hat, draft) -> None:
    away = NoAnswer("unavailable", "no connection")
    with pytest.raises(NoAnswer, match="unavailable"):
        repaired(model, hat, draft, Scripted({"scenes": {2: WRONG}}, draft_scenes=away))


def test_list_when_a_person_gave_it_is_not_touched(model, hat, draft) -> None:
    fields = repaired(model, hat, draft, Scripted({"scenes": {2: WRONG}}), scenes_by=None)
    assert fields["repaired"] == dict.fromkeys(LISTS) and fields["repair_log"] == []
    assert open_findings(fields) == ["$.scenes[1].state"]


def test_field_when_a_person_gave_it_survives_the_repair_of_its_list(model, hat, draft) -> None:
    bare = [{"scene_text": part["scene_text"]} for part in draft["scenes"]]
    bare[1]["action"] = draft["scenes"][1]["action"]
    script = Scripted({"scenes": {2: WRONG}}, draft_scenes={"state": "In the air.", "action": "Mira sits."})
    fields = repaired(model, hat, draft, script, given={"author": "ann", "scenes": bare})
    second = fields["repaired"]["scenes"][1]
    assert (second["action"], second["state"]) == (draft["scenes"][1]["action"], "In the air.")


def test_findings_when_put_in_words_count_from_one() -> None:
    def words(name: str, path: str) -> str:
        return in_words(name, [{"path": path, "note": "not so"}])[0]

    assert words("transitions", "$.transitions[0].causality") == (
        "transition from scene 1 to 2, causality: not so"
    )
    assert words("questions", "$.questions[3].accepted_answers") == "question 4, accepted answers: not so"
    assert words("variants", "$.variants[1]") == "contrast 2: not so"
    assert words("scenes", "$.scenes") == "all scenes: not so"


@pytest.mark.parametrize(
    "settings",
    [{}, {"verifier": "openai:b"}, {"planner": "model", "model": "openai:a"}],
    ids=["neither", "verifier only", "planner only"],
)
def test_draft_when_there_is_no_planner_model_or_no_verifier_stays(model, hat, draft, settings) -> None:
    assert RepairSettings(**settings).models() == ()
    made = repaired(model, hat, draft, None, settings=settings)
    assert made["repaired"] == made["repaired_by"] == dict.fromkeys(LISTS)
    assert (made["repair_log"], made["judged"], made["readings"]) == ([], None, [])


def test_settings_when_there_are_both_name_each_model_once() -> None:
    both = {"planner": "model", "model": "openai:a", "temperature": 0.5}
    assert RepairSettings(verifier="openai:b", **both).models() == ("openai:b", "openai:a")
    assert RepairSettings(verifier="openai:a", **both).models() == ("openai:a",)


def test_question_when_weak_and_a_spare_one_is_sound_is_left_out_without_a_call(model, hat, draft) -> None:
    """The question that is left out keeps its words in the log; ids stay, and answers of readers go along."""
    first = draft["questions"][0]
    spares = [
        {**first, "question_id": f"tale_1_q{number}", "question": asked, "gold_answer": answer}
        | {"accepted_answers": [answer, "it flies"]}
        for number, asked, answer in (
            (10, "Why is the girl at the river?", "a gust took her hat"),
            (11, "What is over the water?", "her hat in the wind"),
            (12, "What does she look up to?", "her hat above her"),
        )
    ]
    weak = {"first_guess": "a hat", "weakness": "told", "remark": "'hat' tells it."}
    script = Scripted({"questions": {1: weak}})
    fields = repaired(model, hat, draft, script, spare_questions=spares)
    assert [name for name, _ in script.asked] == ["answer_questions", "read_variants", "check_record"]
    chosen = [part["question_id"] for part in fields["repaired"]["questions"]]
    assert chosen == [part["question_id"] for part in draft["questions"][1:]] + ["tale_1_q10"]
    (entry,) = fields["repair_log"]
    assert (entry["outcome"], entry["number"]) == ("left out", 1)
    assert entry["first"]["question"] == draft["questions"][0]["question"]
    assert "nearly tell its answer: 'hat' tells it." in entry["findings"][0]
    assert {row["question_id"] for row in fields["readings"]} <= set(chosen) and open_findings(fields) == []
    paths = [row["path"] for row in fields["judged"] if row["code"] == "question_worth_asking"]
    assert len(paths) == len(set(paths)) == len(chosen) - 1
    item = {"story": hat.story, "given": None, **draft, **MAKERS, "spare_questions": spares, **fields}
    assert make_draft(item)["questions"] == [*draft["questions"][1:], spares[0]], "the choice is no edit"


NEWS = ["consequence", "temporal_order", "action_visibility", "causal", "action_visibility"]
"""Types of the questions that a reader wrote about a whale in a net; two readers found 2 and 3 weak."""


@pytest.mark.parametrize(
    ("types", "weights", "most", "least", "floor", "kept"),
    [
        ([*NEWS, "causal", "consequence"], [2, 0, 2, 0, 0, 0, 0], 7, 5, 5, [1, 3, 4, 5, 6]),
        (NEWS, [2, 0, 2, 0, 0], 5, 5, 5, [0, 1, 2, 3, 4]),  # too few: both are written again
        (NEWS, [2, 0, 2, 0, 0], 5, 4, 0, [0, 1, 3, 4]),  # still faulted: of the two the new type stays
        (["moral", *NEWS, "emotional"], [9, 0, 0, 0, 0, 0, 0], 6, 4, 0, [0, 1, 2, 3, 4, 6]),
        ([*["causal"] * 5, "consequence"], [0, 0, 0, 0, 0, 4], 6, 5, 5, [0, 1, 2, 3, 4, 5]),
        ([*["causal"] * 5, "consequence"], [0, 0, 0, 0, 0, 4], 6, 4, 0, [0, 1, 2, 3, 4]),
    ],
)  # fmt: skip
def test_questions_when_chosen_are_sound_ones_of_many_types_first(types, weights, most, least, floor, kept):
    questions = [{"question_type": kind} for kind in types]
    assert choose(questions, weights, most, least, floor) == kept
