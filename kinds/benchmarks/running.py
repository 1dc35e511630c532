"""Running a benchmark: what generators have to make, what is missing for a run, and the run itself."""

import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...engine.hooks import Event
from ...engine.run_options import RunOptions
from ...errors import ConfigError, FabulaError
from ...models.spec import parse_spec
from ...schemas.canonical import Json
from ...schemas.text import tallied, tallies
from ..evaluations import evaluating_of, judging_of, make_report
from ..registry import foreign_sections
from .benchmark import Benchmark, Orders
from .getting import needs_of, require_set, set_of
from .row import Rows, rows_of

if TYPE_CHECKING:
    from ...engine.hooks import Reporter
    from ...engine.status import RunReport
    from ...evaluation.running import Evaluating


def orders(benchmark: Benchmark, out: Path, form: str | None = None) -> Orders:
    """Write what a generator has to make; ``form`` is that of a generator, None for the usual one."""
    if form is not None and form not in benchmark.forms:
        known = ", ".join(benchmark.forms) or "none: leave --for out"
        what = f"{benchmark.title} has no orders in this form; there are {known}"
        raise ConfigError(f"--for {form}", what=what, fix="check the spelling")
    return benchmark.orders(require_set(benchmark), out, form)


@dataclass(frozen=True, slots=True)
class BenchmarkOptions(RunOptions):
    """How to run a benchmark. What every run may choose comes as keywords.

    Attributes:
        judges: a judge: ``openai:NAME``, ``http://HOST/v1#NAME``, or a name that the section ``[judges]`` of
            the settings file gives.
        votes: votes of each judge [as the protocol has it].
        limit: only the first so many stories, prompts or episodes.
        device: where models run: ``cpu``, ``cuda``, ``mps``, or ``auto`` for the fastest here.
        resamples: resamples of the intervals.
    """

    judges: Sequence[str] = ()
    votes: int | None = None
    limit: int | None = None
    device: str = "auto"
    resamples: int = 10_000


def options_for(benchmark: Benchmark, evaluating: "Evaluating", options: BenchmarkOptions) -> RunOptions:
    """Return the options of the evaluation that a benchmark's protocol asks for."""
    own = {field.name for field in fields(evaluating.options)}
    given = {field.name: getattr(options, field.name) for field in fields(options)}
    given |= {"protocol": benchmark.protocol, "others": foreign_sections, **benchmark.options}
    return evaluating.options(**{name: value for name, value in given.items() if name in own})


@dataclass(frozen=True, slots=True)
class DryRun:
    """What a run would take, and everything that is missing for it."""

    missing: tuple[str, ...]
    lines_of: tuple[str, ...]  # how much is looked at and asked
    plan: Json | None = None  # what would be asked and about what that costs; None where that needs more

    def as_json(self) -> dict[str, Any]:
        return {"missing": list(self.missing), "takes": list(self.lines_of), "plan": self.plan}

    def lines(self) -> Iterator[str]:
        yield from self.lines_of
        if not self.missing:
            yield "nothing is missing"
            return
        yield f"missing, {tallied(len(self.missing), 'things')}:"
        yield from (f"  {line}" for line in self.missing)


def dry_run(benchmark: Benchmark, outputs: Sequence[Path], options: BenchmarkOptions) -> DryRun:
    """Return what a run would take and what is missing; nothing is asked, loaded or written."""
    missing = [f"{part.line.split(None, 1)[1]} (fabula benchmark get {benchmark.name})"
               for part in needs_of(benchmark).missing]  # fmt: skip
    missing += [*_libraries(benchmark), *_judges(options)]
    missing += [f"outputs: {path} is no folder" for path in outputs if not path.is_dir()]
    if not outputs:
        missing.append("outputs: a folder of a method's outputs (--outputs)")
    judged_by = set_of(benchmark)
    if judged_by is None:
        return DryRun(tuple(missing), (*_by_size(benchmark), *costs(benchmark, options.judges)))
    evaluating = evaluating_of(judged_by, benchmark.noun)
    try:
        chosen = options_for(benchmark, evaluating, options)
        with tempfile.TemporaryDirectory(prefix="fabula-dry-run-") as scratch:
            there = [path for path in outputs if path.is_dir()]
            counted = there or [_complete(benchmark, Path(scratch))]
            request = evaluating.request(judged_by, counted, Path(scratch) / "run", chosen)
            of = () if there else ("counted for a method that has all of its outputs:",)
            takes = (*of, *evaluating.budget(request).lines())
            plan = (
                evaluating.estimate(request) if all(path.is_dir() for path in outputs) and outputs else None
            )
    except FabulaError as error:
        said = str(error).splitlines()[0]
        return DryRun((*missing, *([] if missing else [said])), _by_size(benchmark))
    shown = tuple(costs(benchmark, options.judges) if plan is None else plan.lines(sample=False))
    return DryRun(tuple(missing), (*takes, *shown), None if plan is None else plan.as_json())


def _complete(benchmark: Benchmark, scratch: Path) -> Path:
    """Return a folder with an empty file for every output, for counting what a complete method takes."""
    made = orders(benchmark, scratch / "orders")
    for name in made.expected:
        path = scratch / "outputs" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    return scratch / "outputs"


def _by_size(benchmark: Benchmark) -> tuple[str, ...]:
    return (f"one method makes {tallies(benchmark.size)}",)


def _libraries(benchmark: Benchmark) -> Iterator[str]:
    """Yield the libraries that are not installed; none is loaded."""
    from importlib.util import find_spec

    for library, extra in benchmark.libraries.items():
        if find_spec(library) is None:
            yield f'library {library}: pip install "fabula[{extra}]"'


def _judges(options: BenchmarkOptions) -> Iterator[str]:
    from ...models.keys import key_status

    if not options.judges:
        yield "a judge (--judge)"
    for spec in options.judges:
        status = key_status(parse_spec(spec))
        if not status.found:
            yield f"the key of {spec}: set {' or '.join(status.variables)}"


@dataclass(frozen=True, slots=True)
class Ran:
    """A run that ended with its row."""

    report: "RunReport | None"  # what was done; None where the folder had everything
    page: Path | None
    rows: Rows

    def as_json(self) -> dict[str, Any]:
        done = None if self.report is None else self.report.as_json()
        return {"run": done, "page": None if self.page is None else str(self.page), **self.rows.as_json()}

    def lines(self) -> Iterator[str]:
        if self.report is not None:
            yield from self.report.lines()
        if self.page is not None:
            yield f"report: {self.page}"
        yield from self.rows.lines()


def run(
    benchmark: Benchmark,
    outputs: Sequence[Path],
    out: Path,
    options: BenchmarkOptions,
    reporter: "Reporter | None" = None,
) -> Ran:
    """Evaluate outputs by the official protocol, write the report, and return the row beside the published.

    Without outputs: the row of the evaluation that the folder holds, such as an imported one.
    """
    from ...evaluation.report.formats import PAGE, write_report

    report = None
    if outputs:
        evaluating = evaluating_of(require_set(benchmark), benchmark.noun)
        chosen = options_for(benchmark, evaluating, options)
        request = evaluating.request(require_set(benchmark), outputs, out, chosen)
        evaluating.check(request)
        if reporter is not None:
            for line in evaluating.budget(request).lines():
                reporter.emit(Event("note", data={"message": line}))
            evaluating.tell(request, reporter)
        report = evaluating.run(request, reporter)
    alone = judging_of(out).protocol().archive.alone
    judged_by = None if alone else require_set(benchmark)
    rows = rows_of(benchmark, out, judged_by, options.resamples)
    write_report(make_report(out, judged_by), out / PAGE)
    return Ran(report, out / PAGE, rows)


def costs(benchmark: Benchmark, judges: Sequence[str]) -> Iterator[str]:
    """Yield about what one complete method costs with each judge; from calls by rule and typical sizes."""
    from ...models.options import ModelOptions
    from ...models.prices import MILLION, TYPICAL_IMAGE, price_of

    judged_by, call = set_of(benchmark), benchmark.per_call
    if not judges:
        return
    if judged_by is None:
        yield "cost: known when the data is here"
        return
    evaluating = evaluating_of(judged_by, benchmark.noun)
    with tempfile.TemporaryDirectory(prefix="fabula-costs-") as scratch:
        outputs = _complete(benchmark, Path(scratch))
        for judge in judges:
            try:
                chosen = options_for(benchmark, evaluating, BenchmarkOptions(judges=(judge,)))
                request = evaluating.request(judged_by, [outputs], Path(scratch) / "run", chosen)
            except FabulaError as error:
                yield f"{judge}: cost not known: {str(error).splitlines()[0]}"
                continue
            asked = evaluating.budget(request).as_json()["calls"]
            calls = sum(asked.values()) if isinstance(asked, dict) else int(asked)
            price = price_of(parse_spec(judge), ModelOptions())
            if price is None:
                yield f"{judge}: {tallied(calls, 'calls')} for one method; its price is not known"
                continue
            tokens = call.pictures * TYPICAL_IMAGE + call.tokens
            rates = [
                max(map(float, price.rates(name)), default=0.0) for name in ("input_tokens", "output_tokens")
            ]
            each = (tokens * rates[0] + call.reply * rates[1]) / MILLION
            yield (
                f"{judge}: {tallied(calls, 'calls')} for one method, about {calls * each:,.0f} USD "
                f"({call.pictures} pictures and {call.tokens} tokens a call); a dry run of outputs tells more"
            )
