"""What every evaluation with judges says of their replies: how many of each kind, from which models."""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from ..engine.manifest import Manifest
from ..prompts.loader import load_prompt
from ..schemas.canonical import Json
from ..schemas.judgement import Judgement
from .attempts import ReplyCounts

IDENTITY = ("structured", "unsupported", "extra")
"""Those settings of a model that change its answers."""


class ReplyTally:
    """Counts the replies of judges, and what was not asked yet.

    Args:
        run: the manifest of the run.
    """

    def __init__(self, run: Manifest) -> None:
        self._run = run
        self._replies = ReplyCounts()
        self._unasked: Counter[str] = Counter()

    def count(self, judgement: Judgement) -> None:
        """Take in one judgement."""
        self._replies.count(judgement)

    def leave(self, row: Json) -> None:
        """Take in one question that was not asked yet."""
        self._unasked[row["judge"]["spec"]] += 1

    def environment(self, selection: str) -> dict[str, Any]:
        """Return the part ``environment`` of the manifest.

        Args:
            selection: the stage whose settings say what was chosen.
        """
        run = self._run
        return {
            "fabula": run.fabula_version,
            "libraries": {name: text for one in run.stages for name, text in one.libraries.items()},
            "created_at": run.created_at,
            "selection": run.settings[selection],
            "sources": [{"role": one.role, "name": one.name} for one in run.sources],
            "judges": self._replies.as_json(),
            **({"incomplete": {"unasked": dict(sorted(self._unasked.items()))}} if self._unasked else {}),
        }


def identity_of(options: Mapping[str, Json]) -> dict[str, Any]:
    """Return those settings of a model that change its answers."""
    return {name: options[name] for name in IDENTITY if name in options}


def labels_of(prompts: Iterable[str]) -> dict[str, str]:
    """Return id -> id, version and hash of prompts, sorted."""
    return {name: load_prompt(name).label for name in sorted(prompts)}
