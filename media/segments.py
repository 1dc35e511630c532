"""What was found in the parts of a long film, kept on disk as each is done: a kill costs one part."""

import json
import zlib
from pathlib import Path

from ..schemas.canonical import Json, canonical_bytes, digest, write_atomic


class Segments:
    """The parts of one piece of work, by number from 0; what is damaged counts as not there.

    Args:
        folder: where they are kept; None keeps nothing.
        basis: all that what is kept depends on.
    """

    def __init__(self, folder: Path | None = None, basis: Json = None) -> None:
        self.folder = None if folder is None else folder / digest(basis)[:32]

    def get(self, number: int) -> Json | None:
        """Return what was kept of a part, or None."""
        if self.folder is None:
            return None
        try:
            return json.loads(zlib.decompress((self.folder / f"{number:06d}").read_bytes()))
        except (OSError, ValueError, zlib.error):
            return None

    def put(self, number: int, value: Json) -> None:
        """Keep a part; it is on disk when this returns."""
        if self.folder is not None:
            self.folder.mkdir(parents=True, exist_ok=True)
            write_atomic(self.folder / f"{number:06d}", [zlib.compress(canonical_bytes(value))])
