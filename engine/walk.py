"""Going through the stages of a run: where every item stands, with what the journal already holds."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby, islice
from typing import Any, NamedTuple

from ..errors import InputError, UserError
from ..schemas.canonical import digest, digest_rows
from .config import RunConfig, models_of
from .journal import Basis, Head, Journal, Known, Listing, gather_fields, read_listing, table_digest
from .pipeline import MODEL, SOURCES, LoadedPipeline, Stage, dependencies
from .pool import Parts
from .spilled import HELD, Spilled, keys_only
from .stage import Item

TOGETHER = 32  # items whose blobs are read at once
_TAKEN_TOGETHER = 1000  # results that are looked for in other runs at once

Ref = tuple[int, str]
"""Where a field is: ``seq`` of the result that holds it, and the field's digest."""


class Stop(NamedTuple):
    """Why an item went no further."""

    stage: str
    status: str
    code: str | None
    reason: str | None


@dataclass(slots=True)
class Items:
    """The items of a run on their way through the stages, in memory as far as :class:`Spilled` holds them."""

    live: Spilled[None] = field(default_factory=keys_only)  # ids of the items that are alive, in source order
    # field -> item id -> where it is; only fields that are still needed
    columns: dict[str, Spilled[Ref]] = field(default_factory=dict)
    stops: Spilled[Stop] = field(default_factory=Spilled)  # the items that went no further
    _stopped: Spilled[None] = field(default_factory=keys_only)

    @classmethod
    def root(cls, head: Head) -> "Items":
        """Return the one item that every run starts from."""
        items = cls(keys_only([SOURCES]))
        items.place(head)
        return items

    def digests(self, item: str, fields: Sequence[str]) -> list[str]:
        return [self.columns[name][item][1] for name in fields]

    def place(self, head: Head) -> None:
        """Take over what a stage made of an item."""
        for name, sha256 in head.outputs.items():
            if name not in self.columns:
                self.columns[name] = Spilled()
            self.columns[name][head.item] = (head.seq, sha256)

    def stop(self, item: str, stop: Stop) -> None:
        """Let an item go no further."""
        self.stops[item] = stop
        self._stopped[item] = None

    def drop_stopped(self) -> None:
        """Take items that stopped out of the living."""
        for item in self._stopped:
            if item in self.live:
                del self.live[item]
        self._stopped = keys_only()

    def keep_columns(self, needed: frozenset[str]) -> None:
        """Forget the fields that nobody reads any more."""
        for name in [name for name in self.columns if name not in needed]:
            del self.columns[name]

    def parts(
        self, journal: Journal, items: Iterable[str], fields: Sequence[str]
    ) -> Iterator[tuple[str, Parts]]:
        """Yield items with the blobs that hold their fields, reading a few at a time."""
        batch: list[str] = []
        for item in items:
            batch.append(item)
            if len(batch) == TOGETHER:
                yield from self._parts(journal, batch, fields)
                batch = []
        yield from self._parts(journal, batch, fields)

    def _parts(
        self, journal: Journal, batch: Sequence[str], fields: Sequence[str]
    ) -> Iterator[tuple[str, Parts]]:
        places = [_places(self.columns, item, fields) for item in batch]
        blobs = journal.blobs(seq for seqs in places for seq in seqs)
        for item, names_by_seq in zip(batch, places, strict=True):
            yield item, tuple((blobs[seq], tuple(names)) for seq, names in names_by_seq.items())


def _places(columns: Mapping[str, Spilled[Ref]], item: str, fields: Sequence[str]) -> dict[int, list[str]]:
    places: dict[int, list[str]] = {}
    for name in fields:
        places.setdefault(columns[name][item][0], []).append(name)
    return places


class LazyItems:
    """Items whose fields are read while one goes through them; may be gone through again."""

    def __init__(self, items: Items, journal: Journal, ids: Collection[str], fields: Sequence[str]) -> None:
        self._items, self._journal, self._ids, self._fields = items, journal, ids, fields

    def __len__(self) -> int:
        return len(self._ids)

    def __iter__(self) -> Iterator[Item]:
        for item, parts in self._items.parts(self._journal, self._ids, self._fields):
            yield Item(item, gather_fields(parts))


@dataclass(slots=True)
class Counts:
    """Items that a stage made, rejected, failed and left; and how many results were reused, how many ran."""

    made: int = 0
    rejected: int = 0
    failed: int = 0
    pending: int = 0
    stale: int = 0
    reused: int = 0
    ran: int = 0

    def add(self, status: str) -> None:
        setattr(self, status, getattr(self, status) + 1)


class Walk:
    """One pass through the stages.

    Attributes:
        root: the item that stands for the sources.
        items: where the items stand.
        counts: stage -> counts, of the stages passed so far.
        without: item, and where and why something of it was made without a usable answer.
    """

    def __init__(self, loaded: LoadedPipeline, config: RunConfig, journal: Journal) -> None:
        self.loaded = loaded
        self.config = config
        self.journal = journal
        self.root: Head
        self.items = Items()
        self.counts: dict[str, Counts] = {}
        self.without: list[tuple[str, Stop]] = []
        self._parents: list[Spilled[str]] = []

    def walk(self, root: Head) -> None:
        """Pass all stages, from the item that stands for the sources."""
        self.root, self.items, self._parents, self.without = root, Items.root(root), [], []
        shapes = {"map": self._map, "expand": self._expand, "gather": self._gather, "group": self._group}
        for index, stage in enumerate(self.loaded.stages):
            self.counts[stage.name] = Counts()
            self.before(stage)
            shapes[stage.spec.shape](stage, self.basis(stage))
            self.items.drop_stopped()
            self.items.keep_columns(self.loaded.needed_after(index))
            self.after(stage)

    def basis(self, stage: Stage) -> Basis:
        """Return what the stage's results depend on, whatever the item."""
        own = self.config.stages[stage.name]
        settings = {"seed": self.config.run.seed, "settings": own.as_json()}
        specs = models_of(own)
        needs = dependencies(stage.spec, asks=bool(specs))
        needs.update((f"{MODEL}{spec}", digest(self.config.models[spec].identity())) for spec in specs)
        return Basis(stage.name, stage.spec.version, settings, needs)

    # -- what subclasses decide

    def before(self, stage: Stage) -> None:
        """Called before a stage is passed."""

    def after(self, stage: Stage) -> None:
        """Called when a stage has been passed."""

    def again(self, stage: Stage, head: Head) -> bool:
        """Whether a known result is to be made again."""
        raise NotImplementedError

    def taken(self, _stage: Stage, _basis: Basis, _wanted: Sequence[tuple[str, str]]) -> dict[str, Head]:
        """Return results of items, as (id, key), that are taken over from other runs, by key."""
        return {}

    def taken_table(
        self, _stage: Stage, _basis: Basis, _owner: tuple[str, str], _known: Known
    ) -> Listing | None:
        """Return the list of an expansion or a gather, as (id, key), that is taken over; None for none."""
        return None

    def lacks_sources(self) -> bool:
        """Whether the files that an expansion found have moved, so that it has to look for them again."""
        return False

    def missing_items(self, stage: Stage, basis: Basis, todo: Spilled[str]) -> None:
        """Deal with items whose result in a map stage is not known: id -> key."""
        raise NotImplementedError

    def missing_children(
        self, stage: Stage, basis: Basis, parent: tuple[str, str], known: Known
    ) -> Listing | None:
        """Return the children of a parent, as (id, key), whose expansion is not known; None leaves it."""
        raise NotImplementedError

    def missing_table(self, stage: Stage, basis: Basis, table: "Table", known: Known) -> Listing | None:
        """Return the lines of a gather that is not known; None leaves it."""
        raise NotImplementedError

    def missing_group(self, stage: Stage, basis: Basis, group: "Group") -> None:
        """Deal with a group that is not known."""
        raise NotImplementedError

    def wait(self, stage: Stage, item: str, where: str) -> None:
        """Deal with an item that cannot be grouped before an earlier stage has passed all its children."""
        self.leave(stage, item, "pending", f"waits for {where}")

    def listed(self, stage: Stage, table: Head) -> None:
        """Called with a known table whose list is used, of an expand or a gather."""

    def expanded(self, parents: Mapping[str, str]) -> None:
        """Called with child -> parent when an expand stage has been passed."""

    def grouped(self, parents: Mapping[str, str]) -> None:
        """Called with child -> parent when a group stage is about to be passed."""

    # -- the four shapes

    def settle(self, stage: Stage, head: Head, *, ran: bool) -> None:
        """Take over a result: the item goes on with what was made, or stops."""
        counts = self.counts[stage.name]
        counts.add(head.status)
        counts.add("ran" if ran else "reused")
        if head.status == "made":
            if head.code is not None:
                self.without.append((head.item, Stop(stage.name, head.status, head.code, head.reason)))
            self.items.place(head)
        else:
            self.items.stop(head.item, Stop(stage.name, head.status, head.code, head.reason))

    def leave(self, stage: Stage, item: str, status: str, reason: str) -> None:
        """Stop an item at a stage whose result for it is not known."""
        self.counts[stage.name].add(status)
        self.items.stop(item, Stop(stage.name, status, None, reason))

    def _map(self, stage: Stage, basis: Basis) -> None:
        known = Known(self.journal, stage.name)
        todo: Spilled[str] = Spilled()
        new: Spilled[str] = Spilled()
        for item in self.items.live:
            key = basis.key(item, self.items.digests(item, stage.spec.reads))
            head = known.get(key)
            if head is None or self.again(stage, head):
                todo[item] = key
                if head is None:
                    new[item] = key
            else:
                self.settle(stage, named(head, item), ran=False)
        left = iter(new.items())
        while some := list(islice(left, _TAKEN_TOGETHER)):
            taken = self.taken(stage, basis, some)
            for item, key in some:
                if key in taken:
                    self.settle(stage, taken[key], ran=False)
                    del todo[item]
        if todo:
            self.missing_items(stage, basis, todo)

    def _expand(self, stage: Stage, basis: Basis) -> None:
        tables, known = Known(self.journal, stage.name, part="table"), Known(self.journal, stage.name)
        parents: Spilled[str] = Spilled()
        twice = []
        for parent in self.items.live:
            key = basis.key(parent, self.items.digests(parent, stage.spec.reads))
            table = tables.get(key)
            if table is not None:
                listing: Listing | None = read_listing(self.journal, table)
            else:
                listing = self.taken_table(stage, basis, (parent, key), known)
            old = not self.lacks_sources() and _is_whole(listing, known, lambda head: self.again(stage, head))
            if not old:
                listing = self.missing_children(stage, basis, (parent, key), known)
            elif table is not None:
                self.listed(stage, table)
            if listing is None:
                continue
            for child, child_key in listing:
                if child in parents:
                    twice.append(child)
                parents[child] = parent
                self.settle(stage, named(known[child_key], child), ran=not old)
        _refuse_twice(stage, twice)
        self._parents.append(parents)
        self.items.live = keys_only(parents)
        self.expanded(parents)

    def _group(self, stage: Stage, basis: Basis) -> None:
        parents = self._parents.pop()
        both = sorted({parent for parent in parents.values() if parent in parents})
        if both:
            raise ValueError(f"stage {stage.name}: items have the ids of what they come from: {both[:5]}")
        self.grouped(parents)
        known, live = Known(self.journal, stage.name), keys_only()
        # The children of an item follow each other.
        for parent, pairs in groupby(parents.items(), key=lambda pair: pair[1]):
            children = [child for child, _ in pairs]
            members = [child for child in children if child in self.items.live]
            where = self._waits_for(children)
            if members or where:
                live[parent] = None
            if where:
                self.wait(stage, parent, where)
            elif members:
                group = Group.of(self.items, stage, basis, parent, members)
                head = known.get(group.key)
                if head is None:
                    head = self.taken(stage, basis, [(parent, group.key)]).get(group.key)
                if head is None or self.again(stage, head):
                    self.missing_group(stage, basis, group)
                else:
                    self.settle(stage, named(head, parent), ran=False)
        self.items.live = live

    def _waits_for(self, items: Iterable[str]) -> str | None:
        """Return the last stage at which one of some items waits; None where none does."""
        stops = [self.items.stops[item] for item in items if item in self.items.stops]
        stages = {stop.stage for stop in stops if stop.status in ("pending", "stale")}
        return next((name for name in reversed(self.loaded.names()) if name in stages), None)

    def _gather(self, stage: Stage, basis: Basis) -> None:
        if not self.items.live:
            return
        table = Table.of(self.items, stage, basis)
        tables = list(self.journal.heads(stage.name, part="table"))
        table_found = next((head for head in reversed(tables) if head.key == table.key), None)
        if table_found is not None and stage.spec.stateful and table_found is not tables[-1]:
            table_found = None  # decided since on other items: what was decided last counts
        known = Known(self.journal, stage.name)
        if table_found is not None:
            listing: Listing | None = read_listing(self.journal, table_found)
        else:
            listing = self.taken_table(stage, basis, ("", table.key), known)
        old = _is_whole(listing, known, lambda _: False)
        if not old:
            table_found = None
            table.latest = tables[-1] if tables else None
            listing = self.missing_table(stage, basis, table, known)
        if table_found is not None:
            self.listed(stage, table_found)
        for item, key in listing or ():
            self.settle(stage, named(known[key], item), ran=not old)


def named(head: Head, item: str) -> Head:
    """Return a result under the item that its key is of, whatever a damaged row calls it."""
    return head if head.item == item else head._replace(item=item)


def _is_whole(listing: Listing | None, known: Known, again: Callable[[Head], bool]) -> bool:
    """Whether a list is there with all that it names, and nothing of that is to be made again.

    A damaged journal may have lost some of it.
    """
    if listing is None:
        return False
    count, first = 0, 0
    for _, key in listing:
        head = known.get(key)
        if head is None or again(head):
            return False
        first = first or head.seq
        count += 1
    if count > HELD:
        known.rewind(first)
    return True


@dataclass(slots=True)
class Table:
    """The input of a gather stage."""

    ids: Collection[str]  # the living items, sorted
    inputs: Mapping[str, str]  # digests of the columns that the stage reads, and of the ids
    key: str  # the key of the whole result
    latest: Head | None = None  # the last table that the stage left, whatever it was made from

    @classmethod
    def of(cls, items: Items, stage: Stage, basis: Basis) -> "Table":
        """Return the table that a gather stage would see now."""
        ids = items.live.in_order()
        inputs = {"items": digest_rows(ids)}
        for name in stage.spec.reads:
            column = items.columns[name]
            inputs[name] = table_digest((item, column[item][1]) for item in ids)
        return cls(ids, inputs, basis.key("", list(inputs.values())))


@dataclass(slots=True)
class Group:
    """The input of a group stage for one item."""

    item: str  # the item that comes back
    members: list[str]  # its living children, in their order
    inputs: Mapping[str, str]  # digests of the columns that the stage reads, and of the members' ids
    key: str  # the key of the result

    @classmethod
    def of(cls, items: Items, stage: Stage, basis: Basis, item: str, members: list[str]) -> "Group":
        """Return what a group stage would see now of an item and its living children."""
        inputs = {"items": digest(members)}
        for name in stage.spec.reads:
            column = items.columns[name]
            inputs[name] = table_digest([(member, column[member][1]) for member in members])
        return cls(item, members, inputs, basis.key(item, list(inputs.values())))


def root_key(sources: Any) -> str:  # noqa: ANN401 - a JSON value
    """Return the key of the item that stands for the sources."""
    return digest([SOURCES, sources])


def _refuse_twice(stage: Stage, ids: Iterable[str]) -> None:
    """Raise InputError where ids were given out twice; all of them are listed."""
    fix = "rename one of the two in the sources"
    problems = [
        UserError(f"stage {stage.name}: item {item}", what="two items have this id", fix=fix) for item in ids
    ]
    if problems:
        raise InputError(problems)
