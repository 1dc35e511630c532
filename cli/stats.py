"""``fabula stats``: counts and distributions beside the published targets."""

from pathlib import Path
from typing import Annotated

import typer

from ..errors import ConfigError
from .common import JsonOption, emit, example, guarded, released, say
from .entity_stats import entity_stats


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command(
        "stats",
        epilog=example(
            "fabula stats runs/mine",
            "fabula stats dist/mine-0.1.0 --json",
            "fabula stats all_prompts.json",
            "fabula stats runs/eb --html eb.html",
        ),
    )(stats)


@guarded
def stats(
    path: Annotated[
        Path,
        typer.Argument(
            help="Run, release, JSONL file, suite (.json), shot scripts, episodes.", show_default=False
        ),
    ],
    html: Annotated[
        Path | None, typer.Option("--html", help="Episodes: also write tables and plots as one page here.")
    ] = None,
    split: Annotated[
        str | None, typer.Option("--split", help="Episodes: split file of the tiers [that of most episodes].")
    ] = None,
    as_json: JsonOption = False,
) -> int:
    """Count records and compare each distribution with its target.

    For episodes, print the tables of the EntityBench paper by tier, and below each the paper's own numbers.
    """
    from ..releases.shot_statistics import statistics_of_shots
    from ..releases.suite_loading import statistics_of_suite
    from ..validators import statistics_of

    folder = released(path)
    code = entity_stats(folder, html, split, as_json=as_json)
    if code is not None:
        return code
    for option, value in (("--html", html), ("--split", split)):
        if value is not None:
            raise ConfigError(
                option, what=f"this option is for episodes, and {path} holds none", fix="leave it out"
            )
    document = statistics_of_suite(folder) or statistics_of_shots(folder) or statistics_of(folder)
    if as_json:
        emit(document)
    else:
        _print_tree(document, "")
    return 0


def _print_tree(node: object, indent: str) -> None:
    if isinstance(node, dict):
        for key, value in node.items():
            if isinstance(value, dict):
                say(f"{indent}{key}")
                _print_tree(value, indent + "  ")
            else:
                say(f"{indent}{key}: {value}")
