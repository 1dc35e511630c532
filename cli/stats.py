"""``fabula stats``: counts and distributions beside the published targets."""

from pathlib import Path
from typing import Annotated

import typer

from .common import JsonOption, emit, example, guarded, released, say


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command(
        "stats",
        epilog=example(
            "fabula stats runs/mine", "fabula stats dist/mine-0.1.0 --json", "fabula stats all_prompts.json"
        ),
    )(stats)


@guarded
def stats(
    path: Annotated[
        Path,
        typer.Argument(help="Run, release, JSONL file, suite (.json), shot scripts.", show_default=False),
    ],
    as_json: JsonOption = False,
) -> int:
    """Count records and show each distribution with its target and deviation."""
    from ..releases.shot_statistics import statistics_of_shots
    from ..releases.suite_loading import statistics_of_suite
    from ..validators import statistics_of

    folder = released(path)
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
