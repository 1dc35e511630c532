"""Encoders of faces: ArcFace, AdaFace and FaceNet. Each looks at the one face of a crop that is meant.

A crop without a face has no vector. All three look at the same face, found by the same detector; in the
public code of ViStoryBench, AdaFace and FaceNet use another detector and may see another person.

Two definitions of what AdaFace and FaceNet see. ``paper`` (default) is what their weights were trained on.
``code`` is what the public code of ViStoryBench feeds them: the face in the position of facexlib, and for
FaceNet 112 pixels a side, blue first, in [0, 1], instead of 160, red first, in about [-1, 1].
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from .crop import cut
from .devices import Place, missing
from .faces import ARCFACE, FFHQ, Choice, Face, FaceFinder, Pixels, bgr, choose_face, load_faces, positioned
from .networks import loaded_card, unit_rows
from .onnx_models import OnnxNetwork, open_session
from .types import Card, Rows, identity_of
from .weights import Source, fetch_file, needed, told

if TYPE_CHECKING:
    from PIL.Image import Image

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
ADAFACE_CARDS: dict[Definition, Card] = {
    "paper": Card(
        "adaface-ir101-webface12m-paper", ADAFACE_SOURCE.repo, "",
        "face in ArcFace's position, 112 x 112, BGR, mean 0.5, std 0.5", WIDTH, 1e-4, "see the model's page",
    ),
    "code": Card(
        "adaface-ir101-webface12m-code", ADAFACE_SOURCE.repo, "",
        "face in facexlib's position, 112 x 112, BGR, mean 0.5, std 0.5", WIDTH, 1e-4, "see the model's page",
    ),
}  # fmt: skip
FACENET_CARDS: dict[Definition, Card] = {
    "paper": Card(
        "facenet-vggface2-paper", FACENET_SOURCE.repo, "",
        "the face's box stretched to 160 x 160, bilinear, RGB, mean 127.5, std 128", WIDTH, 1e-4, "MIT",
    ),
    "code": Card(
        "facenet-vggface2-code", FACENET_SOURCE.repo, "",
        "face in facexlib's position, 112 x 112, BGR in [0, 1]", WIDTH, 1e-4, "MIT",
    ),
}  # fmt: skip


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
    prepare: "Callable[[Image, Face], Pixels | None]"
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


def load_adaface(
    place: Place,
    local: Path | None = None,
    detector: Path | None = None,
    choice: Choice = "most confident",
    definition: Definition = "paper",
) -> FaceEncoder:
    """Return AdaFace (IR-101, WebFace12M).

    Args:
        place: where it runs.
        local: the ONNX file; there is no published one.
        detector: the ONNX file of the detector of faces; None for the published one.
        choice: which of several faces is meant.
        definition: what the network sees.

    Raises:
        MissingRequirement: a library or the weights are missing, or they are those of another model.
            ConfigError: it does not run there.
    """
    position = ARCFACE if definition == "paper" else FFHQ

    def prepare(image: "Image", face: Face) -> Pixels | None:
        return scaled(positioned(image, face, position), 127.5, 127.5)

    card = ADAFACE_CARDS[definition]
    weights = OwnWeights(ADAFACE_SOURCE, local, position.side)
    return _from_file(card, weights, place, Meant(detector, choice), prepare)


def load_facenet(
    place: Place,
    local: Path | None = None,
    detector: Path | None = None,
    choice: Choice = "most confident",
    definition: Definition = "paper",
) -> FaceEncoder:
    """Return FaceNet (InceptionResnetV1, VGGFace2).

    Args:
        place: where it runs.
        local: the ONNX file; there is no published one.
        detector: the ONNX file of the detector of faces; None for the published one.
        choice: which of several faces is meant.
        definition: what the network sees.

    Raises:
        MissingRequirement: a library or the weights are missing, or they are those of another model.
            ConfigError: it does not run there.
    """

    def as_trained(image: "Image", face: Face) -> Pixels | None:
        part = cut(image, face.box)
        if part is None:
            return None
        from PIL import Image as Pillow

        square = part.resize((160, 160), Pillow.Resampling.BILINEAR)
        return scaled(bgr(square)[:, :, ::-1], 127.5, 128.0)

    def as_in_code(image: "Image", face: Face) -> Pixels | None:
        return scaled(positioned(image, face, FFHQ), 0.0, 255.0)

    card, side = FACENET_CARDS[definition], 160 if definition == "paper" else FFHQ.side
    prepare = as_trained if definition == "paper" else as_in_code
    weights = OwnWeights(FACENET_SOURCE, local, side)
    return _from_file(card, weights, place, Meant(detector, choice), prepare)


def scaled(face: Pixels | None, mean: float, std: float) -> Pixels | None:
    """Return a picture of bytes as a network takes it: shape (3, height, width), float32, normalised."""
    if face is None:
        return None
    values = (face.astype(np.float32) - np.float32(mean)) / np.float32(std)
    return np.ascontiguousarray(values.transpose(2, 0, 1))


class OwnWeights(NamedTuple):
    """Weights that are not published: their source, their file, and the pixels a side of the input."""

    source: Source
    file: Path | None
    side: int


class Meant(NamedTuple):
    """Which face of a crop is meant: the file of the detector, None for the published one; and the choice."""

    detector: Path | None
    choice: Choice


def _from_file(
    card: Card,
    weights: OwnWeights,
    place: Place,
    meant: Meant,
    prepare: "Callable[[Image, Face], Pixels | None]",
) -> FaceEncoder:
    source, local, side = weights
    if local is None:
        raise needed(source, "no file named in the settings")
    finder = load_faces(place, meant.detector)
    session = open_session(fetch_file(source, local), source, place)
    network = OnnxNetwork(session, source)
    network.check_input(side)
    loaded = replace(loaded_card(card, source, local), dimensions=network.dimensions(side))
    return FaceEncoder(loaded, place, finder, meant.choice, prepare, network.values)
