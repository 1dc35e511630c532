"""The terms of storyboards: answers and likenesses first, thresholds afterwards.

What costs something, answers of judges and vectors of pictures, does not depend on thresholds. So it is
measured once, and tuning only counts.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from ...schemas.katha import StoryRecord
from ...schemas.values import Score
from .arms import annotation_text
from .boards import Board
from .encoders import Encoders
from .scoring import Floats, Terms, copy_penalty, transition_coverage


@dataclass(frozen=True)
class Measured:
    """A storyboard with what its terms are counted from."""

    board: Board  # the storyboard
    recoverability: Score  # R over its selection questions
    # cosine of each frame and each annotation, shape (frames, transitions)
    likeness: Floats = field(repr=False)
    neighbours: Floats = field(repr=False)  # cosine of each frame and the next, shape (frames - 1,)
    spans: tuple[tuple[int, ...], ...] = field(repr=False)  # of each transition, its frames, from 0
    with_text: tuple[bool, ...] = field(repr=False)  # whether each transition has an annotation with text

    def terms(self, delta: float, gamma: float) -> Terms:
        """Return its terms under two thresholds."""
        return Terms(self.recoverability, self.coverage(delta), self.copies(gamma))

    def coverage(self, delta: float) -> Score:
        """Return C of Eq. 25 under a threshold."""
        return transition_coverage(self.likeness, self.spans, self.with_text, delta)

    def copies(self, gamma: float) -> Score:
        """Return P of Eq. 26 under a threshold."""
        return copy_penalty(self.neighbours, gamma)

    @property
    def next_to_bridge(self) -> Floats:
        """Cosines of an inserted frame and its neighbours; empty where none was inserted."""
        pairs = [at for number in self.board.bridges for at in (number - 2, number - 1)]
        return self.neighbours[[at for at in pairs if 0 <= at < len(self.neighbours)]]


def measured(board: Board, record: StoryRecord, recoverability: Score, encoders: Encoders) -> Measured:
    """Look at a storyboard."""
    files = [frame.file for frame in board.frames]
    texts: Sequence[str] = [annotation_text(transition) for transition in record.transitions]
    return Measured(
        board,
        recoverability,
        encoders.likeness(files, texts),
        encoders.neighbours(files),
        board.spans(record),
        tuple(bool(text) for text in texts),
    )
