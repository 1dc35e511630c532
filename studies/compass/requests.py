"""Tuning and applying as the command line and studies ask for them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ...errors import ConfigError, InputError
from ...evaluation.katha.requests import EvaluateOptions
from ...evaluation.outputs.storyboards import check_splits
from ...evaluation.recoverability.matching import Definitions
from ...evaluation.running import device_named
from ...models.vision.weights import Place
from ...releases.loading import Release, load
from ...releases.verify.files import check_intact
from ...schemas.katha import StoryRecord
from ...schemas.values import Score
from .applying import (
    Applied,
    Measurements,
    Repair,
    Workroom,
    apply_compass,
    measure_candidates,
    repaired,
    transitions_recovered,
)
from .arms import Measured, Render, arms_named
from .boards import (
    OWN,
    Candidates,
    Encoders,
    Floats,
    Weights,
    best_of,
    open_encoders,
    read_candidates,
    scores_of,
    write_boards,
)
from .frozen import (
    FROZEN,
    VERSION,
    Budget,
    Frozen,
    Search,
    Setting,
    WeakestBy,
    budget,
    conditions_of,
    read_frozen,
    tuning_budget,
    write_frozen,
)
from .judging import (
    MASTER_SEED,
    REPORTING,
    HalvedRelease,
    Halving,
    Judging,
    Ledger,
    halve_release,
    recovered,
)

if TYPE_CHECKING:
    from ...engine.hooks import Reporter


# -- Tuning: weights and thresholds chosen on validation stories, then frozen
#
# Question: with which weights and thresholds does selection help most on stories that are not reported on?
# Formula: the objective is the mean over stories of R (:func:`.boards.recoverability`) of the selected
#     storyboards on the **reporting** half of the validation stories' questions, with the prompts ``main``.
#     First all weights, delta and gamma are searched without repair; then, with these, the repair threshold.
# Input: candidates of validation stories, judged once on either half of their questions, images only.
# Output: a :class:`.frozen.Frozen`.
# Undefined when: no story has a candidate with a judged question in the reporting half: nothing can be tuned.
# Source: KathaTrace, G.4, B.7 and Table 43: values "validation-selected; frozen before test evaluation". It
#     names neither objective nor search.
# Departures from the source: named here. The objective is held out from what selects, or else the weight of R
#     would always win: a story's best candidate by its own selection questions is best by them. Grid:
#     weights in tenths from 0.1, adding up to 1 (only proportions count; a weight of 0 is an ablation, and
#     has arms of its own); delta among nine quantiles of the highest cosine of each transition; gamma among
#     the upper quantiles of the cosines of neighbours and 0.999; threshold among 0, 0.25, 0.5, 0.75 and 1.
#     Ties: weights nearest to equal ones, then the highest gamma, then the delta nearest to the middle of its
#     grid, then the lowest threshold: what validation stories cannot tell apart keeps all terms and repairs
#     least.
# Example: two settings select storyboards with 0.50 and 0.55: the second is frozen.

TENTHS = 10
QUANTILES = tuple(round(number / 10, 1) for number in range(1, 10))
UPPER = (0.75, 0.9, 0.95, 0.99)
NEARLY_ONE = 0.999
THRESHOLDS = (0.0, 0.25, 0.5, 0.75, 1.0)
FINE = 6
"""Digits of thresholds; cosines have as many."""
METHOD = "grid over weights, delta and gamma without repair; then the repair threshold with these"
OBJECTIVE = "mean R of the selected storyboards on the reporting half of the validation stories' questions"
TIES = "weights nearest to equal, highest gamma, delta nearest to the middle, lowest repair threshold"


@dataclass(frozen=True)
class Grid:
    """The values that are tried."""

    weights: tuple[Weights, ...] = field(repr=False)
    deltas: tuple[float, ...]
    gammas: tuple[float, ...]


def grid_of(stories: Sequence[Sequence[Measured]]) -> Grid:
    """Return the values to be tried on some stories' candidates."""
    weights = tuple(
        Weights(recoverability=r / TENTHS, coverage=t / TENTHS, copies=(TENTHS - r - t) / TENTHS)
        for r in range(1, TENTHS - 1)
        for t in range(1, TENTHS - r)
    )
    best = [
        float(np.nanmax(candidate.likeness[list(span), index]))
        for candidates in stories
        for candidate in candidates
        for index, span in enumerate(candidate.spans)
        if span and candidate.with_text[index] and not np.isnan(candidate.likeness[list(span), index]).all()
    ]
    near = [value for some in stories for candidate in some for value in candidate.neighbours.tolist()]
    gammas = {*_quantiles([value for value in near if not np.isnan(value)], UPPER), NEARLY_ONE}
    return Grid(weights, _quantiles(best, QUANTILES) or (0.0,), tuple(sorted(gammas)))


@dataclass(frozen=True)
class Searched:
    """What the search without repair chose."""

    setting: Setting  # the values, with no repair
    objective: float  # what it reached; None where it is undefined
    chosen: tuple[int, ...] = field(repr=False)  # of each story, the place of its candidate
    tried: int  # how many settings were compared


def search(stories: Sequence[Sequence[Measured]], aims: Sequence[Sequence[Score]], grid: Grid) -> Searched:
    """Return the best weights, delta and gamma on stories with candidates.

    ``stories``: of each story, its candidates; at least one.
    """
    widest = max(len(candidates) for candidates in stories)
    aim = _padded([[np.nan if a.value is None else a.value for a in some] for some in aims], widest, np.nan)
    there = _padded([[1.0] * len(some) for some in stories], widest, 0.0) > 0
    counted = ~(np.isnan(aim) & there).any(axis=1)
    if not counted.any():
        what = "no story has a candidate with a judged question in the reporting half: there is no objective"
        raise InputError.one("tuning", what=what, fix="tune on stories with more questions")
    best: tuple[tuple[float, ...], Setting, NDArray[np.int64]] | None = None
    for delta, gamma in product(grid.deltas, grid.gammas):
        values = _values(stories, delta, gamma, widest)
        for weights in grid.weights:
            places = best_of(np.where(there, scores_of(values, weights), -np.inf))
            reached = float(aim[np.arange(len(aim)), places][counted].mean())
            setting = Setting(weights=weights, delta=delta, gamma=gamma, repair_threshold=0.0)
            rank = (round(reached, 9), *_preference(setting, grid))
            if best is None or rank > best[0]:
                best = rank, setting, places
    assert best is not None
    rank, setting, places = best
    tried = len(grid.weights) * len(grid.deltas) * len(grid.gammas)
    return Searched(setting, rank[0], tuple(int(place_of) for place_of in places), tried)


def tune_compass(
    work: Workroom, candidates: Candidates, splits: Sequence[str], seed: int = MASTER_SEED
) -> Frozen:
    """Tune on the candidates of some splits' stories, and return what is to be frozen."""
    for split in splits:
        if split.endswith("test"):
            fix = "tune on validation"
            raise ConfigError(f"--split {split}", what="test stories must not be tuned on", fix=fix)
    looked = measure_candidates(work, candidates)
    aims = _aims(work, looked)
    grid = grid_of(list(looked.stories.values()))
    searched = search(list(looked.stories.values()), [aims[story] for story in looked.stories], grid)
    places = dict(zip(looked.stories, searched.chosen, strict=True))
    chosen = {story: some[places[story]] for story, some in looked.stories.items()}
    values = transitions_recovered(work, {"best": chosen}, looked.answers, looked.method)
    most = with_threshold(searched.setting, max(THRESHOLDS))
    repairs = repaired(work, {"best": chosen}, values, most, candidates.seeds)["best"]
    plain = {story: aims[story][index] for story, index in places.items()}
    reached = _by_threshold(plain, _bridged_aims(work, repairs), repairs)
    threshold = max(THRESHOLDS, key=lambda value: (reached[value] or 0.0, -value))
    return Frozen(
        version=VERSION,
        setting=with_threshold(searched.setting, threshold),
        conditions=conditions_of(work.halved, work.judging.judges(), work.encoders.identities, work.weakest),
        split="+".join(splits),
        stories=tuple(sorted(looked.stories)),
        method=candidates.method,
        seeds=candidates.seeds,
        search=Search(
            method=METHOD, seed=seed, tried=searched.tried + len(THRESHOLDS), objective=OBJECTIVE, ties=TIES,
            grid={"weights": tuple(f"{w.recoverability:g}/{w.coverage:g}/{w.copies:g}" for w in grid.weights),
                  "delta": grid.deltas, "gamma": grid.gammas, "repair_threshold": THRESHOLDS},
            reranked=round(searched.objective, 9),
            repaired={f"{value:g}": reached[value] for value in THRESHOLDS},
            base=_mean([_mean([aim.value for aim in some]) for some in aims.values()]),
            stories=sum(aim.value is not None for aim in plain.values()),
        ),
    )  # fmt: skip


def with_threshold(setting: Setting, threshold: float) -> Setting:
    return setting.model_copy(update={"repair_threshold": threshold})


def _aims(work: Workroom, looked: Measurements) -> dict[str, tuple[Score, ...]]:
    """Return the objective of each candidate: R on the questions that report."""
    answers = work.judging.answers(
        "candidates-reporting", work.halved.reporting, [looked.outputs], looked.stories
    )
    records = _reporting(work)
    return {
        story: tuple(
            recovered(records[story], answers.get((looked.method, story, candidate.board.seed), {}))
            for candidate in some
        )
        for story, some in looked.stories.items()
    }


def _reporting(work: Workroom) -> dict[str, StoryRecord]:
    chosen = work.halved.halves.records(work.halved.whole.records, REPORTING)
    return {record.story_id: record for record in chosen}


def _bridged_aims(work: Workroom, repairs: Mapping[str, Repair]) -> dict[str, Score]:
    """Return story id -> objective of its storyboard with the accepted bridge."""
    boards = {
        story: replace(repair.board, seed=None)
        for story, repair in repairs.items()
        if repair.verdict == "accepted"
    }
    if not boards:
        return {}
    outputs = write_boards(work.judging.folder / "accepted-outputs", "accepted", boards.values())
    answers = work.judging.answers("accepted-reporting", work.halved.reporting, [outputs], boards)
    records = _reporting(work)
    return {story: recovered(records[story], answers.get(("accepted", story, None), {})) for story in boards}


def _by_threshold(
    plain: Mapping[str, Score], bridged: Mapping[str, Score], repairs: Mapping[str, Repair]
) -> dict[float, float | None]:
    """Return repair threshold -> objective; a storyboard counts with its bridge where one is accepted."""
    reached = {}
    for threshold in THRESHOLDS:
        values = []
        for story, aim in plain.items():
            repair = repairs[story]
            weakest = None if repair.transition is None else repair.recovered[repair.transition - 1].value
            tried = weakest is not None and weakest < threshold
            values.append(bridged[story].value if tried and story in bridged else aim.value)
        reached[threshold] = _mean(values)
    return reached


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return round(sum(known) / len(known), 9) if known else None


def _values(stories: Sequence[Sequence[Measured]], delta: float, gamma: float, widest: int) -> Floats:
    """Return the terms of candidates, shape (stories, candidates, 3); the first stands for missing ones."""
    rows = []
    for candidates in stories:
        values = [candidate.terms(delta, gamma).values() for candidate in candidates]
        rows.append(np.stack([*values, *values[:1] * (widest - len(values))]))
    return np.stack(rows)


def _padded(rows: Sequence[Sequence[float]], widest: int, filler: float) -> Floats:
    return np.array([[*row, *[filler] * (widest - len(row))] for row in rows], dtype=np.float64)


def _preference(setting: Setting, grid: Grid) -> tuple[float, ...]:
    """Return by what equally good settings are told apart, the higher the better."""
    weights = setting.weights
    parts = (weights.recoverability, weights.coverage, weights.copies)
    middle = (len(grid.deltas) - 1) / 2
    return (
        -round(sum((part - 1 / len(parts)) ** 2 for part in parts), 9),
        setting.gamma,
        -abs(grid.deltas.index(setting.delta) - middle),
    )


def _quantiles(values: Sequence[float], shares: Sequence[float]) -> tuple[float, ...]:
    """Return quantiles of values, each once, rising; values stand for themselves, none is between two."""
    if not values:
        return ()
    taken = np.quantile(np.array(values), shares, method="lower")
    return tuple(sorted({round(float(value), FINE) for value in taken}))


# -- Tuning and applying as the command line and studies ask for them

VALIDATION = "validation"
REPORTED = ("public_test",)


@dataclass(frozen=True)
class CompassRequest:
    """What both tuning and applying are given."""

    release: Path  # folder of the release with all questions
    outputs: Path  # the candidates: outputs of one method, with seeds
    out: Path  # the folder; runs, halves and results lie in it
    options: EvaluateOptions  # who judges, how, and what it may cost in all
    coverage: str  # name of the encoder of pictures and texts
    copies: str  # name of the encoder of pictures
    weakest: WeakestBy = "own"  # how the weakest transition is found
    device: str = "cpu"  # where encoders run; ``auto`` for the fastest
    # name of an encoder -> settings of its loader
    encoder_options: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    definitions: Definitions = field(default_factory=Definitions)  # how replies become verdicts
    splits: tuple[str, ...] = ()  # stories of these are used
    limit: int | None = None  # only the first so many of them
    ledger: Ledger = field(default_factory=Ledger)  # shared with who makes frames
    reporter: "Reporter | None" = None  # takes the progress
    halves: Halving | None = None  # how questions are halved [as in the folder, else by transitions]
    selection_set: str | None = None  # whose questions select, so that all of the release's report

    def records(self, release: Release) -> tuple[StoryRecord, ...]:
        """Return the stories that are used, by id."""
        check_splits(release, self.splits)
        chosen = [record for record in release if record.split in self.splits]
        if not chosen:
            raise ConfigError(str(self.release), what="no story is left", fix="choose another split")
        return tuple(sorted(chosen, key=lambda record: record.story_id)[: self.limit])

    def candidates(self, release: Release) -> Candidates:
        return read_candidates(self.outputs, self.records(release), release.records)

    def encoders(self) -> Encoders:
        """Return the two encoders; no device is looked for where neither has weights."""
        plain = {self.coverage, self.copies} <= OWN.keys()
        run_on = Place() if plain else Place(device_named(self.device))  # type: ignore[arg-type]
        return open_encoders(self.coverage, self.copies, run_on, self.encoder_options)

    def workroom(self, halved: HalvedRelease, name: str, render: Render) -> Workroom:
        """Return what selecting and repairing need; runs lie in a folder of that name."""
        judging = Judging(self.out / name, self.options, self.definitions, self.reporter, self.ledger)
        return Workroom(halved, judging, self.encoders(), render, self.weakest)


def tune(request: CompassRequest, render: Render) -> Frozen:
    """Tune on validation stories, and write ``frozen.json``; a call that was stopped is continued."""
    halved = _halved(request)
    candidates = request.candidates(halved.whole)
    frozen = tune_compass(request.workroom(halved, "tuning", render), candidates, request.splits)
    write_frozen(request.out / FROZEN, frozen)
    return frozen


def apply(request: CompassRequest, render: Render, frozen: Path, arms: Sequence[str] = ()) -> Applied:
    """Apply a frozen file, and write outputs of arms with ``compass.json``; a stopped call is continued."""
    read, chosen = read_frozen(frozen), arms_named(arms)
    halved = _halved(replace(request, halves=read.conditions.halves))
    candidates = request.candidates(halved.whole)
    return apply_compass(request.workroom(halved, "applying", render), read, candidates, chosen, request.out)


def forecast(request: CompassRequest, arms: Sequence[str] | None) -> Budget:
    """Return what tuning (None) or applying arms asks for at most; asks nothing."""
    halved = _halved(request)
    records = request.records(halved.whole)
    seeds = len(request.candidates(halved.whole).seeds)
    judging = Judging(request.out, request.options)
    each = judging.answers_each(halved.selection)
    if arms is None:
        return tuning_budget(records, halved.halves, seeds, each, request.weakest)
    return budget(records, halved.halves, arms_named(arms), seeds, each, request.weakest)


def _halved(request: CompassRequest) -> HalvedRelease:
    check_intact(request.release)
    return halve_release(load(request.release), request.out, request.halves, request.selection_set)
