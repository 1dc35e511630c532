"""The shot-script builder: stories in, scripts in the official ViStoryBench tree out."""

from collections.abc import Sequence
from pathlib import Path

from ...engine.estimate import CallPlan, plan_calls
from ...engine.execute import execute
from ...engine.progress import Reporter
from ...engine.report import RunReport
from ...engine.running import RunKind
from ..drafting import Drafting
from ..spending import tell_plan, without_models
from .options import ShotOptions
from .pending_edits import EDITING
from .pipeline import PIPELINE
from .requests import shot_request


def build_shots(
    sources: Sequence[Path | str] | Path | str,
    out: Path | str,
    options: ShotOptions | None = None,
    *,
    reporter: Reporter | None = None,
) -> RunReport:
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
    request = shot_request(sources, out, options if options is not None else ShotOptions())
    if reporter is not None:
        tell_plan(request, reporter)
    return execute(request, reporter)


def estimate_shots(
    sources: Sequence[Path | str] | Path | str, out: Path | str, options: ShotOptions | None = None
) -> CallPlan:
    """Tell what :func:`build_shots` would ask of the model now, and about what that costs. Asks nothing.

    Raises:
        FabulaError: as :func:`build_shots`.
    """
    request = shot_request(sources, out, options if options is not None else ShotOptions())
    return plan_calls(request, without_models(request.config))


DRAFTING = Drafting(
    RunKind(PIPELINE, tell_plan),
    build_shots,
    ShotOptions,
    EDITING,
    "copy its folder ViStory, correct NN/story.json there, and give the copy to"
    " `fabula import vistory`: facts and rights of images come along",
    lambda stories, run, **chosen: shot_request(stories, run, ShotOptions(**chosen)),
)
"""How shot scripts are drafted."""
