"""``fabula release``: package a run as a release, verify a release; :mod:`.release_diff` compares two."""

from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from . import release_diff
from .common import JsonOption, emit, example, guarded, released, say, show_findings
from .findings import AllOption

app = typer.Typer(
    name="release", no_args_is_help=True, rich_markup_mode=None, help="Package, verify and compare releases."
)
release_diff.register(app)


@app.command(
    "pack",
    epilog=example(
        "fabula release pack runs/mine --version 0.1.0 --license CC-BY-4.0 --out dist/mine-0.1.0",
        "fabula release pack runs/mine --version 0.1.0 --license CC0-1.0 --out dist/mine-0.1.0 --name mine"
        " --creator 'Ana Lee'",
        "fabula release pack runs/mine --version auto --since dist/mine-0.1.0 --out dist/mine-0.2.0",
        "fabula release pack runs/mine --version 0.1.0 --license MIT --out dist/mine-0.1.0 --subset lite=200"
        " --subset even=125/category --subset strict=50/category:even",
    ),
)
@guarded
def pack(
    run: Annotated[Path, typer.Argument(help="Run folder.", show_default=False)],
    version: Annotated[
        str, typer.Option("--version", help="Semantic version, or auto: the next one after --since.")
    ],
    out: Annotated[
        Path, typer.Option("--out", help="New release folder; hidden-test stories go to OUT-hidden.")
    ],
    name: Annotated[
        str | None, typer.Option("--name", help="Short name, as in a repository address.")
    ] = None,
    title: Annotated[str | None, typer.Option("--title", help="Full title.")] = None,
    creators: Annotated[list[str] | None, typer.Option("--creator", help="Who made it. Repeatable.")] = None,
    license_id: Annotated[
        str | None,
        typer.Option(
            "--license",
            help="SPDX id [as records, fabula.toml or the earlier release state].",
        ),
    ] = None,
    url: Annotated[str | None, typer.Option("--url", help="Where it is published.")] = None,
    contact: Annotated[str | None, typer.Option("--contact", help="How to reach the maintainers.")] = None,
    languages: Annotated[
        list[str] | None,
        typer.Option("--language", help="Language tag of the prompts or scripts. Repeatable."),
    ] = None,
    since: Annotated[
        Path | None,
        typer.Option("--since", help="The earlier release: a folder, or user/name@tag."),
    ] = None,
    subsets: Annotated[
        list[str] | None,
        typer.Option(
            "--subset",
            help="Draw a representative subset: NAME=SIZE or NAME=COUNT/category; with :PARENT from another.",
        ),
    ] = None,
    reviews: Annotated[
        Path | None,
        typer.Option("--reviews", help="Summaries of human reviews (Table 16); gold subsets need them."),
    ] = None,
    salt: Annotated[
        Path | None,
        typer.Option("--salt", help="The salt file of an earlier version, for a run that has none yet."),
    ] = None,
    as_json: JsonOption = False,
) -> int:
    """Write a release folder from a finished run.

    It holds JSONL, Parquet, a dataset card, Croissant metadata, statistics and checksums. A release needs a
    licence: the one that its records state, or --license, or (for story records) `license` under
    [assemble_records] in fabula.toml. With --since, changes.json lists every change by id and JSON path;
    name, title, creators, contact, licence and prompt languages are taken over, and a version that is too low
    for what changed is refused.
    """
    from ..releases import PackOptions, pack
    from ..releases.changes_since import options_since

    since = released(since)
    given: dict[str, Any] = {
        "name": name,
        "title": title,
        "creators": tuple(creators) if creators else None,
        "license": license_id,
        "url": url,
        "contact": contact,
        "languages": tuple(languages) if languages else None,
        "since": since,
        "subsets": tuple(subsets) if subsets else None,
        "reviews": reviews,
        "salt": salt,
    }
    known = {} if since is None else options_since(since)
    known |= _licence_of(Path("fabula.toml"), run)
    known |= {key: value for key, value in given.items() if value is not None}
    options = PackOptions(version, **known)
    result = pack(run, out, options)
    if as_json:
        emit(result.as_json())
    else:
        say(result.summary())
        say(f"next: fabula release verify {out}")
    return 0


def _licence_of(path: Path, run: Path) -> dict[str, str]:
    """Return the licence that a settings file has for the records of a run, if it has one."""
    from ..engine.config import read_settings
    from ..engine.manifest import read_manifest
    from ..releases.layout import KIND

    if not path.is_file() or read_manifest(run).kind != KIND:
        return {}
    section = read_settings(path).get("assemble_records")
    stated = section.get("license") if isinstance(section, dict) else None
    return {"usual_license": stated} if isinstance(stated, str) else {}


@app.command(
    "verify",
    epilog=example(
        "fabula release verify dist/mine-0.1.0",
        "fabula release verify old/release.json --hidden dist/mine-0.1.0-hidden"
        " --salt dist/mine-0.1.0-hidden.salt",
    ),
)
@guarded
def verify(
    path: Annotated[
        Path, typer.Argument(help="Release folder, user/name@tag, or a release.json.", show_default=False)
    ],
    quick: Annotated[
        bool, typer.Option("--quick", help="Check only checksums, schemas, rules and tables.")
    ] = False,
    hidden: Annotated[
        Path | None, typer.Option("--hidden", help="The hidden-test folder [PATH-hidden if it exists].")
    ] = None,
    salt: Annotated[
        Path | None,
        typer.Option("--salt", help="The salt file of the commitments [PATH-hidden.salt if it exists]."),
    ] = None,
    everything: AllOption = False,
    as_json: JsonOption = False,
) -> int:
    """Check a release: checksums, rules, documents, loaders.

    Exits with 1 if there are findings. Documents are made again from the data. If this version of Fabula
    packed the release, they must be the same byte for byte; if another version did, they must state the same
    facts. The report says which was checked.

    With the hidden-test folder, it also checks that no public file contains hidden text; with the salt too,
    that the hidden stories are those that release.json commits to. For that proof a release.json alone is
    enough.
    """
    from ..releases import verify

    folder = released(path)
    report = verify(folder, quick=quick, hidden=hidden, salt=salt)
    if folder != path:  # a version on a Hub is called by its name, wherever the cache has it
        report = replace(report, path=path)
    return show_findings(report, as_json=as_json, everything=everything)
