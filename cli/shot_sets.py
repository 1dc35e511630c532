"""Commands about sets of shot scripts: ``import vistory``, ``export vistory`` and ``export shots``."""

from pathlib import Path
from typing import Annotated

import typer

from .common import CreatedAtOption, JsonOption, emit, example, guarded, released, say, show
from .findings import AllOption, finding_lines

SetArgument = Annotated[
    Path, typer.Argument(metavar="RELEASE", help="Set of shot scripts.", show_default=False)
]
OutOption = Annotated[Path, typer.Option("--out", help="A new folder.", show_default=False)]


def register_import(app: typer.Typer) -> None:
    """Add the command that brings a set in."""
    app.command("vistory", epilog=example("fabula import vistory /data/ViStory --out runs/vistory"))(
        import_vistory
    )


def register_exports(app: typer.Typer) -> None:
    """Add the commands that write a set for others."""
    app.command("vistory", epilog=example("fabula export vistory runs/vistory --out ViStoryBench"))(
        export_vistory
    )
    app.command(
        "shots",
        epilog=example(
            "fabula export shots runs/vistory --out requests",
            "fabula export shots runs/vistory --language ch --references 3 --max-chars 500 --previous 1"
            " --out requests",
        ),
    )(export_shots)


@guarded
def import_vistory(
    source: Annotated[
        Path,
        typer.Argument(
            metavar="FOLDER", help="The official tree, or the folder above it.", show_default=False
        ),
    ],
    out: OutOption,
    created_at: CreatedAtOption = None,
    everything: AllOption = False,
    as_json: JsonOption = False,
) -> int:
    """Import shot scripts in the official ViStoryBench tree.

    Scripts stay the same field by field, images byte for byte. Everything that is wrong is listed, and the
    command then exits with 1; what can be used is written all the same, and can be packed as a release.
    """
    from ..releases.shot_import import import_set

    made = import_set(source, out, created_at)
    if not as_json:
        for line in finding_lines(made.report.issues, everything=everything):
            say(line)
    show(made, as_json=as_json)
    return int(not made.report.ok)


@guarded
def export_vistory(folder: SetArgument, out: OutOption, as_json: JsonOption = False) -> int:
    """Write shot scripts as the official ViStoryBench tree.

    Scripts stay the same field by field, images byte for byte.
    """
    from ..releases.shot_tree import read_shot_set, write_shot_set

    shot_set, _ = read_shot_set(released(folder))
    write_shot_set(shot_set, out)
    if as_json:
        emit({"out": str(out), "sha256": shot_set.sha256, **shot_set.counts()})
    else:
        say(f"{out}: {', '.join(f'{count} {name}' for name, count in shot_set.counts().items())}")
    return 0


@guarded
def export_shots(
    folder: SetArgument,
    out: OutOption,
    language: Annotated[str, typer.Option("--language", help="Language of the prompts: en or ch.")] = "en",
    parts: Annotated[
        list[str] | None,
        typer.Option(
            "--part",
            help="Part of the prompt: perspective, plot, static, characters, setting. Repeatable [all].",
        ),
    ] = None,
    max_chars: Annotated[
        int | None, typer.Option("--max-chars", help="Longest prompt in characters; the rest is cut [all].")
    ] = None,
    references: Annotated[
        int | None, typer.Option("--references", help="At most this many reference images for a shot [all].")
    ] = None,
    per_character: Annotated[
        int, typer.Option("--per-character", help="Reference images of each character.")
    ] = 1,
    previous: Annotated[
        int, typer.Option("--previous", help="Earlier shots that the generator is shown.")
    ] = 0,
    width: Annotated[int, typer.Option("--width", help="Width of the pictures, in pixels.")] = 1344,
    height: Annotated[int, typer.Option("--height", help="Height of the pictures, in pixels.")] = 768,
    seed: Annotated[int, typer.Option("--seed", help="Seed of the first shot; every shot adds 1.")] = 42,
    as_json: JsonOption = False,
) -> int:
    """Write prompts and references of shots for generators.

    requests.jsonl has one line per shot; the reference images that it names are copied beside it. If an
    option shortens a prompt or leaves a character without a reference, the line says so.
    """
    from ..releases.shot_import import REQUESTS, export_requests
    from ..releases.shot_requests import PARTS, RequestOptions
    from ..releases.shot_tree import read_shot_set

    options = RequestOptions(
        language, tuple(parts or PARTS), max_chars, references, per_character, previous, width, height, seed
    )
    shot_set, _ = read_shot_set(released(folder))
    told = export_requests(shot_set, out, options)
    if as_json:
        emit({"out": str(out), **told})
    else:
        cut = f", {told['cut']} prompts cut" if told["cut"] else ""
        say(f"{out / REQUESTS}: {told['requests']} requests, {told['references']} images{cut}")
    return 0
