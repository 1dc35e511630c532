"""``fabula release``: package a run as a release, and verify a release."""

from pathlib import Path
from typing import Annotated

import typer

from .common import JsonOption, emit, example, guarded, say

app = typer.Typer(
    name="release", no_args_is_help=True, rich_markup_mode=None, help="Package and verify releases."
)


@app.command("pack", epilog=example("fabula release pack runs/mine --version 0.1.0 --out dist/mine-0.1.0"))
@guarded
def pack(
    run: Annotated[Path, typer.Argument(help="Run folder.", show_default=False)],
    version: Annotated[str, typer.Option("--version", help="Semantic version, such as 0.1.0.")],
    out: Annotated[Path, typer.Option("--out", help="New release folder; hidden test goes to OUT-hidden.")],
    name: Annotated[str | None, typer.Option("--name", help="Name of the data set [the folder's].")] = None,
    license_id: Annotated[
        str, typer.Option("--license", help="Licence of the records, SPDX id.")
    ] = "CC-BY-4.0",
    as_json: JsonOption = False,
) -> int:
    """Write a release folder: JSONL, Parquet, dataset card, Croissant metadata, statistics, checksums."""
    from ..releases import PackOptions, pack

    result = pack(run, out, PackOptions(version=version, name=name, license_id=license_id))
    if as_json:
        emit(result.as_json())
    else:
        for line in result.lines():
            say(line)
        say(f"next: fabula release verify {out}")
    return 0


@app.command("verify", epilog=example("fabula release verify dist/mine-0.1.0"))
@guarded
def verify(
    path: Annotated[Path, typer.Argument(help="Release folder.", show_default=False)],
    quick: Annotated[
        bool, typer.Option("--quick", help="Checksums, schemas and rules only; no loaders.")
    ] = False,
    as_json: JsonOption = False,
) -> int:
    """Check everything again: checksums, rules, loaders, metadata. Exits with 1 if there are findings."""
    from ..releases import verify

    report = verify(path, quick=quick)
    if as_json:
        emit(report.as_json())
    else:
        for issue in report.issues:
            say(f"{issue.level}: {issue}")
        say(report.summary())
    return int(any(issue.level == "error" for issue in report.issues))
