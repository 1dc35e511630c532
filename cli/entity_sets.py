"""Commands about episodes: ``import entitybench``, ``export entitybench`` and ``export entities``."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from .common import CreatedAtOption, JsonOption, emit, example, guarded, released, say, show, warn
from .findings import AllOption, finding_lines

if TYPE_CHECKING:
    from ..releases.entity_tree import EntitySet

SetArgument = Annotated[
    Path, typer.Argument(metavar="RUN", help="Run or release with episodes.", show_default=False)
]
OutOption = Annotated[Path, typer.Option("--out", help="A new folder.", show_default=False)]


def register_import(app: typer.Typer) -> None:
    """Add the command that brings episodes in."""
    app.command("entitybench", epilog=example("fabula import entitybench EntityBench/data --out runs/eb"))(
        import_entitybench
    )


def register_exports(app: typer.Typer) -> None:
    """Add the commands that write episodes for others."""
    app.command("entitybench", epilog=example("fabula export entitybench runs/eb --out EntityBench/data"))(
        export_entitybench
    )
    app.command(
        "entities",
        epilog=example(
            "fabula export entities runs/eb --out requests",
            "fabula export entities runs/eb --header all --tier hard --out requests",
            "fabula export entities runs/eb --header first --ids character --per episode --out requests",
        ),
    )(export_entities)


@guarded
def import_entitybench(
    source: Annotated[
        Path,
        typer.Argument(
            metavar="FOLDER",
            help="Folder with scripts/ and splits/, or a folder of scripts.",
            show_default=False,
        ),
    ],
    out: OutOption,
    created_at: CreatedAtOption = None,
    everything: AllOption = False,
    as_json: JsonOption = False,
) -> int:
    """Import episodes in the official EntityBench form.

    The new folder is used like a run. Files stay the same byte for byte. Findings are counted by code; fabula
    validate lists them. Exits with 1 if a file could not be used, or an episode cannot be released as it is.
    """
    from ..releases.entity_import import import_episodes

    made = import_episodes(source, out, created_at)
    if not as_json:
        for line in finding_lines(made.lost, everything=everything):
            say(line)
    show(made, as_json=as_json)
    return int(bool(made.lost))


@guarded
def export_entitybench(folder: SetArgument, out: OutOption, as_json: JsonOption = False) -> int:
    """Write episodes as the official EntityBench files.

    These are scripts/ and splits/, byte for byte.
    """
    from ..releases.entity_import import export_episodes

    entity_set, code = usable_set(released(folder))
    counts = export_episodes(entity_set, out)
    if as_json:
        emit({"out": str(out), "sha256": entity_set.sha256, **counts})
    else:
        say(f"{out}: {', '.join(f'{count} {name}' for name, count in counts.items())}")
    return code


@guarded
def export_entities(
    folder: SetArgument,
    out: OutOption,
    header: Annotated[
        str,
        typer.Option(
            "--header",
            help="Entities that a prompt describes: official (as in the file), none, all, first (new ones).",
        ),
    ] = "official",
    ids: Annotated[
        list[str] | None,
        typer.Option(
            "--ids",
            help="Write [character1] for names of this type: character, location, object. Repeatable.",
        ),
    ] = None,
    max_chars: Annotated[
        int | None, typer.Option("--max-chars", help="Longest prompt in characters; the rest is cut [all].")
    ] = None,
    per: Annotated[str, typer.Option("--per", help="One line per shot, or per episode.")] = "shot",
    tier: Annotated[str | None, typer.Option("--tier", help="Only episodes of this tier [all].")] = None,
    split: Annotated[
        str | None, typer.Option("--split", help="Split file that says the tier [that of most episodes].")
    ] = None,
    seed: Annotated[int, typer.Option("--seed", help="Seed of the first shot; every shot adds 1.")] = 42,
    as_json: JsonOption = False,
) -> int:
    """Write prompts and entities of shots for generators.

    One line per shot gives the prompt, its entities, which shot to continue, and the file to write the video
    to: EPISODE/SCENE_SHOT.mp4, such as NAME/002_001.mp4.
    """
    from ..releases.entity_requests import REQUESTS, RequestOptions, write_requests

    options = RequestOptions(header, tuple(ids or ()), max_chars, per, tier, split, seed).checked()
    entity_set, code = usable_set(released(folder))
    told = write_requests(entity_set, out, options)
    if as_json:
        emit({"out": str(out), **told})
    else:
        cut = f", {told['cut']} prompts cut" if told["cut"] else ""
        say(f"{out / REQUESTS}: {told['requests']} requests, {told['shots']} shots{cut}")
    return code


def usable_set(folder: Path) -> tuple["EntitySet", int]:
    """Return the episodes that can be used, and the exit code: 1 where files had to be left out."""
    from ..releases.entity_tree import read_entity_set

    entity_set, report = read_entity_set(folder, rules=False)
    for issue in report.errors:
        warn(f"left out: {issue}")
    return entity_set, int(not report.ok)
