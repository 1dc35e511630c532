"""Raw video into entity-scheduled episodes (EntityBench sections 3.1 and A)."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from .options import EntityOptions

if TYPE_CHECKING:
    from ...engine.estimate import CallPlan
    from ...engine.progress import Reporter
    from ...engine.report import RunReport

__all__ = ["EntityOptions", "build_entities", "estimate_entities"]


def build_entities(
    videos: Sequence[Path | str] | Path | str,
    out: Path | str,
    options: EntityOptions | None = None,
    *,
    reporter: "Reporter | None" = None,
) -> "RunReport":
    """Build episodes from videos; an existing run folder is continued.

    The run folder then holds the official tree in ``data/``, and what is left after each step of the curation
    in ``funnel.json``.

    Args:
        videos: video files, or folders of them.
        out: the run folder.
        options: how to build; by default rules write, and the default detectors look.
        reporter: takes the progress, and before anything is paid for what it is about to cost.

    Raises:
        FabulaError: a source, a setting, a model or the folder is wrong, something that is needed is missing,
            too few episodes were made, the cost limit was reached, or the user stopped it; see
            :mod:`fabula.errors`.
    """
    from .building import build

    return build(videos, out, options if options is not None else EntityOptions(), reporter)


def estimate_entities(
    videos: Sequence[Path | str] | Path | str, out: Path | str, options: EntityOptions | None = None
) -> "CallPlan":
    """Tell what :func:`build_entities` would ask of the model now, and about what that costs. Asks nothing.

    Shots and people have to be found for it; what the run has found of them is used.

    Raises:
        FabulaError: as :func:`build_entities`.
    """
    from .building import estimate

    return estimate(videos, out, options if options is not None else EntityOptions())
