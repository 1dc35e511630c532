"""Completion rates per method and video, from scored evaluations: what a suite is graded by."""

from collections.abc import Sequence

from ...errors import ConfigError
from .scores import EventScores


def rates_of(scores: Sequence[EventScores], judge: str | None = None) -> dict[str, dict[str, float | None]]:
    """Return method -> file name -> completion rate; null where there is no answer.

    Args:
        scores: scored evaluations.
        judge: whose; None where there is one only.

    Raises:
        ConfigError: there are several judges and none is named, it has no scores, or a method has two.
    """
    panels = [panel for one in scores for panel in one.panels]
    judges = sorted({panel.panel.judge for panel in panels})
    if judge is None and len(judges) > 1:
        raise ConfigError(
            "--judge",
            what="several judges voted, and none of them is named",
            fix=f"name one of: {', '.join(judges)}",
        )
    chosen = [panel for panel in panels if judge is None or panel.panel.judge == judge]
    if not chosen:
        raise ConfigError(
            "--judge", what=f"{judge} did not vote here", fix=f"name one of: {', '.join(judges)}"
        )
    rates: dict[str, dict[str, float | None]] = {}
    for panel in chosen:
        if panel.panel.method in rates:
            raise ConfigError(
                "--results", what=f"the method {panel.panel.method} is in two evaluations",
                fix="leave one of them out",
            )  # fmt: skip
        rates[panel.panel.method] = {video.unit: video.rate for video in panel.videos}
    return rates
