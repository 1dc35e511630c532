"""A drawn video with people at known places, and a file of detections of them: all that a build needs.

Shots are written as in :mod:`.load_films`: letters of the people, number of the place. Neighbours should be
at different places, as only then their boundary can be seen.
"""

import json
from collections.abc import Iterable, Sequence
from pathlib import Path

from ..schemas.canonical import Json
from .drawn_videos import Take, write_takes

FRAMES, FPS, SIZE = 30, 25, (320, 240)
EVERY = 5


def write_episode(folder: Path, shots: Sequence[str], name: str = "film") -> tuple[Path, Path]:
    """Write ``<name>.mp4`` and ``<name>.jsonl``; return both. Needs the extra ``video``."""
    folder.mkdir(parents=True, exist_ok=True)
    takes = [Take(FRAMES, 10 * _place(text), pan=1.0 + number % 2) for number, text in enumerate(shots)]
    write_takes(folder / f"{name}.mp4", takes, SIZE)
    rows = [
        {
            "video": name, "frame": number * FRAMES + frame, "score": 0.9,
            "box": _box(letter), "face": _face(letter), "face_score": 0.9,
            "face_embedding": _vector(letter), "body_embedding": _vector(letter),
        }
        for number, text in enumerate(shots)
        for frame in range(0, FRAMES, EVERY)
        for letter in text
        if letter.isalpha()
    ]  # fmt: skip
    return folder / f"{name}.mp4", write_detections(folder / f"{name}.jsonl", rows)


def write_detections(path: Path, rows: Iterable[Json]) -> Path:
    """Write rows as JSON lines, with a header that says what made them."""
    header = {
        "format": "fabula-detections", "version": 1, "detector": "drawn truth with noise",
        "face_encoder": "drawn-colours", "body_encoder": "drawn-colours",
    }  # fmt: skip
    path.write_text("".join(f"{json.dumps(row)}\n" for row in (header, *rows)), encoding="utf-8")
    return path


def _place(text: str) -> int:
    return int("".join(char for char in text if char.isdigit()))


def _box(letter: str) -> list[float]:
    left = 10.0 + 60 * (ord(letter) - ord("A"))
    return [left, 60.0, left + 50, 220.0]


def _face(letter: str) -> list[float]:
    left, top, right, _ = _box(letter)
    return [left + 15, top + 5, right - 15, top + 30]


def _vector(letter: str) -> list[float]:
    return [float(letter == other) for other in "ABCDEFGH"]
