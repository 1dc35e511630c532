"""The shot-script builder: stories in, scripts in the official ViStoryBench tree out."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ...engine.run_options import RunOptions

if TYPE_CHECKING:
    from ...engine.estimate import CallPlan
    from ...engine.progress import Reporter
    from ...engine.report import RunReport

__all__ = ["ShotOptions", "build_shots", "estimate_shots"]


@dataclass(frozen=True, slots=True)
class ShotOptions(RunOptions):
    """How to build shot scripts. What every run may choose comes as keywords.

    Attributes:
        scripts: JSONL with what authors give about stories: labels and characters; see :mod:`.given`.
        shots: shots of every story; None for the settings' number, else by its length.
        languages: keys of the languages to write, ``en`` and ``ch``; None for the settings', else both.
        planner: who drafts, in every stage: ``rules`` or ``model``; None for the settings' own.
        model: spec of the model that drafts; implies the planner ``model``.
        limit: only the first so many stories.
        items: only these story ids.
    """

    scripts: Path | None = None
    shots: int | None = None
    languages: Sequence[str] | None = None
    planner: str | None = None
    model: str | None = None
    limit: int | None = None
    items: Sequence[str] = ()


def build_shots(
    sources: Sequence[Path | str] | Path | str,
    out: Path | str,
    options: ShotOptions | None = None,
    *,
    reporter: "Reporter | None" = None,
) -> "RunReport":
    """Build shot scripts from stories; an existing run folder is continued.

    The run folder then holds the official tree in ``ViStory/``.

    Args:
        sources: JSONL or CSV files, or folders of ``.txt`` and ``.md`` files.
        out: the run folder.
        options: how to build; by default the rules planner with its default settings.
        reporter: takes the progress, and before anything is paid for what it is about to cost.

    Raises:
        FabulaError: a source, a setting, a model or the folder is wrong, too few stories were made, the
            cost limit was reached, or the user stopped it; see :mod:`fabula.errors`.
    """
    from ...engine.execute import execute
    from ..katha.spending import tell_plan
    from .requests import shot_request

    request = shot_request(sources, out, options if options is not None else ShotOptions())
    if reporter is not None:
        tell_plan(request, reporter)
    return execute(request, reporter)


def estimate_shots(
    sources: Sequence[Path | str] | Path | str, out: Path | str, options: ShotOptions | None = None
) -> "CallPlan":
    """Tell what :func:`build_shots` would ask of the model now, and about what that costs. Asks nothing.

    Raises:
        FabulaError: as :func:`build_shots`.
    """
    from ...engine.estimate import plan_calls
    from ..katha.spending import without_models
    from .requests import shot_request

    request = shot_request(sources, out, options if options is not None else ShotOptions())
    return plan_calls(request, without_models(request.config))
