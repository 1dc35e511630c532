"""Prompt alignment from the ratings of an archive: per judge, run and story; and how stable the runs are."""

import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any

import numpy as np

from ...errors import ConfigError, InputError, UserError
from ...schemas.judgement import Judgement
from ...schemas.values import Score
from ..archive.replies import last_attempts
from ..metrics.alignment import (
    AVERAGE,
    DEFINITION,
    DIMENSIONS,
    MOST,
    Definition,
    alignment,
    average,
    individual_action,
)
from ..metrics.metric import Choices, choices
from ..metrics.story import FoundShot, FoundStory
from ..metrics.vectors import vectors_of
from ..stats.uncertainty import Uncertainty

# -- Which named definition of each metric is used, where paper and public code differ


@dataclass(frozen=True, kw_only=True)
class Definitions(Choices, Uncertainty):
    """How an evaluation of shot images is scored; how sure scores are is :class:`.Uncertainty`'s."""

    def all(self) -> dict[str, str]:
        """Return the value of every definition that can be chosen, by its name."""
        return {choice.name: self.of(choice) for choice in choices()}

    def as_json(self) -> dict[str, Any]:
        plain = {field.name: getattr(self, field.name) for field in fields(self) if field.name != "chosen"}
        return plain | {name.replace("-", "_"): value for name, value in self.all().items()}

    def named(self) -> str:
        return ", ".join(f"{name}={value}" for name, value in self.all().items())


def read_definitions(texts: Iterable[str], **uncertainty: Any) -> Definitions:  # noqa: ANN401 - fields of a class
    """Return the definitions that texts such as ``cids=code`` choose."""
    made, known = Definitions(**uncertainty), {choice.name: choice.options for choice in choices()}
    for text in texts:
        name, equals, value = text.partition("=")
        if value in known.get(name, ()):
            made = replace(made, chosen={**made.chosen, name: value})
        else:
            listed = "; ".join(f"{name}={'|'.join(values)}" for name, values in known.items())
            raise ConfigError(
                f"--define {name}{equals}{value}",
                what=f"there is no such definition; there are: {listed}",
                fix="docs/images.md says what they are",
            )  # fmt: skip
    return made


# --

NAMES = (*DIMENSIONS, AVERAGE.name)
_ITEM = re.compile(r"shot_(\d+)/(scene|shot|interaction|action)(?:/(.+))?", re.ASCII | re.DOTALL)
RELATIONS_FROM = 2
"""Characters on stage between whom there can be an interaction (H.1)."""

Asked = tuple[int, str, str | None]
"""Shot, dimension, and the character that a question was about, if any."""
Rated = dict[Asked, int | None]
"""What was asked -> rating; None where the judge gave none."""


@dataclass
class Panel:
    """All ratings of one judge of one method."""

    # number of the vote -> story -> its ratings
    runs: dict[int, dict[str, Rated]] = field(default_factory=dict)
    outcomes: Counter[str] = field(default_factory=Counter)  # how many questions came out how


@dataclass(frozen=True)
class Stability:
    """One sub-score over repeated runs (H.6)."""

    runs: tuple[float, ...]  # values of the set, one per run that has one
    mean: float | None  # of them; None where there is none
    deviation: float | None  # their sample standard deviation; None with fewer than two


def collect_panels(
    judgements: Iterable[Judgement], stories: Iterable[FoundStory]
) -> dict[tuple[str, str], Panel]:
    """Return the ratings of every method and judge."""
    known = {(story.method, story.story_id): {shot.number for shot in story.shots} for story in stories}
    problems: list[UserError] = []
    panels: dict[tuple[str, str], Panel] = {}
    for judgement in last_attempts(judgements):
        read = _ITEM.fullmatch(judgement.item)
        rating = None if judgement.parsed is None else judgement.parsed.get("rating")
        if read is None or int(read[1]) not in known.get((judgement.method or "", judgement.unit), ()):
            problems.append(_problem(judgement, "a question about a shot that was evaluated", judgement.item))
        elif judgement.parsed is not None and (isinstance(rating, bool) or rating not in range(MOST + 1)):
            problems.append(_problem(judgement, "a rating of 0 to 4", repr(rating)))
        else:
            panel = panels.setdefault((judgement.method or "", judgement.judge.spec), Panel())
            rated = panel.runs.setdefault(judgement.vote, {}).setdefault(judgement.unit, {})
            rated[int(read[1]), read[2], read[3]] = rating
            panel.outcomes[judgement.outcome] += 1
    if problems:
        raise InputError(problems)
    return panels


def story_ratings(
    story: FoundStory, panel: Panel, asked_from: int, definitions: Definitions
) -> dict[str, Score]:
    """Return the sub-scores of a story: of several runs the mean of those that have a value.

    Their counts say what was asked and answered in all runs, and of how many shots, or characters on stage.
    """
    runs = [
        _run(story, rated[story.story_id], asked_from, definitions)
        for _, rated in sorted(panel.runs.items())
        if story.story_id in rated
    ]
    scores = {name: _mean([run[name] for run in runs]) for name in NAMES}
    asked = {asked_for for rated in panel.runs.values() for asked_for in rated.get(story.story_id, ())}
    return {name: _covered(score, name, story, asked) for name, score in scores.items()}


def actions_of(
    story: FoundStory, characters: frozenset[str], *, panel: Panel, definitions: Definitions
) -> Score:
    """Return the rating of what some characters of a story do: of several runs the mean."""
    shots = tuple(
        shot.model_copy(update={"expected": tuple(key for key in shot.expected if key in characters)})
        for shot in story.shots
    )
    own = story.model_copy(update={"shots": shots})
    runs = [rated[story.story_id] for _, rated in sorted(panel.runs.items()) if story.story_id in rated]
    score = _mean([_individual(own, rated, definitions) for rated in runs])
    asked = {asked_for for rated in runs for asked_for in rated}
    return _covered(score, "action", own, asked)


def stability(
    stories: Sequence[FoundStory], panel: Panel, asked_from: int, definitions: Definitions
) -> dict[str, Stability]:
    """Return each sub-score of the set in every run, with mean and standard deviation."""
    values: dict[str, list[float]] = {name: [] for name in NAMES}
    for _, rated in sorted(panel.runs.items()):
        runs = [
            _run(story, rated[story.story_id], asked_from, definitions)
            for story in stories
            if story.story_id in rated
        ]
        for name in NAMES:
            known = [value for run in runs if (value := run[name].value) is not None]
            if known:
                values[name].append(sum(known) / len(known))
    return {name: _stability(runs) for name, runs in values.items()}


def _run(story: FoundStory, rated: Rated, asked_from: int, definitions: Definitions) -> dict[str, Score]:
    scores = {name: alignment(_of(rated, name)) for name in ("scene", "shot")}
    scores["interaction"] = _interaction(story, rated, asked_from, definitions)
    scores["action"] = _individual(story, rated, definitions)
    return scores | {AVERAGE.name: average([scores[name] for name in DIMENSIONS], definitions.of(DEFINITION))}


def _covered(score: Score, name: str, story: FoundStory, asked: Collection[Asked]) -> Score:
    """Return a score with what it leaves out: shots that were not asked about, characters without a crop."""
    if name == AVERAGE.name:
        return score
    own = {(number, key) for number, dimension, key in asked if dimension == name}
    if name == "action":
        cast = {(shot.number, key) for shot in story.shots for key in shot.expected}
        counts = {"expected": len(cast), "matched": len(cast & own)}
    else:
        gone = sum(shot.sha256 is None for shot in story.shots)
        counts = {
            "shots": len(story.shots), "without_image": gone,
            "not_asked": len(story.shots) - gone - len({number for number, _ in own}),
        }  # fmt: skip
    return score.model_copy(update={"counts": {**score.counts, **counts}})


def _of(rated: Rated, name: str, numbers: Iterable[int] | None = None) -> list[int | None]:
    wanted = None if numbers is None else set(numbers)
    return [
        rating
        for (number, dimension, _), rating in sorted(rated.items(), key=lambda entry: entry[0][:2])
        if dimension == name and (wanted is None or number in wanted)
    ]


def _interaction(story: FoundStory, rated: Rated, asked_from: int, definitions: Definitions) -> Score:
    least = RELATIONS_FROM if definitions.of(DEFINITION) == "paper" else 0
    if asked_from > least:
        why = f"it was asked only of shots with {asked_from} characters or more"
        return Score(value=None, status="undefined", reason=why)
    return alignment(
        _of(rated, "interaction", [shot.number for shot in story.shots if len(shot.expected) >= least])
    )


def _individual(story: FoundStory, rated: Rated, definitions: Definitions) -> Score:
    definition = definitions.of(DEFINITION)
    shots = [_action(story, shot, rated, definition) for shot in story.shots if shot.expected]
    return individual_action(shots, definition)


def _action(
    story: FoundStory, shot: FoundShot, rated: Rated, definition: Definition
) -> list[int | None] | None:
    """Return the ratings of a shot with somebody on stage; None where nothing was detected or encoded."""
    boxes = {} if story.boxes is None else story.boxes["shots"]
    if shot.sha256 is None or not boxes.get(str(shot.number)):
        return None
    if definition == "code" and not _encoded(story, shot):
        return None
    asked = [(shot.number, "action", key) for key in shot.expected]
    return [rated[key] for key in asked if key in rated]


def _encoded(story: FoundStory, shot: FoundShot) -> bool:
    """Whether a crop of a shot has a vector by an encoder of somebody on stage; True where nobody encodes."""
    if story.crops is None:
        return True
    vectors, encoders = vectors_of(story.crops["shots"].get(str(shot.number), {})), story.crops["encoders"]
    return any(bool(vectors.known(encoders.get(key, ())).any()) for key in shot.expected)


def _mean(scores: Sequence[Score]) -> Score:
    values = [score.value for score in scores if score.value is not None]
    counts: Counter[str] = Counter()
    for score in scores:
        counts.update(score.counts)
    reasons = [score.reason for score in scores if score.reason]
    why = reasons[0] if reasons else "no run has a rating"
    return Score.ratio(sum(values), len(values), why, **{**counts, "runs": len(scores)})


def _stability(runs: Sequence[float]) -> Stability:
    mean = sum(runs) / len(runs) if runs else None
    return Stability(tuple(runs), mean, float(np.std(runs, ddof=1)) if len(runs) > 1 else None)


def by_story(
    stories: Iterable[FoundStory], panel: Panel | None, asked_from: int, definitions: Definitions
) -> Mapping[str, dict[str, Score]]:
    """Return story -> its sub-scores; none without a panel."""
    if panel is None:
        return {}
    return {story.story_id: story_ratings(story, panel, asked_from, definitions) for story in stories}


def _problem(judgement: Judgement, expected: str, found: str) -> UserError:
    where = f"{judgement.method}/{judgement.unit}, {judgement.judge.spec}, vote {judgement.vote}"
    return UserError(where, expected=expected, found=found, fix="score the archive with its own images.jsonl")
