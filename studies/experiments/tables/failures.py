"""What fails in a storyboard, and where: failure types and localisation by rule (Tables 53, 69 and 70).

Question: what kind of meaning does a storyboard lose, and at which of its transitions?
Formula: of the valid questions of a storyboard those are lost that text answers rightly and images do not.
    For each dimension, and for each transition, the share of its questions that is lost; the dimension with
    the largest share is the failure type, the transition with the largest share its place. Several that lose
    alike share it evenly; a storyboard that loses nothing has neither. Localisation of a method: of the lost
    questions about transitions the share at the transition that has most, mean over storyboards with one.
Input: verdicts on every question of a method's storyboards.
Output: shares of storyboards, which add up to 1; localisation in (0, 1], higher where losses lie together.
Undefined when: no storyboard has a valid question; localisation also where none loses one about a transition.
Source: KathaTrace, Tables 69 and 70 (failure types "manual or rubric-based": missing action, weak causality,
    emotional drift, lost consequence, moral drift) and column Loc. of Table 53; it has no formula for either.
Departures: the rule is ours, and so is the type "order lost" of temporal questions. How often the rule names
    what was lost is measured on planted losses (:func:`accuracy`) and stated with the table.
Example: causal: 2 of 2 lost, moral: 1 of 2: weak cause. Lost are two of two questions about transition 3 and
    one of two about transition 4: the place is 3, and localisation 2/3.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from ....evaluation.recoverability.matching import DIMENSIONS, Items
from ....evaluation.recoverability.method import Method
from ....evaluation.recoverability.pooling import IMAGE, RIGHT_VERDICT, TEXT
from ....evaluation.recoverability.score import Judged, judged_folder
from ....evaluation.report.model import Measure, ScoreRow, ScoreTable
from ....schemas.text import counted
from ....schemas.values import Score
from ....validators.resampling import divided
from ..measures.falls import Plant, accused
from .leaderboard import GAP, main_of
from .leaderboard import IMAGE as FROM_IMAGES
from .results import NO_RATINGS, StudyResults, unmeasured

Floats = NDArray[np.float64]

TYPES: Mapping[str, str] = {
    "action_visibility": "missing action", "causal": "weak cause", "emotional": "emotional drift",
    "consequence": "lost consequence", "moral": "moral drift", "temporal_order": "order lost",
}  # fmt: skip
"""Dimension -> how a storyboard fails that loses most in it."""
NOTHING = "nothing"
NO_VALID = "no storyboard has a valid question"
NO_LOSS = "no storyboard loses a question about a transition"


@dataclass(frozen=True)
class Failure:
    """What one storyboard loses."""

    story_id: str
    seed: int | None
    # share of the failure type by dimension, and of the place by transition; all 0 where nothing is lost
    types: Floats = field(repr=False)
    places: Floats = field(repr=False)
    localised: float | None  # share of the lost questions about transitions at the place; None without one
    recovered: float | None  # share recovered from images, of what text gives; None where text gives nothing


def failures_of(method: Method, items: Items, seeds: Sequence[int | None]) -> Iterator[Failure]:
    """Yield what each storyboard of a method loses that has a valid question."""
    outcomes = method.outcomes
    valid = outcomes.those("filtered")
    told = valid & (outcomes.verdicts[:, TEXT] == RIGHT_VERDICT)
    lost = told & (outcomes.verdicts[:, IMAGE] != RIGHT_VERDICT)
    links = _links(items)
    for seed, story in zip(*np.nonzero(outcomes.requested[:, _first(items)]), strict=True):
        own = items.story == story
        if not valid[seed, own].any():
            continue
        count, gone, given = valid[seed, own], lost[seed, own], told[seed, own]
        width = len(items.records[story].transitions)
        by_link = _sums(links[own], gone, width)
        yield Failure(
            items.records[story].story_id, seeds[seed],
            _named(_shares(items.dimension[own], gone, count, len(DIMENSIONS))),
            _named(_shares(links[own], gone, count, width)),
            float(by_link.max() / by_link.sum()) if by_link.sum() else None,
            float(1 - gone.sum() / given.sum()) if given.any() else None,
        )  # fmt: skip


def _first(items: Items) -> NDArray[np.int64]:
    """Return the place of the first question of each story that has one, in the order of stories."""
    return np.array([int(np.argmax(items.story == story)) for story in range(items.stories)], dtype=np.int64)


def _links(items: Items) -> NDArray[np.int64]:
    """Return the place of the transition that each question is about; -1 for none."""
    places = [-1] * items.questions
    for record in items.records:
        pairs = [(each.from_scene, each.to_scene) for each in record.transitions]
        for question in record.questions:
            if question.question_id in items.question_places and question.target_transition in pairs:
                places[items.question_places[question.question_id]] = pairs.index(question.target_transition)
    return np.array(places, dtype=np.int64)


def _sums(groups: NDArray[np.int64], chosen: NDArray[np.bool_], width: int) -> Floats:
    return np.bincount(groups[chosen & (groups >= 0)], minlength=width).astype(np.float64)


def _shares(
    groups: NDArray[np.int64], gone: NDArray[np.bool_], count: NDArray[np.bool_], width: int
) -> Floats:
    return np.nan_to_num(divided(_sums(groups, gone, width), _sums(groups, count, width)))


def _named(shares: Floats) -> Floats:
    """Return which groups lose most, as shares that add up to 1; all 0 where none loses anything."""
    return accused(shares) if len(shares) and shares.max() > 0 else np.zeros_like(shares)


def accuracy(judged: Judged, plants: Sequence[Plant]) -> tuple[Score, Score]:
    """Return how often the rule names a dimension, and a transition, that a planted loss hit."""
    found = {
        (method.name, each.story_id, each.seed): each
        for method in judged.methods
        for each in failures_of(method, judged.items, judged.replies.seeds)
    }
    dimensions, transitions = [], []
    for plant in plants:
        failure = found.get((plant.method, plant.story_id, plant.seed))
        if failure is None or plant.is_control:
            continue
        if plant.dimensions:
            dimensions.append(failure.types[[DIMENSIONS.index(name) for name in plant.dimensions]].sum())
        if plant.links:
            hit = [at - 1 for at in plant.links if at <= len(failure.places)]
            transitions.append(failure.places[hit].sum())
    why = "no planted loss that hit one was judged"
    first, second = (Score.ratio(float(sum(some)), len(some), why) for some in (dimensions, transitions))
    return first, second


# -- Tables

LOCALISED = Measure(name="localisation", label="Localisation", unit="plain", better="high")
RECOVERED = {"yes": "All recovered", "partial": "Some", "no": "None"}


def failures_by_method(results: StudyResults) -> dict[str, list[Failure]]:
    """Return method -> what its storyboards lose."""
    judged = results.evaluation
    return results.once(
        "failures",
        lambda: {
            method.name: list(failures_of(method, judged.items, judged.replies.seeds))
            for method in judged.methods
        },
    )


def localisation(failures: Sequence[Failure]) -> Score:
    known = [each.localised for each in failures if each.localised is not None]
    return Score.ratio(sum(known), len(known), NO_LOSS)


def failure_types(results: StudyResults) -> ScoreTable:
    """Table 69: how storyboards fail, by method."""
    rows = []
    for name, failures in failures_by_method(results).items():
        shares = [
            (kind, sum(float(each.types[DIMENSIONS.index(kind)]) for each in failures)) for kind in TYPES
        ]
        scores = {kind: Score.ratio(share, len(failures), NO_VALID) for kind, share in shares}
        fine = sum(not each.types.any() for each in failures)
        scores[NOTHING] = Score.ratio(fine, len(failures), NO_VALID)
        scores["localisation"] = localisation(failures)
        rows.append(ScoreRow(label=name, scores=scores, note=counted(len(failures), "storyboard")))
    return ScoreTable(
        name="failure_types", title="How storyboards fail", heading="Plan + renderer",
        note="Share of the storyboards whose largest loss is of the kind; those that lose in several alike "
        "are shared evenly. Localisation: of the lost questions about transitions, the share at the "
        "transition that loses most. Derived by rule from verdicts, not by people. "
        f"{_accuracy_note(results)}".strip(),
        measures=(
            *(Measure(name=kind, label=label.capitalize()) for kind, label in TYPES.items()),
            Measure(name=NOTHING, label="Nothing lost", better="high"), LOCALISED,
        ), rows=tuple(rows),
    )  # fmt: skip


def _accuracy_note(results: StudyResults) -> str:
    folder, plants = results.sources.planted.get("katha"), results.sources.plants
    if folder is None or not plants:
        return "How often the rule is right was not measured here: no loss was planted."
    dimensions, transitions = accuracy(judged_folder(folder, None, results.definitions), plants)
    told = [
        f"{100 * score.value:.0f} % of {counted(int(score.denominator or 0), 'storyboard')} for {what}"
        for score, what in ((dimensions, "the kind"), (transitions, "the transition"))
        if score.value is not None
    ]
    return f"On planted losses the rule names what was hit in {' and '.join(told)}." if told else ""


def same_story(results: StudyResults) -> ScoreTable:
    """Table 70: what is recovered of each method's storyboards, and what the rule says of them."""
    rows = []
    for name, failures in failures_by_method(results).items():
        main = main_of(results.scores.methods[name])
        known = [each.recovered for each in failures if each.recovered is not None]
        counts = {
            "yes": sum(value == 1 for value in known), "no": sum(value == 0 for value in known),
        }  # fmt: skip
        counts["partial"] = len(known) - sum(counts.values())
        scores = {key: Score.ratio(count, len(known), NO_VALID) for key, count in counts.items()}
        scores |= {"visual": unmeasured(NO_RATINGS), "image": main.image, "gap": main.gap}
        rows.append(ScoreRow(label=name, scores=scores, note=_diagnosis(failures)))
    return ScoreTable(
        name="same_story", title="What is recovered, and the diagnosis", heading="Plan + renderer",
        note="Meaning recovered: share of the storyboards of which images give all, some or none of what "
        "text gives. The remark is the most frequent failure type and place, by rule.",
        measures=(
            Measure(name="visual", label="Visual (people)", unit="plain", better="high"), FROM_IMAGES, GAP,
            *(Measure(name=key, label=label) for key, label in RECOVERED.items()),
        ), rows=tuple(rows),
    )  # fmt: skip


def _diagnosis(failures: Sequence[Failure]) -> str:
    failing = [each for each in failures if each.types.any()]
    if not failing:
        return "nothing is lost"
    types = sum((each.types for each in failing), np.zeros(len(DIMENSIONS)))
    most = int(types.argmax())
    said = f"most often {TYPES[DIMENSIONS[most]]} ({100 * types[most] / len(failures):.0f} % of storyboards)"
    placed = [each.places for each in failing if each.places.any()]
    if not placed:
        return said
    width = max(map(len, placed))
    places = sum((np.pad(each, (0, width - len(each))) for each in placed), np.zeros(width))
    at = int(places.argmax())
    return f"{said}, at transition {at + 1} ({100 * places[at] / len(failures):.0f} %)"
