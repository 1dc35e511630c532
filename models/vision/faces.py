"""Faces: found by SCRFD, one chosen, brought into position; encoded by ArcFace, AdaFace or FaceNet."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from .networks import OnnxNetwork, loaded_card, open_session, unit_rows
from .store import vector_key
from .types import Box, Card, Rows, cut, identity_of
from .weights import Place, Source, fetch_file, missing, needed, told

if TYPE_CHECKING:
    from PIL.Image import Image

SOURCE = Source(
    "DIAMONIK7777/antelopev2", file="scrfd_10g_bnkps.onnx",
    sha256="5838f7fe053675b1c7a08b633df49e7af5495cee0493c7dcf6697200b85b5b91",
)  # fmt: skip
"""A copy on the Hub of a file of insightface's pack antelopev2; its hash is that of the pack's own."""
SIZE = 640
THRESHOLDS = (0.45, 0.35, 0.25, 0.15)
"""Least scores, tried in turn until a face is found: those of the public code."""
SUPPRESSION = 0.4
CARD = Card(
    "faces-scrfd-10g", SOURCE.repo, SOURCE.sha256,
    f"BGR, longer side {SIZE}, padded to {SIZE} x {SIZE}, mean 127.5, std 128", 0, 0.0,
    "non-commercial research",
)  # fmt: skip
Pixels = NDArray[Any]
Choice = Literal["most confident", "largest"]
_REMEMBERED = 2048  # pictures whose faces are kept, so that several encoders of one crop look once


@dataclass(frozen=True)
class Face:
    """A face in a picture.

    Attributes:
        box: where it is.
        points: shape (5, 2): left eye, right eye, nose, left and right corner of the mouth, as one sees them.
    """

    box: Box
    points: Rows


Prepare: TypeAlias = "Callable[[Image, Face], Pixels | None]"
"""From a picture and its face to what a network takes; None where nothing can be made of it."""


@dataclass(frozen=True)
class Position:
    """Where the five points of a face are to be in the square that an encoder sees.

    Attributes:
        points: shape (5, 2), in pixels.
        side: pixels a side of the square.
        border: BGR of what lies outside the picture.
        robust: whether outliers among the points are left out (least median of squares), or all count alike.
    """

    points: tuple[tuple[float, float], ...]
    side: int = 112
    border: tuple[int, int, int] = (0, 0, 0)
    robust: bool = False


ARCFACE = Position(
    ((38.2946, 51.6963), (73.5318, 51.5014), (56.0252, 71.7366), (41.5493, 92.3655), (70.7299, 92.2041))
)
"""The position that encoders of the ArcFace family were trained on."""
_FFHQ = ((192.98138, 239.94708), (318.90277, 240.1936), (256.63416, 314.01935), (201.26117, 371.41043),
         (313.08905, 371.15118))  # fmt: skip
FFHQ = Position(tuple((x * 112 / 512, y * 112 / 512) for x, y in _FFHQ), 112, (135, 133, 132), True)
"""The position of facexlib, in which the face is smaller."""


class FaceFinder:
    """A detector of faces.

    Args:
        card: what it is.
        place: where it runs.
        model: SCRFD of insightface.
        thresholds: least scores, tried in turn until a face is found.
    """

    def __init__(self, card: Card, place: Place, model: Any, thresholds: tuple[float, ...]) -> None:  # noqa: ANN401 - the library's own
        self.card, self.place = card, place
        self._model, self._thresholds = model, thresholds
        self._known: dict[bytes, tuple[Face, ...]] = {}

    @property
    def identity(self) -> str:
        """What its results depend on."""
        plain = identity_of(self.card, self.place.dtype, self.place.device)
        return f"{plain}/{','.join(f'{least:g}' for least in self._thresholds)}"

    def detect(self, images: "Sequence[Image]") -> list[tuple[Box, ...]]:
        """Return the boxes of the faces of each picture, highest score first."""
        return [tuple(face.box for face in faces) for faces in self.faces(images)]

    def faces(self, images: "Sequence[Image]") -> list[tuple[Face, ...]]:
        """Return the faces of each picture, highest score first."""
        return [self._remembered(image) for image in images]

    def _remembered(self, image: "Image") -> tuple[Face, ...]:
        key = vector_key("", image)
        if key not in self._known:
            if len(self._known) >= _REMEMBERED:
                del self._known[next(iter(self._known))]
            self._known[key] = self._find(image)
        return self._known[key]

    def _find(self, image: "Image") -> tuple[Face, ...]:
        if min(image.size) * SIZE < max(image.size):
            return ()  # less than a pixel would be left of its shorter side
        # Suppression goes by falling score, so what is found above a threshold is the same at a lower one.
        rows, points = self._model.detect(bgr(image), max_num=0, det_thresh=min(self._thresholds))
        for least in self._thresholds:
            found = [
                Face(Box(left, top, right, bottom, score, "face").within(*image.size), points[index])
                for index, (left, top, right, bottom, score) in enumerate(rows.tolist())
                if score >= np.float32(least)
            ]
            if found:
                return tuple(face for face in found if face.box.area > 0)
        return ()


def load_faces(
    place: Place, local: Path | None = None, thresholds: tuple[float, ...] = THRESHOLDS
) -> FaceFinder:
    """Return the detector of faces; the same one for the same arguments, with what it remembers.

    Args:
        place: where it runs.
        local: the ONNX file; None for the published one.
        thresholds: least scores, tried in turn until a face is found.

    Raises:
        MissingRequirement: a library or the weights are missing, or they are those of another model.
            ConfigError: it does not run there.
    """
    return _load(place, local, tuple(thresholds))


@lru_cache(maxsize=4)
def _load(place: Place, local: Path | None, thresholds: tuple[float, ...]) -> FaceFinder:
    try:
        from insightface.model_zoo.scrfd import SCRFD
    except ImportError as error:
        raise missing("insightface") from error
    from .networks import loaded_card

    source = SOURCE if local is None else replace(SOURCE, sha256="")
    path = fetch_file(source, local)
    session = open_session(path, source, place)

    def make() -> Any:  # noqa: ANN401 - the library's own
        model = SCRFD(model_file=str(path), session=session)
        if not model.use_kps:
            raise ValueError("a detector that gives no points of faces")
        model.prepare(0, input_size=(SIZE, SIZE), nms_thresh=SUPPRESSION)
        return model

    return FaceFinder(loaded_card(CARD, source, local), place, told(source, path, make), thresholds)


def choose_face(faces: Sequence[Face], choice: Choice) -> Face | None:
    """Return the face that is meant; None where there is none. Equal ones: the better, then the left one."""
    if choice == "largest":
        return min(faces, key=lambda face: (-face.box.area, -face.box.score, face.box.left), default=None)
    return min(faces, key=lambda face: (-face.box.score, face.box.left, face.box.top), default=None)


def positioned(image: "Image", face: Face, position: Position) -> Pixels | None:
    """Return the face turned, scaled and moved into a position: BGR, shape (side, side, 3).

    Returns:
        None where the five points lie in one place, so that there is nothing to go by.
    """
    import cv2

    target = np.array(position.points, dtype=np.float64)
    points = np.asarray(face.points, dtype=np.float64)
    if position.robust:
        move = cv2.estimateAffinePartial2D(points, target, method=cv2.LMEDS)[0]
    else:
        move = similarity(points, target)
    if move is None or not np.isfinite(move).all():
        return None
    square = (position.side, position.side)
    return np.asarray(
        cv2.warpAffine(bgr(image), move, square, borderMode=cv2.BORDER_CONSTANT, borderValue=position.border),
        dtype=np.uint8,
    )


def similarity(points: NDArray[np.float64], target: NDArray[np.float64]) -> NDArray[np.float64] | None:
    """Return the turn, scale and move that brings points closest to others (least squares, Umeyama).

    Returns:
        Shape (2, 3); None where all points lie in one place.
    """
    centre, goal = points.mean(axis=0), target.mean(axis=0)
    spread = float(((points - centre) ** 2).sum())
    if not spread > 0:
        return None
    left, sizes, right = np.linalg.svd((target - goal).T @ (points - centre))
    signs = np.array([1.0, np.sign(np.linalg.det(left) * np.linalg.det(right)) or 1.0])
    turn = (left * signs) @ right * (float((sizes * signs).sum()) / spread)
    return np.column_stack([turn, goal - turn @ centre])


def bgr(image: "Image") -> Pixels:
    """Return a picture as OpenCV has it: shape (height, width, 3), blue first."""
    plain = image if image.mode == "RGB" else image.convert("RGB")
    return np.ascontiguousarray(np.asarray(plain, dtype=np.uint8)[:, :, ::-1])


Definition = Literal["paper", "code"]
WIDTH = 512

ARCFACE_SOURCE = Source(
    "DIAMONIK7777/antelopev2", file="glintr100.onnx",
    sha256="4ab1d6435d639628a6f3e5008dd4f929edf4c4124b1a7169e1048f9fef534cdf",
)  # fmt: skip
"""A copy on the Hub of a file of insightface's pack antelopev2; its hash is that of the pack's own."""
ADAFACE_SOURCE = Source("github.com/mk-minchul/AdaFace", file="adaface_ir101_webface12m as ONNX")
FACENET_SOURCE = Source("github.com/timesler/facenet-pytorch", file="20180402-114759-vggface2 as ONNX")
"""These two are published for torch only: docs/vision.md says how to write the ONNX files."""

ARCFACE_CARD = Card(
    "arcface-r100-glint360k", ARCFACE_SOURCE.repo, ARCFACE_SOURCE.sha256,
    "face in ArcFace's position, 112 x 112, RGB, mean 127.5, std 127.5", WIDTH, 1e-4,
    "non-commercial research",
)  # fmt: skip


@dataclass(frozen=True)
class FaceEncoder:
    """An encoder of the face in a picture.

    Attributes:
        card: what it is.
        place: where it runs.
        finder: finds the faces.
        choice: which of several is meant.
        prepare: from a picture and its face to what the network takes; None where nothing can be made of it.
        forward: from what was prepared, stacked, to shape (images, dimensions).
    """

    card: Card
    place: Place
    finder: FaceFinder
    choice: Choice
    prepare: Prepare
    forward: Callable[[Any], Rows]

    @property
    def identity(self) -> str:
        """What its results depend on: also the detector, and which face is meant."""
        plain = identity_of(self.card, self.place.dtype, self.place.device)
        return f"{plain}/{self.choice}/{self.finder.identity}"

    def encode(self, images: "Sequence[Image]") -> Rows:
        """Return unit vectors, shape (images, dimensions); ``nan`` for a picture without a face."""
        rows = np.full((len(images), self.card.dimensions), np.nan, dtype=np.float32)
        prepared = {}
        for index, (image, faces) in enumerate(zip(images, self.finder.faces(images), strict=True)):
            face = choose_face(faces, self.choice)
            pixels = None if face is None else self.prepare(image, face)
            if pixels is not None:
                prepared[index] = pixels
        if prepared:
            rows[list(prepared)] = unit_rows(self.forward(np.stack(list(prepared.values()))))
        return rows


def load_arcface(
    place: Place,
    local: Path | None = None,
    detector: Path | None = None,
    choice: Choice = "most confident",
) -> FaceEncoder:
    """Return ArcFace (ResNet-100, Glint360K).

    Args:
        place: where it runs.
        local: the ONNX file; None for the published one.
        detector: the ONNX file of the detector of faces; None for the published one.
        choice: which of several faces is meant.

    Raises:
        MissingRequirement: a library or the weights are missing, or they are those of another model.
            ConfigError: it does not run there.
    """
    try:
        from insightface.model_zoo.arcface_onnx import ArcFaceONNX
    except ImportError as error:
        raise missing("insightface") from error
    finder = load_faces(place, detector)
    source = ARCFACE_SOURCE if local is None else replace(ARCFACE_SOURCE, sha256="")
    path = fetch_file(source, local)
    session = open_session(path, source, place)
    network = OnnxNetwork(session, source)
    network.check_input(ARCFACE.side)
    model = told(source, path, lambda: ArcFaceONNX(model_file=str(path), session=session))
    at_once = not isinstance(session.get_inputs()[0].shape[0], int)

    def forward(faces: Any) -> Rows:  # noqa: ANN401 - bytes of pictures
        groups = [list(faces)] if at_once else [[face] for face in faces]
        return np.concatenate([np.asarray(model.get_feat(group), dtype=np.float32) for group in groups])

    card = replace(loaded_card(ARCFACE_CARD, source, local), dimensions=network.dimensions(ARCFACE.side))
    return FaceEncoder(
        card, place, finder, choice, lambda image, face: positioned(image, face, ARCFACE), forward
    )


def scaled(face: Pixels | None, mean: float, std: float) -> Pixels | None:
    """Return a picture of bytes as a network takes it: shape (3, height, width), float32, normalised."""
    if face is None:
        return None
    values = (face.astype(np.float32) - np.float32(mean)) / np.float32(std)
    return np.ascontiguousarray(values.transpose(2, 0, 1))


def in_position(position: Position, mean: float, std: float) -> Prepare:
    """Return what brings a face into a position and normalises it: BGR."""
    return lambda image, face: scaled(positioned(image, face, position), mean, std)


def stretched(image: "Image", face: Face) -> Pixels | None:
    """Return the box of a face, stretched to 160 x 160 and normalised: RGB."""
    part = cut(image, face.box)
    if part is None:
        return None
    from PIL import Image as Pillow

    square = part.resize((160, 160), Pillow.Resampling.BILINEAR)
    return scaled(bgr(square)[:, :, ::-1], 127.5, 128.0)


class OwnWeights(NamedTuple):
    """An encoder whose weights a person brings: source, card, pixels a side, and what the network sees."""

    source: Source
    card: Card
    side: int
    prepare: Prepare


def _own(source: Source, name: str, sees: str, rights: str, side: int, prepare: Prepare) -> OwnWeights:
    return OwnWeights(source, Card(name, source.repo, "", sees, WIDTH, 1e-4, rights), side, prepare)


ADAFACE: Mapping[Definition, OwnWeights] = {
    "paper": _own(
        ADAFACE_SOURCE, "adaface-ir101-webface12m-paper",
        "face in ArcFace's position, 112 x 112, BGR, mean 0.5, std 0.5", "see the model's page",
        ARCFACE.side, in_position(ARCFACE, 127.5, 127.5),
    ),
    "code": _own(
        ADAFACE_SOURCE, "adaface-ir101-webface12m-code",
        "face in facexlib's position, 112 x 112, BGR, mean 0.5, std 0.5", "see the model's page",
        FFHQ.side, in_position(FFHQ, 127.5, 127.5),
    ),
}  # fmt: skip
"""AdaFace (IR-101, WebFace12M)."""
FACENET: Mapping[Definition, OwnWeights] = {
    "paper": _own(
        FACENET_SOURCE, "facenet-vggface2-paper",
        "the face's box stretched to 160 x 160, bilinear, RGB, mean 127.5, std 128", "MIT", 160, stretched,
    ),
    "code": _own(
        FACENET_SOURCE, "facenet-vggface2-code", "face in facexlib's position, 112 x 112, BGR in [0, 1]",
        "MIT", FFHQ.side, in_position(FFHQ, 0.0, 255.0),
    ),
}  # fmt: skip
"""FaceNet (InceptionResnetV1, VGGFace2)."""


def load_own(
    models: Mapping[Definition, OwnWeights],
    place: Place,
    local: Path | None = None,
    detector: Path | None = None,
    choice: Choice = "most confident",
    definition: Definition = "paper",
) -> FaceEncoder:
    """Return an encoder whose weights a person brings.

    Args:
        models: what each definition of it is.
        place: where it runs.
        local: the ONNX file; there is no published one.
        detector: the ONNX file of the detector of faces; None for the published one.
        choice: which of several faces is meant.
        definition: what the network sees.

    Raises:
        MissingRequirement: a library or the weights are missing, or they are those of another model.
            ConfigError: it does not run there.
    """
    source, card, side, prepare = models[definition]
    if local is None:
        raise needed(source, "no file named in the settings")
    finder = load_faces(place, detector)
    session = open_session(fetch_file(source, local), source, place)
    network = OnnxNetwork(session, source)
    network.check_input(side)
    loaded = replace(loaded_card(card, source, local), dimensions=network.dimensions(side))
    return FaceEncoder(loaded, place, finder, choice, prepare, network.values)


load_adaface = partial(load_own, ADAFACE)
load_facenet = partial(load_own, FACENET)
