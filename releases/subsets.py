"""Subsets of a release: drawn like the whole, nested where asked, gold only where reviews back it."""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ..errors import ConfigError, InputError, UserError
from ..schemas.canonical import Json, canonical_bytes, pretty_bytes
from ..schemas.plain_files import parse_json, read_json, read_plain
from .layout import SUBSETS
from .reviews import Reviews, why_unbacked
from .subset_closeness import closeness
from .subset_drawing import ALL, draw
from .subset_requests import OPTION, SubsetRequest
from .subset_traits import Traits

FORMAT = 1


@dataclass(frozen=True, slots=True)
class Subset:
    """A subset that was drawn.

    Attributes:
        request: what was asked for.
        members: its story ids, sorted.
        kept: how many of them the version before had in it; None where it had no such subset.
        closeness: how close it is to the whole; see :func:`.subset_closeness.closeness`.
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
    members = {
        subset.request.file: b"".join(canonical_bytes({"story_id": one}) + b"\n" for one in subset.members)
        for subset in subsets
    }
    return {**members, SUBSETS: pretty_bytes(document)}


def write_subsets(folder: Path, subsets: Sequence[Subset]) -> None:
    """Write :func:`subset_files` into a folder."""
    for name, content in subset_files(subsets).items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_bytes(content)


def read_subsets(folder: Path) -> dict[str, tuple[SubsetRequest, tuple[str, ...]]]:
    """Return name -> request and members of the subsets of a release.

    Raises:
        InputError: what it says of its subsets cannot be read.
    """
    from .subset_requests import requested

    try:
        document = read_json(folder / SUBSETS)
        texts = [f"{entry['name']}={entry['asked']}" for entry in document["subsets"]]
        return {request.name: (request, subset_members(folder, request.file)) for request in requested(texts)}
    except FileNotFoundError as error:
        if error.filename == str(folder / SUBSETS):
            return {}
        raise _unreadable(folder, error) from error
    except (OSError, ValueError, LookupError, TypeError, ConfigError) as error:
        raise _unreadable(folder, error) from error


def stated_subsets(folder: Path) -> list[Subset]:
    """Return the subsets of a release as it states them.

    Raises:
        InputError: what it says of its subsets cannot be read.
    """
    subsets = read_subsets(folder)
    if not subsets:
        return []
    entries = {one["name"]: one for one in read_json(folder / SUBSETS)["subsets"]}
    return [
        Subset(request, members, entries[name].get("kept"), entries[name]["closeness"])
        for name, (request, members) in subsets.items()
    ]


def subset_members(folder: Path, file: str) -> tuple[str, ...]:
    """Return the story ids that the file of a subset lists, in its order.

    Raises:
        OSError, ValueError, LookupError, TypeError: it cannot be read.
    """
    return tuple(str(parse_json(line)["story_id"]) for line in read_plain(folder / file).splitlines())


def _unreadable(folder: Path, error: Exception) -> InputError:
    problem = UserError(
        str(folder / SUBSETS),
        expected="the subsets of a packed release",
        found=f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}",
        fix="fetch or pack that release again",
    )
    return InputError([problem])
