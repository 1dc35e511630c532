"""Running an evaluation: what is checked before anybody is asked, and what is kept when it stops early."""

import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..engine.config import RunConfig, parse_set, read_settings
from ..engine.execute import STOPS, RunRequest, execute
from ..engine.hooks import Event
from ..engine.journal_file import NAME as JOURNAL
from ..engine.run_options import RunOptions
from ..engine.running import RunKind
from ..errors import FabulaError, MissingRequirement, RunBusy, UserError
from ..models.vision.needs import VisionSettings, fetching, lacks_of, listed, with_weights
from ..models.vision.registry import MODELS, check_vision
from ..models.vision.weights import DEVICES, Place
from ..releases.verify.files import check_intact
from .archive.archive import JUDGEMENTS, ArchiveForm
from .archive.keeping import SoFar, keep_so_far, set_aside, unite
from .judging.settings import JUDGES, without_judges
from .protocol import Protocol, Shown

if TYPE_CHECKING:
    from ..engine.estimate import CallPlan
    from ..engine.hooks import Reporter
    from ..engine.pipeline import Pipeline
    from ..engine.status import RunReport

RELEASE = "release"
"""Role of a source that is a release."""


@dataclass(frozen=True, slots=True)
class Evaluating:
    """How outputs are evaluated under a protocol, from what the user gives to the archive."""

    pipeline: "Pipeline"  # the stages
    form: ArchiveForm  # what its archives have besides judgements
    # what is judged by, a folder of outputs for each method, run folder, options -> what the engine is to
    # execute
    request: Callable[..., RunRequest]
    budget: Callable[[RunRequest], Shown]  # what an evaluation takes, by rule; no output is opened
    check: Callable[[RunRequest], None]  # what is checked before anything is told or looked at
    options: type["RunOptions"]  # the type of its options
    # what the user gives, a file or folder -> what the outputs are judged by
    opened: Callable[[Path], Path] = Path
    # settings -> those under which no judge is asked, and no model looks where that can be left out
    alone: Callable[[RunConfig], RunConfig] = without_judges
    # request -> the one that is rehearsed in its place to tell what judges will be asked
    rehearsed: Callable[[RunRequest], RunRequest] = lambda request: request
    # request -> how many items are rehearsed, and the rest taken to be like them; None for all
    sample: Callable[[RunRequest], int | None] = lambda _: None
    # the same before a run, where it is another number
    told: Callable[[RunRequest], int | None] | None = None
    # request -> stage -> calls by rule, where items that are rehearsed do not show them
    by_rule: Callable[[RunRequest], Mapping[str, int]] | None = None

    def estimate(self, request: RunRequest) -> "CallPlan":
        """Tell what would be asked of judges now, and about what that costs. Asks nothing."""
        from ..engine.estimate import plan_calls

        rehearsed = self.rehearsed(request)
        return plan_calls(rehearsed, self.alone(rehearsed.config), sample=self.sample(request))

    def tell(self, request: RunRequest, reporter: "Reporter") -> None:
        """Tell how many calls a new evaluation makes and about what they cost, or what it has cost so far."""
        from ..builders.drafting import tell_plan

        by_rule = None if self.by_rule is None else partial(self.by_rule, request)
        sample = (self.told or self.sample)(request)
        tell_plan(self.rehearsed(request), reporter, self.alone, sample, by_rule=by_rule)

    def run(
        self, request: RunRequest, reporter: "Reporter | None" = None, *, replace: bool = False
    ) -> "RunReport":
        """Execute a request; as :func:`run_evaluation`."""
        return run_evaluation(request, reporter, form=self.form, replace=replace)

    def evaluate(
        self, given: Path | str, outputs: Sequence[Path | str], out: Path | str,
        options: Any,  # noqa: ANN401 - of its commands
        reporter: "Reporter | None" = None,
    ) -> "RunReport":  # fmt: skip
        """Evaluate outputs; a run is continued."""
        request = self.request(self.opened(Path(given)), outputs, out, options)
        self.check(request)
        if reporter is not None:
            self.tell(request, reporter)
        return self.run(request, reporter, replace=options.replace)

    def protocol(self) -> Protocol:
        """Return the part that the verbs of evaluation take."""
        return Protocol(
            RunKind(self.pipeline, self.tell, runs=partial(run_evaluation, form=self.form)),
            self.form,
            sections=frozenset({JUDGES}),
        )


def check_request(request: RunRequest) -> None:
    """Check what an evaluation is about to be made from."""
    for source in request.sources:
        if source.role == RELEASE:
            check_intact(source.path)


def run_evaluation(
    request: RunRequest, reporter: "Reporter | None" = None, *, form: ArchiveForm, replace: bool = False
) -> "RunReport":
    """Execute an evaluation; where it stops early, what is answered by then is written as its archive.

    An archive that stands in the folder is united with the new one; see :mod:`.archive.keeping`. What stays
    apart is told to the reporter, or as a Python warning.
    """
    folder = Path(request.folder)
    _tell(set_aside(folder, form, replace=replace), reporter)
    try:
        report = execute(request, reporter)
        if report.totals["failed"]:
            _kept(request)
    except STOPS as stop:
        kept = _kept(request)
        if kept is None:
            raise
        raise _told(stop, kept) from stop
    finally:
        with suppress(RunBusy):  # whoever holds the run unites
            _tell(unite(folder, form), reporter)
    return report


def _tell(lines: Iterable[str], reporter: "Reporter | None") -> None:
    for line in lines:
        if reporter is None:
            warnings.warn(line, stacklevel=3)
        else:
            reporter.emit(Event("warning", data={"message": line}))


def _kept(request: RunRequest) -> SoFar | None:
    """Write what is answered so far; that it cannot be written is no reason to hide why the run stopped."""
    folder = Path(request.folder)
    if not (folder / JOURNAL).is_file():
        return None
    try:
        return keep_so_far(folder, request.pipeline)
    except FabulaError:
        return None


def _told(stop: FabulaError, kept: SoFar) -> FabulaError:
    line = f"kept: {kept.folder / JUDGEMENTS} has {kept.text()}; fabula score reads it as it is"
    if isinstance(stop, UserError):
        fix = f"{stop.fix}\n  {line}"
        return type(stop)(stop.where, what=stop.what, expected=stop.expected, found=stop.found, fix=fix)
    return type(stop)(f"{stop}\n  {line}")


# -- Models that look at pictures: looked up and pinned before anything is looked at, in any evaluation

AUTO = "auto"


def given_settings(options: RunOptions) -> set[tuple[str, str]]:
    """Return stage and key of every setting that the user gave, in a file or one by one."""
    toml = options.settings_file
    sections = {} if toml is None else read_settings(toml)
    in_file = {(stage, key) for stage, keys in sections.items() if isinstance(keys, dict) for key in keys}
    return in_file | {parse_set(text)[:2] for text in options.texts}


def device_named(name: str) -> str:
    """Return a device; for ``auto`` the fastest here. Without torch there is the CPU alone."""
    from ..models.vision.weights import available

    if name != AUTO:
        return name
    try:
        return available()[0]
    except MissingRequirement:
        return DEVICES[0]


def pinned(config: RunConfig) -> RunConfig:
    """Return settings with the hashes of the files of weights that they name."""
    stages = {
        name: with_weights(settings) if isinstance(settings, VisionSettings) else settings
        for name, settings in config.stages.items()
    }
    return replace(config, stages=stages)


def missing_libraries(config: RunConfig) -> list[str]:
    """Return what is not installed, and the model that needs it. Loads no weights."""
    missing = []
    for name, settings in _named(config):
        try:
            check_vision(name, settings.options.get(name))
        except MissingRequirement as error:
            missing.append(f"{error.where.removeprefix('the library ')} for {name}")
    return list(dict.fromkeys(missing))


def check_places(config: RunConfig) -> None:
    """Check that the devices are there; a CPU always is, and models of others may need no torch for it."""
    own = {model.name for model in MODELS}
    for name, settings in _named(config):
        if name in own or settings.device != DEVICES[0]:
            Place(settings.device, settings.dtype).checked()


def check_weights(config: RunConfig) -> None:
    """Check that every model has its weights, which are fetched where they can be, as on first use."""
    looking = [stage for stage in config.stages.values() if isinstance(stage, VisionSettings)]
    lacks = [lack for settings in looking for lack in lacks_of(settings, *settings.looking())]
    if lacks:
        raise MissingRequirement(
            "models that look at pictures",
            what=f"these weights are not here, and could not be fetched: {listed(lacks)}",
            fix=f"where there is a network: {fetching(lacks)}; or name your files (docs/vision.md)",
        )


def _named(config: RunConfig) -> Iterator[tuple[str, VisionSettings]]:
    """Yield every model that looks, with the settings of its stage."""
    for settings in config.stages.values():
        if isinstance(settings, VisionSettings):
            for name in settings.looking():
                yield name, settings
