"""The suite that a command about videos works with: a file in the official form, or a release of events."""

from pathlib import Path
from typing import Annotated

import typer

from ..errors import ConfigError, InputError, UserError
from .common import released

SuiteOption = Annotated[
    Path | None, typer.Option("--suite", help="Suite: an all_prompts.json, or the folder of a run with one.")
]
SuiteReleaseOption = Annotated[
    Path | None, typer.Option("--release", help="Suite: a release of events, in place of --suite.")
]


def given_suite(suite: Path | None, release: Path | None) -> Path:
    """Return the file of the suite that was given; a release must be as it was packed.

    Raises:
        ConfigError: not exactly one of the two was given. InputError: the release is no release of events, or
            its files are not those that its checksums are of.
    """
    if suite is not None and release is None:
        return suite
    if suite is not None or release is None:
        raise ConfigError(
            "--suite, --release", what=f"{'one' if suite is None else 'only one'} of the two must be given",
            fix="name a file with --suite, or a release of events with --release",
        )  # fmt: skip
    from ..evaluation.running import check_intact
    from ..releases.layout import EVENTS, SUITE
    from ..releases.loading import read_release_document

    folder = released(release)
    document = read_release_document(folder, EVENTS)
    stated = document.get("files")
    if not isinstance(stated, dict) or SUITE not in stated:
        raise InputError(
            [
                UserError(
                    str(folder), what=f"its release.json does not list {SUITE}",
                    fix="fetch or pack the release again",
                )
            ]
        )  # fmt: skip
    check_intact(folder)
    return folder / SUITE
