"""Whether ``changes.json`` agrees with the release that it is in."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from ..errors import ConfigError
from ..schemas.canonical import Json
from ..schemas.issue import Issue
from .layout import CHANGES, RELEASE
from .version_step import Step, Version, is_enough

_CURE = "pack the run again, with --since"


def check_changes(folder: Path, document: Mapping[str, Any]) -> Iterator[Issue]:
    """Yield every disagreement between ``changes.json`` and ``release.json``; a first release has neither.

    Args:
        folder: the release.
        document: its ``release.json``.
    """
    previous = document.get("previous")
    there = (folder / CHANGES).is_file()
    if (previous is not None) != there:
        message = (
            f"{CHANGES} is there without it" if there else f"names a version before, and {CHANGES} is missing"
        )
        yield Issue(RELEASE, "$.previous", "changes", message, _CURE)
    if previous is None or not there:
        return
    changes = json.loads((folder / CHANGES).read_bytes())
    for name, wanted in (("previous", previous), ("version", document.get("version"))):
        if changes.get(name) != wanted:
            yield Issue(CHANGES, f"$.{name}", "changes", f"not the one in {RELEASE}", _CURE)
    yield from _check_step(changes)
    yield from _check_ids(changes, document.get("records", {}))


def _check_step(changes: Mapping[str, Any]) -> Iterator[Issue]:
    try:
        before, now = (Version.of(one["version"], CHANGES) for one in (changes["previous"], changes))
    except ConfigError as problem:
        yield Issue(CHANGES, "$.version", "changes", f"{problem.found} is no semantic version", _CURE)
        return
    step = Step[str(changes["step"]).upper()]
    if not is_enough(before, step, now):
        yield Issue(CHANGES, "$.step", "changes", f"a {step} step makes {now} of {before}", _CURE)


def _check_ids(changes: Mapping[str, Any], records: Mapping[str, Mapping[str, Json]]) -> Iterator[Issue]:
    """Yield records that are said to be there, or gone, and are not."""
    there = {name: set(hashes) for name, hashes in records.items()}
    named = [(name, one) for name, ids in changes["added"].items() for one in ids]
    named += [(one["file"], one["id"]) for one in changes["changed"]]
    for name, one in sorted(set(named)):
        if one not in there.get(name, ()):
            yield Issue(CHANGES, "$", "changes", f"{one} is not in {name}", _CURE)
    for name, ids in changes["removed"].items():
        for one in sorted(there.get(name, set()).intersection(ids)):
            yield Issue(CHANGES, "$.removed", "changes", f"{one} is in {name}", _CURE)
