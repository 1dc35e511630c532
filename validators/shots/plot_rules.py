"""Whether the shots of a script tell the whole of the story that it was made from, in order."""

from collections.abc import Iterator

from ...schemas.issue import Issue
from ...schemas.shots import ShotScript
from ..codes import show
from .codes import issue


def check_plot(script: ShotScript, text: str, language: str, where: str) -> Iterator[Issue]:
    """Yield where plot correspondences and story part: they must hold its text in order, but for white space.

    Args:
        script: the script.
        text: the story's text.
        language: key of its language in the format, ``en`` or ``ch``.
        where: the script's file.
    """
    left = "".join(text.split())
    for place, shot in enumerate(script.shots):
        told = "".join((shot.plot.of(language) if shot.plot is not None else "").split())
        if not left.startswith(told):
            path = f"$.Shots[{place}]['Plot Correspondence'].{language}"
            message = f"expected the story to go on with {show(left[:40])}, found {show(told[:40])}"
            yield issue("plot-coverage", where, path, message)
            return
        left = left[len(told) :]
    if left:
        yield issue(
            "plot-coverage", where, "$.Shots", f"the end of the story is in no shot: {show(left[:40])}"
        )
