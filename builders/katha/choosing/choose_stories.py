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
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, Self

from pydantic import Field

from ....engine.execute import RunRequest, execute
from ....engine.hooks import Event, Reporter
from ....engine.manifest import read_manifest
from ....engine.stage import Item, Made, Outcome, Rejected, StageSpec, Tools, stage
from ....engine.status import RunReport
from ....schemas.canonical import Json, pretty_bytes, write_atomic
from ....schemas.plain_files import read_json
from ....schemas.values import Own, vocabulary

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


# -- Turning away the stories that were not chosen


@stage(
    version=1,
    reads=("surplus",),
    writes=("chosen",),
    reject_codes={"surplus": "Enough stories of its kind were chosen."},
    keep={"surplus": "--balance with a greater number, or without it"},
)
def leave_surplus(item: Item, tools: Tools) -> Outcome:
    """Return that the story is chosen, or why it is not."""
    why = item["surplus"]
    return Made({"chosen": True}) if why is None else Rejected("surplus", why)


# -- What came of the quotas of a choice: which values have fewer stories than they were to have
# Stories that are rejected after the choice are not replaced: what was chosen depends on the pool alone, not
# on what models make of it. So the run says what is lacking.

QUOTAS = "quotas.json"
"""File of a run whose stories were chosen: how many were wanted and made, and which quotas fell short."""
_SHOWN = 5


@dataclass(slots=True)
class QuotaTally:
    """Counts of the records that were made, against the quotas of their choice."""

    settings: Settings  # of the choice
    stories: int = 0  # how many were made
    # what is balanced -> value -> how many were made
    counts: dict[str, Counter[str]] = field(default_factory=dict)

    @classmethod
    def of_run(cls, folder: Path) -> Self:
        """Return the tally of a run, with nothing counted."""
        return cls(Settings.model_validate(read_manifest(folder).settings["choose_stories"]))

    def add(self, record: Mapping[str, Json]) -> None:
        self.stories += 1
        collection = record["provenance"]["source_dataset"]
        for name, value in (
            *((name, record[name]) for name in ("narrative_type", "moral_label", "language")),
            ("collection", collection),
        ):
            self.counts.setdefault(name, Counter())[str(value)] += 1

    def write(self, folder: Path) -> None:
        """Write :data:`QUOTAS` into the run; where all stories are taken, there is no such file."""
        if self.settings.stories is None:
            (folder / QUOTAS).unlink(missing_ok=True)
        else:
            write_atomic(folder / QUOTAS, [pretty_bytes(self.document())])

    def document(self) -> Json:
        """Return the content of :data:`QUOTAS`: a quota falls short of what it comes to, rounded down."""
        short = [
            {"of": name, "value": value, "wanted": round(cap, 4), "made": made}
            for name, caps in sorted(self.settings.caps().items())
            for value, cap in sorted(caps.items())
            if (made := self.counts.get(name, Counter())[value]) < math.floor(cap)
        ]
        return {"stories": {"wanted": self.settings.stories, "made": self.stories}, "short": short}


def shortage(document: Json) -> str | None:
    """Return in words what :data:`QUOTAS` says is lacking; None where nothing is."""
    stories, short = document["stories"], document["short"]
    if stories["made"] >= stories["wanted"] and not short:
        return None
    rows = [f"{row['value']} ({row['made']} of {row['wanted']:g})" for row in short[:_SHOWN]]
    more = f" and {len(short) - _SHOWN} more" if len(short) > _SHOWN else ""
    quotas = f"; quotas that fell short: {', '.join(rows)}{more}" if rows else ""
    return (
        f"{stories['made']} of {stories['wanted']} stories were made{quotas}. {QUOTAS} has it all; a story "
        "that is rejected after the choice is not replaced, so choose more with --balance"
    )


def execute_told(request: RunRequest, reporter: Reporter | None = None) -> RunReport:
    """Execute a run, and tell the reporter which quotas fell short."""
    report = execute(request, reporter)
    path = request.folder / QUOTAS
    told = shortage(read_json(path)) if QUOTAS in report.outputs and path.is_file() else None
    if told is not None and reporter is not None:
        reporter.emit(Event("warning", data={"message": told}))
    return report


# -- Stage: train, validation, public and hidden test, 70/15/10/5, stratified; what was assigned never moves
#
# Strata are the pairs of narrative type and moral label. One with fewer stories than the setting ``least`` is
# collapsed: first over the moral labels (stratum = narrative type), then over the types as well.
# New stories, in an order fixed by a hash of their ids, go each to the split that lacks most, counting what
# it lacks in the story's stratum and what it lacks over all stories together. So the whole comes out at the
# shares exactly (5,000 stories in 96 strata: 3,500, 750, 500 and 250), and no stratum is off by two stories.
#
# Retellings of one story go into one split together: a group in which a story has a split already to that
# one, new groups before single stories, the largest first. A new story that is linked to stories of two
# splits would join them; it gets no split, and ``assemble_records`` turns it away.


class SplitSettings(Own):
    least: int = Field(default=20, ge=1, description="Stories that a stratum needs to stand by itself.")
    only: Literal["train", "validation", "public_test", "hidden_test"] | None = Field(
        default=None, description="The split of all new stories; null: the four, by their shares."
    )


@stage(
    version=2,
    shape="gather",
    reads=("labels", "links"),
    writes=("split", "stratum", "group", "joins"),
    settings=SplitSettings,
    stateful=True,
)
def assign_splits(items: Iterable[Item], tools: Tools) -> Mapping[str, Mapping[str, Json]]:
    """Return split and stratum of every story, and its group: the smallest id among its retellings, or null.

    ``joins`` is null but for a story that is linked to stories of several splits: it holds these links.
    """
    settings = tools.own(SplitSettings)
    labels, links = {}, []
    for item in items:
        labels[item.id] = (item["labels"]["narrative_type"], item["labels"]["moral_label"])
        links += item["links"]
    strata = strata_of(labels, settings.least)
    before = {
        key: str(fields["split"])
        for key, fields in tools.previous.items()
        if key in labels and fields["split"] is not None
    }
    groups = Groups.of(labels, links, before)
    units = [(stories, split or settings.only) for stories, split in groups.units()]
    splits = fill_splits({key: strata[key] for key in groups.root}, before, units)
    names = groups.names()
    return {
        key: {
            "split": splits.get(key), "stratum": strata[key], "group": names.get(key),
            "joins": groups.joins.get(key),
        }
        for key in sorted(labels)
    }  # fmt: skip


@dataclass(slots=True)
class Groups:
    """Stories that belong into one split, told apart from those of other splits."""

    # story id -> id that stands for its group; a story that would join two splits has none
    root: dict[str, str] = field(default_factory=dict)
    # the id that stands for a group -> its stories
    members: dict[str, list[str]] = field(default_factory=dict)
    split: dict[str, str] = field(default_factory=dict)  # the same -> the split that it has already
    # story id -> its links to stories of several splits
    joins: dict[str, list[Json]] = field(default_factory=dict)

    @classmethod
    def of(cls, ids: Iterable[str], links: Iterable[Json], before: Mapping[str, str]) -> "Groups":
        """Return the groups that links make: of stories with a split, then one new story after another."""
        near: dict[str, list[tuple[str, Json]]] = {}
        for link in links:
            first, second = link["stories"]
            near.setdefault(first, []).append((second, link))
            near.setdefault(second, []).append((first, link))
        groups = cls()
        for key in sorted(before):
            same = [other for other, _ in near.get(key, ()) if before.get(other) == before[key]]
            groups._add(key, before[key], same)
        for key in sorted(set(ids) - before.keys(), key=_split_order):
            met = [(other, link) for other, link in near.get(key, ()) if other in groups.root]
            splits = {groups.split.get(groups.root[other]) for other, _ in met} - {None}
            if len(splits) > 1:
                groups.joins[key] = [
                    {**link, "split": groups.split[groups.root[other]]}
                    for other, link in met
                    if groups.root[other] in groups.split
                ]
            else:
                groups._add(key, next(iter(splits), None), [other for other, _ in met])
        return groups

    def _add(self, key: str, split: str | None, linked: Sequence[str]) -> None:
        roots = {self.root[other] for other in linked if other in self.root}
        stories = [key, *(story for root in roots for story in self.members.pop(root))]
        for root in roots:
            self.split.pop(root, None)
        self.members[key] = stories
        self.root.update(dict.fromkeys(stories, key))
        if split is not None:
            self.split[key] = split

    def units(self) -> list[tuple[list[str], str | None]]:
        """Return the stories that go together, with the split that they have or None; large groups first."""
        units = [
            (sorted(group, key=_split_order), self.split.get(root)) for root, group in self.members.items()
        ]
        return sorted(units, key=lambda unit: (-len(unit[0]), _split_order(unit[0][0])))

    def names(self) -> dict[str, str]:
        """Return the group of each story that is not alone: the smallest id of it."""
        groups = [stories for stories in self.members.values() if len(stories) > 1]
        return {story: min(stories) for stories in groups for story in stories}


def strata_of(labels: Mapping[str, tuple[str | None, str | None]], least: int) -> dict[str, str]:
    """Return the stratum of each story: ``type/label``, ``type/*`` where that is too small, or ``*``.

    A missing label is a label of its own, ``none``.
    """
    named = {key: (kind or "none", moral or "none") for key, (kind, moral) in labels.items()}
    pairs = Counter(named.values())
    small_of_type = Counter(kind for kind, moral in named.values() if pairs[kind, moral] < least)
    strata = {}
    for key, (kind, moral) in named.items():
        if pairs[kind, moral] >= least:
            strata[key] = f"{kind}/{moral}"
        else:
            strata[key] = f"{kind}/*" if small_of_type[kind] >= least else "*"
    return strata


def fill_splits(
    strata: Mapping[str, str],
    before: Mapping[str, str],
    units: Sequence[tuple[Sequence[str], str | None]] | None = None,
) -> dict[str, str]:
    """Return the split of every story: earlier assignments kept, new ones by largest deficit.

    ``strata``: story id -> stratum.
    """
    if units is None:
        units = [([key], None) for key in sorted(strata.keys() - before.keys(), key=_split_order)]
    filling = _Filling({stratum: Counter() for stratum in strata.values()}, len(strata))
    splits: dict[str, str] = {}
    for key, split in before.items():
        splits[key] = filling.add(strata[key], split)
    for unit, known in units:
        fresh = [key for key in unit if key not in splits]
        split = known or (filling.choose([strata[key] for key in fresh]) if fresh else "")
        for key in fresh:
            splits[key] = filling.add(strata[key], split)
    return splits


@dataclass(slots=True)
class _Filling:
    """What the splits hold so far, in each stratum and over all."""

    strata: dict[str, Counter[str]]
    stories: int
    overall: Counter[str] = field(default_factory=Counter)

    def add(self, stratum: str, split: str) -> str:
        self.strata[stratum][split] += 1
        self.overall[split] += 1
        return split

    def choose(self, strata: Sequence[str]) -> str:
        """Return the split that lacks most of the stories of one unit, among those that have room for it."""
        weights = vocabulary("split").targets
        shares = {split: weight / sum(weights.values()) for split, weight in weights.items()}
        room = {split: share * self.stories - self.overall[split] for split, share in shares.items()}
        fitting = {split for split in room if len(strata) == 1 or room[split] >= len(strata)}
        fitting = fitting or {max(room, key=room.__getitem__)}

        def lacks(split: str) -> float:
            share, total, held = shares[split], self.overall.total(), self.overall[split]
            counts = [self.strata[stratum] for stratum in strata]
            return sum(share * (count.total() + total + 2) - count[split] - held for count in counts)

        return max((split for split in weights if split in fitting), key=lacks)


def _split_order(key: str) -> str:
    return hashlib.sha256(key.encode("utf-8")).hexdigest()
