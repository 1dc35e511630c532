"""The public evaluator's results, one JSON file per episode, as an archive that is scored like our own.

What the files hold is each metric's value in an episode with three counters. That gives ``b5`` and ``code``
exactly. The counters do not say what was eligible, and those of fidelity count shots, not appearances; so the
corrected means (``eq23``, ``table15``) of all but fidelity need the schedule of the episodes, and those of
fidelity cannot be had. What was not scored is told apart by nobody: it counts as unknown.
"""

import platform
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from .... import version
from ....errors import InputError, UserError, mismatch
from ....releases.entities.tree import read_entity_set
from ....schemas.canonical import Json, canonical_bytes, jsonl_lines, new_folder, sha256_file, write_atomic
from ....schemas.judgement import EvaluationManifest
from ....schemas.paths import format_path
from ....schemas.plain_files import json_lines, read_json, reason_of
from ....schemas.text import counted
from ...archive.archive import write_archive
from ..entities import PROTOCOL
from ..metrics.catalogue import METRICS, metric_named
from ..scores.manifests import VARYING, fingerprints
from .results import Counted, PublicResult
from .schedules import Schedule, schedule_of

RESULTS = "results.jsonl"
"""One line per episode of an import: the public file without paths, and what the schedule has."""
_MANIFEST = "run_manifest.json"
_OTHERS = ("report_", "run_manifest", "_")
_ENVIRONMENT = ("python_version", "libraries", "vlm_call_stats", "llm_call_stats")
"""Parts of the public manifest that say with what and how it went, not what was asked."""
_EARLIER, _NOW = "vlm_", "llm_"
"""How earlier versions of the public evaluator began the names of judged metrics, and how they begin now."""
_problem = partial(mismatch, fix="give the folder that the public evaluator wrote (its --out_dir)")


@dataclass(frozen=True)
class Result:
    """One episode of an import."""

    method: str  # whose videos
    entry: PublicResult = field(repr=False)  # the public file, without paths
    # what the episode's script makes eligible; None where no episodes were given
    schedule: Schedule | None = None

    @property
    def tuples(self) -> dict[str, Counted]:
        """Metric -> value and counters; keys that are no metric, such as ``_meta``, are not among them."""
        both = {**self.entry.vbench_means, **self.entry.metrics}
        named = {_renamed(name): value for name, value in both.items()}
        return {metric.name: named[metric.name] for metric in METRICS if metric.name in named}

    @property
    def pillars(self) -> frozenset[int]:
        """The pillars that were evaluated."""
        return frozenset(metric_named(name).pillar for name in self.tuples)

    def problem(self) -> str | None:
        """Return what of the result cannot belong to its schedule; None where all can."""
        known = set(() if self.schedule is None else self.schedule.shots)
        named = {shot for each in self.entry.per_entity_scores.values() for shot in each.shots()}
        strange = sorted(named - known) if self.schedule is not None else []
        return f"shot {strange[0]}" if strange else None


@dataclass(frozen=True)
class Imported:
    """What came of an import."""

    out: Path  # the new folder
    method: str  # whose results they are
    episodes: int  # how many there are
    metrics: int  # how many metrics they have, of 51
    without: tuple[str, ...]  # those that are missing, of the pillars that were evaluated
    scheduled: bool  # whether the schedules of all of them are known
    notes: tuple[str, ...]  # what can and cannot be rebuilt

    def as_json(self) -> dict[str, Any]:
        """Return it as plain JSON."""
        return {
            **asdict(self),
            "out": str(self.out),
            "without": list(self.without),
            "notes": list(self.notes),
        }

    def lines(self) -> Iterator[str]:
        """Return it as lines for people."""
        episodes = counted(self.episodes, "episode")
        yield f"{self.out}: {self.method}, {episodes}, {self.metrics} of {len(METRICS)} metrics"
        if self.without:
            yield f"without a value in any episode: {', '.join(self.without)}"
        yield from (f"note: {note}" for note in self.notes)
        yield f"next: fabula score {self.out} --coverage {'eq23' if self.scheduled else 'code'}"


def import_results(
    source: Path, out: Path, method: str | None = None, episodes: Path | None = None
) -> Imported:
    """Make an evaluation folder of the public evaluator's results.

    ``method``: whose videos; None for the name in its manifest, else that of the folder. ``episodes``: the
    episodes that were judged, for the corrected means; None without them.
    """
    manifest = _manifest(source)
    name = method or str(manifest.get("method_name") or source.resolve().name)
    entries = _entries(source)
    schedules = {} if episodes is None else _schedules(episodes, entries)
    results = [Result(name, entry, schedules.get(entry.episode_id)) for _, entry in entries]
    strange = [(path, result.problem()) for (path, _), result in zip(entries, results, strict=True)]
    if problems := [_problem(str(path), "shots of the episode", shot) for path, shot in strange if shot]:
        raise InputError(problems)
    _write(out, results, _archive_manifest(name, results, manifest, [path for path, _ in entries]))
    pillars = frozenset().union(*(result.pillars for result in results))
    there = {name for result in results for name in result.tuples}
    missing = [each.name for each in METRICS if each.pillar in pillars and each.name not in there]
    scheduled = episodes is not None
    return Imported(out, name, len(results), len(there), tuple(missing), scheduled, notes_of(scheduled))


def notes_of(scheduled: bool) -> tuple[str, ...]:
    """Return what of the public results can and cannot be rebuilt."""
    exact = "the files give b5 and code exactly: values of episodes, and the public counters"
    units = (
        "corrected means of fidelity cannot be rebuilt: its counters are of shots, not of appearances, and "
        "never count what failed or was absent"
    )
    if not scheduled:
        return (
            exact,
            "corrected means (eq23, table15) need the schedule: import again with --release",
            units,
        )
    return (
        exact,
        "corrected means of all but fidelity take what is eligible from the schedule; why the rest was not "
        "scored is not in the files: it counts as unknown, and lowers coverage",
        units,
        "table15 takes similarity to the centroid with a coverage of 1: missing shots cannot be told there",
    )


def _manifest(source: Path) -> Mapping[str, Json]:
    path = source / _MANIFEST
    if not path.exists():
        return {}
    try:
        value = read_json(path, follow=True)
        canonical_bytes(value)
    except (OSError, ValueError) as error:
        raise InputError([_problem(str(path), "a manifest in JSON", reason_of(error))]) from error
    return value if isinstance(value, dict) else {}


def _entries(source: Path) -> list[tuple[Path, PublicResult]]:
    problems: list[UserError] = []
    entries: list[tuple[Path, PublicResult]] = []
    paths = sorted(source.glob("*.json")) if source.is_dir() else []
    for path in paths:
        if path.name.startswith(_OTHERS):
            continue
        try:
            entry = PublicResult.model_validate(read_json(path, follow=True))
            canonical_bytes(entry.as_json())  # texts may hold what no file can
            entries.append((path, entry))
        except ValidationError as error:
            problems.extend(_invalid(str(path), error))
        except (OSError, ValueError) as error:
            problems.append(_problem(str(path), "the result of an episode", reason_of(error)))
    seen = Counter(entry.episode_id for _, entry in entries)
    problems.extend(
        _problem(str(path), "each episode once", f"{entry.episode_id} again")
        for path, entry in entries
        if seen[entry.episode_id] > 1
    )
    if not entries and not problems:
        problems.append(_problem(str(source), "one JSON file per episode", "none"))
    if problems:
        raise InputError(problems)
    return entries


def _invalid(where: str, error: ValidationError) -> Iterator[UserError]:
    for detail in error.errors(include_url=False, include_input=False):
        part = f"{where} {format_path(detail['loc'])}"
        yield _problem(part, "the result of an episode", str(detail["msg"]))


def _schedules(episodes: Path, entries: Sequence[tuple[Path, PublicResult]]) -> dict[str, Schedule]:
    known = read_entity_set(episodes, rules=False)[0].by_id
    fix = "give the episodes that were judged, or leave --release out"
    problems = [
        _problem(str(path), "an episode of the release", entry.episode_id, fix=fix)
        for path, entry in entries
        if entry.episode_id not in known
    ]
    if problems:
        raise InputError(problems)
    names = [entry.episode_id for _, entry in entries]
    return {name: schedule_of(known[name].script, name) for name in names}


def _archive_manifest(
    method: str, results: Sequence[Result], manifest: Mapping[str, Json], files: Sequence[Path]
) -> EvaluationManifest:
    circumstances = {name: manifest[name] for name in (*VARYING, *_ENVIRONMENT) if name in manifest}
    fixed = {name: value for name, value in manifest.items() if name not in circumstances}
    if "model_checkpoints" in fixed:
        fixed["model_checkpoints"] = fingerprints(fixed["model_checkpoints"])
    return EvaluationManifest(
        kind=PROTOCOL,
        protocol={
            "imported": "entitybench",
            "pillars": sorted(frozenset().union(*(result.pillars for result in results))),
            "manifest": fixed,
        },
        subject={"methods": {method: {"episodes": len(results)}}},
        environment={
            "fabula": version.__version__,
            "python": platform.python_version(),
            "imported_from": [{"file": path.name, "sha256": sha256_file(path)} for path in files],
            "scheduled": all(result.schedule is not None for result in results),
            **circumstances,
        },
    )


def _write(out: Path, results: Sequence[Result], manifest: EvaluationManifest) -> None:
    rows = [
        {
            "method": result.method,
            "result": result.entry.as_json(),
            "schedule": None if result.schedule is None else asdict(result.schedule),
        }
        for result in results
    ]
    with new_folder(out):
        write_archive(out, manifest, ())
        write_atomic(out / RESULTS, jsonl_lines(rows))


def read_results(path: Path) -> tuple[Result, ...]:
    """Return the results of an imported folder, sorted by method and episode."""
    try:
        results = [_read(row) for row in json_lines(path)]
    except ValidationError as error:
        raise InputError(list(_invalid(str(path), error))) from error
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise InputError([_problem(str(path), "the results of an import", reason_of(error))]) from error
    return tuple(sorted(results, key=lambda result: (result.method, result.entry.episode_id)))


def _read(row: Json) -> Result:
    """Return a line of an import."""
    known = row["schedule"]
    schedule = None
    if known is not None:
        counts = [
            {each.name: int(known[name][each.name]) for each in METRICS} for name in ("eligible", "single")
        ]
        schedule = Schedule(tuple(map(str, known["shots"])), *counts)
    result = Result(str(row["method"]), PublicResult.model_validate(row["result"]), schedule)
    if problem := result.problem():
        raise ValueError(f"{problem} is not of the episode")
    return result


def _renamed(name: str) -> str:
    return _NOW + name.removeprefix(_EARLIER) if name.startswith(_EARLIER) else name
