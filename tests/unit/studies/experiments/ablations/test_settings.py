"""Settings as switches over one archive: what each leaves out, by hand; what nobody measured says why."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from fabula.errors import InputError, UserError
from fabula.evaluation.recoverability.matching import Definitions, keyword
from fabula.evaluation.recoverability.score import score_folder
from fabula.evaluation.stats.uncertainty import Uncertainty
from fabula.people.against import Judged as Followed
from fabula.releases.loading import Release, load
from fabula.schemas.canonical import canonical_text
from fabula.schemas.judgement import HumanRow
from fabula.schemas.katha import Question
from fabula.studies.experiments.ablations import components
from fabula.studies.experiments.ablations.judges import alone, judge_aggregation, weighted_majority
from fabula.studies.experiments.ablations.measuring import GROUPS, Sources
from fabula.studies.experiments.ablations.morals import moral_granularity
from fabula.studies.experiments.measures.falls import read_plants
from fabula.studies.experiments.measures.planted import judged_as
from fabula.testing.katha_samples import sample_bundles
from fabula.testing.planted_judgements import write_judged, write_planted
from fabula.testing.simulated_evaluations import Simulated, write_loadable_release, write_simulated
from fabula.testing.simulated_judgements import Truth

FEW = Definitions(resamples=0)
LOST = {"causal", "moral"}


def released(folder: Path, stories: int = 4) -> Release:
    """A release in which the questions about visible acts and feelings are about a scene, as in real ones."""
    bundles = sample_bundles(stories)
    for bundle in bundles:
        for question in bundle["record"]["questions"]:
            if question["question_type"] in ("action_visibility", "emotional"):
                question["target_transition"] = None
    return load(write_loadable_release(folder / "release", bundles))


def says(_method: str, question: Question, condition: str) -> bool:
    """Images lose causes and morals; consequences cannot be answered even with both."""
    if question.question_type == "consequence":
        return condition == "text"
    return condition != "image" or question.question_type not in LOST


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> Sources:
    folder = tmp_path_factory.mktemp("settings")
    release = released(folder)
    return Sources({"katha": write_judged(folder / "run", release, ("m",), says)}, FEW)


def image(sources: Sources, rows: object) -> dict[str, float | None]:
    return {row.name: row.scores["image"].value for row in rows}  # type: ignore[attr-defined]


def test_removals_when_worked_by_hand_leave_out_what_they_say(sources: Sources) -> None:
    rows = {row.name: row for row in components.component_removals(sources)}
    assert list(rows) == [setting.name for setting in components.REMOVALS]
    values = {name: row.scores["image"].value for name, row in rows.items()}
    # five valid dimensions, two of them lost: 3/5, and so is every question alike
    assert values["full"] == values["without-contrastives"] == pytest.approx(3 / 5)
    assert values["without-dimensions"] == pytest.approx(3 / 5)
    # acts and feelings alone are about a scene, and neither is lost
    assert values["without-transitions"] == 1.0
    # without the filter the consequences count, too: 3 of 6
    assert values["without-filter"] == pytest.approx(3 / 6)
    # judges answer with the canonical answer, so that nothing else is needed
    assert values["without-accepted"] == pytest.approx(3 / 5)
    generic = rows["generic"].scores["image"]
    assert (generic.value, generic.status) == (None, "undefined") and "Generic story QA" in generic.reason
    assert {row.scores["human_correlation"].reason for row in rows.values() if row.name != "generic"} == {
        "no person has answered yet"
    }
    assert "no planted losses" in rows["full"].scores["localisation"].reason
    for row in rows.values():
        assert set(row.scores) == {
            name for group in ("rates", "planted", "people", "leakage") for name in GROUPS[group]
        }
        canonical_text(row.as_json())  # plain JSON, nothing infinite


def test_accepted_answers_when_left_out_reject_other_words(tmp_path: Path) -> None:
    release = released(tmp_path)
    run = write_judged(tmp_path / "run", release, ("m",), lambda *_: True)
    path = run / "judgements.jsonl"
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    for row in rows:
        if row["condition"] == "image" and row["item"].endswith("_q1"):  # the causal question
            row["parsed"]["answer"] = f"because: {row['parsed']['answer']}"  # accepted, not canonical
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    made = {
        row.name: row.scores["image"].value
        for row in components.component_removals(Sources({"katha": run}, FEW))
    }
    assert made["full"] == 1.0 and made["without-accepted"] == pytest.approx(5 / 6)


def test_ladder_when_worked_by_hand_begins_bare_and_ends_with_the_protocol(sources: Sources) -> None:
    rows = components.evaluators_and_ladder(sources)
    ladder = image(sources, rows[-len(components.LADDER) :])
    assert ladder == {
        "qa-only": 1.0, "with-transitions": pytest.approx(3 / 5), "with-dimensions": pytest.approx(3 / 5),
        "full": pytest.approx(3 / 5),
    }  # fmt: skip
    assert [row.scores["image"].status for row in rows[: -len(components.LADDER)]] == ["undefined"] * 4


def test_dimension_sets_when_worked_by_hand_hold_the_headline_and_the_mean_of_the_equations(sources):
    rows = {row.name: row.scores for row in components.dimension_sets(sources)}
    values = {name: scores["image"].value for name, scores in rows.items()}
    # latent: causal 0, emotional 1, moral 0, consequence not valid: 1/3; of six 3/5
    assert values["latent"] == pytest.approx(1 / 3) and values["six"] == pytest.approx(3 / 5)
    assert (values["action"], values["moral"]) == (1.0, 0.0)
    assert values["action-latent"] == pytest.approx(2 / 4) and values["non-moral"] == pytest.approx(1 / 2)
    full = score_folder(sources.evaluations["katha"], None, FEW).methods["m"].gaps["question"]["filtered"]
    assert rows["six"]["gap"].value == full.gap.value
    assert rows["latent"]["gap"].value == pytest.approx(full.latent_gap.value)
    assert rows["non-moral"]["gap"].value == pytest.approx(full.latent_gap_without_moral.value)


def test_constructions_when_measured_by_plants_point_where_they_have_questions(tmp_path: Path) -> None:
    losses = {"swapped": ("causal",), "emotion_flattened": ("emotional",)}
    made = write_planted(tmp_path, 8, losses, 0.0)
    given = Sources({"katha": made.run}, FEW, {"katha": made.run}, read_plants(made.plants), "base")
    rows = {row.name: row.scores for row in components.question_constructions(given)}
    assert rows["full"]["localisation"].value == 1.0
    # causes and consequences: causal is seen; where a feeling is lost nothing falls, 1/6
    assert rows["causal-only"]["localisation"].value == pytest.approx((1 + 1 / 6) / 2)
    assert rows["causal-only"]["sensitivity"].value == 0.5
    assert rows["action-only"]["localisation"].value == pytest.approx(1 / 6)
    controls = {row.name: row.scores for row in components.evaluator_controls(given)}
    assert controls["katha-without-dimensions"]["localisation"].value == pytest.approx(1 / 6)
    assert controls["katha-without-contrastives"]["localisation"].value == 1.0
    assert controls["tifa"]["localisation"].status == "undefined"


def simulated(folder: Path, questions: int, truths: list[tuple[str, Truth]]) -> Simulated:
    """An evaluation by simulated judges that says where its release lies."""
    made = write_simulated(folder, questions, truths)
    document = json.loads((made.run / "evaluation.json").read_text())
    document["environment"]["sources"] = [{"role": "release", "path": str(made.release)}]
    (made.run / "evaluation.json").write_text(json.dumps(document))
    return made


@pytest.mark.slow
def test_evidence_when_conditions_are_left_out_has_other_values_and_no_detection(tmp_path: Path) -> None:
    made = simulated(tmp_path, 240, [("m", Truth()), ("n", Truth())])
    rows = {
        row.measured.name: row for row in components.evidence_conditions(Sources({"katha": made.run}, FEW))
    }
    assert list(rows) == [row.setting.name for row in components.EVIDENCE]
    assert [row.value for row in rows.values()] == ["image", "gap", "image", "text", "gap"]
    scores = {name: row.measured.scores for name, row in rows.items()}
    assert scores["image"]["detection"].value == 0.0 == scores["text-image"]["detection"].value
    # nobody knows the answers of other stories; judges that err at random say so almost always
    assert scores["full"]["detection"].value > 0.95
    assert 0 < scores["full"]["false_removals"].value < 0.3
    assert scores["text-image"]["gap"].value != scores["full"]["gap"].value
    assert all(row["reliability"].status == "ok" for row in scores.values())
    assert rows["image"].measured.removes == "Text-only and text+image evidence."


def test_judges_when_alone_or_together_are_scored_by_their_own_verdicts(tmp_path: Path) -> None:
    made = simulated(tmp_path, 120, [("m", Truth(errors=(0.0, 0.2, 0.4)))])
    rows = {row.name: row for row in judge_aggregation(Sources({"katha": made.run}, FEW))}
    assert list(rows) == [*(f"simulated:judge-{n}" for n in (1, 2, 3)), "ensemble", "calibrated"]
    own = score_folder(made.run, None, FEW).methods["m"]
    assert rows["ensemble"].scores["gap"].value == own.gaps["question"]["filtered"].gap.value
    for judge in ("simulated:judge-1", "simulated:judge-3"):
        assert rows[judge].scores["gap"].value == own.judges[judge]["filtered"]["gap"].value
    assert rows["ensemble"].scores["kappa"].reason == "no person has answered yet"
    assert "no weights" in rows["calibrated"].scores["gap"].reason
    judged = judged_as(made.run, FEW)
    assert alone(judged, "ensemble") is judged


def test_weighted_majority_when_worked_by_hand_follows_weight_and_ties_are_wrong() -> None:
    unit = ("image", "m", None, "q")
    judges = {
        name: Followed(right={unit: right}) for name, right in {"a": True, "b": True, "c": False}.items()
    }
    assert weighted_majority(judges, {"a": 1.0, "b": 1.0, "c": 3.0}).right[unit] is False
    assert weighted_majority(judges, {"a": 1.0, "b": 1.0, "c": 2.0}).right[unit] is False  # a tie
    assert weighted_majority(judges, {"a": 1.0, "b": 1.0, "c": 1.5}).right[unit] is True
    assert weighted_majority(judges, {"a": 0.0, "b": 0.0, "c": 0.0}).right == {}


def answered(path: Path, release: Release, right: object) -> Path:
    """MADE-UP answers of three people to every question about the pictures; they stand for no person."""
    rows = [
        {"kind": "answer", "rater": f"p{person}", "item": question.question_id, "condition": "image",
         "method": "m", "answer": question.gold_answer if right(question) else "nobody knows"}  # type: ignore[operator]
        for record in release for question in record.questions for person in range(3)
    ] + [
        {"kind": "moral_label", "rater": f"p{person}", "item": record.story_id, "condition": "image",
         "method": "m", "labels": [record.moral_label]}
        for record in release for person in range(3)
    ]  # fmt: skip
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


@pytest.mark.slow
def test_judges_when_people_answered_are_weighted_by_how_they_follow_them(tmp_path: Path) -> None:
    truths = [("m", Truth(errors=(0.02, 0.3, 0.3), ambiguous=0.0))]
    made = simulated(tmp_path, 240, truths)
    release = load(made.release)
    best = judged_as(made.run, FEW)
    verdicts = best.methods[0].single["simulated:judge-1"].verdicts[0, 1]
    places = best.items.question_places
    people = answered(tmp_path / "human.jsonl", release, lambda q: verdicts[places[q.question_id]] == 1)
    given = Sources({"katha": made.run}, FEW, people=people)
    rows = {row.name: row for row in judge_aggregation(given)}
    first, calibrated, majority = rows["simulated:judge-1"], rows["calibrated"], rows["ensemble"]
    assert first.scores["agreement"].value == 1.0 and first.scores["kappa"].value == pytest.approx(1.0)
    assert first.scores["spearman"].value == pytest.approx(1.0)
    assert calibrated.weights is not None
    assert calibrated.weights["simulated:judge-1"] > calibrated.weights["simulated:judge-2"]
    assert calibrated.scores["agreement"].value > majority.scores["agreement"].value
    inside = sum(len(record.questions) for record in release if record.split == "validation")
    assert first.scores["agreement"].counts["questions"] == 240 - inside
    (full,) = [row for row in components.dimension_sets(given) if row.name == "six"]
    assert full.scores["human_correlation"].value > 0.5


@pytest.mark.slow
def test_morals_when_put_together_are_found_more_often(tmp_path: Path) -> None:
    made = simulated(tmp_path, 360, [("m", Truth())])
    release = load(made.release)
    people = answered(tmp_path / "human.jsonl", release, lambda q: True)
    rows = {row.name: row for row in moral_granularity(Sources({"katha": made.run}, FEW, people=people))}
    assert [row.labels for row in rows.values()] == [2, 4, 10, 12, None]
    assert [row.scores["chance"].value for row in rows.values()] == [
        0.5,
        0.25,
        0.1,
        pytest.approx(1 / 12),
        None,
    ]
    found = [rows[name].scores["image"].value for name in ("twelve", "ten", "four", "binary")]
    assert found == sorted(found)
    own = score_folder(made.run, None, FEW).methods["m"].moral_target
    assert found[0] == own["image"].value and rows["twelve"].scores["gap"].value == own["gap"].value
    assert rows["twelve"].scores["majority"].value == own["majority"].value
    # every story has a label, so that saying that there is one is always right
    assert (found[3], rows["binary"].scores["majority"].value) == (1.0, 1.0)
    # people name the stories' labels here: who follows them is who finds them
    assert rows["twelve"].scores["human_agreement"].value == own["image"].value
    assert rows["open"].scores["chance"].reason == "open answers have no chance level"


def test_evaluation_when_adjusted_is_scored_as_adjusted_and_plants_are_not(tmp_path: Path) -> None:
    made = write_planted(tmp_path, 8, {"swapped": ("causal",)}, 0.0)
    plants = read_plants(made.plants)
    run = write_judged(tmp_path / "all", made.release, ("m", "n"), lambda m, q, c: c != "image" or m == "m")
    given = Sources({"katha": run}, FEW, {"katha": made.run}, plants)
    (six,) = [row for row in components.dimension_sets(given) if row.name == "six"]
    assert six.scores["image"].value == 0.5  # m keeps all, n nothing
    alone_m = replace(given, adjust=lambda judged: replace(judged, methods=judged.methods[:1]), _judged={})
    (six,) = [row for row in components.dimension_sets(alone_m) if row.name == "six"]
    assert six.scores["image"].value == 1.0 and six.scores["image"].counts["methods"] == 1
    assert six.scores["localisation"].value == 1.0  # of base and changed outputs, which are not adjusted


# -- Matchers against labelled answers: false accepts and rejects by hand, file forms, every error named

PLAIN = Uncertainty(resamples=0)


@pytest.fixture(scope="module")
def release(tmp_path_factory: pytest.TempPathFactory) -> Release:
    return load(write_loadable_release(tmp_path_factory.mktemp("matching") / "release", sample_bundles(2)))


@pytest.fixture(scope="module")
def questions(release: Release) -> dict[str, Question]:
    return {question.question_id: question for record in release for question in record.questions}


def labelled(questions: dict[str, Question]) -> list[components.Labelled]:
    gold = questions["kb25k_0001_q1"].gold_answer  # the river had risen all night
    return [
        components.Labelled("kb25k_0001_q1", gold, True),
        components.Labelled("kb25k_0001_q1", gold.upper(), True),
        components.Labelled("kb25k_0001_q1", f"because: {gold}", True),
        components.Labelled("kb25k_0001_q1", "high water after dark", True),
        components.Labelled("kb25k_0001_q1", "the river was dry all night", False),
        components.Labelled("kb25k_0002_q1", "no idea", False),
    ]


def test_errors_when_worked_by_hand_are_shares_of_wrong_and_of_right_answers(release, questions, tmp_path):
    path = tmp_path / "labelled.jsonl"
    path.write_text("".join(json.dumps(vars(answer)) + "\n" for answer in labelled(questions)))
    run = write_judged(tmp_path / "run", release, ("m",), lambda *_: True)
    rows = {
        row.matcher: row
        for row in components.answer_matching(Sources({"katha": run}, Definitions(resamples=0)), path)
    }
    assert list(rows) == ["exact", "keyword", "accepted"]
    # exact: the first alone is right letter by letter, so 3 of 4 right ones are rejected
    assert rows["exact"].scores["false_rejects"].value == 3 / 4
    assert rows["exact"].scores["false_accepts"].value == 0
    # accepted: the paraphrase alone is unknown
    assert rows["accepted"].scores["false_rejects"].value == 1 / 4
    assert rows["accepted"].scores["false_accepts"].value == 0
    # keyword: "river ... all night" has 4 of the 6 words, so the wrong answer is accepted: 1 of 2
    assert rows["keyword"].scores["false_accepts"].value == 1 / 2
    assert rows["keyword"].scores["false_rejects"].value == 1 / 4
    assert {(row.compared, row.unknown) for row in rows.values()} == {(6, 0)}
    assert rows["keyword"].scores["human_correlation"].reason == "no person has answered yet"


def test_errors_when_people_voted_go_by_what_more_than_half_say(release, questions, tmp_path):
    said = [[1, 1, 0], [1], [0, 1, 1, None], [1, 1], [0, 0, 1], [0, 1]]  # the third has half, the last a tie
    rows = [
        HumanRow(
            kind="equivalence", rater=f"p{person}", item=answer.question_id, answer=answer.answer, value=value
        ).as_json()
        for answer, values in zip(labelled(questions), said, strict=True)
        for person, value in enumerate(values)
    ]
    path = tmp_path / "votes.jsonl"
    again = {**rows[0], "value": 0, "repeat": 1}  # the same person was asked once more: not counted
    path.write_text("".join(json.dumps(row) + "\n" for row in [*rows, again, again]))
    answers = components.read_labelled(path, questions)
    assert [answer.correct for answer in answers] == [True, True, None, True, False, None]
    run = write_judged(tmp_path / "run", release, ("m",), lambda *_: True)
    (row,) = components.answer_matching(Sources({"katha": run}, Definitions(resamples=0)), path, ["accepted"])
    assert (row.compared, row.unknown, row.undecided) == (4, 0, 2)
    assert row.scores["false_rejects"].value == 1 / 3  # the paraphrase, of three right answers
    assert row.scores["false_accepts"].value == 0
    path.write_text(
        json.dumps({**rows[0], "value": [1]}) + "\n" + json.dumps({**rows[0], "item": "q"}) + "\n"
    )
    with pytest.raises(InputError) as caught:
        components.read_labelled(path, questions)
    assert len(caught.value.problems) == 2


def test_errors_when_nothing_was_labelled_or_a_matcher_has_no_verdict_say_so(release, questions, tmp_path):
    run = write_judged(tmp_path / "run", release, ("m",), lambda *_: True)
    given = Sources({"katha": run}, Definitions(resamples=0))
    (row,) = components.answer_matching(given, None, ["accepted"])
    assert row.scores["false_accepts"].reason == "no answers were labelled as right or wrong"

    def silent(_key: object, _answer: str) -> bool:
        raise InputError([UserError("q", what="the archive has no verdict", fix="run the matcher")])

    scores, unknown = components.matching_errors(labelled(questions), questions, silent, PLAIN)
    assert unknown == 6 and scores["false_accepts"].status == "undefined"
    only_right = [answer for answer in labelled(questions) if answer.correct]
    scores, _ = components.matching_errors(only_right, questions, keyword, PLAIN)
    assert scores["false_accepts"].reason == "no wrong answer was compared"


@pytest.mark.parametrize(
    ("name", "text", "told"),
    [
        ("a.jsonl", '{"question_id": "kb25k_0001_q1", "answer": "x"}\n', "a.jsonl:1"),
        ("a.jsonl", '{"question_id": "nowhere", "answer": "x", "correct": true}\n', "no question 'nowhere'"),
        ("a.jsonl", "not json\n", "no labelled answer"),
        ("a.jsonl", "", "holds no answers"),
        ("a.csv", "question_id,answer,correct\nkb25k_0001_q1,x,maybe\n", "a.csv:2"),
        ("a.csv", 'question_id,answer,correct\nkb25k_0001_q1,"x,yes\n', "cannot be read"),
    ],
)
def test_file_when_a_line_is_wrong_is_named_with_what_to_do(questions, tmp_path, name, text, told):
    (tmp_path / name).write_text(text)
    with pytest.raises(InputError) as raised:
        components.read_labelled(tmp_path / name, questions)
    assert (told in str(raised.value) and "correct" in str(raised.value)) or "its questions" in str(
        raised.value
    )
