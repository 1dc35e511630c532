"""Going through the stages of a run: where every item stands, with what the journal already holds."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..errors import InputError, UserError
from ..schemas.canonical import digest
from .codec import Basis, gather_fields, table_digest
from .config import RunConfig, models_of
from .journal import Head, Journal, Listing, read_listing
from .pipeline import MODEL, SOURCES, LoadedPipeline, Stage, dependencies
from .stage import Item
from .worker import Parts

_TOGETHER = 32  # items whose blobs are read at once

Ref = tuple[int, str]
"""Where a field is: ``seq`` of the result that holds it, and the field's digest."""


@dataclass(frozen=True, slots=True)
class Stop:
    """Why an item went no further."""

    stage: str
    status: str
    code: str | None
    reason: str | None


@dataclass(slots=True)
class Items:
    """The items of a run on their way through the stages.

    Attributes:
        live: ids of the items that are alive, in source order.
        columns: field -> item id -> where it is; only fields that are still needed.
        stops: the items that went no further.
    """

    live: list[str] = field(default_factory=list)
    columns: dict[str, dict[str, Ref]] = field(default_factory=dict)
    stops: dict[str, Stop] = field(default_factory=dict)

    @classmethod
    def root(cls, head: Head) -> "Items":
        """Return the one item that every run starts from."""
        return cls([SOURCES], {SOURCES: {SOURCES: (head.seq, head.outputs[SOURCES])}})

    def digests(self, item: str, fields: Sequence[str]) -> list[str]:
        """Return the digests of an item's fields."""
        return [self.columns[name][item][1] for name in fields]

    def place(self, head: Head) -> None:
        """Take over what a stage made of an item."""
        for name, sha256 in head.outputs.items():
            self.columns.setdefault(name, {})[head.item] = (head.seq, sha256)

    def drop_stopped(self) -> None:
        """Take items that stopped out of the living."""
        self.live = [item for item in self.live if item not in self.stops]

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
            if len(batch) == _TOGETHER:
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


def _places(columns: dict[str, dict[str, Ref]], item: str, fields: Sequence[str]) -> dict[int, list[str]]:
    places: dict[int, list[str]] = {}
    for name in fields:
        places.setdefault(columns[name][item][0], []).append(name)
    return places


class LazyItems:
    """Items whose fields are read while one goes through them; may be gone through again."""

    def __init__(self, items: Items, journal: Journal, ids: Sequence[str], fields: Sequence[str]) -> None:
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
        """Count one item."""
        setattr(self, status, getattr(self, status) + 1)


class Walk:
    """One pass through the stages.

    Attributes:
        items: where the items stand.
        counts: stage -> counts, of the stages passed so far.
    """

    def __init__(self, loaded: LoadedPipeline, config: RunConfig, journal: Journal) -> None:
        self.loaded = loaded
        self.config = config
        self.journal = journal
        self.items = Items()
        self.counts: dict[str, Counts] = {}
        self._parents: list[dict[str, str]] = []

    def walk(self, root: Head) -> None:
        """Pass all stages, from the item that stands for the sources."""
        self.items, self._parents = Items.root(root), []
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
        self, _stage: Stage, _basis: Basis, _owner: tuple[str, str], _known: dict[str, Head]
    ) -> Listing | None:
        """Return the list of an expansion or a gather, as (id, key), that is taken over; None for none."""
        return None

    def lacks_sources(self) -> bool:
        """Whether the files that an expansion found have moved, so that it has to look for them again."""
        return False

    def missing_items(self, stage: Stage, basis: Basis, todo: Sequence[tuple[str, str]]) -> None:
        """Deal with items, as (id, key), whose result in a map stage is not known."""
        raise NotImplementedError

    def missing_children(
        self, stage: Stage, basis: Basis, parent: tuple[str, str], known: dict[str, Head]
    ) -> Listing | None:
        """Return the children of a parent, as (id, key), whose expansion is not known; None leaves it."""
        raise NotImplementedError

    def missing_table(
        self, stage: Stage, basis: Basis, table: "Table", known: dict[str, Head]
    ) -> Listing | None:
        """Return the lines of a gather that is not known; None leaves it."""
        raise NotImplementedError

    def missing_group(self, stage: Stage, basis: Basis, group: "Group") -> None:
        """Deal with a group that is not known."""
        raise NotImplementedError

    def wait(self, stage: Stage, item: str, where: str) -> None:
        """Deal with an item that cannot be grouped before an earlier stage has passed all its children."""
        self.leave(stage, item, "pending", f"waits for {where}")

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
            self.items.place(head)
        else:
            self.items.stops[head.item] = Stop(stage.name, head.status, head.code, head.reason)

    def leave(self, stage: Stage, item: str, status: str, reason: str) -> None:
        """Stop an item at a stage whose result for it is not known."""
        self.counts[stage.name].add(status)
        self.items.stops[item] = Stop(stage.name, status, None, reason)

    def _map(self, stage: Stage, basis: Basis) -> None:
        known = {head.key: head for head in self.journal.heads(stage.name)}
        todo = []
        for item in self.items.live:
            key = basis.key(item, self.items.digests(item, stage.spec.reads))
            head = known.get(key)
            if head is None or self.again(stage, head):
                todo.append((item, key))
            else:
                self.settle(stage, head, ran=False)
        taken = self.taken(stage, basis, [entry for entry in todo if entry[1] not in known]) if todo else {}
        for _, key in todo:
            if key in taken:
                self.settle(stage, taken[key], ran=False)
        todo = [entry for entry in todo if entry[1] not in taken]
        if todo:
            self.missing_items(stage, basis, todo)

    def _expand(self, stage: Stage, basis: Basis) -> None:
        tables = {head.key: head for head in self.journal.heads(stage.name, part="table")}
        known = {head.key: head for head in self.journal.heads(stage.name)}
        children: list[tuple[str, str]] = []
        for parent in self.items.live:
            key = basis.key(parent, self.items.digests(parent, stage.spec.reads))
            table = tables.get(key)
            if table is not None:
                listing: Listing | None = read_listing(self.journal, table)
            else:
                listing = self.taken_table(stage, basis, (parent, key), known)
            old = _is_whole(listing, known) and not self.lacks_sources()
            old = old and not any(self.again(stage, known[key]) for _, key in listing or ())
            if not old:
                listing = self.missing_children(stage, basis, (parent, key), known)
            if listing is None:
                continue
            for child, child_key in listing:
                children.append((child, parent))
                self.settle(stage, known[child_key], ran=not old)
        parents = _unique(stage, children)
        self._parents.append(parents)
        self.items.live = list(parents)
        self.expanded(parents)

    def _group(self, stage: Stage, basis: Basis) -> None:
        parents = self._parents.pop()
        both = sorted(parents.keys() & set(parents.values()))
        if both:
            raise ValueError(f"stage {stage.name}: items have the ids of what they come from: {both[:5]}")
        self.grouped(parents)
        members: dict[str, list[str]] = {}
        for child in self.items.live:
            members.setdefault(parents[child], []).append(child)
        waiting = {
            parents[child]: stop.stage
            for child, stop in self.items.stops.items()
            if child in parents and stop.status in ("pending", "stale")
        }
        known = {head.key: head for head in self.journal.heads(stage.name)}
        self.items.live = [
            item for item in dict.fromkeys(parents.values()) if item in members or item in waiting
        ]
        for parent in self.items.live:
            if parent in waiting:
                self.wait(stage, parent, waiting[parent])
                continue
            group = Group.of(self.items, stage, basis, parent, members[parent])
            head = known.get(group.key)
            if head is None:
                head = self.taken(stage, basis, [(parent, group.key)]).get(group.key)
            if head is None or self.again(stage, head):
                self.missing_group(stage, basis, group)
            else:
                self.settle(stage, head, ran=False)

    def _gather(self, stage: Stage, basis: Basis) -> None:
        if not self.items.live:
            return
        table = Table.of(self.items, stage, basis)
        tables = list(self.journal.heads(stage.name, part="table"))
        table_found = next((head for head in reversed(tables) if head.key == table.key), None)
        if table_found is not None and stage.spec.stateful and table_found is not tables[-1]:
            table_found = None  # decided since on other items: what was decided last counts
        known = {head.key: head for head in self.journal.heads(stage.name)}
        if table_found is not None:
            listing: Listing | None = read_listing(self.journal, table_found)
        else:
            listing = self.taken_table(stage, basis, ("", table.key), known)
        old = _is_whole(listing, known)
        if not old:
            table.latest = tables[-1] if tables else None
            listing = self.missing_table(stage, basis, table, known)
        for _, key in listing or ():
            self.settle(stage, known[key], ran=not old)


def _is_whole(listing: Listing | None, known: Mapping[str, Head]) -> bool:
    """Whether a list is there with all that it names; a damaged journal may have lost some of that."""
    return listing is not None and all(key in known for _, key in listing)


@dataclass(slots=True)
class Table:
    """The input of a gather stage.

    Attributes:
        ids: the items, sorted.
        inputs: digests of the columns that the stage reads, and of the ids.
        key: the key of the whole result.
        latest: the last table that the stage left, whatever it was made from.
    """

    ids: list[str]
    inputs: Mapping[str, str]
    key: str
    latest: Head | None = None

    @classmethod
    def of(cls, items: Items, stage: Stage, basis: Basis) -> "Table":
        """Return the table that a gather stage would see now."""
        ids = sorted(items.live)
        inputs = {"items": digest(ids)}
        for name in stage.spec.reads:
            column = items.columns[name]
            inputs[name] = table_digest([(item, column[item][1]) for item in ids])
        return cls(ids, inputs, basis.key("", list(inputs.values())))


@dataclass(slots=True)
class Group:
    """The input of a group stage for one item.

    Attributes:
        item: the item that comes back.
        members: its living children, in their order.
        inputs: digests of the columns that the stage reads, and of the members' ids.
        key: the key of the result.
    """

    item: str
    members: list[str]
    inputs: Mapping[str, str]
    key: str

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


def _unique(stage: Stage, children: Sequence[tuple[str, str]]) -> dict[str, str]:
    """Return child -> parent.

    Raises:
        InputError: two children have the same id; all such ids are listed.
    """
    parents: dict[str, str] = {}
    problems = []
    for child, parent in children:
        if child in parents:
            where = f"stage {stage.name}: item {child}"
            fix = "rename one of the two in the sources"
            problems.append(UserError(where, what="two items have this id", fix=fix))
        parents[child] = parent
    if problems:
        raise InputError(problems)
    return parents
