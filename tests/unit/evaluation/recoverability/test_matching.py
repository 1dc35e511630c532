"""Matching answers: normalisation, statuses, named matchers and those whose verdicts are archived."""

import json
import random
from dataclasses import replace

import pytest
from typer.testing import CliRunner

import fabula
from fabula.cli.main import app
from fabula.errors import InputError
from fabula.evaluation.recoverability.compare import compare_folders
from fabula.evaluation.recoverability.matching import (
    Definitions,
    Key,
    Marker,
    accepted,
    exact,
    keyword,
    matcher_of,
    token_f1,
)
from fabula.testing.latex import latex_problems


def key(gold="He is afraid.", *others):
    answers = frozenset({"he is afraid", *others})
    return Key("q", gold, answers, frozenset({"afraid"}))


def test_accepted_when_case_punctuation_and_space_differ_matches():
    assert accepted(key(), "  he is\tAFRAID!!")
    assert not accepted(key(), "he is very afraid")


def test_exact_when_case_differs_does_not_match():
    assert exact(key(), " He is afraid. ")
    assert not exact(key(), "he is afraid")


def test_keyword_when_half_of_the_longer_words_are_there_matches():
    one = Key("q", "The mouse frees the lion", frozenset(), frozenset({"the", "mouse", "frees", "lion"}))
    assert keyword(one, "the lion is free")  # the, lion: 2 of 4
    assert not keyword(one, "a lion")


@pytest.mark.parametrize("status", ["unclear", "omitted", "contradicted"])
def test_mark_when_the_status_is_uncertain_is_wrong(replied, status):
    marker = Marker(accepted)
    assert marker.marks(key(), "image", replied("he is afraid", "image", status)) == (False, True)


def test_mark_when_uncertainty_is_an_accepted_answer_is_right(replied):
    marker = Marker(accepted)
    said = replied("whatever", "image", "unclear")
    assert marker.marks(key("x", "unclear"), "image", said)[0]


@pytest.mark.parametrize(
    ("support", "status", "right"),
    [
        ("contradicted", "supported", True),
        ("contradicted", "omitted", True),
        ("contradicted", "contradicted", False),
        ("contradicted", "ambiguous", False),
        ("eq51", "omitted", False),
    ],
)
def test_mark_when_images_do_not_support_the_answer_follows_the_definition(replied, support, status, right):
    marker = Marker(accepted, support)
    said = replied("he is afraid", "text_image", status)
    assert marker.marks(key(), "text_image", said) == (right, True)


def test_matcher_when_archived_decides_from_its_own_verdicts(bench):
    made = bench(1)
    made.ask(lambda *_: False)
    for question_id, question in made.questions.items():
        verdict = {"matcher": "model", "of": "image", "answer": "nobody knows", "matched": True}
        made.line("match", question.story_id, question_id, "image", verdict, judge="matcher")
    scores = made.score(Definitions(matcher="model", resamples=0))
    assert scores.methods["m"].gaps["question"]["raw"].image.value == 1.0
    assert scores.definitions.as_json()["matcher"] == "model"


def test_matcher_when_a_verdict_is_missing_is_an_error(bench):
    made = bench(1)
    made.ask(lambda *_: False)
    question = next(iter(made.questions.values()))
    said = {"matcher": "model", "of": "image", "answer": "nobody knows", "matched": True}
    made.line("match", question.story_id, question.question_id, "image", said, judge="matcher")
    with pytest.raises(InputError, match="no verdict of the matcher 'model'"):
        made.score(Definitions(matcher="model", resamples=0))


# Token F1: hand-worked values, its threshold, and another implementation of the same formula.

LION = "the mouse frees the lion"
KEY = Key("q", "The mouse frees the lion.", frozenset({LION, "it is freed"}), frozenset())


@pytest.mark.parametrize(
    ("answer", "value"),
    [
        (LION, 1.0),
        ("the lion is free", 4 / 9),  # the, lion of 4 and 5 words
        ("lion the mouse the frees", 1.0),  # in another order
        ("the the the", 4 / 8),  # two of three, two of five
        ("mouse", 2 / 6),
        ("it is", 4 / 5),  # nearer to the other accepted answer
        ("nobody knows", 0.0),
        ("", 0.0),
    ],
)
def test_f1_when_worked_by_hand_is_that_of_the_nearest_accepted_answer(answer: str, value: float) -> None:
    assert token_f1(answer, KEY.accepted) == pytest.approx(value)


@pytest.mark.parametrize(
    ("matcher", "answer", "right"),
    [
        ("token-f1", "The LION, is free!", False),  # 0.44
        ("token-f1=0.4", "The LION, is free!", True),
        ("token-f1", "the the the", True),  # 0.5, the threshold itself
        ("token-f1=1", "lion the mouse the frees", True),
        ("token-f1=1", "the mouse frees a lion", False),
        ("token-f1=0", "mouse", True),
        ("token-f1=0", "nobody knows", False),  # no word shared is never right
        ("token-f1", "...", False),
    ],
)
def test_answer_when_f1_reaches_the_threshold_is_right(matcher: str, answer: str, right: bool) -> None:
    assert matcher_of(matcher, {})(KEY, answer) is right


def other_f1(answer: str, accepted: str) -> float:
    """F1 from precision and recall, words crossed off one by one."""
    left, shared = accepted.split(), 0
    for word in answer.split():
        if word in left:
            left.remove(word)
            shared += 1
    if not shared:
        return 0.0
    precision, recall = shared / len(answer.split()), shared / len(accepted.split())
    return 2 * precision * recall / (precision + recall)


def test_f1_of_drawn_texts_is_that_of_precision_and_recall_and_alike_both_ways() -> None:
    drawn = random.Random(3)
    for _ in range(300):
        one, two = (" ".join(drawn.choices("abcde", k=drawn.randint(0, 8))) for _ in range(2))
        assert token_f1(one, [two]) == pytest.approx(other_f1(one, two), abs=1e-12)
        assert token_f1(one, [two]) == token_f1(two, [one])


# -- Comparing two evaluations, the tables behind the scores, and both commands

QUICK = Definitions(resamples=200)


def lossy(made, share):
    lost = set(sorted(made.questions)[: int(len(made.questions) * share)])
    return lambda q, condition, judge: condition != "image" or q not in lost


@pytest.fixture
def pair(bench):
    """Two evaluations of the same stories: in the second, images lose half of the answers."""
    first, second = bench(4, "first"), bench(4, "second")
    first.ask(lossy(first, 0))
    second.ask(lossy(second, 0.5))
    return first, second


def test_compare_when_protocols_match_gives_the_paired_difference(pair):
    first, second = pair
    found = compare_folders(first.write(), second.write(), None, replace(QUICK, interval="percentile"))
    (one,) = found.comparisons
    assert one.difference == pytest.approx(-0.5)
    assert one.low < -0.5 < one.high <= 0
    (few,) = compare_folders(first.run, second.run, None, QUICK).comparisons
    assert (few.difference, few.low, few.p_wilcoxon) == (one.difference, None, None)
    assert found.stories == 4
    assert list(found.gaps.values()) == [{"m": 0.0}, {"m": pytest.approx(0.5)}]


def test_compare_when_protocols_differ_lists_every_difference(pair):
    first, second = pair
    first.write(prompts={"judge/question_image": "v1"}, seed=1)
    second.write(prompts={"judge/question_image": "v2"}, seed=2)
    with pytest.raises(InputError) as caught:
        compare_folders(first.run, second.run, None, QUICK)
    assert [one.where for one in caught.value.problems] == [
        "protocol prompts.judge/question_image", "protocol seed"
    ]  # fmt: skip
    found = compare_folders(first.run, second.run, None, QUICK, allowed=("prompts", "seed"))
    assert [one.path for one in found.differences] == ["prompts.judge/question_image", "seed"]


def test_compare_when_stories_differ_uses_those_of_both(bench):
    first, second = bench(4, "first"), bench(4, "second")
    left_out = first.release.records[0].story_id
    first.ask(lambda *_: True)
    second.ask(lambda q, c, j: None if second.questions[q].story_id == left_out else True)
    assert compare_folders(first.write(), second.write(), None, QUICK).stories == 3


def test_score_command_when_tables_are_wanted_writes_matches_and_masks(pair, tmp_path):
    made = pair[1]
    target = tmp_path / "tables"
    result = CliRunner().invoke(
        app, ["score", str(made.write()), "--resamples", "0", "--tables", str(target)]
    )
    assert result.exit_code == 0, result.output
    matches = [json.loads(line) for line in (target / "matches.jsonl").read_text("utf-8").splitlines()]
    questions = [json.loads(line) for line in (target / "questions.jsonl").read_text("utf-8").splitlines()]
    assert len(matches) == 72
    assert {row["answer"] for row in matches if not row["matched"]} == {"nobody knows"}
    assert sum(not row["image"] for row in questions) == 12
    assert all(row["filtered"] and row["common"] and not row["ambiguous"] for row in questions)


def test_compare_command_when_the_same_folder_is_given_twice_finds_no_difference(pair):
    run = str(pair[1].write())
    result = CliRunner().invoke(app, ["compare", run, run, "--resamples", "50", "--json"])
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["comparisons"][0]["difference"] == 0.0


@pytest.mark.slow
def test_compare_command_when_one_folder_is_given_compares_the_methods_in_it(bench):
    made = bench(8, "first")
    made.ask(lambda *_: True, method="a")
    made.ask(lambda _, condition, __: condition != "image", conditions=("image", "text_image"), method="b")
    made.write()
    (one,) = json.loads(run_cli("compare", made.run, "--json"))["comparisons"]
    assert (one["first"], one["second"], one["difference"]) == ("a", "b", -1.0)
    assert "a - b: -100.0" in run_cli("compare", made.run)
    latex = run_cli("compare", made.run, "--format", "latex")
    assert list(latex_problems(latex)) == []
    assert "Differences of STG over the questions that are valid for all methods" in latex
    assert "[$-$100.0, $-$26.1] & 0.008 & 0.008 & " in latex  # eight of eight alike: 2 / 2 ** 8
    assert "p, sign test" in latex
    assert r"a less b & $-$100.0 " in run_cli("score", made.run, "--format", "latex")
    compared = fabula.compare(made.run)
    assert str(compared).splitlines() == run_cli("compare", made.run).splitlines()
    assert repr(compared) == "Comparison(tables: comparison)"


def run_cli(*arguments: object) -> str:
    result = CliRunner().invoke(app, [str(one) for one in arguments])
    assert result.exit_code == 0, result.output
    return result.stdout


def test_compare_when_only_prompts_differ_says_how_far_the_wordings_agree(bench):
    first, second = bench(6, "first"), bench(6, "second")
    for place, method in enumerate(("a", "b", "c")):
        lost = set(sorted(first.questions)[: 9 + 9 * place])  # of 36
        more = {*lost, sorted(first.questions)[-1 - place]}
        shown = [one for one in ("text", "image", "text_image") if one != "text" or place == 0]
        first.ask(lambda q, c, _, lost=lost: c != "image" or q not in lost, conditions=shown, method=method)
        second.ask(lambda q, c, _, more=more: c != "image" or q not in more, conditions=shown, method=method)
    first.write(prompts={"judge/question_image": "v1"})
    second.write(prompts={"judge/heldout/question_image": "v1"})
    with pytest.raises(InputError, match="--allow prompts"):
        compare_folders(first.run, second.run, None, QUICK)
    found = compare_folders(first.run, second.run, None, QUICK, allowed=("prompts",))
    assert found.wordings is not None
    assert (found.wordings.methods.value, found.wordings.methods.pairs) == (pytest.approx(1.0), 3)
    assert found.wordings.stories.pairs == 18 and 0.5 < found.wordings.stories.value < 1
    # 3 methods x 36 questions, one verdict of each method is lost under the second wording alone.
    image = found.wordings.agreement["image"]
    assert (image.same.value, image.first_only, image.second_only) == (pytest.approx(105 / 108), 3, 0)
    assert image.same.denominator == 108 and 0.9 < image.kappa < 1
    text = found.wordings.agreement["text"]
    assert (text.same.value, text.same.denominator, text.kappa) == (1.0, 36, None)
    told = "\n".join(found.lines())
    assert "two wordings of the prompts: rank correlation of STG over methods 1.000 (n=3)" in told
    assert json.loads(json.dumps(found.as_json()))["wordings"]["agreement"]["image"]["first_only"] == 3


def test_compare_when_more_than_prompts_differs_makes_no_claim_about_wordings(pair):
    first, second = pair
    first.write(prompts={"judge/question_image": "v1"}, seed=1)
    second.write(prompts={"judge/question_image": "v2"}, seed=2)
    assert compare_folders(first.run, second.run, None, QUICK, ("prompts", "seed")).wordings is None
