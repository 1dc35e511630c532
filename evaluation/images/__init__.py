"""Generated shot images: finding and checking them, the stages that look at them, and their scores."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ...engine.progress import Reporter
    from ...engine.report import RunReport
    from .requests import ImageOptions


def evaluate_images(
    release: Path | str,
    outputs: Sequence[Path | str],
    out: Path | str,
    options: "ImageOptions",
    *,
    reporter: "Reporter | None" = None,
) -> "RunReport":
    """Look at generated shots with the models of the chosen metrics, and have judges rate them.

    A run is continued; pictures that were encoded before are not encoded again.

    Args:
        release: the set of shot scripts.
        outputs: a folder of generated shots for each method.
        out: the run folder; ``images.jsonl``, ``judgements.jsonl`` and ``evaluation.json`` are written there.
        options: which metrics, who judges.
        reporter: takes the progress, and before anything is paid for what it is about to cost.

    Raises:
        FabulaError: the set, the outputs, a setting, a model or the folder is wrong, the cost limit was
            reached, or the user stopped it; see :mod:`fabula.errors`.
    """
    from ..running import run_evaluation
    from .requests import images_request, tell_images
    from .settings import check_weights

    request = images_request(release, outputs, out, options)
    check_weights(request.config)
    if reporter is not None:
        tell_images(request, reporter)
    return run_evaluation(request, reporter, replace=options.replace)
