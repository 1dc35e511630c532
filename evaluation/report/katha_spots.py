"""Which transitions a report shows: groups of scenes with questions, the worst first."""

import statistics
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace

from ...schemas.katha import Question
from ...schemas.score import Score
from ..recoverability.items import Items
from ..recoverability.method import Method
from ..recoverability.pooling import IMAGE, TEXT
from ..recoverability.votes import RIGHT_VERDICT

ALL, WORST, TYPICAL = 48, 12, 12
"""Up to how many transitions all are shown; else how many of the worst, and how many typical ones."""
NO_QUESTION = "no question of it is valid"

Scenes = tuple[int, ...]


@dataclass(frozen=True)
class Spot:
    """Some scenes of one generation, and the questions about them.

    Attributes:
        method: place of the method.
        seed: place of the seed.
        story: place of the story.
        scenes: from the first to the last, as numbers; empty for the story as a whole.
        questions: places of the questions.
        score: its gap.
    """

    method: int
    seed: int
    story: int
    scenes: Scenes
    questions: tuple[int, ...]
    score: Score
    why: str = "all"


def spots_of(methods: Sequence[Method], items: Items) -> list[Spot]:
    """Return every group of scenes that has questions, for every valid generation."""
    groups: dict[tuple[int, Scenes], list[int]] = defaultdict(list)
    questions = _questions(items)
    for place, question in enumerate(questions):
        groups[int(items.story[place]), scenes_of(question)].append(place)
    found = []
    for number, method in enumerate(methods):
        for (story, scenes), places in sorted(groups.items()):
            for seed in range(len(method.outcomes.requested)):
                if method.outcomes.valid[seed, places[0]]:
                    score = _gap(method, seed, places)
                    found.append(Spot(number, seed, story, scenes, tuple(places), score))
    return found


def scenes_of(question: Question) -> Scenes:
    """Return the scenes that a question is about, from the first to the last; empty for the whole story."""
    if question.target_transition is not None:
        return (question.target_transition[0], question.target_transition[1])
    if question.target_scene is not None:
        return (question.target_scene,)
    if len(question.evidence_scenes) in (1, 2):
        return tuple(sorted(question.evidence_scenes))
    return ()


def chosen_spots(spots: Sequence[Spot]) -> list[Spot]:
    """Return what is shown, the worst first: all if there are few, else the worst and typical ones.

    Typical are those whose gap is nearest to the median. Those without a gap come last.
    """
    known = sorted((one for one in spots if one.score.value is not None), key=_badness)
    if len(spots) <= ALL:
        return [*known, *(one for one in spots if one.score.value is None)]
    worst = [_because(one, "worst") for one in known[:WORST]]
    rest = known[WORST:]
    if not rest:
        return worst
    middle = statistics.median(_value(one) for one in known)
    near = sorted(rest, key=lambda one: (abs(_value(one) - middle), _badness(one)))[:TYPICAL]
    return [*worst, *(_because(one, "typical") for one in sorted(near, key=_badness))]


def _gap(method: Method, seed: int, places: Sequence[int]) -> Score:
    outcomes = method.outcomes
    valid = [place for place in places if outcomes.sets["filtered"][seed, place]]
    right = outcomes.verdicts[seed] == RIGHT_VERDICT
    lost = int(right[TEXT, valid].sum()) - int(right[IMAGE, valid].sum())
    return Score.ratio(lost, len(valid), NO_QUESTION, questions=len(places), valid=len(valid))


def _questions(items: Items) -> list[Question]:
    known = {one.question_id: one for record in items.records for one in record.questions}
    return [known[key.question_id] for key in items.keys]


def _value(spot: Spot) -> float:
    assert spot.score.value is not None
    return spot.score.value


def _badness(spot: Spot) -> tuple[float, int, int, Scenes, int, int]:
    """Return what spots are sorted by: the largest gap, of those the one with most questions, then order."""
    return (-_value(spot), -len(spot.questions), spot.story, spot.scenes, spot.method, spot.seed)


def _because(spot: Spot, why: str) -> Spot:
    return replace(spot, why=why)
