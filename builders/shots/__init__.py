"""The shot-script builder: stories in, scripts in the official ViStoryBench tree out."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from .options import ShotOptions

if TYPE_CHECKING:
    from ...engine.estimate import CallPlan
    from ...engine.progress import Reporter
    from ...engine.report import RunReport

__all__ = ["ShotOptions", "build_shots", "estimate_shots"]


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
    from ..spending import tell_plan
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
    from ..spending import without_models
    from .requests import shot_request

    request = shot_request(sources, out, options if options is not None else ShotOptions())
    return plan_calls(request, without_models(request.config))
