"""Made-up shot scripts with drawn characters: every character is a figure in colours of its own.

They stand in for a published set and a generator's outputs. Where each figure stands in a picture is known,
so a detector that looks the boxes up in a table (:func:`boxes_in`) sees what a real one is meant to see.
"""

import json
from collections.abc import Sequence
from pathlib import Path

from ..releases.shots.tree import FOLDER, SCRIPT
from ..schemas.canonical import Json
from .drawn import picture_bytes

WIDTH, HEIGHT = 320, 180
FIGURE = (48, 120)
"""Width and height of a figure in a shot, in pixels."""

CAST: tuple[tuple[str, str, str, tuple[int, int, int]], ...] = (
    ("Mira", "米拉", "realistic_human", (200, 40, 40)),
    ("Old Tomas", "老托马斯", "unrealistic_human", (40, 90, 200)),
    ("The Fox", "狐狸", "non_human", (230, 140, 30)),
)
"""Key, Chinese name, tag and colour of the drawn characters."""

_PLACES = ("a stone bridge", "a dry well", "a market square", "an empty barn", "a hill under clouds")
_PLACES_CH = ("石桥", "枯井", "集市广场", "空谷仓", "云下的山丘")
_CAMERAS = (
    "Wide shot, eye level shot",
    "Medium shot, low-angle shot",
    "Full shot, side view, high-angle shot",
)
_CAMERAS_CH = ("远景，平视镜头", "中景，仰视镜头", "全景，侧面，俯视镜头")


def onstage(number: int) -> tuple[str, ...]:
    """Return who is on stage in a shot: none, one, two or three of the cast, by turns."""
    return tuple(key for key, *_ in CAST[: number % 4])


def drawn_script(shots: int = 5) -> Json:
    """Return a made-up script in the official shape."""
    counts = {key: sum(key in onstage(number) for number in range(1, shots + 1)) for key, *_ in CAST}
    return {
        "Story_type": {"en": "folktale", "ch": "民间故事"},
        "Characters": {
            key: {
                "tag": tag, "name_en": key, "name_ch": chinese,
                "prompt_en": f"wears a coat of colour {colour}",
                "prompt_ch": f"穿着颜色为{colour}的外套", "num_of_appearances": counts[key],
            }
            for key, chinese, tag, colour in CAST
        },
        "Shots": [_shot(number) for number in range(1, shots + 1)],
    }  # fmt: skip


def _shot(number: int) -> Json:
    keys = onstage(number)
    chinese = {key: name for key, name, *_ in CAST}
    place, camera = number % len(_PLACES), number % len(_CAMERAS)
    return {
        "index": number,
        "Plot Correspondence": {"en": f"Part {number} of the tale.", "ch": f"故事的第{number}部分。"},
        "Setting Description": {"en": f"Daytime, {_PLACES[place]}", "ch": f"白天，{_PLACES_CH[place]}"},
        "Shot Perspective Design": {"en": _CAMERAS[camera], "ch": _CAMERAS_CH[camera]},
        "Characters Appearing": {"en": list(keys), "ch": [chinese[key] for key in keys]},
        "Static Shot Description": {
            "en": ", ".join(f"{key} stands still" for key in keys) or "Nobody is there",
            "ch": "，".join(f"{chinese[key]}站着" for key in keys) or "没有人",
        },
    }


def draw_reference(key: str, number: int = 0) -> bytes:
    """Return a PNG of one character before a plain ground; other numbers stand a little elsewhere."""
    return _draw(((key, 20 + 6 * number),), (160, 160), (235, 235, 235))


def draw_shot(keys: Sequence[str], seed: int = 0) -> bytes:
    """Return a PNG of a shot with the characters side by side."""
    ground = (120 + 13 * seed % 60, 150, 110)
    return _draw(tuple(zip(keys, _lefts(len(keys)), strict=True)), (WIDTH, HEIGHT), ground)


def boxes_in(keys: Sequence[str]) -> list[tuple[float, float, float, float]]:
    """Return where the characters of a drawn shot stand: left, top, right, bottom in pixels."""
    top = HEIGHT - FIGURE[1]
    return [(left, top, left + FIGURE[0], HEIGHT) for left in _lefts(len(keys))]


def _lefts(count: int) -> list[int]:
    return [WIDTH * (2 * place + 1) // (2 * max(count, 1)) - FIGURE[0] // 2 for place in range(count)]


def _draw(figures: Sequence[tuple[str, int]], size: tuple[int, int], ground: tuple[int, int, int]) -> bytes:
    from PIL import Image, ImageDraw

    colours = {key: colour for key, _, _, colour in CAST}
    image = Image.new("RGB", size, ground)
    draw = ImageDraw.Draw(image)
    draw.line((0, 20, size[0], 20), fill=(90, 90, 90))
    width, height = FIGURE
    for key, left in figures:
        top, colour = size[1] - height, colours[key]
        draw.rectangle((left, top + width, left + width - 1, size[1] - 1), fill=colour)
        draw.ellipse(
            (left, top, left + width - 1, top + width - 1), fill=tuple(255 - part for part in colour)
        )
    return picture_bytes(image)


def draw_shot_set(folder: Path, stories: int = 2, shots: int = 5, references: int = 2) -> Path:
    """Write a data set in the official tree, and return the folder that holds ``ViStory``."""
    for story in range(1, stories + 1):
        place = folder / FOLDER / f"{story:02d}"
        place.mkdir(parents=True)
        text = json.dumps(drawn_script(shots), indent=4, ensure_ascii=False)
        (place / SCRIPT).write_text(text, "utf-8")
        for key, *_ in CAST:
            images = place / "image" / key
            images.mkdir(parents=True)
            for number in range(references):
                (images / f"{number:02d}.png").write_bytes(draw_reference(key, number))
    return folder


def draw_shot_outputs(folder: Path, stories: int = 2, shots: int = 5) -> Path:
    """Write the outputs of one method for a drawn set: ``<story>/shots/shot_01.png`` and so on."""
    for story in range(1, stories + 1):
        place = folder / f"{story:02d}" / "shots"
        place.mkdir(parents=True)
        for number in range(1, shots + 1):
            (place / f"shot_{number:02d}.png").write_bytes(draw_shot(onstage(number), story))
    return folder
