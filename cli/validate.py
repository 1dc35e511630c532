"""``fabula validate``: every finding about a run, a release, a JSONL file or a suite, in one pass."""

from pathlib import Path
from typing import Annotated

import typer

from .common import JsonOption, example, guarded, released, show_findings
from .findings import AllOption


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command(
        "validate",
        epilog=example(
            "fabula validate runs/mine",
            "fabula validate annotations.jsonl --json",
            "fabula validate runs/shots",
            "fabula validate runs/eb",
            "fabula validate all_prompts.json",
        ),
    )(validate)


@guarded
def validate(
    path: Annotated[
        Path,
        typer.Argument(
            help="Run, release, JSONL file, suite (.json), shot scripts, episodes.", show_default=False
        ),
    ],
    strict: Annotated[bool, typer.Option("--strict", help="Warnings count as findings too.")] = False,
    everything: AllOption = False,
    as_json: JsonOption = False,
) -> int:
    """Check schemas and every rule. Exits with 1 if there are findings."""
    from ..releases.entity_tree import holds_episodes, read_entity_set
    from ..releases.shot_statistics import holds_scripts
    from ..releases.shot_tree import read_shot_set
    from ..releases.suite_check import check_suite
    from ..validators import validate as check

    folder = released(path)
    if holds_scripts(folder):
        report = read_shot_set(folder)[1]
    elif holds_episodes(folder):
        report = read_entity_set(folder)[1]
    else:
        report = check_suite(folder) or check(folder)
    return show_findings(report, as_json=as_json, strict=strict, everything=everything)
