"""Accepted answers that grow: who may add one, what joins, and what is kept of the rest."""

import json
from typing import Any

import pytest

from fabula.builders.katha.building import BuildOptions, build_katha
from fabula.builders.katha.drafts import maker_of
from fabula.builders.katha.grow_answers import nearest
from fabula.builders.katha.measure_edits import EditSummary, distance, measure
from fabula.engine.stage import Answer, NoAnswer
from fabula.schemas.katha import KathaBundle, ProducerLine

JUDGE = "openai:judge"


class Asker:
    """Judges new answers: those in ``wrong`` are others."""

    def __init__(self, *wrong: str, refuses: bool = False) -> None:
        self.wrong, self.refuses = wrong, refuses
        self.asked: list[tuple[str, str]] = []

    async def ask(self, ask: Any) -> Answer[Any]:
        self.asked.append((ask.prompt.partition("@")[0], ask.request.model))
        if self.refuses:
            raise NoAnswer("refused", "I would rather not")
        shown = str(ask.request.messages[-1].parts[0]).split("Other answers to question ")[1:]
        rows = []
        for n, block in enumerate(shown, start=1):
            lines = [line.partition("] ") for line in block.splitlines() if line.startswith("[")]
            bad = [int(number[1:]) for number, _, text in lines if text in self.wrong]
            rows.append({"number": n, "remark": None, "gold_supported": True, "wrong_answers": bad})
        return Answer(ask.read({"questions": rows}))


@pytest.fixture
def tale(drafted: Any) -> Any:
    """A sample story drafted by rules, with one question."""
    fields = drafted["kb25k_0001"]
    question = {
        **fields["questions"][0],
        "question_type": "causal",
        "question": "Why did the ant fall into the spring?",
        "gold_answer": "it slipped on a wet leaf",
        "accepted_answers": ["it slipped on a wet leaf", "a wet leaf"],
    }
    return {**fields, "questions": [question], "questions_by": "rules@1", "answers": [], "readings": []}


def grow(katha: Any, tale: Any, asker: Any = None, **settings: Any) -> Any:
    chosen = {"model": JUDGE, **settings} if asker is not None else settings
    return katha.run_stage("grow_answers", tale, chosen, asker=asker).fields


def person(tale: Any, answer: str, question_id: str | None = None) -> Any:
    name = question_id or tale["questions"][0]["question_id"]
    return {"story_id": tale["story"]["id"], "question_id": name, "answer": answer, "who": "ana"}


def reading(tale: Any, answer: str, verdict: bool | None = True, remark: str = "") -> Any:
    name = tale["questions"][0]["question_id"]
    judged = {"producer": "openai:r", "judge": "openai:j", "verdict": verdict, "remark": remark}
    return {"question_id": name, "answer": answer, **judged}


GIVEN_BY_BO = {"questions_by": None, "given": {"author": "bo"}}
Case = tuple[dict[str, Any], dict[str, Any] | None]
"""What people said and readers were judged to say, and the judge of new answers, if there is one."""
CASES: dict[str, Case] = {
    "people": (
        {"people": ["the leaf was slippery", "it was pushed", "It slipped on a wet leaf!",
                    "The leaf was slippery."]},
        {"wrong": ["it was pushed"]},
    ),
    # what may never be accepted is not judged
    "from the question": ({"people": ["Into the spring"]}, {}), "nothing": ({"people": ["unknown"]}, {}),
    "accepted already": ({"people": ["A WET LEAF"]}, {}),
    "no judge": ({"people": ["the leaf was slippery"], "elsewhere": ["x"]}, None),
    # where a person asked, only people answer
    "asked by a person": (
        {"people": ["its feet found no hold"], "readings": [("the leaf was slippery", True, "")],
         "fields": GIVEN_BY_BO}, {},
    ),
    "the judge refuses": ({"people": ["slippery ground"]}, {"refuses": True}),
    # judged with the draft: nobody is asked again
    "readers": (
        {"readings": [
            ("still on a wet leaf", True, ""), ("its feet found no hold", True, ""),
            ("its feet found no good hold", True, ""), ("somebody pushed it", False, "Nobody did."),
            ("the ground moved", None, "not judged: refused: no"),
        ]}, None,
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_answers_when_there_are_new_ones_join_or_are_kept_with_the_reason(katha, tale, case, snapshot):
    said, judge = CASES[case]
    asker = None if judge is None else Asker(*judge.get("wrong", ()), refuses="refuses" in judge)
    tale |= said.get("fields", {})
    if "fields" in said:
        tale["given"] = {**tale["given"], "questions": tale["questions"]}
    tale["answers"] = [person(tale, text) for text in said.get("people", ())]
    tale["answers"] += [person(tale, text, "no_such_q01") for text in said.get("elsewhere", ())]
    tale["readings"] = [reading(tale, *row) for row in said.get("readings", ())]
    fields = grow(katha, tale, asker)
    rows = [
        f"{row['answer']!r} of {row['producer']} is {row['verdict']} by {row['judge']}, "
        f"{'joined' if row['joined'] else 'kept'}: {row['reason']}" for row in fields["answer_history"]
    ]  # fmt: skip
    asked = [] if asker is None else asker.asked
    assert "\n".join([*rows, f"grown: {fields['grown']}", f"asked: {asked}"]) == snapshot


@pytest.mark.parametrize(
    ("one", "other", "is_near"),
    [("wet on the sandbank", "still wet on the sandbank", True),
     ("she was glad", "she was afraid", False), ("to catch her hat", "her hat was flying off", False),
     ("狐狸够不着葡萄", "狐狸够不着那葡萄", True), ("狐狸够不着葡萄", "葡萄太高了", False)],
)  # fmt: skip
def test_answers_when_they_differ_by_a_word_are_near(one: str, other: str, is_near: bool) -> None:
    assert (nearest([one], other) == one) is is_near


def test_record_when_answers_joined_has_them_with_their_producer_and_history(katha, tale) -> None:
    tale["readings"] = [reading(tale, "the leaf was slippery")]
    tale |= grow(katha, tale)
    done = katha.run_stage("apply_edits", tale).fields
    (question,) = done["draft"]["questions"]
    assert question["accepted_answers"][-1] == "the leaf was slippery"
    made = done["draft"]["producers"]
    assert maker_of("$.questions[0].accepted_answers[2]", made) == "openai:r"
    assert maker_of("$.questions[0].accepted_answers", made) == "rules@1"
    tale |= done
    measured = katha.run_stage("measure_edits", tale).fields["edit_distances"]
    assert measured["$.questions[*].accepted_answers"]["changed"] == 0
    bundle = katha.run_stage("assemble_records", tale).fields["bundle"]
    assert [row["joined"] for row in bundle["answers"]] == [True]
    assert KathaBundle.model_validate(bundle).as_json()["answers"] == bundle["answers"]
    line = {"id": "x", "fields": [], "answers": bundle["answers"]}
    assert ProducerLine.model_validate(line).answers[0].judge == "openai:j"


def test_file_of_answers_when_read_belongs_to_stories_and_names_every_problem(katha, write_rows, tmp_path):
    from fabula.errors import InputError

    stories = write_rows({})
    row = {"story_id": "one", "question_id": "one_q01", "answer": "a fox", "who": "ana"}
    path = tmp_path / "answers.jsonl"
    path.write_text(json.dumps(row) + "\n")
    assert katha.load([("stories", stories), ("answers", path)])["one"]["answers"] == [row]
    wrong = [{**row, "story_id": "two"}, {**row, "answer": ""}, {**row, "mood": "glad"}]
    path.write_text("".join(json.dumps(entry) + "\n" for entry in wrong))
    with pytest.raises(InputError) as caught:
        katha.load([("stories", stories), ("answers", path)])
    assert len(caught.value.problems) == 3


# How far final fields are from drafted ones: worked values, whose changes count, and sums that add.

NOTHING = {"compared": 1, "changed": 0, "repaired": 0, "edited": 0, "distance": 0.0}


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ("kitten", "sitting", 3 / 7),  # k-s, e-i, +g; the longer has 7 characters
        ("same", "same", 0.0),
        (None, "new", 1.0),
        ("old", None, 1.0),
        (None, None, 0.0),
        (["ant", "dove"], ["ant"], 5 / 8),  # "ant\\ndove" against "ant"
        (["ant"], ["ant"], 0.0),
        ([1, 2], [1, 3], 1 / 3),
        ("🐜", "🕊", 1.0),  # one code point each
    ],
)
def test_distance_when_of_two_values_is_the_normalised_levenshtein_distance(before, after, expected) -> None:
    assert distance(before, after) == pytest.approx(expected)
    assert distance(after, before) == pytest.approx(expected)


def edit(edited_tale, path, old, new):
    return {"id": "kb25k_0001", "path": path, "old": old, "new": new, "who": "ann", "why": "test"}


@pytest.fixture
def edited_tale(drafted):
    return drafted["kb25k_0001"]


def measured(katha, fields):
    done = {**fields, **katha.run_stage("apply_edits", fields).fields}
    return katha.run_stage("measure_edits", done).fields["edit_distances"]


def test_fields_when_not_drafted_or_copies_are_left_out(katha, edited_tale) -> None:
    sums = measured(katha, edited_tale)
    # The author gave both labels and the title.
    assert not {"$.title", "$.moral_label", "$.narrative_type"} & sums.keys()
    assert not {"$.scenes[*].story_id", "$.variants[*].contrastive_story_text"} & sums.keys()
    unlabelled = {**edited_tale["story"], "moral_label": None}
    sums = measured(katha, {**edited_tale, "story": unlabelled, "labels_by": "rules@1"})
    assert sums["$.moral_label"] == NOTHING


def test_fields_when_edited_or_repaired_count_once_with_their_distance(katha, edited_tale) -> None:
    asked, state = edited_tale["questions"][0]["question"], edited_tale["scenes"][0]["state"]
    scenes = [{**edited_tale["scenes"][0], "state": "calm"}, *edited_tale["scenes"][1:]]
    repaired = {
        "repaired": {**edited_tale["repaired"], "scenes": scenes},
        "repaired_by": {**edited_tale["repaired_by"], "scenes": "model"},
    }  # fmt: skip
    back = [edit(edited_tale, "$.scenes[0].state", "calm", state)]
    for field, changes, counts, far in (
        ("$.questions[*].question",
         {"edits": [edit(edited_tale, "$.questions[0].question", asked, asked + "!")]},
         (len(edited_tale["questions"]), 1, 0, 1), 1 / (len(asked) + 1)),
        ("$.scenes[*].state", repaired, (5, 1, 1, 0), distance(state, "calm")),
        ("$.scenes[*].state", {**repaired, "edits": back}, (5, 0, 1, 1), 0.0),
    ):  # fmt: skip
        found = measured(katha, {**edited_tale, **changes})[field]
        assert found == {
            **dict(zip(("compared", "changed", "repaired", "edited"), counts, strict=True)),
            "distance": round(far, 6),
        }


def test_summary_when_stories_come_in_any_order_or_in_parts_is_the_same(drafted) -> None:
    def sums(fields, state):
        scenes = [{**scene, "state": state} for scene in fields["scenes"]]
        draft = fields["draft"]
        return measure(draft, draft, {**draft, "scenes": scenes})

    rows = [sums(fields, f"state {n} of many") for n, fields in enumerate(drafted.values())]
    documents = []
    for order in (rows, rows[::-1], rows[7:] + rows[:7]):
        summary = EditSummary()
        for row in order:
            summary.add(row)
        documents.append(summary.document())
    assert documents[0] == documents[1] == documents[2]
    state = documents[0]["stages"]["draft_scenes"]["fields"]["$.scenes[*].state"]
    assert (state["compared"], state["changed"], state["share_changed"]) == (120, 120, 1.0)
    assert state["distance"] == pytest.approx(sum(row["$.scenes[*].state"]["distance"] for row in rows))
    assert documents[0]["stages"]["write_questions"]["all"]["mean_distance"] == 0.0


def test_run_when_an_edit_is_applied_keeps_rows_and_summary(katha, tmp_path) -> None:
    out = tmp_path / "r"
    options = BuildOptions(created_at="2026-01-01T00:00:00Z", workers=0, limit=2)
    build_katha(katha.samples / "stories.jsonl", out, options)
    before = json.loads((out / "edit_distances.json").read_text("utf-8"))
    record = json.loads((out / "records.jsonl").read_text("utf-8").splitlines()[0])["payload"]["record"]
    change = edit(record, "$.scenes[0].action", record["scenes"][0]["action"], "The ant drinks")
    (out / "edits.jsonl").write_text(json.dumps(change) + "\n", "utf-8")
    build_katha(katha.samples / "stories.jsonl", out, options)
    after = json.loads((out / "edit_distances.json").read_text("utf-8"))
    rows = [json.loads(line) for line in (out / "edit_distances.jsonl").read_text("utf-8").splitlines()]
    assert [row["id"] for row in rows] == ["kb25k_0001", "kb25k_0002"]
    assert before["stages"]["draft_scenes"]["all"]["changed"] == 0
    assert after["stages"]["draft_scenes"]["fields"]["$.scenes[*].action"]["edited"] == 1
    assert after["stories"] == 2
