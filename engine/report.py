"""``report.json``: how a run ended, with every item that was not made and the reason why."""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from ..errors import RunError
from ..schemas.canonical import plain_fields, pretty_bytes, write_atomic
from ..schemas.paths import format_path
from ..schemas.plain_files import read_plain
from ..tables.grid import Grid
from ..tables.tabular import Tabular
from .calls import ModelUse
from .journal_file import unwritable
from .stage import StageSpec

NAME = "report.json"
USED = ("calls", "attempts", "input_tokens", "output_tokens", "cost")
"""What a table of models tells of each."""

_MEANINGS = {
    "failed": "The stage could not do its work on the item.",
    "pending": "The stage has not been run on the item.",
}


def meaning(spec: StageSpec, status: str, code: str | None) -> str:
    """Return what an item's status and code mean, without a word about the item itself."""
    return spec.reject_codes[code or ""] if status == "rejected" else _MEANINGS[status]


@dataclass(frozen=True, slots=True)
class StageReport:
    """How many items a stage made, rejected and failed; how many of them it ran and how many it reused."""

    name: str
    version: int
    made: int
    rejected: int
    failed: int
    reused: int
    ran: int


@dataclass(frozen=True, slots=True, order=True)
class ItemReport:
    """One item that was not made."""

    id: str  # the item's id
    stage: str  # where it went no further
    status: str  # ``rejected``, ``failed`` or ``pending``
    code: str | None  # code of a rejection or failure
    reason: str | None  # why, in words that may quote the item
    meaning: str  # what status and code mean, in words that are the same for every item


@dataclass(frozen=True, slots=True)
class RunReport(Tabular):
    """How a run ended."""

    totals: Mapping[str, int]  # items ``made``, ``rejected``, ``failed`` and ``pending``
    stages: tuple[StageReport, ...]  # counts per stage, in order
    items: tuple[ItemReport, ...]  # every item that was not made, sorted by id
    # hash of ``run.json`` as it was when the outputs were settled; None when they were not, because stages
    # were left out
    manifest_sha256: str | None = None
    # name -> hash of the files that ``finish`` wrote, now or at an earlier time
    outputs: Mapping[str, str] = field(default_factory=dict)
    models: tuple[ModelUse, ...] = ()  # what each stage used of each model, over all the time of the run

    @property
    def share(self) -> float:
        """Share of the items made among those made or failed.

        Without any of these it is 0 when every item that was tried was rejected, and 1 when none was tried.
        """
        return self.share_with(0)

    def share_with(self, underway: int) -> float:
        """Return the share when so many items, stopped by nothing but the end of the run, count as made."""
        made = self.totals["made"] + underway
        tried = made + self.totals["failed"]
        if tried:
            return made / tried
        return 0.0 if self.totals["rejected"] else 1.0

    def grids(self) -> Iterator[Grid]:
        """Yield the stages, the items that were not made, and what models were asked and cost."""
        counts = ("made", "rejected", "failed", "reused", "ran")
        rows = ((stage.name, *(getattr(stage, name) for name in counts)) for stage in self.stages)
        yield Grid("stages", "Stages", ("stage", *counts), tuple(rows), f"Items: {self._counts()}.")
        if self.items:
            columns = ("item", "stage", "status", "code", "reason")
            listed = ((item.id, item.stage, item.status, item.code, item.reason) for item in self.items)
            yield Grid("items", "Items that were not made", columns, tuple(listed), words=(1, 2, 3, 4))
        if self.models:
            rows = ((use.model, use.stage, *(getattr(use, name) for name in USED)) for use in self.models)
            yield Grid("models", "Models", ("model", "stage", *USED), tuple(rows), words=(1,))

    def _counts(self) -> str:
        return ", ".join(f"{self.totals[name]} {name}" for name in ("made", "rejected", "failed", "pending"))

    def as_json(self) -> dict[str, Any]:
        """Return the document that ``report.json`` holds.

        Tokens of caches stand there only where there are some: reports without them stay as they were.
        """
        document = plain_fields(self)
        for use in document["models"]:
            for name in ("cached_tokens", "written_tokens"):
                if not use[name]:
                    del use[name]
        return document

    def lines(self) -> list[str]:
        """Return the report as lines for people."""
        ran = sum(stage.ran for stage in self.stages)
        reused = sum(stage.reused for stage in self.stages)
        lines = [f"{self._counts()}  ({ran} results computed, {reused} reused)"]
        groups = Counter((item.status, item.stage, item.code or "") for item in self.items)
        for (status, stage, code), count in sorted(groups.items()):
            first = next(
                item
                for item in self.items
                if (item.status, item.stage, item.code or "") == (status, stage, code)
            )
            name = f"{status} in {stage}" + (f" ({code})" if code else "")
            lines.append(f"  {count} {name}, such as {first.id}: {first.reason or 'no reason given'}")
        lines.extend(f"  {use.line()}" for use in self.models)
        return lines


def write_report(folder: Path, report: RunReport) -> None:
    """Write ``report.json``, whole or not at all."""
    path = folder / NAME
    try:
        write_atomic(path, [pretty_bytes(report.as_json())])
    except OSError as error:
        raise unwritable(path, error) from error


def read_report(folder: Path) -> RunReport:
    """Read a run's report."""
    path = Path(folder) / NAME
    try:
        return TypeAdapter(RunReport).validate_json(read_plain(path, follow=True))
    except (OSError, ValidationError) as error:
        if isinstance(error, OSError):
            found = error.strerror or str(error)
        else:
            first = error.errors(include_url=False)[0]
            found = f"{first['msg']} at {format_path(first['loc'])}"
        raise RunError(
            str(path), what=f"the report of the run cannot be read: {found}",
            fix="run the build again: it continues where it stopped",
        ) from error  # fmt: skip
