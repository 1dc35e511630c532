"""What a study would ask for, before anything is asked: pictures, calls, USD and hours."""

import tempfile
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import count
from pathlib import Path
from typing import Any

from ...engine.estimate import CallPlan
from ...evaluation.katha.requests import estimate_evaluation
from ...media.images import encode_image
from ...models.options import options_for
from ...models.spec import parse_spec
from ...releases.loading import Release
from ...schemas.canonical import pretty_bytes, write_atomic
from ...schemas.katha import StoryRecord
from ...schemas.text import tallied, tallies
from ..compass.arms import BASE, FULL, arms_named
from ..compass.budget import Budget, budget, tuning_budget
from ..compass.frozen import CELLS
from ..compass.judging import with_halves
from ..pictures.pipeline import GenerateOptions, estimate_generation
from ..pictures.plans import ORDERS, Order, write_orders
from .desk import Desk
from .evaluators.deriving import derive
from .evaluators.registry import evaluator_of
from .losses import LOSSES
from .pictures import judging_options
from .study import EVALUATION, GENERATION, Ordered, chosen_stories, orders_of

# -- What Semantic Compass, other evaluators and planted losses of a study would ask for at most

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
    release, halves = with_halves(desk.release, selection_set=part.selection_set)
    seeds, each = len(desk.study.seeds), len(desk.study.judges)
    tuned = _records(desk, release, (part.tuned_on,))
    reported = _records(desk, release, desk.study.split)
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


def _records(desk: Desk, release: Release, splits: Sequence[str]) -> list[StoryRecord]:
    names = {story for split in splits for story in chosen_stories(desk.study, release, split)}
    return [record for record in release.records if record.story_id in names]


# --

STAND_IN = (512, 512)
"""Width and height of the grey pictures that stand for those that are not made yet."""


@dataclass(frozen=True, slots=True)
class Forecast:
    """What one model would be asked in one part of a study."""

    part: str  # of the study
    stage: str  # that asks
    model: str  # spec of the model
    calls: int  # expected calls; of a generator one for each picture
    known: int  # calls that a journal answers for nothing, besides
    usd: float | None  # expected cost; None where the price is not known
    # at the model's limit of requests per minute; None where it has none, as nobody knows
    hours: float | None


@dataclass(frozen=True, slots=True)
class StudyForecast:
    """What a study would ask for."""

    cells: dict[str, int]  # methods with their storyboards, stories and seeds
    pictures: int  # how many pictures there will be
    rows: tuple[Forecast, ...]  # what each model would be asked
    most: tuple[Most, ...] = ()  # what Semantic Compass, evaluators and planted losses ask for at most
    arms: tuple[str, ...] = ()  # what each arm of Semantic Compass takes at most, by itself, in words
    notes: tuple[str, ...] = ()  # what is not counted, and why

    @property
    def usd(self) -> float | None:
        """Expected USD in all; None where a price is not known."""
        costs = [*(row.usd for row in self.rows), *(row.usd for row in self.most)]
        return None if None in costs else sum(cost for cost in costs if cost is not None)

    def as_json(self) -> dict[str, Any]:
        """Return it as plain JSON."""
        return {
            "cells": self.cells, "pictures": self.pictures, "calls": sum(row.calls for row in self.rows),
            "usd": self.usd, "rows": [asdict(row) for row in self.rows],
            "most": [asdict(row) for row in self.most], "arms": list(self.arms), "notes": list(self.notes),
        }  # fmt: skip

    def lines(self) -> Iterator[str]:
        """Yield it for people."""
        boards = sum(self.cells.values())
        yield tallies({"methods": len(self.cells), "storyboards": boards, "pictures": self.pictures})
        width = max((len(row.stage) for row in self.rows), default=5)
        line = f"{{:12}}  {{:{width}}}  {{:>8}}  {{:>10}}  {{:>8}}  {{}}".format
        yield line("part", "stage", "calls", "USD", "hours", "model")
        for row in self.rows:
            usd = "unknown" if row.usd is None else f"{row.usd:.4f}"
            hours = "unknown" if row.hours is None else f"{row.hours:.2f}"
            yield line(row.part, row.stage, row.calls, usd, hours, row.model)
        for most in self.most:
            usd = "unknown" if most.usd is None else f"{most.usd:.4f}"
            pictures = f"and {tallied(most.pictures, 'pictures')}" if most.pictures else ""
            yield line(most.part, most.stage, f"<= {most.calls}", usd, "", pictures).rstrip()
        if self.arms:
            yield "each arm of Semantic Compass by itself:"
            yield from self.arms
        known = sum(row.known for row in self.rows)
        total = "price unknown" if self.usd is None else f"about {self.usd:.4f} USD"
        calls = sum(row.calls for row in self.rows) + sum(row.calls for row in self.most)
        yield f"{tallied(calls, 'calls')} at most, {total}" + (
            f"; {known} more are answered from journals" if known else ""
        )
        if any(row.hours is None for row in self.rows):
            yield "hours are known where a model's settings have requests_per_minute"
        yield from (f"note: {note}" for note in self.notes)


def forecast(desk: Desk) -> StudyForecast:
    """Return what a study would ask for now. Nothing is asked.

    Judges are forecast on grey pictures of the size that was ordered, where pictures are not there yet.
    """
    ordered = orders_of(desk.study, desk.release)
    cells: dict[str, int] = defaultdict(int)
    for order in ordered.orders:
        cells[order.method] += 1
    with tempfile.TemporaryDirectory(prefix="fabula-forecast-") as name:
        scratch = Path(name)
        write_orders(scratch / ORDERS, ordered.orders)
        run = desk.folder / GENERATION
        options = GenerateOptions(**desk.run_options(run), replace_sources=True)
        rows = _rows(desk, "pictures", estimate_generation(scratch / ORDERS, run, options))
        outputs = _stand_ins(desk, ordered, scratch)
        judging = judging_options(desk, desk.folder / EVALUATION)
        plan = estimate_evaluation(desk.release.path, outputs, desk.folder / EVALUATION, judging)
        judged = _rows(desk, "judgements", plan)
        most = other_most(desk, dict(zip(desk.study.methods(), outputs, strict=True)), scratch)
        arms: tuple[str, ...] = ()
        if desk.study.compass is not None:
            most = [*compass_most(desk, _each(judged)), *most]
            arms = tuple(compass_budgets(desk)[1].lines())
    notes = ["repairs are not counted"]
    if desk.study.question_writer is not None:
        notes.append("questions of evaluators that a model writes are counted as rules would make them")
    return StudyForecast(dict(cells), ordered.pictures, (*rows, *judged), tuple(most), arms, tuple(notes))


def _each(judged: Sequence[Forecast]) -> float | None:
    """Return the USD of a call of a judge about pictures."""
    shown = [row for row in judged if row.stage == "judge_images"]
    calls = sum(row.calls + row.known for row in shown)
    if not calls or any(row.usd is None for row in shown):
        return None
    return sum(row.usd or 0.0 for row in shown) / calls


def _rows(desk: Desk, part: str, plan: CallPlan) -> list[Forecast]:
    rows = []
    for stage in plan.stages:
        options = options_for(parse_spec(stage.model), {**desk.options.models, **desk.models})
        limit = options.requests_per_minute
        hours = None if limit is None else stage.calls / limit / 60
        rows.append(Forecast(part, stage.stage, stage.model, stage.calls, stage.known, stage.cost, hours))
    return rows


def _stand_ins(desk: Desk, ordered: Ordered, scratch: Path) -> list[Path]:
    """Return a folder of outputs for each method: its own where it is there, else grey pictures."""
    folders: list[Path] = []
    numbers = count()
    for method in desk.study.methods():
        if desk.outputs(method).is_dir():
            folders.append(desk.outputs(method))
            continue
        folder = scratch / method
        orders = [order for order in ordered.orders if order.method == method]
        _grey(folder, [order for order in orders if order.story_id in desk.reported], numbers)
        seeds = sorted({order.seed for order in orders if order.seed is not None})
        manifest = {"method": method, **({"seeds": seeds} if seeds else {})}
        write_atomic(folder / "outputs.json", [pretty_bytes(manifest)])
        folders.append(folder)
    return folders


def _grey(folder: Path, orders: Sequence[Order], numbers: Iterator[int]) -> None:
    """Write pictures of the size that was ordered; by its number no storyboard has the pixels of another."""
    from PIL import Image

    for order, number in zip(orders, numbers, strict=False):
        size = (order.width or STAND_IN[0], order.height or STAND_IN[1])
        folder_of = folder / order.story_id / ("" if order.seed is None else f"seed_{order.seed}")
        folder_of.mkdir(parents=True, exist_ok=True)
        for panel in order.panels:
            shade = (number % 256, number // 256 % 256, panel.number % 256)
            data = encode_image(Image.new("RGB", size, shade), format="png")
            (folder_of / f"{panel.number:02}.png").write_bytes(data)
