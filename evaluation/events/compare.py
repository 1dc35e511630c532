"""Comparing two evaluations of videos made under the same protocol: paired over prompts."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np

from ...errors import InputError, UserError
from ...schemas.canonical import plain_fields
from ..archive.archive import read_manifest
from ..archive.protocols import Difference, check_alike, nothing_to_compare
from ..archive.replies import notes_of_both
from ..stats.paired import Pair, Paired, paired
from .score import EventScores, PanelScore, score_folder
from .votes import Definitions


@dataclass(frozen=True)
class EventComparisons:
    """Methods of two evaluations against each other."""

    definitions: Definitions  # the named definitions that were used
    # those of the same name if there are any, else each against each; per verifier
    comparisons: tuple[Paired, ...]
    differences: tuple[Difference, ...] = ()  # parts of the protocol that were allowed to differ
    notes: tuple[str, ...] = ()  # what a reader must know before trusting a number

    def as_json(self) -> dict[str, Any]:
        """Return everything as plain JSON; values are fractions."""
        return {"kind": "events", **plain_fields(self)}

    def lines(self) -> Iterator[str]:
        """Yield the comparison in percentage points."""
        for difference in self.differences:
            yield f"the protocols differ in {difference.path}"
        yield "difference of completion rates (positive: the first completes more)"
        yield from (f"  {pair.line()}" for pair in self.comparisons)
        for note in self.notes:
            yield f"note: {note}"


def compare_folders(
    first: Path, second: Path, suite: Path | None, definitions: Definitions, allowed: Collection[str] = ()
) -> EventComparisons:
    """Compare the methods of two evaluation folders of kind events."""
    manifests = {str(folder): read_manifest(folder) for folder in (first, second)}
    differences = check_alike(manifests[str(first)], manifests[str(second)], allowed)
    ours, theirs = (score_folder(folder, suite, definitions).panels for folder in (first, second))
    pairs = [(a, b) for a in ours for b in theirs if a.panel.judge == b.panel.judge]
    if not pairs:
        raise InputError(
            [
                UserError(
                    str(second), what=f"no judge voted both here and in {first}",
                    fix="compare evaluations with the same judges",
                )
            ]
        )  # fmt: skip
    same = [(a, b) for a, b in pairs if a.panel.method == b.panel.method]
    comparisons = event_comparisons(same or pairs, definitions)
    return EventComparisons(definitions, comparisons, differences, notes_of_both(manifests))


def compare_within(folder: Path, suite: Path | None, definitions: Definitions) -> EventComparisons:
    """Compare the methods of one evaluation folder of kind events with each other."""
    pairs = pairs_within(score_folder(folder, suite, definitions))
    if not pairs:
        raise InputError([nothing_to_compare(folder)])
    notes = notes_of_both({str(folder): read_manifest(folder)})
    return EventComparisons(definitions, event_comparisons(pairs, definitions), notes=notes)


def event_comparisons(
    pairs: Sequence[tuple[PanelScore, PanelScore]], definitions: Definitions
) -> tuple[Paired, ...]:
    """Return the comparison of each pair, p-values corrected for the number of pairs."""
    return paired([_pair(a, b, definitions) for a, b in pairs], "prompt", definitions)


def pairs_within(scores: EventScores) -> list[tuple[PanelScore, PanelScore]]:
    """Return every two methods under the same verifier that have a prompt in common that counts."""
    return [
        (ours, other)
        for ours, other in combinations(scores.panels, 2)
        if ours.panel.judge == other.panel.judge
        and ours.panel.method != other.panel.method
        and comparable(ours, other, scores.definitions)
    ]


def comparable(ours: PanelScore, other: PanelScore, definitions: Definitions) -> bool:
    """Whether two methods have a prompt in common that counts."""
    return bool(_differences(ours, other, definitions))


def _differences(ours: PanelScore, other: PanelScore, definitions: Definitions) -> list[float]:
    """Return the differences over the prompts that both have, without an answer as defined."""
    theirs = {video.unit: video.rate for video in other.videos}
    values = []
    for video in ours.videos:
        pair = [video.rate, theirs.get(video.unit)]
        if video.unit not in theirs or (definitions.nonresponse == "excluded" and None in pair):
            continue
        values.append((pair[0] or 0.0) - (pair[1] or 0.0))
    return values


def _pair(ours: PanelScore, other: PanelScore, definitions: Definitions) -> Pair:
    differences = _differences(ours, other, definitions)
    if not differences:
        raise InputError(
            [
                UserError(
                    other.panel.method, what=f"it has no prompt in common with {ours.panel.method}",
                    fix="compare evaluations of the same prompts",
                )
            ]
        )  # fmt: skip
    return Pair(
        ours.panel.method, other.panel.method, np.array(differences), {"judge": ours.panel.judge}
    )  # fmt: skip
