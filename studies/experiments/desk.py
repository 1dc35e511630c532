"""What every part of a study works with: the study, its release, its folder, the money that is left."""

import math
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...engine.calls import model_uses
from ...engine.journal_file import NAME as JOURNAL
from ...engine.manifest import NAME as MANIFEST
from ...engine.pipeline import Pipeline
from ...engine.run_options import RunOptions
from ...engine.survey import surveyed
from ...errors import BudgetStop, ConfigError
from ...evaluation.katha.pipeline import PIPELINE as JUDGING
from ...pages.grid import Grid, Tabular
from ...releases.loading import Release, load
from ...schemas.canonical import Json, pretty_bytes, write_atomic
from ...schemas.plain_files import read_json, reason_of
from ...schemas.text import tallied
from ..compass.judging import RULES
from ..pictures.pipeline import GENERATIONS, generations_of
from ..pictures.pipeline import PIPELINE as GENERATING
from .study import EVALUATION, GENERATION, RESOLVED, Study, orders_of, read_study, resolved

if TYPE_CHECKING:
    from ...engine.progress import Reporter

LOCAL = (
    *("workers", "pool", "created_at", "retry_failed", "reuse"),
    *("batch", "batch_deadline", "batch_then_single", "limit_share"),
)
"""Options of the command that every run of a study gets."""
FEW = 100
"""Stories times seeds up to which runs work in this process: starting others would take longer."""


@dataclass(frozen=True, slots=True)
class ExperimentOptions(RunOptions):
    """How to run a study. What every run may choose comes as keywords."""


@dataclass(frozen=True)
class Desk:
    """A study at work."""

    study: Study  # what is to be done
    models: Mapping[str, Mapping[str, Any]]  # settings of models that stand in the study's file
    release: Release = field(repr=False)  # what outputs are judged by
    folder: Path  # of the study; runs, outputs and tables lie below it
    # how its runs are executed
    options: ExperimentOptions = field(default_factory=ExperimentOptions, repr=False)
    reporter: "Reporter | None" = field(default=None, repr=False)  # takes the progress

    def run_options(self, folder: Path) -> dict[str, Any]:
        """Return what runs in a folder of the study are executed with, their share of the money included."""
        given = {name: getattr(self.options, name) for name in LOCAL}
        if given["workers"] is None and len(self.reported) * len(self.study.seeds) <= FEW:
            given["workers"] = 0
        limit = self.options.max_cost
        if limit is not None:
            others = self.spent() - spent_below(folder)
            if others >= limit:
                raise BudgetStop(
                    f"stopped at the cost limit: {others:.4f} of {limit:g} USD are spent\n  fix: raise"
                    " --max-cost and give the same command again: finished work is kept, and nothing is asked"
                    " twice"
                )
            given["max_cost"] = limit - others
        return {
            **given,
            "models": {**self.options.models, **self.models},
            "config": self.options.config,
            "settings": self.options.settings,
            "others": self.options.others,
        }

    def spent(self) -> float:
        """Return the USD that all runs of the study have cost, what may have been charged included."""
        return spent_below(self.folder)

    @cached_property
    def reported(self) -> tuple[str, ...]:
        """The ids of the stories that are reported on."""
        from .study import chosen_stories

        return tuple(
            story for split in self.study.split for story in chosen_stories(self.study, self.release, split)
        )

    def outputs(self, method: str) -> Path:
        """Return the folder of a method's outputs."""
        from .study import OUTPUTS

        return self.folder / OUTPUTS / method


def spent_below(folder: Path) -> float:
    """Return the USD that the runs in and below a folder have cost so far; 0 where there is none."""
    uses = (use for journal in sorted(folder.rglob(JOURNAL)) for use in model_uses(journal))
    return math.fsum(use.cost + use.uncertain_cost for use in uses)


def open_study(
    file: Path, folder: Path, options: ExperimentOptions, reporter: "Reporter | None" = None
) -> Desk:
    """Return a study ready for work, from its file."""
    study, models = read_study(file)
    placed = _placed(study, file.parent)
    return Desk(placed, models, load(placed.release), folder, options, reporter)


def keep_study(desk: Desk) -> None:
    """Write ``study.json``."""
    path = desk.folder / RESOLVED
    if path.is_file():
        name = _known(path).get("study", {}).get("name")
        if name != desk.study.name:
            raise ConfigError(
                f"--out {desk.folder}", what=f"the folder holds the study {name!r}, not {desk.study.name!r}",
                fix="choose another folder, or the file of that study",
            )  # fmt: skip
    desk.folder.mkdir(parents=True, exist_ok=True)
    write_atomic(path, [pretty_bytes(resolved(desk.study))])


def reopen_study(folder: Path) -> Desk:
    """Return the study of a folder for looking at it; nothing can be asked from it."""
    document = _known(folder / RESOLVED)
    study = Study.model_validate(document["study"])
    return Desk(study, {}, load(study.release), folder)


def _known(path: Path) -> dict[str, Json]:
    try:
        return dict(read_json(path, follow=True))
    except (OSError, ValueError, TypeError) as error:
        raise ConfigError(
            str(path.parent), what=f"this is no folder of a study: {reason_of(error)}",
            fix="give the --out of fabula experiment run",
        ) from error  # fmt: skip


def _placed(study: Study, beside: Path) -> Study:
    """Return a study whose folders are found from here: in its file they are relative to it."""
    from ...releases.hub.client import looks_like_reference

    changes: dict[str, object] = {}
    if not looks_like_reference(study.release):
        changes["release"] = str((beside / study.release).absolute())
    else:
        from ...releases.hub.fetch import release_folder

        changes["release"] = str(release_folder(study.release))
    for name in ("drafts", "people", "labelled"):
        if (given := getattr(study, name)) is not None:
            changes[name] = str((beside / given).absolute())
    if study.compass is not None and study.compass.selection_set not in (None, RULES):
        placed = str((beside / str(study.compass.selection_set)).absolute())
        changes["compass"] = study.compass.model_copy(update={"selection_set": placed})
    return study.model_copy(update=changes)


# -- How far a study is: the matrix of its methods, with what is made and judged of each


@dataclass(frozen=True, slots=True)
class Cell:
    """One method."""

    method: str  # its name
    ordered: int  # storyboards that the study wants of it, over all stories and seeds
    made: int  # storyboards whose generator has answered for every picture
    pictures: Mapping[str, int]  # outcome -> pictures of finished storyboards
    judged: int  # storyboards whose judgements are all in
    to_judge: int  # storyboards of stories that are reported on

    @property
    def invalid(self) -> int:
        """Pictures that were answered with something else than a picture."""
        return sum(count for outcome, count in self.pictures.items() if outcome != "made")


@dataclass(frozen=True, slots=True)
class StudyStatus(Tabular):
    """How far a study is."""

    name: str  # of the study
    cells: tuple[Cell, ...]  # its methods
    spent: float  # USD that it has cost so far
    parts: Mapping[str, str] = field(default_factory=dict)  # part of the study -> what is there of it
    notes: tuple[str, ...] = ()  # what a reader must know

    def grids(self) -> Iterator[Grid]:
        """Yield the methods, and the parts of the study."""
        columns = ("method", "ordered", "made", "invalid", "judged", "to_judge")
        rows = (tuple(getattr(cell, name) for name in columns) for cell in self.cells)
        note = " ".join([f"{self.spent:.4f} USD spent.", *self.notes])
        yield Grid("methods", f"Study {self.name}", columns, tuple(rows), note)
        yield Grid("parts", "Parts", ("part", "state"), tuple(self.parts.items()), words=(1,))

    def as_json(self) -> dict[str, Any]:
        """Return it as plain JSON."""
        cells = [
            {
                "method": cell.method, "ordered": cell.ordered, "made": cell.made, "invalid": cell.invalid,
                "pictures": dict(cell.pictures), "judged": cell.judged, "to_judge": cell.to_judge,
            }
            for cell in self.cells
        ]  # fmt: skip
        return {
            "study": self.name, "cells": cells, "spent": self.spent, "parts": dict(self.parts),
            "notes": list(self.notes),
        }  # fmt: skip

    def lines(self) -> Iterator[str]:
        """Yield the matrix, a method a line."""
        width = max((len(cell.method) for cell in self.cells), default=6)
        row = f"{{:{width}}}  {{:>13}}  {{:>8}}  {{:>13}}".format
        yield f"study {self.name}: {self.spent:.4f} USD spent"
        yield row("method", "storyboards", "invalid", "judged")
        for cell in self.cells:
            judged = f"{cell.judged} of {cell.to_judge}"
            yield row(cell.method, f"{cell.made} of {cell.ordered}", f"{cell.invalid}", judged)
        for part, state in self.parts.items():
            yield f"{part}: {state}"
        yield from (f"note: {note}" for note in self.notes)


def study_status(desk: Desk, parts: Mapping[str, str] | None = None) -> StudyStatus:
    """Return how far a study is; reads only, also while it is at work.

    ``parts``: part of the study -> what is there of it, as the parts say.
    """
    ordered = orders_of(desk.study, desk.release)
    made = _done(desk.folder / GENERATION, GENERATING)
    judged = _done(desk.folder / EVALUATION, JUDGING)
    outcomes = _outcomes(desk.folder / GENERATION)
    cells = []
    for method in desk.study.methods():
        orders = [order for order in ordered.orders if order.method == method]
        reported = [order.key for order in orders if order.story_id in desk.reported]
        finished = sum(order.key in made for order in orders)
        cells.append(
            Cell(
                method, len(orders), finished, outcomes.get(method, Counter()),
                sum(key in judged for key in reported), len(reported),
            )
        )  # fmt: skip
    notes = [
        f"plan {plan}: {tallied(len(stories), 'stories')} without records that people accepted"
        for plan, stories in ordered.unusable.items()
    ]
    return StudyStatus(desk.study.name, tuple(cells), desk.spent(), parts or {}, tuple(notes))


def _done(run: Path, pipeline: Pipeline) -> frozenset[str]:
    """Return the items of a run that have passed every stage."""
    if not (run / MANIFEST).is_file():
        return frozenset()
    with surveyed(run, pipeline) as survey:
        return frozenset(survey.items.live)


def _outcomes(run: Path) -> dict[str, Counter[str]]:
    if not (run / GENERATIONS).is_file():
        return {}
    return {method: Counter(row["outcome"] for row in rows) for method, rows in generations_of(run).items()}
