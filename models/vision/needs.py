"""What models that look at pictures need: libraries, a device, and weights, fetched if they can be."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from ...errors import MissingRequirement
from . import inception
from .devices import DEVICES, Place
from .looking import VisionSettings
from .registry import MODELS, check_vision, files_of
from .weights import Source, fetch_file, fetch_pretrained, needed

_FACES = ("faces", "SOURCE", "detector")
_SOURCES: Mapping[str, tuple[tuple[str, str, str], ...]] = {
    "clip-vit-l-14": (("clip", "SOURCE", "local"),),
    "dinov2-l-14": (("dinov2", "SOURCE", "local"),),
    "csd-vit-l": (("csd", "SOURCE", "local"),),
    "aesthetic-v2.5": (("predictors", "SOURCE", "local"),),
    "inception-v3": (("inception", "SOURCE", "local"),),
    "grounding-dino-swin-t": (("detectors", "SOURCE", "local"),),
    "people-yolo11n": (("people", "SOURCE", "local"),),
    "faces-scrfd-10g": (("faces", "SOURCE", "local"),),
    "arcface-r100": (("face_encoders", "ARCFACE_SOURCE", "local"), _FACES),
    "adaface-ir101": (_FACES,),
    "facenet-vggface2": (_FACES,),
}
"""Module and name of what a model's weights come from, and the option that names a file instead."""
_BY_HAND = {
    "aesthetic-v2.5": ("head", "the weights of its head"),
    "adaface-ir101": ("local", "its weights as ONNX"),
    "facenet-vggface2": ("local", "its weights as ONNX"),
}
"""Option of a file that nothing can be fetched for, and what it is."""


@dataclass(frozen=True, slots=True)
class Lack:
    """Something that is missing.

    Attributes:
        what: it, in a few words.
        wanted_by: the model or setting that it is for.
        why: why it cannot be had; empty where that is plain.
    """

    what: str
    wanted_by: str
    why: str = ""


def listed(lacks: Iterable[Lack]) -> str:
    """Return what is missing as one text: each thing once, each reason once behind all that it holds for."""
    reasons: dict[str, dict[str, dict[str, None]]] = {}
    for lack in lacks:
        reasons.setdefault(lack.why, {}).setdefault(lack.what, {})[lack.wanted_by] = None
    parts = []
    for why, things in reasons.items():
        told = "; ".join(f"{what}, for {', '.join(wanted)}" for what, wanted in things.items())
        parts.append(f"{told} ({why})" if why else told)
    return "; ".join(parts)


def lacks_of(settings: VisionSettings, *names: str | None) -> Iterator[Lack]:
    """Yield what models lack; nothing for None.

    Weights that are neither there nor in the library's cache are fetched, as they would be on first use.

    Raises:
        ConfigError: there is no such model or device, or an option is wrong.
    """
    own = {model.name for model in MODELS}
    for name in names:
        if name is None:
            continue
        options = settings.options.get(name, {})
        try:
            check_vision(name, options)
        except MissingRequirement as error:
            yield Lack(error.where.removeprefix("the library "), name)
            continue
        if name in own or settings.device != DEVICES[0]:
            Place(settings.device, settings.dtype).checked()
        yield from _lacks_of_files(name, options)
        yield from _lacks_of_weights(name, options)


def _lacks_of_files(name: str, options: Mapping[str, Any]) -> Iterator[Lack]:
    known = {option for _, _, option in _SOURCES.get(name, ())}
    for key, path in files_of(name, options).items():
        if key not in known and not path.exists():
            yield Lack(f"{path}, which options.{name}.{key} names", name)
    option, what = _BY_HAND.get(name, (None, ""))
    if option is not None and options.get(option) is None:
        yield Lack(what, name, f'given by options."{name}" = {{ {option} = FILE }}, see docs/vision.md')


def _lacks_of_weights(name: str, options: Mapping[str, Any]) -> Iterator[Lack]:
    for module, attribute, option in _SOURCES.get(name, ()):
        source = getattr(import_module(f".{module}", __package__), attribute)
        local = options.get(option)
        try:
            _fetch(source, None if local is None else Path(str(local)))
        except MissingRequirement as error:
            yield Lack(error.where, name, error.found.splitlines()[0])


def _fetch(source: Source, local: Path | None) -> None:
    if local is not None:
        if not local.exists():
            raise needed(source, f"no {local}")
    elif source == inception.SOURCE:
        inception.fetch_published()
    elif source.file:
        fetch_file(source)
    else:
        fetch_pretrained(source)
