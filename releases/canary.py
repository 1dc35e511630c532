"""The canary: a line that marks copies of a benchmark, so that they can be left out of training data."""

import re
import uuid
from collections.abc import Iterator, Mapping
from pathlib import Path

from ..schemas.canonical import Json, canonical_text
from ..schemas.layout import CANARY, CARD, README, RELEASE
from ..schemas.plain_files import read_plain
from ..schemas.values import Issue

CANARY_FORM = re.compile(
    r"fabula-canary-[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", re.ASCII
)
_SPACE = uuid.UUID("6f0f5b0e-3c1d-5e0a-9a55-7d1f0a6c2b42")
_CURE = "pack the release again"


def make_canary(name: str, created_at: str) -> str:
    """Return the canary of a benchmark that has none yet."""
    return f"fabula-canary-{uuid.uuid5(_SPACE, canonical_text([name, created_at]))}"


def canary_file(canary: str, title: str) -> bytes:
    """Return the content of ``CANARY.txt``."""
    lines = (
        f"This folder holds the benchmark {title}. It exists to test models, not to train them.",
        "Leave every document with this line out of training data, and keep the line in every copy:",
        "",
        canary,
        "",
    )
    return "\n".join(lines).encode("utf-8")


def check_canary(folder: Path, document: Mapping[str, Json]) -> Iterator[Issue]:
    """Yield the places of a release that lack its canary.

    A release that was packed before there were canaries states none, and is not looked at.
    """
    if "canary" not in document:
        return
    canary = document["canary"]
    if not isinstance(canary, str) or not CANARY_FORM.fullmatch(canary):
        yield Issue(RELEASE, "$.canary", "canary", f"this is not a canary: {str(canary)[:80]!r}", _CURE)
        return
    holders = (CANARY,) if document.get("visibility") == "hidden" else (CANARY, CARD, README)
    for name in holders:
        path = folder / name
        if not path.is_file() or canary.encode("ascii") not in read_plain(path):
            yield Issue(name, "$", "canary", f"does not hold {canary}", _CURE)
