"""What came of the quotas of a choice: which values have fewer stories than they were to have.

Stories that are rejected after the choice are not replaced: what was chosen depends on the pool alone, not on
what models make of it. So the run says what is lacking.
"""

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

from ....engine.execute import RunRequest, execute
from ....engine.manifest import read_manifest
from ....engine.progress import Event, Reporter
from ....engine.status import RunReport
from ....schemas.canonical import Json, pretty_bytes, write_atomic
from ....schemas.plain_files import read_json
from .choose_stories import Settings

QUOTAS = "quotas.json"
"""File of a run whose stories were chosen: how many were wanted and made, and which quotas fell short."""
_SHOWN = 5


@dataclass(slots=True)
class QuotaTally:
    """Counts of the records that were made, against the quotas of their choice."""

    settings: Settings  # of the choice
    stories: int = 0  # how many were made
    # what is balanced -> value -> how many were made
    counts: dict[str, Counter[str]] = field(default_factory=dict)

    @classmethod
    def of_run(cls, folder: Path) -> Self:
        """Return the tally of a run, with nothing counted."""
        return cls(Settings.model_validate(read_manifest(folder).settings["choose_stories"]))

    def add(self, record: Mapping[str, Json]) -> None:
        """Count one record."""
        self.stories += 1
        collection = record["provenance"]["source_dataset"]
        for name, value in (
            *((name, record[name]) for name in ("narrative_type", "moral_label", "language")),
            ("collection", collection),
        ):
            self.counts.setdefault(name, Counter())[str(value)] += 1

    def write(self, folder: Path) -> None:
        """Write :data:`QUOTAS` into the run; where all stories are taken, there is no such file."""
        if self.settings.stories is None:
            (folder / QUOTAS).unlink(missing_ok=True)
        else:
            write_atomic(folder / QUOTAS, [pretty_bytes(self.document())])

    def document(self) -> Json:
        """Return the content of :data:`QUOTAS`: a quota falls short of what it comes to, rounded down."""
        short = [
            {"of": name, "value": value, "wanted": round(cap, 4), "made": made}
            for name, caps in sorted(self.settings.caps().items())
            for value, cap in sorted(caps.items())
            if (made := self.counts.get(name, Counter())[value]) < math.floor(cap)
        ]
        return {"stories": {"wanted": self.settings.stories, "made": self.stories}, "short": short}


def shortage(document: Json) -> str | None:
    """Return in words what :data:`QUOTAS` says is lacking; None where nothing is."""
    stories, short = document["stories"], document["short"]
    if stories["made"] >= stories["wanted"] and not short:
        return None
    rows = [f"{row['value']} ({row['made']} of {row['wanted']:g})" for row in short[:_SHOWN]]
    more = f" and {len(short) - _SHOWN} more" if len(short) > _SHOWN else ""
    quotas = f"; quotas that fell short: {', '.join(rows)}{more}" if rows else ""
    return (
        f"{stories['made']} of {stories['wanted']} stories were made{quotas}. {QUOTAS} has it all; a story "
        "that is rejected after the choice is not replaced, so choose more with --balance"
    )


def execute_told(request: RunRequest, reporter: Reporter | None = None) -> RunReport:
    """Execute a run, and tell the reporter which quotas fell short."""
    report = execute(request, reporter)
    path = request.folder / QUOTAS
    told = shortage(read_json(path)) if QUOTAS in report.outputs and path.is_file() else None
    if told is not None and reporter is not None:
        reporter.emit(Event("warning", data={"message": told}))
    return report
