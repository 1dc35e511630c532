"""Adding stories to a finished run, without anything that is there moving.

What could move it is looked for before anything is written: sources that changed, a stage or library of
another version, stories that the run has under this or another id. Then the run goes on with the new sources
behind its own. Before any output is replaced, every record is compared with what it was.

What becomes of new stories before they are added: the stages are rehearsed for them alone.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from ...engine.batches.books import Batching
from ...engine.config import models_of
from ...engine.edits import is_withdrawal, read_edits
from ...engine.estimate import Script, rehearse
from ...engine.execute import Options, RunRequest, execute, last_limit, last_stage_costs
from ...engine.journal import decode
from ...engine.manifest import (
    EDITS,
    Manifest,
    Source,
    creation_time,
    fingerprint,
    place_of,
    read_manifest,
    unreadable,
)
from ...engine.manifest import NAME as MANIFEST
from ...engine.pipeline import load_pipeline
from ...engine.running import changed_prompts
from ...engine.status import NAME as REPORT
from ...engine.status import ItemReport, RunReport, read_report
from ...engine.survey import Survey, surveyed
from ...engine.walk import Items
from ...errors import ConfigError, InputError, RunError, UserError
from ...pages.grid import Grid, Tabular
from ...releases.katha.form import FORM
from ...releases.target import finished_run
from ...schemas.canonical import Json, canonical_text, digest, plain_parts, sha256_file
from ...schemas.paths import BALANCE, RECORDS
from ...schemas.plain_files import read_json
from ...schemas.text import primary_language, quoted
from ...schemas.values import Edit, Story
from ...validators.katha.dataset import iter_bundles
from ...validators.katha.set_rules import SECTIONS
from ...validators.retellings import near_duplicates, signature
from ..drafting import tell_added, without_models
from ..rows import Reader, Row, StoryRows
from ..rows import Settings as LoadSettings
from .building import PIPELINE
from .choosing.likeness import DuplicateSettings
from .choosing.screen_stories import Settings as ScreenSettings
from .load_stories import read_sources

if TYPE_CHECKING:
    from ...engine.hooks import Reporter


# -- What an extension came to: the stories that came in or did not, and balance and splits before and after
#
# New stories beside those that a run has: which are there already, and which cannot be taken in.
#
# A benchmark tells a story once, in one language, under one id for ever. So refused are: an id that stands
# for another text, a translation of a story that is there, an id that was withdrawn, and a story that
# nearly equals one that is there.

_OPENING = 80
_UNKNOWN = "a story that the run does not have"


@dataclass(slots=True)
class AddedRows(StoryRows):
    """Turns the rows of a run and of new sources into stories."""

    run: str = ""  # the run, as a command names it
    first: int = 0  # the number of the first new source
    withdrawn: Mapping[str, Edit] = field(default_factory=dict)  # story id -> the correction that withdrew it
    given: dict[str, str] = field(default_factory=dict)  # story id -> where its row stands in the new sources

    @property
    def added(self) -> list[Story]:
        """The stories that only the new sources hold, in order."""
        return [story for story in self.stories.values() if self.sources[story.id] >= self.first]

    @property
    def known(self) -> list[str]:
        """The ids of the stories of the new sources that the run has just so."""
        return sorted(
            story_id
            for story_id, source in self.repeated.items()
            if source >= self.first > self.sources[story_id]
        )

    def _taken_in(self, row: Row, story: Story, source: int) -> Story | None:
        if source >= self.first:
            self.given.setdefault(story.id, row.where)
        return StoryRows._taken_in(self, row, story, source)

    def clash(self, row: Row, story: Story, known: Story) -> None:
        """Note why a row cannot have the id of a story that is there."""
        if self.sources[known.id] >= self.first:
            StoryRows.clash(self, row, story, known)
            return
        where = f"{row.where}, id"
        if known.id in self.withdrawn:
            self.refuse_withdrawn(where, known.id)
        elif primary_language(story.language) != primary_language(known.language):
            _refuse_translation(self.reader, where, story, known)
        elif story.normalized_text != known.normalized_text:
            self.reader.problem(
                where, "an id of its own, or the story that the run has under this one",
                f"{story.id} with another text: {_opening(story)}; in the run: {_opening(known)}",
                f"rename it; to correct the record that is there: fabula edit {quoted(self.run)} {story.id}",
            )  # fmt: skip
        else:
            name = next(key for key in Story.model_fields if getattr(story, key) != getattr(known, key))
            now, then = (canonical_text(getattr(one, name))[:_OPENING] for one in (story, known))
            self.reader.problem(
                where, "the story as the run has it, or none",
                f"{story.id} with the same text and another {name}: {now}; in the run: {then}",
                f"leave it out; to correct the record there: fabula edit {quoted(self.run)} {story.id}",
            )  # fmt: skip

    def refuse_withdrawn(self, where: str, story_id: str) -> None:
        """Note that an id was withdrawn."""
        gone = self.withdrawn[story_id]
        found = f"{story_id}, withdrawn by {gone.who}: {gone.why}"
        fix = "leave the story out; a new one needs another id"
        self.reader.problem(where, "an id that was never used", found, fix)


def refuse_translations(builder: AddedRows) -> None:
    """Note new stories that by their ids are others in another language: ``kb_1-zh`` beside ``kb_1``."""
    stems: dict[str, Story] = {}
    fresh = {story.id for story in builder.added}
    for story in builder.stories.values():
        stem = _stem(story)
        other = stems.setdefault(stem, story)
        if other is not story and story.id in fresh:
            _refuse_translation(builder.reader, f"{builder.places[story.id]}, id", story, other)


def refuse_duplicates(builder: AddedRows, signatures: Mapping[str, Sequence[int]], threshold: float) -> None:
    """Note new stories that nearly equal stories of the run.

    ``signatures``: story id -> MinHash signature, of the stories that are there.
    """
    added = {story.id: story for story in builder.added}
    order = [*sorted(signatures), *sorted(added)]
    numbers = {**signatures, **{key: signature(story.normalized_text) for key, story in added.items()}}
    # Under ranks, so that of equal texts the one that is there comes first and is paired with all the others.
    ranked = {f"{rank:09d}": numbers[story_id] for rank, story_id in enumerate(order)}
    nearest: dict[str, tuple[float, str]] = {}
    for first, second, share in near_duplicates(ranked, threshold):
        old, new = order[int(first)], order[int(second)]
        if old in signatures and new in added:
            nearest[new] = min(nearest.get(new, (1.0, old)), (-share, old))
    for new, (share, old) in nearest.items():
        texts = f"{_opening(added[new])}; in the run: {_opening(builder.stories[old])}"
        builder.reader.problem(
            builder.places[new], _UNKNOWN, f"{new}, {-share:.0%} like {old}: {texts}",
            f"leave it out; to correct the record that is there: fabula edit {quoted(builder.run)} {old}",
        )  # fmt: skip


def _refuse_translation(reader: Reader, where: str, story: Story, known: Story) -> None:
    version = f"which by its id is {known.id} ({known.language}) in another version"
    reader.problem(
        where, _UNKNOWN, f"{story.id} in {story.language}, {version}",
        "leave it out: a benchmark tells a story once; another language makes a benchmark of its own",
    )  # fmt: skip


def _stem(story: Story) -> str:
    """Return a story's id without its language at the end, such as ``-zh`` or ``_zh-Hans``."""
    name = story.id.casefold().replace("_", "-")
    for tag in (story.language, primary_language(story.language)):
        ending = f"-{tag.casefold().replace('_', '-')}"
        if name.endswith(ending) and len(name) > len(ending):
            return name[: -len(ending)]
    return name


def _opening(story: Story) -> str:
    text = story.normalized_text
    return canonical_text(text if len(text) <= _OPENING else f"{text[:_OPENING]}...")


_WORDS = {"splits": "split", "narrative_types": "narrative types", "moral_labels": "moral labels"}


@dataclass(frozen=True, slots=True)
class ExtendReport(Tabular):
    """What an extension came to."""

    added: tuple[str, ...]  # ids of the new stories that have a record now
    known: tuple[str, ...]  # ids of stories in the new sources that the run had already, just so
    stopped: tuple[ItemReport, ...]  # the new stories that were not made, or would not be, with the reason
    kept: int  # how many records there were before; every one of them is as it was, byte for byte
    before: Mapping[str, Json]  # ``balance.json`` as it was; ``after``: as it is
    after: Mapping[str, Json]
    added_at: str | None = None  # the time that the new records bear; None where nothing was added
    # the report of the whole run; None where nothing was run
    run: RunReport | None = field(default=None, repr=False)
    tried: bool = False  # whether this is what would come of it: nothing was written

    def grids(self) -> Iterator[Grid]:
        """Yield what became of the new stories, and how the run ended."""
        rows = (
            *((story, "added", None) for story in self.added),
            *((story, "known", None) for story in self.known),
            *((item.id, item.status, item.reason) for item in self.stopped),
        )
        note = f"{_stories(self.kept)} kept as they were."
        yield Grid("stories", "Stories", ("story", "status", "reason"), rows, note, words=(1, 2))
        if self.run is not None:
            yield from self.run.grids()

    def as_json(self) -> dict[str, Json]:
        return plain_parts(self, "added", "known", "stopped", "kept", "before", "after", "added_at", "run")

    def lines(self) -> list[str]:
        given = len(self.added) + len(self.stopped) + len(self.known)
        held = (
            f"in the run already: {len(self.known)} of {given}" if given else "these sources are in the run"
        )
        if len(self.known) == given and not self.run:
            return [f"no story to add; {held}"]
        known = f"; {held}" if self.known else ""
        many = _stories(len(self.added))
        stopped = [
            f"  {item.id} {item.status} in {item.stage} ({item.code or 'not run'}): "
            f"{item.reason or item.meaning}"
            for item in self.stopped
        ]
        if self.tried:
            return [f"{many} can be added to {self.kept}, which stay as they are{known}", *stopped]
        lines = [f"{many} added to {self.kept}, which stay as they were{known}", *stopped]
        if self.run is None:
            return lines
        lines += _table(self.before, self.after, "splits")
        for name in ("narrative_types", "moral_labels"):
            lines.append(
                f"{_WORDS[name]}, furthest from target: {_furthest(self.before, name)}"
                f" -> {_furthest(self.after, name)}"
            )
        return [*lines, *(f"  {use.line()}" for use in self.run.models)]


def _stories(count: int) -> str:
    return "1 story" if count == 1 else f"{count} stories"


def _table(before: Mapping[str, Json], after: Mapping[str, Json], name: str) -> Iterator[str]:
    yield f"{_WORDS[name]:14}  {'before':>8}  {'after':>8}  {'target':>8}"
    then, now = before.get(name, {}), after.get(name, {})
    for value in _values(then, now):
        counts = [str(side.get(value, {}).get("observed", 0)) for side in (then, now)]
        target = now.get(value, {}).get("target", 0)
        yield f"{value:14}  {counts[0]:>8}  {counts[1]:>8}  {target:>8.1f}"


def _values(then: Mapping[str, Json], now: Mapping[str, Json]) -> Sequence[str]:
    return [*now, *(value for value in then if value not in now)]


def _furthest(document: Mapping[str, Json], name: str) -> str:
    assert name in SECTIONS
    rows = document.get(name, {})
    if not document.get("stories") or not rows:
        return "no story"
    value = max(rows, key=lambda key: abs(rows[key]["deviation"]))
    share = 100 * rows[value]["deviation"] / document["stories"]
    return f"{value} by {share:+.1f} points"


# -- What a finished run holds already, as far as an extension has to know it

LOADED = ("story", "source", "given", "edits", "withdrawn", "added_at")
"""The fields with which a story begins; for one that is there they must stay as they are."""


@dataclass(frozen=True, slots=True)
class Base:
    """What a run holds already."""

    folder: Path  # where it is
    manifest: Manifest  # its ``run.json``
    sources: tuple[Source, ...]  # what it was made from, without its edits
    records: Mapping[str, str]  # story id -> digest of its finished record with all that belongs to it
    loaded: Mapping[str, Mapping[str, str]]  # story id -> field that it begins with -> digest
    signatures: Mapping[str, list[int]]  # story id -> MinHash signature, of the stories that stayed
    withdrawn: Mapping[str, Edit]  # story id -> the correction that withdrew it


def read_base(folder: Path, moved: Sequence[Path] = ()) -> Base:
    """Return what a finished run holds."""
    with finished_run(folder, FORM) as run:
        _require_same_sources(folder, run.manifest, moved)
        with surveyed(folder, PIPELINE, keep=(*LOADED, "signature", "bundle")) as survey:
            _require_settled(survey, folder)
            return Base(
                folder,
                run.manifest,
                own_sources(run.manifest, folder, moved),
                _digests(survey, "bundle"),
                _loaded(survey),
                _signatures(survey),
                withdrawals(folder),
            )


def read_interrupted(folder: Path, named: tuple[Source, ...], moved: Sequence[Path] = ()) -> Base:
    """Return what a run held before an extension that was stopped.

    Its outputs are still those of before; its journal may hold parts of what comes.
    """
    manifest = read_manifest(folder)
    _require_same_sources(folder, manifest, moved)
    path, outputs = folder / RECORDS, read_report(folder).outputs
    if not path.is_file() or sha256_file(path) != outputs.get(RECORDS):
        raise RunError(
            str(path), what="the records are not as the run left them: the file was changed, or is gone",
            fix=f"bring it up to date with `fabula run retry {quoted(folder)}`; it ends the extension, too",
        )  # fmt: skip
    again = {place_of(source) for source in named}
    sources = own_sources(manifest, folder, moved)
    records = {bundle["record"]["story_id"]: digest(bundle) for bundle in iter_bundles(folder)}
    with surveyed(folder, PIPELINE, keep=(*LOADED, "signature")) as survey:
        return Base(
            folder,
            manifest,
            tuple(source for source in sources if place_of(source) not in again),
            records,
            {story: fields for story, fields in _loaded(survey).items() if story in records},
            {story: numbers for story, numbers in _signatures(survey).items() if story in records},
            withdrawals(folder),
        )


def own_sources(manifest: Manifest, folder: Path, moved: Sequence[Path] = ()) -> tuple[Source, ...]:
    """Return the sources of a run without its edits, with absolute paths."""
    listed = manifest.source_list(Path(folder).absolute(), moved)
    return tuple(source for source in listed if source.role != "edits")


def withdrawals(folder: Path) -> dict[str, Edit]:
    """Return story id -> the correction that withdrew it."""
    path = folder / EDITS
    return {edit.id: edit for edit in (read_edits(path) if path.exists() else ()) if is_withdrawal(edit)}


def _require_same_sources(folder: Path, manifest: Manifest, moved: Sequence[Path]) -> None:
    problems = []
    listed = manifest.source_list(folder.absolute(), moved)
    for source, entry in zip(listed, manifest.sources, strict=True):
        if source.role == "edits":
            continue
        try:
            now = fingerprint(source).sha256
            found = "it has changed since" if now != entry.sha256 else None
        except OSError as error:
            found = error.strerror or str(error)
        if found is not None:
            problems.append(
                UserError(
                    str(source.path),
                    what=f"this source is not as it was when the run was made: {found}",
                    fix="restore it, and put new stories into a file of their own; if it was moved,"
                    " say where to with --sources PLACE",
                )
            )
    if problems:
        raise InputError(problems)


def _require_settled(survey: Survey, folder: Path) -> None:
    """Refuse a run of which this version of Fabula, with its libraries, would make something anew."""
    for stage in survey.loaded.stages:
        counts = survey.counts[stage.name]
        again = counts.stale + counts.pending
        if again:
            why = "; ".join(survey.reasons[stage.name])
            raise RunError(
                f"{folder}: stage {stage.name}",
                what=f"stage {stage.name} would run again for {again} stories that are there already: {why}",
                fix=f"extend it with the version of fabula that made it, or bring it up to date first:"
                f" fabula run retry {quoted(folder)} (then compare the records, which may change)",
            )


def _digests(survey: Survey, name: str) -> dict[str, str]:
    return {item: sha256 for item, (_, sha256) in survey.kept.columns.get(name, {}).items()}


def _loaded(survey: Survey) -> dict[str, dict[str, str]]:
    columns = {name: _digests(survey, name) for name in LOADED}
    return {
        item: {name: column[item] for name, column in columns.items() if item in column}
        for item in survey.kept.live
    }


def _signatures(survey: Survey) -> dict[str, list[int]]:
    """Return the signatures of the stories that no stage rejected, or that were rejected when finished."""
    last = survey.loaded.stages[-1].name
    gone = {
        item for item, stop in survey.items.stops.items() if stop.status == "rejected" and stop.stage != last
    }
    places = {item: ref for item, ref in survey.kept.columns.get("signature", {}).items() if item not in gone}
    found: dict[str, list[int]] = {}
    batch = list(places)
    for start in range(0, len(batch), 256):
        part = batch[start : start + 256]
        blobs = survey.journal.blobs({places[item][0] for item in part})
        found.update((item, decode(blobs[places[item][0]])["signature"]) for item in part)
    return found


# --

__all__ = ["ExtendOptions", "extend_katha"]


def would_stop(request: RunRequest, added: Sequence[str]) -> tuple[ItemReport, ...]:
    """Return which new stories the stages would turn away, and why. Asks no model, writes nothing.

    Where models draft, only what the stages before them turn away can be known.
    """
    if not added:
        return ()
    stand_in = without_models(request.config)
    options = replace(request.options, items=tuple(added), workers=0)
    report = rehearse(replace(request, options=options), stand_in, Script(stand_in, lambda _: None))
    firm = _firm_stages(request)
    stopped = {one.id: one for one in report.items if one.stage in firm and one.status != "pending"}
    return tuple(stopped[story] for story in added if story in stopped)


def _firm_stages(request: RunRequest) -> frozenset[str]:
    """Return the stages before the first that asks a model; all, where none does."""
    found = []
    for name in load_pipeline(request.pipeline).names():
        if models_of(request.config.stages[name]):
            break
        found.append(name)
    return frozenset(found)


@dataclass(frozen=True, slots=True)
class ExtendOptions:
    """How to extend.

    Attributes:
        records: JSONL of hand-written records for some of the new stories.
        created_at: creation time of the new records, RFC 3339 [``SOURCE_DATE_EPOCH``, else now].
        workers: worker processes [as set, else one per core]; 0 works in this process.
        max_cost: most USD that the run may cost in all, what it has cost included [its last limit].
        dry_run: only check whether the stories can be added, and which the stages would turn away; write
            nothing.
        retry_failed: run failed stories of the run again, and ask once more what got no usable reply.
        moved: new place of the run's sources that were moved: files, or a folder that holds them; they are
            known by their content.
        batch: send questions in batches, at half the price within a day, to services that take them.
        batch_deadline: with --batch: hours after which a batch is cancelled and the rest sent again.
        batch_then_single: with --batch: ask one by one, at the full price, what a batch left open.
    """

    records: Path | None = None
    created_at: str | None = None
    workers: int | None = None
    max_cost: float | None = None
    dry_run: bool = False
    retry_failed: bool = False
    moved: Sequence[Path] = ()
    batch: bool = False
    batch_deadline: float | None = None
    batch_then_single: bool = False


@dataclass(frozen=True, slots=True)
class _Plan:
    """What is to be added: the sources of the run and the new ones, and the stories of these."""

    sources: tuple[Source, ...]
    added: tuple[str, ...]
    known: tuple[str, ...]
    added_at: str


def extend_katha(
    run: Path | str,
    sources: Sequence[Path | str] | Path | str,
    options: ExtendOptions | None = None,
    *,
    reporter: "Reporter | None" = None,
) -> ExtendReport:
    """Add stories to a finished run. What it holds stays as it is: records, ids, splits, hashes.

    Settings are those of the run. The new stories pass the same stages and are spread over the splits so that
    the whole comes nearer to its shares. A stopped extension is continued by the same call.
    """
    folder = Path(run)
    options = options if options is not None else ExtendOptions()
    named = _named(sources, options)
    base, named = _base(folder, named, options.moved)
    before = _balance(folder)
    plan = _plan(base, named, options)
    idle = ExtendReport((), plan.known, (), len(base.records), before, before)
    if options.dry_run:
        stopped = would_stop(_request(folder, base, plan, options), plan.added)
        gone = {item.id for item in stopped}
        added = tuple(story for story in plan.added if story not in gone)
        return replace(idle, added=added, stopped=stopped, tried=True)
    if not plan.added and not options.retry_failed and not _is_underway(folder):
        return idle
    return _execute(folder, base, plan, options, reporter)


def _named(sources: Sequence[Path | str] | Path | str, options: ExtendOptions) -> tuple[Source, ...]:
    paths = [sources] if isinstance(sources, str | Path) else list(sources)
    if not paths:
        raise ConfigError("sources", what="no file or folder is given", fix="name the stories")
    listed = [Source("stories", Path(path).absolute()) for path in paths]
    if options.records is not None:
        listed.append(Source("records", Path(options.records).absolute()))
    return tuple(dict.fromkeys(listed))


def _base(folder: Path, named: tuple[Source, ...], moved: Sequence[Path]) -> tuple[Base, tuple[Source, ...]]:
    """Return what the run holds, and the sources that are new to it."""
    manifest = read_manifest(folder)
    if manifest.kind != PIPELINE.name:
        raise RunError(
            str(folder), what=f"this is a run of kind {manifest.kind}, which cannot be extended",
            fix="build it anew with all its sources",
        )  # fmt: skip
    problems, fresh, again = [], [], []
    known = {
        (*place_of(source), entry.sha256): entry.added_at
        for source, entry in zip(
            manifest.source_list(folder.absolute(), moved), manifest.sources, strict=True
        )
    }
    for source in named:
        try:
            key = (*place_of(source), fingerprint(source).sha256)
        except OSError as error:
            problems.append(unreadable(source.path, error))
            continue
        if key not in known:
            fresh.append(source)
        elif known[key] is not None:
            again.append(replace(source, added_at=known[key]))
    if problems:
        raise InputError(problems)
    if again and not fresh and _is_underway(folder):
        return read_interrupted(folder, tuple(again), moved), tuple(again)
    return read_base(folder, moved), tuple(fresh)


def _is_underway(folder: Path) -> bool:
    """Whether the run was begun anew since it last finished."""
    report = read_report(folder) if (folder / REPORT).exists() else None
    return report is None or report.manifest_sha256 != sha256_file(folder / MANIFEST)


def _plan(base: Base, named: tuple[Source, ...], options: ExtendOptions) -> _Plan:
    """Return what is to be added, once it is clear that it can be."""
    given = {source.added_at for source in named if source.added_at is not None}
    added_at = min(given) if given else creation_time(options.created_at)
    fresh = [replace(source, added_at=added_at) for source in named]
    sources = (*base.sources, *fresh)
    edits = base.folder.absolute() / EDITS
    listed = (*sources, *([Source("edits", edits)] if edits.exists() else ()))
    config = base.manifest.config(load_pipeline(PIPELINE))
    settings = config.stages["load_stories"]
    assert isinstance(settings, LoadSettings)
    reader = Reader(settings.max_file_bytes)
    builder = AddedRows(
        settings, reader, run=str(base.folder), first=len(base.sources), withdrawn=base.withdrawn
    )
    fields = read_sources([{"role": one.role, "added_at": one.added_at} for one in listed],
                          [one.path for one in listed], builder)  # fmt: skip
    for story_id in (name for name in builder.known if name in base.withdrawn):
        builder.refuse_withdrawn(f"{builder.given[story_id]}, id", story_id)
    refuse_translations(builder)
    duplicates, screening = config.stages["find_duplicates"], config.stages["screen_stories"]
    assert isinstance(duplicates, DuplicateSettings) and isinstance(screening, ScreenSettings)
    if screening.near_duplicates == "reject":
        refuse_duplicates(builder, base.signatures, duplicates.threshold)
    if not reader.problems:
        _refuse_changes(base, fields, reader)
    if reader.problems:
        raise InputError(reader.problems)
    return _Plan(sources, tuple(story.id for story in builder.added), tuple(builder.known), added_at)


def _refuse_changes(base: Base, fields: Mapping[str, Mapping[str, Json]], reader: Reader) -> None:
    """Note stories of the run that would begin with something else than they did."""
    for story_id, digests in base.loaded.items():
        now = fields.get(story_id, {})
        for name, sha256 in digests.items():
            if name in now and digest(now[name]) != sha256:
                what = "a hand-written record" if name == "given" else f"another {name}"
                reader.problem(
                    story_id, "nothing new for a story that the run has", what,
                    f"leave it out; to correct the record: fabula edit {quoted(base.folder)} {story_id}",
                )  # fmt: skip


def _request(folder: Path, base: Base, plan: _Plan, options: ExtendOptions) -> RunRequest:
    limit = last_limit(folder.absolute()) if options.max_cost is None else options.max_cost
    return RunRequest(
        folder,
        PIPELINE,
        base.manifest.config(load_pipeline(PIPELINE)),
        plan.sources,
        options=Options(
            workers=options.workers,
            retry_failed=options.retry_failed,
            max_cost=limit,
            stage_costs=last_stage_costs(folder.absolute()),
            batching=Batching(
                on=options.batch, deadline=options.batch_deadline, then_single=options.batch_then_single
            ),
        ),
        accept=_keeps(base),
    )


def _execute(
    folder: Path, base: Base, plan: _Plan, options: ExtendOptions, reporter: "Reporter | None"
) -> ExtendReport:
    request = _request(folder, base, plan, options)
    if gone := changed_prompts(request):
        raise ConfigError(
            str(folder), what=f"the run was begun with other prompts ({', '.join(gone[:4])}, ...)",
            fix="draft it anew first, with `fabula build stories ... --upgrade`, or extend it with the"
            " version that began it; nothing was asked",
        )  # fmt: skip
    if reporter is not None:
        tell_added(request, plan.added, reporter)
    before = _balance(folder)
    report = execute(request, reporter)
    stops = {item.id: item for item in report.items}
    waiting = [story for story in base.loaded if story not in base.records]  # those that had failed
    return ExtendReport(
        added=tuple(story for story in dict.fromkeys((*waiting, *plan.added)) if story not in stops),
        known=plan.known,
        stopped=tuple(stops[story] for story in plan.added if story in stops),
        kept=len(base.records),
        before=before,
        after=_balance(folder),
        added_at=plan.added_at,
        run=report,
    )


def _keeps(base: Base) -> Callable[[Items], None]:
    """Return what refuses items among which a record of before is missing, or is another."""

    def accept(items: Items) -> None:
        now = {item: sha256 for item, (_, sha256) in items.columns.get("bundle", {}).items()}
        moved = sorted(story for story, sha256 in base.records.items() if now.get(story) != sha256)
        if moved:
            raise RunError(
                str(base.folder),
                what=f"{len(moved)} records would change that should stay as they were, such as {moved[0]}",
                fix="nothing was replaced; see what differs with `fabula run show`, and restore the run as"
                f" it was with: fabula run retry {quoted(base.folder)}",
            )

    return accept


def _balance(folder: Path) -> Mapping[str, Json]:
    try:
        document = read_json(folder / BALANCE, follow=True)
    except (OSError, ValueError):
        return {}
    return document if isinstance(document, dict) else {}
