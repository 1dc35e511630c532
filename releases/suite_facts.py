"""All that the documents of a flat release, a prompt suite or a set of episodes, are written from."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..schemas.plain_files import read_json
from .layout import CROISSANT
from .licence import Licence
from .options import PackOptions
from .selection import LeftOut

if TYPE_CHECKING:
    from .changes_since import Since
    from .flat_kind import FlatKind
    from .shapes import Shape


UNSTATED = "und"
"""Language tag of texts whose language nobody said."""


def stated_languages(folder: Path) -> tuple[str, ...]:
    """Return the language tags that the metadata of a flat release states; none where they state none."""
    try:
        document = read_json(folder / CROISSANT)
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
    """What is known about a flat release when its data files are written.

    Attributes:
        kind: what it holds.
        options: what a person said about it.
        licence: its licence.
        created_at: when the run was created.
        statistics: the content of ``statistics.json``.
        left_out: the items that the run rejected or failed on.
        rows: Parquet path -> number of rows.
        since: what changed since the release that it follows; None for a first one.
    """

    kind: "FlatKind"
    options: PackOptions
    licence: Licence
    created_at: str
    statistics: Mapping[str, Any]
    left_out: Sequence[LeftOut]
    rows: Mapping[str, int]
    since: "Since | None" = None

    @property
    def shape(self) -> "Shape":
        """The shape of releases of this kind."""
        return self.kind.shape

    @property
    def size(self) -> int:
        """How many records there are."""
        return self.totals[self.kind.unit]

    @property
    def totals(self) -> dict[str, int]:
        """How many records and parts of them there are."""
        return dict(self.statistics["totals"])

    @property
    def languages(self) -> list[str]:
        """The language tags of the texts; ``und`` where nobody said."""
        return sorted(set(self.options.languages)) or [UNSTATED]

    @property
    def makers(self) -> list[str]:
        """Who made parts of the records, each once, sorted."""
        return sorted({name.partition(": ")[2] for name in self.statistics["producers"]})

    @property
    def summary(self) -> str:
        """What the release is, in two sentences."""
        return self.kind.summary(self.statistics)
