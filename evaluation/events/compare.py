"""Comparing two evaluations of videos made under the same protocol: paired over prompts."""

from collections.abc import Collection, Sequence
from itertools import combinations, product
from pathlib import Path

import numpy as np

from ...errors import InputError, UserError
from ..archive.protocols import nothing_to_compare
from ..comparing import Comparisons, read_sides
from ..stats.paired import Pair, Paired, paired
from .score import EventScores, PanelScore, score_folder
from .votes import Definitions

HEADING = "difference of completion rates (positive: the first completes more)"


def compare_folders(
    first: Path, second: Path, suite: Path | None, definitions: Definitions, allowed: Collection[str] = ()
) -> Comparisons:
    """Compare the methods of two evaluation folders of kind events; of one, its methods with each other.

    Those of the same name if there are any, else each against each; per verifier.
    """
    sides = read_sides(first, second, lambda folder: score_folder(folder, suite, definitions), allowed)
    if len(sides.scores) == 1:
        pairs, problem = pairs_within(sides.scores[0]), nothing_to_compare(first)
    else:
        every = product(*(scores.panels for scores in sides.scores))
        judged = [(a, b) for a, b in every if a.panel.judge == b.panel.judge]
        pairs = [(a, b) for a, b in judged if a.panel.method == b.panel.method] or judged
        problem = UserError(
            str(second), what=f"no judge voted both here and in {first}",
            fix="compare evaluations with the same judges",
        )  # fmt: skip
    if not pairs:
        raise InputError([problem])
    comparisons = event_comparisons(pairs, definitions)
    return Comparisons("events", definitions, HEADING, comparisons, sides.differences, sides.notes)


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
        and _differences(ours, other, scores.definitions)
    ]


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
