"""What packing tells of a review: the data of its tables, over public stories, and notes for who packs."""

from collections import Counter
from collections.abc import Iterator, Sequence

from ...schemas.layout import VOTE_FILES
from ...schemas.text import tallied
from ...validators.katha.review_tables import Elsewhere, ReviewData, before_adjudication, judged_of
from ...validators.katha.votes import Vote, order_of
from .additions import Additions
from .reviews import Reviews
from .selection import Selection
from .subsets import Subset

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
