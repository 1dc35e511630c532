"""Commands about the material of shot scripts: ``import references`` and ``export lite``."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from .common import CreatedAtOption, JsonOption, emit, example, guarded, released, say, show_findings
from .findings import AllOption

if TYPE_CHECKING:
    from ..builders.shots.references import Sees


def register_import(app: typer.Typer) -> None:
    """Add the command that brings reference images in."""
    app.command(
        "references",
        epilog=example(
            'fabula import references drawings/ --to runs/shots --rights "CC0-1.0" --source "drawn by Ana"',
            "fabula import references stills/ --to runs/shots --detector faces-scrfd-10g",
        ),
    )(references)


def register_export(app: typer.Typer) -> None:
    """Add the command that writes a subset."""
    app.command(
        "lite",
        epilog=example(
            "fabula export lite runs/shots --count 20 --out runs/shots-lite",
            "fabula export lite runs/vistory --ids official --out runs/vistory-lite",
            "fabula release pack runs/vistory-lite --version 0.1.0 --license CC-BY-4.0 --out dist/lite",
        ),
    )(lite)


@guarded
def references(
    folder: Annotated[Path, typer.Argument(help="Images, as STORY/CHARACTER/*.jpg.", show_default=False)],
    out: Annotated[Path, typer.Option("--to", help="The run or set to add them to.", show_default=False)],
    source: Annotated[
        str | None,
        typer.Option("--source", help="Where the images come from, unless references.jsonl says it."),
    ] = None,
    rights: Annotated[
        str | None,
        typer.Option(
            "--rights", help="Under which licence or right they may be used, unless references.jsonl says it."
        ),
    ] = None,
    detector: Annotated[
        str | None, typer.Option("--detector", help="Report images in which this detector finds nobody.")
    ] = None,
    everything: AllOption = False,
    as_json: JsonOption = False,
) -> int:
    """Add reference images to a set of shot scripts.

    Each image is checked: readable, large enough, not there already, at most 10 per character. Source and
    rights come from --source and --rights, or for single files from references.jsonl in the folder. Exits
    with 1 if an image could not be added; an image that is there already is only reported.
    """
    from ..builders.shots.references import Terms, import_references

    terms = Terms(source=source, rights=rights)
    report = import_references(folder, out, terms, None if detector is None else _looks(detector))
    return show_findings(report, as_json=as_json, everything=everything)


def _looks(name: str) -> "Sees":
    """Return what looks at a picture with a detector."""
    from ..models.vision.devices import Place
    from ..models.vision.registry import open_vision
    from ..models.vision.types import Detector

    model = open_vision(name, Place(), kind="detector")
    assert isinstance(model, Detector)
    return lambda image: bool(model.detect([image])[0])


@guarded
def lite(
    folder: Annotated[
        Path, typer.Argument(metavar="RELEASE", help="Set of shot scripts.", show_default=False)
    ],
    out: Annotated[Path, typer.Option("--out", help="A new folder.", show_default=False)],
    count: Annotated[int, typer.Option("--count", help="Number of stories in the subset.")] = 20,
    ids: Annotated[
        str | None,
        typer.Option(
            "--ids", help="Take these stories, as 01,08,...; or official for the published Lite subset."
        ),
    ] = None,
    created_at: CreatedAtOption = None,
    as_json: JsonOption = False,
) -> int:
    """Write a small subset that represents the whole set.

    Stories are chosen so that types, styles, cultures, lengths and characters are distributed as in the whole
    set. lite.json holds the ids and compares each distribution with that of the whole. The folder is like
    that of an imported set: `fabula release pack` makes a release of it.
    """
    from ..releases.shot_subsets import OFFICIAL, choose, write_subset
    from ..releases.shot_tree import read_shot_set

    shot_set, _ = read_shot_set(released(folder))
    named = ids if ids in (None, OFFICIAL) else [part.strip() for part in ids.split(",")]
    document = write_subset(shot_set, choose(shot_set, count, named), out, created_at)
    if as_json:
        emit(document)
        return 0
    say(f"stories: {', '.join(document['ids'])}")
    for name, field in document["fields"].items():
        say(f"{name}: differs from the whole by {field['total_variation']:.3f} (total variation)")
    say(f"set: {out}")
    say(f"next: fabula release pack {out} --version 0.1.0 --license LICENSE --out DIST")
    return 0
