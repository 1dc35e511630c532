"""Finding out what model stages would ask, without asking: the run is rehearsed with stand-ins.

Every stage runs in a scratch journal with settings that name no model, so that later stages have something to
work on; each stage that would ask a model is also run with an asker that writes its questions down and leaves
them open. Replies that a journal holds are used; questions that depend on others, such as repairs, cannot be
known before.
"""

import asyncio
import shutil
import tempfile
import threading
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

from ..models.chat import ChatRequest, Reply
from ..models.spec import ModelSettings
from .asker import ItemAsker
from .codec import Basis, gather_fields
from .config import RunConfig, models_of
from .execute import WORK, RunRequest, creation_of, make_report
from .journal import NAME as JOURNAL
from .journal import Journal
from .journal_file import copy_journal
from .model_pool import ModelPool
from .pipeline import SOURCES, Stage, load_pipeline
from .pool import WorkerPool, default_workers
from .progress import SilentReporter
from .report import RunReport
from .runner import Means, Runner
from .sources import fingerprints
from .spilled import Spilled
from .stage import REHEARSED, Answer, Ask, Item, NoAnswer, Tools

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Asked:
    """One question that a stage would ask."""

    stage: str  # the stage
    item: str  # for which item
    prompt: str  # the prompt, as ``id@version#hash``
    request: ChatRequest  # what would be asked, as the model's settings want it
    key: str  # of the request
    sample: int  # which answer
    is_known: bool  # whether a reply is at hand, so that nobody is asked


Skip: TypeAlias = Callable[[str, str, Mapping[str, str]], bool]
"""Whether a stage's real result for an item is known, so that nothing would be asked; the mapping holds the
digests of those fields that the stage reads and no model has a hand in."""


Find: TypeAlias = Callable[[str, int], Reply | None]


@dataclass(frozen=True, slots=True)
class Script:
    """What to write down."""

    real: RunConfig  # the settings that name the models
    told: Callable[[Asked], None]  # called with every question, in the order of the stages
    skip: Skip = lambda _stage, _item, _inputs: False  # what to leave out
    # the folder of a run whose results are used where no model is asked; None makes them anew
    known: Path | None = None
    # gives the reply that is at hand to a request and sample; None where there is none
    find: Find = lambda _request, _sample: None


@dataclass(slots=True)
class _Recorder:
    """An asker that writes down and answers nothing."""

    asked: list[Ask[Any]] = field(default_factory=list)

    async def ask(self, ask: Ask[T]) -> Answer[T]:
        """Write down what is asked; a stage that can do without an answer goes on to its next question."""
        self.asked.append(ask)
        raise NoAnswer(REHEARSED, "a rehearsal asks no model")


class _Replies:
    """The replies that are at hand; every question is written down, and one without a reply stays open."""

    def __init__(self, script: "Script", item: str) -> None:
        self.attempts = script.real.run.attempts
        self._script, self._item = script, item

    def prepared(self, request: ChatRequest) -> ChatRequest:
        """Return a request as the model's settings want it asked."""
        return self._script.real.models[request.model].apply(request)

    async def reply(
        self, request: ChatRequest, sample: int, stage: str, prompt: str | None = None
    ) -> tuple[str, Reply]:
        """Return the key of a request and the reply at hand."""
        key = request.key()
        reply = self._script.find(key, sample)
        self._script.told(Asked(stage, self._item, prompt or "", request, key, sample, reply is not None))
        if reply is None:
            raise NoAnswer(REHEARSED, "a rehearsal asks no model")
        return key, reply

    def cost(self, request: str, sample: int) -> float | None:  # noqa: ARG002 - asked of every source of replies
        """Return what a reply cost; nobody needs to know here."""
        return None

    def note(self, *, at_work: int = 0, waiting: int = 0) -> None:
        """Do nothing: nobody waits."""


@dataclass(frozen=True, slots=True)
class _Rehearsing:
    """Answers the questions of one item in one stage from the replies at hand."""

    script: "Script"
    stage: str
    item: str

    async def ask(self, ask: Ask[T]) -> Answer[T]:
        """Return the answer that is at hand."""
        settings = self.script.real.stages[self.stage]
        assert isinstance(settings, ModelSettings)
        return await ItemAsker(_Replies(self.script, self.item), self.stage, settings).ask(ask)


async def questions_of(stage: Stage, item: Item, tools: Tools) -> list[Ask[Any]]:
    """Return what a stage asks about an item, as far as that shows while nothing is answered."""
    recorder = _Recorder()
    try:
        await stage.run(item, replace(tools, asker=recorder))
    except NoAnswer:
        await asyncio.sleep(0)  # whatever the stage asks at the same time is written down too
    return recorder.asked


def run_apart(work: Coroutine[Any, Any, T]) -> T:
    """Return what a coroutine comes to, run in a thread of its own: the caller may have a loop already."""
    done: list[T] = []
    failed: list[BaseException] = []

    def run() -> None:
        try:
            done.append(asyncio.run(work))
        except BaseException as error:  # noqa: BLE001 - raised again in the caller's thread
            failed.append(error)

    thread = threading.Thread(target=run, name="rehearsal", daemon=True)
    thread.start()
    thread.join()
    if failed:
        raise failed[0]
    return done[0]


class Rehearsal(Runner):
    """A run on stand-ins that writes down what the real one would ask."""

    script: "Script"  # what to write down, and for whom

    def missing_items(self, stage: Stage, basis: Basis, todo: Spilled[str]) -> None:
        """Write down what the stage would ask, then run it on its stand-in settings."""
        if models_of(self.script.real.stages[stage.name]):
            firm = self._firm_fields()
            wanted = []
            for item in todo:
                digests = dict(zip(stage.spec.reads, self.items.digests(item, stage.spec.reads), strict=True))
                inputs = {name: digest for name, digest in digests.items() if name in firm}
                if self._may_run(stage, item) and not self.script.skip(stage.name, item, inputs):
                    wanted.append(item)
            run_apart(self._record(stage, wanted))
        super().missing_items(stage, basis, todo)

    def _firm_fields(self) -> set[str]:
        """Return the fields that are the same in the real run, as no answer of a model goes into them."""
        firm = {SOURCES}
        for stage in self.loaded.stages:
            if not models_of(self.script.real.stages[stage.name]) and firm.issuperset(stage.spec.reads):
                firm.update(stage.spec.writes)
        return firm

    async def _record(self, stage: Stage, items: Sequence[str]) -> None:
        real = self.script.real
        tools = replace(self._tools(stage), settings=real.stages[stage.name])
        for item, parts in self.items.parts(self.journal, items, stage.spec.reads):
            asker = _Rehearsing(self.script, stage.name, item)
            try:
                await stage.run(Item(item, gather_fields(parts)), replace(tools, asker=asker))
            except NoAnswer:
                await asyncio.sleep(0)  # whatever the stage asks at the same time is written down too


def rehearse(request: RunRequest, stand_in: RunConfig, script: Script) -> RunReport:
    """Run the pipeline on stand-ins; tell of every question that its stages would ask.

    Returns:
        What became of the items in the rehearsal.
    """
    loaded = load_pipeline(request.pipeline)
    request.options.check(loaded)
    with _scratch() as folder:
        if script.known is not None and (script.known / JOURNAL).exists():
            asking = [stage.name for stage in loaded.stages if models_of(script.real.stages[stage.name])]
            copy_journal(script.known, folder, asking)
            if (script.known / WORK).is_dir():
                shutil.copytree(script.known / WORK, folder / WORK)
        prints = fingerprints(request.sources, folder)
        workers = request.options.workers
        workers = workers if workers is not None else request.config.run.workers
        workers = default_workers() if workers is None else workers
        with (
            Journal.open(folder) as journal,
            WorkerPool(workers, request.config.run.item_timeout) as pool,
            ModelPool(journal, {}) as nobody,
        ):
            means = Means(
                pool, nobody, SilentReporter(), lambda: False, request.options, creation_of(request),
                tuple(entry.path for entry in prints), work=folder / WORK,
            )  # fmt: skip
            runner = Rehearsal(loaded, stand_in, journal, means)
            runner.script = script
            root = runner.put_root([entry.field() for entry in prints])
            journal.flush()
            runner.walk(root)
            return make_report(runner)


@contextmanager
def _scratch() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="fabula-rehearsal-") as name:
        yield Path(name)
