"""What a run would ask of models and about what that costs, before anything is asked."""

import asyncio
import shutil
import tempfile
import threading
from collections import Counter
from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from ..models.chat import ChatRequest, Reply, Usage
from ..models.generators.request import CHOSEN, typical_tokens
from ..models.prices import (
    MostTokens,
    Price,
    batch_price_of,
    check_extra,
    estimate_request,
    highest_cost,
    most_tokens,
    price_of,
    tell_unknown_price,
)
from ..models.registry import check_provider, has_batches
from ..models.spec import Makes, ModelSettings, parse_spec
from ..prompts.loader import load_prompt
from ..schemas.canonical import plain_parts
from .asker import ItemAsker
from .calls import replies_in
from .config import RunConfig, models_of
from .execute import WORK, Options, RunRequest, creation_of, make_report, with_attempts
from .hooks import SilentReporter
from .journal import NAME as JOURNAL
from .journal import Basis, Journal, gather_fields
from .journal_file import copy_journal
from .manifest import fingerprints
from .model_pool import ModelPool
from .pipeline import SOURCES, Stage, load_pipeline
from .pool import WorkerPool, default_workers
from .runner import Means, Runner
from .salvage import Past, past_of
from .spilled import Spilled
from .stage import REHEARSED, Answer, Ask, Item, NoAnswer, Tools
from .status import RunReport

if TYPE_CHECKING:
    from ..models.vision.needs import VisionPlan


# -- Finding out what model stages would ask, without asking: the run is rehearsed with stand-ins
#
# Every stage runs in a scratch journal with settings that name no model, so that later stages have something
# to work on; each stage that would ask a model is also run with an asker that writes its questions down and
# leaves them open. Replies that a journal holds are used; questions that depend on others, such as repairs,
# cannot be known before.

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
                if self.may_run(stage, item) and not self.script.skip(stage.name, item, inputs):
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
        tools = replace(self.tools(stage), settings=real.stages[stage.name], rehearsed=True)
        for item, parts in self.items.parts(self.journal, items, stage.spec.reads):
            asker = _Rehearsing(self.script, stage.name, item)
            try:
                await stage.run(Item(item, gather_fields(parts)), replace(tools, asker=asker))
            except NoAnswer:
                await asyncio.sleep(0)  # whatever the stage asks at the same time is written down too


def rehearse(request: RunRequest, stand_in: RunConfig, script: Script) -> RunReport:
    """Run the pipeline on stand-ins; tell of every question that its stages would ask.

    Returned: what became of the items in the rehearsal.
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


# -- What a run would ask of models and about what that costs, before anything is asked


@dataclass(frozen=True, slots=True)
class StagePlan:
    """What one stage would ask of one model."""

    stage: str  # the stage
    model: str  # the model's spec
    # expected calls; repairs, and questions that follow from answers, are counted where experience tells how
    # many there are
    calls: int
    known: int  # calls that the journal answers for nothing, besides
    input_tokens: int  # expected
    output_tokens: int  # expected
    cost: float | None  # expected USD; None where the price is not known
    highest: float | None  # USD that all calls together cost at most, repairs left out; None as well
    calibrated: bool  # whether calls of this stage in this run told what to expect
    batched: bool = False  # whether they go out in batches, at the price of those
    # what they are, where they are told apart from the rest of the stage: guesses, or repairs
    apart: str = ""

    @property
    def name(self) -> str:
        """The stage, and what of it these calls are."""
        return f"{self.stage}: {self.apart}" if self.apart else self.stage

    def times(self, factor: float) -> "StagePlan":
        """Return the plan for so many times the calls."""
        return replace(
            self,
            calls=round(self.calls * factor),
            known=round(self.known * factor),
            input_tokens=round(self.input_tokens * factor),
            output_tokens=round(self.output_tokens * factor),
            cost=None if self.cost is None else self.cost * factor,
            highest=None if self.highest is None else self.highest * factor,
        )


@dataclass(frozen=True, slots=True)
class CallPlan:
    """What a run would ask."""

    items: int  # items that reach the end in the rehearsal
    stages: tuple[StagePlan, ...]  # one entry per stage and model, in order of the stages
    spent: float  # USD that the run has cost so far
    share: float = 1.0  # share of the items that was rehearsed; the numbers are scaled up from these
    # what the models that look at pictures take; None where nobody looks, or it is told elsewhere
    vision: "VisionPlan | None" = None

    @property
    def calls(self) -> int:
        """Expected calls in all."""
        return sum(stage.calls for stage in self.stages)

    @property
    def cost(self) -> float | None:
        """Expected USD in all; None where a price is not known."""
        return _sum(stage.cost for stage in self.stages)

    def with_calls(self, calls: Mapping[str, int]) -> "CallPlan":
        """Return the plan with so many calls of some stages, known ones included; tokens and cost follow."""
        planned = Counter[str]()
        for stage in self.stages:
            planned[stage.stage] += stage.calls + stage.known
        stages = tuple(
            stage.times(calls[stage.stage] / planned[stage.stage])
            if stage.stage in calls and planned[stage.stage]
            else stage
            for stage in self.stages
        )
        return replace(self, stages=stages)

    def stage_costs(self) -> dict[str, float]:
        """Return the expected USD of each stage, in order; empty where a price is not known."""
        if self.cost is None:
            return {}
        costs: dict[str, float] = {}
        for stage in self.stages:
            costs[stage.stage] = costs.get(stage.stage, 0.0) + (stage.cost or 0.0)
        return costs

    def as_json(self) -> dict[str, Any]:
        looking = () if self.vision is None else ("vision",)
        return plain_parts(self, "items", "spent", "share", "calls", "cost", "stages", *looking)

    def lines(self, *, sample: bool = True) -> list[str]:
        """Return the plan as lines for people; ``sample``: the command has an option of that name."""
        width = max((len(stage.name) for stage in self.stages), default=5)
        row = f"{{:{width}}}  {{:>7}}  {{:>11}}  {{:>11}}  {{:>9}}  {{:>9}}  {{}}".format
        lines = [row("stage", "calls", "tokens in", "tokens out", "USD", "at most", "model")]
        for plan in self.stages:
            costs = (_money(plan.cost), _money(plan.highest))
            lines.append(
                row(plan.name, plan.calls, plan.input_tokens, plan.output_tokens, *costs, plan.model)
            )
        models = list(dict.fromkeys(plan.model for plan in self.stages))
        for model in models if len(models) > 1 else ():
            own = [plan for plan in self.stages if plan.model == model]
            counts = (_sum(getattr(plan, name) for plan in own) for name in _COUNTS)
            costs = (_money(_sum(plan.cost for plan in own)), _money(_sum(plan.highest for plan in own)))
            lines.append(row("total", *counts, *costs, model))
        known, highest = sum(stage.known for stage in self.stages), _sum(plan.highest for plan in self.stages)
        lines.append(
            f"{self.calls} calls, "
            + (
                "price unknown"
                if self.cost is None
                else f"about {self.cost:.4f} USD, at most {_money(highest)} USD"
            )
            + (f"; {known} more are answered from the journal" if known else "")
            + (f"; {self.spent:.4f} USD were spent before" if self.spent else "")
        )
        if self.stages and not all(stage.calibrated for stage in self.stages):
            lines.append(
                "tokens are estimates; not counted are drafts that are asked for again for their form"
                + (
                    "; --sample N asks about N items and estimates from what they really cost"
                    if sample
                    else ""
                )
            )
        batched = sorted({stage.model for stage in self.stages if stage.batched})
        if batched:
            lines.append(f"{', '.join(batched)}: at the prices of batches, which may take a day each")
        for model in sorted({stage.model for stage in self.stages if stage.cost is None}):
            lines.append(tell_unknown_price(model))
        return [*lines, *(() if self.vision is None else self.vision.lines())]


_COUNTS = ("calls", "input_tokens", "output_tokens")


def _sum(values: Iterable[float | None]) -> float | None:
    known = list(values)
    return None if None in known else sum(value for value in known if value is not None)


def _money(value: float | None) -> str:
    return "unknown" if value is None else f"{value:.4f}"


class _Sums:
    """Sums up the questions of one stage to one model."""

    def __init__(self) -> None:
        self.calls = self.known = self.estimated = self.bound = self.typical = self.most = self.items = 0
        self.files = 0
        self.seconds = 0.0
        self.last = ""

    def scaled(self, share: float) -> "_Sums":
        """Return the sums for all items, from those for a share of them."""
        sums = _Sums()
        for name, value in vars(self).items():
            if isinstance(value, int | float):
                setattr(sums, name, type(value)(round(value / share)))
        return sums


def plan_calls(
    request: RunRequest, stand_in: RunConfig, sample: int | None = None, *, use_known: bool = False
) -> CallPlan:
    """Return what a run would ask now, taking into account what its journal holds. Asks nothing.

    ``sample``: only the first so many items are rehearsed, and the rest taken to be like them; None for all.
    """
    request = with_attempts(request)
    config = request.config
    for model, model_options in config.models.items():
        check_provider(parse_spec(model))
        check_extra(parse_spec(model), model_options)
    past = past_of(request)
    sums: dict[tuple[str, str, str], _Sums] = {}
    seen: set[tuple[str, int]] = set()

    def told(asked: Asked) -> None:
        key = (asked.key, asked.sample)
        if key in seen:
            return
        seen.add(key)
        total = sums.setdefault((asked.stage, asked.request.model, _apart(asked)), _Sums())
        if asked.is_known:
            total.known += 1
        else:
            _add(total, asked, config)

    some = _first_items(request, sample)
    known = Path(request.folder) if use_known else None
    with replies_in(past.journals) as find:
        totals = rehearse(some, stand_in, Script(config, told, past.has, known, find)).totals
    share = _share(totals, request.options, sample)
    day = date.fromisoformat(creation_of(request)[:10])
    if request.options.retry_failed:
        past = past.question_by_question()
    batched = {model for model in config.models if _goes_in_batches(model, request)}

    def priced(model: str) -> Price | None:
        known = batch_price_of if model in batched else price_of
        return known(parse_spec(model), config.models[model], day)

    specs = {stage.name: stage.spec for stage in load_pipeline(request.pipeline).stages}
    stages: list[StagePlan] = []
    for (stage, model, apart), total in sums.items():
        plan = _plan(stage, model, total.scaled(share), priced(model), past)
        stages.append(replace(plan, batched=model in batched, apart=apart))
        if plan.calls and not plan.calibrated and specs[stage].repairs and not apart:
            more = specs[stage].repairs * total.scaled(share).items / plan.calls
            stages.append(replace(plan.times(more), batched=model in batched, apart="repairs", known=0))
    return CallPlan(round(totals.get("made", 0) / share), tuple(stages), past.spent, share)


def _goes_in_batches(model: str, request: RunRequest) -> bool:
    return request.options.batching.on and has_batches(parse_spec(model))


def _first_items(request: RunRequest, sample: int | None) -> RunRequest:
    options = request.options
    if sample is None or options.items or (options.limit is not None and options.limit <= sample):
        return request
    # So few are done before worker processes have started.
    return replace(request, options=replace(options, limit=sample, workers=0))


def _share(totals: Mapping[str, int], wanted: Options, sample: int | None) -> float:
    """Return which share of the items that are to run was rehearsed."""
    if wanted.shard is not None and not wanted.items:  # its items wait before the end
        own = min(sum(totals.values()), wanted.limit or sum(totals.values()))
        return 1.0 if sample is None or own <= sample else sample / own
    left, tried = totals.get("pending", 0), sum(totals.values()) - totals.get("pending", 0)
    if wanted.items or not tried:
        return 1.0
    of_all = tried + left if wanted.limit is None else min(wanted.limit, tried + left)
    return min(1.0, tried / of_all)


def _add(total: _Sums, asked: Asked, config: RunConfig) -> None:
    total.calls += 1
    total.items += asked.item != total.last  # the questions of an item come together
    total.last = asked.item
    total.estimated += estimate_request(asked.request)
    most = most_tokens(asked.request, config.models[asked.request.model])
    total.bound += most.input
    total.typical += _typical_tokens(asked)
    total.most += most.output
    total.files += most.files
    total.seconds += most.seconds


def _apart(asked: Asked) -> str:
    """Return what a question is, where its prompt says that its calls are told apart."""
    try:
        return load_prompt(asked.prompt.partition("@")[0]).card.counted_as or ""
    except KeyError:  # a prompt of somebody's own stage, or none
        return ""


def _typical_tokens(asked: Asked) -> int:
    """Return how long a reply usually is: what the prompt says, or half of what it may be."""
    if CHOSEN in asked.request.extra:
        return typical_tokens(asked.request)
    try:
        typical = load_prompt(asked.prompt.partition("@")[0]).card.typical_tokens
    except KeyError:  # a prompt of somebody's own stage
        typical = None
    return asked.request.max_tokens // 2 if typical is None else min(typical, asked.request.max_tokens)


def _plan(stage: str, model: str, total: _Sums, price: Price | None, past: Past) -> StagePlan:
    spec = parse_spec(model)
    seen = past.stages.get((stage, model))
    calls, tokens_in, tokens_out = total.calls, total.estimated, total.typical
    if seen is not None and total.calls:
        calls = total.calls if seen.calls_per_item is None else round(total.items * seen.calls_per_item)
        tokens_in = round(total.estimated * calls / total.calls * seen.input_ratio)
        tokens_out = round(calls * seen.output_tokens)
    most = MostTokens(total.bound, total.most, total.files, total.seconds)
    cost = highest = None
    if price is not None:
        kept = (0.0, 0.0) if seen is None else (seen.cached, seen.written)
        tokens_cost = _cost(price, spec.makes, (tokens_in, tokens_out), calls, kept)
        cost, highest = tokens_cost + float(price.of_files(most)), highest_cost(price, most)
    return StagePlan(
        stage, model, calls, total.known, tokens_in, tokens_out,
        cost, highest,
        seen is not None or not total.calls,
    )  # fmt: skip


def _cost(price: Price, made: Makes, tokens: tuple[int, int], calls: int, kept: tuple[float, float]) -> float:
    """Return the cost of calls of average size: prices may depend on how long a request is.

    ``kept`` are the shares of the input that come from a cache and go into one.
    """
    if not calls:
        return 0.0
    given, answered = (round(count / calls) for count in tokens)
    pictures = {f"{made}_output_tokens": answered} if made in ("image", "video") else {}
    cached, written = (int(given * share) for share in kept)
    usage = Usage(given, answered, cached_tokens=cached, cache_write_tokens=written, **pictures)
    return calls * float(price.cost(usage))
