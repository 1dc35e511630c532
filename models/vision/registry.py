"""Which models look at pictures: an explicit list, an entry-point group, and loaders named by their place."""

import inspect
import sys
from collections.abc import Callable, Mapping
from contextlib import redirect_stdout
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal, TypeAlias, cast

from pydantic import ConfigDict, ValidationError, create_model

from ...errors import ConfigError
from ...schemas.plain_files import type_reason
from ...schemas.plugins import plugins, versions_of
from .types import Detector, Encoder, Flow, Grounder, Predictor, Segmenter, TextEncoder, VisionModel
from .weights import Place, missing

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
    Registered("laion-b-32", ".laion:load_laion_b_32", "predictor"),
    Registered("laion-l-14", ".laion:load_laion_l_14", "predictor"),
    Registered("musiq-spaq", ".musiq:load_musiq", "predictor", ("torch", "pyiqa")),
    Registered("people-yolo11n", ".detectors:load_people", "detector", ("torch", "ultralytics")),
    Registered("faces-scrfd-10g", ".faces:load_faces", "detector", _FACES),
    Registered("arcface-r100", ".face_encoders:load_arcface", "encoder", _FACES),
    Registered("adaface-ir101", ".face_encoders:load_adaface", "encoder", _FACES),
    Registered("facenet-vggface2", ".face_encoders:load_facenet", "encoder", _FACES),
    Registered(
        "sam2.1-hiera-tiny", ".segmenters:load_sam2", "segmenter", ("torch", "torchvision", "transformers")
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
