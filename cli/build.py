"""``fabula build``: source material in, a run of drafted records out."""

from pathlib import Path
from typing import Annotated

import typer

from .advice import incomplete_lines, summary_first
from .common import JsonOption, example, guarded, say, show

app = typer.Typer(
    name="build", no_args_is_help=True, rich_markup_mode=None, help="Build records from source material."
)

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
    ),
)
@guarded
def katha(
    sources: StoriesArgument,
    out: Annotated[Path, typer.Option("--out", help="Run folder; made if missing, continued if there.")],
    planner: Annotated[
        str | None, typer.Option("--planner", help="Who drafts, in every stage: rules [as set, else rules].")
    ] = None,
    records: Annotated[
        Path | None, typer.Option("--records", help="JSONL of hand-written records for some of the stories.")
    ] = None,
    config: Annotated[
        Path | None, typer.Option("--config", help="Settings file; fabula.toml here is used if present.")
    ] = None,
    settings: Annotated[
        list[str] | None, typer.Option("--set", help="One setting, as stage.key=value. Repeatable.")
    ] = None,
    workers: Annotated[int | None, typer.Option("--workers", help="Worker processes [all cores].")] = None,
    limit: Annotated[int | None, typer.Option("--limit", help="Only the first N stories.")] = None,
    items: Annotated[
        list[str] | None, typer.Option("--items", help="Only this story id. Repeatable.")
    ] = None,
    stage: Annotated[str | None, typer.Option("--stage", help="Stop after this stage.")] = None,
    created_at: Annotated[
        str | None, typer.Option("--created-at", help="Creation time of the run, RFC 3339.")
    ] = None,
    as_json: JsonOption = False,
) -> int:
    """Turn stories into KathaBench records: scenes, transitions, questions, contrastive variants.

    Works without any model or network. It can be stopped at any moment; the same command continues it.
    """
    from ..builders.katha import BuildOptions, build_katha
    from ..engine.progress import choose_reporter

    options = BuildOptions(
        records=records,
        planner=planner,
        config=config,
        settings=tuple(settings or ()),
        workers=workers,
        limit=limit,
        items=tuple(items or ()),
        stage=stage,
        created_at=created_at,
    )
    with summary_first(out, as_json=as_json):
        report = build_katha(sources, out, options, reporter=choose_reporter(as_json=as_json))
    show(report, as_json=as_json)
    if not as_json:
        for line in incomplete_lines(out):
            say(line)
        say(f"run: {out}\nnext: fabula validate {out}")
    return 0
