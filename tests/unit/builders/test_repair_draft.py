"""One repair of a draft: what may take the place of a list, and who is said to have made it."""

import asyncio
from typing import Any

import pytest

from fabula.builders.katha.drafts import LISTS, make_draft, maker_of
from fabula.builders.katha.repair_draft import SPEC, RepairSettings, repair_lists
from fabula.builders.replies import Drafted
from fabula.engine.stage import Item, Made, NoAnswer

MODEL = "http://localhost:1/v1#tiny via katha/repair@1"


class Repairer:
    """Repairs with prepared lists, or raises, and notes what it was shown."""

    def __init__(self, **prepared: Any) -> None:
        self.prepared, self.shown = prepared, []

    async def repair(self, draft, part, findings) -> Drafted | None:
        self.shown.append((part, [check["code"] for check in findings], draft[part]))
        value = self.prepared.get(part)
        if isinstance(value, Exception):
            raise value
        return None if value is None else Drafted(value, MODEL)


def finding(path: str, code: str = "model_answerable") -> dict[str, Any]:
    return {"code": code, "path": path, "passed": False, "note": "it does not hold"}


def repair(fields: dict[str, Any], planner: Repairer, **findings: Any) -> dict[str, Any]:
    item = Item(fields["story"]["id"], {name: fields[name] for name in SPEC.reads})
    outcome = asyncio.run(repair_lists(item, make_draft(fields), findings, planner.repair))
    assert isinstance(outcome, Made)
    return dict(outcome.fields)


def changed(elements: list[dict[str, Any]], number: int, **values: Any) -> list[dict[str, Any]]:
    return [{**part, **values} if n == number else part for n, part in enumerate(elements)]


def test_list_when_it_has_findings_is_drafted_anew_with_them_quoted(katha, tale) -> None:
    better = changed(tale["questions"], 0, question="Why did the dove drop a leaf?")
    planner = Repairer(questions=better)
    fields = repair(tale, planner, questions=[finding("$.questions[0]")])
    assert planner.shown == [("questions", ["model_answerable"], tale["questions"])]
    assert fields["repaired"] == {**dict.fromkeys(LISTS), "questions": better}
    assert fields["repaired_by"] == {**dict.fromkeys(LISTS), "questions": MODEL}
    assert [entry["outcome"] for entry in fields["repair_log"]] == ["repaired"]


def test_field_when_repaired_is_the_repairers_and_its_neighbours_are_not(katha, tale) -> None:
    better = changed(tale["questions"], 0, question="Why did the dove drop a leaf?")
    fields = repair(tale, Repairer(questions=better), questions=[finding("$.questions[0]")])
    made = katha.run_stage("apply_edits", {**tale, **fields}).fields["draft"]
    assert made["questions"] == better
    assert maker_of("$.questions[0].question", made["producers"]) == MODEL
    assert maker_of("$.questions[0].gold_answer", made["producers"]) == "rules@1"
    assert maker_of("$.questions[1].question", made["producers"]) == "rules@1"


@pytest.mark.parametrize(
    ("part", "number", "values", "why"),
    [
        ("questions", 0, {"question_id": "kb25k_0002_q01"}, "other ids"),
        ("questions", 0, {"gold_answer": 7}, "$.questions[0].gold_answer"),
        ("questions", 0, {"accepted_answers": ["the wind"]}, "accepted_answers"),
        ("scenes", 1, {"scene_text": "Another text."}, "other scene texts"),
        ("scenes", 1, {"characters": ["dragon"]}, "dragon"),
        ("transitions", 0, {"transition_type": "magic"}, "transition_type"),
        ("transitions", 0, {"causality": None}, "missing"),
        ("variants", 0, {"contrastive_story_text": "x"}, "contrastive_story_text"),
    ],
)
def test_list_when_the_new_one_breaks_a_rule_stays(tale, part, number, values, why) -> None:
    # A field that rules leave out is no finding of the repair: here every one is filled, and nothing given.
    tale = {**tale, "given": None, "variants_by": "rules@1"}
    words = {"transition_type": "cause_effect"}
    for name in ("scenes", "transitions"):
        filled = [
            {key: words.get(key, "ran") if value is None else value for key, value in e.items()}
            for e in tale[name]
        ]
        tale = {**tale, name: filled}
    worse = changed(tale[part], number, **values)
    fields = repair(tale, Repairer(**{part: worse}), **{part: [finding(f"$.{part}[{number}]")]})
    assert fields["repaired"] == fields["repaired_by"] == dict.fromkeys(LISTS)
    (entry,) = fields["repair_log"]
    assert entry["outcome"].startswith("dropped: ") and why in entry["outcome"]


@pytest.mark.parametrize(
    ("answer", "outcome"),
    [
        (None, "left as it was"),
        (NoAnswer("refused", "I cannot help with that"), "no answer: refused: I cannot help with that"),
    ],
)
def test_list_when_the_planner_has_none_stays_and_says_why(tale, answer, outcome) -> None:
    fields = repair(tale, Repairer(questions=answer), questions=[finding("$.questions[0]")])
    assert fields["repaired"]["questions"] is None
    assert fields["repair_log"][0]["outcome"] == outcome


def test_list_when_a_person_gave_it_is_not_touched(tale) -> None:
    planner = Repairer(questions=changed(tale["questions"], 0, question="Who?"))
    fields = repair({**tale, "questions_by": None}, planner, questions=[finding("$.questions[0]")])
    assert planner.shown == fields["repair_log"] == []


def test_field_when_a_person_gave_it_survives_the_repair_of_its_list(tale) -> None:
    first = tale["scenes"][0]
    bare = [{key: part[key] for key in ("story_id", "scene_index", "scene_text")} for part in tale["scenes"]]
    given = {"author": "ann", "scenes": changed(bare, 0, emotion=first["emotion"])}
    better = changed(tale["scenes"], 0, emotion="dread", state="setup: all is calm")
    fields = repair({**tale, "given": given}, Repairer(scenes=better), scenes=[finding("$.scenes[0]")])
    assert fields["repaired"]["scenes"][0] == {**first, "state": "setup: all is calm"}


def test_later_list_when_repaired_sees_the_earlier_one_as_repaired(tale) -> None:
    better = changed(tale["scenes"], 0, state="setup: all is calm")
    planner = Repairer(scenes=better, questions=None)
    repair(tale, planner, scenes=[finding("$.scenes[0]")], questions=[finding("$.questions[0]")])
    assert [part for part, _, _ in planner.shown] == ["scenes", "questions"]


@pytest.mark.parametrize(
    "settings",
    [{}, {"verifier": "openai:b"}, {"planner": "model", "model": "openai:a"}],
    ids=["neither", "verifier only", "planner only"],
)
def test_draft_when_there_is_no_planner_model_or_no_verifier_stays(katha, tale, settings) -> None:
    assert RepairSettings(**settings).models() == ()
    fields = katha.run_stage("repair_draft", tale, settings).fields
    assert fields["repaired"] == fields["repaired_by"] == dict.fromkeys(LISTS)
    assert fields["repair_log"] == []
