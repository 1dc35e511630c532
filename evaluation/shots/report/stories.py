"""Which shots and stories a report shows: the worst shots by each score, and stories from end to end."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from ....errors import ConfigError
from ....schemas.canonical import digest
from ....schemas.text import counted
from ...metrics.registry import label_of, lead_of, metric_of, metrics
from ...report.model import Examples, StoryGrid, StoryOfMethod, WorstShots
from ...report.showing import Valued, examples_of
from ..tables import ShotScore
from .cards import Looked, style_matrix

EACH = 8
"""Worst shots by each score."""
METHODS = 6
"""Methods whose stories are shown, where no others are asked for."""
CARDS = 480
"""Shots in all stories that are shown, about: whole stories are taken until there are so many."""
LOWEST, TYPICAL, HIGHEST = 8, 4, 4
"""Stories of each kind, where there are more than :data:`CARDS` shots."""


@dataclass(frozen=True)
class Choice:
    """What is shown with pictures."""

    stories: tuple[str, ...] = ()  # ids that were asked for; none for those that tell most
    methods: tuple[str, ...] = ()  # names that were asked for; none for the first ones


def worst_shots(looked: Looked, methods: Sequence[str]) -> tuple[WorstShots, ...]:
    """Return the worst shots by each score that single shots have; a perfect one is none of them."""
    every = [shot for shots in looked.shots.values() for shot in shots if shot.method in methods]
    every.sort(key=lambda shot: digest(_key(shot)))  # of equal ones not always the first of a set are shown
    made = []
    for metric in metrics():
        name = metric.name
        if not (metric.per_shot and metric.ranked):
            continue
        valued = sorted(
            (round(shot.values[name], 9), n) for n, shot in enumerate(every) if name in shot.values
        )
        top = metric.top if metric.top == metric.range[1] else None
        ordered = [every[n] for value, n in valued if top is None or value < top]
        if ordered:
            made.append(
                WorstShots(
                    name=name, label=metric.label, digits=metric.digits, total=len(valued),
                    cards=tuple(looked.card(shot) for shot in _picked(ordered, methods)),
                )
            )  # fmt: skip
    return tuple(made)


def shot_examples(looked: Looked, methods: Sequence[str]) -> Iterator[Examples]:
    """Yield a card for each score that single shots have: shots at its ends and in its middle."""
    every = [shot for shots in looked.shots.values() for shot in shots if shot.method in methods]
    for metric in metrics():
        valued = [
            Valued(shot.values[metric.name], "{}, story {}, shot {}".format(*_key(shot)), shot)
            for shot in every if metric.name in shot.values
        ]  # fmt: skip
        meaning = f"{metric.meaning} Here of single shots."
        made = examples_of(metric, meaning, valued, lambda shot: [looked.card(shot).picture])
        if made is not None:
            yield made


def _picked(ordered: Sequence[ShotScore], methods: Sequence[str]) -> list[ShotScore]:
    """Return a share of each method's worst shots, filled up with the worst of all, in order."""
    share, counts, own = max(1, EACH // max(1, len(methods))), Counter[str](), []
    for shot in ordered:
        if counts[shot.method] < share:
            own.append(_key(shot))
        counts[shot.method] += 1
    wanted = set(own[:EACH])
    others = [_key(shot) for shot in ordered if _key(shot) not in wanted]
    wanted |= set(others[: EACH - len(wanted)])
    return [shot for shot in ordered if _key(shot) in wanted]


def _key(shot: ShotScore) -> tuple[str, str, int]:
    return shot.method, shot.story_id, shot.number


def shown_methods(order: Sequence[str], choice: Choice) -> tuple[str, ...]:
    """Return the methods whose stories are shown."""
    _check("--method", choice.methods, order)
    return choice.methods or tuple(order[:METHODS])


def shown_stories(
    looked: Looked, methods: Sequence[str], choice: Choice
) -> tuple[tuple[tuple[str, str], ...], str]:
    """Return ids of the stories that are shown, each with why, and how they were chosen."""
    there = list(dict.fromkeys(story for method, story in looked.stories if method in methods))
    _check("--story", choice.stories, there)
    if choice.stories:
        note = f"{len(choice.stories)} of {counted(len(there), 'story')}, as chosen."
        return tuple((story, "chosen") for story in dict.fromkeys(choice.stories)), note
    cards = {story: sum(len(looked.shots.get((method, story), ())) for method in methods) for story in there}
    if sum(cards.values()) <= CARDS:
        return tuple(
            (story, "all") for story in there
        ), f"{counted(len(there), 'story')}, all that there are."
    lead = lead_of(dict.fromkeys(name for method in looked.scores.methods for name in method.scores))
    ordered = _by_value(looked, methods, there, lead)
    middle = (len(ordered) - 1) / 2
    central = sorted(ordered, key=lambda story: (abs(ordered.index(story) - middle), story))
    wanted = {
        "lowest": ordered[:LOWEST],
        "typical": central[:TYPICAL],
        "highest": ordered[::-1][:HIGHEST],
    }
    taken: dict[str, str] = {}
    used = 0
    for story, why in _by_turns(wanted):
        if story not in taken and (not taken or used + cards[story] <= CARDS):
            taken[story] = why
            used += cards[story]
    by = "" if lead is None else f" in {label_of(lead)}, by the mean over the methods that are shown"
    note = f"{len(taken)} of {counted(len(there), 'story')}: lowest, in the middle and highest{by}."
    kinds = list(wanted)
    return tuple(
        sorted(taken.items(), key=lambda entry: (kinds.index(entry[1]), ordered.index(entry[0])))
    ), note


def story_grid(looked: Looked, story: str, why: str, methods: Sequence[str]) -> StoryGrid:
    """Return one story by several methods."""
    made = []
    for method in methods:
        key = (method, story)
        if key not in looked.stories:
            continue
        scored = next(scores for scores in looked.scores.methods if scores.method == method)
        scores = next(row.scores for row in scored.stories if row.story_id == story)
        made.append(
            StoryOfMethod(
                method=method, scores=dict(scores),
                cards=tuple(looked.card(shot) for shot in looked.shots[key]),
                wall=looked.wall(looked.stories[key]), styles=style_matrix(looked, key),
            )
        )  # fmt: skip
    return StoryGrid(story_id=story, why=why, methods=tuple(made))


def _by_value(looked: Looked, methods: Sequence[str], stories: Sequence[str], lead: str | None) -> list[str]:
    """Return stories from the lowest mean over methods; those without any value come last."""
    values: dict[str, list[float]] = {story: [] for story in stories}
    for method in looked.scores.methods:
        for story in method.stories if method.method in methods else ():
            score = story.scores.get(lead or "")
            if score is not None and score.value is not None:
                values[story.story_id].append(score.value)
    known = [story for story in stories if values[story]]
    sign = 1 if lead is None or metric_of(lead).higher else -1
    known.sort(key=lambda story: (sign * sum(values[story]) / len(values[story]), digest(story)))
    return [*known, *(story for story in stories if not values[story])]


def _by_turns(wanted: Mapping[str, Sequence[str]]) -> list[tuple[str, str]]:
    """Return stories of every kind by turns, each with its kind, so that a limit leaves some of each."""
    longest = max(map(len, wanted.values()))
    return [(some[n], why) for n in range(longest) for why, some in wanted.items() if n < len(some)]


def _check(option: str, asked: Sequence[str], there: Sequence[str]) -> None:
    unknown = [name for name in asked if name not in there]
    if unknown:
        raise ConfigError(
            option, expected=f"one of {', '.join(there[:20])}", found=", ".join(unknown),
            fix="check the spelling",
        )  # fmt: skip
