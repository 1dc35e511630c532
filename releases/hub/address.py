"""Names on a Hub: of a data set repository, and of one version of it."""

import os
import re
from dataclasses import dataclass
from urllib.parse import urlsplit

from ...errors import ConfigError, HubUnavailable
from ..options import REPO

_REVISION = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]{0,126}", re.ASCII)
_COMMIT = re.compile(r"[0-9a-f]{40}", re.ASCII)
_REFERENCE = re.compile(r"[^@/\\\s]+/[^@\\\s]+@[^@\\\s]*")


@dataclass(frozen=True, slots=True)
class Reference:
    """One version of a repository."""

    repo: str  # such as ``user/mine``
    revision: str  # a tag, or the 40 digits of a commit

    @property
    def is_commit(self) -> bool:
        """Whether the revision is a commit's own name, which nobody can move."""
        return _COMMIT.fullmatch(self.revision) is not None

    def __str__(self) -> str:
        return f"{self.repo}@{self.revision}"


def checked_repo(text: str, where: str = "--repo") -> str:
    """Return the name of a repository after checking its form."""
    if REPO.fullmatch(text):
        return text
    raise ConfigError(
        where,
        expected="OWNER/NAME, each of 1 to 96 letters, digits, dots, dashes, underscores, without -- or ..",
        found=repr(text),
        fix="give the repository as its address has it, such as user/mine",
    )


def checked_endpoint(given: str | None = None) -> None:
    """Check the form of the Hub's address: the one given, else that of ``HF_ENDPOINT``; nobody is asked."""
    text = given or os.environ.get("HF_ENDPOINT")
    if not text:
        return
    try:
        parts = urlsplit(text)
        sound = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        sound = False
    if not sound:
        raise HubUnavailable(
            "HF_ENDPOINT" if given is None else "the Hub's address",
            expected="the web address of a Hub, such as https://huggingface.co",
            found=repr(text.rpartition("@")[2]),  # a password may stand before it
            fix="correct HF_ENDPOINT, or unset it for huggingface.co",
        )


def parse_reference(text: str, where: str = "REPO@VERSION") -> Reference:
    """Return what ``user/mine@0.2.0`` names."""
    repo, at, revision = text.partition("@")
    if at and _REVISION.fullmatch(revision) and ".." not in revision:
        return Reference(checked_repo(repo, where), revision)
    raise ConfigError(
        where,
        what=f"{text!r} has no version (OWNER/NAME@VERSION; a tag, or the 40 digits of a commit)",
        fix="add the version, such as user/mine@0.2.0, so that it stays clear which data were used",
    )


def looks_like_reference(text: str) -> bool:
    """Return whether a text is meant as ``user/mine@0.2.0``, rightly written or not."""
    return _REFERENCE.fullmatch(text) is not None and not text.startswith((".", "~"))
