"""Tuning and applying as the command line and studies ask for them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...errors import ConfigError
from ...evaluation.katha.requests import EvaluateOptions
from ...evaluation.looking import device_named
from ...evaluation.outputs.storyboards import check_splits
from ...evaluation.recoverability.definitions import Definitions
from ...evaluation.running import check_intact
from ...models.vision.weights import Place
from ...releases.loading import Release, load
from ...schemas.katha import StoryRecord
from .applying import Applied, apply_compass
from .arms import arms_named
from .boards import Candidates, read_candidates
from .budget import Budget, budget, tuning_budget
from .encoders import OWN, Encoders, open_encoders
from .frozen import FROZEN, Frozen, WeakestBy, read_frozen, write_frozen
from .judging import Judging, Ledger
from .questions import HalvedRelease, halve_release
from .rendering import Render
from .repairing import Workroom
from .tuning import tune_compass

if TYPE_CHECKING:
    from ...engine.progress import Reporter

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

    def records(self, release: Release) -> tuple[StoryRecord, ...]:
        """Return the stories that are used, by id."""
        check_splits(release, self.splits)
        chosen = [record for record in release if record.split in self.splits]
        if not chosen:
            raise ConfigError(str(self.release), what="no story is left", fix="choose another split")
        return tuple(sorted(chosen, key=lambda record: record.story_id)[: self.limit])

    def candidates(self, release: Release) -> Candidates:
        """Return the candidates of these stories."""
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
    halved = _halved(request)
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
    return halve_release(load(request.release), request.out)
