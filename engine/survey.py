"""The walk that only looks: what a run holds, what is stale or missing, and why. It writes nothing."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..errors import RunError
from .journal import Basis, Head, Journal, Known, Listing, Origin, read_listing
from .manifest import Manifest, fingerprint, read_manifest, with_edits
from .pipeline import MODEL, PROMPT, SOURCES, WAITS, LoadedPipeline, Pipeline, Stage, load_pipeline
from .spilled import Spilled, keys_only
from .walk import Group, Items, Ref, Table, Walk, root_key

NEW = "new"


class Explainer:
    """Compares what results were made from with what they would be made from now."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._facts: dict[str, Mapping[str, Any]] = {}

    def reasons(self, basis: Basis, inputs: Mapping[str, str], origin: Origin | None) -> tuple[str, ...]:
        """Return the differences, such as ``stage version 1 -> 2`` or ``setting max_words changed``.

        ``origin``: what the last result was made from; None when there was none.
        """
        if origin is None:
            return (NEW,)
        reasons = []
        if origin.version != basis.version:
            reasons.append(f"stage version {origin.version} -> {basis.version}")
        if origin.settings != basis.settings_digest:
            reasons.extend(_settings(self._fact(f"settings:{origin.settings}"), basis.settings))
        if origin.libraries != basis.libraries_digest:
            reasons.extend(_libraries(self._fact(f"libraries:{origin.libraries}"), basis.libraries))
        for name in sorted({*inputs, *origin.inputs}):
            if inputs.get(name) != origin.inputs.get(name):
                reasons.append("items changed" if name == "items" else f"input {name} changed")
        return tuple(reasons) or ("failed before",)

    def _fact(self, name: str) -> Mapping[str, Any]:
        if name not in self._facts:
            self._facts[name] = self._journal.fact(name) or {}
        return self._facts[name]


def _settings(before: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    old, new = before.get("settings", {}), now["settings"]
    settings = [f"setting {key} changed" for key in sorted({*old, *new}) if old.get(key) != new.get(key)]
    if before.get("seed") != now["seed"]:
        settings.append(f"seed {before.get('seed')} -> {now['seed']}")
    return settings


def _libraries(before: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    return [
        f"{name} changed"
        if name.startswith((PROMPT, MODEL))
        else f"library {name} {before.get(name, 'not used')} -> {now.get(name, 'not used')}"
        for name in sorted({*before, *now})
        if before.get(name) != now.get(name)
    ]


@dataclass(slots=True)
class Passage:
    """How one item passed one stage."""

    status: str  # ``made``, ``rejected``, ``failed``, ``stale`` or ``pending``
    head: Head | None  # the result; for a stale one, the last that there was
    reads: dict[str, Ref] = field(default_factory=dict)  # where the fields that the stage read are
    reasons: tuple[str, ...] = ()  # why the result is stale or pending


class Survey(Walk):
    """Passes the stages of a run with what its journal holds.

    Attributes:
        reasons: stage -> reason -> how many items are stale or pending because of it.
        notes: remarks for people.
        passages: stage -> how the watched item passed it.
        kept: the items, alive or not, with the places of the fields that were to be kept.
    """

    def __init__(
        self, loaded: LoadedPipeline, manifest: Manifest, journal: Journal, watch: str | None = None
    ) -> None:
        super().__init__(loaded, manifest.config(loaded), journal)
        self.kept = Items()
        self._keep: tuple[str, ...] = ()
        self.reasons: dict[str, Counter[str]] = {}
        self.notes: list[str] = []
        self.passages: dict[str, Passage] = {}
        self._watch = watch
        self._shard = manifest.shard
        self._apart: list[Spilled[str]] = []  # children whose items have come back, with these
        self._explainer = Explainer(journal)
        self._last: tuple[tuple[str, str], Spilled[int]] | None = None

    def before(self, stage: Stage) -> None:
        """Count the items that wait for an earlier stage."""
        self.reasons[stage.name] = Counter()
        if stage.spec.shape == "group":
            self._apart.append(self._parents[-1])
        for item, stop in self.items.stops.items():
            if stop.status not in ("pending", "stale") or item == SOURCES:
                continue
            if any(item in children for children in self._apart):
                continue
            status = "stale" if item in self._last_of(stage) else "pending"
            self.counts[stage.name].add(status)
            self._note(stage, item, status, (f"waits for {stop.stage}",))

    def keep(self, fields: tuple[str, ...]) -> None:
        """Choose the fields whose places are kept beyond the stages that read them."""
        self._keep = fields

    def after(self, stage: Stage) -> None:
        """Keep the places of the chosen fields that the stage wrote."""
        if self._keep and stage.spec.shape in ("expand", "group"):
            self.kept.live = keys_only(self.items.live)
        for name in set(stage.spec.writes).intersection(self._keep, self.items.columns):
            self.kept.columns[name] = self.items.columns[name]

    def again(self, stage: Stage, head: Head) -> bool:  # noqa: ARG002 - asked of every walk
        """Nothing is made here."""
        return False

    def expanded(self, parents: Mapping[str, str]) -> None:
        """Leave out the items of other shards."""
        if self._shard is not None and set(parents.values()) == {SOURCES}:
            for item in self.loaded.others(self._shard, parents):
                self.items.stops.pop(item, None)
            others = self.loaded.others(self._shard, self.items.live)
            self.items.live = keys_only(item for item in self.items.live if item not in others)

    def _gather(self, stage: Stage, basis: Basis) -> None:
        if self._shard is None:
            super()._gather(stage, basis)
            return
        # Only the run of all shards knows the items that the key is made from: what it decided last counts.
        tables = list(self.journal.heads(stage.name, part="table"))
        lines: Spilled[str] = Spilled()
        if tables:
            lines.update((item, key) for item, key in read_listing(self.journal, tables[-1]))
            self.listed(stage, tables[-1])
        known = Known(self.journal, stage.name)
        for item in self.items.live:
            if item in lines:
                self.settle(stage, known[lines[item]], ran=False)
            else:
                self._miss(stage, item, (WAITS,))

    def settle(self, stage: Stage, head: Head, *, ran: bool) -> None:
        """Take over a result; remember it for the watched item."""
        if head.item == self._watch:
            self.passages[stage.name] = Passage(head.status, head, self._reads(stage, head.item))
        super().settle(stage, head, ran=ran)

    def missing_items(self, stage: Stage, basis: Basis, todo: Spilled[str]) -> None:
        """Say for each item why its result is missing."""
        for item in todo:
            digests = self.items.digests(item, stage.spec.reads)
            inputs = dict(zip(stage.spec.reads, digests, strict=True))
            self._miss(stage, item, self._explainer.reasons(basis, inputs, self._origin(stage, item)))

    def missing_children(
        self, stage: Stage, basis: Basis, parent: tuple[str, str], known: Known
    ) -> Listing | None:
        """Say why an expansion is missing, and go on with the last one, if there is any."""
        del known  # its listing is looked up by time, not by key
        item, _ = parent
        origin = self._origin(stage, item, part="table")
        inputs = dict(zip(stage.spec.reads, self.items.digests(item, stage.spec.reads), strict=True))
        reasons = self._explainer.reasons(basis, inputs, origin)
        if origin is None:
            self._miss(stage, item, reasons)
            return None
        table = self.journal.head_at(origin.seq)
        assert table is not None
        listing = read_listing(self.journal, table)
        heads = Known(self.journal, stage.name)
        made = next((head for _, key in listing if (head := heads[key]).status == "made"), None)
        if made is not None and not made.outputs.keys() >= set(stage.spec.writes):
            self._miss(stage, item, reasons)  # an earlier version made less than later stages read now
            return None
        count = len(listing)
        self.reasons[stage.name].update(dict.fromkeys(reasons, count))
        self.counts[stage.name].stale += count
        self.notes.append(
            f"{stage.name} would run again ({', '.join(reasons)}); later stages are shown as after "
            "its last run"
        )
        return listing

    def missing_table(self, stage: Stage, basis: Basis, table: Table, known: Known) -> Listing | None:
        """Say why a gathered table is missing."""
        del known  # each item's last result is looked up by time, not by key
        waiting = {stop.stage for stop in self.items.stops.values() if stop.status in ("pending", "stale")}
        if waiting:
            reasons: tuple[str, ...] = tuple(f"waits for {name}" for name in sorted(waiting))
        else:
            reasons = self._explainer.reasons(basis, table.inputs, self._origin(stage, "", part="table"))
        for item in table.ids:
            self._miss(stage, item, reasons)
        return None

    def wait(self, stage: Stage, item: str, where: str) -> None:
        """Say that an item waits for its children."""
        self._miss(stage, item, (f"waits for {where}",))

    def missing_group(self, stage: Stage, basis: Basis, group: Group) -> None:
        """Say why a group is missing."""
        reasons = self._explainer.reasons(basis, group.inputs, self._origin(stage, group.item))
        self._miss(stage, group.item, reasons)

    def _last_of(self, stage: Stage, part: str = "item") -> Spilled[int]:
        if self._last is None or self._last[0] != (stage.name, part):
            self._last = (stage.name, part), self.journal.last_of_items(stage.name, part=part)
        return self._last[1]

    def _origin(self, stage: Stage, item: str, part: str = "item") -> Origin | None:
        seq = self._last_of(stage, part).get(item)
        return None if seq is None else self.journal.origin(seq)

    def _miss(self, stage: Stage, item: str, reasons: tuple[str, ...]) -> None:
        status = "stale" if item in self._last_of(stage) else "pending"
        self._note(stage, item, status, reasons)
        self.leave(stage, item, status, "; ".join(reasons))

    def _note(self, stage: Stage, item: str, status: str, reasons: tuple[str, ...]) -> None:
        self.reasons[stage.name].update(reasons)
        if item == self._watch:
            seq = self._last_of(stage).get(item)
            head = None if seq is None else self.journal.head_at(seq)
            self.passages[stage.name] = Passage(status, head, self._reads(stage, item), reasons)

    def _reads(self, stage: Stage, item: str) -> dict[str, Ref]:
        columns = self.items.columns
        return {name: columns[name][item] for name in stage.spec.reads if item in columns.get(name, {})}


@contextmanager
def surveyed(
    folder: Path,
    pipeline: Pipeline,
    watch: str | None = None,
    sets: Sequence[str] = (),
    keep: tuple[str, ...] = (),
    walker: Callable[..., Survey] | None = None,
) -> Iterator[Survey]:
    """Walk through a run without writing anything, also while another process works on it."""
    folder = Path(folder).absolute()
    manifest = read_manifest(folder).with_settings(sets)
    loaded = load_pipeline(pipeline)
    if manifest.kind != loaded.name:
        raise RunError(
            str(folder), what=f"this is a run of kind {manifest.kind}, not {loaded.name}",
            fix="use the commands for that kind",
        )  # fmt: skip
    with Journal.open(folder, writable=False) as journal:
        survey = (walker or Survey)(loaded, manifest, journal, watch)
        if manifest.shard is not None:
            survey.notes.append(f"this is shard {manifest.shard}; `fabula run merge` makes one run of all")
        survey.keep(keep)
        survey.walk(_root(folder, manifest, journal, survey.notes))
        yield survey


def _root(folder: Path, manifest: Manifest, journal: Journal, notes: list[str]) -> Head:
    """Return the item that stands for the sources as they are now."""
    listed = manifest.source_list(folder)
    known = {source: entry for source, entry in zip(listed, manifest.sources, strict=True)}
    seen = []
    for source in with_edits(listed, folder):
        try:
            seen.append(fingerprint(source).field())
        except OSError as error:
            notes.append(f"{source.path} cannot be read ({error.strerror}); taken as unchanged")
            seen.append(known[source].field())
    key = root_key(seen)
    # Not in the journal: the sources changed since. Nothing reads this item's content here, only its digest.
    return journal.head(key) or Head(0, key, SOURCES, "made", None, None, {SOURCES: key})
