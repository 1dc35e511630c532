"""Files of the Hub: taken from the library's cache, else fetched, if the Hub can be reached.

Left to itself the client tries a Hub that cannot be reached for half a minute, and again for the next file.
So it is asked once, without another try, whether it answers at all.
"""

import time
from pathlib import Path

from .devices import missing

PATIENCE = 5.0
"""Seconds that the Hub has for its first answer."""
BELIEVED = 60.0
"""Seconds for which what was found out about the Hub is believed."""

_asked: dict[str, tuple[float, str | None]] = {}


def hub_file(repo: str, file: str, revision: str | None = None, *, pinned: bool = True) -> Path:
    """Return a file of the Hub.

    Args:
        repo: id of the repository.
        file: name of the file in it.
        revision: a commit; None for the newest one.
        pinned: whether a commit or a hash says what the file is: a copy in the cache is then taken without
            asking whether there is a newer one.

    Raises:
        ConnectionError: it is not in the cache, and the Hub cannot be reached.
        MissingRequirement: huggingface_hub is not installed.
        Exception: whatever the client raises where the Hub answers, and has no such file.
    """
    try:
        from huggingface_hub import hf_hub_download
        from huggingface_hub.errors import LocalEntryNotFoundError
    except ImportError as error:
        raise missing("huggingface_hub") from error
    lost = None
    if not pinned:
        lost = unreachable()
    if pinned or lost is not None:
        try:
            return Path(hf_hub_download(repo, file, revision=revision, local_files_only=True))
        except LocalEntryNotFoundError:
            lost = unreachable()
    if lost is not None:
        raise ConnectionError(f"it is not in the cache, and {lost}")
    return Path(hf_hub_download(repo, file, revision=revision))


def unreachable() -> str | None:
    """Return why the Hub cannot be reached, None where it answers, whatever it says; asked once in a while.

    Raises:
        MissingRequirement: huggingface_hub is not installed.
    """
    try:
        from huggingface_hub import constants, get_session
    except ImportError as error:
        raise missing("huggingface_hub") from error
    place, now = constants.ENDPOINT, time.monotonic()
    if constants.HF_HUB_OFFLINE:
        return "HF_HUB_OFFLINE forbids to ask the Hub"
    if place in _asked and now - _asked[place][0] < BELIEVED:
        return _asked[place][1]
    lost: str | None = None
    try:
        get_session().head(place, timeout=PATIENCE)
    except Exception as error:  # noqa: BLE001 - adapter boundary: whatever keeps an answer away
        lost = f"the Hub at {place} cannot be reached ({type(error).__name__})"
    _asked[place] = (time.monotonic(), lost)
    return lost
