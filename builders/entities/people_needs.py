"""What finding people needs: looked up and fetched before any video is opened, and listed at once.

A file of detections is read to its end; with vectors in it, nothing else is needed.
"""

from collections.abc import Iterator, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

from ...engine.config import RunConfig
from ...errors import MissingRequirement
from ...models.vision.devices import DEVICES, Place
from ...models.vision.registry import MODELS, check_vision
from ...models.vision.weights import Source, fetch_file, needed, told
from . import detect_people, embed_tracklets
from .detections_file import check_detections, open_detections
from .looking import LookSettings

_PRETRAINED = ("config.json", "model.safetensors")
_SOURCES: Mapping[str, tuple[tuple[str, str, str], ...]] = {
    "people-yolo11n": (("people", "SOURCE", "local"),),
    "faces-scrfd-10g": (("faces", "SOURCE", "local"),),
    "arcface-r100": (("face_encoders", "ARCFACE_SOURCE", "local"), ("faces", "SOURCE", "detector")),
    "dinov2-l-14": (("dinov2", "SOURCE", "local"),),
}
"""Module and name of what a model's weights come from, and the option that names a file instead."""


def check_people(config: RunConfig, videos: frozenset[str] | None = None) -> None:
    """Check that detectors and encoders can run, with their weights, or that a file stands in for them.

    Weights that are neither there nor in the library's cache are fetched, as they would be on first use.

    Args:
        config: settings of the run.
        videos: names of the videos that are built from; None where they are not known yet.

    Raises:
        ConfigError: there is no such model or device. InputError: the file of detections is wrong.
        MissingRequirement: something is missing; all of it is listed.
    """
    lacks = list(dict.fromkeys(_lacks(config, videos)))
    if lacks:
        raise MissingRequirement(
            "finding people", expected="detectors and encoders with their weights, or a file of detections",
            found=f"not here: {'; '.join(lacks)}",
            fix='pip install "fabula[entities]" and fetch the weights (docs/vision.md), or give --detections',
        )  # fmt: skip


def _lacks(config: RunConfig, videos: frozenset[str] | None) -> Iterator[str]:
    detecting, embedding = config.stages.get("detect_people"), config.stages.get("embed_tracklets")
    vectors = False
    if isinstance(detecting, detect_people.Settings):
        if detecting.detections is not None:
            path = Path(detecting.detections)
            found = open_detections(path) if videos is None else check_detections(path, videos)
            vectors = bool(found.vectors)
        elif detecting.people is not None:
            yield from _lacks_of(detecting, detecting.people, detecting.faces)
        else:
            return
    if isinstance(embedding, embed_tracklets.Settings) and not vectors:
        yield from _lacks_of(embedding, embedding.face, embedding.body)


def _lacks_of(settings: LookSettings, *names: str | None) -> Iterator[str]:
    own = {model.name for model in MODELS}
    for name in names:
        if name is None:
            continue
        options = settings.options.get(name, {})
        try:
            check_vision(name, options)
        except MissingRequirement as error:
            yield f"{error.where.removeprefix('the library ')}, for {name}"
            continue
        if name in own or settings.device != DEVICES[0]:
            Place(settings.device, settings.dtype).checked()
        yield from _lacks_of_weights(name, options)


def _lacks_of_weights(name: str, options: Mapping[str, Any]) -> Iterator[str]:
    for module, attribute, option in _SOURCES.get(name, ()):
        source = getattr(import_module(f"...models.vision.{module}", __package__), attribute)
        local = options.get(option)
        try:
            _fetch(source, None if local is None else Path(str(local)))
        except MissingRequirement as error:
            yield f"{error.where}, for {name} ({error.found.splitlines()[0][:120]})"


def _fetch(source: Source, local: Path | None) -> None:
    if local is not None:
        if not local.exists():
            raise needed(source, f"no {local}")
    elif source.file:
        fetch_file(source)
    else:
        from huggingface_hub import hf_hub_download

        for file in _PRETRAINED:
            told(source, None, lambda file=file: hf_hub_download(source.repo, file, revision=source.revision))  # type: ignore[misc]
