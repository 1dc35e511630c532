"""What the release that lies at a place is called."""

from collections.abc import Callable, Sequence
from pathlib import Path

from ..errors import FabulaError
from ..schemas.layout import RELEASE
from ..schemas.plain_files import read_json


def release_name(place: Path) -> str:
    """Return name and version of the release that a folder or file belongs to, such as "fables 0.2.0".

    Empty where no ``release.json`` lies in it or in the two folders above.
    """
    for folder in (place, *place.absolute().parents)[:3]:
        try:
            document = read_json(folder / RELEASE, follow=True)
            return f"{document['about']['name'] or folder.name} {document['version']}"
        except (OSError, ValueError, KeyError, TypeError, FabulaError):
            continue
    return ""


def evaluated_name(places: Sequence[Path], sha256_of: Callable[[Path], str], wanted: object) -> str:
    """Return name and version of the release that was evaluated; empty where it is not at hand."""
    for place in places:
        name = release_name(place)
        try:
            if name and sha256_of(place) == wanted:
                return name
        except (OSError, ValueError, FabulaError):
            continue
    return ""
