"""Encoders of faces: ArcFace, AdaFace and FaceNet, on the face that SCRFD finds."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from .faces import (
    ARCFACE,
    FFHQ,
    Choice,
    Face,
    FaceFinder,
    Pixels,
    Position,
    Prepare,
    bgr,
    choose_face,
    load_faces,
    positioned,
)
from .networks import OnnxNetwork, loaded_card, open_session, unit_rows
from .stored import Source
from .types import Card, Rows, cut, identity_of
from .weights import Place, fetch_file, missing, told

if TYPE_CHECKING:
    from PIL.Image import Image

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
    try:
        import onnx
    except ImportError as error:
        raise missing("onnx") from error
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
