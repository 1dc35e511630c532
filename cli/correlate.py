"""``fabula correlate``: how two tables of numbers correlate."""

from pathlib import Path
from typing import Annotated

import typer

from ..errors import ConfigError
from .common import JsonOption, example, guarded, show


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command(
        "correlate",
        epilog=example(
            "fabula correlate judge-a.tsv judge-b.tsv --on model",
            "fabula correlate lite.tsv qwen.tsv --on method,model --columns pa_avg:lite_avg",
        ),
    )(correlate)


@guarded
def correlate(
    first: Annotated[Path, typer.Argument(help="A table: TSV, or CSV.", show_default=False)],
    second: Annotated[Path, typer.Argument(help="Another.", show_default=False)],
    on: Annotated[str, typer.Option("--on", help="Columns that name a row in both tables, with commas.")],
    columns: Annotated[
        str,
        typer.Option(
            "--columns", help="FIRST:SECOND pairs of columns, with commas [those of the same name].",
            show_default=False,
        ),
    ] = "",
    alias: Annotated[
        list[str] | None,
        typer.Option("--alias", help="NAME=OTHER, for a name that the tables spell differently. Repeatable."),
    ] = None,
    exclude: Annotated[
        list[str] | None,
        typer.Option("--exclude", help="Leave out rows of this name, or pattern such as Story*. Repeatable."),
    ] = None,
    as_json: JsonOption = False,
) -> int:  # fmt: skip
    """Correlate the columns of two tables.

    Rows that only one table has are left out. Gives Pearson, Spearman and Kendall correlations with
    intervals.
    """
    from ..evaluation.tables import correlate_tables, read_table

    tables = read_table(first), read_table(second)
    names = _aliases(alias or [])
    found = correlate_tables(*tables, _names(on), _pairs(columns), names, exclude or ())
    show(found, as_json=as_json)
    return 0


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]


def _pairs(text: str) -> list[tuple[str, str]]:
    pairs = []
    for part in _names(text):
        left, colon, right = part.partition(":")
        pairs.append((left.strip(), right.strip() if colon else left.strip()))
    return pairs


def _aliases(texts: list[str]) -> dict[str, str]:
    aliases = {}
    for text in texts:
        name, sign, other = text.partition("=")
        if not sign or not name.strip() or not other.strip():
            raise ConfigError("--alias", what=f"{text!r} is not written NAME=OTHER", fix="give both names")
        aliases[name.strip()] = other.strip()
    return aliases
