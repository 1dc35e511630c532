"""Encoders of faces: ArcFace, AdaFace and FaceNet, on the face that SCRFD finds."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ...errors import needing
from .networks import OnnxNetwork, loaded_card, open_session, unit_rows
from .store import Box, Card, Rows, cut, identity_of, vector_key
from .weights import Place, Source, fetch_file, missing, told

if TYPE_CHECKING:
    from PIL.Image import Image


# -- Faces: found by SCRFD, one chosen, brought into position
#
# How SCRFD's graph is fed and read is that of the package insightface, which nothing here needs.

SOURCE = Source(
    "DIAMONIK7777/antelopev2", file="scrfd_10g_bnkps.onnx",
    sha256="5838f7fe053675b1c7a08b633df49e7af5495cee0493c7dcf6697200b85b5b91", size=17_000_000,
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
    box: Box  # where it is
    # shape (5, 2): left eye, right eye, nose, left and right corner of the mouth, as one sees them
    points: Rows


Prepare: TypeAlias = "Callable[[Image, Face], Pixels | None]"
"""From a picture and its face to what a network takes; None where nothing can be made of it."""


@dataclass(frozen=True)
class Position:
    """Where the five points of a face are to be in the square that an encoder sees."""

    points: tuple[tuple[float, float], ...]  # shape (5, 2), in pixels
    side: int = 112  # pixels a side of the square
    border: tuple[int, int, int] = (0, 0, 0)  # BGR of what lies outside the picture
    # whether outliers among the points are left out (least median of squares), or all count alike
    robust: bool = False


ARCFACE = Position(
    ((38.2946, 51.6963), (73.5318, 51.5014), (56.0252, 71.7366), (41.5493, 92.3655), (70.7299, 92.2041))
)
"""The position that encoders of the ArcFace family were trained on."""
_FFHQ = ((192.98138, 239.94708), (318.90277, 240.1936), (256.63416, 314.01935), (201.26117, 371.41043),
         (313.08905, 371.15118))  # fmt: skip
FFHQ = Position(tuple((x * 112 / 512, y * 112 / 512) for x, y in _FFHQ), 112, (135, 133, 132), True)
"""The position of facexlib, in which the face is smaller."""


Scanned: TypeAlias = tuple[Rows, Rows]
"""Boxes as left, top, right, bottom and score, shape (faces, 5), best first; points, shape (faces, 5, 2)."""
Scan: TypeAlias = Callable[[Pixels, float], Scanned]
"""From a picture, BGR, and the least score to its faces."""


@dataclass(frozen=True)
class Scrfd:
    """SCRFD's graph, from bytes of a picture to what it finds there.

    It looks at grids with cells of 8, 16 and 32 pixels and two anchors a cell (or five grids, to 128, and one
    anchor), and gives three outputs for each: scores; distances from an anchor to the four edges of its box;
    offsets of its five points. Distances and offsets are in cells.
    """

    session: Any  # of onnxruntime

    def __call__(self, picture: Pixels, least: float) -> Scanned:
        """Return the faces whose score is not below ``least``: BGR, shape (height, width, 3)."""
        import cv2

        height, width = picture.shape[:2]
        ratio = height / width
        fitted = (int(SIZE / ratio), SIZE) if ratio > 1 else (SIZE, int(SIZE * ratio))
        square = np.zeros((SIZE, SIZE, 3), dtype=np.uint8)
        square[: fitted[1], : fitted[0]] = cv2.resize(picture, fitted)
        boxes, points = self.candidates(square, least)
        scale = fitted[1] / height
        boxes[:, :4] /= scale
        points /= scale
        order = np.argsort(-boxes[:, 4], kind="stable")
        kept = order[_apart(boxes[order])]
        return boxes[kept], points[kept]

    def candidates(self, square: Pixels, least: float) -> Scanned:
        """Return what each anchor sees in a picture of the network's size, in its pixels, grid by grid."""
        pixels = ((square[:, :, ::-1].astype(np.float32) - 127.5) / 128).transpose(2, 0, 1)
        fed = {self.session.get_inputs()[0].name: np.ascontiguousarray(pixels[None])}
        outputs = self.session.run(None, fed)
        grids = len(outputs) // 3
        if len(outputs) not in (9, 15):
            raise ValueError("a detector that gives no points of faces")
        boxes, points = [], []
        for grid in range(grids):
            cell = 8 << grid
            cells = np.mgrid[: SIZE // cell, : SIZE // cell][::-1].reshape(2, -1).T * cell
            anchors = np.repeat(cells.astype(np.float32), 2 if grids == 3 else 1, axis=0)
            scores, edges, offsets = (
                outputs[grid + part * grids].reshape(len(anchors), values)
                for part, values in enumerate((1, 4, 10))
            )
            found = scores[:, 0] >= least
            anchors, edges, offsets = anchors[found], edges[found] * cell, offsets[found] * cell
            boxes.append(np.hstack([anchors - edges[:, :2], anchors + edges[:, 2:], scores[found]]))
            points.append(anchors[:, None] + offsets.reshape(-1, 5, 2))
        return np.vstack(boxes), np.vstack(points)


def _apart(boxes: Rows) -> list[int]:
    """Return which boxes stay, best first, as none shares more than a limit with a better one.

    As SCRFD's authors count, a box holds the pixels of all four edges.
    """
    left, top, right, bottom = boxes[:, :4].T
    areas = (right - left + 1) * (bottom - top + 1)
    rest, kept = np.arange(len(boxes)), list[int]()
    while rest.size:
        best, rest = rest[0], rest[1:]
        kept.append(int(best))
        width = np.minimum(right[best], right[rest]) - np.maximum(left[best], left[rest]) + 1
        height = np.minimum(bottom[best], bottom[rest]) - np.maximum(top[best], top[rest]) + 1
        shared = np.maximum(width, 0) * np.maximum(height, 0)
        with np.errstate(invalid="ignore", divide="ignore"):  # boxes without an area share nothing
            rest = rest[shared / (areas[best] + areas[rest] - shared) <= SUPPRESSION]
    return kept


class FaceFinder:
    """A detector of faces.

    ``scan``: finds boxes and points, as :class:`Scrfd` does. ``thresholds``: least scores, tried in turn
    until a face is found.
    """

    def __init__(self, card: Card, place: Place, scan: Scan, thresholds: tuple[float, ...]) -> None:
        self.card, self.place = card, place
        self._scan, self._thresholds = scan, thresholds
        self._known: dict[bytes, tuple[Face, ...]] = {}

    @property
    def identity(self) -> str:
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
        rows, points = self._scan(bgr(image), min(self._thresholds))
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

    ``local``: the ONNX file; None for the published one. ``thresholds``: least scores, tried in turn until a
    face is found.
    """
    return _load(place, local, tuple(thresholds))


@lru_cache(maxsize=4)
def _load(place: Place, local: Path | None, thresholds: tuple[float, ...]) -> FaceFinder:
    source = SOURCE if local is None else replace(SOURCE, sha256="")
    path = fetch_file(source, local)
    session = open_session(path, source, place)
    OnnxNetwork(session, source).check_input(SIZE)
    scan = Scrfd(session)
    told(source, path, lambda: scan.candidates(np.zeros((SIZE, SIZE, 3), dtype=np.uint8), 1.0))
    return FaceFinder(loaded_card(CARD, source, local), place, scan, thresholds)


def choose_face(faces: Sequence[Face], choice: Choice) -> Face | None:
    """Return the face that is meant; None where there is none. Equal ones: the better, then the left one."""
    if choice == "largest":
        return min(faces, key=lambda face: (-face.box.area, -face.box.score, face.box.left), default=None)
    return min(faces, key=lambda face: (-face.box.score, face.box.left, face.box.top), default=None)


def positioned(image: "Image", face: Face, position: Position) -> Pixels | None:
    """Return the face turned, scaled and moved into a position: BGR, shape (side, side, 3).

    Returned: None where the five points lie in one place, so that there is nothing to go by.
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

    Returned: shape (2, 3); None where all points lie in one place.
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


# --

Definition = Literal["paper", "code"]
WIDTH = 512

ARCFACE_SOURCE = Source(
    "DIAMONIK7777/antelopev2", file="glintr100.onnx",
    sha256="4ab1d6435d639628a6f3e5008dd4f929edf4c4124b1a7169e1048f9fef534cdf", size=261_000_000,
)  # fmt: skip
"""A copy on the Hub of a file of insightface's pack antelopev2; its hash is that of the pack's own."""
ADAFACE_SOURCE = Source(
    "github.com/yakhyo/adaface-onnx", file="adaface_ir_101.onnx",
    sha256="f2eb07d03de0af560a82e1214df799fec5e09375d43521e2868f9dc387e5a43e",
    address="https://github.com/yakhyo/adaface-onnx/releases/download/weights/adaface_ir_101.onnx",
    size=261_000_000, on_request=True,
)  # fmt: skip
"""The authors' weights (IR-101, WebFace12M) as ONNX, with address and hash as the package uniface 4.2 carries
them. The authors publish a checkpoint of 1.5 GB beside code that no package carries."""
FACENET_PUBLISHED = Source(
    "github.com/timesler/facenet-pytorch", file="20180402-114759-vggface2.pt",
    address="https://github.com/timesler/facenet-pytorch/releases/download/v2.2.9/"
    "20180402-114759-vggface2.pt",
    size=107_000_000, on_request=True,
)  # fmt: skip
FACENET_SOURCE = Source(
    FACENET_PUBLISHED.repo, file="20180402-114759-vggface2.onnx", made_from=FACENET_PUBLISHED,
    size=201_000_000, on_request=True,
)  # fmt: skip
"""Published for torch, and exported by ``fabula models fetch vision``; see :mod:`.facenet_export`."""

ARCFACE_CARD = Card(
    "arcface-r100-glint360k", ARCFACE_SOURCE.repo, ARCFACE_SOURCE.sha256,
    "face in ArcFace's position, 112 x 112, RGB, mean 127.5, std 127.5", WIDTH, 1e-4,
    "non-commercial research",
)  # fmt: skip


@dataclass(frozen=True)
class FaceEncoder:
    """An encoder of the face in a picture."""

    card: Card  # what it is
    place: Place  # where it runs
    finder: FaceFinder  # finds the faces
    choice: Choice  # which of several is meant
    # from a picture and its face to what the network takes; None where nothing can be made of it
    prepare: Prepare
    forward: Callable[[Any], Rows]  # from what was prepared, stacked, to shape (images, dimensions)

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


def scaled(face: Pixels, mean: float, std: float) -> Pixels:
    """Return a picture of bytes as a network takes it: shape (3, height, width), float32, normalised."""
    values = (face.astype(np.float32) - np.float32(mean)) / np.float32(std)
    return np.ascontiguousarray(values.transpose(2, 0, 1))


def in_position(position: Position, mean: float, std: float, *, rgb: bool = False) -> Prepare:
    """Return what brings a face into a position and normalises it: BGR, or RGB."""

    def prepare(image: "Image", face: Face) -> Pixels | None:
        square = positioned(image, face, position)
        return None if square is None else scaled(square[:, :, ::-1] if rgb else square, mean, std)

    return prepare


def stretched(image: "Image", face: Face) -> Pixels | None:
    """Return the box of a face, stretched to 160 x 160 and normalised: RGB."""
    part = cut(image, face.box)
    if part is None:
        return None
    from PIL import Image as Pillow

    square = part.resize((160, 160), Pillow.Resampling.BILINEAR)
    return scaled(bgr(square)[:, :, ::-1], 127.5, 128.0)


class FaceWeights(NamedTuple):
    """An encoder: source of its weights, card, pixels a side, what the network sees."""

    source: Source
    card: Card
    side: int
    prepare: Prepare


def _own(source: Source, name: str, sees: str, rights: str, side: int, prepare: Prepare) -> FaceWeights:
    return FaceWeights(source, Card(name, source.repo, "", sees, WIDTH, 1e-4, rights), side, prepare)


ADAFACE_LICENCE = "MIT; WebFace12M, which it was trained on, has terms of its own"
FACENET_LICENCE = "MIT (code); the weights state none"
ADAFACE: Mapping[Definition, FaceWeights] = {
    "paper": _own(
        ADAFACE_SOURCE, "adaface-ir101-webface12m-paper",
        "face in ArcFace's position, 112 x 112, BGR, mean 0.5, std 0.5", ADAFACE_LICENCE,
        ARCFACE.side, in_position(ARCFACE, 127.5, 127.5),
    ),
    "code": _own(
        ADAFACE_SOURCE, "adaface-ir101-webface12m-code",
        "face in facexlib's position, 112 x 112, BGR, mean 0.5, std 0.5", ADAFACE_LICENCE,
        FFHQ.side, in_position(FFHQ, 127.5, 127.5),
    ),
}  # fmt: skip
"""AdaFace (IR-101, WebFace12M)."""
FACENET: Mapping[Definition, FaceWeights] = {
    "paper": _own(
        FACENET_SOURCE, "facenet-vggface2-paper",
        "the face's box stretched to 160 x 160, bilinear, RGB, mean 127.5, std 128", FACENET_LICENCE,
        160, stretched,
    ),
    "code": _own(
        FACENET_SOURCE, "facenet-vggface2-code", "face in facexlib's position, 112 x 112, BGR in [0, 1]",
        FACENET_LICENCE, FFHQ.side, in_position(FFHQ, 0.0, 255.0),
    ),
}  # fmt: skip
"""FaceNet (InceptionResnetV1, VGGFace2)."""


ARCFACE_R100 = FaceWeights(
    ARCFACE_SOURCE, ARCFACE_CARD, ARCFACE.side, in_position(ARCFACE, 127.5, 127.5, rgb=True)
)
"""ArcFace (ResNet-100, Glint360K)."""


def load_arcface(
    place: Place,
    local: Path | None = None,
    detector: Path | None = None,
    choice: Choice = "most confident",
) -> FaceEncoder:
    """Return ArcFace (ResNet-100, Glint360K).

    ``local``: the ONNX file; None for the published one. ``detector``: the ONNX file of the detector of
    faces; None for the published one.
    """
    weights = ARCFACE_R100
    if local is not None and told(weights.source, local, lambda: _normalises(local)):
        card = replace(weights.card, input="face in ArcFace's position, 112 x 112, RGB in [0, 255]")
        weights = weights._replace(card=card, prepare=in_position(ARCFACE, 0.0, 1.0, rgb=True))
    return _opened(weights, place, local, detector, choice)


def _normalises(file: Path) -> bool:
    """Return whether a graph begins with a subtraction and a product, as those that were made by MXNet do."""
    with needing(missing("onnx")):
        import onnx
    first = [node.name for node in onnx.load(str(file), load_external_data=False).graph.node[:8]]
    return all(any(name.startswith(kind) for name in first) for kind in (("Sub", "_minus"), ("Mul", "_mul")))


def load_own(
    models: Mapping[Definition, FaceWeights],
    place: Place,
    local: Path | None = None,
    detector: Path | None = None,
    choice: Choice = "most confident",
    definition: Definition = "paper",
) -> FaceEncoder:
    """Return an encoder whose weights come only when somebody asks for them.

    ``local``: the ONNX file; None for the one that ``fabula models fetch vision`` brought. ``detector``: the
    ONNX file of the detector of faces; None for the published one.
    """
    return _opened(models[definition], place, local, detector, choice)


def _opened(
    weights: FaceWeights, place: Place, local: Path | None, detector: Path | None, choice: Choice
) -> FaceEncoder:
    source, card, side, prepare = weights
    source = source if local is None else replace(source, sha256="")
    path = fetch_file(source, local)
    finder = load_faces(place, detector)
    network = OnnxNetwork(open_session(path, source, place), source)
    network.check_input(side)
    # What comes on request has no hash that was known beforehand.
    loaded = loaded_card(card, source, path if source.on_request else local)
    loaded = replace(loaded, dimensions=network.dimensions(side))
    return FaceEncoder(loaded, place, finder, choice, prepare, network.values)


load_adaface = partial(load_own, ADAFACE)
load_facenet = partial(load_own, FACENET)
