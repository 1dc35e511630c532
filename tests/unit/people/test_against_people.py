"""Judges against people, preferences, agreement, weights: by hand and beside other libraries."""

import json
import math
import random
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import krippendorff
import numpy as np
import pytest
from scipy.stats import kendalltau, spearmanr
from sklearn.metrics import accuracy_score, cohen_kappa_score, confusion_matrix

from fabula.errors import InputError
from fabula.evaluation.recoverability.matching import Definitions, Nonresponse, items_of
from fabula.evaluation.recoverability.pooling import UNJUDGED, boards
from fabula.evaluation.recoverability.replies import RIGHT, replies_of
from fabula.evaluation.stats.tables import correlate
from fabula.people.against import (
    ENSEMBLE,
    LEVELS,
    Against,
    against,
    fitted_weights,
    judged,
    label_agreement,
    preference_agreement,
    spearman_of,
)
from fabula.people.episodes import Judged, Table, agreement, majority
from fabula.people.events import ALL, alignment, human_rates
from fabula.people.ratings import agreements, preferences
from fabula.people.read import Known, read_human, read_key
from fabula.people.recoverability import CONDITIONS, Resampling
from fabula.people.review.sources.episodes import Instance, Stratum, accounting, sample
from fabula.people.review.sources.source import draw_methods
from fabula.releases.loading import Release
from fabula.schemas.entities import TYPES
from fabula.schemas.judgement import HumanRow, Judgement
from fabula.schemas.katha import Question

Line = Callable[..., HumanRow]
Reply = Callable[..., Judgement]
FEW = Resampling(200)


def test_agreement_when_worked_by_hand_is_that(line, reply, questions):
    items = list(questions)[:4]
    told = [(True, True, False), (True, True, True), (False, False, True), (True, False)]  # the last: divided
    rows = [
        line("answer", f"p{person}", item, right)
        for item, answers in zip(items, told, strict=True)
        for person, right in enumerate(answers)
    ]
    judge = judged([reply(item, right) for item, right in zip(items, (1, 0, 0, 1), strict=True)], questions)
    found = against(rows, questions, judge, LEVELS, FEW)["test:a"]
    # majorities right, right, wrong; the judge right, wrong, wrong
    assert found.values["agreement"].value == pytest.approx(2 / 3)
    assert found.values["agreement"].counts == {"questions": 3, "divided": 1}
    assert found.values["calibration_error"].value == pytest.approx(abs(2 / 3 - 0.9))
    assert found.not_judged == 0


def random_study(
    line: Line, reply: Reply, questions: dict[str, Question], seed: int
) -> tuple[list[HumanRow], list[Judgement]]:
    random = np.random.default_rng(seed)
    levels = ("low", "medium", "high")
    rows = [
        line("answer", f"p{person}", item, bool(random.uniform() < 0.6))
        for item in questions
        for person in random.choice(8, 3, replace=False)
    ]
    replies = [
        reply(item, bool(random.uniform() < 0.5), confidence=levels[random.integers(3)]) for item in questions
    ]
    return rows, replies


@pytest.mark.parametrize("seed", range(3))
def test_comparison_when_compared_is_that_of_scipy_and_scikit_learn(line, reply, questions, seed):
    rows, replies = random_study(line, reply, questions, seed)
    judge = judged(replies, questions)["test:a"]
    found = against(rows, questions, {"a": judge}, LEVELS, FEW)["a"]
    items = list(questions)
    votes = {
        item: [row.answer == questions[item].gold_answer for row in rows if row.item == item]
        for item in items
    }
    machine = [judge.right["image", "m", None, item] for item in items]
    people = [sum(votes[item]) >= 2 for item in items]
    assert found.values["agreement"].value == pytest.approx(accuracy_score(people, machine))
    (_, accepted), (rejected, _) = confusion_matrix(people, machine, normalize="true")
    assert found.false_acceptance.value == pytest.approx(accepted)
    assert found.false_rejection.value == pytest.approx(rejected)
    stories = list(dict.fromkeys(questions[item].story_id for item in items))
    pairs = [
        [
            np.mean(
                [value for item, value in zip(items, values, strict=True) if questions[item].story_id == one]
            )
            for one in stories
        ]
        for values in (machine, [np.mean(votes[item]) for item in items])
    ]
    rounded = np.round(pairs, 12)
    assert found.values["spearman"].value == pytest.approx(spearmanr(*rounded).statistic)
    assert found.spearman.value == pytest.approx(spearmanr(*rounded).statistic)
    assert found.kendall.value == pytest.approx(kendalltau(*rounded).statistic)
    difference = np.abs(rounded[0] - rounded[1]).mean()
    assert found.values["mean_absolute_difference"].value == pytest.approx(difference)
    same = [
        np.sign(rounded[0][a] - rounded[0][b]) == np.sign(rounded[1][a] - rounded[1][b])
        for a in range(len(stories))
        for b in range(a)
    ]
    assert found.values["pairwise_agreement"].value == pytest.approx(np.mean(same))
    assert found.pairs == "between_stories"
    gaps = sum(one.count * abs(one.accuracy - one.confidence) for one in found.bins)
    error = gaps / sum(one.count for one in found.bins)
    assert found.values["calibration_error"].value == pytest.approx(error)
    for score in found.values.values():
        assert score.low is not None
        assert score.high is not None
        assert score.low <= score.high


def test_storyboards_when_kept_have_the_shares_that_the_correlation_stands_on(line, reply, questions):
    rows, replies = random_study(line, reply, questions, 5)
    judge = judged(replies, questions)["test:a"]
    found = against(rows, questions, {"a": judge}, LEVELS, FEW)["a"]
    for board in found.storyboards:
        items = [item for item in questions if questions[item].story_id == board.story]
        right = [judge.right["image", "m", None, item] for item in items]
        shares = [
            np.mean([row.answer == questions[item].gold_answer for row in rows if row.item == item])
            for item in items
        ]
        assert (board.method, board.seed, board.questions) == ("m", None, len(items))
        assert board.judge == pytest.approx(np.mean(right))
        assert board.people == pytest.approx(np.mean(shares))
    assert len(found.storyboards) == len({one.story_id for one in questions.values()})
    people, machine = zip(*((board.people, board.judge) for board in found.storyboards), strict=True)
    assert found.spearman.value == pytest.approx(spearmanr(people, machine).statistic)


def test_storyboards_when_there_are_too_many_are_some_at_even_distances(line, reply, questions, monkeypatch):
    rows, replies = random_study(line, reply, questions, 5)
    judge = judged(replies, questions)["test:a"]
    every = against(rows, questions, {"a": judge}, LEVELS, FEW)["a"]
    monkeypatch.setattr("fabula.people.against.MOST_STORYBOARDS", 3)
    some = against(rows, questions, {"a": judge}, LEVELS, FEW)["a"]
    last = len(every.storyboards) - 1
    assert some.storyboards == tuple(every.storyboards[n] for n in (0, round(last / 2), last))
    assert some.values["spearman"].counts == {"storyboards": last + 1}, "all of them count"


def test_comparison_when_judge_is_perfect_or_always_wrong_is_one_or_zero(line, reply, questions):
    truth = {item: number % 3 > 0 for number, item in enumerate(questions)}
    rows = [line("answer", f"p{person}", item, right) for item, right in truth.items() for person in range(3)]

    def compared(turned: bool) -> Against:
        replies = [reply(item, right != turned) for item, right in truth.items()]
        return against(rows, questions, judged(replies, questions), {"high": 1.0}, FEW)["test:a"]

    assert compared(False).values["agreement"].value == 1
    assert compared(False).values["calibration_error"].value == 0
    assert compared(False).values["mean_absolute_difference"].value == 0
    assert compared(True).values["agreement"].value == 0
    assert compared(True).values["calibration_error"].value == 1


def test_comparison_when_nothing_is_shared_is_undefined(line, reply, questions):
    one, two = list(questions)[:2]
    judge = judged([reply(two, True)], questions)
    found = against([line("answer", "p", one, right=True)], questions, judge, LEVELS, FEW)["test:a"]
    assert {score.status for score in found.values.values()} == {"undefined"}
    assert (found.not_judged, found.bins, found.kendall.value) == (1, (), None)
    assert found.storyboards == ()


def test_pairs_when_a_story_has_two_methods_are_within_stories(line, reply, questions):
    item = next(iter(questions))
    rows = [line("answer", "p", item, right=True), line("answer", "p", item, right=False, method="n")]
    replies = [reply(item, True), reply(item, False, method="n")]
    found = against(rows, questions, judged(replies, questions), LEVELS, FEW)["test:a"]
    assert (found.pairs, found.values["pairwise_agreement"].value) == ("within_story", 1.0)


def test_spearman_when_places_are_missing_leaves_them_out() -> None:
    random = np.random.default_rng(0)
    rows, fixed = random.integers(0, 4, (20, 9)).astype(float), random.integers(0, 4, 9).astype(float)
    rows[random.uniform(size=rows.shape) < 0.3] = np.nan
    wanted = []
    for row in rows:
        there = np.isfinite(row)
        wanted.append(spearmanr(row[there], fixed[there]).statistic)
    assert spearman_of(rows, fixed[None])[:, 0] == pytest.approx(np.array(wanted), nan_ok=True)


def test_ensemble_when_judges_disagree_goes_by_majority_and_ties_are_wrong(reply, questions):
    one, two = list(questions)[:2]
    silent = reply(one, True, "test:c").model_copy(update={"outcome": "refused", "parsed": None})
    replies = [
        reply(one, True, "test:a"), reply(one, True, "test:b"), silent,
        reply(two, True, "test:a"), reply(two, False, "test:b"),
    ]  # fmt: skip
    together = judged(replies, questions)[ENSEMBLE]
    assert together.right == {("image", "m", None, one): True, ("image", "m", None, two): False}


def test_labels_when_people_have_a_majority_are_compared_with_it(line: Line, reply: Reply) -> None:
    told = {"a": ("kindness", "kindness", "wisdom"), "b": ("wisdom", "patience"), "c": ("courage",) * 3}
    rows = [
        line("moral_label", f"p{person}", story, labels=(label,))
        for story, labels in told.items()
        for person, label in enumerate(labels)
    ]
    judge = judged([], {})
    assert judge == {}
    named = {"a": "kindness", "b": "wisdom", "c": None}
    from fabula.people.against import Judged

    found = label_agreement(
        rows, Judged(labels={("image", "m", None, story): label for story, label in named.items()}), FEW
    )
    assert found.value == pytest.approx(1 / 2)  # a agrees, c does not, b is divided
    assert found.counts == {"stories": 2, "divided": 1}
    assert label_agreement([], Judged(), FEW).status == "undefined"


def test_preferences_when_judged_are_compared_by_sign(line, reply, questions):
    item = next(iter(questions))
    story = questions[item].story_id
    choice = {"method": "m", "baseline": "n", "criterion": "Q15"}
    rows = [
        line("preference", "p", story, **choice, value=1),
        line("preference", "q", story, **choice, value=-2),
    ]
    replies = [reply(item, False), reply(item, True, method="n")]
    found = preference_agreement(rows, questions, judged(replies, questions)["test:a"])
    assert (found["Q15"].value, found["Q15"].counts) == (1.0, {"pairs": 1})


def test_preferences_when_worked_by_hand_are_that(line: Line) -> None:
    choice = {"method": "m", "baseline": "n"}
    rows = [
        line("preference", f"p{person}", "s", **choice, criterion="Q1", value=value, group="g")
        for person, value in enumerate((2, 1, 1, 0, -1))
    ]
    rows.append(line("preference", "p9", "s", **choice, criterion="Q1", answer="unclear"))
    rows.append(line("preference", "p0", "s", **choice, criterion="Q15", value=1))
    first, last = preferences(rows, FEW)
    assert (first.criterion, last.criterion) == ("Q1", "Q15")
    assert first.mean.value == pytest.approx(3 / 5)
    assert (first.values, first.unclear) == ((0, 1, 1, 2, 1), 1)
    assert first.test.p_value == pytest.approx(4 / 16)
    assert first.p_corrected == pytest.approx(2 * 4 / 16)  # two criteria of this pair
    assert first.test.rank_biserial == pytest.approx(0.6)
    assert first.groups["g"].value == first.mean.value


def test_people_when_compared_with_each_other_agree_as_another_library_says(line, questions):
    random = np.random.default_rng(4)
    table = random.integers(1, 6, (4, 15)).astype(float)
    table[random.uniform(size=table.shape) < 0.2] = np.nan
    rows = [
        line("rating", f"p{rater}", f"s{story}", method="m", criterion="NCS", value=int(table[rater, story]))
        for rater, story in zip(*np.nonzero(np.isfinite(table)), strict=True)
    ]
    item = next(iter(questions))
    rows += [line("answer", f"p{person}", item, right=person > 0) for person in range(3)]
    answers, ratings = agreements(rows, questions)
    assert ratings.alpha.value == pytest.approx(krippendorff.alpha(table, level_of_measurement="ordinal"))
    assert (ratings.level, ratings.kappa) == ("ordinal", None)
    assert answers.pairs.value == pytest.approx(1 / 3)
    assert answers.what == "answer, image"
    # Labels aab and bbb: P = (1/3 + 1) / 2 = 2/3, shares 1/3 and 2/3: Pe = 5/9, so (6/9 - 5/9) / (4/9) = 1/4.
    said = {"s1": ("courage", "courage", "wisdom"), "s2": ("wisdom",) * 3}
    (labels,) = agreements(
        [
            line("moral_label", f"p{n}", item, labels=(name,))
            for item in said
            for n, name in enumerate(said[item])
        ],
        questions,
    )
    assert labels.kappa.value == pytest.approx(1 / 4)


def test_weights_when_fitted_are_log_odds_of_agreeing(line, reply, questions):
    items = list(questions)[:10]
    rows = [line("answer", "p", item, right=True) for item in items]
    good = [reply(item, number < 8, "test:good") for number, item in enumerate(items)]
    bad = [reply(item, number < 1, "test:bad") for number, item in enumerate(items)]
    found = fitted_weights(rows, questions, judged([*good, *bad], questions))
    assert found == {"test:bad": 0.0, "test:good": pytest.approx(math.log(9 / 3))}


def test_judges_when_asked_different_things_are_compared_each_on_its_own(line, reply, questions):
    rows, replies = random_study(line, reply, questions, 9)
    others = [
        one.model_copy(update={"judge": one.judge.model_copy(update={"spec": "test:b"})}) for one in replies
    ]
    judges = judged([*replies, *others[:7]], questions)
    together = against(rows, questions, judges, LEVELS, FEW)
    for name, judge in judges.items():
        alone = against(rows, questions, {name: judge}, LEVELS, FEW)[name]
        for value, score in alone.values.items():
            other = together[name].values[value]
            assert (score.value, score.low, score.high) == pytest.approx((other.value, other.low, other.high))
    assert together["test:b"].not_judged == len(questions) - 7


@pytest.mark.parametrize("nonresponse", ["excluded", "incorrect"])
def test_verdicts_when_judges_refuse_and_vote_are_those_that_scoring_uses(
    reply: Reply, questions: dict[str, Question], release: Release, nonresponse: Nonresponse
) -> None:
    random = np.random.default_rng(8)
    replies = []
    for item in questions:
        for condition in CONDITIONS:
            for judge in ("test:a", "test:b", "test:c", "test:d"):
                for vote in range(2):
                    one = reply(item, bool(random.integers(2)), judge, condition=condition, vote=vote)
                    if random.uniform() < 0.2:
                        one = one.model_copy(update={"outcome": "refused", "parsed": None})
                    replies.append(one)
    mine = judged(replies, questions, nonresponse)
    items = items_of(release.records, release.variants)
    stories = frozenset(release.by_id)
    definitions = Definitions(nonresponse=nonresponse)
    read = replies_of(replies, items, stories, definitions)
    board = boards(read, items, "question", definitions)["m"]
    for condition in CONDITIONS:
        for item in questions:
            place = CONDITIONS.index(condition), items.question_places[item]
            unit = (condition, None if condition == "text" else "m", None, item)
            verdict = board.together[(0, *place)]
            assert mine[ENSEMBLE].right.get(unit) == (None if verdict == UNJUDGED else bool(verdict == RIGHT))
            for number, judge in enumerate(read.judges):
                verdict = board.single[(number, 0, *place)]
                assert mine[judge].right.get(unit) == (
                    None if verdict == UNJUDGED else bool(verdict == RIGHT)
                )
                assert (unit in mine[judge].silent) == (verdict == UNJUDGED)
    assert bool(mine["test:a"].silent) == (nonresponse == "excluded")


# -- Which models' videos people see, and how the verifier's ranking of models follows theirs

MODELS = [f"model_{number:02d}" for number in range(11)]
VIDEOS = [f"prompt_{number:03d}.mp4" for number in range(450)]


def test_methods_when_drawn_are_two_different_ones_of_every_prompt_and_hang_on_the_seed_alone() -> None:
    there = dict.fromkeys(VIDEOS, MODELS)
    drawn = draw_methods(there, 2, random.Random(42))
    by_video: dict[str, set[str]] = {}
    for video, method in drawn:
        by_video.setdefault(video, set()).add(method)
    assert len(drawn) == 900
    assert all(len(methods) == 2 for methods in by_video.values())
    per_model = Counter(method for _, method in drawn)
    assert all(60 < count < 105 for count in per_model.values())  # the paper has about 80 for each of eleven
    assert drawn == draw_methods(dict.fromkeys(VIDEOS[::-1], MODELS[::-1]), 2, random.Random(42))
    assert drawn != draw_methods(there, 2, random.Random(7))


def test_rates_when_several_people_judge_are_their_mean(line: Callable[..., HumanRow]) -> None:
    rows = [
        line("completion", "p", "a.mp4", method="x", completion=(1, 0)),
        line("completion", "q", "a.mp4", method="x", completion=(1, 1)),
        line("completion", "q", "a.mp4", method="x", completion=(0, 0), repeat=1),
    ]
    assert human_rates(rows) == {("x", "a.mp4"): 0.75}


def test_alignment_when_worked_by_hand_is_that() -> None:
    people = {("x", "a"): 0.2, ("y", "a"): 0.4, ("z", "a"): 0.6, ("z", "b"): 1.0}
    verifier = {("x", "a"): 0.1, ("y", "a"): 0.5, ("z", "a"): 0.3}
    found = alignment(people, verifier, {"a": ("human", "easy"), "b": ("animal",)})
    assert list(found) == ["human", "easy", ALL]
    # ranks 1, 2, 3 and 1, 3, 2: 1 - 6 * 2 / (3 * 8) = 0.5; (2 - 1) / 3
    assert found[ALL].spearman.value == pytest.approx(0.5)
    assert found[ALL].kendall.value == pytest.approx(1 / 3)
    assert found[ALL].difference == pytest.approx((0.1 + 0.1 + 0.3) / 3)
    assert found[ALL].models["z"] == (0.6, 0.3, 1)  # the video that the verifier did not answer is out


def test_alignment_when_compared_is_that_of_scipy() -> None:
    people = {(model, video): (number * 7 % 13 + place % 3) / 20 for number, model in enumerate(MODELS)
              for place, video in enumerate(VIDEOS[:6])}  # fmt: skip
    verifier = {video: (rate * 17 % 1) for video, rate in people.items()}
    found = alignment(people, verifier, {video: ("human",) for video in VIDEOS})["human"]
    rates = list(zip(*[entry[:2] for entry in found.models.values()], strict=True))
    assert found.spearman.value == pytest.approx(spearmanr(*rates).statistic)
    assert found.kendall.value == pytest.approx(kendalltau(*rates).statistic)


def test_alignment_when_two_models_share_a_class_is_undefined_with_a_reason() -> None:
    people = {("x", "a"): 0.2, ("y", "a"): 0.4}
    found = alignment(people, people, {})
    assert found[ALL].spearman.value is None
    assert found[ALL].spearman.reason
    assert alignment({}, {}, {})[ALL].difference is None
    assert json.dumps(found[ALL].spearman.as_json())


# -- Sampling of what a judge of episodes saw, and reading what people say of it


def instances(count: int, folder: Path) -> list[Instance]:
    """So many of each stratum, method and tier."""
    return [
        Instance(
            Stratum("fidelity", kind, passes), method, tier,
            f"{tier}/fidelity/1:{number}/{kind}:{passes}", kind, "a thing", ((folder / "crop.png",),),
        )
        for kind in TYPES for passes in (True, False) for method in ("x", "y") for tier in ("easy", "hard")
        for number in range(count)
    ]  # fmt: skip


def test_sample_when_strata_are_full_is_in_thirds_and_halves_over_methods_and_tiers(tmp_path: Path) -> None:
    every = instances(20, tmp_path)
    drawn = sample(every, "fidelity", 200, 7)
    assert sorted(Counter(each.stratum.type for each in drawn).values()) == [66, 67, 67]
    assert Counter(each.stratum.admitted for each in drawn) == {True: 100, False: 100}
    for part in accounting(every, drawn, {"fidelity": 200}):
        assert part["drawn"] == part["wanted"] and len(part["cells"]) == 4
        assert max(part["cells"].values()) - min(part["cells"].values()) <= 1
    assert drawn == sample(list(reversed(every)), "fidelity", 200, 7)
    assert drawn != sample(every, "fidelity", 200, 8)


def test_sample_when_a_stratum_lacks_some_takes_none_elsewhere_and_counts_it(tmp_path: Path) -> None:
    lacking = Stratum("fidelity", "object", False)
    every = [each for each in instances(20, tmp_path) if each.stratum != lacking]
    drawn = sample(every, "fidelity", 60, 7)
    told = {
        (part["type"], part["admitted"]): (part["wanted"], part["available"], part["drawn"])
        for part in accounting(every, drawn, {"fidelity": 60})
    }
    assert told["object", False] == (10, 0, 0) and told["object", True] == (10, 80, 10)
    assert len(drawn) == 50


def test_answers_when_people_saw_tasks_by_number_are_brought_back_by_their_key(tmp_path: Path) -> None:
    (tmp_path / "key.json").write_text('{"task_1": ["easy/fidelity/1:0/object:x", "x"]}')
    key = read_key(tmp_path / "key.json")
    ((item, method),) = key.values()
    asked = {item: Judged("fidelity", "object", {}).asked}
    known = Known(methods=frozenset("xy"), asked=asked, kinds=frozenset(("rating",)))
    line = {"kind": "rating", "rater": "p1", "item": "task_1", "criterion": "present", "value": 1}
    answers = tmp_path / "people.jsonl"
    answers.write_text(json.dumps(line), "utf-8")
    (row,) = read_human(answers, known, key)
    assert (row.item, row.method) == (item, method)
    for wrong in ({"value": 2}, {"criterion": "beauty"}, {"item": "task_9"}, {"method": "x"}):
        answers.write_text(json.dumps(line | wrong), "utf-8")
        with pytest.raises(InputError) as caught:
            read_human(answers, known, key)
        assert next(iter(wrong)) in str(caught.value)
    for text in ("[]", "{", '{"a": 1}', '{"a": ["b"]}'):
        (tmp_path / "bad.json").write_text(text)
        with pytest.raises(InputError, match="not the key of a study"):
            read_key(tmp_path / "bad.json")


# -- A judge beside people. All people here are simulated, with error rates that are known

HAND = Resampling(0)


def table(judge: list[float], *people: list[float]) -> Table:
    return Table(np.array(judge), np.array(people), np.arange(len(judge), dtype=np.int64))


def test_kappa_when_worked_by_hand_is_that() -> None:
    # Judge 1100, majority 1000: they agree on 3/4; by chance on 1/2 * 1/4 + 1/2 * 3/4 = 1/2; kappa 1/2.
    rated = table([1, 1, 0, 0], [1, 0, 0, 0], [1, 1, 0, 0], [1, 0, 0, 1])
    found = agreement("kappa", rated, HAND)
    assert found.judge.value == pytest.approx(0.5)
    # People 1 and 2: 1/2; 1 and 3: 1/2; 2 and 3: agree on 2/4, by chance on 1/2, so 0.
    assert (found.least, found.greatest) == (pytest.approx(0.0), pytest.approx(0.5))
    assert found.people.value == pytest.approx(1 / 3)


def test_agreement_when_people_err_at_known_rates_equals_sklearn_and_what_rates_imply() -> None:
    random = np.random.default_rng(1)
    truth = np.arange(4000) % 2
    wrong = random.random((4, len(truth))) < np.array([[0.05], [0.1], [0.1], [0.1]])
    said = np.where(wrong, 1 - truth, truth).astype(np.float64)
    owners = np.arange(len(truth), dtype=np.int64)
    found = agreement("kappa", Table(said[0], said[1:], owners), FEW)
    assert found.judge.value == pytest.approx(cohen_kappa_score(said[0], majority(said[1:])))
    between = [cohen_kappa_score(said[one], said[other]) for one, other in ((1, 2), (1, 3), (2, 3))]
    assert found.people.value == pytest.approx(np.mean(between))
    assert (found.least, found.greatest) == (pytest.approx(min(between)), pytest.approx(max(between)))
    # Two who err with 0.1 agree on 0.9^2 + 0.1^2 = 0.82, by chance on 1/2: kappa 0.64. The majority of
    # three errs with 3 * 0.1^2 * 0.9 + 0.1^3 = 0.028; with a judge's 0.05 they differ on 0.0752: 0.8496.
    for score, expected in ((found.people, 0.64), (found.judge, 0.8496)):
        assert score.value == pytest.approx(expected, abs=0.03)
        assert score.low is not None and score.high is not None
        assert score.low < score.value < score.high


def test_pearson_when_some_did_not_answer_equals_scipy_over_what_is_shared() -> None:
    random = np.random.default_rng(2)
    judge, people = random.random(30), random.random((3, 30)).round(1)
    people[0, :5], people[:, 7], judge[9] = np.nan, np.nan, np.nan
    found = agreement("pearson", Table(judge, people, np.arange(30, dtype=np.int64)), FEW)
    together = np.array([np.nan if np.isnan(column).all() else np.nanmean(column) for column in people.T])
    assert found.judge.value == pytest.approx(correlate("pearson", judge, together).value)
    pairs = ((0, 1), (0, 2), (1, 2))
    between = [correlate("pearson", people[one], people[other]).value for one, other in pairs]
    assert found.people.value == pytest.approx(np.mean([value for value in between if value is not None]))
    assert found.judge.counts == {"answered": 29, "used": 28, "tied": 0, "without_judge": 1}


def test_kappa_when_people_tie_or_the_judge_is_silent_leaves_these_out_and_counts_them() -> None:
    rated = table([1, 0, 1, np.nan], [1, 0, 1, 1], [1, 0, 0, 1])
    found = agreement("kappa", rated, HAND)
    assert found.judge.value == pytest.approx(1.0)
    assert found.judge.counts == {"answered": 4, "used": 2, "tied": 1, "without_judge": 1}


def test_kappa_when_everybody_says_the_same_is_undefined_and_no_score() -> None:
    found = agreement("kappa", table([1, 1], [1, 1], [1, 1]), FEW)
    assert (found.judge.value, found.judge.status) == (None, "undefined")
    assert (found.people.value, found.least) == (None, None)


def test_interval_when_entries_share_instances_draws_instances() -> None:
    judge, people = np.arange(8.0) % 4, np.array([np.arange(8.0) % 4 + [0, 1, 0, 0, 0, 1, 0, 0]])
    apart = agreement("pearson", Table(judge, people, np.arange(8, dtype=np.int64)), FEW)
    joined = agreement("pearson", Table(judge, people, np.arange(8, dtype=np.int64) // 4), FEW)
    assert apart.judge.value == pytest.approx(joined.judge.value)
    # Both instances hold the same four pairs, so drawing instances changes nothing.
    assert joined.judge.low == pytest.approx(joined.judge.high)
    assert apart.judge.low is not None and apart.judge.value is not None
    assert apart.judge.low < apart.judge.value - 0.01
