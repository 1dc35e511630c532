"""``fabula publish``: put a release on a Hub, as one commit and a tag."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from ..errors import ConfigError
from .command import command
from .common import show, warn


@command("publish")
def publish(
    folder: Path,
    *,
    repo: str,
    private: bool = False,
    allow_stand_in: bool = False,
    dry_run: bool = False,
    as_json: bool = False,
) -> int:
    """Publish a release to a Hub: one commit, then a tag.

    The release is verified first. The commit holds the whole release; the tag is its version. Files that the
    repository has already are not sent again; files of the earlier version that the release no longer has are
    removed in the same commit. It can be stopped at any moment: the same command continues it. The token
    comes from HF_TOKEN or from `hf auth login`. To use another Hub, set HF_ENDPOINT to its address.

    Options:
        folder: Public release folder.
        repo: Data set repository, OWNER/NAME; created if it does not exist.
        private: Create it as a private repository.
        allow_stand_in: Publish records that a stand-in for a model wrote or checked.
        dry_run: Only list every operation; nothing is written to the Hub.

    Examples:
        fabula publish dist/mine-0.2.0 --repo user/mine --dry-run
        fabula publish dist/mine-0.2.0 --repo user/mine --private
    """
    from ..kinds.verbs import plan_publishing, publish
    from ..releases.hub.client import Retries
    from ..releases.hub.publish import PublishOptions

    options = PublishOptions(
        repo,
        private,
        retries=Retries(tell=warn),
        progress=not as_json and sys.stderr.isatty(),
        allow_stand_in=allow_stand_in,
    )
    if dry_run:
        show(plan_publishing(folder, options), as_json=as_json)
        return 0
    show(publish(folder, options, (lambda _: None) if as_json else warn), as_json=as_json)
    return 0


@command("fetch")
def fetch(
    reference: Annotated[str, typer.Argument(metavar="REPO@VERSION")],
    *,
    config: str | None = None,
    split: str | None = None,
    out: Path | None = None,
    as_json: bool = False,
) -> int:
    """Fetch a release from a Hub into the cache and check it.

    Every file is checked against release.json. A version that was fetched before comes from the cache,
    without network. Options that take a release, such as --release, understand REPO@VERSION too. With
    --config, only one table comes, with card and licence, and is checked likewise. To use another Hub, set
    HF_ENDPOINT to its address. A benchmark's name brings its data and official prompts; `benchmark get` its
    weights, too, and without network.

    Options:
        reference: OWNER/NAME@TAG, or OWNER/NAME@COMMIT with all 40 digits; or a benchmark, such as storyeval.
        config: Only this table, called a configuration on the Hub [the whole release].
        split: Only this split of the table [all of them].
        out: Also copy it to OUT/NAME-VERSION, a table to OUT/NAME-VERSION-TABLE [only the cache].

    Examples:
        fabula fetch user/mine@0.2.0
        fabula fetch storyeval
        fabula fetch user/mine@0.2.0 --out dist/
        fabula fetch user/mine@0.2.0 --config stories --split train --out data/
    """
    from ..kinds.benchmarks.benchmark import is_benchmark
    from ..releases.hub.client import Retries
    from ..releases.hub.fetch import FetchOptions, fetch

    if is_benchmark(reference):
        if (config, split, out) != (None, None, None):
            what = "these options are for releases on a Hub"
            raise ConfigError("--config, --split, --out", what=what, fix="leave them out")
        from .benchmark import get

        return get(reference, without_weights=True, as_json=as_json)
    options = FetchOptions(
        retries=Retries(tell=warn),
        progress=not as_json and sys.stderr.isatty(),
        config=config,
        split=split,
    )
    show(fetch(reference, out, options, (lambda _: None) if as_json else warn), as_json=as_json)
    return 0
