"""Both meanings of raw and of common-valid, worked by hand; and seeds that are averaged before stories."""

import json
from itertools import product

import numpy as np
import pytest

from fabula.errors import ConfigError, InputError
from fabula.evaluation.katha.report.page import katha_report
from fabula.evaluation.katha.report.tables import score_tables, strongest_table
from fabula.evaluation.recoverability import columns
from fabula.evaluation.recoverability.compare import against_strongest
from fabula.evaluation.recoverability.matching import COMMONS, CONDITIONS, DIMENSIONS, Definitions
from fabula.evaluation.recoverability.method import (
    common_questions,
    common_stories,
    gaps_over,
    narrowed,
    validity_sets,
)
from fabula.evaluation.recoverability.pooling import IMAGE
from fabula.evaluation.recoverability.recoverability import values_of
from fabula.evaluation.recoverability.score import judged_folder, score_folder
from fabula.evaluation.report.formats import write_report, written
from fabula.studies.experiments.ablations.measuring import uncontrasted
from fabula.studies.experiments.evaluators.evaluator import evaluator_of
from fabula.studies.experiments.measures.planted import seen_by
from fabula.studies.experiments.measures.views import view_scores
from fabula.studies.experiments.tables.failures import failures_of
from fabula.testing.simulated_evaluations import write_simulated
from fabula.testing.simulated_judgements import Truth
from fabula.validators.resampling import draws

NONE = Definitions(resamples=0)


def judged_of(made, subject, definitions=NONE):
    return judged_folder(made.write(subject), None, definitions)


def gaps_of(judged, method="m"):
    sets = validity_sets(judged.methods, judged.items)
    by_name = {each.name: each for each in judged.methods}
    parts = {name: (by_name[method], sets[method][name]) for name in sets[method]}
    return {name: made.values["gap"] for name, made in gaps_over(parts, judged.items, NONE).items()}


def test_validity_sets_when_worked_by_hand_are_the_six_meanings(bench):
    made = bench(4)
    first, second, third, fourth = (record.story_id for record in made.release.records)
    of = {q: one.story_id for q, one in made.questions.items()}
    dimension = {q: one.question_type for q, one in made.questions.items()}

    def says(q, condition, judge):
        if condition == "text":
            return True
        if of[q] == fourth:
            return None  # the generation of m is invalid there, and nobody was asked
        if condition == "text_image":
            return not (of[q] == second and dimension[q] == "causal")  # one ambiguous question
        return of[q] != first and not (of[q] == second and dimension[q] == "causal")

    made.ask(says, method="m")
    made.ask(lambda q, *_: of[q] != third or None, conditions=("image", "text_image"), method="n")
    subject = {
        "m": {"seeds": [None], "invalid": [{"story_id": fourth, "seed": None, "codes": ["missing-panel"]}]},
        "n": {"seeds": [None], "invalid": [{"story_id": third, "seed": None, "codes": ["missing-panel"]}]},
    }
    gaps = gaps_of(judged_of(made, subject))
    # Story 1 tells nothing, story 2 all but one ambiguous question, story 3 all, story 4 is invalid.
    # Causal: lost are 1, 2 and 4 of four stories; other dimensions: 1 and 4.
    assert gaps["before_both"] == pytest.approx((3 / 4 + 5 * 2 / 4) / 6)
    # Without story 4: causal 1 and 2 of three, others 1 of three.
    assert gaps["before_ambiguity"] == pytest.approx((2 / 3 + 5 / 3) / 6)
    # With story 4 as lost, without the ambiguous question: causal 1 and 4 of three, others 1 and 4 of four.
    assert gaps["before_validity"] == pytest.approx((2 / 3 + 5 * 2 / 4) / 6)
    # Without both: causal 1 of two, others 1 of three.
    assert gaps["filtered"] == pytest.approx((1 / 2 + 5 / 3) / 6)
    # n has no valid generation of story 3: causal 1 of one, others 1 of two, for both meanings.
    assert gaps["common_questions"] == gaps["common_stories"] == pytest.approx((1 + 5 / 2) / 6)


def test_common_valid_when_a_question_is_ambiguous_for_another_method_differs_by_its_meaning(bench):
    made = bench(2)
    causal = {q for q, one in made.questions.items() if one.question_type == "causal"}
    lost = min(causal)
    made.ask(lambda q, condition, judge: not (condition == "image" and q == lost), method="m")
    made.ask(
        lambda q, condition, judge: not (condition == "text_image" and q == lost),
        conditions=("image", "text_image"), method="n",
    )  # fmt: skip
    judged = judged_of(made, {"m": {"seeds": [None]}, "n": {"seeds": [None]}})
    gaps = gaps_of(judged)
    # For m causal is lost in one of two stories: 1/2, mean over six dimensions 1/12. That question is
    # ambiguous for n: common questions are without it, common stories keep both stories of m whole.
    assert gaps["common_stories"] == pytest.approx(1 / 12)
    assert gaps["common_questions"] == 0.0
    assert common_stories(judged.methods).tolist() == [True, True]
    assert [int(each.sum()) for each in common_questions(judged.methods)] == [11, 11]


def test_text_side_when_generations_are_invalid_stands_on_the_same_generations_as_images(bench):
    made = bench(2)
    good, broken = (record.story_id for record in made.release.records)
    known = {q: one.story_id for q, one in made.questions.items()}
    # Text tells only the broken story: over the valid one text is 0, images are 1.
    made.ask(
        lambda q, condition, judge: known[q] == broken if condition == "text" else (known[q] == good or None),
        method="m",
    )  # fmt: skip
    judged = judged_of(made, {"m": {"seeds": [None], "invalid": [{"story_id": broken, "seed": None}]}})
    sets = validity_sets(judged.methods, judged.items)["m"]
    values = gaps_over({"m": (judged.methods[0], sets["filtered"])}, judged.items, NONE)["m"].values
    assert (values["text"], values["image"], values["gap"]) == (0.0, 1.0, -1.0)


def test_narrowed_when_a_method_was_never_asked_for_a_story_counts_no_failure(bench):
    made = bench(2)
    first, second = (record.story_id for record in made.release.records)
    known = {q: one.story_id for q, one in made.questions.items()}
    made.ask(lambda *_: True, method="m")
    made.ask(
        lambda q, *_: known[q] == first or None, conditions=("image", "text_image"), method="oracle"
    )  # fmt: skip
    subject = {
        "m": {"seeds": [None]},
        "oracle": {"seeds": [None], "invalid": [{"story_id": second, "seed": None, "codes": ["missing"]}]},
    }
    judged = judged_of(made, subject)
    assert [method.made.as_json()["generations_invalid"] for method in judged.methods] == [0, 1]
    asked = np.array([[record.story_id == first for record in judged.items.records]])
    m, oracle = narrowed(judged.methods, {"oracle": asked}, judged.items)
    assert oracle.made.as_json() == {
        "stories_requested": 1, "stories_valid": 1, "generations_requested": 1, "generations_valid": 1,
        "generations_invalid": 0, "invalid_rate": 0.0,
    }  # fmt: skip
    # What m shares with others is not cut down to the stories of the oracle.
    assert int(m.outcomes.sets["common"].sum()) == 12
    assert int(judged.methods[0].outcomes.sets["common"].sum()) == 6


def test_generations_when_nobody_names_the_seeds_are_of_those_that_were_judged(bench):
    made = bench(2)
    made.ask(lambda *_: True, conditions=("text",))  # of no method and no seed
    for seed in (1, 2, 3):
        made.ask(lambda *_: True, conditions=("image", "text_image"), method="m", seed=seed)
    first = made.release.records[0].story_id
    subject = {"m": {"invalid": [{"story_id": first, "seed": seed} for seed in (1, 2, 3)]}}
    (method,) = judged_of(made, subject).methods
    assert method.made.as_json() == {
        "stories_requested": 2, "stories_valid": 1, "generations_requested": 6, "generations_valid": 3,
        "generations_invalid": 3, "invalid_rate": 0.5,
    }  # fmt: skip


def test_intervals_when_stories_have_seeds_resample_stories_of_seed_means(bench):
    made = bench(8)
    place = {record.story_id: number for number, record in enumerate(made.release.records)}
    known = {q: place[one.story_id] for q, one in made.questions.items()}
    made.ask(lambda *_: True, conditions=("text",))
    for seed in (1, 2, 3):
        # Story s is told with seed k where s < 2 k: its mean over seeds is 1, 1, 2/3, 2/3, 1/3, 1/3, 0, 0.
        made.ask(
            lambda q, condition, judge, seed=seed: condition == "text_image" or known[q] < 2 * seed,
            conditions=("image", "text_image"), method="m", seed=seed,
        )  # fmt: skip
    used = Definitions(resamples=500, interval="percentile")
    judged = judged_of(made, {"m": {"seeds": [1, 2, 3]}}, used)
    filtered = judged.methods[0].outcomes.sets["filtered"]
    score = gaps_over({"m": (judged.methods[0], filtered)}, judged.items, used)["m"].score("image")
    means = np.array([1, 1, 2 / 3, 2 / 3, 1 / 3, 1 / 3, 0, 0])
    again = np.concatenate([weights @ means / 8 for weights in draws(8, 500, 42)])
    assert score.value == pytest.approx(0.5)
    assert (score.low, score.high) == pytest.approx(tuple(np.quantile(again, (0.025, 0.975))))


def test_intervals_when_one_method_has_no_seed_and_the_other_three_are_of_the_same_stories(bench):
    made = bench(3)
    made.ask(lambda *_: True, method="closed")
    for seed in (42, 123, 2026):
        made.ask(
            lambda q, condition, judge, seed=seed: condition == "text_image" or seed == 42,
            conditions=("image", "text_image"), method="open", seed=seed,
        )  # fmt: skip
    judged = judged_of(made, {"closed": {"seeds": [None]}, "open": {"seeds": [42, 123, 2026]}})
    made_of = {method.name: method.made.as_json() for method in judged.methods}
    assert (made_of["closed"]["generations_requested"], made_of["open"]["generations_requested"]) == (3, 9)
    assert gaps_of(judged, "closed")["filtered"] == 0.0
    assert gaps_of(judged, "open")["filtered"] == pytest.approx(2 / 3)  # two of three seeds tell nothing


def test_common_questions_by_majority_count_once_as_the_mean_over_the_seeds_that_are_valid(bench):
    made = bench(6)
    made.ask(lambda *_: True, conditions=("text",))
    dimension = {q: one.question_type for q, one in made.questions.items()}
    for method, seed in product("mn", (1, 2, 3)):
        # No question is valid with every seed of both. Causal ones are valid with seeds 1 and 2 of m, others
        # with seed 3 of it alone; all are with seeds 2 and 3 of n. Only seed 2 of m tells anything.
        def says(q, condition, judge, method=method, seed=seed):
            if condition == "image":
                return (method, seed) == ("m", 2)
            return seed != 1 if method == "n" else (dimension[q] == "causal") == (seed < 3)

        made.ask(says, conditions=("image", "text_image"), method=method, seed=seed)
    subject = {name: {"seeds": [1, 2, 3]} for name in "mn"}
    strict = made.score(Definitions(resamples=200), **subject)
    assert strict.comparisons[0].n == 0 and strict.comparisons[0].difference is None
    (pair,) = made.score(Definitions(resamples=200, common="majority"), **subject).comparisons
    # The causal question of each of 6 stories: m tells it with one of the two valid seeds, n never.
    assert (pair.n, pair.difference) == (6, -0.5)
    judged = judged_of(made, subject, Definitions(resamples=0, common="majority"))
    assert [round(float(each.sum()), 9) for each in common_questions(judged.methods)] == [6, 6]


def test_three_noisy_judges_three_seeds_and_two_methods_leave_questions_in_common_by_majority(tmp_path):
    """Judges that err in 45 of 100 answers: by every seed nothing is common to 6 storyboards of a story."""
    truth = Truth(errors=(0.45,) * 3)
    seeds = dict.fromkeys("mn", (42, 123, 2026))
    made = write_simulated(tmp_path, 48, [(name, truth) for name in seeds], seed=5, generations=seeds)
    counts = {}
    for common in COMMONS:
        scores = score_folder(made.run, made.release, Definitions(resamples=200, common=common))
        counts[common] = (scores.comparisons[0].n, scores.comparisons[0].difference)
    assert counts["every-seed"] == (0, None)
    number, difference = counts["majority"]
    assert number == 8 and difference == pytest.approx(-0.0718, abs=1e-4)


# Archives that cannot be scored, and what is said about them.


def quick():
    return Definitions(resamples=0)


def test_release_when_it_is_another_one_is_refused(bench):
    made, other = bench(2), bench(3, "other")
    made.ask(lambda *_: True)
    with pytest.raises(InputError, match="SHA-256"):
        score_folder(made.write(), other.release_folder, quick())


def test_item_when_judged_twice_with_different_answers_is_refused_with_both(bench):
    made = bench(1)
    made.ask(lambda *_: True)
    run = made.write()
    path = run / "judgements.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    answer = made.lines[-1].parsed["final_answer"]
    path.write_bytes(b"".join([*lines, lines[0].replace(answer.encode(), b"another")]))
    again = next(line for line in lines if b'"text_image"' in line)
    changed = again.replace(b'"supported"', b'"ambiguous"')
    path.write_bytes(b"".join([*lines, changed]))
    with pytest.raises(InputError, match="one answer to") as caught:
        score_folder(run, None, quick())
    assert "ambiguous" in str(caught.value) and "supported" in str(caught.value)


def test_item_when_the_same_line_stands_twice_counts_once(bench):
    made = bench(1)
    made.ask(lambda *_: True)
    run = made.write()
    path = run / "judgements.jsonl"
    path.write_bytes(path.read_bytes() * 2)
    assert score_folder(run, None, quick()).coverage[0].asked == 6


def test_line_when_it_cannot_be_read_is_named(bench):
    made = bench(1)
    made.ask(lambda *_: True)
    run = made.write()
    with (run / "judgements.jsonl").open("ab") as handle:
        handle.write(b"{}\n")
    with pytest.raises(InputError, match=r"judgements\.jsonl:19"):
        score_folder(run, None, quick())


def test_question_when_it_is_not_of_the_release_is_refused(bench):
    made = bench(1)
    made.ask(lambda *_: True)
    story = made.release.records[0].story_id
    made.line("question", story, "nowhere", "text", "refused")
    with pytest.raises(InputError, match="nowhere"):
        made.score()


def test_outputs_when_shown_under_text_only_are_refused(bench):
    made = bench(1)
    made.ask(lambda *_: True)
    line = made.lines.pop(0)
    made.lines.append(line.model_copy(update={"method": "m"}))
    with pytest.raises(InputError, match="under text"):
        made.score()


def test_split_when_chosen_leaves_the_others_out_and_says_so(bench):
    made = bench(6)
    made.ask(lambda *_: True)
    split = made.release.records[0].split
    there = sum(record.split == split for record in made.release.records)
    scores = score_folder(made.write(), None, quick(), splits=[split])
    assert scores.scope["stories"] == there < 6
    assert scores.notes == (f"{(6 - there) * 18} judgements are about stories that are not scored here",)
    with pytest.raises(ConfigError, match="nowhere"):
        score_folder(made.run, None, quick(), splits=["nowhere"])


def test_notes_when_stories_for_training_were_judged_say_so_unless_they_were_asked_for(bench):
    made = bench(6)
    made.ask(lambda *_: True)
    count = sum(record.split == "train" for record in made.release.records)
    told = f"{count} of 6 judged stories are of the split train, which methods may have learned from"
    assert [note.partition(";")[0] for note in score_folder(made.write(), None, quick()).notes] == [told]
    assert not any("train" in note for note in score_folder(made.run, None, quick(), splits=["train"]).notes)
    about = json.loads((made.run / "evaluation.json").read_text("utf-8"))
    about["environment"]["selection"] = {"split": ["train"], "stories": []}
    (made.run / "evaluation.json").write_text(json.dumps(about), "utf-8")
    assert score_folder(made.run, None, quick()).notes == ()


def test_stories_when_only_some_of_the_release_were_judged_are_the_only_ones(bench):
    made = bench(4)
    chosen = made.release.records[1].story_id
    made.ask(lambda q, c, j: True if made.questions[q].story_id == chosen else None)
    scores = made.score()
    assert scores.scope["stories"] == 1
    assert scores.methods["m"].questions["total"] == 6


# -- Votes and judges: majority, ties, silence, weights; labels by the most frequent one


def raw_image(scores, judge=None):
    method = scores.methods["m"]
    if judge is not None:
        return method.judges[judge]["raw"]["image"].value
    return method.gaps["question"]["raw"].image.value


COUNTED = Definitions(nonresponse="incorrect", resamples=0)


@pytest.mark.parametrize(
    ("said", "expected", "counted_wrong"),
    [
        ((True, True, False), 1.0, 1.0),
        ((True, False), 0.0, 0.0),  # a tie is incorrect
        ((True, "refused"), 1.0, 0.0),  # who does not answer has no vote, unless that is to count as wrong
        ((True, True, "blocked"), 1.0, 1.0),
        (("refused", "failed"), None, 0.0),
    ],
)
def test_judges_when_joined_need_more_than_half_of_those_who_answer(bench, said, expected, counted_wrong):
    made = bench(1)
    judges = tuple("abc"[: len(said)])
    made.ask(lambda q, condition, judge: said[judges.index(judge)] if condition == "image" else True, judges)
    assert raw_image(made.score()) == expected
    assert raw_image(made.score(COUNTED)) == counted_wrong


def test_question_when_every_judge_is_silent_and_excluded_is_unjudged(bench):
    made = bench(1)
    made.ask(lambda q, c, judge: "failed" if c == "image" else True)
    method = made.score().methods["m"]
    assert method.questions["unjudged"] == 6
    assert method.gaps["question"]["raw"].gap.status == "undefined"


def test_coverage_when_a_judge_fails_on_everything_says_so(bench):
    made = bench(2)
    made.ask(lambda q, c, judge: "failed" if judge == "c" else True, ("a", "b", "c"))
    scores = made.score()
    assert raw_image(scores) == 1.0
    assert raw_image(scores, "c") is None, "a failure is no score"
    assert raw_image(made.score(COUNTED), "c") == 0.0
    rows = [one for one in scores.coverage if one.judge == "c"]
    assert {(one.condition, one.asked, one.outcomes["failed"]) for one in rows} == {
        ("text", 12, 12), ("image", 12, 12), ("text_image", 12, 12)
    }  # fmt: skip
    assert any("c answered nothing: 36 failed of 36" in line for line in scores.lines())


def test_votes_of_a_judge_when_several_are_joined_before_judges(bench):
    made = bench(1)
    made.ask(lambda *_: True, ("a", "b"), conditions=("text", "text_image"))
    for vote, tells in enumerate((True, True, False)):
        made.ask(lambda q, c, judge, tells=tells: tells, ("a",), conditions=("image",), vote=vote)
    made.ask(lambda *_: True, ("b",), conditions=("image",))
    assert raw_image(made.score()) == 1.0


def test_weights_when_given_decide_and_must_name_every_judge(bench, tmp_path):
    made = bench(1)
    made.ask(lambda q, c, judge: judge == "a" or c != "image", ("a", "b", "c"))
    weighted = Definitions(weights={"a": 3.0, "b": 1.0, "c": 1.0}, resamples=0)
    assert raw_image(made.score(weighted)) == 1.0
    assert raw_image(made.score()) == 0.0
    with pytest.raises(ConfigError, match="no weight for b, c"):
        made.score(Definitions(weights={"a": 1.0}, resamples=0))


def test_labels_when_three_judges_disagree_go_to_the_most_frequent(bench):
    made = bench(1)
    record = made.release.records[0]
    others = [label for label in ("wisdom", "courage", "patience") if label != record.moral_label]
    made.ask(lambda *_: True)
    for condition in ("text", "image"):
        # two of four say the right label, two say two others: the most frequent is right, though no majority
        for judge, label in zip("abcd", (record.moral_label, record.moral_label, *others), strict=False):
            made.line(
                "moral_label", record.story_id, record.story_id, condition,
                {"answer": label, "confidence": "low"}, judge=judge,
            )  # fmt: skip
    moral = made.score().methods["m"].moral_target
    assert (moral["text"].value, moral["image"].value, moral["gap"].value) == (1.0, 1.0, 0.0)
    assert moral["chance"].value == pytest.approx(1 / 12)
    assert moral["majority"].value == 1.0


def test_label_when_tied_or_unclear_is_not_found(bench):
    made = bench(2)
    first, second = made.release.records
    made.ask(lambda *_: True)
    other = "wisdom" if first.moral_label != "wisdom" else "courage"
    for condition in ("text", "image"):
        for judge, label in (("a", first.moral_label), ("b", other)):
            made.line(
                "moral_label", first.story_id, first.story_id, condition, {"answer": label}, judge=judge
            )
        made.line("moral_label", second.story_id, second.story_id, condition, {"answer": "unclear"})
    moral = made.score().methods["m"].moral_target
    assert moral["image"].value == 0.0
    assert moral["majority"].value == 0.5


def test_pairs_when_judged_give_accuracy_and_confusion(bench):
    made = bench(2)
    made.ask(lambda *_: True)
    said = ("source", "source", "contrastive", "unclear")
    for variant, answer in zip(made.release.variants, said, strict=True):
        made.line(
            "contrast", variant.base_story_id, variant.pair_id, "image", {"answer": answer, "first": "source"}
        )
    pairs = made.score().methods["m"].pairs
    # the source is chosen for 2 of 4 pairs, its contrast for 1
    assert pairs["accuracy"].value == 0.5
    assert pairs["confusion"].value == 0.5
    assert pairs["contrastive_chosen"].value == 0.25


# Outcome triples, coverage, groups, the evidence control and contrastive gaps.


def test_triples_when_every_combination_occurs_are_counted_each(bench):
    made = bench(2)
    combinations = list(product((True, False), repeat=3))
    place = {q: number % 8 for number, q in enumerate(sorted(made.questions))}
    order = ("text", "image", "text_image")
    made.ask(lambda q, condition, judge: combinations[place[q]][order.index(condition)])
    triples = made.score().methods["m"].triples
    assert [(one.text, one.image, one.text_image) for one in triples] == combinations
    # twelve questions over eight combinations: the first four occur twice
    assert [one.count for one in triples] == [2, 2, 2, 2, 1, 1, 1, 1]
    assert [one.included for one in triples] == [one.text_image for one in triples]
    assert sum(one.in_table_30 for one in triples) == 5


def test_groups_when_scored_hold_their_own_stories(bench):
    made = bench(4)
    types = {record.story_id: record.narrative_type for record in made.release.records}
    lost = made.release.records[0].narrative_type
    made.ask(lambda q, c, j: not (c == "image" and types[made.questions[q].story_id] == lost))
    groups = made.score().methods["m"].groups
    assert groups["narrative_type"][lost].gaps["filtered"].gap.value == 1.0
    others = [one for name, one in groups["narrative_type"].items() if name != lost]
    assert {one.gaps["filtered"].gap.value for one in others} == {0.0}
    assert sum(one.stories for one in groups["split"].values()) == 4
    assert set(groups) == {"source_family", "narrative_type", "split"}


def test_evidence_control_when_images_contradict_shows_what_the_filter_does(bench, replied):
    made = bench(1)
    bad = sorted(made.questions)[0]

    def says(q, condition, judge):
        if q == bad and condition == "text_image":
            return replied(made.questions[q].gold_answer, condition, "contradicted")
        return condition != "image"

    made.ask(says)
    rows = made.score().methods["m"].evidence
    assert [row["valid_share"] for row in rows] == pytest.approx([1, 1, 1, 5 / 6])
    assert rows[0]["gap"] is None
    assert rows[3]["gap"] == 1.0


def test_contrastive_gap_when_images_show_the_contrast_falls_short_of_the_sources(bench):
    made = bench(2)
    made.ask(lambda *_: True)
    for record in made.release.records:
        for condition in ("text", "image"):
            said = {"answer": record.moral_label, "confidence": "high"}
            made.line("moral_label", record.story_id, record.story_id, condition, said)
    labelled = [
        one for one in made.release.variants if one.contrastive_moral not in (None, one.original_moral)
    ]
    pairs = made.score().methods["m"].pairs
    if labelled:
        # every story's own label is found from text and from images, so that no contrastive one is
        assert (pairs["text"].value, pairs["image"].value, pairs["gap"].value) == (1.0, 0.0, 1.0)
    else:
        assert pairs["gap"].status == "undefined"


def contrasted(bench, replied):
    """Two stories of which all is answered rightly, each with two variants with a question.

    Of the four questions about variants all are right from the texts and three from text and pictures; from
    the pictures of the source one is, which is about how the fourth scene of the first story ends.
    """
    made = bench(2, asked_of_variants=True)
    made.ask(lambda *_: True)
    for place, variant in enumerate(made.release.variants):
        (question,) = variant.questions
        for condition in CONDITIONS:
            right = {"text": True, "image": place == 0, "text_image": place != 3}[condition]
            said = replied(question.gold_answer if right else "nobody knows", condition)
            made.line("variant_question", variant.base_story_id, question.question_id, condition, said)
    return made


def test_gap_on_contrastive_variants_when_worked_by_hand_is_that_of_their_own_questions(bench, replied):
    made = contrasted(bench, replied)
    scores = made.score().methods["m"]
    # three questions are valid, all consequence: text 3/3, images 1/3
    told = [scores.pairs[f"variant_{name}"].value for name in ("text", "image", "gap")]
    assert told == pytest.approx([1, 1 / 3, 2 / 3])
    assert scores.pairs["variant_gap"].counts == {"questions": 3, "asked": 4}
    assert scores.gaps["question"]["filtered"].gap.value == 0, "the source's own questions are apart"
    tables = {table.name: table for table in score_tables(made.score())}
    assert tables["trajectories"].rows[0].scores["variant_gap"].value == pytest.approx(2 / 3)
    plain = bench(1, name="without")
    plain.ask(lambda *_: True)
    assert "variant_gap" not in plain.score().methods["m"].pairs


def test_protocol_when_contrastives_are_part_of_it_counts_no_picture_that_also_tells_a_variant(
    bench, replied
):
    judged = judged_of(contrasted(bench, replied), None)
    whole = seen_by(evaluator_of("katha"), judged)
    asked = [question for record in judged.items.records for question in record.questions]
    views = (uncontrasted(whole), whole)
    before, after = (view.judged.methods[0].board.together[0, IMAGE] for view in views)
    lost = [question.question_id for place, question in enumerate(asked) if before[place] != after[place]]
    (variant,) = judged.release.variants[:1]
    rivals = [
        question.question_id
        for question in judged.items.records[0].questions
        if question.question_type == "consequence" and set(question.target_transition) & {3, 4}
    ]
    assert variant.questions[0].target_transition == (3, 4) and lost == rivals != []
    # consequence: one of the two stories' questions is lost; the five other dimensions are whole
    with_them, without = (view_scores(view, NONE).together for view in (whole, uncontrasted(whole)))
    assert (without["image"].value, with_them["image"].value) == (1, pytest.approx((5 + 1 / 2) / 6))
    assert with_them["gap"].value == pytest.approx(1 / 12)


def test_scores_when_shown_as_json_hold_no_number_for_what_is_undefined(bench):
    made = bench(1)
    made.ask(lambda q, condition, judge: condition == "text")
    document = made.score().as_json()
    score = document["methods"]["m"]["gaps"]["question"]["filtered"]["gap"]
    assert (score["value"], score["status"]) == (None, "undefined")
    assert score["reason"] == "no question was counted"


# Scores of storyboards as values: their formulas by hand, ranges, and what the named values are of.


def test_moral_target_when_worked_by_hand_has_rates_and_gap() -> None:
    # of 12 stories 6 are found from text and 3 from images; of 10 with both, 8
    values = values_of(columns.MORAL, np.array([6.0, 3.0, 12.0, 8.0, 10.0]))
    assert values.tolist() == [0.5, 0.25, 0.25, 0.8]


def test_pairs_when_worked_by_hand_have_accuracy_confusion_and_gap() -> None:
    # of 4 pairs the source is chosen for 3, the variant for none; of 5 labels 4 from text, 1 from images
    # of 4 variants that were drawn 1 is chosen; of the 2 pairs with both outputs, none has both right
    told = (*columns.CONTRASTS, *columns.TWINS)
    values = values_of(told, np.array([3.0, 0.0, 4.0, 4.0, 1.0, 5.0, 1.0, 4.0, 0.0, 2.0]))
    assert values == pytest.approx([0.75, 0.25, 0.0, 0.8, 0.2, 0.6, 0.25, 0.0])
    # where no variant was drawn, the others are what they were
    values = values_of(told, np.array([3.0, 0.0, 4.0, 4.0, 1.0, 5.0, 0.0, 0.0, 0.0, 0.0]))
    assert values == pytest.approx([0.75, 0.25, 0.0, 0.8, 0.2, 0.6, np.nan, np.nan], nan_ok=True)


def test_rates_when_nothing_is_counted_have_no_value() -> None:
    assert np.isnan(values_of(columns.MORAL, np.zeros(5))).all()
    assert np.isnan(values_of(columns.PAIRS, np.zeros((3, 28)))).all()


# -- Against the strongest baseline (the dagger of Table 2)


def test_strongest_baseline_when_compared_with_equals_a_bootstrap_by_hand(bench, tmp_path):
    stories = 8
    made = bench(stories)
    place = {record.story_id: number for number, record in enumerate(made.release.records)}
    known = {q: place[one.story_id] for q, one in made.questions.items()}
    told = {"weak": 1, "strong": 2, "mine": 8}  # of 8 stories images tell so many
    made.ask(lambda *_: True, conditions=("text",))
    for method, count in told.items():
        made.ask(
            lambda q, condition, judge, count=count: condition == "text_image" or known[q] < count,
            conditions=("image", "text_image"), method=method,
        )  # fmt: skip
    used = Definitions(resamples=2000, interval="percentile")
    judged = judged_of(made, {name: {"seeds": [None]} for name in told}, used)
    ratings = {name: {story: 3.0 + count / 10 for story in place} for name, count in told.items()}
    compared = against_strongest(
        judged, used, measures=("image", "gap", "human"), references=["mine"], ratings=ratings
    )
    assert set(compared.baselines.values()) == {"strong"}
    by_name = {pair.first: pair for pair in compared.pairs["image"]}
    for name, count in told.items():
        if name == "strong":
            continue
        # By hand: the difference of means in each resample of stories; two-sided p, times two methods.
        indicator = {each: (np.arange(stories) < of).astype(float) for each, of in told.items()}
        lost = (indicator[name] - indicator["strong"]) / stories
        again = np.concatenate([weights @ lost for weights in draws(stories, 2000, 42)])
        tail = min((again <= 1e-12).sum() + 1, (again >= -1e-12).sum() + 1) / (2000 + 1)
        assert by_name[name].difference == pytest.approx((count - 2) / 8)
        assert by_name[name].p_bootstrap == pytest.approx(min(1.0, 2 * tail))
        assert by_name[name].p_bootstrap_corrected == pytest.approx(min(1.0, 2 * 2 * tail))
        assert by_name[name].correction == "bonferroni"
    assert compared.is_marked("image", "mine") and compared.is_marked("gap", "mine")
    assert not compared.is_marked("image", "weak") and not compared.is_marked("gap", "weak")
    assert compared.is_marked("human", "mine")  # 0.6 more of every story
    latex = written([strongest_table(compared)], "latex")
    assert latex.count(r"$^\dagger$") == 4  # three cells and the note
    named = against_strongest(judged, used, against="weak", measures=("image",))
    assert set(named.baselines.values()) == {"weak"} and "strongest" not in "\n".join(named.lines())
    assert "against weak" in strongest_table(named).title and "STG: strong" in strongest_table(compared).note
    page = tmp_path / "page.html"
    write_report(katha_report(made.run, None, definitions=used, strongest=lambda _: compared), page)
    assert page.read_text().count("†") >= 4


def test_strongest_baseline_when_nothing_fits_says_so(bench):
    made = bench(6)
    made.ask(lambda *_: True, method="m")
    judged = judged_of(made, {"m": {"seeds": [None]}})
    for more, words in (
        ({"measures": ("human",)}, "no ratings by people"), ({"against": "n"}, "--against"),
        ({"measures": ("style",)}, "--measure"), ({"references": ["m"]}, "no method that may be a baseline"),
    ):  # fmt: skip
        with pytest.raises(ConfigError, match=words):
            against_strongest(judged, NONE, **more)


# -- What fails in a storyboard, and where


def test_failure_of_a_storyboard_when_worked_by_hand_is_the_dimension_and_transition_that_lose_most(bench):
    made = bench(2)
    first, second = (record.story_id for record in made.release.records)
    kinds = {q: one.question_type for q, one in made.questions.items()}
    of = {q: one.story_id for q, one in made.questions.items()}
    links = {q: one.target_transition for q, one in made.questions.items()}
    gone = {"causal", "emotional"}  # the sample asks both about transition 2
    made.ask(lambda q, c, j: c != "image" or of[q] == second or kinds[q] not in gone, method="m")
    judged = judged_of(made, {"m": {"seeds": [None]}})
    one, other = failures_of(judged.methods[0], judged.items, judged.replies.seeds)
    assert {links[q] for q in links if of[q] == first and kinds[q] in gone} == {(2, 3)}
    # One of one question of either dimension is lost: they share the failure type; transition 2 loses all.
    assert {name: share for name, share in zip(DIMENSIONS, one.types, strict=True) if share} == {
        "causal": 0.5, "emotional": 0.5,
    }  # fmt: skip
    assert one.places.tolist() == [0, 1, 0, 0]
    assert (one.localised, one.recovered) == (1.0, pytest.approx(4 / 6))
    assert (other.types.any(), other.localised, other.recovered) == (False, None, 1.0)
