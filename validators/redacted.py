"""The rule about texts out of which a secret was taken; the same for data sets of every kind."""

from collections.abc import Iterator, Mapping

from ..models.secrets import MARK
from ..schemas.canonical import Json
from ..schemas.issue import Issue
from ..schemas.paths import Steps
from ..schemas.quoted_paths import quoted_path
from .codes import issue, show
from .view import Story

CODE = "secret-removed"


def find_redacted(document: Json, where: str, start: Steps = ()) -> Iterator[Issue]:
    """Yield every text, and every name of a field, in which the mark of a removed secret stands.

    Args:
        document: where to look.
        where: the file or record that it is in.
        start: its path there.
    """
    if MARK not in repr(document):  # nearly always so, and found out much faster
        return
    for steps, text in _strings(document, start):
        if MARK in text:
            yield issue(CODE, where, quoted_path(steps), f"found {show(text)}")


def check_redacted(story: Story) -> Iterator[Issue]:
    """Check that no secret was taken out of a text of the record or of its variants."""
    yield from find_redacted(story.record, story.where)
    for variant in story.variants:
        yield from find_redacted(variant.data, variant.where)


def _strings(value: Json, steps: Steps) -> Iterator[tuple[Steps, str]]:
    if isinstance(value, str):
        yield steps, value
    elif isinstance(value, Mapping):
        for key, entry in value.items():
            yield (*steps, key), key
            yield from _strings(entry, (*steps, key))
    elif isinstance(value, list | tuple):
        for position, entry in enumerate(value):
            yield from _strings(entry, (*steps, position))
