"""How far a study is: the matrix of its methods, with what is made and judged of each."""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ...engine.manifest import NAME as MANIFEST
from ...engine.pipeline import Pipeline
from ...engine.survey import surveyed
from ...evaluation.katha.pipeline import PIPELINE as JUDGING
from ...pages.grid import Grid, Tabular
from ...schemas.text import tallied
from ..pictures.pipeline import GENERATIONS, generations_of
from ..pictures.pipeline import PIPELINE as GENERATING
from .desk import Desk
from .ordering import orders_of
from .study import EVALUATION, GENERATION


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
