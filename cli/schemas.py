"""``fabula schemas``: the published JSON Schemas, and the words that fields may hold."""

from pathlib import Path
from typing import Annotated

import typer

from . import words
from .common import JsonOption, emit, example, guarded, say

app = typer.Typer(
    name="schemas",
    no_args_is_help=True,
    rich_markup_mode=None,
    help="The published JSON Schemas, and the words that fields may hold.",
)
words.register(app)


@app.command("list", epilog=example("fabula schemas list"))
@guarded
def list_schemas(as_json: JsonOption = False) -> int:
    """List the schemas."""
    from ..schemas.export import PUBLISHED

    if as_json:
        emit(sorted(PUBLISHED))
    else:
        for name, kind in sorted(PUBLISHED.items()):
            say(f"{name:24}{(kind.__doc__ or '').splitlines()[0]}")
    return 0


@app.command("export", epilog=example("fabula schemas export --out schemas/"))
@guarded
def export(
    out: Annotated[Path, typer.Option("--out", help="Folder to write to.")], as_json: JsonOption = False
) -> int:
    """Write the schemas as NAME.schema.json (draft 2020-12)."""
    from ..schemas.export import export_schemas

    paths = export_schemas(out)
    if as_json:
        emit([str(path) for path in paths])
    else:
        for path in paths:
            say(str(path))
    return 0
