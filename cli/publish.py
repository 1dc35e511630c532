"""``fabula publish``: put a release on a Hub, as one commit and a tag."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from .common import JsonOption, example, guarded, show, warn


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command(
        "publish",
        epilog=example(
            "fabula publish dist/mine-0.2.0 --repo user/mine --dry-run",
            "fabula publish dist/mine-0.2.0 --repo user/mine --private",
        ),
    )(publish)


@guarded
def publish(
    folder: Annotated[Path, typer.Argument(help="Public release folder.", show_default=False)],
    repo: Annotated[
        str, typer.Option("--repo", help="Data set repository, OWNER/NAME; created if it does not exist.")
    ],
    private: Annotated[bool, typer.Option("--private", help="Create it as a private repository.")] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only list every operation; nothing is written to the Hub.")
    ] = False,
    as_json: JsonOption = False,
) -> int:
    """Publish a release to a Hub: one commit, then a tag.

    The release is verified first. The commit holds the whole release; the tag is its version. Files that the
    repository has already are not sent again; files of the earlier version that the release no longer has are
    removed in the same commit. It can be stopped at any moment: the same command continues it. The token
    comes from HF_TOKEN or from `hf auth login`. To use another Hub, set HF_ENDPOINT to its address.
    """
    from ..releases.hub.faults import Retries
    from ..releases.hub.publish import PublishOptions, plan_publishing, publish

    options = PublishOptions(
        repo,
        private,
        retries=Retries(tell=warn),
        progress=not as_json and sys.stderr.isatty(),
    )
    if dry_run:
        show(plan_publishing(folder, options), as_json=as_json)
        return 0
    show(publish(folder, options, (lambda _: None) if as_json else warn), as_json=as_json)
    return 0
