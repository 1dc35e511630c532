"""How far people agree with each other: Fleiss' kappa, Krippendorff's alpha, share of agreeing pairs.

Question: do people who saw the same thing say the same?
Formula: Fleiss (1971) and Eq. 76; Krippendorff (2011), nominal for answers, labels and completions, ordinal
    for ratings and preferences; both allow that not everybody rated everything.
Input: lines of one kind; a unit is what was asked about one output (item, condition, method, seed).
Output: at most 1, 0 is chance; the share of agreeing pairs in [0, 1].
Undefined when: no unit has two ratings, or all ratings are the same.
Source: KathaTrace, sections A.14, F.4 and H.7.
Departures: answers are compared as accepted or not, as for judges (E.7). Ordinal agreement of compressed
    ratings says little, as the paper notes itself; it is a diagnostic.
Example: two people rate two units (1, 1) and (1, 2): one of two pairs agrees.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ..evaluation.stats.agreement import Level, fleiss_kappa, krippendorff_alpha, observed_agreement
from ..schemas.human import HumanRow
from ..schemas.katha import Question
from ..schemas.score import Score
from .answers import is_right

Unit = tuple[object, ...]
NOTHING = "no unit has two ratings, or all ratings are the same"
NO_PAIR = "no unit has two ratings"


@dataclass(frozen=True)
class Agreed:
    """Agreement of one kind of lines.

    Attributes:
        what: the kind, and for ratings and preferences the criterion.
        level: nominal or ordinal.
        pairs: share of agreeing pairs of people, mean over units.
        kappa: Fleiss' kappa; only for nominal ones.
        alpha: Krippendorff's alpha.
    """

    what: str
    level: Level
    pairs: Score
    kappa: Score | None
    alpha: Score


def agreements(rows: Sequence[HumanRow], questions: Mapping[str, Question]) -> tuple[Agreed, ...]:
    """Return agreement of every kind of lines that there is."""
    groups: dict[tuple[str, Level], list[tuple[Unit, object]]] = {}
    for row in rows:
        if row.repeat:
            continue
        unit = (row.item, row.condition, row.method, row.seed, row.baseline)
        if row.kind == "answer":
            groups.setdefault((f"answer, {row.condition}", "nominal"), []).append(
                (unit, is_right(row, questions[str(row.item)]))
            )
        elif row.kind == "moral_label":
            groups.setdefault((f"moral_label, {row.condition}", "nominal"), []).append((unit, row.labels[0]))
        elif row.kind == "completion":
            for number, done in enumerate(row.completion):
                groups.setdefault(("completion", "nominal"), []).append(((*unit, number), done))
        elif row.value is not None:
            groups.setdefault((f"{row.kind}, {row.criterion}", "ordinal"), []).append((unit, row.value))
    return tuple(_agreed(what, level, given) for (what, level), given in sorted(groups.items()))


def _agreed(what: str, level: Level, given: Sequence[tuple[Unit, object]]) -> Agreed:
    values = sorted({value for _, value in given})  # type: ignore[type-var]
    units = {unit: place for place, unit in enumerate(dict.fromkeys(unit for unit, _ in given))}
    counts = np.zeros((len(units), len(values)))
    for unit, value in given:
        counts[units[unit], values.index(value)] += 1
    sizes = counts.sum(axis=1)
    told = {"units": len(units), "units_with_two": int((sizes >= 2).sum()), "ratings": len(given)}
    return Agreed(
        what, level,
        pairs=plain(observed_agreement(counts), NO_PAIR, **told),
        kappa=plain(fleiss_kappa(counts), NOTHING, **told) if level == "nominal" else None,
        alpha=plain(krippendorff_alpha(counts, level), NOTHING, **told),
    )  # fmt: skip


def plain(value: float, why_undefined: str, **counts: int) -> Score:
    """Return a number as a score without an interval, undefined where it is ``nan``."""
    if np.isnan(value):
        return Score(value=None, status="undefined", reason=why_undefined, counts=counts)
    return Score(value=float(value), status="ok", counts=counts)
