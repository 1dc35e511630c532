"""What finding people needs: looked up and fetched before any video is opened, and listed at once.

A file of detections is read to its end; with vectors in it, nothing else is needed.
"""

from collections.abc import Iterator
from pathlib import Path

from ...engine.config import RunConfig
from ...errors import MissingRequirement
from ...models.vision.needs import Lack, lacks_of, listed
from . import detect_people, embed_tracklets
from .detections_file import check_detections, open_detections


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
    lacks = list(_lacks(config, videos))
    if lacks:
        raise MissingRequirement(
            "finding people",
            what=f"detectors or encoders, or their weights, are not installed: {listed(lacks)}",
            fix='pip install "fabula[entities]" and fetch the weights, or name your files (docs/vision.md);'
            " or give --detections FILE (docs/identities.md);"
            " or build without people: --set detect_people.people=none",
        )


def _lacks(config: RunConfig, videos: frozenset[str] | None) -> Iterator[Lack]:
    detecting, embedding = config.stages.get("detect_people"), config.stages.get("embed_tracklets")
    vectors = False
    if isinstance(detecting, detect_people.Settings):
        if detecting.detections is not None:
            path = Path(detecting.detections)
            found = open_detections(path) if videos is None else check_detections(path, videos)
            vectors = bool(found.vectors) or not found.columns
        elif detecting.people is not None:
            yield from lacks_of(detecting, detecting.people, detecting.faces)
        else:
            return
    if isinstance(embedding, embed_tracklets.Settings) and not vectors:
        yield from lacks_of(embedding, embedding.face, embedding.body)
