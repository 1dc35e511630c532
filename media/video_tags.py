"""What video files say about themselves in their own metadata, and whether it tells their makers apart."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from ..errors import MissingRequirement

_PLAIN = frozenset(("major_brand", "minor_version", "language", "handler_name"))
"""Tags that say nothing of who made a file."""


def video_tags(path: Path) -> dict[str, str]:
    """Return the tags of a video and of its streams, but for those that say nothing of its maker.

    A file that cannot be opened has none: whether it can be used is for :mod:`.video` to say.

    Raises:
        MissingRequirement: the extra ``video`` is not installed.
    """
    try:
        import av
    except ImportError as error:
        raise MissingRequirement(
            "videos",
            what="reading videos needs the library PyAV, which is not installed",
            fix="pip install 'fabula[video]'",
        ) from error
    try:
        with av.open(str(path), metadata_errors="replace") as container:
            found = dict(container.metadata)
            for stream in container.streams:
                found.update(stream.metadata)
    except Exception:  # noqa: BLE001 - decoder boundary
        return {}
    return {name: str(value) for name, value in sorted(found.items()) if name.lower() not in _PLAIN}


def telling_tags(videos: Mapping[str, Sequence[Path]]) -> list[str]:
    """Return the tags whose values differ between the makers of videos, sorted.

    Args:
        videos: maker -> some of its videos.

    Raises:
        MissingRequirement: the extra ``video`` is not installed.
    """
    values: dict[str, dict[str, set[str]]] = {}
    for maker, paths in videos.items():
        for path in paths:
            for name, value in video_tags(path).items():
                values.setdefault(name, {}).setdefault(maker, set()).add(value)
    return sorted(
        name
        for name, by_maker in values.items()
        if len(by_maker) < len(videos) or len({frozenset(one) for one in by_maker.values()}) > 1
    )
