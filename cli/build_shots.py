"""``fabula build shots``: stories in, shot scripts in the official tree out."""

import tempfile
from pathlib import Path
from typing import Annotated

import typer

from ..errors import ConfigError
from .advice import summary_first
from .common import (
    JsonOption,
    ReplaceSourcesOption,
    example,
    guarded,
    say,
    show,
)
from .run_choices import RunChoices, takes_run_choices


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command(
        "shots",
        epilog=example(
            "fabula build shots stories.jsonl --planner rules --out runs/shots",
            "fabula build shots stories.jsonl --shots 12 --languages en,ch --model openai:gpt-4.1-mini"
            " --max-cost 5 --out runs/shots",
            "fabula build shots stories.jsonl --scripts cast.jsonl --model openai:gpt-4.1-mini --dry-run",
        ),
    )(shots)


@guarded
@takes_run_choices
def shots(
    sources: Annotated[
        list[Path],
        typer.Argument(help="JSONL or CSV files, or folders of .txt and .md files.", show_default=False),
    ],
    out: Annotated[
        Path | None, typer.Option("--out", help="Run folder; made if missing, continued if there.")
    ] = None,
    count: Annotated[
        int | None, typer.Option("--shots", help="Number of shots of every story, 4 to 30 [by its length].")
    ] = None,
    languages: Annotated[
        str | None, typer.Option("--languages", help="Languages to write: en, ch or en,ch [en,ch].")
    ] = None,
    scripts: Annotated[
        Path | None,
        typer.Option("--scripts", help="JSONL with labels and characters given by authors."),
    ] = None,
    planner: Annotated[
        str | None,
        typer.Option("--planner", help="Who drafts, in every stage: rules or model [as set, else rules]."),
    ] = None,
    model: Annotated[
        str | None,
        typer.Option("--model", help="The model that drafts: openai:NAME, http://HOST/v1#NAME, ..."),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only show what the model would be asked, and the cost.")
    ] = False,
    limit: Annotated[int | None, typer.Option("--limit", help="Only the first N stories.")] = None,
    items: Annotated[
        list[str] | None, typer.Option("--items", help="Only this story id. Repeatable.")
    ] = None,
    replace_sources: ReplaceSourcesOption = False,
    *,
    run: RunChoices,
    as_json: JsonOption = False,
) -> int:
    """Turn stories into shot scripts for image generators.

    Each shot has a plot, a setting, a perspective, the characters on stage and what is seen. Works without a
    model or network unless --planner model is given; the rules planner writes only the story's language. The
    official tree is written to ViStory/ in the run folder; findings.jsonl lists what the rules object to.
    """
    from ..builders.shots import ShotOptions, build_shots, estimate_shots
    from ..engine.progress import choose_reporter

    options = ShotOptions(
        scripts=scripts,
        shots=count,
        languages=None if languages is None else tuple(part.strip() for part in languages.split(",")),
        planner=planner,
        model=model,
        limit=limit,
        items=tuple(items or ()),
        replace_sources=replace_sources,
        **run,
    )
    if dry_run:
        with tempfile.TemporaryDirectory(prefix="fabula-dry-run-") as scratch:
            show(estimate_shots(sources, out or Path(scratch) / "run", options), as_json=as_json)
        return 0
    if out is None:
        raise ConfigError("--out", what="the run folder is not given", fix="for example --out runs/shots")
    with summary_first(out, as_json=as_json):
        report = build_shots(sources, out, options, reporter=choose_reporter(as_json=as_json))
    show(report, as_json=as_json)
    if not as_json:
        say(f"run: {out}\nscripts: {out / 'ViStory'}")
    return 0
