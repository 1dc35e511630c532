"""The verbs with the kind looked up: what Python and the command line call."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from ..builders import corrections, preview
from ..engine.manifest import read_manifest
from ..engine.pipeline import Pipeline
from ..engine.run_options import RunOptions
from ..engine.running import Again, continue_as
from ..errors import RunError
from ..schemas.canonical import Json
from .registry import foreign_sections, kind_named, kind_with, kinds, run_kind_of

if TYPE_CHECKING:
    from ..engine.progress import Reporter
    from ..engine.report import RunReport


def pipeline_of(run: Path) -> Pipeline:
    """Return the pipeline that made a run.

    Raises:
        RunError: it is no run folder, a newer version made it, or its kind is not known.
    """
    return run_kind_of(run).pipeline


def continue_run(
    run: Path,
    *,
    retry_failed: bool = False,
    workers: int | None = None,
    max_cost: float | None = None,
    sources: Sequence[Path] = (),
    reporter: "Reporter | None" = None,
) -> "RunReport":
    """Execute a run of any kind again; see :func:`fabula.engine.running.continue_as`."""
    again = Again(retry_failed, workers, max_cost, tuple(sources))
    return continue_as(run_kind_of(run), run, again, reporter)


def correct(run: Path, item: str, path: str, new: Json, *, who: str, why: str) -> corrections.Correction:
    """Add a correction of one field to a run; see :func:`fabula.builders.corrections.correct`."""
    return corrections.correct(_editable(run), item, path, new, who=who, why=why)


def withdraw(run: Path, item: str, *, who: str, why: str) -> corrections.Correction:
    """Take an item out of a run for good; see :func:`fabula.builders.corrections.withdraw`."""
    return corrections.withdraw(_editable(run), item, who=who, why=why)


def corrected_in_files(run_kind: str) -> str | None:
    """Return how records of a kind of run are corrected that no stage corrects; None where nothing says."""
    kind = kind_with(run_kind)
    if kind is None or run_kind not in (kind.name, *kind.imported):
        return None
    drafting = kind.drafting()
    return drafting.corrected_in_files if run_kind != kind.name or drafting.editing is None else None


def _editable(run: Path) -> corrections.Editable:
    """Return a run whose items can be corrected, and how.

    Raises:
        RunError: it is of a kind whose items cannot be.
    """
    name = read_manifest(run).kind
    drafting = next((kind.drafting() for kind in kinds() if kind.name == name), None)
    if drafting is None or drafting.editing is None:
        can = [kind.name for kind in kinds() if kind.drafting().editing is not None]
        how = corrected_in_files(name)
        raise RunError(
            str(run), what=f"runs of kind {name} cannot be corrected, only {', '.join(can)}",
            fix=how or "correct its sources, and give the command that made the run again",
        )  # fmt: skip
    return corrections.Editable(Path(run), drafting.run.pipeline, drafting.editing)


def preview_run(run: Path, item: str, prompt_id: str) -> list[preview.Preview]:
    """Return what a run's stages would ask with a prompt; see :func:`fabula.builders.preview.preview_run`."""
    return preview.preview_run(pipeline_of(run), run, item, prompt_id)


def preview_story(
    stories: Path, item: str, prompt_id: str, settings: Path | None = None
) -> list[preview.Preview]:
    """Return what a new run would ask about one story; see :func:`fabula.builders.preview.preview_story`.

    The kind is the one that the prompt is of, else the first whose stages ask with it.
    """
    asking = [
        (kind.name, drafting)
        for kind in kinds()
        if (drafting := kind.drafting()).one_story is not None
        and preview.stages_asking(drafting.run.pipeline, prompt_id)
    ]
    if not asking:
        raise preview.not_asked(prompt_id)
    own = [drafting for name, drafting in asking if prompt_id.startswith(f"{name}/")]
    drafting = own[0] if own else asking[0][1]
    options = {"config": settings, "others": foreign_sections}
    return preview.preview_story(drafting, stories, item, prompt_id, options)


def build(
    name: str,
    sources: Sequence[Path | str] | Path | str,
    out: Path | str,
    options: RunOptions | None = None,
    *,
    reporter: "Reporter | None" = None,
) -> "RunReport":
    """Build records of any kind; an existing run folder is continued.

    Args:
        name: the kind, such as ``katha`` or that of a package of yours.
        sources: files and folders of what it is built from: stories, seeds, videos.
        out: the run folder.
        options: how to build, of the type that the kind takes; its defaults where none are given. The
            settings file may have sections for other kinds.
        reporter: takes the progress, and before anything is paid for what it is about to cost.

    Raises:
        ConfigError: there is no such kind.
        FabulaError: a source, a setting, a model or the folder is wrong, too little was made, the cost limit
            was reached, or the user stopped it; see :mod:`fabula.errors`.
    """
    drafting = kind_named(name).drafting()
    chosen = replace(options if options is not None else drafting.options(), others=foreign_sections)
    return drafting.build(sources, out, chosen, reporter=reporter)


def build_katha(
    sources: Sequence[Path | str] | Path | str,
    out: Path | str,
    options: RunOptions | None = None,
    *,
    reporter: "Reporter | None" = None,
) -> "RunReport":
    """Build KathaBench records from stories; see :func:`build` and :class:`fabula.BuildOptions`."""
    return build("katha", sources, out, options, reporter=reporter)
