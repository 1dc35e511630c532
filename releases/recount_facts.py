"""The facts of a release, counted again from its data and ``release.json``, and the documents they make."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ..schemas.canonical import Json, canonical_bytes, sha256_bytes
from ..schemas.plain_files import open_plain, parse_json, read_json
from ..validators.dataset import REVIEWS
from .additions import Additions, review_lines
from .changes_since import Since
from .check_tables import count_rows
from .composition import Counted
from .documents import ORIGIN, Origin, file_entries, story_documents
from .facts import Facts
from .flat_kind import FlatKind
from .layout import ANNOTATIONS, CHANGES, JSONL_FILES, PRODUCERS, RECORD_IDS, SOURCE_MANIFEST, VARIANTS
from .layout import WITHDRAWN as GONE
from .licence import licence
from .options import PackOptions
from .read_back import expected_rows
from .reviews import NO_REVIEWS, Reviews, read_reviews
from .selection import LeftOut, left_out_files
from .subsets.stories import Subset, draw_subsets, read_subsets, read_traits, stated_subsets
from .suite_documents import flat_documents
from .suite_facts import SuiteFacts, stated_languages


@dataclass(frozen=True, slots=True)
class Recounted:
    """What a release should hold.

    Attributes:
        documents: path -> content of every document, made again.
        data: the files that are no documents.
        facts: what they were made from.
        reviewed_otherwise: ids of the records that say something else of their review than the review does.
    """

    documents: Mapping[str, bytes]
    data: frozenset[str]
    facts: Facts | SuiteFacts
    reviewed_otherwise: tuple[str, ...] = ()


def recount_stories(folder: Path, document: Mapping[str, Any], *, exact: bool) -> Recounted:
    """Make the documents of a public release of stories again.

    Args:
        folder: the release.
        document: its ``release.json``.
        exact: draw the subsets again; else they are taken as they are stated.

    Raises:
        UserError, OSError, ValueError, LookupError, TypeError, AttributeError: it is damaged.
    """
    from ..validators.statistics import HiddenCounts, StatisticsCollector, moral_balance

    reviews = read_reviews(folder / REVIEWS) if (folder / REVIEWS).is_file() else NO_REVIEWS
    counted, otherwise = Counted(StatisticsCollector()), list[str]()
    hashes = _count(folder, counted, reviews, otherwise)
    counted.composition.checks = {code: Counter(row) for code, row in document.get("checks", {}).items()}
    hidden = HiddenCounts(**document.get("hidden_test", {}))
    options, since = _options(document, ()), _since(folder, document)
    content = review_lines(reviews, hashes[ANNOTATIONS])
    more = Additions(
        reviewed=bool(content),
        subsets=_subsets(folder, since, reviews) if exact else stated_subsets(folder),
        canary=str(document.get("canary", "")),
        commitments=document.get("commitments"),
        salt=None,
    )
    left_out, gone = document.get("left_out", {}), document.get(GONE, {})
    facts = Facts(
        options=options,
        licence=licence(str(document["license"])),
        created_at=str(document["created_at"]),
        composition=counted.composition,
        statistics=counted.statistics.result(hidden),
        balance=moral_balance(counted.moral_labels.elements()),
        hidden=hidden.as_json(),
        left_out=sorted(LeftOut(**one) for one in left_out.get("stories", ())),
        left_out_hidden=left_out.get("hidden_test_stories", 0),
        left_out_files=left_out_files(more.files if more.reviewed else ()),
        rows=count_rows(expected_rows(folder)),
        more=more,
        since=since,
        withdrawn=sorted(
            LeftOut(one["id"], GONE, one["reason"], status=GONE) for one in gone.get("stories", ())
        ),
        withdrawn_hidden=gone.get("hidden_test_stories", 0),
    )
    documents = story_documents(facts, _origin(folder, document), hashes, file_entries(folder))
    if content:
        documents[REVIEWS] = content
    return Recounted(documents, frozenset((*JSONL_FILES, *facts.rows)), facts, tuple(otherwise))


def recount_flat(
    folder: Path, document: Mapping[str, Any], kind: FlatKind, records: Sequence[Any]
) -> Recounted:
    """Make the documents of a flat release again.

    Args:
        folder: the release.
        document: its ``release.json``.
        kind: what it holds.
        records: its records.

    Raises:
        UserError, OSError, ValueError, LookupError, TypeError, AttributeError: it is damaged.
    """
    languages = document["languages"] if "languages" in document else stated_languages(folder)
    facts = SuiteFacts(
        kind=kind,
        options=_options(document, tuple(map(str, languages))),
        licence=licence(str(document["license"])),
        created_at=str(document["created_at"]),
        statistics=kind.statistics(folder, records),
        left_out=sorted(LeftOut(**one) for one in document["left_out"][kind.unit]),
        rows=count_rows(expected_rows(folder, kind.shape)),
        since=_since(folder, document),
    )
    hashes = {kind.id_of(one): sha256_bytes(canonical_bytes(one.as_json())) for one in records}
    documents = flat_documents(facts, _origin(folder, document), hashes, file_entries(folder))
    data = frozenset((kind.lines, *facts.rows, *kind.official(folder, records)))
    return Recounted(documents, data, facts)


def _count(
    folder: Path, counted: Counted, reviews: Reviews, otherwise: list[str]
) -> dict[str, dict[str, str]]:
    """Count the records of a folder; return file -> id -> hash of each.

    The ids of records that do not say what their review says are added to a list.
    """
    hashes: dict[str, dict[str, str]] = {name: {} for name in JSONL_FILES}
    splits: dict[str, str] = {}
    for name in (ANNOTATIONS, VARIANTS, PRODUCERS):
        for row in _rows(folder / name):
            hashes[name][row[RECORD_IDS[name]]] = sha256_bytes(canonical_bytes(row))
            if name == ANNOTATIONS:
                splits[row["story_id"]] = row["split"]
                counted.add_record(row)
                if reviews.reviewed(row) != row:
                    otherwise.append(row["story_id"])
            elif name == VARIANTS:
                counted.add_variant(splits[row["base_story_id"]], row)
            else:
                counted.add_producers(row["fields"])
    return hashes


def _rows(path: Path) -> Iterator[dict[str, Json]]:
    with open_plain(path) as lines:
        for line in lines:
            yield parse_json(line)


def _options(document: Mapping[str, Any], languages: tuple[str, ...]) -> PackOptions:
    """Return the options that say of a release what it says of itself."""
    about = document["about"]
    made = PackOptions(
        version=str(document["version"]),
        name=about["name"],
        title=about["title"],
        creators=tuple(about["creators"]),
        url=about["url"],
        contact=about["contact"],
        languages=languages,
    )
    given = None if about["citation"] == made.reference else about["citation"]
    return replace(made, citation=given).checked()


def _origin(folder: Path, document: Mapping[str, Any]) -> Origin:
    """Return where a release says that it comes from; its first versions named their sources elsewhere."""
    origin = {name: document[name] for name in ORIGIN if name in document}
    if "inputs" not in origin:
        origin["inputs"] = read_json(folder / SOURCE_MANIFEST)["inputs"]
    return origin


def _since(folder: Path, document: Mapping[str, Any]) -> Since | None:
    """Return what is known of the version before; only :mod:`.diffing.check` can say whether it is true."""
    if "previous" not in document:
        return None
    changes = read_json(folder / CHANGES)
    return Since(PackOptions(str(document["version"])), document["previous"], changes, ())


def _subsets(folder: Path, since: Since | None, reviews: Reviews) -> Sequence[Subset]:
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
    return draw_subsets([request for request, _ in stated.values()], read_traits(folder), reviews, earlier)
