"""``fabula build entities``: videos in, episodes with entity schedules out."""

import tempfile
from pathlib import Path
from typing import Annotated

import typer

from ..errors import BelowThreshold, ConfigError
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
        "entities",
        epilog=example(
            "fabula build entities films/ --out runs/episodes",
            "fabula build entities films/ --detections people.jsonl --model google:gemini-2.5-flash"
            " --max-cost 20 --out runs/episodes",
            "fabula build entities films/ --model google:gemini-2.5-flash --dry-run --out runs/episodes",
        ),
    )(entities)


@guarded
@takes_run_choices
def entities(
    videos: Annotated[
        list[Path], typer.Argument(help="Video files, or folders of them.", show_default=False)
    ],
    out: Annotated[
        Path | None, typer.Option("--out", help="Run folder; made if missing, continued if there.")
    ] = None,
    detections: Annotated[
        Path | None,
        typer.Option(
            "--detections", help="File of people that you found yourself; used instead of detectors."
        ),
    ] = None,
    planner: Annotated[
        str | None,
        typer.Option("--planner", help="Who writes, in every stage: rules or model [as set, else rules]."),
    ] = None,
    model: Annotated[
        str | None,
        typer.Option(
            "--model", help="The model that looks at frames and writes: google:NAME, openai:NAME, ..."
        ),
    ] = None,
    dry_run: Annotated[
        bool,
        typer.Option(
            "--dry-run", help="Find shots and people, show what the model would be asked, and stop."
        ),
    ] = False,
    limit: Annotated[int | None, typer.Option("--limit", help="Only the first N videos.")] = None,
    items: Annotated[
        list[str] | None, typer.Option("--items", help="Only this video, by id. Repeatable.")
    ] = None,
    replace_sources: ReplaceSourcesOption = False,
    *,
    run: RunChoices,
    as_json: JsonOption = False,
) -> int:
    """Turn videos into episodes with a schedule and scripts.

    An episode is a series of shots with its people, places and things, a schedule that says who is in which
    shot, and scripts. Detectors find the people, or --detections gives a file that says where they are.
    Without --model, rules only name people and places and say who is seen. The official tree is written to
    data/ in the run folder; funnel.json counts what was left out at each step.
    """
    from ..builders.entities import EntityOptions, build_entities, estimate_entities
    from ..engine.progress import choose_reporter

    options = EntityOptions(
        detections=detections,
        planner=planner,
        model=model,
        limit=limit,
        items=tuple(items or ()),
        replace_sources=replace_sources,
        **run,
    )
    if dry_run:
        with tempfile.TemporaryDirectory(prefix="fabula-dry-run-") as scratch:
            show(estimate_entities(videos, out or Path(scratch) / "run", options), as_json=as_json)
        return 0
    if out is None:
        raise ConfigError("--out", what="the run folder is not given", fix="for example --out runs/episodes")
    try:
        with summary_first(out, as_json=as_json):
            report = build_entities(videos, out, options, reporter=choose_reporter(as_json=as_json))
    except BelowThreshold:
        for line in () if as_json else _funnel(out, advice=True):
            say(line)
        raise
    show(report, as_json=as_json)
    if not as_json:
        for line in _funnel(out):
            say(line)
        say(f"run: {out}\nepisodes: {out / 'data'}")
    return 0


def _funnel(out: Path, *, advice: bool = False) -> list[str]:
    """Return the funnel of a run as lines for people; with advice, which settings decided about it."""
    from ..builders.entities.funnel import Step, advice_lines, funnel_lines
    from ..builders.entities.pipeline import FUNNEL
    from ..schemas.plain_files import read_json

    if not (out / FUNNEL).is_file():
        return []
    names = ("name", "unit", "before", "after", "codes")
    rows = read_json(out / FUNNEL, follow=True)
    steps = [Step(**{name: row[name] for name in names}) for row in rows]
    return [*funnel_lines(steps), *(advice_lines(steps) if advice else ())]
