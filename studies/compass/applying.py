"""Applying a frozen file: every arm's storyboards for stories that tuning has not seen.

Algorithm 1 over the candidates of the seeds, and the controls beside it. What is written is a folder of
outputs for each arm, ready for ``fabula evaluate stories``, and ``compass.json`` with what was chosen and
why. It can be stopped at any moment: the same call continues it, and gives the same bytes. What it cost
stands in ``spent.json``, since an interrupted call may have been paid for.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import numpy as np

from ...schemas.canonical import Json, Plain, digest, pretty_bytes, write_atomic, writing
from ...schemas.katha import StoryRecord
from ...schemas.values import Score
from .arms import Arm, FrameRequest, Frames, Measured, Render, measured, requests_for
from .boards import (
    TERMS,
    Board,
    Candidates,
    Encoders,
    Seed,
    copy_penalty,
    frame_of,
    ranked,
    resembles,
    weakest_transition,
    write_boards,
)
from .frozen import CELLS, HELD_OUT, Frozen, Setting, WeakestBy, budget, check_applies, conditions_of
from .judging import (
    MASTER_SEED,
    SELECTION,
    Answers,
    HalvedRelease,
    Judging,
    Key,
    part_of,
    recovered,
    write_parts,
)

# -- Single-bridge repair: the weakest transition, frames that are tried there, and which one is taken
#
# Lines 9 to 16 of Algorithm 1. A storyboard is repaired at most once, at its weakest transition, where that
# is below the repair threshold. One frame for each seed is tried; the storyboard with it is judged again by
# the same selection questions. The best is taken where it raises the frozen score and is no copy of a
# neighbour.

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
class Trial(Plain):
    """One frame that was tried."""

    seed: Seed  # of the frame
    before: float  # frozen score without it
    after: float  # frozen score with it
    nearest: float | None  # its highest cosine with a neighbour; None where there is none
    copies: bool  # whether that is above gamma
    accepted: bool = False  # whether it was taken


@dataclass(frozen=True)
class Repair:
    """What became of one storyboard."""

    board: Board  # the storyboard, with a bridge where one was accepted
    verdict: Verdict  # why, or why not
    transition: int | None  # the weakest one, from 1; None where there is none
    recovered: tuple[Score, ...]  # R of each transition (Eq. 27).
    trials: tuple[Trial, ...] = ()  # the frames that were tried, by seed

    def as_json(self) -> dict[str, Any]:
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


# -- The candidates of stories, judged and looked at once; which one each arm takes


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


# -- Applying a frozen file

COMPASS, SPENT, OUTPUTS = "compass.json", "spent.json", "outputs"
Repairs = Mapping[str, Mapping[str, Repair]]
"""Start -> story id -> what became of its storyboard."""


@dataclass(frozen=True)
class Applied:
    """What applying a frozen file made."""

    outputs: Mapping[str, Path]  # arm -> its folder of outputs
    document: Mapping[str, Any] = field(repr=False)  # what ``compass.json`` says
    boards: Mapping[str, tuple[Board, ...]] = field(repr=False)  # arm -> its storyboards

    def as_json(self) -> dict[str, Any]:
        """Return what ``compass.json`` says, with the folders."""
        return {**self.document, "outputs": {name: str(path) for name, path in self.outputs.items()}}

    def lines(self) -> list[str]:
        return [
            f"{name}: {arm['storyboards']} storyboards"
            + ("" if arm["inserted"] is None else f", {arm['inserted']} of them with a frame more")
            for name, arm in self.document["arms"].items()
        ]


def apply_compass(
    work: Workroom, frozen: Frozen, candidates: Candidates, arms: Sequence[Arm], out: Path
) -> Applied:
    """Make the storyboards of arms for the candidates' stories.

    ``work``: what it needs; its runs lie below ``work.judging.folder``.
    """
    now = conditions_of(work.halved, work.judging.judges(), work.encoders.identities, work.weakest)
    check_applies(frozen, now, candidates.boards)
    making = _Making(work, frozen, candidates, tuple(arms), measure_candidates(work, candidates))
    starts: dict[str, dict[str, Measured]] = {arm.start: making.starts(arm) for arm in arms if arm.localises}
    values = transitions_recovered(work, starts, making.looked.answers, candidates.method)
    tested: dict[str, dict[str, Measured]] = {arm.start: starts[arm.start] for arm in arms if arm.tests}
    repairs = repaired(work, tested, values, frozen.setting, candidates.seeds)
    frames = rendered(work.render, making.always(values))
    boards = {arm.name: tuple(making.boards(arm, values, repairs, frames)) for arm in arms}
    document = making.document(values, repairs, boards)
    outputs = {name: write_boards(out / OUTPUTS / name, name, some) for name, some in boards.items()}
    with writing(out):
        write_atomic(out / COMPASS, [pretty_bytes(document)])
        write_atomic(out / SPENT, [pretty_bytes(work.judging.ledger.as_json())])
    return Applied(outputs, document, boards)


@dataclass(frozen=True)
class _Making:
    """Arms in the making: the candidates, and what is the same for all arms."""

    work: Workroom
    frozen: Frozen
    candidates: Candidates
    arms: tuple[Arm, ...]
    looked: Measurements

    def starts(self, arm: Arm) -> dict[str, Measured]:
        """Return story id -> the candidate that an arm takes, where there is one."""
        first = self.candidates.seeds[0]
        chosen = {
            story: chosen_by(arm, some, first, self.frozen.setting)
            for story, some in self.looked.stories.items()
        }
        return {story: candidate for story, candidate in chosen.items() if candidate is not None}

    def place(self, arm: Arm, story: str, values: Recovered) -> int | None:
        """Return at which transition, from 1, an arm inserts that does not test; None where at none."""
        if arm.localises:
            at = weakest_transition(values[arm.start][story])
            return None if at is None else at + 1
        count = len(self.work.records[story].transitions)
        return 1 + int(digest([MASTER_SEED, arm.name, story])[:12], 16) % count if count else None

    def always(self, values: Recovered) -> Iterator[FrameRequest]:
        """Yield the frames of the arms that insert without a test."""
        for arm in self.arms:
            if arm.insertion is None or arm.tests:
                continue
            for story in self.starts(arm):
                if (at := self.place(arm, story, values)) is not None:
                    yield self._request(arm, story, at)

    def _request(self, arm: Arm, story: str, at: int) -> FrameRequest:
        assert arm.insertion is not None
        first = self.candidates.seeds[:1]
        (request,) = requests_for(self.work.records[story], at, arm.insertion.shows, first)
        return request

    def boards(self, arm: Arm, values: Recovered, repairs: Repairs, frames: Frames) -> Iterator[Board]:
        if arm.start == "all":
            yield from (candidate.board for some in self.looked.stories.values() for candidate in some)
            return
        for story, start in self.starts(arm).items():
            board = start.board
            if arm.tests:
                board = repairs[arm.start][story].board
            elif arm.insertion is not None and (at := self.place(arm, story, values)) is not None:
                file = frames.get(self._request(arm, story, at).key)
                if file is not None:
                    board = board.with_frame(self.work.records[story], at, frame_of(file)) or board
            yield replace(board, seed=None)

    def document(
        self, values: Recovered, repairs: Repairs, boards: Mapping[str, Sequence[Board]]
    ) -> dict[str, Json]:
        """Return what ``compass.json`` says."""
        frozen = self.frozen
        return {
            "version": 1,
            "frozen_sha256": frozen.sha256,
            "setting": frozen.setting.as_json(),
            "method": self.candidates.method,
            "seeds": list(self.candidates.seeds),
            "invalid": [list(pair) for pair in self.candidates.invalid],
            "selection": {"prompts": frozen.conditions.prompts, "half": "selection",
                          "questions_sha256": frozen.conditions.questions_sha256},
            "reporting": {"final": HELD_OUT.as_json(), "cells": [cell.as_json() for cell in CELLS]},
            "arms": {
                arm.name: {
                    **_arm(arm, boards[arm.name]),
                    "requested": len(self.candidates.boards)
                    * (len(self.candidates.seeds) if arm.start == "all" else 1),
                    "copies": self._copies(boards[arm.name]),
                    "asked": self._asked(arm, boards[arm.name], repairs),
                }
                for arm in self.arms
            },
            "stories": {story: self._story(story, values, repairs) for story in self.looked.stories},
        }  # fmt: skip

    def _copies(self, boards: Sequence[Board]) -> dict[str, Json]:
        """Return how many neighbouring frames there are, and how many of them are copies (Eq. 26)."""
        files = [[frame.file for frame in board.frames] for board in boards]
        scores = [
            copy_penalty(self.work.encoders.neighbours(some), self.frozen.setting.gamma) for some in files
        ]
        pairs = sum(int(score.denominator or 0) for score in scores)
        return {"pairs": pairs, "above_gamma": sum(int(score.numerator or 0) for score in scores)}

    def _asked(self, arm: Arm, boards: Sequence[Board], repairs: Repairs) -> dict[str, Json]:
        """Return what an arm asked, as if it were alone: calls of judges by what they are about, pictures."""
        records = [self.work.records[story] for story in self.starts(arm) or self.looked.stories]
        most = budget(
            records, self.work.halved.halves, [arm], len(self.candidates.seeds), self.answers_each,
            self.work.weakest,
        ).arms[arm.name]  # fmt: skip
        tried = repairs.get(arm.start, {}) if arm.tests else {}
        selecting = {story: len(self.work.selecting[story].questions) for story in tried}
        made = sum(bool(board.bridges) for board in boards)
        frames = sum(len(repair.trials) for repair in tried.values()) if arm.tests else made
        candidates = [
            len(candidate.board.frames)
            for some in self.looked.stories.values()
            for candidate in some
            if arm.start != "first" or candidate.board.seed == self.candidates.seeds[0]
        ]
        bridges = sum(selecting[story] * len(repair.trials) for story, repair in tried.items())
        asked = {
            "candidates": most.candidates, "weakest": most.weakest, "bridges": bridges * self.answers_each,
        }  # fmt: skip
        return {**asked, "calls": sum(asked.values()), "pictures": sum(candidates) + frames}

    @cached_property
    def answers_each(self) -> int:
        return self.work.judging.answers_each(self.work.halved.selection)

    def _story(self, story: str, values: Recovered, repairs: Repairs) -> dict[str, Json]:
        setting = self.frozen.setting
        some = self.looked.stories[story]
        terms = [candidate.terms(setting.delta, setting.gamma) for candidate in some]
        ranking = ranked(terms, setting.weights)
        return {
            "candidates": [
                {
                    "seed": candidate.board.seed, "score": score,
                    **{name: _plain(getattr(each, name)) for name in TERMS},
                }
                for candidate, each, score in zip(some, terms, ranking.scores, strict=True)
            ],
            "compared_by": list(ranking.terms),
            "selected": {
                arm.name: chosen.board.seed
                for arm in self.arms
                if arm.start != "all" and (chosen := self.starts_of(arm, story)) is not None
            },
            "transitions": {
                start: [_plain(score) for score in of_story[story]]
                for start, of_story in values.items()
                if story in of_story
            },
            "repairs": {
                start: of_story[story].as_json() for start, of_story in repairs.items() if story in of_story
            },
            "inserted_at": {
                arm.name: self.place(arm, story, values)
                for arm in self.arms
                if arm.insertion and not arm.tests and self.starts_of(arm, story) is not None
            },
        }  # fmt: skip

    def starts_of(self, arm: Arm, story: str) -> Measured | None:
        """Return the candidate of a story that an arm takes; None where there is none."""
        return chosen_by(arm, self.looked.stories[story], self.candidates.seeds[0], self.frozen.setting)


def _arm(arm: Arm, boards: Sequence[Board]) -> dict[str, Json]:
    insertion = arm.insertion
    return {
        "label": arm.label, "tables": list(arm.tables), "starts_from": arm.start,
        "reranks_by": list(arm.terms), "bridges": arm.tests,
        "inserts": None if insertion is None else
        {"at": insertion.at, "shows": insertion.shows, "tested": insertion.tested},
        "storyboards": len(boards),
        "inserted": None if insertion is None else sum(bool(board.bridges) for board in boards),
    }  # fmt: skip


def _plain(score: Score) -> dict[str, Json]:
    return {"value": score.value, "reason": score.reason, "counts": score.counts}
