"""What a frozen file refuses, and which cell of Table 64 an evaluation is."""

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from fabula.errors import InputError, TargetError
from fabula.evaluation.judging.settings import judge_prompt
from fabula.models.vision.store import Encoder, TextEncoder
from fabula.releases.katha.selection import write_derived
from fabula.releases.loading import load
from fabula.schemas.canonical import digest, pretty_bytes
from fabula.schemas.katha import StoryRecord
from fabula.schemas.values import Score
from fabula.studies.compass import frozen, judging
from fabula.studies.compass.arms import ARMS, Measured, annotation_text, frame_scene, planned_frame
from fabula.studies.compass.boards import (
    NO_QUESTION,
    NO_SCENES,
    NO_TEXT,
    NO_VECTOR,
    ONE_FRAME,
    Board,
    DrawnMarksEncoder,
    Frame,
    PixelEncoder,
    Terms,
    Weights,
    copy_penalty,
    cosine,
    inserted,
    ranked,
    recoverability,
    transition_coverage,
    weakest_transition,
)
from fabula.studies.compass.requests import Grid, grid_of, search
from fabula.studies.pictures import PLANS
from fabula.testing.compass_stories import compass_release, draw_candidates
from fabula.testing.drawn_storyboards import drawn_release

CONDITIONS = frozen.Conditions(
    release_sha256="r", questions_sha256="q", selection_sha256="s", reporting_sha256="t", judges=("a",),
    prompts=judging.selection_prompts(), encoders={"coverage": "clip@1", "copies": "dino@1"}, psi="fields",
    weakest="own", halves="transitions",
)  # fmt: skip
FROZEN = frozen.Frozen(
    version=1,
    setting=frozen.Setting(
        weights=Weights(recoverability=0.4, coverage=0.4, copies=0.2), delta=0.2, gamma=0.9,
        repair_threshold=0.5,
    ),
    conditions=CONDITIONS, split="validation", stories=("story_1", "story_2"), method="m", seeds=(42, 123),
    search=frozen.Search(
        method="grid", seed=42, grid={"delta": (0.1, 0.2)}, tried=2, objective="R", ties="first",
        reranked=0.5, repaired={"0": 0.5}, base=0.4, stories=2,
    ),
)  # fmt: skip


def test_frozen_file_when_written_is_read_back_and_refused_when_changed(tmp_path: Path) -> None:
    path = tmp_path / "frozen.json"
    frozen.write_frozen(path, FROZEN)
    assert frozen.read_frozen(path) == FROZEN
    document = json.loads(path.read_text())
    document["setting"]["gamma"] = 0.8
    path.write_text(json.dumps(document))
    with pytest.raises(InputError, match="changed after it was frozen"):
        frozen.read_frozen(path)
    path.write_text("{}")
    with pytest.raises(InputError, match="no frozen file"):
        frozen.read_frozen(path)
    with pytest.raises(InputError, match="no frozen file"):
        frozen.read_frozen(tmp_path / "nothing.json")


def test_frozen_file_when_applied_to_a_story_it_was_tuned_on_is_refused() -> None:
    frozen.check_applies(FROZEN, CONDITIONS, ["story_3"])
    with pytest.raises(InputError, match="tuned on 1 story that it is to be applied to: story_2"):
        frozen.check_applies(FROZEN, CONDITIONS, ["story_2", "story_3"])


@pytest.mark.parametrize(
    ("name", "other", "words"),
    [
        ("release_sha256", "x", "another release"),
        ("questions_sha256", "x", "other halves of questions"),
        ("selection_sha256", "x", "other selection questions"),
        ("judges", ("b",), "other judges"),
        ("prompts", {"judge/question_image": "x"}, "other prompts"),
        ("encoders", {"coverage": "clip@2", "copies": "dino@1"}, "other encoders"),
        ("weakest", "whole", "another way to find the weakest transition"),
        ("halves", "dimensions", "another way to draw halves"),
    ],
)
def test_frozen_file_when_conditions_differ_is_refused(name: str, other: object, words: str) -> None:
    with pytest.raises(InputError, match=words):
        frozen.check_applies(FROZEN, CONDITIONS.model_copy(update={name: other}), ["story_3"])


def evaluation(folder: Path, release: str, prompts: str) -> Path:
    """An evaluation folder that says no more than what was asked."""
    folder.mkdir()
    prompt = judge_prompt("question_image", prompts)  # type: ignore[arg-type]
    protocol = {"release": {"sha256": release}, "prompts": {prompt.card.id: prompt.label}}
    document = {"kind": "katha", "protocol": protocol, "subject": {}, "environment": {}}
    (folder / "evaluation.json").write_bytes(pretty_bytes(document))
    return folder


def test_evaluation_when_looked_at_is_one_of_the_four_cells(tmp_path: Path) -> None:
    cells = [
        frozen.cell_of(evaluation(tmp_path / f"{release}-{prompts}", release, prompts), CONDITIONS)
        for prompts in ("main", "heldout")
        for release in ("s", "t")
    ]
    assert tuple(cells) == frozen.CELLS
    assert cells[3] == frozen.HELD_OUT
    assert frozen.HELD_OUT.label == "Held-out judge prompts, held-out questions"
    with pytest.raises(InputError, match="neither those that select nor those that report"):
        frozen.cell_of(evaluation(tmp_path / "other", "x", "main"), CONDITIONS)


# Halves of questions: what selects and what reports.


def with_counts(record: StoryRecord, counts: dict[str, int]) -> StoryRecord:
    """The record with so many questions of each dimension."""
    first = record.questions[0]
    questions = tuple(
        first.model_copy(update={"question_id": f"{record.story_id}_{kind}{number}", "question_type": kind})
        for kind, count in counts.items()
        for number in range(count)
    )
    return record.model_copy(update={"questions": questions})


def test_halves_when_numbers_are_odd_give_reporting_more_and_single_ones_to_reporting(tmp_path: Path) -> None:
    (record, *_) = drawn_release(tmp_path, 2).records
    record = with_counts(record, {"causal": 1, "moral": 2, "emotional": 5})

    def drawn(rule: judging.Halving) -> Counter[tuple[str, str]]:
        halves = judging.split_questions([record], rule=rule)
        return Counter((q.question_type, halves.half_of[q.question_id]) for q in record.questions)

    assert drawn("dimensions") == {
        ("causal", "reporting"): 1, ("moral", "selection"): 1, ("moral", "reporting"): 1,
        ("emotional", "selection"): 2, ("emotional", "reporting"): 3,
    }  # fmt: skip
    # All are about one transition, so that dimensions are spread: the only causal one and two of five select.
    assert drawn("transitions") == {
        ("causal", "selection"): 1, ("moral", "selection"): 1, ("moral", "reporting"): 1,
        ("emotional", "selection"): 2, ("emotional", "reporting"): 3,
    }  # fmt: skip


def mix_of_table_14(record: StoryRecord, stories: int) -> Iterator[StoryRecord]:
    """Stories with as many questions of each dimension as 5,000 have in Table 14, about any transition."""
    more = {"causal": 1325, "emotional": 1237, "action_visibility": 1150}  # beyond one (none) in each story
    rng = np.random.default_rng(42)
    links = [(t.from_scene, t.to_scene) for t in record.transitions]
    first = record.questions[0]
    for number in range(stories):
        kinds = ["moral", "consequence", "temporal_order", "causal", "emotional"]
        kinds += [kind for kind, count in more.items() if rng.random() < count / 5000]
        story_id = f"kb25k_{number:04}"
        yield record.model_copy(
            update={
                "story_id": story_id,
                "questions": tuple(
                    first.model_copy(
                        update={
                            "question_id": f"{story_id}_q{at}",
                            "question_type": kind,
                            "target_transition": links[int(rng.integers(len(links)))],
                        }
                    )
                    for at, kind in enumerate(kinds)
                ),
            }
        )


def test_stories_with_the_mix_of_table_14_have_selection_questions_on_two_transitions(tmp_path: Path) -> None:
    records = list(mix_of_table_14(drawn_release(tmp_path, 1).records[0], 200))

    def at_least(rule: judging.Halving, transitions: int) -> float:
        selecting = judging.split_questions(records, rule=rule).records(records, "selection")
        asked = [{q.target_transition for q in record.questions} for record in selecting]
        return sum(len(some) >= transitions for some in asked) / len(records)

    assert at_least("transitions", 2) >= 0.95
    assert at_least("transitions", 1) == 1
    # Half of each dimension leaves more than half of the stories without a single one.
    assert at_least("dimensions", 1) < 0.5 and at_least("dimensions", 2) < 0.1
    halves = judging.split_questions(records)
    assert halves.of("selection").isdisjoint(halves.of("reporting"))
    kinds = Counter(q.question_type for r in halves.records(records, "selection") for q in r.questions)
    whole = Counter(q.question_type for record in records for q in record.questions)
    assert all(0.25 < kinds[kind] / whole[kind] < 0.75 for kind in whole if kind != "moral")


def test_selection_set_when_given_selects_and_all_questions_of_the_release_report(tmp_path: Path) -> None:
    release = compass_release(tmp_path / "release", 1, 1)
    stories, scenes = judging.write_selection_inputs(release, tmp_path / "inputs")
    assert len(jsonl(stories)) == len(jsonl(scenes)) == 2
    assert {name for line in jsonl(scenes) for name in line} == {
        "story_id", "author", "scenes", "transitions",
    }  # fmt: skip
    written = []
    for record in release:
        own, *others = [question.as_json() for question in record.questions]
        # The first is asked by the release, too, but for capitals: it is left out.
        texts = [own["question"].upper(), *(f"{q['question']} Say it in a word." for q in others[:5])]
        questions = [{**own, "question": text, "question_id": f"w{at}"} for at, text in enumerate(texts)]
        written.append(StoryRecord.model_validate({**record.as_json(), "questions": questions}))
    other = write_derived(release, tmp_path / "set", written, {})
    halved = judging.halve_release(release, tmp_path / "out", selection_set=other)
    selecting, reporting = load(halved.selection), load(halved.reporting)
    assert [len(record.questions) for record in selecting] == [5, 5]
    assert [record.questions for record in reporting] == [record.questions for record in release]
    assert halved.halves.of("selection").isdisjoint(halved.halves.of("reporting"))
    with pytest.raises(InputError, match="does not ask itself"):
        judging.halve_release(release, tmp_path / "same", selection_set=release.path)


def test_frozen_file_of_an_earlier_version_when_read_halves_by_dimensions(tmp_path: Path) -> None:
    """Its hash is of what stood in it then."""
    told = FROZEN.told()
    earlier = {**told, "conditions": {k: v for k, v in told["conditions"].items() if k != "halves"}}
    path = tmp_path / "frozen.json"
    path.write_bytes(pretty_bytes({**earlier, "sha256": digest(earlier)}))
    assert frozen.read_frozen(path).conditions.halves == "dimensions"


def jsonl(path: Path) -> list[Any]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_halved_release_when_written_holds_each_question_once_and_no_label_where_it_selects(tmp_path):
    release = compass_release(tmp_path / "release", 2, 2)
    halved = judging.halve_release(release, tmp_path / "out")
    selecting, reporting = load(halved.selection), load(halved.reporting)
    ids = [
        {question.question_id for record in half.records for question in record.questions}
        for half in (selecting, reporting)
    ]
    whole = {question.question_id for record in release.records for question in record.questions}
    assert not ids[0] & ids[1]
    assert ids[0] | ids[1] == whole
    assert {record.moral_label for record in selecting.records} == {None}
    assert [record.moral_label for record in reporting.records] == [
        record.moral_label for record in release.records
    ]
    assert not selecting.variants
    assert reporting.variants == release.variants
    how = json.loads((halved.selection / "release.json").read_text())["derived"]["how"]
    assert how == {"half": "selection", "seed": 42, "questions_sha256": halved.halves.sha256}
    before = {path: path.read_bytes() for path in (tmp_path / "out").rglob("*") if path.is_file()}
    assert judging.halve_release(release, tmp_path / "out").halves == halved.halves
    assert {path: path.read_bytes() for path in before} == before


def test_halves_when_changed_or_of_another_release_are_refused(tmp_path: Path) -> None:
    release = compass_release(tmp_path / "release", 1, 1)
    judging.halve_release(release, tmp_path / "out")
    path = tmp_path / "out" / judging.QUESTIONS
    with pytest.raises(TargetError, match="halves of other questions"):
        judging.halve_release(compass_release(tmp_path / "other", 3, 0), tmp_path / "out")
    document = json.loads(path.read_text())
    moved = next(iter(document["half_of"]))
    document["half_of"][moved] = "selection" if document["half_of"][moved] == "reporting" else "reporting"
    path.write_text(json.dumps(document))
    with pytest.raises(InputError, match="was changed"):
        judging.read_halves(path)
    path.write_text("[]")
    with pytest.raises(InputError, match="no halves"):
        judging.read_halves(path)


# Equations 24 to 28 by hand.

FIVE = [(0, 1), (1, 2), (2, 3), (3, 4)]
WEIGHTS = Weights(recoverability=0.4, coverage=0.4, copies=0.2)


def known(value: float | None) -> Score:
    if value is None:
        return Score(value=None, status="undefined", reason="not known")
    return Score(value=value, status="ok")


def terms(r: float | None, c: float | None, p: float | None) -> Terms:
    return Terms(known(r), known(c), known(p))


def test_recoverability_when_dimensions_have_different_numbers_weighs_them_equally() -> None:
    # causal: 1 of 4 right; moral: 1 of 1. Mean of 1/4 and 1: 0.625, not 2/5.
    assert recoverability({"causal": [True, False, False, False], "moral": [True]}).value == 0.625
    assert recoverability({"causal": []}).reason == NO_QUESTION
    assert recoverability({}).value is None


def likeness() -> np.ndarray:
    # rows: five frames; columns: four transitions
    return np.array(
        [
            [0.5, 0.0, 0.0, 0.9],
            [0.2, 0.3, 0.0, 0.0],
            [0.0, 0.1, 0.2, 0.0],
            [0.0, 0.0, 0.3, 0.4],
            [0.9, 0.9, 0.0, 0.1],
        ]
    )


def test_coverage_when_worked_by_hand_takes_the_better_of_two_frames_strictly_above_delta() -> None:
    # transition 1: max(0.5, 0.2) = 0.5 > 0.3 yes; 2: max(0.3, 0.1) = 0.3 > 0.3 no;
    # 3: max(0.2, 0.3) = 0.3 no; 4: max(0.4, 0.1) = 0.4 yes. 0.9 of frames elsewhere count for nothing.
    score = transition_coverage(likeness(), FIVE, [True] * 4, 0.3)
    assert (score.value, score.numerator, score.denominator) == (0.5, 2, 4)
    assert transition_coverage(likeness(), FIVE, [True] * 4, -1.0).value == 1
    assert transition_coverage(likeness(), FIVE, [True] * 4, 0.9).value == 0


def test_coverage_when_a_bridge_was_inserted_has_three_frames_and_the_same_denominator() -> None:
    # A bridge behind frame 2 shows transition 2: six rows, its cosine 0.8; spans (0,1) (1,2,3) (3,4) (4,5).
    rows = np.insert(likeness(), 2, [0.0, 0.8, 0.0, 0.0], axis=0)
    score = transition_coverage(rows, [(0, 1), (1, 2, 3), (3, 4), (4, 5)], [True] * 4, 0.3)
    assert (score.value, score.denominator) == (0.75, 4)


def test_coverage_when_undefined_says_why() -> None:
    # Of four annotations one is empty: it leaves both sides. 1 yes, 2 no, 3 no: 1 of 3.
    score = transition_coverage(likeness(), FIVE, [True, True, True, False], 0.3)
    assert (score.numerator, score.denominator) == (1, 3)
    assert transition_coverage(likeness(), FIVE, [False] * 4, 0.3).reason == NO_TEXT
    assert transition_coverage(likeness(), [(), *FIVE[1:]], [True] * 4, 0.3).reason == NO_SCENES
    nothing = np.full((5, 4), np.nan)
    assert transition_coverage(nothing, FIVE, [True] * 4, 0.3).reason == NO_VECTOR


def test_copy_penalty_when_worked_by_hand_counts_neighbours_strictly_above_gamma() -> None:
    # 0.99 > 0.95 and 0.96 > 0.95; 0.95 is not: 2 of 4.
    assert copy_penalty(np.array([0.99, 0.95, 0.2, 0.96]), 0.95).value == 0.5
    # Six frames have five neighbours: 2 of 5.
    assert copy_penalty(np.array([0.99, 0.95, 0.2, 0.96, 0.1]), 0.95).value == 0.4
    assert copy_penalty(np.ones(4), 0.999).value == 1
    assert copy_penalty(np.array([]), 0.95).reason == ONE_FRAME
    # A pair without a vector is left out: 1 of 3.
    assert copy_penalty(np.array([0.99, np.nan, 0.2, 0.1]), 0.95).value == pytest.approx(1 / 3)
    assert copy_penalty(np.array([np.nan]), 0.95).reason == NO_VECTOR


def test_score_when_worked_by_hand_is_the_weighted_sum() -> None:
    # 0.4 x 0.5 + 0.4 x 0.75 - 0.2 x 0.25 = 0.2 + 0.3 - 0.05 = 0.45
    # 0.4 x 0.75 + 0.4 x 0.5 - 0.2 x 0 = 0.3 + 0.2 = 0.5
    ranking = ranked([terms(0.5, 0.75, 0.25), terms(0.75, 0.5, 0.0)], WEIGHTS)
    assert ranking.scores == (0.45, 0.5)
    assert (ranking.best, ranking.terms) == (1, ("recoverability", "coverage", "copies"))


@pytest.mark.parametrize(
    ("names", "best"),
    [
        (("recoverability",), 1),
        (("coverage",), 0),
        (("copies",), 2),
        (("recoverability", "coverage"), 1),  # 0.4 x (0.5 + 0.75), (0.9 + 0.5), (0.1 + 0.2)
        (("coverage", "copies"), 0),  # 0.3 - 0.02 = 0.28; 0.2 - 0.1 = 0.1; 0.08
    ],
)
def test_score_when_terms_are_left_out_selects_by_the_others(names: tuple[str, ...], best: int) -> None:
    candidates = [terms(0.5, 0.75, 0.1), terms(0.9, 0.5, 0.5), terms(0.1, 0.2, 0.0)]
    assert ranked(candidates, WEIGHTS.only(names)).best == best  # type: ignore[arg-type]


def test_score_when_equal_takes_the_first_seed_whatever_the_order_of_additions() -> None:
    # 0.1 + 0.2 is not 0.3 in binary: nine digits decide.
    weights = Weights(recoverability=0.1, coverage=0.2, copies=0.7)
    assert ranked([terms(1.0, 1.0, 0.0), terms(0.0, 1.5, 0.0)], weights).best == 0
    assert ranked([terms(0.0, 1.5, 0.0), terms(1.0, 1.0, 0.0)], weights).best == 0


def test_copied_storyboard_when_as_recoverable_loses_by_the_copy_penalty() -> None:
    # Five times the same frame: all four neighbours are copies. 0.4 + 0.4 - 0.2 = 0.6 against 0.8.
    assert ranked([terms(1.0, 1.0, 1.0), terms(1.0, 1.0, 0.0)], WEIGHTS).best == 1
    assert ranked([terms(1.0, 1.0, 1.0), terms(1.0, 1.0, 0.0)], WEIGHTS.only(("coverage",))).best == 0


def test_weakest_transition_when_worked_by_hand_is_the_lowest_that_has_a_question() -> None:
    assert weakest_transition([known(0.5), known(0.25), known(0.25), known(1.0)]) == 1
    assert weakest_transition([known(0.5), known(None), known(0.75), known(None)]) == 0
    assert weakest_transition([known(None)] * 4) is None


def test_bridge_when_inserted_stands_behind_the_first_frame_of_its_transition() -> None:
    # Eq. 28 with t* = 2: x1, x2, x2.5, x3, x4, x5
    assert inserted("12345", 2, "b") == ("1", "2", "b", "3", "4", "5")
    for after in (0, 5):
        with pytest.raises(ValueError, match="behind frame 1 to 4"):
            inserted("12345", after, "b")


# -- The search of tuning on made-up likenesses, the budget, and arms


def candidate(seed: int, r: float, like: float, near: float) -> Measured:
    """Two frames, one transition."""
    board = Board("s", seed, (Frame(Path("1"), "a", 1), Frame(Path("2"), "b", 2)))
    return Measured(board, known(r), np.array([[like], [0.0]]), np.array([near]), ((0, 1),), (True,))


GRID = Grid(
    (
        Weights(recoverability=0.8, coverage=0.1, copies=0.1),
        Weights(recoverability=0.1, coverage=0.8, copies=0.1),
        Weights(recoverability=0.1, coverage=0.1, copies=0.8),
    ),
    (0.3,), (0.9, 0.999),
)  # fmt: skip


@pytest.mark.parametrize(
    ("aims", "place"), [((0.9, 0.1, 0.2), 0), ((0.1, 0.9, 0.2), 1), ((0.1, 0.2, 0.9), 2)]
)
def test_search_when_one_term_picks_what_is_best_chooses_its_weights(
    aims: tuple[float, ...], place: int
) -> None:
    # The first is the most recoverable, the second alone is covered, the third alone has no copies:
    # by the weights 0.8 / 0.1 / 0.1 the scores are 0.8 - 0.1, 0.1 - 0.1, 0; and so on.
    story = [candidate(42, 1.0, 0.0, 1.0), candidate(123, 0.0, 0.9, 1.0), candidate(2026, 0.0, 0.0, 0.5)]
    found = search([story], [[known(aim) for aim in aims]], GRID)
    assert found.chosen == (place,)
    assert found.setting.weights == GRID.weights[place]
    assert (found.objective, found.tried) == (0.9, 3 * 1 * 2)


def test_search_when_settings_are_equal_takes_equal_weights_and_the_highest_gamma() -> None:
    weights = (*GRID.weights, Weights(recoverability=0.4, coverage=0.3, copies=0.3))
    story = [candidate(42, 1.0, 0.9, 0.1)]
    found = search([story], [[known(0.5)]], Grid(weights, (0.1, 0.2, 0.3), (0.9, 0.999)))
    assert found.setting.weights == weights[3]
    assert (found.setting.gamma, found.setting.delta) == (0.999, 0.2)
    assert found.setting.repair_threshold == 0


def test_search_when_stories_have_different_numbers_of_candidates_and_unknown_aims_leaves_those_out() -> None:
    two = [candidate(42, 0.0, 0.0, 1.0), candidate(123, 1.0, 0.9, 0.1)]
    one = [candidate(42, 0.0, 0.0, 1.0)]
    found = search([two, one, two], [[known(0.0), known(1.0)], [known(0.5)], [known(None), known(1.0)]], GRID)
    # (1.0 + 0.5) / 2: the third story has a candidate whose aim nobody knows.
    assert (found.objective, found.chosen) == (0.75, (1, 0, 1))
    with pytest.raises(InputError, match="there is no objective"):
        search([one], [[known(None)]], GRID)


def test_grid_when_made_takes_thresholds_from_the_candidates_and_weights_above_zero() -> None:
    stories = [[candidate(42, 0.0, number / 10, number / 10)] for number in range(11)]
    grid = grid_of(stories)
    # Quantiles that are values themselves: of 0.0 to 1.0 in tenths.
    assert grid.deltas == (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
    assert grid.gammas == (0.7, 0.9, 0.999)  # 0.75 and 0.99 fall between: the lower one; 0.9, 0.95 -> 0.9
    assert len(grid.weights) == 36  # so many ways to write 10 as a sum of three numbers from 1
    assert all(w.recoverability + w.coverage + w.copies == pytest.approx(1) for w in grid.weights)
    assert min(w.copies for w in grid.weights) == 0.1


def test_budget_when_counted_by_hand_is_the_most_that_there_can_be(tmp_path: Path) -> None:
    release = compass_release(tmp_path, 0, 2)
    halves = judging.split_questions(release.records)
    # 2 stories, 16 questions each, 8 of them select, all of those are about a transition; 3 seeds, 2 judges.
    asked = frozen.budget(release.records, halves, ARMS, 3, 2, "own")
    full = asked.arms["full"]
    assert (full.candidates, full.weakest, full.bridges) == (2 * 8 * 3 * 2, 2 * 8 * 2, 2 * 8 * 3 * 2)
    assert full.pictures == 2 * 5 * 3 + 2 * 3
    assert asked.arms["base"].calls == asked.arms["coverage+copies"].calls == 0
    assert asked.arms["base"].reporting == 2 * (2 * 8) * 3 * 2
    bridge = asked.arms["bridge-only"]
    assert (bridge.candidates, bridge.weakest, bridge.bridges) == (2 * 8 * 2, 2 * 8 * 2, 2 * 8 * 3 * 2)
    # Two starts are repaired; candidates are judged once.
    together = asked.together
    assert (together.candidates, together.weakest, together.bridges) == (96, 64, 192)
    assert asked.text == 2 * 8 * 2
    assert frozen.budget(release.records, halves, ARMS, 3, 2, "whole").arms["full"].weakest == 0
    tuning = frozen.tuning_budget(release.records, halves, 3, 2, "own").arms["tuning"]
    assert tuning.candidates == 2 * 16 * 3 * 2
    assert tuning.bridges == full.bridges + 2 * 8 * 2
    assert any("calls to select and repair" in line for line in asked.lines())


# Encoders without weights, cosines, and texts of annotations.


def plain(colour: tuple[int, int, int], size: tuple[int, int] = (64, 48)) -> Image.Image:
    return Image.new("RGB", size, colour)


def test_pixels_when_pictures_are_equal_or_scaled_give_one_and_opposite_ones_less() -> None:
    rows = PixelEncoder().encode([plain((0, 0, 0)), plain((0, 0, 0), (128, 96)), plain((255, 255, 255))])
    assert rows.shape == (3, 769)
    assert np.allclose(np.linalg.norm(rows, axis=1), 1)
    assert cosine(rows[0], rows[1]) == 1
    # 768 numbers of -0.5 against +0.5 and one of 0.5: (-768 + 1) / 769
    assert cosine(rows[0], rows[2]) == round(-767 / 769, 6)
    grey = PixelEncoder().encode([plain((128, 128, 128)), plain((128, 128, 128))])
    assert cosine(grey[0], grey[1]) == 1


def test_drawn_marks_when_read_are_those_of_texts_and_unknown_elsewhere(tmp_path: Path) -> None:
    record = compass_release(tmp_path / "release", 1, 1).records[0]
    boards = draw_candidates(tmp_path / "boards", [record], lambda *_: False, [42])
    encoder = DrawnMarksEncoder()
    assert isinstance(encoder, Encoder) and isinstance(encoder, TextEncoder)
    with Image.open(boards / record.story_id / "seed_42" / "02.png") as picture:
        rows = encoder.encode([picture.convert("RGB"), plain((9, 9, 9))])
    texts = encoder.encode_texts([annotation_text(transition) for transition in record.transitions])
    # The frame has 4 marks: hero, action, cause, outcome; the annotation has 3: action, cause, outcome.
    # Two are the same: 2 / sqrt(4 x 3).
    assert cosine(rows[0], texts.rows[0]) == pytest.approx(2 / np.sqrt(12), abs=1e-6)
    assert cosine(rows[0], texts.rows[2]) == 0
    assert np.isnan(rows[1]).all()
    assert texts.cut == (0, 0, 0, 0)


def test_annotation_text_when_fields_are_null_leaves_them_out_and_keeps_their_order(tmp_path: Path) -> None:
    transition = compass_release(tmp_path, 1, 1).records[0].transitions[0]
    filled = transition.model_copy(
        update={"action": "the fox  leaps", "causality": None, "emotion": "joy", "consequence": "it is\nwet"}
    )
    assert annotation_text(filled) == "the fox leaps\njoy\nit is wet"
    empty = dict.fromkeys(("action", "causality", "emotion", "consequence"))
    assert annotation_text(filled.model_copy(update=empty)) == ""


def test_frames_when_planned_show_what_their_way_allows_and_no_question(tmp_path: Path) -> None:
    record = compass_release(tmp_path, 1, 1).records[0]
    transition = record.transitions[1]
    prompts = {
        shows: planned_frame(record, 2, shows).prompt for shows in ("transition", "captions", "setting")
    }  # type: ignore[arg-type]
    cause = str(transition.causality)
    captions = [record.scenes[1].scene_text, record.scenes[2].scene_text]
    assert cause in prompts["transition"] and captions[0] not in prompts["transition"]
    assert all(caption in prompts["captions"] for caption in captions)
    assert str(transition.action) not in prompts["captions"]
    assert not any(text in prompts["setting"] for text in (cause, *captions, str(transition.action)))
    assert "Nothing happens" in prompts["setting"]
    hero = record.scenes[1].characters[0]
    assert all(hero in prompt for prompt in prompts.values())
    assert not any(
        question.question in prompt for question in record.questions for prompt in prompts.values()
    )
    kinds = {shows: {mark.kind for mark in frame_scene(record, 2, shows).marks} for shows in prompts}  # type: ignore[arg-type]
    assert kinds["setting"] == {"character"}
    assert {"cause", "consequence", "change"} <= kinds["transition"]
    assert "cause" not in kinds["captions"] and "must_show" in kinds["captions"]
    assert "inserted-frame" not in {plan.name for plan in PLANS}


def test_frames_when_planned_never_tell_what_questions_ask_for_nor_the_moral(tmp_path: Path) -> None:
    record = compass_release(tmp_path, 1, 1).records[0]
    hidden = {"recoverability_target": "whoever asks for this", "moral_target": "a hidden moral"}
    transitions = tuple(transition.model_copy(update=hidden) for transition in record.transitions)
    record = record.model_copy(update={"transitions": transitions})
    for shows in ("transition", "captions", "setting"):
        panel = planned_frame(record, 1, shows)  # type: ignore[arg-type]
        marks = " ".join(mark.text for mark in panel.drawn.marks)
        assert not any(text in panel.prompt or text in marks for text in hidden.values())
        assert not any(text in annotation_text(record.transitions[0]) for text in hidden.values())
