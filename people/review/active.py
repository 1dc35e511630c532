"""Active time of a vote: the page was visible, its media were loaded, and the pauses were short.

Raw events of the page are kept with every vote, so that another limit can be applied later.
"""

from collections.abc import Sequence

VISIBLE, HIDDEN, LOADED = "visible", "hidden", "loaded"


def active_seconds(timeline: Sequence[tuple[float, str]], idle: float) -> float | None:
    """Return the active time of a page in seconds; None where it was never loaded and seen.

    Time counts from when everything was loaded, while the page was visible. A pause between two events counts
    as at most ``idle`` seconds: what comes after it is taken for absence.

    Args:
        timeline: milliseconds since the page was opened, and what happened; sorted here.
        idle: longest pause that counts in full, in seconds.

    Example: loaded at 1 s, active at 3 s and at 63 s, sent at 64 s, idle 30 s: 2 + 30 + 1 = 33 s.
    """
    seen, loaded, before, total, began = True, False, 0.0, 0.0, False
    for moment, what in sorted(timeline, key=lambda event: event[0]):
        if seen and loaded:
            total += min((moment - before) / 1000, idle)
        before = moment
        if what == LOADED:
            loaded = began = True
        elif what in (VISIBLE, HIDDEN):
            seen = what == VISIBLE
    return total if began else None
