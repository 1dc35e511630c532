"""What tables and page of a study are made of: its files, read once and checked; what is missing, and why.

A table of a study: its number in the paper, what it needs, and the function that makes it.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, TypeVar

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from ....errors import InputError
from ....evaluation.archive.archive import EVALUATION as ARCHIVE_MANIFEST
from ....evaluation.archive.archive import JUDGEMENTS
from ....evaluation.recoverability.matching import Definitions
from ....evaluation.recoverability.method import narrowed
from ....evaluation.recoverability.pooling import KathaScores
from ....evaluation.recoverability.score import Judged, judged_folder, scores_of
from ....evaluation.report.formats import Table
from ....evaluation.report.showing import Accounts, read_lines
from ....schemas.plain_files import open_plain, parse_json, read_json, reason_of
from ....schemas.values import Score, Wire
from ..ablations.measuring import FULL, Sources
from ..evaluators.evaluator import evaluator_of
from ..measures.falls import read_plants
from ..planting import PLANTS
from ..study import (
    COMPASS,
    EVALUATION,
    EVALUATORS,
    OUTPUTS,
    PLANTED,
    RESOLVED,
    STORYBOARDS,
    Study,
    cells_of,
)
from .compass_results import CompassResults, read_compass

Made = TypeVar("Made")
GENERATIONS = "generations.jsonl"
"""Beside the pictures of a method: a line for each picture that was asked for."""
Part = Literal["evaluation", "generations", "compass", "evaluators", "planted"]
"""What a table may need of a study, beside the study itself."""
Outcome = Literal["made", "refused", "blocked", "empty", "corrupt", "failed"]
CURE = "run `fabula experiment run` again: it continues where it stopped, and writes its files anew"


class AskedPicture(Wire):
    """One picture that was asked for: a line of ``generations.jsonl``."""

    story_id: str = Field(description="The story.")
    seed: int | None = Field(default=None, description="Seed asked for; null where the system has none.")
    panel: int = Field(description="Number of the picture, from 1.")
    outcome: Outcome = Field(description="What came back.")
    reason: str | None = Field(default=None, description="Why there is no picture.")
    reply: str | None = Field(default=None, description="What the service said instead of a picture.")
    effective_seed: int | None = Field(default=None, description="Seed that was used; null where unknown.")
    width: int | None = Field(default=None, description="In pixels.")
    height: int | None = Field(default=None, description="In pixels.")
    steps: int | None = Field(default=None, description="Steps of denoising; null where unknown.")
    unsupported: tuple[str, ...] = Field(default=(), description="What was asked and the system cannot do.")
    cost: float | None = Field(default=None, description="USD; null where the price is not known.")


@dataclass(frozen=True)
class StudyResults:
    """A study folder, read."""

    folder: Path  # the study folder
    study: Study  # the study
    definitions: Definitions = field(repr=False)  # how replies become numbers, and how sure these are
    # method -> the pictures that were asked for, in the order of the file
    pictures: Mapping[str, tuple[AskedPicture, ...]] = field(repr=False)
    judged: Judged | None = field(repr=False)  # the evaluation of all methods; None where there is none
    absent: Mapping[Part, str]  # part -> why it is not there
    # Semantic Compass; None where there is none
    found_compass: CompassResults | None = field(default=None, repr=False)
    _once: dict[str, Any] = field(default_factory=dict, repr=False)

    @cached_property
    def evaluation(self) -> Judged:
        """The evaluation; only for tables that need it."""
        assert self.judged is not None
        return self.judged

    def once(self, name: str, make: Callable[[], Made]) -> Made:
        """Return what a function makes, made at the first call under this name and kept."""
        if name not in self._once:
            self._once[name] = make()
        made: Made = self._once[name]
        return made

    @property
    def compass(self) -> CompassResults:
        """Semantic Compass; only for tables that need it."""
        assert self.found_compass is not None
        return self.found_compass

    @cached_property
    def sources(self) -> Sources:
        """The folders that evaluators are measured from; only for tables that need them."""
        return _sources(self.folder, self.study, self.definitions)

    @cached_property
    def scores(self) -> KathaScores:
        return scores_of(self.evaluation, self.definitions)

    @cached_property
    def accounts(self) -> Accounts:
        """What judges were asked, what came back, and what it cost."""
        return Accounts.of(read_lines(self.folder / EVALUATION))

    @cached_property
    def cells(self) -> dict[str, tuple[str, str]]:
        """Method -> its plan and renderer, as the study has them; of each plan closed systems come last."""
        renderers, plans = self.study.renderers, self.study.plans
        order = sorted(renderers, key=lambda name: renderers[name].closed is not None)
        return cells_of(plans, {name: renderers[name] for name in order})

    @property
    def methods(self) -> tuple[str, ...]:
        """The methods, in the order of the study; those that only the evaluation knows come last."""
        judged = () if self.judged is None else tuple(method.name for method in self.judged.methods)
        return tuple(dict.fromkeys([*self.cells, *judged]))

    @property
    def judged_methods(self) -> tuple[str, ...]:
        """Those of them that were evaluated."""
        there = {method.name for method in self.evaluation.methods}
        return tuple(name for name in self.methods if name in there)

    def about(self, method: str) -> Mapping[str, Any]:
        """Return what the evaluation's manifest says of a method's outputs."""
        return self.evaluation.manifest.about(method)


def read_results(
    folder: Path, definitions: Definitions | None = None, release: Path | None = None
) -> StudyResults:
    """Return what a study folder holds.

    ``definitions``: how replies become numbers; None for the study's matcher and the paper's definitions.
    ``release``: the release that was judged; None for the place that the evaluation names.
    """
    study = _study(folder)
    used = definitions or Definitions(matcher=study.matcher, common=study.common)
    absent: dict[Part, str] = {}
    pictures = _pictures(folder, study)
    if not pictures:
        absent["generations"] = (
            f"no method has a file {OUTPUTS}/METHOD/{GENERATIONS}: no picture was asked for"
        )
    evaluation = folder / EVALUATION
    judged = None
    if _is_evaluation(evaluation):
        judged = _narrowed(judged_folder(evaluation, release, used), pictures)
    else:
        absent["evaluation"] = f"{EVALUATION}/ holds no finished evaluation: judges were not asked yet"
    compass = read_compass(folder / COMPASS, used)
    if isinstance(compass, str):
        absent["compass"] = compass
    listed = evaluations_below(folder / EVALUATORS)
    if not listed:
        absent["evaluators"] = f"{EVALUATORS}/ holds no evaluation with the questions of another evaluator"
    if not (folder / PLANTED / STORYBOARDS / PLANTS).is_file():
        absent["planted"] = f"{PLANTED}/{STORYBOARDS}/{PLANTS} is not there: no loss was planted"
    return StudyResults(
        folder, study, used, pictures, judged, absent, None if isinstance(compass, str) else compass
    )


def evaluations_below(folder: Path) -> dict[str, Path]:
    """Return name -> folder of each finished evaluation that lies in a folder, by name."""
    there = sorted(folder.iterdir()) if folder.is_dir() else []
    return {path.name: path for path in there if _is_evaluation(path)}


def _is_evaluation(folder: Path) -> bool:
    return all((folder / name).is_file() for name in (ARCHIVE_MANIFEST, JUDGEMENTS))


def _sources(folder: Path, study: Study, definitions: Definitions) -> Sources:
    plants = folder / PLANTED / STORYBOARDS / PLANTS
    own = {FULL: folder / EVALUATION} if _is_evaluation(folder / EVALUATION) else {}
    planted = evaluations_below(folder / PLANTED)
    if FULL in planted:
        reusing = [name for name in study.evaluators if evaluator_of(name).reuses]
        planted |= dict.fromkeys(reusing, planted[FULL])
    return Sources(
        {**evaluations_below(folder / EVALUATORS), **own}, definitions,
        planted=planted, plants=read_plants(plants) if plants.is_file() else (),
        base=None if study.plants is None else study.plants.method, people=study.people_file,
    )  # fmt: skip


def _study(folder: Path) -> Study:
    path = folder / RESOLVED
    try:
        document = read_json(path, follow=True)
        return Study.model_validate(document["study"])
    except (OSError, ValueError, TypeError, LookupError) as error:
        missing = isinstance(error, FileNotFoundError)
        reason = "there is no such file: this is no study folder" if missing else reason_of(error)
        raise _unreadable(path, reason, "give the folder of a study" if missing else CURE) from error


def _pictures(folder: Path, study: Study) -> dict[str, tuple[AskedPicture, ...]]:
    """Return method -> its lines, of methods that have the file."""
    paths = {method: folder / OUTPUTS / method / GENERATIONS for method in study.methods()}
    return {method: tuple(_lines(path)) for method, path in paths.items() if path.exists()}


def _lines(path: Path) -> list[AskedPicture]:
    lines: list[AskedPicture] = []
    seen: set[tuple[str, int | None, int]] = set()
    at = 0
    try:
        with open_plain(path, follow=True) as file:
            for number, line in enumerate(file, 1):
                at = number
                picture = AskedPicture.model_validate(parse_json(line))
                key = (picture.story_id, picture.seed, picture.panel)
                if key in seen:
                    raise ValueError(f"story {key[0]}, seed {key[1]}, panel {key[2]} is there twice")
                seen.add(key)
                lines.append(picture)
    except (OSError, ValueError) as error:
        raise _unreadable(path, reason_of(error), line=at) from error
    return lines


def _unreadable(path: Path, reason: str, fix: str = CURE, line: int = 0) -> InputError:
    where = f"{path}:{line}" if line else str(path)
    return InputError.one(where, what=f"this cannot be used: {reason}", fix=fix)


def _narrowed(judged: Judged, pictures: Mapping[str, tuple[AskedPicture, ...]]) -> Judged:
    """Return the evaluation without generations that a method was not asked for: those are no failures."""
    asked = {method: mask for method, lines in pictures.items() if not (mask := _asked(lines, judged)).all()}
    if not asked:
        return judged
    return replace(judged, methods=narrowed(judged.methods, asked, judged.items))


def _asked(lines: tuple[AskedPicture, ...], judged: Judged) -> NDArray[np.bool_]:
    """Return which generations any picture was asked for, shape (seeds, stories)."""
    stories, seeds = judged.items.story_places, {seed: row for row, seed in enumerate(judged.replies.seeds)}
    mask = np.zeros((len(seeds), judged.items.stories), dtype=bool)
    for line in lines:
        if line.story_id in stories and line.seed in seeds:
            mask[seeds[line.seed], stories[line.story_id]] = True
    return mask


class NoTable(Exception):
    """There is nothing to fill a table with; the message says why, as the end of a sentence."""


@dataclass(frozen=True, slots=True)
class StudyTable:
    number: str  # in the KathaTrace paper, such as ``52`` or ``55 and 75``; empty for one of ours
    name: str  # of the table in data and files; also what it is chosen by
    title: str  # for readers
    group: str  # section of the page that it stands in
    needs: tuple[Part, ...]  # parts of the study without which there is no table
    # makes it; raises :class:`NoTable` where there is nothing to fill it with
    make: Callable[[StudyResults], Table]

    @property
    def caption(self) -> str:
        """The title, with the table of the paper that it follows."""
        tables = "Tables" if len(self.numbers) > 1 else "Table"
        return f"{self.title} (after {tables} {self.number})" if self.number else self.title

    @property
    def numbers(self) -> tuple[str, ...]:
        """The numbers, each by itself."""
        return tuple(self.number.split(" and ")) if self.number else ()


@dataclass(frozen=True, slots=True)
class MadeTables:
    tables: Mapping[str, Table]  # name -> table, in order
    absent: Mapping[str, str]  # name -> why there is no such table


def unmeasured(reason: str) -> Score:
    """Return the score of a column of the paper that nothing here can fill."""
    return Score(value=None, status="undefined", reason=reason)


NO_RATINGS = "no person has rated it"
"""Why columns of people's ratings are empty."""
