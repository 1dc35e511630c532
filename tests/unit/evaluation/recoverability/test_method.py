"""Both meanings of raw and of common-valid, worked by hand; and seeds that are averaged before stories."""

import numpy as np
import pytest

from fabula.errors import ConfigError, InputError
from fabula.evaluation.recoverability.definitions import Definitions
from fabula.evaluation.recoverability.method import (
    common_questions,
    common_stories,
    gaps_over,
    narrowed,
    validity_sets,
)
from fabula.evaluation.recoverability.score import judged_folder, score_folder
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
    assert int(common_questions(judged.methods).sum()) == 11


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


def test_stories_when_only_some_of_the_release_were_judged_are_the_only_ones(bench):
    made = bench(4)
    chosen = made.release.records[1].story_id
    made.ask(lambda q, c, j: True if made.questions[q].story_id == chosen else None)
    scores = made.score()
    assert scores.scope["stories"] == 1
    assert scores.methods["m"].questions["total"] == 6
