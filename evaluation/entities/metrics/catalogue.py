"""The 51 metrics of EntityBench as values, named as in Tables 12 to 14 and, in short, as in Table 4."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Literal

import numpy as np

from ....errors import ConfigError
from ....schemas.entities import EntityType
from ...metrics.metric import Quantity
from ...metrics.vectors import Floats, unit
from ..archived import (
    ACTION_CRITERIA,
    CRITERIA,
    QUALITY,
    Answer,
    Appearance,
    EpisodeFacts,
    ShotFacts,
    appearance_of,
)

# -- What a metric is made of: one value, or the reason why there is none, for everything that is eligible
#
# What is eligible follows from the schedule alone, so that no method can change it: every shot of the script,
# every scheduled entity in it, every re-appearance of an entity that is scheduled in two shots or more, every
# shot that continues the one before. A missing shot stays eligible.

# -- Which appearances of an entity are compared across shots, and which of them stands for all (Eq. 22-31)
#
# Rows are appearances in story order, as the public evaluator sorts them; the first of several that are
# equally near is taken, so that nothing depends on the order in which shots were looked at.

FIDELITY_GATE = 0.5
"""Least fidelity of an appearance that is compared (Table 11)."""
_NO_LENGTH = 1e-9


def admitted(status: str | None, fidelity: float | None, least: float = FIDELITY_GATE) -> bool:
    """Whether an appearance enters the comparison across shots (Eq. 22).

    ``status``: ``present``, ``weak`` or ``absent``; None where nobody looked. ``fidelity``: overall fidelity,
    in [0, 1]; None without a score, which admits it. ``least``: the gate's threshold.
    """
    return status == "present" and (fidelity is None or fidelity >= least)


def centroid(rows: Floats) -> Floats | None:
    """Return the mean of unit vectors, scaled to length 1 (Eq. 26); None of fewer than two, or of length 0.

    ``rows``: shape (appearances, dimensions), finite; made unit vectors.
    """
    if len(rows) < 2:
        return None
    mean: Floats = unit(np.asarray(rows, dtype=np.float64)).mean(axis=0)
    length = float(np.linalg.norm(mean))
    return mean / length if length >= _NO_LENGTH else None


def similarities_to_centroid(rows: Floats) -> Floats | None:
    """Return the cosine of every appearance with the centroid (Eq. 27), shape (appearances,), in [-1, 1].

    None where there is no centroid.
    """
    middle = centroid(rows)
    return None if middle is None else unit(np.asarray(rows, dtype=np.float64)) @ middle


def anchor(rows: Floats) -> int | None:
    """Return which row is nearest to the centroid (Eq. 31), the first of equals; None without a centroid."""
    near = similarities_to_centroid(rows)
    return None if near is None else _first_best(near)


def _first_best(values: Sequence[float] | Floats) -> int:
    return int(np.argmax(np.round(values, 12)))


# --

Fate = Literal["scored", "skipped", "unseen", "failed", "absent", "missing"]
"""``scored``; ``skipped`` by the gate; ``unseen``: the judge says that the criterion cannot be seen;
``failed``: no usable reply, vector or measurement; ``absent``: not recognised in its shot; ``missing``: the
shot has no readable video."""


@dataclass(frozen=True, slots=True)
class Instance:
    """One thing that a metric counts."""

    shot: str  # key of the shot; of a location judged as a whole, of its first shot
    fate: Fate  # whether it has a value, and else why not
    value: float | None = None  # in the range of the metric; None unless scored
    entity: str | None = None  # key of the entity, where it is about one
    other: str | None = None  # key of the shot that it is compared with, where there is one


Lister = Callable[[EpisodeFacts], Iterator[Instance]]


def _said_of(answer: Answer | None, name: str) -> tuple[Fate, float | None]:
    """Return what a reply has of a value that was asked for."""
    value = None if answer is None else answer.of(name)
    if value is not None:
        return "scored", value
    return ("unseen" if answer is not None and name in answer.unseen else "failed"), None


def _given(value: float | None, shot: ShotFacts) -> tuple[Fate, float | None]:
    if not shot.reached:
        return "missing", None
    return ("failed", None) if value is None else ("scored", value)


def of_quality(name: str) -> Lister:
    """List the values of one measure of picture quality, shot by shot (Eq. 2-6)."""

    def listed(facts: EpisodeFacts) -> Iterator[Instance]:
        for shot in facts.shots:
            yield Instance(shot.key, *_given((shot.quality or {}).get(name), shot))

    return listed


def of_presence(kind: EntityType) -> Lister:
    """List the share of scheduled entities of a type that are present, of the shots with any (Eq. 13)."""

    def listed(facts: EpisodeFacts) -> Iterator[Instance]:
        for shot in facts.shots:
            statuses = [each.status for each in shot.appearances if each.type == kind]
            if statuses:
                looked = None not in statuses
                share = statuses.count("present") / len(statuses) if looked else None
                yield Instance(shot.key, *_given(share, shot))

    return listed


def of_fidelity(kind: EntityType, name: str) -> Lister:
    """List the fidelity of every scheduled entity of a type, ``overall`` or by a criterion (Eq. 15)."""

    def listed(facts: EpisodeFacts) -> Iterator[Instance]:
        for shot in facts.shots:
            for each in shot.appearances:
                if each.type != kind:
                    continue
                fate, value = _said_of(each.fidelity, name) if shot.reached else ("missing", None)
                if fate == "failed" and each.status == "absent":
                    fate = "absent"
                yield Instance(shot.key, fate, value, each.entity)

    return listed


def of_action(name: str) -> Lister:
    """List what was said of actions (Eq. 19); of objects where the action names one that is scheduled."""

    def listed(facts: EpisodeFacts) -> Iterator[Instance]:
        for shot in facts.shots:
            if shot.acts and (name != "object_interaction" or shot.names_object):
                value = None if shot.action is None else shot.action.of(name)
                yield Instance(shot.key, *_given(value, shot))

    return listed


def of_transitions(facts: EpisodeFacts) -> Iterator[Instance]:
    """List how alike two shots are where the second continues the first (Eq. 29): last and first frame."""
    for before, shot in facts.continuations():
        if not (before.reached and shot.reached):
            yield Instance(shot.key, "missing", other=before.key)
        elif before.last is None or shot.first is None:
            yield Instance(shot.key, "failed", other=before.key)
        else:
            rows = unit(np.stack([before.last, shot.first]).astype(np.float64))
            yield Instance(shot.key, "scored", float(rows[0] @ rows[1]), other=before.key)


def vectors_of_pool(facts: EpisodeFacts, entity: str) -> tuple[list[ShotFacts], Floats] | None:
    """Return the admitted shots of an entity with a vector, and unit rows; None of fewer than two."""
    pool = set(facts.pool(entity))
    shots = [shot for shot in facts.shots if shot.key in pool]
    known = [(shot, vector) for shot in shots if (vector := appearance_of(shot, entity).vector) is not None]
    if len(known) < 2:
        return None
    return [shot for shot, _ in known], unit(np.stack([vector for _, vector in known]).astype(np.float64))


def _not_in_pool(shot: ShotFacts, appearance: Appearance) -> Fate:
    if not shot.reached:
        return "missing"
    if appearance.status in ("present", "weak"):
        return "skipped"
    return "failed" if appearance.status is None else "absent"


def of_centroid(kind: EntityType) -> Lister:
    """List how near every appearance of recurring entities is to their centroid (Eq. 27)."""

    def listed(facts: EpisodeFacts) -> Iterator[Instance]:
        for entity, shots in facts.recurring(kind):
            pool, known = set(facts.pool(entity)), vectors_of_pool(facts, entity)
            near = None if known is None else similarities_to_centroid(known[1])
            values: dict[str, float] = {}
            if known is not None and near is not None:
                values = {shot.key: float(value) for shot, value in zip(known[0], near, strict=True)}
            for shot in shots:
                fate: Fate = "scored"
                if shot.key not in pool:
                    fate = _not_in_pool(shot, appearance_of(shot, entity))
                elif shot.key not in values:
                    fate = "skipped" if len(pool) < 2 else "failed"
                yield Instance(shot.key, fate, values.get(shot.key), entity)

    return listed


def of_pairs(kind: EntityType, name: str) -> Lister:
    """List what was said of every re-appearance beside the anchor (Eq. 32): one fewer than shots."""

    def listed(facts: EpisodeFacts) -> Iterator[Instance]:
        for entity, shots in facts.recurring(kind):
            yield from pairs_of_entity(facts, entity, shots, name)

    return listed


def pairs_of_entity(
    facts: EpisodeFacts, entity: str, shots: Sequence[ShotFacts], name: str
) -> Iterator[Instance]:
    """Yield one instance per shot of an entity but its anchor.

    Where there is no anchor, the shot that came nearest to being one stands in for it: admitted before held
    back before not recognised before missing, the first of equals.
    """
    pool = facts.pool(entity)
    fates: dict[str, Fate] = {
        shot.key: "scored" if shot.key in pool else _not_in_pool(shot, appearance_of(shot, entity))
        for shot in shots
    }
    gate = (facts.gate or {}).get(entity)
    anchor = None if gate is None else gate.anchor
    if anchor is None:
        order: tuple[Fate, ...] = ("scored", "failed", "skipped", "absent", "missing")
        anchor = min(fates, key=lambda key: order.index(fates[key]))
    for key, fate in fates.items():
        if key == anchor:
            continue
        if fate != "scored":
            yield Instance(key, fate, None, entity, anchor)
            continue
        yield Instance(key, *_said_of(facts.pairs.get((entity, key)), name), entity, anchor)


_TOGETHER: Mapping[str, str] = {"same": "consistent", "similarity": "consistency"}
"""What is asked of pairs -> the same of all shots of a location at once."""


def of_locations(name: str) -> Lister:
    """List every recurring location: its pairs together (Eq. 38-40), or the reply to all shots at once."""

    def listed(facts: EpisodeFacts) -> Iterator[Instance]:
        for entity, shots in facts.recurring("location"):
            whole = facts.locations.get(entity)
            first = shots[0].key
            if whole is not None:
                yield Instance(first, *_said_of(whole, _TOGETHER.get(name, name)), entity)
                continue
            if len(facts.pool(entity)) < 2:
                yield Instance(first, _why_alone(shots, entity), None, entity)
                continue
            judged = [
                each
                for each in pairs_of_entity(facts, entity, shots, name)
                if each.fate in ("scored", "unseen", "failed")
            ]
            value = _together(name, [each.value for each in judged])
            fate: Fate = "failed" if value is None else "scored"
            if judged and all(each.fate == "unseen" for each in judged):
                fate = "unseen"
            yield Instance(first, fate, value, entity)

    return listed


def _why_alone(shots: Sequence[ShotFacts], entity: str) -> Fate:
    """Return why a location has no two admitted shots."""
    fates = [_not_in_pool(shot, appearance_of(shot, entity)) for shot in shots]
    others = [fate for fate in fates if fate != "skipped"]
    if len(fates) - len(others) >= 2:
        return "skipped"
    return min(others, key=("failed", "absent", "missing").index)


def _together(name: str, values: Sequence[float | None]) -> float | None:
    """Return the mean of the pairs that were answered; of verdicts, their product.

    One pair that differs decides a location. Where all that were answered are alike and one was not answered,
    nobody knows: there is no verdict.
    """
    known = [value for value in values if value is not None]
    if name != "same":
        return sum(known) / len(known) if known else None
    if 0.0 in known:
        return 0.0
    return 1.0 if known and len(known) == len(values) else None


# --

Group = Literal["quality", "presence", "fidelity", "action", "centroid", "transition", "pair", "location"]
Unit = Literal["shot", "appearance", "transition", "pair", "location"]


@dataclass(frozen=True, kw_only=True)
class EntityMetric(Quantity):
    direction: Literal["higher", "lower", "none"] = "higher"
    range: tuple[float, float] = (0.0, 1.0)
    aliases: tuple[str, ...] = ()  # other names of it, such as those of Table 4
    pillar: int  # 1 quality, 2 prompt following, 3 consistency across shots
    group: Group  # what kind of metric it is
    type: EntityType | None = None  # the type of the entities that it is about; None where it is about shots
    unit: Unit  # what its instances are
    instances: Lister  # lists them for an episode
    # whether an episode's value is the mean over shots of their means, not the mean of all
    by_shot: bool = False


_WITHIN: dict[EntityType, str] = {"character": "face", "object": "object", "location": "location"}
_ACROSS: dict[EntityType, str] = {"character": "face", "object": "object", "location": "scene"}
_PRESENCE: dict[EntityType, str] = {"character": "char", "object": "obj", "location": "loc"}
_ACTION_ALIASES = {"overall": "overall", "subject_identity": "subject", "object_interaction": "interaction"}


def _quality() -> Iterator[EntityMetric]:
    for name in QUALITY:
        top = 100.0 if name == "imaging_quality" else 1.0
        yield EntityMetric(
            name=name, label=_said(name), range=(0.0, top), pillar=1, group="quality", unit="shot",
            instances=of_quality(name),
        )  # fmt: skip


def _prompt_following() -> Iterator[EntityMetric]:
    for kind, short in _PRESENCE.items():
        yield EntityMetric(
            name=f"intra_{kind}_presence", label=f"{kind.capitalize()} presence", pillar=2, group="presence",
            aliases=(f"{short}_presence",), type=kind, unit="shot", instances=of_presence(kind),
        )  # fmt: skip
    for kind, word in _WITHIN.items():
        for name in ("overall", *CRITERIA[kind]):
            whole = name == "overall"
            yield EntityMetric(
                name=f"intra_{word}_{'fidelity' if whole else name}",
                label=f"{kind.capitalize()} fidelity" + ("" if whole else f": {_said(name).lower()}"),
                aliases=(f"{word}_fidelity",) if whole else (), pillar=2, group="fidelity", type=kind,
                unit="appearance", instances=of_fidelity(kind, name), by_shot=True,
            )  # fmt: skip
    for name in ("overall", "depicted", *ACTION_CRITERIA):
        aliases = (f"action_{_ACTION_ALIASES[name]}",) if name in _ACTION_ALIASES else ()
        yield EntityMetric(
            name=f"intra_action_{name}", label=f"Action: {_said(name).lower()}", aliases=aliases, pillar=2,
            group="action", unit="shot", instances=of_action(name),
        )  # fmt: skip


def _across_shots() -> Iterator[EntityMetric]:
    recurring: tuple[EntityType, ...] = ("character", "object")
    for kind in recurring:
        yield EntityMetric(
            name=f"cs_{_ACROSS[kind]}", label=f"{kind.capitalize()}s near their centroid", range=(-1.0, 1.0),
            pillar=3, group="centroid", type=kind, unit="appearance", instances=of_centroid(kind),
        )  # fmt: skip
    yield EntityMetric(
        name="cs_transition_boundary", label="Continued shots at their boundary", range=(-1.0, 1.0), pillar=3,
        group="transition", unit="transition", instances=of_transitions,
    )  # fmt: skip
    for kind, word in _ACROSS.items():
        asked_of = {"accuracy": "same", "mean_score": "similarity"} | {name: name for name in CRITERIA[kind]}
        for name, asked in asked_of.items():
            scene = kind == "location"
            yield EntityMetric(
                name=f"llm_{word}_{name}", label=f"{kind.capitalize()} across shots: {_said(name).lower()}",
                pillar=3, group="location" if scene else "pair", type=kind,
                unit="location" if scene else "pair",
                instances=of_locations(asked) if scene else of_pairs(kind, asked),
            )  # fmt: skip


def _said(name: str) -> str:
    return name.replace("_", " ").capitalize()


METRICS: tuple[EntityMetric, ...] = (*_quality(), *_prompt_following(), *_across_shots())
"""All of them, in the order of Tables 12 to 14."""


@cache
def _by_name() -> dict[str, EntityMetric]:
    return {name: metric for metric in METRICS for name in (metric.name, *metric.aliases)}


def metric_named(name: str) -> EntityMetric:
    """Return a metric by its name or one of its aliases."""
    if name not in _by_name():
        raise ConfigError(
            "metric", what=f"there is no metric {name!r}",
            fix="docs/episodes-evaluation.md lists the 51 names and the short ones of Table 4",
        )  # fmt: skip
    return _by_name()[name]
