"""The public evaluator's results, one JSON file per episode, as an archive that is scored like our own.

What the files hold is each metric's value in an episode with three counters. That gives ``b5`` and ``code``
exactly. The counters do not say what was eligible, and those of fidelity count shots, not appearances; so the
corrected means (``eq23``, ``table15``) of all but fidelity need the schedule of the episodes, and those of
fidelity cannot be had. What was not scored is told apart by nobody: it counts as unknown.

Which evaluations may be compared, by our rule and by that of the paper (B.5): ``ours``: whatever identifies
what was asked and looked at must be the same; versions of libraries are told, not compared. ``b5``:
everything must be the same but method, time, platform and the number of API keys; checkpoints count by their
fingerprint, wherever they lie.
"""

import platform
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path, PurePath
from typing import Annotated, Any, Literal

from pydantic import Field, ValidationError, model_validator

from ... import version
from ...engine.manifest import joined
from ...errors import InputError, UserError, mismatch
from ...releases.entities.tree import read_entity_set
from ...schemas.canonical import (
    Json,
    Plain,
    canonical_bytes,
    canonical_text,
    jsonl_lines,
    new_folder,
    sha256_file,
    write_atomic,
)
from ...schemas.entities import LISTS, EntityEpisode
from ...schemas.judgement import EvaluationManifest
from ...schemas.paths import format_path
from ...schemas.plain_files import json_lines, read_json, reason_of, type_reason
from ...schemas.text import counted, quoted
from ...schemas.values import Wire
from ..archive.archive import write_archive
from .archived import PROTOCOL, Appearance, EpisodeFacts, ShotFacts, entity_key, names_any
from .metrics.aggregate import tally
from .metrics.catalogue import METRICS, metric_named

ManifestRule = Literal["ours", "b5"]
VARYING = ("method_name", "timestamp_utc", "platform", "n_llm_keys", "n_vlm_keys")
"""What may differ under B.5, by the names of the public manifest."""
VERSIONS = ("fabula", "source", "libraries", "networks", "python_version")
"""The parts of our environment that B.5 compares; the rest says when, where and how it went."""
_SHOWN = 100


def check_b5(first: EvaluationManifest, second: EvaluationManifest, allowed: Collection[str] = ()) -> None:
    """Check that two evaluations differ in nothing but what B.5 lets differ."""
    both = [{"protocol": each.protocol, **_versions(each.environment)} for each in (first, second)]
    differing = [path for path in _differing("", *both) if path.split(".")[-1] not in VARYING]
    refused = [path for path in differing if not {*path.split(".")[:2]} & {*allowed}]
    if refused:
        raise InputError(
            [
                UserError(
                    f"manifest {path}",
                    what=f"the evaluations differ under B.5: {_at(both[0], path)} and {_at(both[1], path)}",
                    fix=f"evaluate with the same, or accept it with --allow {path.split('.')[0]}",
                )
                for path in refused
            ]
        )


def _versions(environment: Mapping[str, Json]) -> dict[str, Json]:
    """Return with what an evaluation was made; of one that was merged, with what its parts were."""
    parts, whole = [environment], list[Mapping[str, Json]]()
    while parts:
        part = parts.pop()
        merged = part.get("merged")
        whole += [] if merged else [part]
        parts += merged if isinstance(merged, list) else []
    return {name: joined(part.get(name) for part in whole) for name in VERSIONS}


def fingerprints(checkpoints: Json) -> dict[str, Json]:
    """Return the checkpoints of a public manifest without their places.

    A file is known by its size and the hash of its first mebibyte, a folder by its name alone, as the public
    evaluator takes no more of it.
    """
    made: dict[str, Json] = {}
    for name, known in (checkpoints if isinstance(checkpoints, Mapping) else {}).items():
        if not isinstance(known, Mapping):
            made[name] = "MISSING" if str(known).startswith("MISSING") else known
        elif "head_sha256" in known:
            made[name] = {key: value for key, value in known.items() if key != "path"}
        else:
            made[name] = {"type": known.get("type"), "name": PurePath(str(known.get("path", ""))).name}
    return made


def _differing(path: str, first: Any, second: Any) -> Iterator[str]:  # noqa: ANN401 - any JSON
    if isinstance(first, Mapping) and isinstance(second, Mapping):
        for name in sorted({*first, *second}):
            yield from _differing(f"{path}.{name}" if path else name, first.get(name), second.get(name))
    elif first != second:
        yield path


def _at(value: Json, path: str) -> str:
    for name in path.split("."):
        value = value.get(name) if isinstance(value, Mapping) else None
    return canonical_text(value)[:_SHOWN]


Count = Annotated[int, Field(strict=True, ge=0)]
Real = Annotated[float, Field(strict=True, allow_inf_nan=False)]


class Counted(Wire):
    """A metric's value in an episode, with its counters."""

    value: Real | None = Field(default=None, description="The value; null where nothing contributed.")
    n_evaluated: Count = Field(description="What contributed.")
    n_failed: Count = Field(description="What failed.")
    n_skipped: Count = Field(description="What was left out.")


class Near(Wire):
    """How near an appearance is to its entity's centroid."""

    shot: str = Field(description="Key of the shot.")
    sim_to_centroid: Real = Field(description="Cosine.")
    clip_text_sim: Real | None = Field(default=None, description="Similarity of crop and description.")


class JudgedPair(Wire):
    """What the judge said of an appearance beside the anchor."""

    later_shot: str = Field(description="Key of the shot.")
    similarity: Real = Field(description="From 0 to 1.")
    is_same: bool = Field(strict=True, description="Whether it is the same.")


class PublicEntity(Wire):
    mean_sim_to_centroid: Real | None = None
    min_sim_to_centroid: Real | None = None
    max_sim_to_centroid: Real | None = None
    pairwise_median_sim: Real | None = None
    representative_shot: str | None = None
    worst_shot: str | None = None
    per_shot_sim_to_centroid: tuple[Near, ...] = ()
    vlm_anchor_shot: str | None = None
    vlm_pair_count: Count = 0
    vlm_pair_accuracy: Real | None = None
    vlm_per_pair_sims: tuple[JudgedPair, ...] = ()

    def shots(self) -> set[str]:
        """Return every shot that is named."""
        named = {shot for shot in (self.vlm_anchor_shot, self.representative_shot, self.worst_shot) if shot}
        near = {each.shot for each in self.per_shot_sim_to_centroid}
        return named | near | {each.later_shot for each in self.vlm_per_pair_sims}


class PublicGap(Wire):
    """How alike two crops of an entity are, and how far apart their shots."""

    entity_name: str = Field(min_length=1)
    entity_type: Literal["character", "object"]
    gap: Annotated[int, Field(strict=True, ge=1)]
    similarity: Real


class PublicResult(Wire):
    """One file: an episode."""

    episode_id: str = Field(min_length=1, description="The episode.")
    tier: str | None = Field(default=None, description="Its tier.")
    num_shots: Count = Field(default=0, description="How many shots it has.")
    vbench_means: dict[str, Counted] = Field(default_factory=dict, description="Quality, by measure.")
    metrics: dict[str, Counted] = Field(default_factory=dict, description="All else, by metric.")
    per_entity_scores: dict[str, PublicEntity] = Field(default_factory=dict, description="By type and name.")
    gap_decay_data: tuple[PublicGap, ...] = Field(default=(), description="Pairs of crops.")

    @model_validator(mode="before")
    @classmethod
    def _without_paths(cls, given: Any) -> Any:  # noqa: ANN401 - any JSON
        """Leave out where files were on the machine that made it."""
        entities = given.get("per_entity_scores") if isinstance(given, dict) else None
        if not isinstance(entities, dict):
            return given
        kept = {
            name: {key: value for key, value in each.items() if not key.endswith("_path")}
            if isinstance(each, dict)
            else each
            for name, each in entities.items()
        }
        return {**given, "per_entity_scores": kept}


@dataclass(frozen=True)
class Schedule:
    """What the numbers of an episode need of its script."""

    shots: tuple[str, ...]  # keys of its shots, in story order
    eligible: Mapping[str, int]  # metric -> how many instances it has
    single: Mapping[str, int]  # metric -> how many entities of its type are scheduled in one shot only


def unseen(script: EntityEpisode, episode_id: str, method: str = "", tier: str | None = None) -> EpisodeFacts:
    """Return the facts of an episode without any video: all that it schedules, and nothing else."""
    shots = []
    for index, shot in enumerate(script.shots()):
        appearances = tuple(
            Appearance(entity_key(kind, name), kind, name)
            for kind in LISTS.values()
            for name in shot.scheduled.names(kind)
        )
        asks = names_any(shot.action, shot.scheduled.objects)
        shots.append(
            ShotFacts(
                shot.key, index, shot.scene, shot.cut, reached=False, acts=bool(shot.action),
                names_object=asks, appearances=appearances,
            )
        )  # fmt: skip
    return EpisodeFacts(method, episode_id, tier, tuple(shots))


def schedule_of(script: EntityEpisode, episode_id: str) -> Schedule:
    """Return what an episode's script makes eligible."""
    facts = unseen(script, episode_id)
    tallies = {metric.name: tally(metric, facts) for metric in METRICS}
    return Schedule(
        tuple(shot.key for shot in facts.shots),
        {name: each.eligible for name, each in tallies.items()},
        {name: each.single for name, each in tallies.items()},
    )


RESULTS = "results.jsonl"
"""One line per episode of an import: the public file without paths, and what the schedule has."""
_MANIFEST = "run_manifest.json"
_OTHERS = ("report_", "run_manifest", "_")
_ENVIRONMENT = ("python_version", "libraries", "vlm_call_stats", "llm_call_stats")
"""Parts of the public manifest that say with what and how it went, not what was asked."""
_EARLIER, _NOW = "vlm_", "llm_"
"""How earlier versions of the public evaluator began the names of judged metrics, and how they begin now."""
_FIX = "give the folder that the public evaluator wrote (its --out_dir)"
_problem = partial(mismatch, fix=_FIX)


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
class Imported(Plain):
    """What came of an import."""

    out: Path  # the new folder
    method: str  # whose results they are; several with commas between
    episodes: int  # how many there are
    metrics: int  # how many metrics they have, of 51
    without: tuple[str, ...]  # those that are missing, of the pillars that were evaluated
    scheduled: bool  # whether the schedules of all of them are known
    notes: tuple[str, ...]  # what can and cannot be rebuilt

    def lines(self) -> Iterator[str]:
        episodes = counted(self.episodes, "episode")
        yield f"{self.out}: {self.method}, {episodes}, {self.metrics} of {len(METRICS)} metrics"
        if self.without:
            yield f"without a value in any episode: {', '.join(self.without)}"
        yield from (f"note: {note}" for note in self.notes)
        yield f"next: fabula score {quoted(self.out)} --coverage {'eq23' if self.scheduled else 'code'}"


def import_results(
    sources: Sequence[Path], out: Path, method: str | None = None, episodes: Path | None = None
) -> Imported:
    """Make an evaluation folder of the public evaluator's results, one folder for each method.

    ``method``: whose videos; None for the name in its manifest, else that of the folder. ``episodes``: the
    episodes that were judged, for the corrected means; None without them.
    """
    results: list[Result] = []
    manifests: dict[str, Mapping[str, Json]] = {}
    files: list[Path] = []
    for source in sources:
        manifest = _manifest(source)
        name = method or str(manifest.get("method_name") or source.resolve().name)
        if name in manifests:
            problem = _problem(str(source), "results of another method", f"{name} again", fix="leave it out")
            raise InputError([problem])
        manifests[name] = manifest
        entries = _entries(source)
        schedules = {} if episodes is None else _schedules(episodes, entries)
        own = [Result(name, entry, schedules.get(entry.episode_id)) for _, entry in entries]
        strange = [(path, result.problem()) for (path, _), result in zip(entries, own, strict=True)]
        if problems := [_problem(str(path), "shots of the episode", shot) for path, shot in strange if shot]:
            raise InputError(problems)
        results += own
        files += [path for path, _ in entries]
    _write(out, results, _archive_manifest(results, manifests, files))
    pillars = frozenset().union(*(result.pillars for result in results))
    there = {name for result in results for name in result.tuples}
    missing = [each.name for each in METRICS if each.pillar in pillars and each.name not in there]
    scheduled = episodes is not None
    names = ", ".join(manifests)
    return Imported(out, names, len(results), len(there), tuple(missing), scheduled, notes_of(scheduled))


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
        yield UserError(part, what=type_reason(detail), fix=_FIX)


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
    results: Sequence[Result], manifests: Mapping[str, Mapping[str, Json]], files: Sequence[Path]
) -> EvaluationManifest:
    """Return the manifest of all methods, which must have been judged alike; where they differ, by method."""
    circumstances: dict[str, Json] = {}
    for name in (*VARYING, *_ENVIRONMENT):
        values = {method: each[name] for method, each in manifests.items() if name in each}
        if values:
            same = len({canonical_text(value) for value in values.values()}) == 1
            circumstances[name] = next(iter(values.values())) if same else values
    fixed = {method: _fixed(manifest) for method, manifest in manifests.items()}
    first, *others = fixed
    for other in others:
        if differing := list(_differing("", fixed[first], fixed[other])):
            what = f"{first} and {other} were not judged alike: {', '.join(differing[:5])}"
            fix = "import each into a folder of its own; fabula compare says what differs"
            raise InputError.one(_MANIFEST, what=what, fix=fix)
    return EvaluationManifest(
        kind=PROTOCOL,
        protocol={
            "imported": "entitybench",
            "pillars": sorted(frozenset().union(*(result.pillars for result in results))),
            "manifest": fixed[first],
        },
        subject={
            "methods": {
                method: {"episodes": sum(result.method == method for result in results)} for method in fixed
            }
        },
        environment={
            "fabula": version.__version__,
            "python": platform.python_version(),
            "imported_from": [{"file": path.name, "sha256": sha256_file(path)} for path in files],
            "scheduled": all(result.schedule is not None for result in results),
            **circumstances,
        },
    )


def _fixed(manifest: Mapping[str, Json]) -> dict[str, Json]:
    """Return what of a public manifest identifies how methods were judged."""
    fixed = {name: value for name, value in manifest.items() if name not in (*VARYING, *_ENVIRONMENT)}
    if "model_checkpoints" in fixed:
        fixed["model_checkpoints"] = fingerprints(fixed["model_checkpoints"])
    return fixed


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
