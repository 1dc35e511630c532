"""The candidates of stories, judged and looked at once; which one each arm takes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from .arms import Arm
from .boards import Candidates, write_boards
from .frozen import Setting
from .judging import Answers, Key
from .measuring import Measured
from .repairing import Workroom
from .scoring import ranked


@dataclass(frozen=True)
class Measurements:
    """Candidates with what their terms are counted from."""

    method: str  # of the candidates
    outputs: Path  # a folder with them, as evaluations read it
    # story id -> its valid candidates by seed; stories without one are left out
    stories: Mapping[str, tuple[Measured, ...]] = field(repr=False)
    answers: Mapping[Key, Answers] = field(repr=False)  # what judges answered to the selection questions


def measure_candidates(work: Workroom, candidates: Candidates) -> Measurements:
    """Have candidates judged by the selection questions, and look at their pictures."""
    boards = {story: some for story, some in sorted(candidates.boards.items()) if some}
    listed = [board for some in boards.values() for board in some]
    outputs = write_boards(work.judging.folder / "candidates", candidates.method, listed)
    answers = work.judging.answers("candidates-selection", work.halved.selection, [outputs], boards)
    method = candidates.method
    return Measurements(
        method,
        outputs,
        {
            story: tuple(work.measure(board, answers.get((method, story, board.seed), {})) for board in some)
            for story, some in boards.items()
        },
        answers,
    )


def chosen_by(
    arm: Arm, candidates: Sequence[Measured], first: int | None, setting: Setting
) -> Measured | None:
    """Return the candidate of a story that an arm takes; None where that of the first seed is invalid."""
    if arm.start == "first":
        return next((candidate for candidate in candidates if candidate.board.seed == first), None)
    terms = [candidate.terms(setting.delta, setting.gamma) for candidate in candidates]
    return candidates[ranked(terms, setting.weights.only(arm.terms)).best]
