"""All that the documents of a release are written from, in one place."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..schemas.canonical import Json
from ..schemas.vocabulary import vocabulary
from .additions import Additions
from .changes_since import Since
from .composition import Composition
from .layout import SPLIT_FILES
from .licence import Licence
from .options import PackOptions
from .selection import LeftOut
from .shapes import KATHA, Shape


@dataclass(frozen=True, slots=True)
class Facts:
    """What is known about a release when its data files are written.

    Attributes:
        options: what a person said about it.
        licence: its licence.
        created_at: when the run was created.
        composition: counts over its public records.
        statistics: the content of ``statistics.json``.
        balance: the content of ``moral_balance_requirements.json``.
        hidden: counts of the hidden-test stories.
        left_out: the stories that are not in it.
        left_out_hidden: how many more there are, of the hidden test split.
        withdrawn: the stories that were taken out for good, public ones only.
        withdrawn_hidden: how many more there are, of the hidden test split.
        left_out_files: the files of Table 23 that are not in it, with reasons.
        rows: Parquet path -> number of rows.
        more: reviews, subsets, canary and commitments.
        since: what changed since the release that it follows; None for a first one.
    """

    options: PackOptions
    licence: Licence
    created_at: str
    composition: Composition
    statistics: Mapping[str, Any]
    balance: Mapping[str, Any]
    hidden: Mapping[str, int]
    left_out: Sequence[LeftOut]
    left_out_hidden: int
    left_out_files: Sequence[Mapping[str, Json]]
    rows: Mapping[str, int]
    more: Additions
    since: Since | None = None
    withdrawn: Sequence[LeftOut] = ()
    withdrawn_hidden: int = 0

    @property
    def shape(self) -> Shape:
        """The shape of releases of stories."""
        return KATHA

    @property
    def size(self) -> int:
        """How many stories are public."""
        return self.composition.totals["stories"]

    @property
    def splits(self) -> list[str]:
        """The public splits that hold a story, in the order train, validation, test."""
        return [split for split in SPLIT_FILES if split in self.composition.by_split]

    @property
    def reviewed(self) -> int:
        """How many public stories people reviewed."""
        statuses = self.statistics["review"]["validation_status"]
        reviewed = vocabulary("validation_status").having("reviewed")
        return sum(statuses[status]["count"] for status in reviewed if status in statuses)

    @property
    def languages(self) -> list[str]:
        """The language tags of the public stories, sorted."""
        return sorted(self.composition.languages)

    @property
    def summary(self) -> str:
        """What the release is, in three sentences."""
        totals = self.composition.totals
        if self.reviewed == totals["stories"]:
            review = "People reviewed every record."
        elif self.reviewed:
            review = f"People reviewed {self.reviewed} of the {totals['stories']} records."
        else:
            review = "No person has reviewed the records."
        return (
            f"{totals['stories']} short stories with {totals['scenes']} scenes, "
            f"{totals['transitions']} transitions, {totals['questions']} recoverability questions and "
            f"{totals['variants']} contrastive variants, for testing whether the meaning of a story survives "
            f"when it is told in pictures. {review}"
        )
