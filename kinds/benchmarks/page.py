"""What is told of a benchmark: one page in Markdown, and the same in the terminal."""

from collections.abc import Iterator

from ...evaluation.report.formats import written
from ...schemas.text import byte_text, tallied
from ..evaluations import models_of_metrics
from .benchmark import RECORDED, Benchmark, benchmarks, protocol_in_words
from .row import published_table

SHOWN = 2
"""More files than these are listed where the page is whole."""


def page(benchmark: Benchmark, *, whole: bool = True) -> Iterator[str]:
    """Yield the lines of the page of a benchmark; where it is not whole, long lists only begin."""
    yield from (f"# {benchmark.title}", "")
    yield "<!-- Made from kinds/benchmarks: UPDATE_GOLDEN=1 writes it. -->"
    yield from ("", benchmark.about, "")
    yield from (*(f"- **{what}:** {value}" for what, value in _facts(benchmark)), "")
    yield from ("## Run it", "")
    yield from _steps(benchmark)
    yield from ("## Data", "")
    yield from _data(benchmark, whole)
    if benchmark.metrics:
        models = ", ".join(f"`{name}`" for name in models_of_metrics(benchmark.metrics))
        yield from (f"Metrics that need weights: {', '.join(benchmark.metrics)}. Their models: {models}.", "")
    yield from ("## Printed results", "")
    yield from _printed(benchmark, whole)
    yield from ("## Not tried here", "", *(f"- {line}." for line in benchmark.untried))


def _facts(benchmark: Benchmark) -> Iterator[tuple[str, str]]:
    yield "paper", benchmark.paper
    if benchmark.homepage:
        yield "project", benchmark.homepage
    yield "licence of the data", f"{benchmark.licence.name or 'none'}. {benchmark.licence.text}"
    yield "size", ", ".join(f"{what} {count:,}" for what, count in benchmark.size.items())
    protocol = " ".join(" ".join(words) for words in protocol_in_words(benchmark))
    yield "judged as", f"`{benchmark.evaluated}` with `{protocol}`"
    yield "judges of the paper", ", ".join(benchmark.judges) or "none"
    yield "files of outputs", benchmark.layout
    paper = f"`{benchmark.paper_prompts}`, in the paper alone; `run` asks in ours"
    official = f"`{benchmark.prompts}`" if benchmark.prompts else "not published: ours"
    yield "official prompts", paper if benchmark.paper_prompts else official
    if benchmark.forms:
        yield "forms of orders", f"`--for` {', '.join(benchmark.forms)}"


def _steps(benchmark: Benchmark) -> Iterator[str]:
    name, drafting = benchmark.name, " --model openai:gpt-4.1-mini" if benchmark.drafts else ""
    mine = f"fabula benchmark run {name} --outputs outputs/mine --judge {benchmark.judge}"
    yield from (
        "```",
        f"fabula benchmark show {name}",
        f"fabula benchmark get {name}{drafting}",
        f"fabula benchmark orders {name} --out orders",
        f"{mine} --dry-run",
        f"{mine} --max-cost 50 --out runs/mine",
        "```",
        "",
    )


def _data(benchmark: Benchmark, whole: bool) -> Iterator[str]:
    home = benchmark.home
    yield f"{home.address}, {f'commit `{home.revision}`' if home.revision else f'newest commit: {RECORDED}'}."
    yield ""
    if not home.files:
        yield from (f"It must hold `{home.holds}`; the first fetch records sizes and SHA-256.", "")
        return
    said = f"{tallied(len(home.files), 'files')}, {byte_text(sum(size for size, _ in home.files.values()))}"
    if not whole and len(home.files) > SHOWN:
        yield from (f"{said}, each checked by SHA-256 (`kinds/benchmarks/files.json`).", "")
        return
    yield from (f"{said}, each checked by SHA-256:", "")
    yield from _table(
        ("file", "bytes", "SHA-256"),
        ((path, f"{size:,}", f"`{sha256}`") for path, (size, sha256) in home.files.items()),
    )


def _printed(benchmark: Benchmark, whole: bool) -> Iterator[str]:
    if not benchmark.printed:
        yield from ("None were printed for this data.", "")
    for printed in benchmark.printed:
        table = published_table(printed.key)
        missing = [measure.label for measure in table.measures if printed.columns.get(measure.name) == ""]
        methods = tallied(len(table.rows), "methods")
        yield f"**{table.source}** (`{printed.key}`): {methods}, judged by {printed.judge};"
        lacking = f" Not measured by Fabula: {', '.join(missing)}." if missing else ""
        differs = f" {printed.differs[0].upper()}{printed.differs[1:]}." if printed.differs else ""
        yield from (f"{printed.protocol}. {table.about}{lacking}{differs}", "")
        if whole:
            yield from written([table.table()], "markdown").splitlines()


def _table(head: tuple[str, ...], rows: object) -> Iterator[str]:
    yield f"| {' | '.join(head)} |"
    yield "|" + "---|" * len(head)
    for row in rows:  # type: ignore[attr-defined]
        yield "| " + " | ".join(str(cell).replace("|", "\\|") for cell in row) + " |"
    yield ""


def listing() -> Iterator[str]:
    """Yield every benchmark in a line."""
    width = max(map(len, benchmarks()))
    for name, benchmark in benchmarks().items():
        sizes = ", ".join(f"{count:,} {what}" for what, count in list(benchmark.size.items())[:2])
        yield f"{name:{width}}  {benchmark.title}: {sizes}; {benchmark.licence.name or 'no licence'}"
