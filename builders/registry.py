"""The builders there are, and what can be done with a run whatever built it."""

from collections.abc import Sequence
from pathlib import Path

from ..engine.execute import Options, RunRequest, execute, last_limit
from ..engine.manifest import read_manifest
from ..engine.pipeline import Pipeline, load_object, load_pipeline
from ..engine.progress import Reporter
from ..engine.report import RunReport
from ..errors import BelowThreshold, RunError

BUILDERS: tuple[tuple[str, str], ...] = (
    ("katha", "fabula.builders.katha.pipeline:PIPELINE"),
    ("events", "fabula.builders.events.pipeline:PIPELINE"),
    ("shots", "fabula.builders.shots.pipeline:PIPELINE"),
    ("entities", "fabula.builders.entities.pipeline:PIPELINE"),
)
"""Kind of run that builds records -> where its pipeline is."""

EVALUATIONS: tuple[tuple[str, str], ...] = (
    ("evaluate-katha", "fabula.evaluation.judges.pipeline:PIPELINE"),
    ("evaluate-events", "fabula.evaluation.completion.pipeline:PIPELINE"),
    ("evaluate-images", "fabula.evaluation.images.pipeline:PIPELINE"),
)
"""Kind of run that judges outputs -> where its pipeline is."""

PLANS: tuple[tuple[str, str], ...] = (
    ("katha", "fabula.builders.katha.spending:tell_plan"),
    ("events", "fabula.builders.katha.spending:tell_plan"),
    ("shots", "fabula.builders.katha.spending:tell_plan"),
    ("entities", "fabula.builders.entities.building:tell_entities"),
    ("evaluate-katha", "fabula.evaluation.judges.spending:tell_judging"),
    ("evaluate-events", "fabula.evaluation.completion.requests:tell_events"),
    ("evaluate-images", "fabula.evaluation.images.requests:tell_images"),
)
"""Kind of run -> what tells a reporter how many calls of models a request makes, and about what they cost."""

AFTERWARDS: tuple[tuple[str, str], ...] = (("entities", "fabula.builders.entities.building:write_funnel"),)
"""Kind of run -> what its folder is given once it was executed, besides the outputs of its pipeline."""

JUDGES = "judges"
"""The section of a settings file in which judges have names; no stage's."""


def pipeline_of(run: Path) -> Pipeline:
    """Return the pipeline that made a run.

    Raises:
        RunError: it is no run folder, a newer version made it, or its kind is not known.
    """
    kind = read_manifest(run).kind
    known = dict(BUILDERS + EVALUATIONS)
    place = known.get(kind)
    if place is None:
        raise RunError(
            str(run),
            what=f"this is a run of kind {kind}, which Fabula does not know; it knows {', '.join(known)}",
            fix="use the program that made it",
        )
    pipeline: Pipeline = load_object(place)
    return pipeline


def sections_of_others(kind: str) -> frozenset[str]:
    """Return the sections that a settings file may have for other kinds of run."""
    others = (place for name, place in BUILDERS + EVALUATIONS if name != kind)
    names = {name for place in others for name in load_pipeline(load_object(place)).names()}
    return frozenset((*names, JUDGES))


def continue_run(
    run: Path,
    *,
    retry_failed: bool = False,
    workers: int | None = None,
    max_cost: float | None = None,
    sources: Sequence[Path] = (),
    reporter: Reporter | None = None,
) -> RunReport:
    """Execute a run again with the sources and settings that it was last made with.

    Args:
        run: the run folder.
        retry_failed: run failed items again, and ask once more what got no usable reply.
        workers: worker processes; None for the settings' number, else one per core.
        max_cost: USD that the run may cost in all, what it has cost included; None for the limit that it was
            last given, if any.
        sources: where sources are that have moved: the files and folders themselves, or a folder that holds
            them; they are known by their content.
        reporter: takes the progress, and before anything is paid for what it is about to cost.

    Raises:
        FabulaError: as :func:`fabula.engine.execute.execute`.
    """
    pipeline = pipeline_of(run)
    manifest = read_manifest(run)
    limit = last_limit(Path(run).absolute()) if max_cost is None else max_cost
    options = Options(workers=workers, retry_failed=retry_failed, max_cost=limit)
    config = manifest.config(load_pipeline(pipeline))
    listed = manifest.source_list(Path(run).absolute(), sources)
    request = RunRequest(run, pipeline, config, listed, options=options, complete=True)
    if reporter is not None:
        load_object(dict(PLANS)[manifest.kind])(request, reporter)
    try:
        report = execute(request, reporter)
    except BelowThreshold:
        _write_more(request)
        raise
    _write_more(request)
    return report


def _write_more(request: RunRequest) -> None:
    place = dict(AFTERWARDS).get(request.pipeline.name)
    if place is not None:
        load_object(place)(request.folder)
