"""What a folder leads to: how its run goes, its corrections, and the pages that other commands make of it.

Report, audit and diff are made when somebody asks for them, from what the folder holds then; nothing is
written. An audit with gold records or people's forms that lies beside the folder is shown as it is.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path
from time import monotonic
from typing import Any

from ..engine.calls import ModelUse
from ..engine.edits import NAME as EDITS
from ..engine.edits import read_edits
from ..engine.journal_file import NAME as JOURNAL
from ..engine.manifest import NAME as MANIFEST
from ..engine.status import StageStatus, run_status
from ..engine.walk import Stop
from ..schemas.plain_files import read_json, read_plain
from ..schemas.values import Edit

OFTEN = 5.0
"""Seconds after which the page of a run at work looks again, at the least."""
AUDITED = ("records", "annotations")
"""Files of rows that an audit of drafts reads."""


@dataclass(frozen=True, slots=True)
class StageLine:
    """Where a stage stands."""

    name: str
    made: int
    stopped: int  # items rejected or failed
    to_come: int  # items that have no result of it yet, or none that counts
    asked: int  # requests sent to models whose reply is not there
    spent: float | None  # USD; None where it asked no model, or the price is not known
    forecast: float | None  # USD at its end, if the items to come cost what those before did


@dataclass(frozen=True, slots=True)
class Progress:
    """Where a run stands."""

    holder: Mapping[str, Any] | None  # the process that works on it; None if there is none
    totals: Mapping[str, int]
    stages: tuple[StageLine, ...]
    stopped: tuple[tuple[str, Stop], ...]  # the first items that went no further, and why
    notes: tuple[str, ...]
    again: int  # seconds after which to look again; 0 where nothing is at work

    @property
    def spent(self) -> float:
        """USD so far, as far as prices are known."""
        return sum(stage.spent or 0.0 for stage in self.stages)

    @property
    def forecast(self) -> float:
        """USD at the end of the stages that have begun."""
        return sum(stage.forecast or stage.spent or 0.0 for stage in self.stages)

    @property
    def asked(self) -> int:
        """Requests whose reply is not there."""
        return sum(stage.asked for stage in self.stages)


def progress_of(folder: Path) -> Progress:
    """Return where a run stands now; works while another process works on it."""
    from ..kinds.verbs import pipeline_of

    begun = monotonic()
    status = run_status(folder, pipeline_of(folder))
    again = 0 if status.holder is None else round(max(OFTEN, 5 * (monotonic() - begun)))
    lines = tuple(map(partial(_stage_line, status.models), status.stages))
    return Progress(status.holder, status.totals, lines, status.stopped, status.notes, again)


def _stage_line(models: Sequence[ModelUse], stage: StageStatus) -> StageLine:
    uses = [use for use in models if use.stage == stage.name]
    stopped, to_come = stage.rejected + stage.failed, stage.pending + stage.stale
    done, asked = stage.made + stopped, sum(use.uncertain for use in uses)
    spent = forecast = None
    if uses and not any(use.unpriced for use in uses):
        spent = sum(use.cost for use in uses)
        forecast = spent / done * (done + to_come) if done else None
    return StageLine(stage.name, stage.made, stopped, to_come, asked, spent, forecast)


def corrections_in(folder: Path) -> tuple[Edit, ...]:
    """Return all corrections of a run, the last first."""
    path = folder / EDITS
    return read_edits(path)[::-1] if path.is_file() else ()


def leads_of(folder: Path, files: Mapping[str, object]) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield what a folder leads to: a name, and the steps of its address. ``files``: its files of rows."""
    if (folder / MANIFEST).is_file() and (folder / JOURNAL).is_file():
        yield "progress", ("progress",)
    if (folder / EDITS).is_file():
        yield "corrections", ("corrections",)
    if "judgements" in files or (folder / "evaluation.json").is_file():
        yield "report", ("report",)
    elif any(name in files for name in AUDITED):
        yield "audit", ("audit",)
    yield from ((f"diff to {old.name}", ("diff", old.name)) for old in releases_before(folder))


@lru_cache(maxsize=2)
def report_page(folder: Path, _stamp: tuple[int, int, int]) -> str:
    """Return the page of ``fabula report``; ``_stamp`` is that of the judgements, so that it is made once."""
    from ..evaluation.report.page import render_page
    from ..kinds.evaluations import make_report

    return render_page(make_report(folder))


def audit_page(folder: Path) -> str:
    """Return the last audit of a folder that lies in it or beside it; else what one says without gold."""
    from ..people.audits.auditing import PAGE, RESULT, audit
    from ..people.audits.page import page_of

    results = [*folder.glob(f"*/{RESULT}"), *folder.parent.glob(f"*/{RESULT}"), folder / RESULT]
    pages = [result.with_name(PAGE) for result in results if _is_of(result, folder)]
    there = sorted((page for page in pages if page.is_file()), key=lambda page: page.stat().st_mtime)
    return read_plain(there[-1]).decode("utf-8") if there else page_of(audit(folder))


def _is_of(result: Path, folder: Path) -> bool:
    """Return whether an audit is of a folder, which it names as it was typed, with the number of records."""
    try:
        draft = Path(str(read_json(result)["facts"]["draft"]).rpartition(" (")[0])
    except (OSError, ValueError, LookupError, TypeError):
        return False
    return draft.name == folder.resolve().name and (not draft.exists() or draft.samefile(folder))


def releases_before(folder: Path) -> list[Path]:
    """Return the releases beside a release that are earlier versions of it, the last first."""
    from packaging.version import InvalidVersion, Version

    versions = {}
    for path in (folder / "release.json", *folder.resolve().parent.glob("*/release.json")):
        try:
            document = read_json(path)
            versions[path.parent] = document["about"]["name"], Version(document["version"])
        except (OSError, ValueError, LookupError, TypeError, InvalidVersion):
            continue
    if folder not in versions:
        return []
    name, version = versions[folder]
    older = [(other, path) for path, (known, other) in versions.items() if known == name and other < version]
    return [path for _, path in sorted(older, reverse=True)]


def diff_page(old: Path, new: Path) -> str:
    """Return the page of ``fabula release diff``."""
    from ..kinds.verbs import diff
    from ..releases.diff.render import render_page

    return render_page(diff(old, new))
