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
    repo: Annotated[str, typer.Option("--repo", help="Data set repository, OWNER/NAME; made if not there.")],
    private: Annotated[bool, typer.Option("--private", help="Make it a private one.")] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only list every operation; nothing is written to the Hub.")
    ] = False,
    as_json: JsonOption = False,
) -> int:
    """Publish a release: one commit that holds all of it, then a tag named as its version.

    The release is verified first. What the repository has already is not sent again; files of the version
    before that are gone are removed in the same commit. It can be stopped at any moment: the same command
    goes on where it stopped. The token is that of HF_TOKEN or of `hf auth login`; HF_ENDPOINT names another
    Hub.
    """
    from ..releases.hub_retry import Retries
    from ..releases.publishing import PublishOptions, plan_publishing, publish

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
