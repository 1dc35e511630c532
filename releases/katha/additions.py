"""What a release gets beyond its data: reviews, subsets, a canary, and commitments to its hidden test."""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn

from ...errors import ConfigError
from ...schemas.canonical import Json, canonical_bytes, pretty_bytes
from ...schemas.paths import ANNOTATIONS, CANARY, RELEASE, RETELLINGS, REVIEWS, SUBSETS, hidden_folder
from ...schemas.plain_files import json_lines, read_json, read_plain
from ...schemas.text import tallied
from ...schemas.values import Issue
from ...validators.report import VOTES
from ...validators.statistics import NO_VALUE
from ..form import FinishedRun, LeftOut
from ..hidden.marks import (
    CANARY_FORM,
    canary_file,
    commitments_of,
    committed,
    keep_salt,
    make_canary,
    salt_beside,
)
from ..options import PackOptions
from ..subsets import (
    ALL,
    FOLDER,
    GOLD,
    OPTION,
    SubsetRequest,
    Traits,
    closeness,
    draw,
    read_subsets,
    requested,
)
from .reviews import (
    NO_REVIEWS,
    NONE,
    PUBLISHED,
    Reviews,
    Signs,
    read_reviews,
    released_reviews,
    vote_lines,
    why_unbacked,
)
from .selection import Composition, Selection

# -- Subsets of a release of stories: drawn like the whole, nested where asked, gold where reviews back it

FORMAT = 1
KINDS = ("narrative_type", "moral_label", "source_dataset", "language", "split")
"""The fields of which each story has one value; the values of the first are the categories of Table 20."""
QUESTIONS = "question_type"
_CURE = "pack the run again"


def traits_of(record: Mapping[str, Json]) -> Traits:
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
    """Return the traits of the stories of a release, in id order."""
    return [traits_of(record) for record in json_lines(folder / ANNOTATIONS)]


def title_of(field: str) -> str:
    """Return a field's name for people."""
    return "questions" if field == QUESTIONS else field.replace("_", " ")


@dataclass(frozen=True, slots=True)
class Subset:
    """A subset that was drawn."""

    request: SubsetRequest  # what was asked for
    members: tuple[str, ...]  # its story ids, sorted
    kept: int | None  # how many of them the version before had in it; None where it had no such subset
    closeness: Mapping[str, Json]  # how close it is to the whole; see :func:`.closeness.closeness`
    # narrative type, or ``all`` -> how many stories it was to have, where there were fewer
    short: Mapping[str, int] = field(default_factory=dict)

    @property
    def counts(self) -> dict[str, int]:
        """Narrative type -> how many stories it has of it; ``all`` -> how many in all."""
        rows = self.closeness["fields"][KINDS[0]]["values"]
        return {ALL: len(self.members), **{name: row["subset"] for name, row in rows.items()}}

    def as_json(self) -> dict[str, Json]:
        return {
            "name": self.request.name,
            "file": self.request.file,
            "asked": self.request.asked,
            "stories": len(self.members),
            "kept": self.kept,
            "closeness": self.closeness,
            **({"short": dict(self.short)} if self.request.share else {}),
        }


def draw_subsets(
    requests: Sequence[SubsetRequest],
    stories: Sequence[Traits],
    reviews: Reviews,
    earlier: Mapping[str, Collection[str]],
    total: int,
) -> list[Subset]:
    """Draw subsets from the public stories of a release.

    ``earlier``: name of a subset of the version before -> its members.
    """
    drawn: dict[str, Subset] = {}
    for request in requests:
        pool = set(drawn[request.parent].members if request.parent else (story.id for story in stories))
        eligible = {story.id for story in stories if story.id in pool and _may(request, story, reviews)}
        quotas = quotas_of(request, stories, eligible, total)
        short = _short(quotas, stories, eligible)
        if not eligible or (short and not request.share):
            _refuse(request, [story for story in stories if story.id in pool], short, reviews)
        room = {group: short.get(group, (quota, quota))[1] for group, quota in quotas.items()}
        before = earlier.get(request.name)
        members = draw(request.name, stories, eligible, room, before or ())
        part = set(members)
        drawn[request.name] = Subset(
            request,
            members,
            None if before is None else len(part & set(before)),
            closeness(stories, [story for story in stories if story.id in part]),
            {group: quota for group, (quota, _) in short.items()},
        )
    return list(drawn.values())


def _may(request: SubsetRequest, story: Traits, reviews: Reviews) -> bool:
    if not request.gold:
        return True
    if request.strict and story.unclear:  # Table 20: strict gold excludes what is ambiguous
        return False
    return reviews.unbacked(story.id, strict=request.strict) is None


def quotas_of(
    request: SubsetRequest, stories: Sequence[Traits], eligible: Collection[str], total: int
) -> dict[str, int]:
    """Return narrative type, or ``all`` -> how many stories a subset is to have of it.

    A share that does not divide evenly gives one more to the types of which most stories may be drawn.
    """
    types = Counter(story.category for story in stories)
    if not request.share:
        return dict.fromkeys(sorted(types), request.count) if request.per_category else {ALL: request.count}
    size = max(1, (request.count * total + 50) // 100)
    if not request.per_category:
        return {ALL: size}
    there = Counter(story.category for story in stories if story.id in eligible)
    ordered = sorted(types, key=lambda name: (-there[name], -types[name], name))
    each, more = divmod(size, len(ordered))
    return {name: each + (ordered.index(name) < more) for name in sorted(ordered)}


def _short(
    quotas: Mapping[str, int], stories: Sequence[Traits], eligible: Collection[str]
) -> dict[str, tuple[int, int]]:
    """Return type -> its quota, and how many stories may be drawn, where these are too few."""
    there = Counter(ALL if ALL in quotas else story.category for story in stories if story.id in eligible)
    return {group: (quota, there[group]) for group, quota in quotas.items() if there[group] < quota}


def _refuse(
    request: SubsetRequest,
    pool: Sequence[Traits],
    short: Mapping[str, tuple[int, int]],
    reviews: Reviews,
) -> NoReturn:
    counts = (f"{there}" if group == ALL else f"{group}: {there}" for group, (_, there) in short.items())
    listed = ", ".join(counts)
    if request.gold:
        why = why_unbacked(reviews, [story.id for story in pool], strict=request.strict)
        unclear = sum(story.unclear for story in pool) if request.strict else 0
        why += f"{', ' * bool(why)}{unclear} with a question of unclear answerability" if unclear else ""
        listed = f"{listed} ({why}; reviews: {reviews.path})" if reviews.path else "no file of reviews"
        fix = "give the reviews with --reviews FILE, or choose a name without gold"
    else:
        fix = "ask for fewer stories"
    least = 1 if request.share else request.count
    kind = "story" if least == 1 else "stories"
    kind = f"{kind} that reviews back" if request.gold else kind
    each = request.per_category and not request.share
    raise ConfigError(
        f"{OPTION} {request.name}={request.asked}",
        expected=f"at least {least} {kind}{' of each narrative type' if each else ''}"
        f"{f' in {request.parent}' if request.parent else ''}",
        found=listed,
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
    subsets = read_subsets(folder)
    if not subsets:
        return []
    entries = {entry["name"]: entry for entry in read_json(folder / SUBSETS)["subsets"]}
    return [
        Subset(
            request,
            members,
            entries[name].get("kept"),
            entries[name]["closeness"],
            dict(entries[name].get("short", {})),
        )
        for name, (request, members) in subsets.items()
    ]


def stories_of(document: Mapping[str, Json]) -> int:
    """Return how many stories a release has, hidden ones included, by its ``release.json``."""
    parts = (document.get("counts") or {}, document.get("hidden_test") or {})
    return sum(int(part.get("stories", 0)) for part in parts)


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
    reviews = released_reviews(folder)
    total = stories_of(read_json(folder / RELEASE))
    entries = {entry["name"]: entry for entry in read_json(folder / SUBSETS)["subsets"]}
    for name, (request, members) in subsets.items():
        parent = None if request.parent is None else subsets[request.parent][1]
        pool = stories if parent is None else {name: stories[name] for name in parent if name in stories}
        eligible = {story.id for story in pool.values() if _may(request, story, reviews)}
        quotas = quotas_of(request, list(stories.values()), eligible, total)
        short = _short(quotas, list(pool.values()), eligible) if request.share else {}
        yield from _check_members(folder, request, members, stories, quotas, short)
        yield from _check_nested(request, members, parent)
        yield from _check_gold(request, members, stories, reviews)
        part = [stories[member] for member in members if member in stories]
        stated_short = {group: quota for group, (quota, _) in short.items()}
        if request.share and entries[name].get("short") != stated_short:
            yield Issue(SUBSETS, "$.subsets", "subset", f"what {name} lacks is not what it says", _CURE)
        if part:
            yield from _check_entry(entries[name], part, list(stories.values()))


def _check_members(
    folder: Path,
    request: SubsetRequest,
    members: Sequence[str],
    stories: Mapping[str, Traits],
    quotas: Mapping[str, int],
    short: Mapping[str, tuple[int, int]],
) -> Iterator[Issue]:
    for story_id in sorted(set(members) - stories.keys()):
        yield _issue(request, f"{story_id} is not a public story")
    wanted = member_lines(sorted(set(members)))
    if read_plain(folder / request.file) != wanted:
        yield _issue(request, "not written as packing writes it: one id per line, sorted, each once")
    asked = {group: short.get(group, (quota, quota))[1] for group, quota in quotas.items()}
    if ALL in asked:
        if len(members) != asked[ALL]:
            yield _issue(
                request, f"it has {tallied(len(members), 'stories')}, and {asked[ALL]} were asked for"
            )
        return
    counts = Counter(stories[member].category for member in members if member in stories)
    for category, quota in asked.items():
        if counts[category] != quota:
            yield _issue(
                request, f"{tallied(counts[category], 'stories')} of {category}, {quota} were asked for"
            )


def _check_nested(
    request: SubsetRequest, members: Sequence[str], parent: Sequence[str] | None
) -> Iterator[Issue]:
    if parent is not None:
        for story_id in sorted(set(members) - set(parent)):
            yield _issue(request, f"{story_id} is not in {request.parent}, of which this is a subset")


def _check_gold(
    request: SubsetRequest, members: Sequence[str], stories: Mapping[str, Traits], reviews: Reviews
) -> Iterator[Issue]:
    for story_id in members if request.gold else ():
        why = reviews.unbacked(story_id, strict=request.strict)
        if why is None and request.strict and story_id in stories and stories[story_id].unclear:
            why = "a question of unclear answerability"
        if why is not None:
            yield _issue(request, f"{story_id} is called gold, and no review backs it: {why}")


def _check_entry(
    entry: Mapping[str, Json], part: Sequence[Traits], whole: Sequence[Traits]
) -> Iterator[Issue]:
    if entry.get("stories") != len(part) or entry.get("closeness") != closeness(whole, part):
        message = f"what it says of {entry['name']} is not what its stories give"
        yield Issue(SUBSETS, "$.subsets", "subset", message, _CURE)


def _issue(request: SubsetRequest, message: str) -> Issue:
    return Issue(request.file, "$", "subset", message, _CURE)


# -- What a release gets beyond its data


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is wanted beyond the data, read before any work is done."""

    reviews: Reviews  # the reviews on file
    requests: Sequence[SubsetRequest]  # the subsets to draw, parents first
    earlier: Mapping[str, Collection[str]]  # name of a subset of the version before -> its members
    canary: str | None  # the canary of the version before, if it has one
    salt: Path | None  # the salt file that a person named
    earlier_salt: Path | None  # where the salt of the version before would lie
    promised: bool  # whether the version before committed to hidden stories


@dataclass(frozen=True, slots=True)
class Additions:
    """What a release gets beyond its data."""

    reviewed: bool  # whether reviews of packed stories are on file
    subsets: Sequence[Subset]  # the subsets that were drawn
    canary: str  # its canary
    # what ``release.json`` says of its commitments; None where it has no hidden test
    commitments: Mapping[str, Json] | None
    salt: bytes | None  # what they are salted with
    retold: bool = False  # whether groups of stories that retell one another are on file
    # which words of the paper the reviewed records have; None where there is no review, or an earlier version
    # packed it
    review_status: str | None = None
    votes: str = NONE  # what became of the votes behind the reviews
    simulated: bool = False  # whether programs took part in the review
    # what the reviews are bound to; None where there are none, or an earlier version packed it
    bindings: Mapping[str, Any] | None = None
    careless: Signs = field(default_factory=dict)  # reviewers with signs of carelessness, and these

    @property
    def files(self) -> dict[str, str]:
        """Path of a file that not every release has -> what it holds."""
        files = {subset.request.file: _told(subset.request) for subset in self.subsets}
        reviews = {REVIEWS: "summaries of human reviews"} if self.reviewed else {}
        if self.reviewed and self.votes == PUBLISHED:
            reviews[VOTES] = "votes of the reviewers, one a line, under pseudonyms"
        groups = {RETELLINGS: "groups of stories that retell one another, and what shows it"}
        return {**files, **reviews, **(groups if self.retold else {})}


@dataclass(frozen=True, slots=True)
class StoryFacts:
    """What is known about released stories beyond the facts of any release."""

    composition: Composition  # counts over the public records
    balance: Mapping[str, Any]  # the content of ``moral_balance_requirements.json``
    hidden: Mapping[str, int]  # counts of the hidden-test stories
    left_out_hidden: int  # how many stories of the hidden test split are left out
    # the files of Table 23 that are not in the release, with reasons
    left_out_files: Sequence[Mapping[str, Json]]
    more: Additions  # reviews, subsets, canary and commitments
    withdrawn: Sequence[LeftOut] = ()  # the stories that were taken out for good, public ones only
    withdrawn_hidden: int = 0  # how many more there are, of the hidden test split
    # the file of reviews, where it is counted again and not written yet; ``votes`` likewise
    reviews: bytes = b""
    votes: bytes = b""
    tells_states: bool = True  # whether ``release.json`` counts states; that of an earlier version does not


def wanted(options: PackOptions) -> Wanted:
    """Read what the options of packing want beyond the data."""
    since = options.since
    before = {} if since is None else read_subsets(since)
    document = {} if since is None else _document(since)
    canary = document.get("canary")
    if since is not None and options.reviews is None and (since / REVIEWS).is_file():
        raise ConfigError(
            "--reviews",
            what="the earlier release has human reviews, and no file of reviews is given",
            fix=f"give them again with --reviews, for example {since / REVIEWS}; add the reviews of new "
            "stories to it",
        )
    return Wanted(
        reviews=NO_REVIEWS if options.reviews is None else read_reviews(options.reviews),
        requests=requested(
            (*options.subsets, *(GOLD if options.gold else ())), [request for request, _ in before.values()]
        ),
        earlier={name: members for name, (_, members) in before.items()},
        canary=canary if isinstance(canary, str) and CANARY_FORM.fullmatch(canary) else None,
        salt=options.salt,
        earlier_salt=None if since is None else salt_beside(hidden_folder(since.absolute())),
        promised=bool(document.get("commitments")),
    )


def add(
    want: Wanted,
    run: FinishedRun,
    selection: Selection,
    options: PackOptions,
    drafts: tuple[Path, Path],
    subsets: Sequence[Subset],
) -> Additions:
    """Write reviews, votes, subsets and canary into both folders' drafts, and commit to hidden stories."""
    public, hidden = drafts
    write_subsets(public, subsets)
    canary = want.canary or make_canary(options.name, run.manifest.created_at)
    (public / CANARY).write_bytes(canary_file(canary, options.title))
    reviewed = _write_reviews(public, want.reviews, selection.public)
    open_votes = want.reviews.published == PUBLISHED
    salt = None
    if selection.hidden:
        (hidden / CANARY).write_bytes(canary_file(canary, options.title))
        _write_reviews(hidden, want.reviews, selection.hidden)
        salt = keep_salt(run.folder, want.salt, want.earlier_salt, promised=want.promised)
    return Additions(
        reviewed=reviewed,
        subsets=subsets,
        canary=canary,
        commitments=None if salt is None else committed(commitments_of(hidden, salt), salt),
        salt=salt,
        review_status=options.review_status if reviewed else None,
        votes=NONE if open_votes and not (public / VOTES).exists() else want.reviews.published,
        simulated=want.reviews.simulated,
        bindings=None if want.reviews.path is None else want.reviews.bindings(selection.public),
        careless=want.reviews.careless if reviewed else {},
    )


def review_lines(reviews: Reviews, packed: Collection[str]) -> bytes:
    """Return the file of the accepting reviews of packed stories, one line each in the order of their ids."""
    return b"".join(canonical_bytes(row) + b"\n" for row in reviews.accepted(packed))


def _write_reviews(folder: Path, reviews: Reviews, packed: Collection[str]) -> bool:
    """Write the accepting reviews of packed stories, and their votes; return whether there is a review."""
    content = review_lines(reviews, packed)
    if content:
        (folder / REVIEWS).write_bytes(content)
    votes = vote_lines(reviews.open_votes, {row["story_id"] for row in reviews.accepted(packed)})
    if votes:
        (folder / VOTES).write_bytes(votes)
    return bool(content)


def _document(release: Path) -> dict[str, Json]:
    """Return the ``release.json`` of a release; nothing where it cannot be read, which is told elsewhere."""
    with suppress(OSError, ValueError):
        document = read_json(release / RELEASE)
        return document if isinstance(document, dict) else {}
    return {}


def _told(request: SubsetRequest) -> str:
    return f"a subset: {request.words}{f' of {request.parent}' if request.parent else ''}, by id"
