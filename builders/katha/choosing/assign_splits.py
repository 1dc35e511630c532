"""Stage: train, validation, public and hidden test, 70/15/10/5, stratified; what was assigned never moves.

Strata are the pairs of narrative type and moral label. One with fewer stories than the setting ``least`` is
collapsed: first over the moral labels (stratum = narrative type), then over the types as well.
New stories, in an order fixed by a hash of their ids, go each to the split that lacks most, counting what
it lacks in the story's stratum and what it lacks over all stories together. So the whole comes out at the
shares exactly (5,000 stories in 96 strata: 3,500, 750, 500 and 250), and no stratum is off by two stories.

Retellings of one story go into one split together: a group in which a story has a split already to that
one, new groups before single stories, the largest first. A new story that is linked to stories of two splits
would join them; it gets no split, and ``assemble_records`` turns it away.
"""

import hashlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from pydantic import Field

from ....engine.stage import Item, StageSpec, Tools
from ....schemas.canonical import Json
from ....schemas.values import Own
from ....schemas.vocabulary import vocabulary


class Settings(Own):
    """Settings of the stage."""

    least: int = Field(default=20, ge=1, description="Stories that a stratum needs to stand by itself.")


SPEC = StageSpec(
    name="assign_splits",
    version=2,
    shape="gather",
    reads=("labels", "links"),
    writes=("split", "stratum", "group", "joins"),
    settings=Settings,
    stateful=True,
)


def run(items: Iterable[Item], tools: Tools) -> Mapping[str, Mapping[str, Json]]:
    """Return split and stratum of every story, and its group: the smallest id among its retellings, or null.

    ``joins`` is null but for a story that is linked to stories of several splits: it holds these links.
    """
    settings = tools.own(Settings)
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
    splits = fill_splits({key: strata[key] for key in groups.root}, before, groups.units())
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
        for key in sorted(set(ids) - before.keys(), key=_order):
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
        units = [(sorted(group, key=_order), self.split.get(root)) for root, group in self.members.items()]
        return sorted(units, key=lambda unit: (-len(unit[0]), _order(unit[0][0])))

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
        units = [([key], None) for key in sorted(strata.keys() - before.keys(), key=_order)]
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


def _order(key: str) -> str:
    return hashlib.sha256(key.encode("utf-8")).hexdigest()
