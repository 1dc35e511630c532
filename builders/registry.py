"""The builders there are, and what can be done with a run whatever built it."""

from importlib import import_module
from pathlib import Path

from ..engine.execute import Options, RunRequest, execute
from ..engine.inspect import show_item
from ..engine.manifest import read_manifest
from ..engine.pipeline import Pipeline, load_pipeline
from ..engine.progress import Reporter
from ..engine.report import RunReport
from ..errors import RunError
from ..schemas.canonical import Json
from ..schemas.paths import get_at

BUILDERS: tuple[tuple[str, str], ...] = (("katha", "fabula.builders.katha.pipeline:PIPELINE"),)
"""Kind of run -> where its pipeline is."""


def pipeline_of(run: Path) -> Pipeline:
    """Return the pipeline that made a run.

    Raises:
        RunError: it is no run folder, a newer version made it, or its kind is not known.
    """
    kind = read_manifest(run).kind
    place = dict(BUILDERS).get(kind)
    if place is None:
        raise RunError(
            str(run),
            expected=f"a run of kind {', '.join(dict(BUILDERS))}",
            found=f"kind {kind}",
            fix="use the program that made it",
        )
    module, attribute = place.split(":")
    pipeline: Pipeline = getattr(import_module(module), attribute)
    return pipeline


def continue_run(
    run: Path, *, retry_failed: bool = False, workers: int | None = None, reporter: Reporter | None = None
) -> RunReport:
    """Execute a run again with the sources and settings that it was last made with.

    Raises:
        FabulaError: as :func:`fabula.engine.execute.execute`.
    """
    pipeline = pipeline_of(run)
    config = read_manifest(run).config(load_pipeline(pipeline))
    options = Options(workers=workers, retry_failed=retry_failed)
    return execute(RunRequest(run, pipeline, config, options=options), reporter)


def draft_value(run: Path, item: str, path: str) -> Json:
    """Return what stands at a JSON path of an item's draft now: the old value of an edit.

    Raises:
        RunError: the run has no such item, or its draft has nothing at the path.
    """
    shown = show_item(run, pipeline_of(run), item)
    try:
        return get_at(shown.field("draft"), path)
    except (LookupError, ValueError) as error:
        raise RunError(
            f"{run}: item {item}",
            expected=f"a value at {path}",
            found=str(error),
            fix=f"look at the draft with: fabula run show {run} {item}",
        ) from error
