"""Drawn pictures, storyboards and videos for tests: small, deterministic, each panel different."""

import io
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ..schemas.canonical import pretty_bytes

if TYPE_CHECKING:
    from PIL.Image import Image

_COLOURS = ((200, 60, 60), (60, 160, 80), (60, 90, 200), (210, 170, 40), (140, 70, 170), (40, 160, 170))


def draw_panel(number: int, size: tuple[int, int] = (64, 48)) -> "Image":
    """Return an RGB picture that is different for every number: as many bars as the number, in its colour."""
    from PIL import Image, ImageDraw

    image = Image.new("RGB", size, (245, 240, 230))
    draw = ImageDraw.Draw(image)
    width = max(2, size[0] // (2 * number + 2))
    for bar in range(number):
        left = width * (2 * bar + 1)
        top = size[1] // 4
        draw.rectangle((left, top, left + width - 1, max(top, size[1] - 4)), fill=_COLOURS[number % 6])
    return image


def picture_bytes(image: "Image", format: str = "PNG", **options: object) -> bytes:
    """Return an image as the bytes of a file."""
    file = io.BytesIO()
    image.save(file, format, **options)
    return file.getvalue()


def write_storyboard(folder: Path, panels: int = 5, suffix: str = "png") -> list[Path]:
    """Write panels numbered with two digits; return the files."""
    folder.mkdir(parents=True, exist_ok=True)
    format = {"png": "PNG", "jpg": "JPEG", "jpeg": "JPEG", "webp": "WEBP"}[suffix]
    files = []
    for number in range(1, panels + 1):
        files.append(folder / f"{number:02}.{suffix}")
        files[-1].write_bytes(picture_bytes(draw_panel(number), format))
    return files


def write_outputs(
    folder: Path,
    story_ids: Iterable[str],
    *,
    panels: int = 5,
    seeds: Sequence[int] = (),
    manifest: dict[str, object] | None = None,
) -> Path:
    """Write the outputs of one method: a sound storyboard per story, or per story and seed."""
    for story_id in story_ids:
        for place in [folder / story_id / f"seed_{seed}" for seed in seeds] or [folder / story_id]:
            write_storyboard(place, panels)
    if manifest is not None:
        (folder / "outputs.json").write_bytes(pretty_bytes(manifest))
    return folder


def write_video(
    path: Path,
    frames: int,
    *,
    fps: int = 8,
    size: tuple[int, int] = (64, 48),
    key_every: int = 12,
    options: dict[str, str] | None = None,
) -> Path:
    """Write a video whose frame i is grey with the brightness ``frame_level(i)`` (needs the extra ``video``).

    ``frames``: how many frames. ``fps``: frames per second. ``key_every``: distance of the key frames.
    """
    import numpy as np

    from .drawn_videos import Encoder, write_frames

    greys = (np.full((size[1], size[0], 3), frame_level(number), np.uint8) for number in range(frames))
    return write_frames(path, greys, Encoder("mpeg4", options or {}, 2_000_000, key_every=key_every), fps=fps)


def frame_level(number: int) -> int:
    """Return the brightness of a frame that :func:`write_video` drew: neighbours differ by 40 or more."""
    return 20 + (number * 80) % 221
