"""Every code that the rules about prompt suites report."""

from ...schemas.issue import Issue
from ..codes import SECRET_REMOVED, Code

CODES: dict[str, Code] = {
    "form": Code(
        "The file has the official form: file name of the video -> prompt, event_list, class.",
        "correct the entry; docs/events.md shows the form",
    ),
    "history": Code(
        "prompts.jsonl and all_prompts.json of a folder hold the same prompts.",
        "build the run again, or fetch the release again",
    ),
    "secret-removed": SECRET_REMOVED,
    "no-name": Code(
        "A prompt has a letter or a digit, so that a file name can be made of it.",
        "write the prompt, or remove the entry",
    ),
    "event-count": Code("A prompt has two to four events.", "split, join or leave out events"),
    "repeated-event": Code("The events of a prompt differ.", "remove one of the two"),
    "event-label": Code(
        "A label such as 3_events says how many events there are.", "correct the label"
    ),
    "too-long": Code("A prompt has at most 50 words.", "shorten the prompt", "warning"),
    "too-many-participants": Code(
        "Humans, animals and objects do not all take part in one prompt: at most two kinds do.",
        "leave one kind out, or take it off class",
        "warning",
    ),
    "facial-expression": Code(
        "No event is a facial expression: judges cannot be relied on to see it.",
        "describe something that is seen from afar",
        "warning",
    ),
    "near-duplicate": Code("No two prompts are nearly the same.", "remove one of the two", "warning"),
}  # fmt: skip
"""Code -> its meaning, cure and level."""


def issue(code: str, where: str, path: str, message: str) -> Issue:
    """Return an issue with the cure and level of its code."""
    known = CODES[code]
    return Issue(where, path, code, message, known.cure, known.level)
