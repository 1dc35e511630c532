"""Entry point of the ``fabula`` command. It lists the verbs and does nothing else."""

import sys
from typing import Annotated

import typer

from . import (
    baseline,
    build,
    calibrate,
    compare,
    correlate,
    doctor,
    edit,
    evaluate,
    export,
    extend,
    fetch,
    imports,
    init,
    models,
    outputs,
    prompts,
    publish,
    release,
    report,
    run,
    schemas,
    score,
    stats,
    validate,
)
from .common import example, name_commands

app = typer.Typer(
    name="fabula",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    help="Build, validate, release and evaluate visual-story benchmarks.",
    epilog=example(
        "fabula build katha stories.jsonl --planner rules --out runs/mine",
        "fabula release pack runs/mine --version 0.1.0 --license CC-BY-4.0 --out dist/mine-0.1.0",
    ),
)
for noun in (build, release, run, schemas, prompts, models, outputs, imports, evaluate, export, baseline):
    app.add_typer(noun.app)
for verb in (
    init,
    doctor,
    edit,
    extend,
    publish,
    fetch,
    stats,
    validate,
    correlate,
    calibrate,
    score,
    compare,
    report,
):
    verb.register(app)
name_commands(app)


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
