"""What building episodes needs: looked up before any video is opened."""

from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path

from ...engine.config import RunConfig
from ...engine.stage import Item, Made, Tools
from ...errors import ConfigError, InputError, MissingRequirement
from ...models.vision.devices import Place
from ...models.vision.registry import check_vision
from ...schemas.ids import slug
from . import detect_people, embed_tracklets, load_videos
from .detections_file import open_detections
from .media_needs import check_media

_FILES = ("local", "head", "file")


def check_needs(config: RunConfig) -> None:
    """Check that libraries, devices and named files of weights are there for all stages but model stages.

    Raises:
        ConfigError: there is no such detector, encoder or device.
        MissingRequirement: something is missing; all of it is listed.
    """
    check_media(config)
    lacks = list(_lacks(config))
    if lacks:
        raise MissingRequirement(
            "finding people", expected="what the chosen detectors and encoders need",
            found=f"not here: {'; '.join(lacks)}",
            fix='pip install "fabula[entities]", or --detections FILE with what was found elsewhere'
            " (docs/identities.md)",
        )  # fmt: skip


def _lacks(config: RunConfig) -> Iterator[str]:
    looking, encoding = config.stages["detect_people"], config.stages["embed_tracklets"]
    assert isinstance(looking, detect_people.Settings)
    assert isinstance(encoding, embed_tracklets.Settings)
    chosen: list[tuple[str | None, detect_people.Settings | embed_tracklets.Settings]] = []
    if looking.detections is None:
        chosen += [(looking.people, looking), (looking.faces, looking)]
        chosen += [(encoding.face, encoding), (encoding.body, encoding)]
    if find_spec("scipy") is None:
        yield "scipy, for tracking"
    for name, settings in chosen:
        if name is None:
            continue
        options = settings.options.get(name, {})
        try:
            check_vision(name, options)
        except MissingRequirement as error:
            yield f"{error.where.removeprefix('the library ')}, for {name}"
            continue
        for key in _FILES:
            value = options.get(key)
            if isinstance(value, str) and not Path(value).exists():
                yield f"{value}, which options.{name}.{key} names"
        Place(settings.device, settings.dtype).checked()


def check_given(path: Path, videos: Sequence[Path]) -> None:
    """Check a file of detections: that it can be read to its end, and is about the videos of the build.

    Raises:
        ConfigError: there is no such file. InputError: something in it is wrong, or it is about other videos.
    """
    if not path.is_file():
        raise ConfigError(
            "--detections",
            expected="a file",
            found=f"none at {path}",
            fix="check the path; see docs/identities.md",
        )
    detections = open_detections(path)
    if detections.strangers(frozenset(_quick_names(videos))):
        strangers = detections.strangers(frozenset(_names(videos)))
        if strangers:
            raise InputError(strangers)


def _quick_names(videos: Sequence[Path]) -> Iterator[str]:
    """Yield the names of all files, without reading any; ids are made of them unless two are the same."""
    for place in videos:
        for path in (place, *place.rglob("*")) if place.is_dir() else (place,):
            yield from (path.name, path.stem, slug(path.stem))


def _names(videos: Sequence[Path]) -> Iterator[str]:
    """Yield the ids that the videos get, and the names of their files."""
    item = Item("sources", {"sources": [{"role": load_videos.ROLE} for _ in videos]})
    tools = Tools(load_videos.Settings(), "", paths=tuple(videos))
    for child in load_videos.run(item, tools):
        if isinstance(child.outcome, Made):
            name = str(child.outcome.fields["found"]["name"])
            yield from (child.id, name, Path(name).stem)
