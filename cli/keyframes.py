"""``fabula outputs keyframes``: pictures of shots out of one video per story."""

from pathlib import Path
from typing import Annotated

import typer

from ..errors import ConfigError
from .common import JsonOption, guarded, released, show, warn

EXAMPLES = (
    "fabula outputs keyframes videos/model-x --release runs/vistory --out outputs/model-x",
    "fabula outputs keyframes videos/model-x --release runs/vistory --out outputs/model-x"
    " --review corrected.json",
)


@guarded
def keyframes(
    videos: Annotated[
        Path, typer.Argument(metavar="VIDEOS", help="Folder with one video per story.", show_default=False)
    ],
    release: Annotated[Path, typer.Option("--release", help="A set of shots.", show_default=False)],
    out: Annotated[
        Path, typer.Option("--out", help="Folder to write the frames to; its name is the method's.")
    ],
    review: Annotated[
        Path | None, typer.Option("--review", help="A corrected review file [keyframes.json in OUT].")
    ] = None,
    method: Annotated[
        str, typer.Option("--method", help="transnetv2, or histogram, which needs no torch.")
    ] = "transnetv2",
    threshold: Annotated[
        float | None,
        typer.Option("--threshold", help="A change above this value begins a new shot [the method's]."),
    ] = None,
    device: Annotated[str, typer.Option("--device", help="Where the network runs: cpu, cuda, mps.")] = "cpu",
    as_json: JsonOption = False,
) -> int:
    """Cut videos of stories into shots and write their middle frames.

    There is one video per story. Its shots are matched with the shots of the script in order; keyframes.json
    in OUT lists every match and every missing or surplus shot. Correct it and run the command again. Exits
    with 1 while there is something to review.
    """
    from ..evaluation.images.keyframe_files import take_keyframes
    from ..evaluation.images.keyframes import Finding
    from ..media.shot_detection import METHODS

    if method not in METHODS:
        raise ConfigError(
            "--method", expected=f"one of {', '.join(METHODS)}", found=method, fix="check the spelling"
        )
    _check_device(method, device)
    finding = Finding(method, threshold, device)
    taken = take_keyframes(videos, released(release), out, finding, review, warn)
    show(taken, as_json=as_json)
    return int(not taken.complete)


def _check_device(method: str, device: str) -> None:
    """Check the device that the network is to run on, before any video is opened."""
    from ..media.shot_detection import identity
    from ..models.vision.devices import Place

    if method == "transnetv2":
        identity("transnetv2")
        Place(device).checked()  # type: ignore[arg-type]
