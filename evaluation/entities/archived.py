"""Reading the archive of an evaluation of episodes as facts: ``episodes.jsonl`` beside the judgements."""

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path

import numpy as np

from ...errors import InputError, UserError, mismatch
from ...schemas.canonical import Json
from ...schemas.entities import TYPES
from ...schemas.judgement import Judgement
from ...schemas.plain_files import open_plain, parse_json, reason_of
from ..archive.archive import Archive
from ..archive.replies import last_attempts
from ..metrics.vectors import Floats, doubles
from .facts import CRITERIA, EPISODES, UNREAD, Answer, Appearance, EpisodeFacts, Gate, ShotFacts, names_any

_MOST = 10
_VERDICTS = ("same", "consistent", "depicted")
_MAY_BE_NULL = frozenset(name for names in CRITERIA.values() for name in names)
_problem = partial(mismatch, fix="give the folder that fabula evaluate episodes wrote")

Answers = Mapping[tuple[str, str], Answer]
"""What was asked and its item -> the reply, of one method and episode."""


def read_facts(folder: str | Path, archive: Archive) -> tuple[EpisodeFacts, ...]:
    """Return the facts of every method and episode of an evaluation folder, sorted by both."""
    answers = answers_of(archive.judgements)
    pillars = archive.manifest.protocol.get("pillars")
    problems: list[UserError] = []
    read: dict[tuple[str, str], EpisodeFacts] = {}
    for where, line in _lines(Path(folder) / EPISODES, problems):
        try:
            facts = facts_of(line, answers.get((line["method"], line["episode_id"]), {}), pillars)
        except (LookupError, TypeError, ValueError, AttributeError, OverflowError) as error:
            shown = f"no {error}" if isinstance(error, KeyError) else str(error)
            problems.append(_problem(where, "a line of an evaluation of episodes", shown))
            continue
        if (facts.method, facts.episode_id) in read:
            again = f"{facts.episode_id} again"
            problems.append(_problem(where, "each episode of a method once", again))
        read[facts.method, facts.episode_id] = facts
    if problems:
        raise InputError(problems)
    return tuple(read[key] for key in sorted(read))


def facts_of(line: Json, answers: Answers, pillars: Iterable[int] | None = None) -> EpisodeFacts:
    """Return the facts of a line of the archive.

    ``pillars``: which were evaluated; None for those that something is known of.
    """
    shots = tuple(_shot(entry, answers) for entry in line["shots"])
    _check(shots, line["gate"])
    gate = None if line["gate"] is None else {key: _gate(each) for key, each in line["gate"].items()}
    known = {
        1: any(shot.quality is not None for shot in shots),
        2: any(each.status is not None for shot in shots for each in shot.appearances),
        3: gate is not None,
    }
    chosen = [number for number, there in known.items() if there] if pillars is None else pillars
    method, episode_id, tier = line["method"], line["episode_id"], line["episode"].get("tier")
    if not (isinstance(method, str) and isinstance(episode_id, str) and isinstance(tier, str | None)):
        raise TypeError("method, episode_id and tier are no texts")
    return EpisodeFacts(
        method, episode_id, tier, shots, gate,
        {_pair(item): answer for (kind, item), answer in answers.items() if kind == "pair"},
        {item: answer for (kind, item), answer in answers.items() if kind == "location"}, frozenset(chosen),
    )  # fmt: skip


def _check(shots: Sequence[ShotFacts], gate: Json) -> None:
    """Check that shots are told apart, types known, and only scheduled entities compared."""
    scheduled = {(each.entity, shot.key) for shot in shots for each in shot.appearances}
    if len({shot.key for shot in shots}) < len(shots):
        raise ValueError("a shot is there twice")
    if not {each.type for shot in shots for each in shot.appearances} <= {*TYPES}:
        raise ValueError(f"an entity is none of {', '.join(TYPES)}")
    for entity, each in (gate or {}).items():
        anchor = [] if each["anchor"] is None else [each["anchor"]]
        for shot in (*each["pool"], *each["gated"], *anchor):
            if (entity, shot) not in scheduled:
                raise ValueError(f"{entity} is compared in shot {shot}, which does not schedule it")


def _number(value: Json) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float | None) or not math.isfinite(value or 0):
        raise TypeError(f"{value!r} is no number")
    return value


def _shot(entry: Json, answers: Answers) -> ShotFacts:
    shot, frames, grounded, vectors = (entry[name] for name in ("shot", "frames", "grounded", "vectors"))
    key, action = shot["key"], shot["action"] or ""
    vectors = vectors or {}
    objects = [entity["name"] for entity in shot["entities"] if entity["type"] == "object"]
    reached = shot["code"] is None and frames["invalid"] is None
    return ShotFacts(
        key, int(shot["index"]), shot["scene"], bool(shot["cut"]), reached, bool(action),
        names_any(action, objects),
        tuple(_appearance(key, entity, grounded, vectors, answers) for entity in shot["entities"]),
        None if entry["quality"] is None else _quality(entry["quality"]["values"]),
        answers.get(("action", key)),
        _vector(vectors.get("first")), _vector(vectors.get("last")),
    )  # fmt: skip


def _quality(values: Mapping[str, Json]) -> dict[str, float | None]:
    return {name: _number(value) for name, value in values.items()}


def _appearance(
    shot: str, entity: Json, grounded: Json, vectors: Mapping[str, Json], answers: Answers
) -> Appearance:
    key = entity["key"]
    seen = {} if grounded is None else grounded["entities"].get(key, {})
    crop = seen.get("canonical")
    return Appearance(
        key, entity["type"], entity["name"], seen.get("status"),
        None if crop is None else _number(crop["clip"]),
        _vector((vectors.get("crops") or {}).get(key)), answers.get(("fidelity", f"{shot}/{key}")),
    )  # fmt: skip


def _gate(entry: Json) -> Gate:
    return Gate(tuple(entry["pool"]), tuple(entry["gated"]), tuple(entry["unscored"]), entry["anchor"])


def _vector(packed: Json) -> Floats | None:
    if packed is None:
        return None
    vector = doubles(packed).reshape(-1)
    return None if np.isnan(vector).any() else vector


def _pair(item: str) -> tuple[str, str]:
    """Return entity and other shot of ``<entity>/<anchor>/<other>``; names may have slashes."""
    entity, _, other = item.rsplit("/", 2)
    return entity, other


def answers_of(judgements: Iterable[Judgement]) -> dict[tuple[str, str], dict[tuple[str, str], Answer]]:
    """Return method and episode -> what was asked and its item -> the last reply."""
    answers: dict[tuple[str, str], dict[tuple[str, str], Answer]] = {}
    judges: Counter[str] = Counter()
    for judgement in last_attempts(judgements):
        judges[judgement.judge.spec] += 1
        if judgement.method is not None:
            mine = answers.setdefault((judgement.method, judgement.unit), {})
            mine[judgement.kind, judgement.item] = answer_of(judgement.outcome, judgement.parsed)
    if len(judges) > 1:
        listed = ", ".join(sorted(judges))
        raise InputError.one(
            "judges", what=f"several judges replied: {listed}; what one of them lets through the "
            "gate is not what the others compared",
            fix="score the evaluation of each judge by itself",
        )  # fmt: skip
    return answers


def answer_of(outcome: str, parsed: Mapping[str, Json] | None) -> Answer:
    """Return a reply with its scores divided by 10 and its verdicts as 0 or 1.

    Only criteria may be null, where they cannot be seen; a verdict or overall score that is null is missing.
    """
    if parsed is None:
        return Answer(outcome)
    unread = parsed.get(UNREAD)
    noted = unread if isinstance(unread, Mapping) else {}
    unseen = frozenset(name for name in _MAY_BE_NULL if noted.get(name) == "null")
    flat = {**parsed, **(parsed.get("criteria") or {})}
    values = {name: _value(name, value) for name, value in flat.items()}
    return Answer(outcome, {name: value for name, (kept, value) in values.items() if kept}, unseen)


def _value(name: str, value: Json) -> tuple[bool, float | None]:
    """Return whether something is a value that is scored, and which."""
    if value is None:
        return True, None
    if isinstance(value, bool):
        return name in _VERDICTS, float(value)
    return isinstance(value, int | float), value / _MOST if isinstance(value, int | float) else None


def _lines(path: Path, problems: list[UserError]) -> Iterator[tuple[str, Json]]:
    try:
        with open_plain(path, follow=True) as handle:
            for number, content in enumerate(handle, 1):
                where = f"{path}:{number}"
                try:
                    line = parse_json(content)
                except ValueError as error:
                    problems.append(_problem(where, "a line of JSON", reason_of(error)))
                    continue
                yield where, line
    except OSError as error:
        problems.append(_problem(str(path), f"the file {EPISODES} of an evaluation folder", reason_of(error)))
