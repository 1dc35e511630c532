"""Stages: so many stories of a larger pool, as near to quotas as they come (Tables 6, 12 and 24).

One story after the other is chosen: of the combination of type, moral, collection and language that is
furthest from its quotas, the one whose id has the smallest hash. No value comes to more stories than its
quota, rounded up.
So the same pool gives the same choice in any order, and what was chosen stays when stories are added.
"""

import hashlib
import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

from pydantic import Field

from ....engine.stage import Item, StageSpec, Tools
from ....schemas.canonical import Json
from ....schemas.values import Own
from ....schemas.vocabulary import vocabulary

Quotas = Literal["paper"] | dict[str, float]

PAPER: Mapping[str, Mapping[str, float]] = {
    "narrative_type": vocabulary("narrative_type").targets,
    "moral_label": vocabulary("moral_label").targets,
    "collection": {"kathasaritasagara": 1702, "aesop": 1676, "panchatantra": 1622},
}
"""What is balanced -> the numbers of the paper: Tables 6, 12 and 24."""


class Settings(Own):
    """Settings of the choice. Quotas are weights of values; empty ones leave a matter out of account."""

    stories: int | None = Field(default=None, ge=1, description="So many are chosen; all, where it is null.")
    narrative_type: Quotas = Field(default="paper", description="Quotas; paper: Table 6.")
    moral_label: Quotas = Field(default="paper", description="Quotas; paper: Table 12.")
    collection: Quotas = Field(default="paper", description="Quotas of source families; paper: Table 24.")
    language: dict[str, float] = Field(default_factory=dict, description="Quotas of language tags.")

    def caps(self) -> dict[str, dict[str, float]]:
        """Return what is balanced -> value -> how many stories are wanted."""
        assert self.stories is not None
        caps = {}
        for name in ("narrative_type", "moral_label", "collection", "language"):
            quotas = getattr(self, name)
            weights = PAPER[name] if quotas == "paper" else quotas
            if weights:
                whole = math.fsum(weights.values())
                caps[name] = {value: weight * self.stories / whole for value, weight in weights.items()}
        return caps


SPEC = StageSpec(
    name="choose_stories",
    version=1,
    shape="gather",
    reads=("story", "narrative_type", "moral_label"),
    writes=("surplus",),
    settings=Settings,
    stateful=True,
)


def run(items: Iterable[Item], tools: Tools) -> Mapping[str, Mapping[str, Json]]:
    """Return of each story why it is not chosen; null for those that are."""
    settings = tools.own(Settings)
    traits = {
        item.id: {
            "narrative_type": item["narrative_type"], "moral_label": item["moral_label"],
            "collection": item["story"]["source_collection"], "language": item["story"]["language"],
        }
        for item in items
    }  # fmt: skip
    if settings.stories is None:
        return {key: {"surplus": None} for key in traits}
    before = [key for key, fields in tools.previous.items() if key in traits and fields["surplus"] is None]
    surplus = choose(traits, settings.caps(), settings.stories, before)
    return {key: {"surplus": surplus.get(key)} for key in traits}


def choose(
    traits: Mapping[str, Mapping[str, str | None]],
    caps: Mapping[str, Mapping[str, float]],
    stories: int,
    before: Sequence[str] = (),
) -> dict[str, str]:
    """Return the stories that are not chosen, and why.

    ``traits``: story id -> what is balanced -> its value. ``caps``: what is balanced -> value -> how many
    stories are wanted.
    """
    counts: dict[str, Counter[str]] = {name: Counter() for name in caps}
    cells: dict[tuple[str, ...], list[str]] = defaultdict(list)
    surplus: dict[str, str] = {}
    for key in before:
        _count(counts, tuple(str(traits[key][name]) for name in caps))
    for key in sorted(traits.keys() - set(before), key=_order, reverse=True):
        lacking = next((name for name in caps if traits[key][name] not in caps[name]), None)
        if lacking is None:
            cells[tuple(str(traits[key][name]) for name in caps)].append(key)
        else:
            surplus[key] = f"its {lacking} {traits[key][lacking]!r} has no quota"
    for _ in range(stories - len(before)):
        open_cells = [cell for cell, rest in cells.items() if rest and _full(cell, caps, counts) is None]
        if not open_cells:
            break
        cell = max(open_cells, key=lambda cell: (_lack(cell, caps, counts), cell))
        cells[cell].pop()
        _count(counts, cell)
    for cell, rest in cells.items():
        name = _full(cell, caps, counts)
        why = f"{stories} stories are chosen" if name is None else _said(name, cell, caps, counts)
        surplus.update(dict.fromkeys(rest, why))
    return surplus


def _count(counts: Mapping[str, Counter[str]], cell: Sequence[str]) -> None:
    for name, value in zip(counts, cell, strict=True):
        counts[name][value] += 1


def _full(
    cell: Sequence[str], caps: Mapping[str, Mapping[str, float]], counts: Mapping[str, Counter[str]]
) -> str | None:
    """Return what of a cell has its quota already; None where there is room."""
    values = zip(caps, cell, strict=True)
    return next((name for name, value in values if counts[name][value] >= math.ceil(caps[name][value])), None)


def _lack(
    cell: Sequence[str], caps: Mapping[str, Mapping[str, float]], counts: Mapping[str, Counter[str]]
) -> float:
    """Return how far a cell is from its quotas: the sum of the shares of each quota that are missing."""
    values = list(zip(caps, cell, strict=True))
    return sum(1 - counts[name][value] / caps[name][value] for name, value in values if caps[name][value])


def _said(
    name: str,
    cell: Sequence[str],
    caps: Mapping[str, Mapping[str, float]],
    counts: Mapping[str, Counter[str]],
) -> str:
    value = dict(zip(caps, cell, strict=True))[name]
    return f"{counts[name][value]} stories of {name} {value} are chosen; its quota is {caps[name][value]:.1f}"


def _order(key: str) -> str:
    return hashlib.sha256(f"choose {key}".encode()).hexdigest()
