"""What identifies the data that an evaluation was made with."""

from pathlib import Path

from ..errors import InputError, UserError
from ..releases.layout import ANNOTATIONS, VARIANTS
from ..schemas.canonical import digest, sha256_file


def release_sha256(folder: str | Path) -> str:
    """Return the SHA-256 of what a release asks: its records and contrastive variants, file by file.

    Licence, card and version are left out: what was judged is the same whatever they say.

    Raises:
        InputError: one of the files cannot be read.
    """
    place = Path(folder)
    try:
        return digest({name: sha256_file(place / name) for name in (ANNOTATIONS, VARIANTS)})
    except OSError as error:
        raise InputError(
            [
                UserError(
                    str(place),
                    what=f"this is not a release with {ANNOTATIONS} and {VARIANTS}: {error}",
                    fix="give the folder of a packed release",
                )
            ]
        ) from error
