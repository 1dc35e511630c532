"""Packing stories: which are taken, public or hidden, and data files, written while bundles stream by."""

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import TracebackType
from typing import IO, Self

from ...errors import ConfigError, InputError
from ...models.spec import stand_ins_among
from ...schemas.canonical import Json, canonical_bytes, sha256_bytes
from ...schemas.paths import (
    ANNOTATIONS,
    HIDDEN_SPLIT,
    JSONL_FILES,
    PRODUCERS,
    RECORD_IDS,
    SOURCES,
    SPLIT_FILES,
    VARIANTS,
    VOTE_FILES,
)
from ...schemas.plain_files import json_lines
from ...schemas.text import tallied
from ...schemas.values import UNREAD, state_of, states_told
from ...validators.katha.dataset import iter_bundles
from ...validators.katha.review_tables import (
    Elsewhere,
    ReviewData,
    Vote,
    before_adjudication,
    judged_of,
    order_of,
    parts_of,
    review_tables,
)
from ...validators.report import as_user_error
from ..form import Facts, FinishedRun, LeftOut, ReleaseForm
from ..options import Licence, PackOptions, licence
from ..parquet import TableWriter
from ..subsets import Traits
from .additions import Additions, StoryFacts, Subset, Wanted, add, draw_subsets, traits_of, wanted
from .reviews import UNREAD as UNREAD_STATUS
from .reviews import VOTE_TABLE, Reviews, check_against, check_votes, signs_in, vote_rows
from .selection import (
    PARTS,
    SIZES,
    Composition,
    Counted,
    Selection,
    known_details,
    left_out_files,
    left_out_reason,
    record_rows,
    require_records,
    variant_rows,
    write_evidence,
    write_retellings,
)

# -- What packing tells of a review: the data of its tables, over public stories, and notes for who packs

SHOWN = 5
"""So many of the stories that changed since their review are named in a note."""


def public_votes(votes: Sequence[Vote], reviews: Reviews, selection: Selection) -> list[Vote]:
    """Return the votes on public stories that a review accepted, in the order of releases."""
    accepted = {row["story_id"] for row in reviews.accepted(selection.public)}
    return sorted((vote for vote in votes if vote["item"] in accepted), key=order_of)


def data_of(reviews: Reviews, selection: Selection, subsets: Sequence[Subset]) -> ReviewData:
    """Return a review as far as a release tells of it; nothing of hidden stories is in it, packed or not."""
    gone = (*selection.left_out_hidden, *selection.withdrawn_hidden)
    hidden = {*selection.hidden, *(entry.id for entry in gone)}
    rows = reviews.accepted(selection.public)
    known = {*hidden, *(row["story_id"] for row in rows)}
    others = [row for name, row in reviews.rows.items() if name not in known]
    votes = [vote for vote in reviews.votes or () if vote["item"] not in known]
    return ReviewData(
        rows=rows,
        votes=None if reviews.votes is None else public_votes(reviews.votes, reviews, selection),
        gold={subset.request.name: subset.members for subset in subsets if subset.request.gold},
        elsewhere=Elsewhere(
            Counter(str(row["decision"]) for row in others),
            judged_of(before_adjudication(votes, others)),
        ),
        simulated=reviews.simulated,
    )


def unheld(reviews: Reviews) -> Iterator[str]:
    """Yield why reviews on file do not count, one sentence each."""
    if reviews.changed:
        listed = sorted(
            f"{name} ({', '.join(paths)})" if paths else name for name, paths in reviews.changed.items()
        )
        more = f" and {len(listed) - SHOWN} more" if len(listed) > SHOWN else ""
        them = "it" if len(listed) == 1 else "them"
        yield f"{len(listed)} changed since people read {them}: {', '.join(listed[:SHOWN])}{more}"
    if reviews.unbound and not reviews.accept_unbound:
        number = tallied(len(reviews.unbound), "reviews")
        yield f"{number} not counted, since they do not name what was read (--accept-unbound counts them)"


def review_notes(reviews: Reviews, more: Additions) -> Iterator[str]:
    """Yield what the person who packs should know of the reviews, one sentence each."""
    if reviews.path is None:
        yield "no reviewer votes are on file, so no human validation and no gold files are written"
    elif not set(VOTE_FILES) & set(more.files):
        yield f"no review of {reviews.path} accepts a story that is packed in public"
    yield from unheld(reviews)
    if reviews.unbound and reviews.accept_unbound:
        yield f"{tallied(len(reviews.unbound), 'reviews')} counted that do not name what was read (unbound)"
    if reviews.kept_back is not None:
        yield f"the votes are counted in the tables, and are not in the release: {reviews.kept_back}"
    if more.simulated:
        yield "programs took part in the review: the release is marked so, and cannot be published"
    for subset in more.subsets:
        if subset.short:
            counts = subset.counts
            lacking = (f"{name} {counts.get(name, 0)} of {quota}" for name, quota in subset.short.items())
            yield f"subset {subset.request.name} has fewer stories than its share: {', '.join(lacking)}"


# -- Packing stories

Hashes = dict[str, dict[str, str]]


@dataclass(slots=True)
class DataFiles:
    """What was counted and hashed while the data files were written."""

    counted: Counted  # counts over the public records
    hidden: Counter[str] = field(default_factory=Counter)  # counts of the hidden-test stories
    # JSONL file -> record id -> SHA-256 of its canonical JSON; ``hidden_hashes`` likewise
    public_hashes: Hashes = field(default_factory=dict)
    hidden_hashes: Hashes = field(default_factory=dict)
    rows: dict[str, int] = field(default_factory=dict)  # Parquet path -> number of rows
    sizes: dict[str, int] = field(default_factory=dict)  # Parquet path -> bytes of their values
    # the stand-ins for models that wrote or checked public or hidden records
    stand_ins: set[str] = field(default_factory=set)


class StoryPacking:
    """One packing of a run of stories.

    Attributes:
        form: the form of releases of stories.
        options: what a person said about the release.
        selection: the decision about every story.
        subsets: the subsets that are drawn.
        hidden_hashes: JSONL file -> id of a hidden record -> SHA-256 of its canonical JSON.
        hidden_drafts: how many hidden records are drafts, or lack a required field.
    """

    def __init__(self, form: ReleaseForm, options: PackOptions) -> None:
        if options.license is not None:
            licence(options.license)
        self.form, self.options = form, options
        self._want: Wanted = wanted(options)
        self.selection = Selection()
        self.subsets: list[Subset] = []
        self.hidden_hashes: Hashes = {}
        self.hidden_drafts = 0
        self._lacking: set[str] = set()

    @property
    def hidden(self) -> set[str]:
        """Ids of the stories that are kept from the public."""
        return self.selection.hidden

    @property
    def licences(self) -> Counter[str | None]:
        """Licence, None for none -> how many of the packed stories state it."""
        return self.selection.licences

    @property
    def left_out(self) -> list[LeftOut]:
        """What the run knows and the release does not hold, hidden or not."""
        return [*self.selection.left_out, *self.selection.left_out_hidden]

    def take(self, run: FinishedRun) -> None:
        """Decide about every story, draw subsets, and refuse a run that validators find fault with."""
        from ...validators.katha.scene_rules import incomplete_reason
        from ...validators.katha.validation import validate

        # Rights that do not allow release keep a story out; every other error keeps the whole run out.
        errors = [one for one in validate(run.folder).issues if one.level == "error"]
        if findings := [one for one in errors if one.code != "rights"]:
            raise InputError([as_user_error(issue) for issue in findings])
        selection, labels = self.selection, dict[str, str | None]()
        reviews = self._want.reviews.bound_to(
            iter_bundles(run.folder), accept_unbound=self.options.accept_unbound
        )
        self._want = replace(self._want, reviews=reviews)
        unread, drafts = Counter[str](), list[Json]()
        hidden_drafts = 0
        traits: list[Traits] = []
        parts: dict[str, Mapping[str, frozenset[str]]] = {}
        missed = {item.id: f"no usable answer in {item.stage}: {item.code}" for item in run.report.without}
        for bundle in iter_bundles(run.folder):
            record, variants = bundle["record"], bundle["variants"]
            labels[record["story_id"]] = record["moral_label"]
            if reviews.votes is not None:
                parts[record["story_id"]] = parts_of(record, variants)
            rejected = reviews.rejects(record["story_id"])
            lacks = incomplete_reason(record, variants) or missed.get(record["story_id"])
            reason = left_out_reason(record, None if self.options.allow_drafts else lacks, rejected=rejected)
            selection.add(record, reason)
            if reason is None:
                self._lacking |= {record["story_id"]} if lacks is not None else set()
                status = self._as_packed(record)["validation_status"]
                state = state_of(status, bundle["checks"])
                unread[state] += state in UNREAD
                drafts += [bundle["checks"]] if state == "draft" else []
                if record["split"] == HIDDEN_SPLIT:
                    hidden_drafts += state_of(status) == "draft" or lacks is not None
            if self._want.requests and record["story_id"] in selection.public:
                traits.append(traits_of(record))
        known = {*labels, *(item.id for item in run.report.items)}
        check_against(reviews, labels, known)
        check_votes(reviews.votes or (), parts, known, reviews.path or run.folder)
        self._require_care()
        selection.add_unmade(run.report.items, run.splits)
        require_records(selection, str(run.folder))
        if unread.total() and not self.options.allow_drafts:
            what = f"{_told(unread, drafts, selection)}{''.join(f'; {note}' for note in unheld(reviews))}"
            raise ConfigError(str(run.folder), what=what, fix=_READ)
        self.hidden_drafts = hidden_drafts
        self._draw(traits)

    def _as_packed(self, record: Json) -> Json:
        """Return a record with the status of its review; a draft where it lacks a required field."""
        packed = self._want.reviews.reviewed(record)
        lacks = record["story_id"] in self._lacking and state_of(packed["validation_status"]) == "checked"
        return {**packed, "validation_status": UNREAD_STATUS} if lacks else packed

    def _require_care(self) -> None:
        """Find signs of carelessness in the votes, and refuse them unless the options allow it."""
        reviews = self._want.reviews
        public = public_votes(reviews.open_votes, reviews, self.selection)
        own = {name for row in reviews.rows.values() for name in row["annotator_ids"]}
        every = signs_in(reviews.votes or (), public, stated=reviews.careless)
        signs = {name: each for name, each in every.items() if name in own}
        if signs and not self.options.accept_careless:
            listed = "; ".join(f"{name}: {', '.join(each)}" for name, each in signs.items())
            raise ConfigError(
                "--accept-careless",
                what=f"reviewers show signs of carelessness, so this is hardly a review by people: {listed}",
                fix="have others review what these did (`fabula review invite STUDY --drop NAME --why WHY`) "
                "and export again; or, after a look at it, give --accept-careless: the card names them",
            )
        self._want = replace(self._want, reviews=replace(reviews, careless=signs))

    def _draw(self, traits: Sequence[Traits]) -> None:
        """Draw the subsets, and give the reviews the statuses that follow from what is gold."""
        want, selection = self._want, self.selection
        total = len(selection.public) + len(selection.hidden)
        self.subsets = draw_subsets(want.requests, traits, want.reviews, want.earlier, total)
        gold = {member for subset in self.subsets if subset.request.gold for member in subset.members}
        reviews = want.reviews.with_statuses(gold, self.options.review_status)
        self._want = replace(want, reviews=reviews)

    def write(self, run: FinishedRun, drafts: Sequence[Path], licence: Licence) -> Facts:
        """Write data files of both folders, reviews, subsets and canary, and commit to hidden stories."""
        from ...validators.statistics import HiddenCounts, moral_balance

        public, hidden = drafts
        selection = self.selection
        data = self._write_data(run, (public, hidden), str(licence.spdx_id))
        self.hidden_hashes = data.hidden_hashes
        if selection.hidden:
            write_evidence(run.folder, hidden, selection.hidden, selection.public)
        more = add(self._want, run, selection, self.options, (public, hidden), self.subsets)
        more = replace(more, retold=write_retellings(run.folder, public, selection.public))
        composition = data.counted.composition
        own = StoryFacts(
            composition=composition,
            balance=moral_balance(data.counted.moral_labels.elements()),
            hidden={size: data.hidden.get(size, 0) for size in SIZES},
            left_out_hidden=len(selection.left_out_hidden),
            left_out_files=left_out_files(more.files if more.reviewed else ()),
            more=more,
            withdrawn=tuple(selection.withdrawn),
            withdrawn_hidden=len(selection.withdrawn_hidden),
        )
        return Facts(
            form=self.form,
            options=self.options,
            licence=licence,
            created_at=run.created_at,
            statistics=data.counted.statistics.result(
                HiddenCounts(**data.hidden),
                by_producer=composition.judged,
                review=self._review(more, data.counted.statistics.totals),
            ),
            totals=composition.totals,
            languages=sorted(composition.languages),
            left_out=tuple(selection.left_out),
            rows=data.rows,
            sizes=data.sizes,
            hashes=data.public_hashes,
            own=own,
            canary=more.canary,
            checked_by=sorted(data.stand_ins),
        )

    def _review(self, more: Additions, totals: Mapping[str, int]) -> dict[str, Json]:
        """Return the tables of the review; none where no public story has one."""
        if not more.reviewed:
            return {}
        return review_tables(data_of(self._want.reviews, self.selection, self.subsets), totals)

    def notes(self, facts: Facts) -> Iterator[str]:
        """Yield what the person who packs should know."""
        more: Additions = facts.own.more
        for subset in more.subsets:
            kept = "" if subset.kept is None else f", {subset.kept} of them as before"
            yield f"subset {subset.request.name}: {_stories(len(subset.members))}{kept}"
        for status in ("left_out", "rejected", "failed"):
            entries = [entry for entry in self.left_out if entry.status == status]
            if entries:
                codes = Counter(entry.code for entry in entries)
                why = ", ".join(f"{count} {code}" for code, count in sorted(codes.items()))
                verb = {"left_out": "left out of the release"}.get(status, f"{status} by the run")
                hidden = sum(entry in self.selection.left_out_hidden for entry in entries)
                yield f"{_stories(len(entries))} {verb} ({why}); {_all_but(hidden)}"
        unread = {state: facts.own.composition.states[state] for state in UNREAD}
        if count := sum(unread.values()):
            yield f"{_stories(count)} packed in public that nobody has read: {states_told(unread)}"
        hidden = len(self.selection.withdrawn_hidden)
        gone = len(self.selection.withdrawn) + hidden
        if gone:
            yield f"{_stories(gone)} withdrawn; {_all_but(hidden)}, with reasons"
        yield from review_notes(self._want.reviews, more)

    def _write_data(self, run: FinishedRun, folders: tuple[Path, Path], license_id: str) -> DataFiles:
        """Write the JSONL files of both folders and the Parquet tables of the public one.

        A record that reviewers accepted gets the status that its review gives it; one that states no licence
        gets the one given.
        """
        from ...validators.statistics import StatisticsCollector

        (public, hidden), selection = folders, self.selection
        path = run.folder / SOURCES
        rows = json_lines(path) if path.is_file() else ()
        details = known_details(rows, "id", selection.public)
        data = DataFiles(Counted(StatisticsCollector(), Composition(details=details)))
        with ExitStack() as stack:
            writer = stack.enter_context(TableWriter(public))
            open_files = stack.enter_context(_Lines(public))
            secret_files = stack.enter_context(_Lines(hidden)) if selection.hidden else None
            for bundle in iter_bundles(run.folder):
                bundle["record"] = self._as_packed(bundle["record"])
                story_id, provenance = bundle["record"]["story_id"], bundle["record"]["provenance"]
                provenance["dataset_license"] = provenance["dataset_license"] or license_id
                if story_id in selection.public or story_id in selection.hidden:
                    data.stand_ins.update(_stand_ins(bundle))
                if story_id in selection.public:
                    _count_public(data.counted, bundle)
                    for table, row in record_rows(bundle["record"]):
                        writer.add(table, SPLIT_FILES[bundle["record"]["split"]], row)
                    open_files.add(bundle)
                elif story_id in selection.hidden and secret_files is not None:
                    _count_hidden(data, bundle)
                    secret_files.add(bundle)
            data.public_hashes = open_files.finish()
            data.hidden_hashes = secret_files.finish() if secret_files is not None else {}
            for variant in open_files.variants():
                split_file = SPLIT_FILES[selection.public[variant["base_story_id"]]]
                for table, row in variant_rows(variant):
                    writer.add(table, split_file, row)
            self._write_votes(writer)
        data.rows, data.sizes = writer.counts, writer.bytes
        return data

    def _write_votes(self, writer: TableWriter) -> None:
        reviews, public = self._want.reviews, self.selection.public
        for row in vote_rows(public_votes(reviews.open_votes, reviews, self.selection)):
            writer.add(VOTE_TABLE, SPLIT_FILES[public[str(row["item"])]], row)


_READ = (
    "have them read: `fabula release pack --reviews FILE` takes what people said (checks of rules, of models "
    "and of an author are no review); or pack them as what they are, with --allow-drafts"
)


def _told(unread: Mapping[str, int], drafts: Sequence[Json], selection: Selection) -> str:
    """Return how many of the selected records nobody read, and which checks did not pass in most drafts."""
    packed = len(selection.public) + len(selection.hidden)
    open_codes = Counter(code for checks in drafts for code in dict.fromkeys(
        check["code"] for check in checks if not check["passed"]
    ))  # fmt: skip
    shown = ", ".join(f"{code} in {count}" for code, count in open_codes.most_common(4))
    more = f" and {len(open_codes) - 4} more" if len(open_codes) > 4 else ""
    why = f"; not made or not passed: {shown}{more}" if shown else ""
    return f"nobody has read {sum(unread.values())} of {packed} records ({states_told(unread)}){why}"


def _stories(count: int) -> str:
    return tallied(count, "stories")


def _all_but(hidden: int) -> str:
    return f"release.json names {f'all but {hidden} of the hidden test' if hidden else 'them'}"


def _stand_ins(bundle: Json) -> list[str]:
    made = (*bundle["producers"], *bundle["checks"])
    judges = (answer["judge"] for answer in bundle.get("answers") or ())
    return stand_ins_among([*(entry.get("producer") for entry in made), *judges])


def _count_public(counted: Counted, bundle: Json) -> None:
    record = bundle["record"]
    counted.add_record(record)
    counted.add_producers(bundle["producers"], record["story_id"])
    counted.composition.add_checks(bundle)
    for variant in bundle["variants"]:
        counted.add_variant(record["split"], variant)


def _count_hidden(data: DataFiles, bundle: Json) -> None:
    record = bundle["record"]
    data.hidden.update({"stories": 1, **{part: len(record[part]) for part in PARTS}})
    data.hidden["variants"] += len(bundle["variants"])


class _Lines:
    """The three JSONL files of one folder.

    Records come in id order and are written at once. Variants are held as bytes until the end, because their
    ids need not sort as those of their stories do.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._files: dict[str, IO[bytes]] = {}
        self._variants: dict[str, bytes] = {}
        self._hashes: Hashes = {name: {} for name in JSONL_FILES}

    def __enter__(self) -> Self:
        self._files = {name: (self._folder / name).open("wb") for name in (ANNOTATIONS, PRODUCERS)}
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for file in self._files.values():
            file.close()

    def add(self, bundle: Json) -> None:
        """Write one story and its producers, and keep its variants."""
        record = bundle["record"]
        self._write(ANNOTATIONS, record)
        written = {name: bundle[name] for name in ("narrative", "answers") if bundle.get(name)}
        self._write(PRODUCERS, {"id": record["story_id"], "fields": bundle["producers"], **written})
        for variant in bundle["variants"]:
            self._variants[variant["variant_id"]] = canonical_bytes(variant)

    def finish(self) -> Hashes:
        """Write the variants, sorted by id, and return the hashes of all records."""
        with (self._folder / VARIANTS).open("wb") as file:
            for variant_id in sorted(self._variants):
                content = self._variants[variant_id]
                file.write(content + b"\n")
                self._hashes[VARIANTS][variant_id] = sha256_bytes(content)
        return self._hashes

    def variants(self) -> Iterator[Json]:
        """Yield the variants in id order, freeing each."""
        for variant_id in sorted(self._variants):
            yield json.loads(self._variants.pop(variant_id))

    def _write(self, name: str, record: Json) -> None:
        content = canonical_bytes(record)
        self._files[name].write(content + b"\n")
        self._hashes[name][record[RECORD_IDS[name]]] = sha256_bytes(content)
