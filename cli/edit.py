"""``fabula edit``: correct one field of a run, as data."""

import json
from pathlib import Path
from typing import Annotated

import typer

from ..errors import ConfigError
from .common import JsonOption, emit, example, guarded, say


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command(
        "edit",
        epilog=example(
            "fabula edit runs/mine kb25k_0001 '$.questions[0].gold_answer' --new '\"the net broke\"' "
            "--who ana --why 'names the event'",
            "fabula run retry runs/mine   (applies it)",
        ),
    )(edit)


@guarded
def edit(
    run: Annotated[Path, typer.Argument(help="Run folder.", show_default=False)],
    item: Annotated[str, typer.Argument(help="Record id.", show_default=False)],
    path: Annotated[str, typer.Argument(help="JSON path of the field.", show_default=False)],
    new: Annotated[str, typer.Option("--new", help="New value, as JSON (a string needs its quotes).")],
    who: Annotated[str, typer.Option("--who", help="Who makes the correction.")],
    why: Annotated[str, typer.Option("--why", help="The reason.")],
    as_json: JsonOption = False,
) -> int:
    """Append one correction to the run's edits.jsonl; the next build or retry applies it."""
    from ..builders.registry import add_edit

    try:
        value = json.loads(new)
    except ValueError as error:
        raise ConfigError(
            "--new", expected="a JSON value", found=f"{new!r} ({error})", fix="put text in quotes: '\"text\"'"
        ) from error
    made = add_edit(run, item, path, value, who=who, why=why)
    if as_json:
        emit(made.as_json())
    else:
        say(f"noted in {run / 'edits.jsonl'}; apply it with: fabula run retry {run}")
    return 0
