"""The 51 metrics of EntityBench as values, named as in Tables 12 to 14 and, in short, as in Table 4."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Literal

from ....errors import ConfigError
from ....schemas.entities import EntityType
from ...metrics.metric import Quantity
from ..facts import ACTION_CRITERIA, CRITERIA, QUALITY
from .instances import (
    Lister,
    of_action,
    of_centroid,
    of_fidelity,
    of_locations,
    of_pairs,
    of_presence,
    of_quality,
    of_transitions,
)

Group = Literal["quality", "presence", "fidelity", "action", "centroid", "transition", "pair", "location"]
Unit = Literal["shot", "appearance", "transition", "pair", "location"]


@dataclass(frozen=True, kw_only=True)
class EntityMetric(Quantity):
    """One metric of episodes."""

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
