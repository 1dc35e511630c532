"""Subsets of a release of stories: drawn like the whole, nested where asked, gold where reviews back it."""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ...errors import ConfigError
from ...schemas.canonical import Json, canonical_bytes, pretty_bytes
from ...schemas.layout import ANNOTATIONS, REVIEWS, SUBSETS
from ...schemas.plain_files import json_lines, read_json, read_plain
from ...schemas.values import Issue
from ...validators.statistics import NO_VALUE
from ..subsets.closeness import Traits, closeness
from ..subsets.drawing import ALL, draw
from ..subsets.requests import FOLDER, OPTION, SubsetRequest, read_subsets
from .reviews import NO_REVIEWS, Reviews, read_reviews, why_unbacked

FORMAT = 1
KINDS = ("narrative_type", "moral_label", "source_dataset", "language", "split")
"""The fields of which each story has one value; the values of the first are the categories of Table 20."""
QUESTIONS = "question_type"
_CURE = "pack the run again"


def traits_of(record: Mapping[str, Json]) -> Traits:
    """Return the traits of one record."""
    values = {**record, "source_dataset": record["provenance"]["source_dataset"]}
    questions = record["questions"]
    return Traits(
        id=record["story_id"],
        kinds={name: NO_VALUE if values[name] is None else str(values[name]) for name in KINDS},
        parts_field=QUESTIONS,
        parts=Counter(str(question[QUESTIONS]) for question in questions),
        sizes={
            "questions": len(questions),
            "scenes": len(record["scenes"]),
            "characters": len(record["story_text"]),
        },
        unclear=any(question["answerability"] == "unclear" for question in questions),
    )


def read_traits(folder: Path) -> list[Traits]:
    """Return the traits of the stories of a release, in id order.

    Raises:
        OSError, ValueError, LookupError, TypeError: its records cannot be read.
    """
    return [traits_of(record) for record in json_lines(folder / ANNOTATIONS)]


def title_of(field: str) -> str:
    """Return a field's name for people."""
    return "questions" if field == QUESTIONS else field.replace("_", " ")


@dataclass(frozen=True, slots=True)
class Subset:
    """A subset that was drawn.

    Attributes:
        request: what was asked for.
        members: its story ids, sorted.
        kept: how many of them the version before had in it; None where it had no such subset.
        closeness: how close it is to the whole; see :func:`.closeness.closeness`.
    """

    request: SubsetRequest
    members: tuple[str, ...]
    kept: int | None
    closeness: Mapping[str, Json]

    def as_json(self) -> dict[str, Json]:
        """Return what ``subsets.json`` says of it."""
        return {
            "name": self.request.name,
            "file": self.request.file,
            "asked": self.request.asked,
            "stories": len(self.members),
            "kept": self.kept,
            "closeness": self.closeness,
        }


def draw_subsets(
    requests: Sequence[SubsetRequest],
    stories: Sequence[Traits],
    reviews: Reviews,
    earlier: Mapping[str, Collection[str]],
) -> list[Subset]:
    """Draw subsets from the public stories of a release.

    Args:
        requests: what is asked for, parents first.
        stories: the public stories.
        reviews: the reviews on file.
        earlier: name of a subset of the version before -> its members.

    Raises:
        ConfigError: there are too few stories for a subset, or too few that reviews back.
    """
    drawn: dict[str, Subset] = {}
    for request in requests:
        pool = set(drawn[request.parent].members if request.parent else (story.id for story in stories))
        eligible = {story.id for story in stories if story.id in pool and _may(request, story, reviews)}
        quotas = _quotas(request, stories)
        _require(request, [story for story in stories if story.id in pool], eligible, quotas, reviews)
        before = earlier.get(request.name)
        members = draw(request.name, stories, eligible, quotas, before or ())
        part = set(members)
        drawn[request.name] = Subset(
            request,
            members,
            None if before is None else len(part & set(before)),
            closeness(stories, [story for story in stories if story.id in part]),
        )
    return list(drawn.values())


def _may(request: SubsetRequest, story: Traits, reviews: Reviews) -> bool:
    """Return whether a story may be in a subset of that name."""
    if not request.gold:
        return True
    # Table 20: strict gold excludes what is ambiguous.
    return reviews.unbacked(story.id) is None and not ("strict" in request.name and story.unclear)


def _quotas(request: SubsetRequest, stories: Sequence[Traits]) -> dict[str, int]:
    if not request.per_category:
        return {ALL: request.count}
    return dict.fromkeys(sorted({story.category for story in stories}), request.count)


def _require(
    request: SubsetRequest,
    pool: Sequence[Traits],
    eligible: Collection[str],
    quotas: Mapping[str, int],
    reviews: Reviews,
) -> None:
    there = Counter(ALL if ALL in quotas else story.category for story in pool if story.id in eligible)
    short = {group: quota for group, quota in quotas.items() if there[group] < quota}
    if not short:
        return
    found = ", ".join(str(there[group]) if group == ALL else f"{group}: {there[group]}" for group in short)
    if request.gold:
        why = why_unbacked(reviews, [story.id for story in pool])
        found = f"{found} ({why}; reviews: {reviews.path})" if reviews.path else "no file of reviews"
        fix = "give the adjudicated reviews with --reviews FILE, or choose a name without gold"
    else:
        fix = "ask for fewer stories"
    kind = "story" if request.count == 1 else "stories"
    kind = f"{kind} backed by adjudicated reviews" if request.gold else kind
    raise ConfigError(
        f"{OPTION} {request.name}={request.asked}",
        expected=f"at least {request.count} {kind}{' of each narrative type' if ALL not in quotas else ''}"
        f"{f' in {request.parent}' if request.parent else ''}",
        found=found,
        fix=fix,
    )


def subset_files(subsets: Sequence[Subset]) -> dict[str, bytes]:
    """Return path -> content of a file per subset, and of ``subsets.json``; nothing where there is none."""
    if not subsets:
        return {}
    document = {"format": FORMAT, "subsets": [subset.as_json() for subset in subsets]}
    members = {subset.request.file: member_lines(subset.members) for subset in subsets}
    return {**members, SUBSETS: pretty_bytes(document)}


def member_lines(members: Iterable[str]) -> bytes:
    """Return the content of a subset's file."""
    return b"".join(canonical_bytes({"story_id": story_id}) + b"\n" for story_id in members)


def write_subsets(folder: Path, subsets: Sequence[Subset]) -> None:
    """Write :func:`subset_files` into a folder."""
    for name, content in subset_files(subsets).items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_bytes(content)


def stated_subsets(folder: Path) -> list[Subset]:
    """Return the subsets of a release as it states them.

    Raises:
        InputError: what it says of its subsets cannot be read.
    """
    subsets = read_subsets(folder)
    if not subsets:
        return []
    entries = {entry["name"]: entry for entry in read_json(folder / SUBSETS)["subsets"]}
    return [
        Subset(request, members, entries[name].get("kept"), entries[name]["closeness"])
        for name, (request, members) in subsets.items()
    ]


def check_subsets(folder: Path) -> Iterator[Issue]:
    """Yield every disagreement between the subsets of a public release, its records and its reviews."""
    subsets = read_subsets(folder)
    listed = {request.file for request, _ in subsets.values()}
    for path in sorted((folder / FOLDER).glob("*")):
        if f"{FOLDER}/{path.name}" not in listed:
            yield Issue(f"{FOLDER}/{path.name}", "$", "subset", f"not in {SUBSETS}", "remove the file")
    if not subsets:
        return
    stories = {story.id: story for story in read_traits(folder)}
    reviews = read_reviews(folder / REVIEWS) if (folder / REVIEWS).is_file() else NO_REVIEWS
    entries = {entry["name"]: entry for entry in read_json(folder / SUBSETS)["subsets"]}
    for name, (request, members) in subsets.items():
        parent = None if request.parent is None else subsets[request.parent][1]
        yield from _check_members(folder, request, members, stories)
        yield from _check_nested(request, members, parent)
        yield from _check_gold(request, members, reviews)
        part = [stories[member] for member in members if member in stories]
        if part:
            yield from _check_entry(entries[name], part, list(stories.values()))


def _check_members(
    folder: Path, request: SubsetRequest, members: Sequence[str], stories: Mapping[str, Traits]
) -> Iterator[Issue]:
    for story_id in sorted(set(members) - stories.keys()):
        yield _issue(request, f"{story_id} is not a public story")
    wanted = member_lines(sorted(set(members)))
    if read_plain(folder / request.file) != wanted:
        yield _issue(request, "not written as packing writes it: one id per line, sorted, each once")
    if not request.per_category:
        if len(members) != request.count:
            yield _issue(request, f"it has {len(members)} stories, and {request.count} were asked for")
        return
    counts = Counter(stories[member].category for member in members if member in stories)
    for category in sorted({story.category for story in stories.values()}):
        if counts[category] != request.count:
            message = f"{counts[category]} stories of {category}, {request.count} were asked for"
            yield _issue(request, message)


def _check_nested(
    request: SubsetRequest, members: Sequence[str], parent: Sequence[str] | None
) -> Iterator[Issue]:
    if parent is not None:
        for story_id in sorted(set(members) - set(parent)):
            yield _issue(request, f"{story_id} is not in {request.parent}, of which this is a subset")


def _check_gold(request: SubsetRequest, members: Sequence[str], reviews: Reviews) -> Iterator[Issue]:
    for story_id in members if request.gold else ():
        why = reviews.unbacked(story_id)
        if why is not None:
            yield _issue(request, f"{story_id} is called gold, and no adjudicated review backs it: {why}")


def _check_entry(
    entry: Mapping[str, Json], part: Sequence[Traits], whole: Sequence[Traits]
) -> Iterator[Issue]:
    if entry.get("stories") != len(part) or entry.get("closeness") != closeness(whole, part):
        message = f"what it says of {entry['name']} is not what its stories give"
        yield Issue(SUBSETS, "$.subsets", "subset", message, _CURE)


def _issue(request: SubsetRequest, message: str) -> Issue:
    return Issue(request.file, "$", "subset", message, _CURE)
