"""An evaluator's evaluation folder, read as the evaluator sees it; and what people answered."""

from collections.abc import Mapping
from pathlib import Path

from ...evaluation.archive.archive import read_manifest
from ...evaluation.recoverability.definitions import Definitions
from ...evaluation.recoverability.score import Judged, judged_folder, release_path
from ...people.read import Known, read_human
from ...people.study import Exclusion, exclude
from ...releases.loading import Release, load
from ...schemas.judgement import HumanRow
from ..evaluators.deriving import SIDECAR, read_sidecar
from ..evaluators.evaluator import Evaluator
from ..evaluators.graph import apply_graph
from .defects import Read
from .views import View


def judged_as(folder: Path, definitions: Definitions, read: Read = load) -> Judged:
    """Return an evaluation with the graph applied that lies beside the release it was judged from, if any.

    Raises:
        InputError: the evaluation, its release or the graph cannot be read.
        ConfigError: the release is not where the evaluation says, or there is no such matcher.
    """
    judged = judged_folder(folder, None, definitions, read=read)
    release = release_path(folder, judged.manifest, None)
    if not (release / SIDECAR).is_file():
        return judged
    return apply_graph(judged, read_sidecar(release).parents)


def seen_by(evaluator: Evaluator, judged: Judged) -> View:
    """Return an evaluation as an evaluator sees it."""
    whole = View.whole(judged)
    return View(
        judged, whole.kept, evaluator.dimensions, evaluator.transitions, "filtered", evaluator.contrasts
    )


def view_of(evaluator: Evaluator, folder: Path, definitions: Definitions, read: Read = load) -> View:
    """Return an evaluation folder as an evaluator sees it; see :func:`judged_as` for errors."""
    return seen_by(evaluator, judged_as(folder, definitions, read))


def release_of(folder: Path) -> Release:
    """Return the release that an evaluation was judged from.

    Raises:
        InputError: it cannot be read.
        ConfigError: it is not where the evaluation says.
    """
    return load(release_path(folder, read_manifest(folder), None))


def people_of(path: Path | None, release: Release, methods: Mapping[str, object]) -> tuple[HumanRow, ...]:
    """Return what people said, without careless answers; nothing where there is no file.

    Raises:
        InputError: the file cannot be read, or says things that do not belong to release and methods.
    """
    if path is None:
        return ()
    known = Known.of_records(tuple(release.records), frozenset(methods))
    return exclude(read_human(path, known), Exclusion()).rows
