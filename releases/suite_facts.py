"""All that the documents of a released prompt suite are written from."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..schemas.events import DIFFICULTIES
from .layout import CROISSANT
from .licence import Licence
from .options import PackOptions
from .selection import LeftOut

if TYPE_CHECKING:
    from .changes_since import Since


UNSTATED = "und"
"""Language tag of prompts whose language nobody said."""


def stated_languages(folder: Path) -> tuple[str, ...]:
    """Return the language tags that the metadata of a packed suite states; none where they state none."""
    try:
        document = json.loads((folder / CROISSANT).read_bytes())
    except (OSError, ValueError, RecursionError):
        return ()
    tags = document.get("inLanguage") if isinstance(document, dict) else None
    return (
        tuple(tag for tag in tags if isinstance(tag, str) and tag != UNSTATED)
        if isinstance(tags, list)
        else ()
    )


@dataclass(frozen=True, slots=True)
class SuiteFacts:
    """What is known about a suite when its data files are written.

    Attributes:
        options: what a person said about it.
        licence: its licence.
        created_at: when the run was created.
        statistics: the content of ``statistics.json``.
        left_out: the prompts that the run rejected or failed on.
        rows: Parquet path -> number of rows.
        since: what changed since the release that it follows; None for a first one.
    """

    options: PackOptions
    licence: Licence
    created_at: str
    statistics: Mapping[str, Any]
    left_out: Sequence[LeftOut]
    rows: Mapping[str, int]
    since: "Since | None" = None

    @property
    def totals(self) -> dict[str, int]:
        """How many prompts and events there are."""
        return dict(self.statistics["totals"])

    @property
    def languages(self) -> list[str]:
        """The language tags of the prompts; ``und`` where nobody said."""
        return sorted(set(self.options.languages)) or [UNSTATED]

    @property
    def graded(self) -> bool:
        """Whether prompts have a difficulty."""
        return bool(set(DIFFICULTIES) & set(self.statistics["classes"]))

    @property
    def makers(self) -> list[str]:
        """Who wrote prompts or listed events, each once, sorted."""
        return sorted({name.partition(": ")[2] for name in self.statistics["producers"]})

    @property
    def summary(self) -> str:
        """What the suite is, in two sentences."""
        totals = self.totals
        return (
            f"{totals['prompts']} prompts that name {totals['events']} consecutive events, for testing which "
            "of the events of its prompt a generated video shows completed. No person has reviewed them as a "
            "whole."
        )
