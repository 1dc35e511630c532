"""What building episodes needs: looked up before any video is opened, and listed at once."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from ...engine.config import RunConfig
from ...engine.stage import Item, Made, Tools
from ...errors import InputError, MissingRequirement
from ...schemas.ids import slug
from . import detect_people, load_videos
from .media_needs import check_media
from .people_needs import check_people


def check_needs(config: RunConfig, videos: Sequence[Path]) -> None:
    """Check that libraries, devices and weights are there, and that a file of detections is of these videos.

    Whether chat models can be asked is checked by the engine.

    Raises:
        ConfigError: there is no such detector, encoder or device.
        InputError: something in the file of detections is wrong, or it is about other videos.
        MissingRequirement: something is missing; all of it is listed.
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
    for place in videos:
        for path in (place, *place.rglob("*")) if place.is_dir() else (place,):
            yield from (path.name, path.stem, slug(path.stem))


def _ids(videos: Sequence[Path]) -> Iterator[str]:
    """Yield the ids that the videos get."""
    item = Item("sources", {"sources": [{"role": load_videos.ROLE} for _ in videos]})
    tools = Tools(load_videos.Settings(), "", paths=tuple(videos))
    for child in load_videos.run(item, tools):
        if isinstance(child.outcome, Made):
            yield child.id
