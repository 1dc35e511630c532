"""The store of vectors: every picture or crop is encoded once per encoder, whoever asks and whenever.

A row is known by the pixels of the picture and by what the encoder's result depends on. The store is a cache
in the user's cache folder: what it lost is encoded again. Above its size limit the rows that were not used
for longest go. Numbers come out bit for bit as they went in. Machines may share rows.

Rows of vectors that several machines share: one small file each, in a folder or bucket that fsspec reads.

A file holds the SHA-256 of a row and the row, so that one that is half written, or that something damaged, is
a row that is not there.

The store of boxes: what a text describes is looked for once in a picture, whoever asks and whenever.

They lie in the store of vectors, known by the picture's pixels, the text, and what the detector's result
depends on. So another judge, another threshold of similarity, or a method with equal frames looks at nothing
anew.
"""

import hashlib
import sqlite3
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Optional, Protocol, TypeVar, cast, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from ...schemas.paths import VECTORS, SharedFiles

if TYPE_CHECKING:
    from PIL.Image import Image


# -- What detectors and encoders take and give, whatever library is behind them; cutting out a box

Rows = NDArray[np.float32]
Masks = NDArray[np.bool_]
"""A mask, shape (height, width): true where a thing is."""
Device = Literal["cpu", "cuda", "mps"]
Dtype = Literal["float32", "float16", "bfloat16"]


@dataclass(frozen=True, slots=True)
class Box:
    """A rectangle in a picture, in pixels from the upper left corner."""

    left: float  # smallest x; ``right`` is beyond the largest
    top: float  # smallest y; ``bottom`` is beyond the largest
    right: float  # see ``left``
    bottom: float  # see ``top``
    score: float = 1.0  # of the detector, 0 to 1
    label: str = ""  # what was found

    @property
    def area(self) -> float:
        """Width times height; 0 where there is nothing in it."""
        return max(0.0, self.right - self.left) * max(0.0, self.bottom - self.top)

    def within(self, width: int, height: int) -> "Box":
        """Return the part of the box that lies in a picture of a size."""
        return Box(
            max(0.0, self.left), max(0.0, self.top), min(float(width), self.right),
            min(float(height), self.bottom), self.score, self.label,
        )  # fmt: skip

    def overlap(self, other: "Box") -> float:
        """Return intersection over union with another box, 0 to 1."""
        width = min(self.right, other.right) - max(self.left, other.left)
        height = min(self.bottom, other.bottom) - max(self.top, other.top)
        shared = max(0.0, width) * max(0.0, height)
        union = self.area + other.area - shared
        return shared / union if union > 0 else 0.0


@dataclass(frozen=True, slots=True)
class Card:
    """What a model is, as far as its results depend on it."""

    name: str  # ours, such as ``clip-vit-l-14``
    source: str  # where the weights come from: an id on the Hub, or an address
    revision: str  # the pinned revision, or the hash of the file
    input: str  # what a picture becomes: size, how it is brought to it, normalisation
    dimensions: int  # length of a vector; 0 for a detector
    tolerance: float  # most by which a component changes with the size and the order of batches
    licence: str  # of the weights, in short


@runtime_checkable
class VisionModel(Protocol):
    """What every model has."""

    @property
    def card(self) -> Card: ...

    @property
    def identity(self) -> str:
        """What its results depend on: name, revision, dtype and class of device."""
        ...


@runtime_checkable
class Encoder(VisionModel, Protocol):
    """Makes a unit vector of a picture."""

    def encode(self, images: "Sequence[Image]") -> Rows:
        """Return shape (images, dimensions), rows of length 1; ``nan`` where there is nothing to encode."""
        ...


@dataclass(frozen=True, slots=True)
class TextRows:
    """What an encoder made of texts."""

    rows: Rows  # shape (texts, dimensions), rows of length 1, in the space of the vectors of pictures
    cut: tuple[int, ...]  # how many tokens of each text did not fit and were left out


@runtime_checkable
class TextEncoder(Encoder, Protocol):
    """Makes unit vectors of pictures and of texts, in one space."""

    def encode_texts(self, texts: Sequence[str]) -> TextRows:
        """Return the vectors of texts, and what did not fit."""
        ...


@runtime_checkable
class Detector(VisionModel, Protocol):
    """Finds things in a picture."""

    def detect(self, images: "Sequence[Image]") -> list[tuple[Box, ...]]:
        """Return the boxes of each picture, highest score first."""
        ...


@runtime_checkable
class Grounder(VisionModel, Protocol):
    """Finds what a text describes in a picture, each text by itself."""

    def ground(
        self, images: "Sequence[Image]", texts: Sequence[Sequence[str]], batch: int = 1
    ) -> list[list[tuple[Box, ...]]]:
        """Return the boxes of each text in its picture, highest score first.

        Args:
            images: the pictures.
            texts: of each picture, what is looked for.
            batch: pairs of a picture and a text that are looked at together.
        """
        ...


@runtime_checkable
class Predictor(VisionModel, Protocol):
    """Makes numbers of a picture that are no unit vector: a score, or class probabilities."""

    def predict(self, images: "Sequence[Image]") -> Rows:
        """Return shape (images, values)."""
        ...


@runtime_checkable
class Flow(VisionModel, Protocol):
    """Finds out where each pixel of a picture is in another one."""

    def flows(self, pictures: "Sequence[tuple[Image, Image]]") -> Rows:
        """Return shape (pairs, 2, height, width): by how many pixels each moved right, and down.

        Raises:
            ValueError: the pictures are not all of one size.
        """
        ...


@dataclass(frozen=True, slots=True)
class Points:
    """Points that tell a segmenter what is meant, as shares of width and height from the upper left."""

    inside: tuple[tuple[float, float], ...]  # where the thing is
    outside: tuple[tuple[float, float], ...] = ()  # where it is not


@runtime_checkable
class Segmenter(VisionModel, Protocol):
    """Tells which pixels of a picture belong to a thing."""

    def segment(self, images: "Sequence[Image]", points: Sequence[Points]) -> list[Masks]:
        """Return the mask of one thing in each picture, as large as the picture."""
        ...


def identity_of(card: Card, dtype: Dtype, device: Device) -> str:
    """Return what results of a model depend on."""
    return f"{card.name}@{card.revision}/{dtype}/{device}"


def suppressed(boxes: Sequence[Box], most: float) -> tuple[Box, ...]:
    """Return boxes without those that overlap a better one by more than ``most`` (non-maximum suppression).

    The order is by score, then by place, so that it never depends on the order given.
    """
    kept: list[Box] = []
    for box in sorted(boxes, key=lambda box: (-box.score, box.left, box.top, box.right, box.bottom)):
        if all(box.overlap(other) <= most for other in kept):
            kept.append(box)
    return tuple(kept)


Definition = Literal["clamped", "trimmed"]
TRIM = 0.01
"""Share of width and height that ``trimmed`` takes off each side."""


def cut(image: "Image", box: Box, definition: Definition = "clamped") -> "Image | None":
    """Return the part of a picture that lies in a box, in RGB; None where no pixel does."""
    if definition == "trimmed":
        across, down = TRIM * (box.right - box.left), TRIM * (box.bottom - box.top)
        box = Box(box.left + across, box.top + down, box.right - across, box.bottom - down)
    inside = box.within(image.width, image.height)
    edges = (int(inside.left), int(inside.top), int(inside.right), int(inside.bottom))
    if edges[2] <= edges[0] or edges[3] <= edges[1]:
        return None
    part = image.crop(edges)
    return part if part.mode == "RGB" else part.convert("RGB")


# --

_DIGEST = 32


class SharedRows:
    """Rows in shared files, by key."""

    def __init__(self, files: SharedFiles) -> None:
        self._files = files

    @classmethod
    def of_user(cls) -> Optional["SharedRows"]:
        """Return the rows where ``FABULA_VECTORS`` says; None where it is not set."""
        files = SharedFiles.named_by(VECTORS)
        return None if files is None else cls(files)

    def read(self, keys: Sequence[bytes]) -> dict[bytes, Rows]:
        rows = {}
        for name, content in self._files.read([key.hex() for key in keys]).items():
            digest, row = content[:_DIGEST], content[_DIGEST:]
            if row and hashlib.sha256(row).digest() == digest:
                rows[bytes.fromhex(name)] = np.frombuffer(row, dtype="<f4")
        return rows

    def write(self, rows: Mapping[bytes, Rows]) -> None:
        """Put rows there; equal ones may be written by several machines at once."""
        contents = {}
        for key, row in rows.items():
            content = row.astype("<f4").tobytes()
            contents[key.hex()] = hashlib.sha256(content).digest() + content
        self._files.write(contents)


T = TypeVar("T")
FILE = "vectors.sqlite"
LIMIT = 2_000_000_000
"""Bytes of vectors that are kept unless another limit is given."""
_KEEP_AFTER = 0.9  # how full the store is after rows went, so that they do not go one by one
_MOST_AT_ONCE = 500
_SCHEMA = """
CREATE TABLE IF NOT EXISTS vectors (key BLOB PRIMARY KEY, used INTEGER NOT NULL, row BLOB NOT NULL);
CREATE INDEX IF NOT EXISTS by_use ON vectors (used);
"""


@dataclass(slots=True)
class Counts:
    """What a store did: rows found, rows that had to be made."""

    found: int = 0
    made: int = 0


class VectorStore:
    """A store in a file, or in memory.

    Args:
        folder: where its file lies; None for one that lives as long as the object.
        limit: bytes of vectors to keep.
        shared: rows that other machines have made, and that get those which are made here; None for none.

    Attributes:
        counts: how many rows were found and made since it was opened.
    """

    def __init__(
        self, folder: Path | None = None, limit: int = LIMIT, shared: SharedRows | None = None
    ) -> None:
        if folder is not None:
            folder.mkdir(parents=True, exist_ok=True)
        where = ":memory:" if folder is None else str(folder / FILE)
        self._limit, self._shared = limit, shared
        self._lock = threading.Lock()
        self._file = sqlite3.connect(where, timeout=60, check_same_thread=False)
        self._file.executescript(f"PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL; {_SCHEMA}")
        self.counts = Counts()
        self._size = self.size()

    @classmethod
    def of_user(cls, limit: int = LIMIT) -> "VectorStore":
        """Return the store in the user's cache folder, with the shared rows that the environment names."""
        from platformdirs import user_cache_path

        return cls(user_cache_path("fabula") / "vectors", limit, SharedRows.of_user())

    def __enter__(self) -> "VectorStore":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._file.close()

    def rows(self, model: Encoder | Predictor, images: "Sequence[Image]", batch: int = 16) -> Rows:
        """Return the rows of pictures, from the store where it has them; each picture is encoded once.

        ``images``: RGB pictures; equal ones are encoded once.

        Returns:
            Shape (images, values), float32.
        """
        keys = [vector_key(model.identity, image) for image in images]
        return self._rows(keys, images, model.encode if isinstance(model, Encoder) else model.predict, batch)

    def kept(
        self, keys: Sequence[bytes], things: Sequence[T], make: Callable[[Sequence[T]], Rows], batch: int = 16
    ) -> Rows:
        """Return a row for each thing, from the store where it has them.

        Returns:
            Shape (things, values), float32.
        """
        return self._rows(keys, things, make, batch)

    def texts(self, model: TextEncoder, texts: Sequence[str], batch: int = 16) -> TextRows:
        """Return the rows of texts and what was cut off, from the store where it has them."""

        def make(some: Sequence[str]) -> Rows:
            encoded = model.encode_texts(some)
            return np.concatenate([encoded.rows, np.array(encoded.cut, dtype=np.float32)[:, None]], axis=1)

        rows = self._rows([text_key(model.identity, text) for text in texts], texts, make, batch)
        return TextRows(rows[:, :-1], tuple(int(cut) for cut in rows[:, -1:].ravel()))

    def _rows(
        self, keys: Sequence[bytes], things: Sequence[T], make: Callable[[Sequence[T]], Rows], batch: int
    ) -> Rows:
        known = self._read(sorted(set(keys)))
        missing = [key for key in sorted(set(keys)) if key not in known]
        if self._shared is not None and missing:
            found = self._shared.read(missing)
            self._write(found)
            known |= found
        self.counts.found += len(known)
        todo = {key: thing for key, thing in zip(keys, things, strict=True) if key not in known}
        self.counts.made += len(todo)
        waiting = list(todo)
        for start in range(0, len(waiting), batch):
            some = waiting[start : start + batch]
            made = make([todo[key] for key in some]).astype(np.float32, copy=False)
            fresh = dict(zip(some, made, strict=True))
            self._write(fresh)
            if self._shared is not None:
                self._shared.write(fresh)
            known |= fresh
        width = len(next(iter(known.values()))) if known else 0
        rows = [known[key] for key in keys]
        return np.stack(rows) if rows else np.empty((0, width), dtype=np.float32)

    def size(self) -> int:
        """Return the bytes of all vectors."""
        with self._lock:
            (total,) = self._file.execute("SELECT COALESCE(SUM(LENGTH(row)), 0) FROM vectors").fetchone()
        return int(total)

    def tidy(self) -> int:
        """Let the rows go that were not used for longest, if there are too many; return how many went."""
        total, gone = self.size(), 0
        with self._lock, self._file:
            oldest = self._file.execute("SELECT key, LENGTH(row) FROM vectors ORDER BY used, key").fetchall()
            enough = self._limit if total <= self._limit else self._limit * _KEEP_AFTER
            for key, length in oldest:
                if total <= enough:
                    break
                self._file.execute("DELETE FROM vectors WHERE key = ?", (key,))
                total, gone = total - length, gone + 1
        self._size = total
        return gone

    def _read(self, keys: Sequence[bytes]) -> dict[bytes, Rows]:
        rows: dict[bytes, Rows] = {}
        with self._lock, self._file:
            turn = self._turn()
            for start in range(0, len(keys), _MOST_AT_ONCE):
                some = keys[start : start + _MOST_AT_ONCE]
                marks = ",".join("?" * len(some))
                lines = self._file.execute(f"SELECT key, row FROM vectors WHERE key IN ({marks})", some)
                rows |= {bytes(key): np.frombuffer(row, dtype="<f4") for key, row in lines.fetchall()}
            self._file.executemany("UPDATE vectors SET used = ? WHERE key = ?", [(turn, key) for key in rows])
        return rows

    def _write(self, rows: Mapping[bytes, Rows]) -> None:
        with self._lock, self._file:
            turn = self._turn()
            self._file.executemany(
                "INSERT OR IGNORE INTO vectors VALUES (?, ?, ?)",
                [(key, turn, row.astype("<f4").tobytes()) for key, row in rows.items()],
            )
        self._size += sum(row.nbytes for row in rows.values())
        if self._size > self._limit:
            self.tidy()

    def _turn(self) -> int:
        """Return a number that grows with every use: no clock is read."""
        (last,) = self._file.execute("SELECT COALESCE(MAX(used), 0) FROM vectors").fetchone()
        return int(last) + 1


def vector_key(identity: str, image: "Image") -> bytes:
    """Return what a row is known by: 32 bytes of the model's identity and the picture's pixels."""
    plain = image if image.mode == "RGB" else image.convert("RGB")
    head = f"{identity}\0{plain.width}x{plain.height}\0".encode()
    return hashlib.sha256(head + plain.tobytes()).digest()


def group_key(identity: str, pictures: Sequence[bytes]) -> bytes:
    """Return what a row of several pictures is known by, given :func:`vector_key` of each, in their order."""
    return hashlib.sha256(f"{identity}\0group\0".encode() + b"".join(pictures)).digest()


def text_key(identity: str, text: str) -> bytes:
    """Return what the row of a text is known by; never that of a picture."""
    return hashlib.sha256(f"{identity}\0text\0{text}".encode("utf-8", "surrogatepass")).digest()


_NUMBERS = 5  # left, top, right, bottom, score


class GroundingStore(VectorStore):
    """A store of vectors that keeps boxes, too."""

    @classmethod
    def of_user(cls, limit: int = LIMIT) -> "GroundingStore":
        """Return the store in the user's cache folder."""
        return cast("GroundingStore", super().of_user(limit))

    def __enter__(self) -> "GroundingStore":
        return self

    def boxes(
        self, model: Grounder, images: "Sequence[Image]", texts: Sequence[Sequence[str]], batch: int = 1
    ) -> list[list[tuple[Box, ...]]]:
        """Return the boxes of each text in its picture, from the store where it has them.

        The highest score is first.

        ``images``: RGB pictures.
        """
        seen = [vector_key(model.identity, image) for image in images]
        keys = [[_key(pixels, text) for text in some] for pixels, some in zip(seen, texts, strict=True)]
        known = self._read(sorted({key for row in keys for key in row}))
        self.counts.found += len(known)
        todo: list[tuple[int, list[int]]] = []
        asked = set(known)
        for index, row in enumerate(keys):
            lacking = [number for number, key in enumerate(row) if key not in asked]
            lacking = [number for number in lacking if row.index(row[number]) == number]
            asked.update(row[number] for number in lacking)
            if lacking:
                todo.append((index, lacking))
        if todo:
            made = model.ground(
                [images[index] for index, _ in todo],
                [[texts[index][number] for number in lacking] for index, lacking in todo],
                batch,
            )
            fresh = {
                keys[index][number]: _row(boxes)
                for (index, lacking), rows in zip(todo, made, strict=True)
                for number, boxes in zip(lacking, rows, strict=True)
            }
            self.counts.made += len(fresh)
            self._write(fresh)
            known |= fresh
        return [
            [_boxes(known[key], text) for key, text in zip(row, some, strict=True)]
            for row, some in zip(keys, texts, strict=True)
        ]


def _key(pixels: bytes, text: str) -> bytes:
    return hashlib.sha256(pixels + b"\0boxes\0" + text.encode("utf-8", "surrogatepass")).digest()


def _row(boxes: Sequence[Box]) -> Rows:
    """Return boxes as a row; each number takes the place of two, so that none is rounded."""
    numbers = [[box.left, box.top, box.right, box.bottom, box.score] for box in boxes]
    return np.array(numbers, dtype="<f8").reshape(-1).view("<f4")


def _boxes(row: Rows, text: str) -> tuple[Box, ...]:
    numbers = np.ascontiguousarray(row, dtype="<f4").view("<f8").reshape(-1, _NUMBERS)
    return tuple(
        Box(left, top, right, bottom, score, text) for left, top, right, bottom, score in numbers.tolist()
    )
