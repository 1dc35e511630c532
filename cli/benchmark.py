"""``fabula benchmark``: published benchmarks by name, from an empty machine to a printed row."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import ExitCode
from .command import command
from .common import answer, say, show, show_tables, warn

if TYPE_CHECKING:
    from ..kinds.benchmarks.running import BenchmarkOptions


@command("benchmark list")
def list_benchmarks(*, as_json: bool = False) -> int:
    """List the benchmarks that are known by name.

    Examples:
        fabula benchmark list
    """
    from ..kinds.benchmarks.benchmark import benchmarks
    from ..kinds.benchmarks.page import listing

    document = [
        {"name": each.name, "title": each.title, "licence": each.licence.name, "size": dict(each.size)}
        for each in benchmarks().values()
    ]
    return answer(document, listing(), as_json=as_json)


@command("benchmark show", judges="--judge")
def show_benchmark(name: str, *, judges: Sequence[str] = (), as_json: bool = False) -> int:
    """Show what a benchmark is and needs, and what of it is here.

    It tells data, licences, sizes, protocol, judges, printed results, and what could not be tried by the
    project.

    Options:
        name: Benchmark, as fabula benchmark list has it.
        judges: Tell about what one method costs with this judge.

    Examples:
        fabula benchmark show storyeval
        fabula benchmark show entitybench --judge google:gemini-2.5-pro
    """
    from ..kinds.benchmarks.benchmark import benchmark_named
    from ..kinds.benchmarks.getting import needs_of
    from ..kinds.benchmarks.page import page
    from ..kinds.benchmarks.running import costs

    benchmark = benchmark_named(name)
    needs, cost = needs_of(benchmark), tuple(costs(benchmark, judges))
    if as_json:
        from .common import emit

        files = None if needs.weights is None else needs.weights.as_json()
        text = "\n".join(page(benchmark))
        emit({"page": text, **needs.as_json(), "weights": files, "costs": list(cost)})
        return 0
    say(*(line for line in page(benchmark) if not line.startswith("<!--")), "", "## Here", "")
    say(*(part.line for part in needs.parts if not part.what.startswith("weights")))
    say(*(() if needs.weights is None else needs.weights.lines()), *cost)
    return 0


@command("benchmark get", location="--from")
def get(
    name: str,
    *,
    location: str | None = None,
    weights: Path | None = None,
    without_weights: bool = False,
    accept_licences: bool = False,
    model: str | None = None,
    as_json: bool = False,
) -> int:
    """Bring data, official prompts and weights of a benchmark.

    All terms that have to be accepted are asked about once. What broke off is resumed. Every file is checked
    by SHA-256, and one whose hash is not known yet is recorded as it comes. Exits with 3 if something could
    not be had; the rest is kept.

    Options:
        name: Benchmark, as fabula benchmark list has it.
        location: A clone, an archive or a folder with data and prompts [the net].
        weights: Folder with weights that were fetched elsewhere, as fabula models fetch vision --plan has it.
        without_weights: Leave out the weights of models that look at pictures.
        accept_licences: Accept all terms.
        model: Model that drafts what was not published (kathatrace-demo).

    Examples:
        fabula benchmark get storyeval
        fabula benchmark get entitybench --from clones/EntityBench --accept-licences
        fabula benchmark get vistorybench --weights weights
    """
    from ..kinds.benchmarks.benchmark import benchmark_named
    from ..kinds.benchmarks.getting import From
    from ..kinds.benchmarks.getting import get as bring

    source = From(location, weights, without_weights, model)
    made = bring(
        benchmark_named(name), source, lambda terms: accept_licences or agrees(terms),
        (lambda _: None) if as_json else warn,
    )  # fmt: skip
    show(made, as_json=as_json)
    return int(ExitCode.MISSING if made.missing else ExitCode.OK)


def agrees(terms: str) -> bool:
    """Ask at a terminal whether terms are accepted; nobody there says no."""
    import sys

    import typer

    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        return False
    return typer.confirm(f"Do you accept these terms: {terms}?", default=False, err=True)


@command("benchmark orders", form_of="--for")
def orders(name: str, *, out: Path, form_of: str | None = None, as_json: bool = False) -> int:
    """Write what a generator has to make for a benchmark.

    Prompts, references, and the file that each picture or video goes to.

    Options:
        name: Benchmark, as fabula benchmark list has it.
        out: A new folder.
        form_of: Form of a generator, as fabula benchmark show lists them [requests.jsonl or plans.jsonl].

    Examples:
        fabula benchmark orders storyeval --out orders
        fabula benchmark orders vistorybench --for uno --out orders
    """
    from ..kinds.benchmarks.benchmark import benchmark_named
    from ..kinds.benchmarks.running import orders as write

    show(write(benchmark_named(name), out, form_of), as_json=as_json)
    return 0


@command("benchmark run", "kinds.benchmarks.running:BenchmarkOptions", without=("replace_sources",))
def run(
    name: str,
    *,
    options: "BenchmarkOptions",
    out: Path | None = None,
    outputs: Sequence[Path] = (),
    dry_run: bool = False,
    form: str | None = None,
    as_json: bool = False,
) -> int:
    """Evaluate outputs by the official protocol of a benchmark, and print the row beside the printed ones.

    It checks, evaluates, scores and writes the report; the same command continues it. Each row says who
    judged it, and every difference of protocol is named.

    Options:
        name: Benchmark, as fabula benchmark list has it.
        outputs: Outputs of one method [none: the row of the evaluation that OUT holds].
        out: Run folder; made if missing, continued if there.
        dry_run: Say what it would take, and everything that is missing; nothing is asked or loaded.

    Examples:
        fabula benchmark run storyeval --outputs videos/mine --judge openai:gpt-4o --dry-run
        fabula benchmark run storyeval --outputs videos/mine --judge openai:gpt-4o --max-cost 50
            --out runs/mine
        fabula benchmark run storyeval --out runs/imported
    """
    from ..api.calling import choose_reporter
    from ..kinds.benchmarks.benchmark import benchmark_named
    from ..kinds.benchmarks.running import dry_run as forecast
    from ..kinds.benchmarks.running import run as run_benchmark
    from .build import run_folder
    from .common import chosen_form

    benchmark = benchmark_named(name)
    form = chosen_form(form, as_json=as_json)
    if dry_run:
        foreseen = forecast(benchmark, outputs, options)
        show(foreseen, as_json=form == "json")
        return int(ExitCode.MISSING if foreseen.missing else ExitCode.OK)
    folder = run_folder(out, f"runs/{name}")
    reporter = choose_reporter(as_json=form == "json")
    ran = run_benchmark(benchmark, outputs, folder, options, reporter)
    show_tables(ran, lambda: ran.rows.tables, form)
    if form in ("csv", "markdown", "latex"):
        warn(*ran.rows.differences)
    return 0
