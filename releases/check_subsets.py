"""Whether the subsets of a release are what ``subsets.json`` says of them."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from ..schemas.canonical import Json, canonical_bytes
from ..schemas.issue import Issue
from ..schemas.plain_files import read_json, read_plain
from ..validators.dataset import REVIEWS
from .layout import SUBSETS
from .reviews import NO_REVIEWS, Reviews, read_reviews
from .subset_closeness import closeness
from .subset_requests import FOLDER, SubsetRequest
from .subset_traits import Traits, read_traits
from .subsets import read_subsets

_CURE = "pack the run again"


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
        part = [stories[one] for one in members if one in stories]
        if part:
            yield from _check_entry(entries[name], part, list(stories.values()))


def _check_members(
    folder: Path, request: SubsetRequest, members: Sequence[str], stories: Mapping[str, Traits]
) -> Iterator[Issue]:
    for story_id in sorted(set(members) - stories.keys()):
        yield _issue(request, f"{story_id} is not a public story")
    wanted = b"".join(canonical_bytes({"story_id": one}) + b"\n" for one in sorted(set(members)))
    if read_plain(folder / request.file) != wanted:
        yield _issue(request, "not written as packing writes it: one id per line, sorted, each once")
    if not request.per_category:
        if len(members) != request.count:
            yield _issue(request, f"it has {len(members)} stories, and {request.count} were asked for")
        return
    counts = Counter(stories[one].category for one in members if one in stories)
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
