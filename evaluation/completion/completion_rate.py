"""Completion rate of one video.

Question: what share of the events that its prompt names does the video show completed?
Formula: the mean over the events of s*, where s* of an event comes from the votes of one verifier (Eq. 1).
Input: the completion list of each vote, one 0 or 1 per event, null for a vote without an answer.
Output: a share in [0, 1]; higher is better.
Undefined when: no vote has an answer. Whether that counts as 0 is decided where prompts are pooled.
Source: StoryEval, sections 2.2.3 and 6.1, Eq. 1.
Departures from the source: none. The paper does not say what a prompt with some answers counts; its tables
follow from the votes that were answered, which is the default (``partial=answered``).
Example: votes (1, 0) and (1, 1) under unanimous voting give (1, 0), a rate of 0.5.
"""

from collections.abc import Sequence

from ...schemas.score import Score
from ..metrics.metric import Quantity
from .votes import Definitions, combine

METRIC = Quantity(name="rate", label="Completed", direction="higher", range=(0, 1))
NONRESPONSE = Quantity(name="non_response", label="Without response", direction="lower", range=(0, 1))
"""Share of prompts without any answer."""
NO_ANSWER = "no vote has an answer"


def completion_rate(
    votes: Sequence[Sequence[int] | None], events: int, definitions: Definitions
) -> tuple[Score, tuple[float, ...] | None]:
    """Return the completion rate of a video, and the completion score of each event behind it.

    Args:
        votes: completion list of each vote, null where there is none.
        events: how many events there are.
        definitions: how votes are combined.
    """
    answered = [vote for vote in votes if vote is not None]
    counts = {"votes": len(votes), "answered": len(answered)}
    if not answered:
        return Score(value=None, status="undefined", reason=NO_ANSWER, counts=counts), None
    if definitions.partial == "required":
        answered += [(0,) * events] * (len(votes) - len(answered))
    combined = combine(answered, definitions.voting)
    return Score.ratio(sum(combined), events, NO_ANSWER, **counts), combined
