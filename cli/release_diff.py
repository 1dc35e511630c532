"""``fabula release diff``: what changed between two releases, and what of an evaluation stays valid."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..errors import ExitCode, InputError
from .common import JsonOption, example, guarded, released, show, warn

if TYPE_CHECKING:
    from ..evaluation.judges.affected import Affected
    from ..releases.diffing.compare import ReleaseDiff


def register(app: typer.Typer) -> None:
    """Add the command to the noun."""
    app.command(
        "diff",
        epilog=example(
            "fabula release diff dist/mine-0.1.0 dist/mine-0.2.0",
            "fabula release diff dist/mine-0.1.0 dist/mine-0.2.0 --html diff.html",
            "fabula release diff dist/mine-0.1.0 dist/mine-0.2.0 --evaluation runs/eval-a --json",
        ),
    )(diff)


@guarded
def diff(
    old: Annotated[
        Path, typer.Argument(help="The older release: a folder, or user/name@tag.", show_default=False)
    ],
    new: Annotated[Path, typer.Argument(help="The newer one.", show_default=False)],
    html: Annotated[
        Path | None, typer.Option("--html", help="Also write the comparison as a page here.")
    ] = None,
    evaluation: Annotated[
        Path | None,
        typer.Option("--evaluation", help="Say which parts of this evaluation of OLD stay valid."),
    ] = None,
    as_json: JsonOption = False,
) -> int:
    """Compare two releases and say which version step is due.

    Differences are listed by record and JSON path. Exits with 0 when the releases were compared, whatever
    differs; with 1 when the version of the new release is wrong (not higher than the old one, or too low for
    what changed); with 2 when they cannot be compared.
    """
    from ..releases.diffing.page import write_page

    try:
        found, affected = _compared(released(old), released(new), evaluation)
    except InputError as error:
        raise NotCompared(error.problems) from error
    if html is not None:
        write_page(html, found, () if affected is None else affected.table())
        warn(f"written: {html}")
    show(_Told(found, affected), as_json=as_json)
    return int(found.problem is not None)


class NotCompared(InputError):
    """One of the two is no sound release, or there is no such evaluation: nothing was compared."""

    exit_code = ExitCode.USAGE


def _compared(old: Path, new: Path, evaluation: Path | None) -> "tuple[ReleaseDiff, Affected | None]":
    from ..releases import diff

    found = diff(old, new)
    if evaluation is None:
        return found, None
    from ..evaluation.judges.affected import affected_judgements

    return found, affected_judgements(evaluation, old, new)


@dataclass(frozen=True)
class _Told:
    """A diff, and what it means for an evaluation."""

    found: "ReleaseDiff"
    affected: "Affected | None"

    def as_json(self) -> dict[str, Any]:
        from ..releases.diffing.text import as_json

        evaluation = None if self.affected is None else self.affected.as_json()
        return {**as_json(self.found), "evaluation": evaluation}

    def lines(self) -> Iterator[str]:
        from ..releases.diffing.text import lines

        yield from lines(self.found)
        if self.affected is not None:
            yield from self.affected.lines()
