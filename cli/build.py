"""``fabula build``: source material in, a run of drafted records out."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from ..errors import ConfigError
from . import build_entities, build_events, build_shots
from .advice import incomplete_lines, summary_first
from .common import (
    JsonOption,
    ReplaceSourcesOption,
    example,
    guarded,
    say,
    show,
)
from .run_choices import RunChoices, takes_run_choices

app = typer.Typer(
    name="build", no_args_is_help=True, rich_markup_mode=None, help="Build records from source material."
)

build_entities.register(app)
build_events.register(app)
build_shots.register(app)

StoriesArgument = Annotated[
    list[Path],
    typer.Argument(help="JSONL or CSV files, or folders of .txt and .md files.", show_default=False),
]


@app.command(
    "katha",
    epilog=example(
        "fabula build katha stories.jsonl --planner rules --out runs/mine",
        "fabula build katha tales/ --out runs/mine --set draft_scenes.scenes=6 --limit 10",
        "fabula build katha stories.jsonl --records hand.jsonl --out runs/mine --json",
        "fabula build katha stories.jsonl --planner model --model openai:gpt-4.1-mini --dry-run",
        "fabula build katha stories.jsonl --model openai:gpt-4.1-mini --max-cost 5 --out runs/mine",
    ),
)
@guarded
@takes_run_choices
def katha(
    sources: StoriesArgument,
    out: Annotated[
        Path | None, typer.Option("--out", help="Run folder; made if missing, continued if there.")
    ] = None,
    planner: Annotated[
        str | None,
        typer.Option("--planner", help="Who drafts, in every stage: rules or model [as set, else rules]."),
    ] = None,
    model: Annotated[
        str | None,
        typer.Option("--model", help="The model that drafts: openai:NAME, http://HOST/v1#NAME, ..."),
    ] = None,
    verifier: Annotated[
        str | None, typer.Option("--verifier", help="The model that checks drafts [the one that drafts].")
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only show what models would be asked, and the cost.")
    ] = False,
    sample: Annotated[
        int,
        typer.Option(
            "--sample",
            min=0,
            help="With --dry-run: draft N stories with the model first, and estimate from them.",
        ),
    ] = 0,
    records: Annotated[
        Path | None, typer.Option("--records", help="JSONL of hand-written records for some of the stories.")
    ] = None,
    limit: Annotated[int | None, typer.Option("--limit", help="Only the first N stories.")] = None,
    items: Annotated[
        list[str] | None, typer.Option("--items", help="Only this story id. Repeatable.")
    ] = None,
    stage: Annotated[str | None, typer.Option("--stage", help="Stop after this stage.")] = None,
    replace_sources: ReplaceSourcesOption = False,
    *,
    run: RunChoices,
    as_json: JsonOption = False,
) -> int:
    """Turn stories into KathaBench records.

    A record has scenes, transitions, questions and contrastive variants. Works without a model or network
    unless --planner model is given. It can be stopped at any moment: the same command continues it, and no
    question that was answered is asked again.
    """
    from ..builders.katha import BuildOptions, build_katha, estimate_katha
    from ..engine.progress import choose_reporter

    options = BuildOptions(
        records=records,
        planner=planner,
        model=model,
        verifier=verifier,
        limit=limit,
        items=tuple(items or ()),
        stage=stage,
        replace_sources=replace_sources,
        **run,
    )
    reporter = choose_reporter(as_json=as_json)
    if dry_run:
        with _folder(out, sample) as folder:
            plan = estimate_katha(sources, folder, options, sample=sample, reporter=reporter)
        show(plan, as_json=as_json)
        return 0
    if sample:
        raise ConfigError(
            "--sample", what="this option goes only with --dry-run", fix="to build a part, use --limit"
        )
    if out is None:
        raise _no_folder("a build")
    with summary_first(out, as_json=as_json):
        report = build_katha(sources, out, options, reporter=reporter)
    show(report, as_json=as_json)
    if not as_json:
        for line in incomplete_lines(out):
            say(line)
        say(f"run: {out}\nnext: fabula validate {out}")
    return 0


@contextmanager
def _folder(out: Path | None, sample: int) -> Iterator[Path]:
    """Give the run folder of a dry run; without a sample nothing is written, so it need not be there."""
    if out is not None:
        yield out
        return
    if sample:
        raise _no_folder("--sample, which keeps the drafts that it pays for,")
    with tempfile.TemporaryDirectory(prefix="fabula-dry-run-") as scratch:
        yield Path(scratch) / "run"


def _no_folder(found: str) -> ConfigError:
    return ConfigError("--out", what=f"{found} needs a run folder", fix="for example --out runs/mine")
