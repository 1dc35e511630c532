"""``fabula release``: package a run as a release, verify a release; :mod:`.release_diff` compares two."""

import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..errors import ConfigError, ExitCode, InputError
from ..schemas.text import quoted
from .command import command
from .common import answer, released, show, show_findings, warn

if TYPE_CHECKING:
    from ..evaluation.protocol import StillValid
    from ..releases.diff.compare import ReleaseDiff


@command(
    "release pack",
    "releases.options:PackOptions",
    owners="kinds.verbs:owners_of_packing",
    without=("usual_license", "citation"),
    languages="--language",
    source_datasets="--source-dataset",
    task_ids="--task-id",
)
def pack(run: Path, *, given: dict[str, Any], out: Path, as_json: bool = False) -> int:
    """Write a release folder from a finished run.

    It holds JSONL, Parquet, a dataset card, Croissant metadata, statistics and checksums. A release needs a
    licence: the one that its records state, or --license, or (for story records) `license` under
    [assemble_records] in fabula.toml. With --since, changes.json lists every change by id and JSON path;
    name, title, creators, contact, licence and prompt languages are taken over, and a version that is too low
    for what changed is refused.

    Options:
        out: New release folder; hidden-test stories go to OUT-hidden.

    Examples:
        fabula release pack runs/mine --version 0.1.0 --license CC-BY-4.0 --allow-drafts --out dist/mine-0.1.0
        fabula release pack runs/mine --version 0.1.0 --license CC0-1.0 --out dist/mine-0.1.0 --name mine
            --creator 'Ana Lee'
        fabula release pack runs/mine --version 0.1.0 --license MIT --out dist/mine-0.1.0 --repo user/mine
            --arxiv 2401.01234 --source-dataset original
        fabula release pack runs/mine --version auto --since dist/mine-0.1.0 --out dist/mine-0.2.0
        fabula release pack runs/mine --version 0.1.0 --license MIT --out dist/mine-0.1.0 --subset
            lite=200 --subset even=125/category --subset strict=50/category:even
    """
    from ..kinds.verbs import pack, pack_options

    if "since" in given:
        given["since"] = released(given["since"])
    result = pack(run, out, pack_options(run, given))
    lines = (result.summary(), f"next: fabula release verify {quoted(out)}")
    return answer(result.as_json(), lines, as_json=as_json)


@command("release verify")
def verify(
    path: Path,
    *,
    quick: bool = False,
    hidden: Path | None = None,
    salt: Path | None = None,
    against: str | None = None,
    everything: bool = False,
    as_json: bool = False,
) -> int:
    """Check a release: checksums, rules, documents, loaders.

    Exits with 1 if there are errors; warnings alone do not count. Documents are made again from the data. If
    this version of Fabula packed the release, they must be the same byte for byte; if another version did,
    they must state the same facts. The report says which was checked.

    With the hidden-test folder, it also checks that no public file contains hidden text; with the salt too,
    that the hidden stories are those that release.json commits to. For that proof a release.json alone is
    enough.

    Whoever writes a whole release anew contradicts nothing in it. --against compares it with what was
    published: the SHA-256 of release.json, its address, a copy, or a commit of a Hub.

    Options:
        path: Release folder, user/name@tag, or a release.json.
        quick: Check only checksums, schemas, rules and tables; the report names what was not looked at.
        hidden: The hidden-test folder [PATH-hidden if it exists].
        salt: The salt file of the commitments [PATH-hidden.salt if it exists].
        against: What was published: SHA-256 of release.json, http(s) address, file, or user/name@commit.

    Examples:
        fabula release verify dist/mine-0.1.0
        fabula release verify dist/mine-0.1.0 --against user/mine@0123456789abcdef0123456789abcdef01234567
        fabula release verify old/release.json --hidden dist/mine-0.1.0-hidden --salt
            dist/mine-0.1.0-hidden.salt
    """
    from ..kinds.verbs import verify

    folder = released(path)
    report = verify(folder, quick=quick, hidden=hidden, salt=salt, against=against)
    if folder != path:  # a version on a Hub is called by its name, wherever the cache has it
        report = replace(report, path=path)
    return show_findings(report, as_json=as_json, everything=everything)


@command("release diff")
def diff(
    old: Path, new: Path, *, html: Path | None = None, evaluation: Path | None = None, as_json: bool = False
) -> int:
    """Compare two releases and say which version step is due.

    Differences are listed by record and JSON path. Exits with 0 when the releases were compared, whatever
    differs; with 1 when the version of the new release is wrong (not higher than the old one, or too low for
    what changed); with 2 when they cannot be compared.

    Options:
        old: The older release: a folder, or user/name@tag.
        new: The newer one.
        html: Also write the comparison as a page here.
        evaluation: Say which parts of this evaluation of OLD stay valid.

    Examples:
        fabula release diff dist/mine-0.1.0 dist/mine-0.2.0
        fabula release diff dist/mine-0.1.0 dist/mine-0.2.0 --html diff.html
        fabula release diff dist/mine-0.1.0 dist/mine-0.2.0 --evaluation runs/eval-a --json
    """
    from ..releases.diff.since import write_page

    try:
        changes, affected = _compared(released(old), released(new), evaluation)
    except InputError as error:
        raise NotCompared(error.problems) from error
    if html is not None:
        write_page(html, changes, () if affected is None else affected.table())
        warn(f"written: {html}")
    show(_Told(changes, affected), as_json=as_json)
    return int(changes.problem is not None)


class NotCompared(InputError):
    """One of the two is no sound release, or there is no such evaluation: nothing was compared."""

    exit_code = ExitCode.USAGE


def _compared(old: Path, new: Path, evaluation: Path | None) -> "tuple[ReleaseDiff, StillValid | None]":
    from ..kinds.verbs import diff

    changes = diff(old, new)
    if evaluation is None:
        return changes, None
    from ..kinds.evaluations import affected_judgements

    return changes, affected_judgements(evaluation, old, new)


@dataclass(frozen=True)
class _Told:
    """A diff, and what it means for an evaluation."""

    changes: "ReleaseDiff"
    affected: "StillValid | None"

    def as_json(self) -> dict[str, Any]:
        from ..releases.diff.since import as_json

        evaluation = None if self.affected is None else self.affected.as_json()
        return {**as_json(self.changes), "evaluation": evaluation}

    def lines(self) -> Iterator[str]:
        from ..releases.diff.since import lines

        yield from lines(self.changes)
        if self.affected is not None:
            yield from self.affected.lines()


# -- ``fabula publish``: put a release on a Hub, as one commit and a tag


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
