"""What a release gets beyond its data: reviews, subsets, a canary, and commitments to its hidden test."""

from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ...errors import ConfigError
from ...schemas.canonical import Json, canonical_bytes
from ...schemas.layout import CANARY, RELEASE, RETELLINGS, REVIEWS, hidden_folder
from ...schemas.plain_files import read_json
from ...validators.review_marks import VOTES
from ..canary import CANARY_FORM, canary_file, make_canary
from ..form import FinishedRun, LeftOut
from ..hidden.commitments import commitments_of, committed, keep_salt, salt_beside
from ..options import PackOptions
from ..subsets.requests import GOLD, SubsetRequest, read_subsets, requested
from .care import Signs
from .composition import Composition
from .reviews import NO_REVIEWS, Reviews, read_reviews
from .selection import Selection
from .subsets import Subset, write_subsets
from .votes import NONE, PUBLISHED, vote_lines


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
