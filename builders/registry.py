"""The builders there are, and what can be done with a run whatever built it."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

from pydantic import ValidationError

from ..engine.edits import NAME as EDITS
from ..engine.edits import WHOLE, append_edit, edits_of, is_withdrawal
from ..engine.execute import Options, RunRequest, execute, last_limit
from ..engine.inspect import show_item
from ..engine.manifest import read_manifest
from ..engine.pipeline import Pipeline, load_object, load_pipeline
from ..engine.privacy import keep_private
from ..engine.progress import Reporter
from ..engine.report import RunReport
from ..engine.stage import Tools
from ..errors import BelowThreshold, ConfigError, RunError
from ..releases.layout import IMPORTED_ENTITIES, IMPORTED_SHOTS
from ..schemas.canonical import Json
from ..schemas.paths import value_at
from ..schemas.quoted_paths import parse_quoted
from ..schemas.values import Edit

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

DRAFTS: tuple[tuple[str, str], ...] = (
    ("katha", "fabula.builders.katha.pending_edits:draft_with"),
    ("shots", "fabula.builders.shots.pending_edits:draft_with"),
)
"""Kind of run -> what gives an item's draft from the fields that its editing stage read and the edits."""

_IMPORTED: dict[str, str] = {
    IMPORTED_SHOTS: "copy its folder ViStory, correct NN/story.json there, and give the copy to"
    " `fabula import vistory`: facts and rights of images come along",
    IMPORTED_ENTITIES: "correct the files that it was imported from, and import them into a new folder",
}
"""Kind of a run that has no stages -> how its records are corrected."""

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

LONGEST_NAME = 100
"""Characters of the name of who corrects something."""
LONGEST_REASON = 500
"""Characters of the reason why an item was withdrawn."""
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
            expected=f"a run of kind {', '.join(known)}",
            found=f"kind {kind}",
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
    reporter: Reporter | None = None,
) -> RunReport:
    """Execute a run again with the sources and settings that it was last made with.

    Args:
        run: the run folder.
        retry_failed: run failed items again.
        workers: worker processes; None for the settings' number, else one per core.
        max_cost: USD that the run may cost in all, what it has cost included; None for the limit that it was
            last given, if any.
        reporter: takes the progress, and before anything is paid for what it is about to cost.

    Raises:
        FabulaError: as :func:`fabula.engine.execute.execute`.
    """
    pipeline = pipeline_of(run)
    manifest = read_manifest(run)
    limit = last_limit(Path(run).absolute()) if max_cost is None else max_cost
    options = Options(workers=workers, retry_failed=retry_failed, max_cost=limit)
    config = manifest.config(load_pipeline(pipeline))
    request = RunRequest(run, pipeline, config, manifest.source_list(Path(run).absolute()), options=options)
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


def add_edit(run: Path, item: str, path: str, new: Json, *, who: str, why: str) -> Edit:
    """Add a correction of one field of an item's draft to a run; the next build or retry applies it.

    The old value that it names is the one that stands there once the corrections that still wait are applied.

    Raises:
        ConfigError: the correction cannot be applied; the message says why.
        RunError: the run has no such item or no draft of it, or a correction that waits cannot be applied.
        InputError: ``edits.jsonl`` is damaged.
    """
    asked = _signed(item, path, new, who, why)
    return _append(run, lambda: _with_old(run, asked))


def withdraw(run: Path, item: str, *, who: str, why: str) -> Edit:
    """Take an item out of what a run makes, for good; the next build or retry applies it.

    The item keeps its place in the splits and among the near-duplicates, so nothing moves for the others, and
    its id is not used again.

    Args:
        run: the run folder.
        item: its id.
        who: who withdraws it.
        why: the reason, which a release publishes unless the item belongs to its hidden test.

    Raises:
        ConfigError: it was withdrawn before, or ``who`` or ``why`` is empty.
        RunError: the run has no such item, or is of a kind whose items cannot be withdrawn.
        InputError: ``edits.jsonl`` is damaged.
    """
    edit = _signed(item, WHOLE, None, who, why)
    if not why.isprintable() or len(why) > LONGEST_REASON:
        found = f"{len(why)} characters" if why.isprintable() else "line ends or control characters"
        expected = f"one line of at most {LONGEST_REASON} characters"
        raise ConfigError("--why", expected=expected, found=found, fix="a release publishes it: shorten it")
    pipeline = _editable(run)
    show_item(run, pipeline, item)

    def compose() -> Edit:
        _refuse_withdrawn(run, item)
        return edit

    return _append(run, compose)


def _append(run: Path, compose: Callable[[], Edit]) -> Edit:
    edit = append_edit(run, compose)
    if pipeline_of(run).private:
        keep_private(run)
    return edit


def _signed(item: str, path: str, new: Json, who: str, why: str) -> Edit:
    for option, value in (("--who", who), ("--why", why)):
        if not value.strip():
            raise ConfigError(option, expected="some text", found=repr(value), fix="say who and why")
    if not who.isprintable() or len(who) > LONGEST_NAME:
        expected = f"a name in one line, of at most {LONGEST_NAME} characters"
        raise ConfigError("--who", expected=expected, found=repr(who[:LONGEST_NAME]), fix="shorten it")
    try:
        return Edit(id=item, path=path, old=None, new=new, who=who, why=why)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        raise ConfigError(
            str(first["loc"][0]), expected="another value", found=repr(first["input"]), fix="correct it"
        ) from error


def _refuse_withdrawn(run: Path, item: str) -> None:
    gone = next(filter(is_withdrawal, edits_of(run, item)), None)
    if gone is not None:
        raise ConfigError(
            f"{run}: {item}", expected="an item that stands", found=f"withdrawn by {gone.who}: {gone.why}",
            fix="nothing is left to change; a withdrawn id is not used again",
        )  # fmt: skip


def _with_old(run: Path, asked: Edit) -> Edit:
    """Return a correction with the value that it replaces, once it is clear that it can be applied."""
    _refuse_withdrawn(run, asked.id)
    if asked.path == WHOLE:
        raise ConfigError(
            f"{asked.id} {asked.path}", expected="the path of a field", found="the whole record",
            fix="edit field by field, or withdraw the record with --withdraw",
        )  # fmt: skip
    draft_of = _drafter(run, asked.id)
    waiting = edits_of(run, asked.id)
    try:
        draft = draft_of(waiting)
    except ValueError as error:
        raise RunError(
            f"{run / EDITS}: {asked.id}", expected="corrections that can be applied", found=str(error),
            fix="correct or remove that line",
        ) from error  # fmt: skip
    try:
        with suppress(LookupError):  # where nothing is, the builder says what there is
            asked = asked.model_copy(update={"old": value_at(draft, parse_quoted(asked.path))})
        draft_of((*waiting, asked))
    except ValueError as error:
        raise ConfigError(
            f"{asked.id} {asked.path}", expected="a correction that can be applied", found=str(error),
            fix=f"look at the draft with: fabula run show {run} {asked.id}",
        ) from error  # fmt: skip
    return asked


def _drafter(run: Path, item: str) -> Callable[[Sequence[Edit]], Json]:
    """Return what gives the item's draft under corrections, from what the run's journal holds."""
    manifest, pipeline = read_manifest(run), _editable(run)
    loaded = load_pipeline(pipeline)
    config = manifest.config(loaded)
    stage = next(stage for stage in loaded.stages if "edits" in stage.spec.reads)
    shown = show_item(run, pipeline, item)
    view = next(view for view in shown.stages if view.name == stage.name)
    if view.reads.keys() != set(stage.spec.reads):
        last = next(view for view in shown.stages if view.status != "made")
        raise RunError(
            f"{run}: item {item}", expected="an item with a draft",
            found=f"{last.status} in {last.name}" + (f": {last.reason}" if last.reason else ""),
            fix="finish the run first: fabula run retry",
        )  # fmt: skip
    tools = Tools(config.stages[stage.name], manifest.created_at, config.run.seed)
    draft_with = load_object(dict(DRAFTS)[manifest.kind])
    return lambda edits: draft_with(view.reads, edits, tools)


def _editable(run: Path) -> Pipeline:
    """Return the pipeline of a run whose items can be edited."""
    kind = read_manifest(run).kind
    if kind not in dict(DRAFTS):
        raise RunError(
            str(run), expected=f"a run of kind {', '.join(dict(DRAFTS))}", found=f"kind {kind}",
            fix=_IMPORTED.get(kind, "correct its sources, and give the command that made the run again"),
        )  # fmt: skip
    return pipeline_of(run)
