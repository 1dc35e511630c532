"""What Semantic Compass, other evaluators and planted losses of a study would ask for at most."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from ...evaluation.katha.requests import estimate_evaluation
from ...schemas.katha import StoryRecord
from ..compass.arms import BASE, FULL, arms_named
from ..compass.budget import Budget, budget, tuning_budget
from ..compass.frozen import CELLS
from ..compass.judging import split_questions
from .desk import Desk
from .evaluators.deriving import derive
from .evaluators.registry import evaluator_of
from .losses import LOSSES
from .ordering import chosen_stories
from .pictures import judging_options

OF_PICTURES = ("judge_images", "judge_both", "judge_contrasts")
"""Stages that ask about pictures: those that ask about the story alone ask once for all methods."""


@dataclass(frozen=True, slots=True)
class Most:
    """What a part of a study asks for at most."""

    part: str  # of the study
    stage: str  # what of it
    calls: int  # of judges; of a writer of questions one a story
    usd: float | None  # what they cost; None where the price is not known
    pictures: int = 0  # that have to be made besides


def compass_budgets(desk: Desk) -> tuple[Budget, Budget]:
    """Return what tuning and applying Semantic Compass ask for at most."""
    part = desk.study.compass
    assert part is not None
    halves = split_questions(desk.release.records)
    seeds, each = len(desk.study.seeds), len(desk.study.judges)
    tuned = _records(desk, (part.tuned_on,))
    reported = _records(desk, desk.study.split)
    return (
        tuning_budget(tuned, halves, seeds, each, part.weakest),
        budget(reported, halves, arms_named(part.arms), seeds, each, part.weakest),
    )


def compass_most(desk: Desk, each: float | None) -> list[Most]:
    """Return what Semantic Compass asks for at most.

    ``each``: USD of one call of a judge about pictures; None where the price is not known.
    """
    tuning, applying = compass_budgets(desk)
    whole = [applying.arms[name].reporting for name in (BASE, FULL) if name in applying.arms]
    reporting = applying.together.reporting + applying.text + sum(whole) * (len(CELLS) - 1)
    rows = {
        "tune": (tuning.together.calls, tuning.together.pictures),
        "apply": (applying.together.calls, applying.together.pictures),
        "report": (reporting, 0),
    }
    return [
        Most("compass", stage, calls, None if each is None else calls * each, pictures)
        for stage, (calls, pictures) in rows.items()
    ]


def other_most(desk: Desk, outputs: Mapping[str, Path], scratch: Path) -> list[Most]:
    """Return what other evaluators and planted losses ask for at most, as rules would make the questions.

    ``outputs``: method -> pictures, or what stands for them.
    """
    releases = {"katha": desk.release.path}
    rows = []
    for name in desk.study.evaluators:
        evaluator = evaluator_of(name)
        if evaluator.reuses:
            continue
        releases[name] = derive(desk.release, evaluator, scratch / "questions" / name, desk.study.split)
        rows += _estimated(desk, "evaluators", name, releases[name], list(outputs.values()))
    plants = desk.study.plants
    for name, release in releases.items() if plants is not None else ():
        losses = len(plants.losses or LOSSES)  # type: ignore[union-attr]
        shown = [outputs[plants.method]]  # type: ignore[union-attr]
        rows += [
            replace(row, calls=row.calls * losses, usd=None if row.usd is None else row.usd * losses)
            for row in _estimated(desk, "plants", name, release, shown, OF_PICTURES)
        ]
    return rows


def _estimated(
    desk: Desk, part: str, name: str, release: Path, outputs: Sequence[Path], stages: Iterable[str] = ()
) -> list[Most]:
    options = judging_options(desk, desk.folder / part / name)
    if part == "evaluators" or name != "katha":
        options = replace(options, questions_only=True)
    plan = estimate_evaluation(release, outputs, desk.folder / part / name, options)
    chosen = [stage for stage in plan.stages if not stages or stage.stage in stages]
    costs = [stage.cost for stage in chosen]
    usd = None if None in costs else sum(cost for cost in costs if cost is not None)
    return [Most(part, name, sum(stage.calls for stage in chosen), usd)]


def _records(desk: Desk, splits: Sequence[str]) -> list[StoryRecord]:
    names = {story for split in splits for story in chosen_stories(desk.study, desk.release, split)}
    return [record for record in desk.release.records if record.story_id in names]
