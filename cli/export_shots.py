"""``fabula export`` of shot scripts: the official tree, inputs of generators, subsets."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..errors import ConfigError
from ..schemas.text import quoted, tallied
from .command import command
from .common import answer, asked_for, released, wrote

if TYPE_CHECKING:
    from ..releases.shots.tree import RequestOptions as ShotRequests
    from ..releases.shots.tree import ShotSet


@command("export vistory")
def export_vistory(
    folder: Annotated[Path, typer.Argument(metavar="RELEASE")], *, out: Path, as_json: bool = False
) -> int:
    """Write shot scripts as the official ViStoryBench tree.

    Scripts stay the same field by field, images byte for byte.

    Options:
        folder: Set of shot scripts.
        out: A new folder.

    Examples:
        fabula export vistory runs/vistory --out ViStoryBench
    """
    from ..releases.shots.tree import read_shot_set, write_shot_set

    shot_set, _ = read_shot_set(released(folder))
    write_shot_set(shot_set, out)
    return wrote(out, shot_set.sha256, shot_set.counts(), as_json=as_json)


@command("export shots", "releases.shots.tree:RequestOptions", generator="--for", values="--value")
def export_shots(
    folder: Annotated[Path, typer.Argument(metavar="RELEASE")],
    *,
    options: "ShotRequests",
    out: Path,
    generator: str | None = None,
    values: Sequence[str] = (),
    as_json: bool = False,
) -> int:
    """Write prompts and references of shots for generators.

    requests.jsonl has one line per shot; the reference images that it names are copied beside it. If an
    option shortens a prompt or leaves a character without a reference, the line says so. With --for, the
    files are those that a generator reads, and results.jsonl names the file of each shot's picture, where
    outputs check looks for it.

    Options:
        folder: Set of shot scripts.
        out: A new folder.
        generator: Generator to write the inputs of: animdirector, seedstory, storyadapter, storydiffusion,
            storygen, uno, vlogger; or a TOML file that describes another [requests.jsonl].
        values: With --for, a value of its description, as NAME=VALUE, such as root=/data/requests/.

    Examples:
        fabula export shots runs/vistory --out requests
        fabula export shots runs/vistory --language ch --references 3 --max-chars 500 --previous 1 --out
            requests
        fabula export shots runs/vistory --for uno --out uno-inputs
    """
    from ..releases.shots.imports import REQUESTS, export_requests
    from ..releases.shots.tree import read_shot_set

    if generator is None and values:
        raise ConfigError("--value", what="values are those of a generator", fix="give --for, too")
    shot_set, _ = read_shot_set(released(folder))
    if generator is not None:
        return _for_generator(shot_set, out, generator, options, values, as_json=as_json)
    counts = export_requests(shot_set, out, options)
    return asked_for(out, out / REQUESTS, counts, tallied(counts["references"], "images"), as_json=as_json)


def _for_generator(
    shot_set: "ShotSet",
    out: Path,
    generator: str,
    options: "ShotRequests",
    values: Sequence[str],
    *,
    as_json: bool,
) -> int:
    """Write what a named generator reads, and say what the scripts lack for it."""
    from ..releases.shots.imports import RESULTS, export_inputs

    given: dict[str, str | int | float] = {}
    for value in values:
        name, equals, text = value.partition("=")
        if not equals:
            raise ConfigError("--value", expected="NAME=VALUE", found=value, fix="write it so")
        given[name] = text
    made = export_inputs(shot_set, out, generator, options, given)
    files = made.files[0] if len(made.files) == 1 else tallied(len(made.files), "files")
    lines = [
        f"{out}: {files}, {tallied(made.references, 'images')}; "
        f"results of {made.shots} shots: {out / RESULTS}"
    ]
    if made.missing:
        lines.append(f"the scripts lack {tallied(len(made.missing), 'texts')}, such as {made.missing[0]}")
    lines += [f"{story}: {key} has no reference image" for story, key in made.unshown]
    return answer({"out": str(out), **made.as_json()}, lines, as_json=as_json)


@command("export lite")
def lite(
    folder: Annotated[Path, typer.Argument(metavar="RELEASE")],
    *,
    out: Path,
    count: int = 20,
    ids: str | None = None,
    created_at: str | None = None,
    as_json: bool = False,
) -> int:
    """Write a small subset that represents the whole set.

    Stories are chosen so that types, styles, cultures, lengths and characters are distributed as in the whole
    set. lite.json holds the ids and compares each distribution with that of the whole. The folder is like
    that of an imported set: `fabula release pack` makes a release of it.

    Options:
        folder: Set of shot scripts.
        out: A new folder.
        count: Number of stories in the subset.
        ids: Take these stories, as 01,08,...; or official for the published Lite subset.
        created_at: Creation time of the run, RFC 3339.

    Examples:
        fabula export lite runs/shots --count 20 --out runs/shots-lite
        fabula export lite runs/vistory --ids official --out runs/vistory-lite
        fabula release pack runs/vistory-lite --version 0.1.0 --license CC-BY-4.0 --out dist/lite
    """
    from ..releases.shots.imports import OFFICIAL, choose, write_subset
    from ..releases.shots.tree import read_shot_set

    shot_set, _ = read_shot_set(released(folder))
    named = ids if ids in (None, OFFICIAL) else [part.strip() for part in ids.split(",")]
    document = write_subset(shot_set, choose(shot_set, count, named), out, created_at)
    lines = (
        f"stories: {', '.join(document['ids'])}",
        *(
            f"{name}: differs from the whole by {field['total_variation']:.3f} (total variation)"
            for name, field in document["fields"].items()
        ),
        f"set: {out}",
        f"next: fabula release pack {quoted(out)} --version 0.1.0 --license LICENSE --out DIST",
    )
    return answer(document, lines, as_json=as_json)
