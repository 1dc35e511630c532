"""Entry point of the ``fabula`` command. It lists the verbs and does nothing else."""

import sys
from typing import Annotated

import typer

from . import (  # noqa: F401 - each notes its commands
    audit,
    baseline,
    build,
    calibrate,
    correlate,
    doctor,
    edit,
    evaluate,
    experiment,
    export_shots,
    exports,
    extend,
    hub,
    imports,
    init,
    leaderboard,
    memory,
    memory_shots,
    models,
    outputs,
    prompts,
    release,
    report,
    review,
    run,
    schemas,
    score,
    stats,
    validate,
)
from .command import COMMANDS, examples

VERBS = {
    "init": "",
    "doctor": "",
    "build": "Build records from source material.",
    "import": "Bring published data and results into folders like our own.",
    "export": "Copy data and results into a folder of their own.",
    "run": "Look at a run; check its journal; retry failures.",
    "edit": "",
    "extend": "",
    "validate": "",
    "stats": "",
    "audit": "",
    "release": "Package, verify and compare releases.",
    "publish": "",
    "fetch": "",
    "outputs": "Check generated storyboards and videos.",
    "evaluate": "Have judges look at generated outputs.",
    "score": "",
    "compare": "",
    "correlate": "",
    "calibrate": "",
    "report": "",
    "review": "Have people review records and outputs: studies, pages, votes.",
    "baseline": "Make the outputs of a baseline.",
    "experiment": "Run studies of plans, renderers, seeds and judges.",
    "leaderboard": "Collect submissions, check and rank them, show them on pages.",
    "memory": "Remember entities for generators; make shots of episodes.",
    "prompts": "The prompt files.",
    "models": "Check language models and models that look at pictures.",
    "schemas": "The published JSON Schemas, and the words that fields may hold.",
}
"""Verb -> what its nouns do, in the order of --help; empty for a verb that has none."""
OPTIONS = {"no_args_is_help": True, "add_completion": False, "rich_markup_mode": None}

app = typer.Typer(
    name="fabula",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    help="Build, validate, release and evaluate visual-story benchmarks.",
    epilog=examples(
        "fabula build katha stories.jsonl --planner rules --out runs/mine",
        "fabula release pack runs/mine --version 0.1.0 --license CC-BY-4.0 --allow-drafts --out dist/mine",
    ),
)
for _verb, _about in VERBS.items():
    _group = typer.Typer(name=_verb, no_args_is_help=True, rich_markup_mode=None, help=_about)
    for _command in COMMANDS:
        if _command.name.split()[0] == _verb:
            _command.add_to(_group if _about else app)
    if _about:
        app.add_typer(_group)


def _version(wanted: bool) -> None:
    if wanted:
        from .. import __version__

        sys.stdout.write(f"fabula {__version__}\n")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Build, validate, release and evaluate visual-story benchmarks."""


def main() -> None:
    """Run the command line."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):  # stories come in every script, whatever the locale says
            stream.reconfigure(encoding="utf-8", errors="backslashreplace")
    app()


if __name__ == "__main__":
    main()
