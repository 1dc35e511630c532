"""What to tell the user after a build: whether the records could be packed, and what they lack."""

import re
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ..errors import BelowThreshold
from .common import say

SHOWN = 6


def incomplete_lines(run: Path) -> Iterator[str]:
    """Yield lines about the records of a run that lack a required string; none if all are complete.

    Reads the check ``incomplete`` that the build left with each record.
    """
    from ..schemas.plain_files import open_plain, parse_json
    from ..validators.dataset import RECORDS

    path = run / RECORDS
    if not path.exists():
        return
    stories, lacking = 0, 0
    fields: Counter[str] = Counter()
    with open_plain(path, follow=True) as lines:
        for line in lines:
            checks = parse_json(line)["payload"]["checks"]
            notes = [check["note"] for check in checks if check["code"] == "incomplete"]
            stories += 1
            lacking += bool(notes)
            fields.update({re.sub(r"\[\d+\]", "[*]", name) for note in notes for name in _named(note)})
    if lacking:
        yield (
            f"{lacking} of {stories} records are incomplete and stay out of a release until they are filled:"
        )
        yield from (f"  {name}: missing in {count} stories" for name, count in fields.most_common(SHOWN))
        yield "  fix: give moral_label and narrative_type with the stories, and the rest with --records"


def _named(note: str) -> list[str]:
    return re.findall(r"\$[^\s,]*", note)


@contextmanager
def summary_first(run: Path, *, as_json: bool) -> Iterator[None]:
    """Print the run's report before the error of a run that came out below its threshold."""
    try:
        yield
    except BelowThreshold:
        from ..engine.report import read_report

        for line in () if as_json else read_report(run).lines():
            say(line)
        raise
