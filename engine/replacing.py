"""Whether a run is about to be replaced: what of it is gone, corrected or new in the sources named now."""

import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from ..errors import ConfigError
from ..schemas.canonical import digest
from .codec import decode
from .config import RunConfig
from .journal import Head, Journal, Known, read_listing
from .journal_file import NAME as JOURNAL
from .manifest import Manifest
from .pipeline import SOURCES, LoadedPipeline, Stage, load_object
from .sources import EDITS_ROLE, Fingerprint, Source, place_of
from .stage import Item, Made, Tools
from .walk import Walk, root_key

SHOWN = 5


@dataclass(frozen=True, slots=True)
class Change:
    """What other sources make of the items of a run."""

    # ids of the run that the sources have no more, or that now stand for something else
    gone: tuple[str, ...] = ()
    corrected: tuple[str, ...] = ()  # ids that stand for something else in the same files
    added: tuple[str, ...] = ()  # ids that the run does not have

    def line(self) -> str:
        """Return it as one line for people."""
        named = {"no longer there": self.gone, "corrected": self.corrected, "new": self.added}
        parts = [f"{len(ids)} {what} ({_some(ids)})" for what, ids in named.items() if ids]
        return f"the sources have changed: {', '.join(parts)}"


def changed_by(
    folder: Path, loaded: LoadedPipeline, known: Manifest, config: RunConfig, prints: tuple[Fingerprint, ...]
) -> Change:
    """Compare the items of a run with those of the sources that are named now, by id and content.

    Reads only. Where the files are does not matter, nor what the settings of other stages are.
    """
    identity = loaded.pipeline.identity
    now = [fingerprint for fingerprint in prints if fingerprint.role != EDITS_ROLE]
    before = [entry for entry in known.sources if entry.role != EDITS_ROLE]
    same = [fingerprint.field() for fingerprint in now] == [entry.field() for entry in before]
    if identity is None or same or not (folder / JOURNAL).exists():
        return Change()
    items, held = _items(loaded, known, config, prints), _held(folder, loaded, known)
    kept = {item for item, sha256 in held.items() if items.get(item, "") == sha256}
    others = [item for item in held if item in items and item not in kept]
    files = _same_files(folder, known, now, kept=bool(kept))
    return Change(
        gone=tuple(item for item in held if item not in items or (not files and item in others)),
        corrected=tuple(others) if files else (),
        added=tuple(item for item in items if item not in held),
    )


def refuse_gone(folder: Path, loaded: LoadedPipeline, change: Change) -> None:
    """Raise ConfigError where a run would lose items."""
    if not change.gone:
        return
    count, adding = len(change.gone), loaded.pipeline.adding
    raise ConfigError(
        f"--out {folder}",
        what=f"{count} of the run's items are not in these sources, or are something else there:"
        f" {_some(change.gone)}",
        fix="nothing was changed. Build into another folder with --out"
        + (f"; {adding.format(folder=folder)}" if adding else "")
        + "; or, if these sources are to take the place of the others, add --replace-sources",
    )


def _items(
    loaded: LoadedPipeline, known: Manifest, config: RunConfig, prints: tuple[Fingerprint, ...]
) -> dict[str, str | None]:
    """Return what the first stage would make of the sources; a run keeps nothing of it."""
    stage = loaded.stages[0]
    with tempfile.TemporaryDirectory(prefix="fabula-sources-") as scratch:
        tools = Tools(
            settings=config.stages[stage.name],
            created_at=known.created_at,
            seed=config.run.seed,
            paths=tuple(fingerprint.path for fingerprint in prints),
            store=Path(scratch),
        )
        fields = {SOURCES: [fingerprint.field() for fingerprint in prints]}
        made = {child.id: child.outcome for child in stage.run(Item(SOURCES, fields), tools)}
        return {
            item: _content(loaded, outcome.fields) if isinstance(outcome, Made) else None
            for item, outcome in made.items()
            if not isinstance(outcome, Made) or _content(loaded, outcome.fields) is not None
        }


def _held(folder: Path, loaded: LoadedPipeline, known: Manifest) -> dict[str, str | None]:
    """Return what the first stage made of the sources that the run was last made from."""
    stage = loaded.stages[0]
    with Journal.open(folder, writable=False) as journal:
        table = _table(journal, loaded, stage, known)
        if table is None:
            return {}
        heads = Known(journal, stage.name)
        held: dict[str, str | None] = {}
        for item, key in read_listing(journal, table):
            head = heads[key]
            if head.status != "made":
                held[item] = None
                continue
            content = _content(loaded, decode(journal.blobs([head.seq])[head.seq]))
            if content is not None:
                held[item] = content
        return held


def _table(journal: Journal, loaded: LoadedPipeline, stage: Stage, known: Manifest) -> Head | None:
    """Return the list of the run's items: that of its manifest's sources, else the last that there is."""
    tables = list(journal.heads(stage.name, part="table"))
    fields = [entry.field() for entry in known.sources]
    root = journal.head(root_key(fields))
    if root is not None:
        try:
            basis = Walk(loaded, known.config(loaded), journal).basis(stage)
        except ConfigError:  # settings of a version that had others
            return tables[-1] if tables else None
        key = basis.key(SOURCES, [root.outputs[name] for name in stage.spec.reads])
        same = next((table for table in tables if table.key == key), None)
        if same is not None:
            return same
    return tables[-1] if tables else None


def _content(loaded: LoadedPipeline, fields: Mapping[str, object]) -> str | None:
    """Return what makes an item the same item; None for one that does not come from the sources."""
    assert loaded.pipeline.identity is not None
    identity = load_object(loaded.pipeline.identity)(fields)
    return None if identity is None else digest(identity)


def _same_files(folder: Path, known: Manifest, now: list[Fingerprint], *, kept: bool) -> bool:
    """Whether the files of before are named again: at their place, or, where items stayed, by their name.

    What comes with the items, such as hand-written records, does not matter: only the first role does.
    """
    places = {place_of(Source(fingerprint.role, fingerprint.path)) for fingerprint in now}
    names = {(fingerprint.role, fingerprint.name) for fingerprint in now} if kept else set()
    listed = zip(known.source_list(folder), known.sources, strict=True)
    return all(
        place_of(source) in places or (entry.role, entry.name) in names
        for source, entry in listed
        if entry.role == known.sources[0].role
    )


def _some(ids: tuple[str, ...]) -> str:
    more = [f"and {len(ids) - SHOWN} more"] if len(ids) > SHOWN else []
    return ", ".join([*ids[:SHOWN], *more])
