"""Which models look at pictures: an explicit list, an entry-point group, and loaders named by their place."""

import inspect
import json
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import redirect_stdout
from dataclasses import asdict, dataclass
from importlib import import_module
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, cast

import numpy as np
from pydantic import ConfigDict, ValidationError, create_model

from ...errors import ConfigError
from ...schemas.canonical import pretty_bytes, write_atomic
from ...schemas.plain_files import type_reason
from ...schemas.plugins import plugins, versions_of
from . import clip, csd, detectors, dino, face_encoders, flow, networks, predictors
from .detectors import LAYOUTS
from .face_encoders import Face, FaceEncoder
from .networks import unit_rows
from .store import Box, Detector, Encoder, Flow, Grounder, Predictor, Segmenter, TextEncoder, VisionModel
from .weights import Place, Source, missing, weights_folder

if TYPE_CHECKING:
    from PIL.Image import Image

Kind = Literal["detector", "grounder", "encoder", "text encoder", "predictor", "flow", "segmenter"]
"""What a model does; an encoder of texts is one of pictures, too, and ours that finds texts a detector."""


@dataclass(frozen=True, slots=True)
class Registered:
    """A model of ours."""

    name: str  # by which settings choose it
    place: str  # ``module:attribute`` of its loader, which takes a :class:`Place` and its settings
    kind: Kind  # what it does
    libraries: tuple[str, ...] = ("torch", "transformers")  # what has to be installed


_FACES = ("onnxruntime", "cv2")

MODELS: tuple[Registered, ...] = (
    Registered("clip-vit-l-14", ".clip:load_clip", "text encoder"),
    Registered("clip-vit-b-32", ".clip:load_clip_b_32", "text encoder"),
    Registered("dinov2-l-14", ".networks:load_dinov2", "encoder"),
    Registered("dinov2-base", ".networks:load_dinov2_base", "encoder"),
    Registered("csd-vit-l", ".csd:load_csd", "encoder"),
    Registered("aesthetic-v2.5", ".predictors:load_aesthetic", "predictor"),
    Registered("inception-v3", ".predictors:load_inception", "predictor", ("torch", "torchvision")),
    Registered("grounding-dino-swin-t", ".detectors:load_grounding_dino", "grounder"),
    Registered("dino-b-16", ".dino:load_dino", "encoder"),
    Registered("raft-large", ".flow:load_raft", "flow", ("torch", "torchvision")),
    Registered("laion-b-32", ".predictors:load_laion_b_32", "predictor"),
    Registered("laion-l-14", ".predictors:load_laion_l_14", "predictor"),
    Registered("musiq-spaq", ".predictors:load_musiq", "predictor", ("torch", "pyiqa")),
    Registered("people-yolo11n", ".detectors:load_people", "detector", ("torch", "ultralytics")),
    Registered("faces-scrfd-10g", ".face_encoders:load_faces", "detector", _FACES),
    Registered("arcface-r100", ".face_encoders:load_arcface", "encoder", _FACES),
    Registered("adaface-ir101", ".face_encoders:load_adaface", "encoder", _FACES),
    Registered("facenet-vggface2", ".face_encoders:load_facenet", "encoder", _FACES),
    Registered(
        "sam2.1-hiera-tiny", ".detectors:load_sam2", "segmenter", ("torch", "torchvision", "transformers")
    ),
)
"""All models of ours: each passes ``tests/contract/test_vision_models.py``."""

GROUP = "fabula.vision_models"
"""Entry points of this group add models: the name is the model's, the object its loader."""

Loader: TypeAlias = Callable[..., VisionModel]
_PROTOCOLS: dict[Kind, type] = {
    "grounder": Grounder, "detector": Detector, "text encoder": TextEncoder, "encoder": Encoder,
    "predictor": Predictor, "flow": Flow, "segmenter": Segmenter,
}  # fmt: skip


def names() -> tuple[str, ...]:
    """Return the names of all models: our own, then those of plug-ins."""
    own = [model.name for model in MODELS]
    return (*own, *sorted({entry.name for entry in plugins(GROUP)} - set(own)))


def libraries_of(*names: str) -> dict[str, str]:
    """Return the installed versions of the libraries that models use; of a model that is not ours, of all."""
    own = {model.name: model.libraries for model in MODELS}
    every = tuple(library for libraries in own.values() for library in libraries)
    return versions_of(sorted({library for name in names for library in own.get(name, every)}))


def check_vision(name: str, settings: Mapping[str, Any] | None = None) -> None:
    """Check that there is such a model, that its libraries are installed and its settings have its form.

    Loads no weights; the libraries of our own models are not imported.
    """
    for model in MODELS:
        if model.name == name:
            for library in model.libraries:
                if find_spec(library) is None:
                    raise missing(library)
    _checked(name, loader_of(name), settings or {})


def open_vision(
    name: str, place: Place, settings: Mapping[str, Any] | None = None, kind: Kind | None = None
) -> VisionModel:
    """Return a model with its weights, ready to be used.

    ``kind``: what it has to be; None takes any.
    """
    loader = loader_of(name)
    given = _checked(name, loader, settings or {})
    with redirect_stdout(sys.stderr):  # libraries tell there what they fetch; ours is for results
        model = loader(place, **given)
    if kind is not None and not isinstance(model, _PROTOCOLS[kind]):
        actual = next(
            (name for name, type_ in _PROTOCOLS.items() if isinstance(model, type_)), "no known kind"
        )
        what = f"a model of the kind {kind} is needed here, and this is: {actual}"
        raise ConfigError(f"model {name}", what=what, fix=f"name one such as {_listed(kind)}")
    return model


def files_of(name: str, settings: Mapping[str, Any]) -> dict[str, Path]:
    """Return the files and folders that a model's settings name: those that its loader takes as paths."""
    given = _checked(name, loader_of(name), settings)
    return {key: value for key, value in given.items() if isinstance(value, Path)}


def loader_of(name: str) -> Loader:
    """Return the function that loads a model; imports its module."""
    for model in MODELS:
        if model.name == name:
            module, _, attribute = model.place.partition(":")
            return cast("Loader", getattr(import_module(module, __package__), attribute))
    for entry in plugins(GROUP):
        if entry.name == name:
            return cast("Loader", entry.load())
    module, colon, attribute = name.partition(":")
    if colon and module:
        try:
            return cast("Loader", getattr(import_module(module), attribute))
        except (ImportError, AttributeError) as error:
            raise _nobody(name, str(error)) from error
    raise _nobody(name, "there is no such model")


def _checked(name: str, loader: Loader, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return settings as a loader takes them, by the types of its own parameters."""
    signature = inspect.signature(loader, eval_str=True)
    fields: Any = {
        parameter.name: (
            parameter.annotation,
            ... if parameter.default is parameter.empty else parameter.default,
        )
        for parameter in list(signature.parameters.values())[1:]
    }
    form = create_model("Settings", __config__=ConfigDict(extra="forbid"), **fields)
    try:
        read = form.model_validate(dict(settings))
    except ValidationError as error:
        first = error.errors()[0]
        key = ".".join(str(part) for part in first["loc"])
        raise ConfigError(
            f"model {name}: {key}",
            what=f"{type_reason(first)}; the settings are: {', '.join(fields) or 'none'}",
            fix="correct or remove it; see docs/vision.md",
        ) from error
    return {key: getattr(read, key) for key in read.model_fields_set}


def _nobody(name: str, found: str) -> ConfigError:
    return ConfigError(
        f"model {name}", what=f"{found}; there are {', '.join(names())}, and package.module:loader",
        fix="check the spelling, or install the plug-in that adds it",
    )  # fmt: skip


def _listed(kind: Kind) -> str:
    more: dict[Kind, Kind] = {"encoder": "text encoder", "detector": "grounder"}
    kinds = (kind, more.get(kind, kind))
    return ", ".join(model.name for model in MODELS if model.kind in kinds) or "none is registered"


# -- What each model gives for three pictures of ours, compared with what was recorded
#
# So a silent change of weights or of a library is seen. ``known.json`` beside this file has the values that
# were recorded for everybody; ``known.json`` in the folder of weights those recorded on this machine.
#
# Pictures of ours that models are tried on.

SIDE = 320
"""Pixels a side of a drawing."""
SHIFT = 8
"""Pixels by which a drawing is moved for a flow."""
FACE = ((140.0, 91.0), (182.0, 91.0), (160.0, 112.0), (142.0, 130.0), (178.0, 130.0))
"""Eyes, nose and corners of the mouth of the person who is drawn, in pixels."""
FACE_BOX = (106.0, 30.0, 214.0, 155.0)
"""Where that face is: left, top, right, bottom."""


def draw_pair() -> "tuple[Image, Image]":
    """Return the two drawings: somebody in a red coat, and a house under a tree."""
    from PIL import Image, ImageDraw

    person, house = (Image.new("RGB", (SIDE, SIDE), ground) for ground in ((226, 232, 240), (150, 200, 240)))
    draw = ImageDraw.Draw(person)
    draw.rectangle((105, 150, 215, 270), fill=(190, 40, 40))
    draw.rectangle((120, 270, 150, 318), fill=(40, 50, 90))
    draw.rectangle((170, 270, 200, 318), fill=(40, 50, 90))
    draw.ellipse((110, 40, 210, 155), fill=(240, 200, 170))
    draw.chord((106, 30, 214, 120), 180, 360, fill=(80, 50, 20))
    for left in (133, 175):
        draw.ellipse((left, 85, left + 14, 97), fill=(30, 30, 30))
    draw.polygon(((160, 98), (152, 118), (168, 118)), fill=(220, 170, 140))
    draw.arc((138, 112, 182, 138), 20, 160, fill=(150, 30, 40), width=4)
    draw = ImageDraw.Draw(house)
    draw.rectangle((0, 240, SIDE, SIDE), fill=(90, 160, 70))
    draw.rectangle((60, 150, 200, 270), fill=(230, 210, 160))
    draw.polygon(((45, 150), (215, 150), (130, 70)), fill=(120, 60, 40))
    draw.rectangle((115, 200, 150, 270), fill=(100, 60, 30))
    draw.rectangle((250, 160, 270, 280), fill=(110, 70, 40))
    draw.ellipse((215, 60, 310, 190), fill=(40, 120, 50))
    return person, house


def draw_three() -> "tuple[Image, Image, Image]":
    """Return the two drawings, and rings whose colours change from left to right and from top to bottom."""
    from PIL import Image

    down, across = np.mgrid[0:SIDE, 0:SIDE].astype(np.int64)
    far = ((across - SIDE // 2) ** 2 + (down - SIDE // 2) ** 2) // 1024 % 2
    colours = np.stack([across * 255 // SIDE, down * 255 // SIDE, 40 + 180 * far], axis=-1)
    return (*draw_pair(), Image.fromarray(colours.astype(np.uint8)))


def shifted(image: "Image") -> "Image":
    """Return a drawing moved to the right; its left edge is repeated."""
    from PIL import Image

    pixels = np.asarray(image)
    return Image.fromarray(np.concatenate([np.repeat(pixels[:, :1], SHIFT, 1), pixels[:, :-SHIFT]], 1))


FILE = "known.json"
TEXTS = ("a person in a red coat", "a house under a blue sky")
_KEPT = 8  # numbers of a row; each of a unit vector depends on the whole network
_BOXES = 3
_LEAST = 1e-3  # difference, as a share of values above 1, that machines and versions may make
_NOT_RECORDED = "not recorded: nobody ran this model with --record yet"


@dataclass(frozen=True, slots=True)
class Recorded:
    """What a model gave."""

    weights: str  # commit or hash of its weights
    identity: str  # what its results depend on
    libraries: Mapping[str, str]  # library -> version that it ran by
    values: Mapping[str, Sequence[float]]  # what was looked at -> numbers


def values_of(model: VisionModel) -> dict[str, list[float]]:
    """Return a few numbers of what a model makes of the three pictures, by what they are of.

    Encoders of faces are shown the pictures with the points of a face given, so that no detector is needed.
    """
    pictures = draw_three()
    if isinstance(model, FaceEncoder):
        face = Face(Box(*FACE_BOX), np.array(FACE, dtype=np.float32))
        prepared = [model.prepare(picture, face) for picture in pictures]
        rows = unit_rows(model.forward(np.stack([pixels for pixels in prepared if pixels is not None])))
        return _of_rows("picture", rows)
    if isinstance(model, Encoder):
        values = _of_rows("picture", model.encode(pictures))
        if isinstance(model, TextEncoder):
            values |= _of_rows("text", model.encode_texts(TEXTS).rows)
        return values
    if isinstance(model, Predictor):
        return _of_rows("picture", model.predict(pictures))
    return _seen(model, pictures)


def _seen(model: VisionModel, pictures: Sequence[Any]) -> dict[str, list[float]]:
    """Return a few numbers of what a model sees that makes no rows: boxes, motion or a mask."""
    if isinstance(model, Detector):
        detected = model.detect(pictures)
        return {f"picture {number}": [round(part, 3) for box in boxes[:_BOXES] for part in _numbers(box)]
                for number, boxes in enumerate(detected, 1)}  # fmt: skip
    if isinstance(model, Flow):
        flows = model.flows([(picture, shifted(picture)) for picture in pictures])
        return {f"picture {number}": [float(np.median(flow[axis])) for axis in (0, 1)]
                for number, flow in enumerate(flows, 1)}  # fmt: skip
    if isinstance(model, Segmenter):
        masks = model.segment(pictures, [LAYOUTS["object"]] * len(pictures))
        return {f"picture {number}": [round(float(mask.mean()), 3)] for number, mask in enumerate(masks, 1)}
    return {}


def _numbers(box: Box) -> tuple[float, ...]:
    return box.left, box.top, box.right, box.bottom, box.score


def _of_rows(name: str, rows: Any) -> dict[str, list[float]]:  # noqa: ANN401 - an array
    return {
        f"{name} {number}": [round(float(value), 6) for value in row[:_KEPT]]
        for number, row in enumerate(rows, 1)
    }


def recorded(name: str) -> Recorded | None:
    """Return what was recorded of a model, on this machine or for everybody; None if nothing was."""
    shipped = json.loads(files(__package__).joinpath(FILE).read_text("utf-8"))
    entry = {**shipped, **_own()}.get(name)
    try:
        return None if entry is None else Recorded(**entry)
    except TypeError as error:
        raise _damaged() from error


def _own() -> dict[str, Any]:
    path = weights_folder() / FILE
    try:
        return dict(json.loads(path.read_text("utf-8"))) if path.is_file() else {}
    except (ValueError, TypeError) as error:
        raise _damaged() from error


def _damaged() -> ConfigError:
    path = str(weights_folder() / FILE)
    return ConfigError(path, what="these recorded values are damaged", fix="remove it, and record them anew")


def record_values(name: str, model: VisionModel, settings: Mapping[str, Any]) -> Path:
    """Write down what a model gives, in the folder of weights, and return the file."""
    if own := ", ".join(files_of(name, settings)):
        raise ConfigError(
            f"model {name}", what=f"its settings name files of your own ({own}): published ones are wanted",
            fix="leave them out of the settings file",
        )  # fmt: skip
    path = weights_folder() / FILE
    path.parent.mkdir(parents=True, exist_ok=True)
    made = Recorded(model.card.revision, model.identity, _libraries(name), values_of(model))
    write_atomic(path, [pretty_bytes({**_own(), name: asdict(made)})])
    return path


def compare_values(
    name: str, model: VisionModel, settings: Mapping[str, Any]
) -> tuple[Literal["ok", "warning", "failed"], str]:
    """Return whether a model gives what was recorded, and in words what changed if it does not."""
    known = recorded(name)
    if known is None:
        return "warning", _NOT_RECORDED
    if files_of(name, settings):
        return "warning", "not compared: the settings name files of your own"
    if known.identity.split("/")[0] != model.identity.split("/")[0]:
        return "failed", f"other weights than recorded: {known.weights}, now {model.card.revision}"
    now, libraries = values_of(model), _libraries(name)
    moved = [f"{library} {was}, now {libraries.get(library)}" for library, was in known.libraries.items()
             if libraries.get(library) != was]  # fmt: skip
    alike = now.keys() == known.values.keys() and all(len(now[key]) == len(known.values[key]) for key in now)
    apart = max((abs(value - was) / max(1.0, abs(was)) for key in now if alike
                 for value, was in zip(now[key], known.values[key], strict=True)), default=0.0)  # fmt: skip
    if alike and apart <= max(_LEAST, model.card.tolerance):
        return "ok", f"as recorded: they differ by at most {apart:.1e}" + _since(moved)
    what = f"by up to {apart:.1e}" if alike else "in number"
    cause = _since(moved) or "; libraries are as recorded, so look at the device and the files"
    return "failed", f"other values than recorded, {what}{cause}"


def _since(moved: Sequence[str]) -> str:
    return f"; since then changed: {', '.join(moved)}" if moved else ""


def _libraries(name: str) -> dict[str, str]:
    """Return the versions of the libraries that a model runs by, and of those that prepare pictures."""
    own = next((model.libraries for model in MODELS if model.name == name), ())
    return versions_of((*own, "numpy", "pillow"))


# -- What the weights of each model of ours are, where they are published, and under which terms


@dataclass(frozen=True, slots=True)
class Weights:
    """Weights that a model is loaded from."""

    source: Source  # where they come from
    option: str  # of the model's loader, that names other ones
    licence: str  # their terms, in short
    # whether the terms forbid or demand so much that somebody has to accept them first
    restricts: bool = False


_RESEARCH = "insightface's terms: non-commercial research only"
_CLIP_L = Weights(clip.SOURCE, "local", clip.LICENCE)
_CLIP_B = Weights(clip.B_32_SOURCE, "local", clip.LICENCE)
_FINDER = Weights(face_encoders.SOURCE, "detector", _RESEARCH, restricts=True)
WEIGHTS: Mapping[str, tuple[Weights, ...]] = {
    "clip-vit-l-14": (_CLIP_L,),
    "clip-vit-b-32": (_CLIP_B,),
    "dinov2-l-14": (Weights(networks.DINOV2_SOURCE, "local", "Apache-2.0"),),
    "dinov2-base": (Weights(networks.DINOV2_BASE_SOURCE, "local", "Apache-2.0"),),
    "csd-vit-l": (Weights(csd.SOURCE, "local", csd.CARD.licence),),
    "aesthetic-v2.5": (
        Weights(predictors.SIGLIP_SOURCE, "local", "Apache-2.0"),
        Weights(predictors.AESTHETIC_HEAD, "head", "AGPL-3.0", restricts=True),
    ),
    "inception-v3": (Weights(predictors.INCEPTION, "local", "BSD-3-Clause"),),
    "grounding-dino-swin-t": (Weights(detectors.DINO_SOURCE, "local", "Apache-2.0"),),
    "dino-b-16": (Weights(dino.SOURCE, "local", dino.CARD.licence),),
    "raft-large": (Weights(flow.RAFT, "local", flow.CARD.licence),),
    "laion-b-32": (_CLIP_B, Weights(predictors.HEAD_B_32, "head", "MIT")),
    "laion-l-14": (_CLIP_L, Weights(predictors.HEAD_L_14, "head", "MIT")),
    "musiq-spaq": (Weights(predictors.SOURCE, "local", predictors.CARD.licence, restricts=True),),
    "people-yolo11n": (Weights(detectors.PEOPLE_SOURCE, "local", "AGPL-3.0", restricts=True),),
    "faces-scrfd-10g": (Weights(face_encoders.SOURCE, "local", _RESEARCH, restricts=True),),
    "arcface-r100": (
        Weights(face_encoders.ARCFACE_SOURCE, "local", _RESEARCH, restricts=True), _FINDER,
    ),
    "adaface-ir101": (
        Weights(face_encoders.ADAFACE_SOURCE, "local", face_encoders.ADAFACE_LICENCE, restricts=True),
        _FINDER,
    ),
    "sam2.1-hiera-tiny": (Weights(detectors.SAM2_SOURCE, "local", detectors.SAM2_CARD.licence),),
    "facenet-vggface2": (
        Weights(face_encoders.FACENET_SOURCE, "local", face_encoders.FACENET_LICENCE), _FINDER,
    ),
}  # fmt: skip
"""Model -> its weights."""


def not_published(identities: str) -> list[str]:
    """Return the models whose weights have another commit or hash than the published ones.

    ``identities``: of models, as JSON. A folder goes by the hash of its files, also where they are copies of
    the published ones. Where neither commit nor hash is known, as of FaceNet's export, nothing is said.
    """
    others = set()
    for name, revision in re.findall(r'["/]([^"/@]+)@([^"/]*)', identities):
        for key in (key for key in WEIGHTS if f"{name}-".startswith(f"{key}-")):
            for weights, part in zip(WEIGHTS[key], revision.split("+"), strict=False):
                known = tuple(filter(None, (weights.source.revision, weights.source.digits)))
                if known and not part.startswith(known):
                    others.add(key)
    return sorted(others)


def sources_of(names: Sequence[str]) -> dict[Source, tuple[Weights, tuple[str, ...]]]:
    """Return each source that models are loaded from once, with its terms and the models that want it."""
    wanted_by: dict[Source, tuple[Weights, tuple[str, ...]]] = {}
    for name in names:
        for weights in WEIGHTS[name]:
            first, wanted = wanted_by.get(weights.source, (weights, ()))
            wanted_by[weights.source] = (first, (*wanted, name))
    return wanted_by
