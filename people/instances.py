"""EntityBench's sample for people: appearances and pairs that a judge saw, drawn by strata and anonymised.

Appearances are drawn in equal thirds by type, half of them admitted by the gate; pairs in equal thirds.
Each stratum is spread over methods and tiers in turn (EntityBench, section B.1: 200 appearances). What a
stratum lacks is not drawn elsewhere: it is counted.
"""

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from ..engine.execute import STORE
from ..errors import InputError, UserError
from ..evaluation.archive.archive import read_archive
from ..evaluation.entities.entities import CRITERIA, entity_parts
from ..evaluation.entities.gate import admitted
from ..evaluation.entities.judging.judge_pairs import described, pairs_of
from ..evaluation.entities.merging import read_lines
from ..schemas.canonical import Json
from ..schemas.entities import TYPES, EntityType
from .judged_episodes import OVERALL, VERDICT, Judged, appearance_item, judged, least_of, pair_item
from .tasks import write_study

COLUMNS = ("task", "kind", "type", "name", "description", "first", "second", "verdict", "scores")
PICTURES = "pictures"


class Stratum(NamedTuple):
    """What is drawn in equal numbers: appearances and pairs of a type; ``admitted`` is None for pairs."""

    kind: str
    type: EntityType
    admitted: bool | None


@dataclass(frozen=True)
class Instance:
    """What one person judges at a time.

    Attributes:
        stratum: what it is drawn among.
        method: whose videos.
        tier: of the episode.
        item: what it is, for the key.
        name: of the entity.
        description: of the entity, as the judge saw it.
        sides: the pictures that the judge saw, one file or some for each side.
    """

    stratum: Stratum
    method: str
    tier: str | None
    item: str
    name: str
    description: str
    sides: tuple[tuple[Path, ...], ...]


def strata(kind: str) -> tuple[Stratum, ...]:
    """Return the strata of appearances (``fidelity``) or of pairs (``pair``)."""
    if kind == "pair":
        return tuple(Stratum(kind, each, None) for each in TYPES)
    # What is left over in dividing goes to the first: types and halves alternate.
    return tuple(Stratum(kind, TYPES[number % 3], number % 2 == 0) for number in range(6))


def instances_of(folders: Sequence[Path]) -> list[Instance]:
    """Return everything that a judge answered and people can be shown, of some evaluation folders.

    Raises:
        InputError: a folder is no evaluation of episodes, or two have an episode of one method.
    """
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


def write_instances(drawn: Sequence[Instance], folder: Path, key: Path, seed: int) -> None:
    """Write tasks in shuffled order, copies of their pictures named by task, and the key.

    Raises:
        TargetError: the folder is not empty or cannot be written, or the key would lie in it or exists.
        InputError: pictures are missing; all of them are listed.
    """
    order = list(drawn)
    random.Random(seed).shuffle(order)
    files: dict[str, Path] = {}
    rows, tasks = [], {}
    for number, each in enumerate(order, 1):
        task = f"task_{number:04d}"
        tasks[task] = (each.item, each.method)
        sides = ["", ""]
        for side, pictures in enumerate(each.sides):
            names = {
                f"{PICTURES}/{task}_{'ab'[side]}{turn}{picture.suffix}": picture
                for turn, picture in enumerate(pictures, 1)
            }
            files |= names
            sides[side] = "|".join(names)
        kind = each.stratum.kind
        scores = "|".join((*CRITERIA[each.stratum.type], OVERALL[kind]))
        rows.append(
            (task, kind, each.stratum.type, each.name, each.description, *sides, VERDICT[kind], scores)
        )
    if missing := [path for path in files.values() if not path.is_file()]:
        what, fix = "a picture that the judge saw is missing", "give the folder that it was evaluated in"
        raise InputError([UserError(str(path), what=what, fix=fix) for path in missing])
    write_study(folder, key, (COLUMNS, rows), files, tasks)


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
