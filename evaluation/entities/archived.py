"""Reading the archive of an evaluation of episodes as facts: ``episodes.jsonl`` beside the judgements."""

import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path

import numpy as np

from ...errors import InputError, UserError, mismatch
from ...schemas.canonical import Json
from ...schemas.entities import TYPES, EntityType
from ...schemas.judgement import Judgement
from ...schemas.plain_files import open_plain, parse_json, reason_of
from ..archive.archive import Archive
from ..archive.replies import last_attempts
from ..metrics.vectors import Floats, doubles

# -- What an evaluation of episodes knows of each episode: the one input of every number
#
# Facts come from the archive: ``episodes.jsonl`` holds what was seen, ``judgements.jsonl`` what was judged. A
# score of 1 to 10 is divided by 10; a reply, or a value of it, that could not be used is None.


@dataclass(frozen=True, slots=True)
class Answer:
    """The reply to one question."""

    outcome: str  # ``answered``, or why there is no answer, as in the archive
    # what was asked -> value in [0, 1], verdicts 0 or 1; None where the reply has none
    values: Mapping[str, float | None] = field(default_factory=dict)
    unseen: frozenset[str] = frozenset()  # criteria of which the reply says that they cannot be seen: null

    def of(self, name: str) -> float | None:
        return self.values.get(name)


@dataclass(frozen=True, slots=True)
class Appearance:
    """One scheduled entity in one shot."""

    entity: str  # key of the entity
    type: EntityType  # of the entity, as the schedule has it
    name: str  # of the entity
    status: str | None = None  # ``present``, ``weak`` or ``absent``; None where nobody looked
    clip: float | None = None  # similarity of the canonical crop with the description; None without a crop
    # what the encoder made of the crop, shape (dimensions,); None without one
    vector: Floats | None = field(default=None, repr=False)
    fidelity: Answer | None = None  # what a judge said of the crop; None where nobody was asked


@dataclass(frozen=True, slots=True)
class ShotFacts:
    key: str  # ``<scene>:<shot>``
    index: int  # place in the episode, from 0
    scene: int  # number of its scene
    cut: bool  # whether it begins anew; false where it continues the shot before it
    reached: bool  # whether its video could be read
    acts: bool = True  # whether the script says what happens in it
    names_object: bool = False  # whether that names an object that is scheduled
    appearances: tuple[Appearance, ...] = ()  # the scheduled entities, in order
    quality: Mapping[str, float | None] | None = None  # measure -> value; None where nobody measured
    action: Answer | None = None  # what a judge said of the action; None where nobody was asked
    # what the encoder made of the first frame; None without one
    first: Floats | None = field(default=None, repr=False)
    last: Floats | None = field(default=None, repr=False)  # the same of the last frame


@dataclass(frozen=True, slots=True)
class Gate:
    """Which appearances of one entity are compared across shots."""

    pool: tuple[str, ...] = ()  # keys of the shots whose appearance was admitted, in story order
    gated: tuple[str, ...] = ()  # of those that are present and were held back
    unscored: tuple[str, ...] = ()  # of those in the pool that have no fidelity
    anchor: str | None = None  # the shot that all others are compared with; None where there is none


@dataclass(frozen=True)
class EpisodeFacts:
    method: str  # whose videos
    episode_id: str  # the episode; what stands before ``__`` names its source
    tier: str | None  # of the episode; None where nobody said
    shots: tuple[ShotFacts, ...]  # every scheduled shot, in story order, with a video or without
    gate: Mapping[str, Gate] | None = None  # entity -> its gate; None where nothing was compared across shots
    # entity and shot -> how that shot compares with the entity's anchor
    pairs: Mapping[tuple[str, str], Answer] = field(default_factory=dict)
    # location -> what was said of all its shots at once
    locations: Mapping[str, Answer] = field(default_factory=dict)
    # which pillars were evaluated: 1 quality, 2 prompt following, 3 across shots
    pillars: frozenset[int] = frozenset((1, 2, 3))

    @property
    def source(self) -> str:
        """The film that it was made from: the part of its id before ``__``."""
        return self.episode_id.partition("__")[0]

    @cached_property
    def _scheduled(self) -> Mapping[EntityType, Mapping[str, tuple[ShotFacts, ...]]]:
        shots: dict[EntityType, dict[str, list[ShotFacts]]] = {kind: {} for kind in TYPES}
        for shot in self.shots:
            for appearance in shot.appearances:
                shots[appearance.type].setdefault(appearance.entity, []).append(shot)
        return {kind: {key: tuple(shown) for key, shown in some.items()} for kind, some in shots.items()}

    def recurring(self, kind: EntityType) -> Iterator[tuple[str, tuple[ShotFacts, ...]]]:
        """Yield every entity of a type that is scheduled in two shots or more, with these."""
        yield from ((key, shots) for key, shots in self._scheduled[kind].items() if len(shots) > 1)

    def continuations(self) -> Iterator[tuple[ShotFacts, ShotFacts]]:
        """Yield every shot that continues the one before it in its scene, after that one."""
        for before, shot in zip(self.shots, self.shots[1:], strict=False):
            if not shot.cut and shot.scene == before.scene:
                yield before, shot

    def pool(self, entity: str) -> tuple[str, ...]:
        """Return the shots whose appearance of an entity is compared, in story order."""
        gate = None if self.gate is None else self.gate.get(entity)
        return () if gate is None else gate.pool


def appearance_of(shot: ShotFacts, entity: str) -> Appearance:
    for appearance in shot.appearances:
        if appearance.entity == entity:
            return appearance
    raise KeyError(entity)


# -- Keys of entities, and what judges look at in an entity of each type (EntityBench, B.3.3)

PROTOCOL = "episodes"
"""What archives of such evaluations bear as their name."""
UNREAD = "unread"
"""Where a reply says which of its values could not be used, and what stood there, as JSON."""
EPISODES = "episodes.jsonl"
"""One line per method and episode: its schedule, and what was seen of each shot."""

CRITERIA: Mapping[EntityType, tuple[str, ...]] = {
    "character": ("face", "hair", "clothing", "build"),
    "object": ("shape", "color_texture", "proportions", "details"),
    "location": ("layout", "color_mood", "landmarks", "perspective"),
}
"""Type -> the criteria of fidelity and of consistency across shots, in the order of the paper's tables."""

ACTION_CRITERIA = ("subject_identity", "subject_action", "object_interaction", "motion_quality")
"""What is judged of a shot's action besides its overall score and whether it is depicted (B.3.4)."""

QUALITY = (
    "subject_consistency",
    "temporal_flickering",
    "motion_smoothness",
    "dynamic_degree",
    "aesthetic_quality",
    "imaging_quality",
)
"""The six measures of a shot's picture quality (Table 12)."""


def entity_key(kind: EntityType, name: str) -> str:
    """Return how an evaluation names an entity: ``character:Ana``."""
    return f"{kind}:{name}"


def entity_parts(key: str) -> tuple[EntityType, str]:
    kind, _, name = key.partition(":")
    known = next((known for known in TYPES if known == kind), None)
    if known is None or not name:
        problem = mismatch("entity", "a type and a name, such as character:Ana", key, "correct the key")
        raise InputError([problem])
    return known, name


def names_any(action: str, names: Iterable[str]) -> bool:
    """Whether an action names an entity: a whole word or words, in any case.

    Only then is interaction with objects judged (B.3.4); 1,965 of the 2,491 published shots name one.
    """
    return any(re.search(rf"\b{re.escape(name)}\b", action, re.IGNORECASE) for name in names if name)


# --

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
