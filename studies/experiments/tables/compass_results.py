"""What Semantic Compass left in a study folder: the frozen file, what was chosen, evaluations of the arms."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from ....evaluation.archive.archive import EVALUATION, JUDGEMENTS, read_manifest
from ....evaluation.recoverability.matching import Definitions
from ....evaluation.recoverability.method import Method
from ....evaluation.recoverability.score import Judged, judged_folder
from ....schemas.plain_files import MISSHAPEN, explaining, read_json
from ...compass.applying import COMPASS
from ...compass.arms import ARMS, Arm
from ...compass.frozen import CELLS, FROZEN, HELD_OUT, Cell, Frozen, cell_of, read_frozen

DEEPEST = 3
"""How deep below the folder of Semantic Compass evaluations of its arms are looked for."""


@dataclass(frozen=True)
class CompassResults:
    """Semantic Compass in a study."""

    frozen: Frozen = field(repr=False)  # what tuning chose
    # what ``compass.json`` says of the stories that it was applied to
    document: Mapping[str, Any] = field(repr=False)
    folders: Mapping[Cell, Path]  # cell of Table 64 -> the evaluation of the arms that is of it
    definitions: Definitions = field(repr=False)  # how replies become numbers

    @cached_property
    def cells(self) -> dict[Cell, Judged]:
        """Cell -> its evaluation, in the order of Table 64."""
        return {
            cell: judged_folder(self.folders[cell], None, self.definitions)
            for cell in CELLS
            if cell in self.folders
        }

    @property
    def reported(self) -> Judged | None:
        """The evaluation that is reported: prompts and questions are held out. None where there is none."""
        return self.cells.get(HELD_OUT)

    @property
    def arms(self) -> tuple[Arm, ...]:
        """The arms that it was applied with, in order."""
        made = self.document["arms"]
        return tuple(arm for arm in ARMS if arm.name in made)

    def copies(self, arm: Arm) -> tuple[int, int]:
        """Return how many neighbouring frames of an arm are copies (Eq. 26), and how many there are.

        Frames that were inserted are among them.
        """
        counts = self.document["arms"][arm.name].get("copies") or {}
        return int(counts.get("above_gamma", 0)), int(counts.get("pairs", 0))


def methods_by_name(judged: Judged) -> dict[str, Method]:
    return {method.name: method for method in judged.methods}


def read_compass(folder: Path, definitions: Definitions) -> CompassResults | str:
    """Return what the folder of Semantic Compass holds, or why there is nothing."""
    if not (folder / FROZEN).is_file():
        return f"{folder.name}/{FROZEN} is not there: Semantic Compass was not tuned"
    frozen = read_frozen(folder / FROZEN)
    if not (folder / COMPASS).is_file():
        return f"{folder.name}/{COMPASS} is not there: Semantic Compass was tuned and not applied yet"
    document = _document(folder / COMPASS)
    cells: dict[Cell, Path] = {}
    for evaluation in _evaluations(folder):
        cells.setdefault(cell_of(evaluation, frozen.conditions), evaluation)
    return CompassResults(frozen, document, cells, definitions)


def _document(path: Path) -> dict[str, Any]:
    fix = "apply the frozen file again"
    with explaining(path, fix, what="this is not what applying a frozen file wrote", of=MISSHAPEN):
        document = dict(read_json(path, follow=True))
        for name in ("arms", "stories"):
            if not isinstance(document[name], dict):
                raise ValueError(f"{name} is no object")
        for story in document["stories"].values():
            for candidate in story["candidates"]:
                candidate["copies"]["value"], candidate["seed"], story["selected"].keys()
    return document


def _evaluations(folder: Path) -> Iterator[Path]:
    """Yield the finished evaluations below a folder whose methods are arms."""
    names = {arm.name for arm in ARMS}
    for manifest in sorted(folder.rglob(EVALUATION)):
        evaluation = manifest.parent
        if len(evaluation.relative_to(folder).parts) > DEEPEST or not (evaluation / JUDGEMENTS).is_file():
            continue
        methods = read_manifest(evaluation).subject.get("methods")
        if isinstance(methods, Mapping) and methods and set(methods) <= names:
            yield evaluation
