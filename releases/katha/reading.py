"""Verifying stories: the rules of their records, and the facts of a release counted again from its data."""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from ...errors import InputError, UserError
from ...schemas.canonical import Json, canonical_bytes, sha256_bytes
from ...schemas.paths import (
    ANNOTATIONS,
    DRAFTS,
    JSONL_FILES,
    RECORD_IDS,
    RELEASE,
    RETELLINGS,
    REVIEWS,
    SOURCE_MANIFEST,
    STATES,
    STATISTICS,
    SUBSETS,
    VARIANTS,
)
from ...schemas.paths import WITHDRAWN as GONE
from ...schemas.plain_files import read_json
from ...schemas.values import Issue
from ...validators.katha.dataset import open_dataset
from ...validators.katha.review_tables import tables_of_release
from ...validators.lines import ignore
from ...validators.report import BINDINGS, MARK, REVIEWED
from ..diff.since import Since
from ..form import Facts, LeftOut, ReleaseForm
from ..parquet import read_lines
from ..subsets import read_subsets
from .additions import (
    Additions,
    StoryFacts,
    Subset,
    check_subsets,
    draw_subsets,
    read_traits,
    review_lines,
    stated_subsets,
    stories_of,
)
from .reviews import (
    KEPT,
    NONE,
    PUBLISHED,
    STATUS_WORDS,
    Reviews,
    released_reviews,
    signs_in,
    signs_of,
    vote_lines,
)
from .selection import (
    CHECKS,
    SOURCES_KEY,
    Composition,
    Counted,
    check_retellings,
    known_details,
    left_out_files,
)

_CURE = "pack the run again"
MARKED = 4
"""The edition from which on the card says what stand-ins for models made."""


class StoryReading:
    """One verification of a release of stories.

    Attributes:
        form: the form of releases of stories.
        counts: JSONL file, or rules, -> how many lines.
        data: the JSONL files of the release beside its reviews.
    """

    def __init__(self, form: ReleaseForm) -> None:
        self.form = form
        self.counts: dict[str, int] = {}
        self.data = frozenset(JSONL_FILES)
        self._otherwise: list[str] = []

    def visit(self, file: str, record: Json) -> None:  # noqa: ARG002 - the rules read the file again
        self.counts[file] = self.counts.get(file, 0) + 1

    def check_rules(self, folder: Path) -> Iterator[Issue]:
        """Yield what the validators find."""
        from ...validators.katha.validation import validate

        self.counts = {name: self.counts[name] for name in sorted(self.counts)}
        try:
            report = validate(folder)
        except UserError as error:
            for problem in error.problems if isinstance(error, InputError) else (error,):
                yield Issue(problem.where, "$", "unreadable", problem.what, problem.fix)
            return
        self.counts |= {f"{name} under rules": count for name, count in report.checked.items()}
        yield from report.issues

    def recount(self, stated: Facts, folder: Path, document: Mapping[str, Any], *, exact: bool) -> Facts:
        """Return the facts as the data and ``release.json`` give them; subsets are drawn again if exact."""
        from ...validators.statistics import HiddenCounts, StatisticsCollector, moral_balance

        reviews = released_reviews(folder)
        retold = (folder / RETELLINGS).is_file()
        self.data = frozenset((*JSONL_FILES, *((RETELLINGS,) if retold else ())))
        counted = Counted(
            StatisticsCollector(),
            Composition(details=_details(folder), names_stand_ins=document.get("edition", 1) >= MARKED),
        )
        hashes = self._count(folder, counted, reviews)
        composition = counted.composition
        composition.checks = {code: Counter(row) for code, row in document.get("checks", {}).items()}
        composition.judged = DRAFTS in document
        hidden = HiddenCounts(**document.get("hidden_test", {}))
        content = review_lines(reviews, hashes[ANNOTATIONS])
        accepted = {row["story_id"] for row in reviews.accepted(hashes[ANNOTATIONS])}
        votes = vote_lines(reviews.votes or (), accepted)
        part = document.get(REVIEWED)
        kept = part.get("votes") if isinstance(part, dict) else None
        more = Additions(
            reviewed=bool(content),
            subsets=_subsets(folder, document, stated.since, reviews) if exact else stated_subsets(folder),
            canary=stated.canary,
            commitments=document.get("commitments"),
            salt=None,
            retold=retold,
            review_status=str(part.get("status")) if isinstance(part, dict) else None,
            votes=PUBLISHED if votes else kept if kept in (KEPT, NONE) else NONE,
            simulated=document.get(MARK) is True or reviews.simulated,
            bindings=_bindings(document, reviews, hashes[ANNOTATIONS]),
            careless=_careless(part, reviews),
        )
        gone = document.get(GONE, {})
        own = StoryFacts(
            composition=composition,
            balance=moral_balance(counted.moral_labels.elements()),
            hidden=hidden.as_json(),
            left_out_hidden=document.get("left_out", {}).get("hidden_test_stories", 0),
            left_out_files=left_out_files(more.files if more.reviewed else ()),
            more=more,
            withdrawn=sorted(
                LeftOut(one["id"], GONE, one["reason"], status=GONE) for one in gone.get("stories", ())
            ),
            withdrawn_hidden=gone.get("hidden_test_stories", 0),
            reviews=content,
            votes=votes,
            tells_states=STATES in document,
        )
        return replace(
            stated,
            statistics=counted.statistics.result(
                hidden, by_producer=composition.judged, review=_review(folder, counted.statistics.totals)
            ),
            totals=composition.totals,
            languages=sorted(composition.languages),
            hashes=hashes,
            own=own,
        )

    def check_beside(
        self, folder: Path, document: Mapping[str, Any], *, exact: bool
    ) -> Iterator[tuple[str, Iterator[Issue]]]:
        """Yield the checks of what no document shows: reviews and commitments, statuses, and the subsets."""
        yield "documents", self._check_stated(document) if exact else iter(())
        yield RELEASE, check_codes(document)
        yield SUBSETS, check_subsets(folder)
        yield REVIEWS, check_statuses(folder, document)
        yield RETELLINGS, self._check_retellings(folder)

    def _check_retellings(self, folder: Path) -> Iterator[Issue]:
        if (folder / RETELLINGS).is_file():
            yield from check_retellings(folder, {row["story_id"] for row in read_lines(folder / ANNOTATIONS)})

    def _check_stated(self, document: Mapping[str, Any]) -> Iterator[Issue]:
        for story_id in self._otherwise:
            message = f"{story_id} says something else of its review than {REVIEWS} does"
            yield Issue(ANNOTATIONS, "$", "review-differs", message, _CURE)
        if document.get("hidden_test", {}).get("stories") and "commitments" not in document:
            message = "hidden-test stories are counted, and there is no commitment to them"
            yield Issue(RELEASE, "$.commitments", "commitment", message, _CURE)

    def _count(self, folder: Path, counted: Counted, reviews: Reviews) -> dict[str, dict[str, str]]:
        """Count the records of a folder; return file -> id -> hash of each."""
        hashes: dict[str, dict[str, str]] = {name: {} for name in JSONL_FILES}
        splits: dict[str, str] = {}
        for name in JSONL_FILES:
            for row in read_lines(folder / name):
                hashes[name][row[RECORD_IDS[name]]] = sha256_bytes(canonical_bytes(row))
                if name == ANNOTATIONS:
                    splits[row["story_id"]] = row["split"]
                    counted.add_record(row)
                    if reviews.reviewed(row) != row:
                        self._otherwise.append(row["story_id"])
                elif name == VARIANTS:
                    counted.add_variant(splits[row["base_story_id"]], row)
                else:
                    counted.add_producers(row["fields"], row["id"])
        return hashes


def _bindings(
    document: Mapping[str, Any], reviews: Reviews, public: Collection[str]
) -> dict[str, Json] | None:
    """Return what the reviews are bound to, counted again; of what is not in the release, as it is stated."""
    stated = document.get(BINDINGS)
    if not isinstance(stated, dict):
        return None
    counted = reviews.bindings(public)
    kept = {"unbound_accepted": stated.get("unbound_accepted") is True, "changed": stated.get("changed")}
    outside = stated.get("unbound") if not kept["unbound_accepted"] else None
    return {**counted, **kept, **({} if counted["unbound"] or outside is None else {"unbound": outside})}


def _careless(part: Json, reviews: Reviews) -> dict[str, list[str]]:
    """Return the signs of carelessness that a release states, and those that its own votes show."""
    stated = part.get("careless") if isinstance(part, dict) else None
    if not isinstance(part, dict):
        return {}
    return signs_in(reviews.votes or (), stated=signs_of(stated))


def _review(folder: Path, totals: Mapping[str, int]) -> dict[str, Json]:
    """Return the tables of the review, counted again; of votes that are not published, as they are stated."""
    dataset = open_dataset(folder)
    return tables_of_release(dataset, dataset.document(STATISTICS, ignore), totals)


def check_codes(document: Mapping[str, Any]) -> Iterator[Issue]:
    """Yield the checks that ``release.json`` counts and no stage makes."""
    for code in sorted(document.get("checks", {}).keys() - CHECKS):
        message = f"no stage of this version or an earlier one makes a check {code!r}"
        yield Issue(RELEASE, "$.checks", "check-unknown", message, _CURE)


def check_statuses(folder: Path, document: Mapping[str, Any]) -> Iterator[Issue]:
    """Yield the reviewed stories whose status is not the word that their place in gold subsets asks for."""
    part = document.get(REVIEWED)
    words = STATUS_WORDS.get(str(part.get("status"))) if isinstance(part, dict) else None
    if isinstance(part, dict) and words is None:
        message = f"{part.get('status')!r} is none of {', '.join(STATUS_WORDS)}"
        yield Issue(RELEASE, f"$.{REVIEWED}.status", "review-status", message, _CURE)
    if words is None:
        return
    subsets = read_subsets(folder).values()
    gold = {member for request, members in subsets if request.gold for member in members}
    for story_id, row in released_reviews(folder).rows.items():
        wanted = words[0] if story_id in gold else words[1]
        if row["validation_status"] != wanted:
            message = f"{story_id} is {row['validation_status']}, and should be {wanted}"
            yield Issue(REVIEWS, "$.validation_status", "review-status", message, _CURE)


def _details(folder: Path) -> dict[str, dict[str, Json]]:
    """Return what the source manifest says of single stories of the release."""
    manifest = read_json(folder / SOURCE_MANIFEST)
    rows = [row for entry in manifest["collections"] for row in entry.get(SOURCES_KEY, ())]
    ids = {str(record["story_id"]) for record in read_lines(folder / ANNOTATIONS)} if rows else set()
    return known_details(rows, "story_id", ids)


def _subsets(
    folder: Path, document: Mapping[str, Any], since: Since | None, reviews: Reviews
) -> Sequence[Subset]:
    """Draw the subsets of a release again."""
    stated = read_subsets(folder)
    if not stated:
        return ()
    changes = {} if since is None else {one["name"]: one for one in since.changes.get("subsets", ())}
    earlier: dict[str, set[str]] = {}
    for name, (_, members) in stated.items() if since is not None else ():
        change = changes.get(name, {"kind": "same", "came": (), "went": ()})
        if change["kind"] != "added":
            earlier[name] = (set(members) - set(change["came"])) | set(change["went"])
    requests = [request for request, _ in stated.values()]
    return draw_subsets(requests, read_traits(folder), reviews, earlier, stories_of(document))
