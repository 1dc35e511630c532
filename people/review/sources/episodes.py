"""Appearances and pairs that a judge of episodes saw, as people see them: the same crops and descriptions.

Appearances are drawn in equal thirds by type, half of them admitted by the gate; pairs in equal thirds.
Each stratum is spread over methods and tiers in turn (EntityBench, section B.1: 200 appearances). What a
stratum lacks is not drawn elsewhere: it is counted.
"""

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from ....engine.execute import STORE
from ....errors import InputError, UserError
from ....evaluation.archive.archive import JUDGEMENTS, read_archive
from ....evaluation.entities.archived import CRITERIA, entity_parts
from ....evaluation.entities.judging import described, pairs_of
from ....evaluation.entities.metrics.catalogue import admitted
from ....evaluation.entities.pipeline import read_lines
from ....schemas.canonical import Json, sha256_file
from ....schemas.entities import TYPES, EntityType
from ...episodes import OVERALL, VERDICT, Judged, appearance_item, judged, least_of, pair_item
from ..items import Drawn, Part
from .source import Drawing, Material, Source

COUNT = 200
"""Instances of a study (EntityBench, B.1)."""
_GATES = {True: "admitted", False: "refused"}


class Stratum(NamedTuple):
    """What is drawn in equal numbers: appearances and pairs of a type; ``admitted`` is None for pairs."""

    kind: str
    type: EntityType
    admitted: bool | None


@dataclass(frozen=True)
class Instance:
    """What one person judges at a time."""

    stratum: Stratum  # what it is drawn among
    method: str  # whose videos
    tier: str | None  # of the episode
    item: str  # what it is, for the key
    name: str  # of the entity
    description: str  # of the entity, as the judge saw it
    sides: tuple[tuple[Path, ...], ...]  # the pictures that the judge saw, one file or some for each side


def strata(kind: str) -> tuple[Stratum, ...]:
    """Return the strata of appearances (``fidelity``) or of pairs (``pair``)."""
    if kind == "pair":
        return tuple(Stratum(kind, each, None) for each in TYPES)
    # What is left over in dividing goes to the first: types and halves alternate.
    return tuple(Stratum(kind, TYPES[number % 3], number % 2 == 0) for number in range(6))


def instances_of(folders: Sequence[Path]) -> list[Instance]:
    """Return everything that a judge answered and people can be shown, of some evaluation folders."""
    owners: dict[tuple[str, str], Path] = {}
    problems: list[UserError] = []
    listed: list[Instance] = []
    for folder in folders:
        archive = read_archive(folder)
        answers, least = judged(archive), least_of(archive)
        lines = read_lines(folder)
        frames = int(archive.manifest.protocol["definitions"].get("judge_locations.frames", 0))
        for key, line in lines.items():
            if owners.setdefault(key, folder) != folder:
                what = f"{owners[key]} and {folder} have it both"
                problems.append(UserError("/".join(key), what=what, fix="name each episode of a method once"))
            listed += _appearances(line, answers, folder / STORE, least)
            listed += _pairs(line, answers, folder / STORE, frames)
    if problems:
        raise InputError(problems)
    return listed


Answers = Mapping[tuple[str, str], Judged]


def _appearances(line: Json, answers: Answers, store: Path, least: float) -> Iterator[Instance]:
    for shot in line["shots"]:
        for entity in shot["shot"]["entities"]:
            seen = ((shot["grounded"] or {}).get("entities") or {}).get(entity["key"]) or {}
            item = appearance_item(line["episode_id"], shot["shot"]["key"], entity["key"])
            overall = _value(answers, line["method"], item, OVERALL["fidelity"])
            if seen.get("canonical") is None or overall is None:
                continue
            passes = admitted(seen["status"], overall, least)
            stratum = Stratum("fidelity", entity["type"], passes)
            yield Instance(
                stratum, line["method"], line["episode"].get("tier"), item,
                entity["name"], entity["description"], ((_stored(store, seen["canonical"]["file"]),),),
            )  # fmt: skip


def _pairs(line: Json, answers: Answers, store: Path, frames: int) -> Iterator[Instance]:
    shots = {shot["shot"]["key"]: shot for shot in line["shots"]}
    for key, anchor, other in pairs_of(line["gate"]):
        item = pair_item(line["episode_id"], f"{key}/{anchor}/{other}")
        if _value(answers, line["method"], item, VERDICT["pair"]) is None:
            continue
        kind = entity_parts(key)[0]
        sides = sorted(_shown(shots[name], key, frames) for name in (anchor, other))
        yield Instance(
            Stratum("pair", kind, None), line["method"], line["episode"].get("tier"), item,
            **described(shots[anchor], key),
            sides=tuple(tuple(_stored(store, file) for file in side) for side in sides),
        )  # fmt: skip


def _shown(shot: Json, key: str, frames: int) -> list[str]:
    """Return the pictures of one side of a pair, as the judge saw them."""
    if entity_parts(key)[0] != "location":
        return [shot["grounded"]["entities"][key]["canonical"]["file"]]
    return [shot["frames"]["pictures"][str(index)] for index in shot["frames"]["scene"][:frames]]


def _stored(store: Path, name: str) -> Path:
    """Return a picture of the store; nothing that an archive names lies elsewhere."""
    return store / Path(name).name


def _value(answers: Answers, method: str, item: str, name: str) -> float | None:
    answer = answers.get((method, item))
    return None if answer is None else answer.values.get(name)


def sample(instances: Sequence[Instance], kind: str, count: int, seed: int) -> list[Instance]:
    """Draw so many instances of a kind, equally by stratum, spread over methods and tiers."""
    drawn: list[Instance] = []
    for stratum, wanted in quotas(kind, count).items():
        draw = random.Random(f"{seed}/{stratum}")
        cells: dict[tuple[str, str | None], list[Instance]] = {}
        for each in sorted(instances, key=lambda each: (each.method, each.item)):
            if each.stratum == stratum:
                cells.setdefault((each.method, each.tier), []).append(each)
        columns = list(cells.values())
        draw.shuffle(columns)
        for column in columns:
            draw.shuffle(column)
        ranked = sorted(
            (rank, number) for number, column in enumerate(columns) for rank in range(len(column))
        )
        drawn += [columns[number][rank] for rank, number in ranked[:wanted]]
    return drawn


def quotas(kind: str, count: int) -> dict[Stratum, int]:
    """Return how many of each stratum are wanted."""
    parts = strata(kind)
    return {
        stratum: count // len(parts) + (number < count % len(parts)) for number, stratum in enumerate(parts)
    }


def accounting(instances: Sequence[Instance], drawn: Sequence[Instance], counts: Mapping[str, int]) -> Any:  # noqa: ANN401 - JSON
    """Return how many of each stratum were wanted, there, and drawn, and from which methods and tiers."""
    listed = []
    for kind, count in counts.items():
        for stratum, wanted in quotas(kind, count).items():
            mine = [each for each in drawn if each.stratum == stratum]
            there = sum(each.stratum == stratum for each in instances)
            cells: dict[str, int] = {}
            for each in mine:
                cell = f"{each.method}, {each.tier or 'no tier'}"
                cells[cell] = cells.get(cell, 0) + 1
            listed.append(
                {**stratum._asdict(), "wanted": wanted, "available": there, "drawn": len(mine),
                 "cells": dict(sorted(cells.items()))}
            )  # fmt: skip
    return listed


def draw_appearances(material: Material) -> Drawing:
    """Draw single appearances, in equal thirds by type, half of them admitted by the gate."""
    return _draw(material, "fidelity")


def draw_pairs(material: Material) -> Drawing:
    """Draw pairs of appearances of one entity, in equal thirds by type."""
    return _draw(material, "pair")


def _draw(material: Material, kind: str) -> Drawing:
    options = material.options
    folders = (material.path, *options.also)
    available = [
        each for each in instances_of(folders) if not options.methods or each.method in options.methods
    ]
    count = COUNT if options.count is None else options.count
    drawn = sample(available, kind, count, options.seed)
    if not drawn:
        what = f"there is no {'appearance' if kind == 'fidelity' else 'pair'} that a judge answered"
        fix = "give the run folder of an evaluation with --pillars 2 or 3 and a judge"
        raise InputError.one(str(material.path), what=what, fix=fix)
    strata = accounting(available, drawn, {kind: count})
    source: dict[str, Json] = {
        "kind": material.what, "path": material.path.resolve().name,
        "judgements_sha256": [sha256_file(folder / JUDGEMENTS) for folder in folders], "strata": strata,
    }  # fmt: skip
    return Drawing(tuple(map(_item, drawn)), source, _short(strata))


def _short(strata: Sequence[Json]) -> tuple[str, ...]:
    return tuple(
        f"{part['type']}{'' if part['admitted'] is None else ', ' + _GATES[part['admitted']]}:"
        f" {part['drawn']} of {part['wanted']} wanted"
        for part in strata
        if part["drawn"] < part["wanted"]
    )


def _item(instance: Instance) -> Drawn:
    """Return an instance as an item: a list of parts for each criterion of its type, so that it is asked."""
    kind, type_, admitted = instance.stratum
    gate = "" if admitted is None else f"/{_GATES[admitted]}"
    return Drawn(
        instance.item, instance.item.partition("/")[0],
        {"type": type_, "name": instance.name, "description": instance.description}, instance.sides,
        {name: (Part(id=name, text=""),) for name in CRITERIA[type_]},
        methods=(instance.method,), stratum=f"{kind}/{type_}{gate}",
    )  # fmt: skip


_WANTED = "the run folder of an evaluation of episodes with its pictures (fabula evaluate episodes)"
_OPTIONS = ("methods", "count", "also")
APPEARANCES = Source(
    "appearances of entities", {"evaluation": ("episodes",)}, _WANTED, _OPTIONS, draw_appearances
)
PAIRS = Source("pairs of appearances", {"evaluation": ("episodes",)}, _WANTED, _OPTIONS, draw_pairs)
