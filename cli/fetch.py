"""``fabula fetch``: a published release, by tag or commit, with every file checked."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from .common import JsonOption, example, guarded, show, warn


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command(
        "fetch",
        epilog=example(
            "fabula fetch user/mine@0.2.0",
            "fabula fetch user/mine@0.2.0 --out dist/",
        ),
    )(fetch)


@guarded
def fetch(
    reference: Annotated[
        str,
        typer.Argument(
            metavar="REPO@VERSION",
            help="OWNER/NAME@TAG, or OWNER/NAME@COMMIT with all 40 digits.",
            show_default=False,
        ),
    ],
    out: Annotated[
        Path | None, typer.Option("--out", help="Also copy it to OUT/NAME-VERSION [only the cache].")
    ] = None,
    as_json: JsonOption = False,
) -> int:
    """Fetch a release from a Hub into the cache and check it.

    Every file is checked against release.json. A version that was fetched before comes from the cache,
    without network. Options that take a release, such as --release, understand REPO@VERSION too. To use
    another Hub, set HF_ENDPOINT to its address.
    """
    from ..releases.hub.faults import Retries
    from ..releases.hub.fetch import FetchOptions, fetch

    options = FetchOptions(retries=Retries(tell=warn), progress=not as_json and sys.stderr.isatty())
    show(fetch(reference, out, options, (lambda _: None) if as_json else warn), as_json=as_json)
    return 0
