"""Single-bridge repair: the weakest transition, frames that are tried there, and which one is taken.

Lines 9 to 16 of Algorithm 1. A storyboard is repaired at most once, at its weakest transition, where that is
below the repair threshold. One frame for each seed is tried; the storyboard with it is judged again by the
same selection questions. The best is taken where it raises the frozen score and is no copy of a neighbour.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np

from ...schemas.katha import StoryRecord
from ...schemas.values import Score
from .boards import Board, Seed, frame_of, write_boards
from .encoders import Encoders
from .frozen import Setting, WeakestBy
from .judging import SELECTION, Answers, HalvedRelease, Judging, Key, part_of, recovered, write_parts
from .measuring import Measured, measured
from .rendering import FrameRequest, Frames, Render, requests_for
from .scoring import ranked, resembles, weakest_transition

Verdict = Literal["accepted", "no-question", "above-threshold", "no-frame", "copies-neighbour", "no-gain"]
VERDICTS: Mapping[Verdict, str] = {
    "accepted": "a frame raised the frozen score and copies no neighbour",
    "no-question": "no transition has a selection question that was judged, so that none is the weakest",
    "above-threshold": "the weakest transition is not below the repair threshold",
    "no-frame": "the generator made no frame",
    "copies-neighbour": "every frame that raised the score is a copy of a neighbour",
    "no-gain": "no frame raised the frozen score",
}


@dataclass(frozen=True)
class Workroom:
    """What selecting and repairing need."""

    halved: HalvedRelease = field(repr=False)  # the release in its halves
    judging: Judging = field(repr=False)  # asks judges
    encoders: Encoders = field(repr=False)  # psi
    render: Render = field(repr=False)  # has frames made
    weakest: WeakestBy = "own"  # how the weakest transition is found

    @property
    def records(self) -> dict[str, StoryRecord]:
        """Story id -> its record, with all questions."""
        return {record.story_id: record for record in self.halved.whole.records}

    @property
    def selecting(self) -> dict[str, StoryRecord]:
        """Story id -> its record, with the questions that select."""
        chosen = self.halved.halves.records(self.halved.whole.records, SELECTION)
        return {record.story_id: record for record in chosen}

    def measure(self, board: Board, answers: Answers) -> Measured:
        """Return a storyboard with what its terms are counted from."""
        record = self.selecting[board.story_id]
        return measured(board, record, recovered(record, answers), self.encoders)


@dataclass(frozen=True, slots=True)
class Trial:
    """One frame that was tried."""

    seed: Seed  # of the frame
    before: float  # frozen score without it
    after: float  # frozen score with it
    nearest: float | None  # its highest cosine with a neighbour; None where there is none
    copies: bool  # whether that is above gamma
    accepted: bool = False  # whether it was taken

    def as_json(self) -> dict[str, Any]:
        """Return it as plain JSON."""
        return {name: getattr(self, name) for name in self.__slots__}


@dataclass(frozen=True)
class Repair:
    """What became of one storyboard."""

    board: Board  # the storyboard, with a bridge where one was accepted
    verdict: Verdict  # why, or why not
    transition: int | None  # the weakest one, from 1; None where there is none
    recovered: tuple[Score, ...]  # R of each transition (Eq. 27).
    trials: tuple[Trial, ...] = ()  # the frames that were tried, by seed

    def as_json(self) -> dict[str, Any]:
        """Return it as plain JSON."""
        return {
            "verdict": self.verdict, "why": VERDICTS[self.verdict], "weakest_transition": self.transition,
            "transitions": [score.value for score in self.recovered],
            "trials": [trial.as_json() for trial in self.trials],
        }  # fmt: skip


Starts = Mapping[str, Mapping[str, Measured]]
"""Name -> story id -> the storyboard that is repaired."""
Recovered = Mapping[str, Mapping[str, tuple[Score, ...]]]
"""Name -> story id -> R of each transition (Eq. 27)."""


def transitions_recovered(
    work: Workroom, starts: Starts, answers: Mapping[Key, Answers], method: str
) -> dict[str, dict[str, tuple[Score, ...]]]:
    """Return R of each transition of storyboards."""
    boards = {name: [start.board for start in some.values()] for name, some in starts.items()}
    if work.weakest == "whole":
        return {
            name: {
                board.story_id: _of_whole(
                    work.selecting[board.story_id], board,
                    answers.get((method, board.story_id, board.seed), {}),
                )
                for board in some
            }
            for name, some in boards.items()
        }  # fmt: skip
    release, outputs, parts = write_parts(work.halved, work.judging.folder / "weakest-parts", boards)
    alone = work.judging.answers("weakest", release, outputs, parts)
    return {
        name: {board.story_id: _of_parts(work.selecting[board.story_id], name, alone) for board in some}
        for name, some in boards.items()
    }


def _of_whole(record: StoryRecord, board: Board, answers: Answers) -> tuple[Score, ...]:
    spans = board.spans(record)
    return tuple(recovered(record, answers if span else {}, number) for number, span in enumerate(spans, 1))


def _of_parts(record: StoryRecord, method: str, answers: Mapping[Key, Answers]) -> tuple[Score, ...]:
    parts = [part_of(record, number) for number in range(1, len(record.transitions) + 1)]
    return tuple(recovered(part, answers.get((method, part.story_id, None), {})) for part in parts)


def repaired(
    work: Workroom, starts: Starts, values: Recovered, setting: Setting, seeds: Sequence[Seed]
) -> dict[str, dict[str, Repair]]:
    """Repair storyboards by Algorithm 1; return name -> story id -> what became of each.

    ``seeds``: of the frames that are tried.
    """
    made: dict[str, dict[str, Repair]] = {arm: {} for arm in starts}
    wanted: dict[tuple[str, str], tuple[FrameRequest, ...]] = {}
    for arm, boards in starts.items():
        for story, start in boards.items():
            recovered_here = values[arm][story]
            at = weakest_transition(recovered_here)
            if at is None:
                made[arm][story] = Repair(start.board, "no-question", None, recovered_here)
            elif (recovered_here[at].value or 0.0) >= setting.repair_threshold:
                made[arm][story] = Repair(start.board, "above-threshold", at + 1, recovered_here)
            else:
                wanted[arm, story] = requests_for(work.records[story], at + 1, "transition", seeds)
    frames = rendered(work.render, [request for some in wanted.values() for request in some])
    tried = {
        (arm, story): _with_frames(work, starts[arm][story].board, some, frames)
        for (arm, story), some in wanted.items()
    }
    answers = _judge(work, tried)
    for (arm, story), requests in wanted.items():
        start, transition = starts[arm][story], requests[0].transition
        bridged = [
            work.measure(board, answers.get((arm, story, board.seed), {})) for board in tried[arm, story]
        ]
        trials, verdict, best = _tried(start, bridged, setting)
        board = start.board if best is None else replace(bridged[best].board, seed=start.board.seed)
        made[arm][story] = Repair(board, verdict, transition, values[arm][story], trials)
    return made


def rendered(render: Render, requests: Iterable[FrameRequest]) -> Frames:
    """Have frames made, each once, in the order of their keys."""
    listed = {request.key: request for request in requests}
    return render([listed[key] for key in sorted(listed)]) if listed else {}


def _with_frames(
    work: Workroom, board: Board, requests: Sequence[FrameRequest], frames: Frames
) -> list[Board]:
    """Return a storyboard with each of some frames, called by the seeds of the frames."""
    boards = []
    for request in requests:
        file = frames.get(request.key)
        if file is None:
            continue
        bridged = board.with_frame(work.records[board.story_id], request.transition, frame_of(file))
        if bridged is not None:
            boards.append(replace(bridged, seed=request.seed))
    return boards


def _judge(work: Workroom, tried: Mapping[tuple[str, str], Sequence[Board]]) -> dict[Key, Answers]:
    """Have storyboards with frames judged by the selection questions, all arms in one evaluation."""
    arms = sorted({arm for (arm, _), boards in tried.items() if boards})
    outputs = [
        write_boards(
            work.judging.folder / "bridged-outputs" / arm, arm,
            [board for (owner, _), boards in tried.items() if owner == arm for board in boards],
        )
        for arm in arms
    ]  # fmt: skip
    stories = {story for (_, story), boards in tried.items() if boards}
    return work.judging.answers("bridged", work.halved.selection, outputs, stories)


def _tried(
    start: Measured, bridged: Sequence[Measured], setting: Setting
) -> tuple[tuple[Trial, ...], Verdict, int | None]:
    """Return the trials, the verdict, and the place of the frame that is taken."""
    trials = []
    for board in bridged:
        both = [each.terms(setting.delta, setting.gamma) for each in (start, board)]
        before, after = ranked(both, setting.weights).scores
        near = board.next_to_bridge
        known = near[~np.isnan(near)]
        nearest = float(known.max()) if len(known) else None
        trials.append(Trial(board.board.seed, before, after, nearest, resembles(near, setting.gamma)))
    rising = [index for index, trial in enumerate(trials) if trial.after > trial.before]
    taken = [index for index in rising if not trials[index].copies]
    if taken:
        best = max(taken, key=lambda index: (trials[index].after, -index))
        trials[best] = replace(trials[best], accepted=True)
        return tuple(trials), "accepted", best
    verdict: Verdict = "no-frame" if not trials else "copies-neighbour" if rising else "no-gain"
    return tuple(trials), verdict, None
