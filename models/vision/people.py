"""People found by YOLO11 through ultralytics, which is under AGPL-3.0: an extra, behind a protocol."""

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...errors import ConfigError
from .devices import Place, missing
from .networks import loaded_card
from .types import Box, Card, identity_of
from .weights import Source, fetch_file, needed, told

if TYPE_CHECKING:
    from PIL.Image import Image

SOURCE = Source(
    "Ultralytics/YOLO11", file="yolo11n.pt",
    sha256="0ebbc80d4a7680d14987a577cd21342b65ecfd94632bd9a8da63ae6417644ee1",
)  # fmt: skip
SIZE = 640
CARD = Card(
    "people-yolo11n", SOURCE.repo, SOURCE.sha256,
    f"longer side {SIZE}, padded to {SIZE} x {SIZE}, in [0, 1]", 0, 1e-2, "AGPL-3.0",
)  # fmt: skip
_PERSON = "person"
_QUIET = {"YOLO_OFFLINE": "1", "YOLO_AUTOINSTALL": "0", "YOLO_VERBOSE": "0"}


class PeopleDetector:
    """A detector of people.

    Args:
        card: what it is.
        place: where it runs.
        model: of ultralytics.
        limits: least score, most overlap with a better box, pixels a side.
    """

    def __init__(self, card: Card, place: Place, model: Any, limits: tuple[float, float, int]) -> None:  # noqa: ANN401 - the library's own
        self.card, self.place = card, place
        self._model, self._limits = model, limits
        self._person = next(number for number, name in model.names.items() if name == _PERSON)

    @property
    def identity(self) -> str:
        """What its results depend on."""
        plain = identity_of(self.card, self.place.dtype, self.place.device)
        return f"{plain}/{'/'.join(f'{limit:g}' for limit in self._limits)}"

    def detect(self, images: "Sequence[Image]") -> list[tuple[Box, ...]]:
        """Return the boxes of each picture, highest score first.

        Every picture is padded to a square, so that what is found in one does not depend on the others.
        """
        if not images:
            return []
        least, most, size = self._limits
        found = self._model.predict(
            [image.convert("RGB") for image in images], batch=len(images), classes=[self._person], conf=least,
            iou=most, imgsz=size, rect=False, device=self.place.device, verbose=False, save=False,
        )  # fmt: skip
        return [_boxes(one.boxes.data.tolist(), image.size) for one, image in zip(found, images, strict=True)]


def load_people(
    place: Place,
    local: Path | None = None,
    threshold: float = 0.25,
    suppression: float = 0.7,
    size: int = SIZE,
) -> PeopleDetector:
    """Return the detector.

    Args:
        place: where it runs, in float32.
        local: a file of the user's own, which is unpickled and so must be trusted; None for the published
            one, which is checked by its hash before that.
        threshold: least score.
        suppression: most overlap with a better box.
        size: pixels a side.

    Raises:
        MissingRequirement: a library or the weights are missing, or they are those of another model.
            ConfigError: it does not run there.
    """
    model_of = library()
    if place.checked().dtype != "float32":
        raise ConfigError(
            "dtype",
            expected="float32 for the detector of people",
            found=place.dtype,
            fix="set dtype to float32",
        )
    source = SOURCE if local is None else replace(SOURCE, sha256="")
    path = fetch_file(source, local)
    model = told(source, path, lambda: model_of(str(path), task="detect"))
    if _PERSON not in model.names.values():
        raise needed(source, f"a detector of {len(model.names)} kinds of things, people not among them")
    return PeopleDetector(loaded_card(CARD, source, local), place, model, (threshold, suppression, size))


def library() -> Any:  # noqa: ANN401 - the library's own
    """Return the class of ultralytics that loads a model.

    Raises:
        MissingRequirement: the library is not installed.
    """
    for key, value in _QUIET.items():  # read at import: nothing is sent, installed or printed
        os.environ.setdefault(key, value)
    from PIL import Image

    plain = Image.open
    try:
        from ultralytics import YOLO
    except ImportError as error:
        raise missing("ultralytics") from error
    finally:  # it replaces this function for the whole process by one that installs packages
        Image.open = plain
    return YOLO


def _boxes(rows: Sequence[Sequence[float]], size: tuple[int, int]) -> tuple[Box, ...]:
    boxes = [Box(row[0], row[1], row[2], row[3], row[4], _PERSON).within(*size) for row in rows]
    kept = [box for box in boxes if box.area > 0]
    return tuple(sorted(kept, key=lambda box: (-box.score, box.left, box.top, box.right, box.bottom)))
