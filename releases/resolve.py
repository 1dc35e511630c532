"""Where a release is: a folder, or a version on a Hub, which is fetched into the cache."""

from collections.abc import Callable
from pathlib import Path

from .hub_address import looks_like_reference


def release_folder(text: str | Path, tell: Callable[[str], None] = lambda _: None) -> Path:
    """Return the folder of a release.

    Args:
        text: a folder, or a version on a Hub such as ``user/mine@0.2.0``; a folder of that name goes first.
        tell: is told in one line what is being done.

    Returns:
        The folder given, whether it is there or not, or the one in the cache, every file of it checked.

    Raises:
        The same as :func:`fabula.releases.fetching.fetch`.
    """
    place = Path(text)
    if place.exists() or not looks_like_reference(str(text)):
        return place
    from .fetching import fetch

    return fetch(str(text), tell=tell).folder
