"""What an audit measures: every measure is a share of counts that add over stories, or kappa."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from ..evaluation.stats.uncertainty import Uncertainty
from ..schemas.values import Score
from ..schemas.vocabulary import vocabulary
from ..validators.resampling import divided, resampled_sums

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Measure:
    """One measure of drafts."""

    label: str  # its name for readers
    meaning: str  # what is counted, out of what
    part: str  # the part of a record that it is about
    higher: bool = True  # whether the higher value is the better one


def _two_sided(name: str, part: str, label: str, what: str) -> dict[str, Measure]:
    return {
        f"{name}_precision": Measure(f"{label}, precision", f"{what} of the draft that gold has, too", part),
        f"{name}_recall": Measure(f"{label}, recall", f"{what} of gold that the draft has, too", part),
    }


_EXACT, _NEAR = "at the same place", "within one sentence"
MEASURES: Mapping[str, Measure] = {
    **_two_sided("boundaries", "scenes", "Scene boundaries", f"scene boundaries ({_EXACT})"),
    "boundaries_f1": Measure("Scene boundaries, F1", f"both, {_EXACT}", "scenes"),
    **_two_sided("near_boundaries", "scenes", "Boundaries, nearly", f"scene boundaries ({_NEAR})"),
    "near_boundaries_f1": Measure("Boundaries, nearly, F1", f"both, {_NEAR}", "scenes"),
    "window_diff": Measure("WindowDiff", "windows with other numbers of boundaries", "scenes", higher=False),
    "pk": Measure("Pk", "windows that one divides and the other does not", "scenes", higher=False),
    **_two_sided("characters", "scenes", "Characters", "characters of a scene"),
    **_two_sided("actions", "scenes", "Decisive acts", "actions of scenes"),
    **_two_sided("must_show", "scenes", "Must show", "things that must be visible"),
    "transitions_matched": Measure(
        "Transitions", f"transitions of gold whose boundary the draft has ({_NEAR})", "transitions"
    ),
    "transition_types": Measure(
        "Types agree", "matched transitions of the same type, where both give one", "transitions"
    ),
    "transition_kappa": Measure("Types, kappa", "agreement beyond chance (Cohen 1960)", "transitions"),
    **_two_sided("causes", "transitions", "Causes", "stated causes of matched transitions"),
    "questions_matched": Measure(
        "Questions", "questions of gold with one of the same type on the same scenes", "questions"
    ),
    "answers_of_matched": Measure(
        "Answers of matched", "accepted answers of matched gold questions that the draft accepts", "questions"
    ),
    "answers": Measure(
        "Answers", "accepted answers of all gold questions that the draft accepts", "questions"
    ),
    "blind_draft": Measure(
        "Sound by blind answers",
        "draft questions that a model, from the text, answers as accepted",
        "questions",
    ),
    "blind_gold": Measure("The same, gold", "gold questions that the same model answers so", "questions"),
    "variants_valid": Measure("Variants valid", "variants without a failed check", "variants"),
    "variants_read": Measure("Variants read", "variants that a model or an author judged", "variants"),
    "narrative_type": Measure("Narrative type", "records with the type of gold", "labels"),
    "moral_label": Measure("Moral label", "records with the label of gold", "labels"),
    "complete": Measure("Complete", "records that lack nothing that a release requires", "record"),
    "checked": Measure("Checked", "records whose checks were all made and passed, or reviewed", "record"),
}
"""Name -> measure, in the order of tables."""
KAPPA = "transition_kappa"
TYPES = vocabulary("transition_type").values


@dataclass(slots=True)
class Counts:
    """What was counted in one story."""

    sums: dict[str, tuple[int, int]] = field(default_factory=dict)  # measure -> how many of how many
    # (type in gold, type in the draft) of matched transitions -> how many
    types: Counter[tuple[str, str]] = field(default_factory=Counter)

    def add(self, name: str, number: int, total: int) -> None:
        """Count so many of so many."""
        before = self.sums.get(name, (0, 0))
        self.sums[name] = (before[0] + number, before[1] + total)


def scores(stories: Sequence[Counts], uncertainty: Uncertainty) -> dict[str, Score]:
    """Return every measure over all stories, with its interval over resampled stories."""
    names = [name for name in MEASURES if name != KAPPA]
    sums = np.array([[story.sums.get(name, (0, 0)) for name in names] for story in stories], dtype=np.float64)
    cells = np.array(
        [[story.types[own, other] for own in TYPES for other in TYPES] for story in stories], dtype=np.float64
    )
    columns = np.concatenate([sums.reshape(len(stories), -1), cells], axis=1)
    resamples = uncertainty.resamples if len(stories) > 1 else 0
    drawn = resampled_sums(columns, resamples, uncertainty.seed)
    values, replicates, own = (_values(rows, len(names)) for rows in (columns.sum(axis=0), drawn, columns))
    known = (~np.isnan(own)).sum(axis=0)
    known[-1] = (cells.sum(axis=1) > 0).sum()
    lowest = np.zeros(len(values))
    lowest[-1] = -1.0
    low, high = uncertainty.ends(values, replicates, known, (lowest, 1.0))
    totals = columns.sum(axis=0)
    shown = {}
    for position, name in enumerate((*names, KAPPA)):
        pair = totals[2 * position : 2 * position + 2] if name != KAPPA else (None, cells.sum())
        shown[name] = _score(values[position], (low[position], high[position]), pair)
    return {name: shown[name] for name in MEASURES}


def _values(rows: Floats, shares: int) -> Floats:
    """Return the shares of sums and kappa, shape (..., shares + 1)."""
    sums, cells = rows[..., : 2 * shares], rows[..., 2 * shares :]
    rates = divided(sums[..., 0::2], sums[..., 1::2])
    return np.concatenate([rates, _kappa(cells)[..., None]], axis=-1)


def _kappa(cells: Floats) -> Floats:
    """Return Cohen's kappa of flattened tables, shape (...); ``nan`` where chance alone explains all."""
    table = cells.reshape(*cells.shape[:-1], len(TYPES), len(TYPES))
    total = table.sum(axis=(-2, -1))
    agreed = divided(np.trace(table, axis1=-2, axis2=-1), total)
    chance = divided((table.sum(axis=-1) * table.sum(axis=-2)).sum(axis=-1), total**2)
    return divided(agreed - chance, 1 - chance)


def _score(value: float, ends: tuple[float, float], pair: Sequence[float | None]) -> Score:
    if np.isnan(value):
        return Score(value=None, status="undefined", reason="there is nothing to count")
    low, high = (None if np.isnan(end) else float(end) for end in ends)
    number, total = (None if part is None else float(part) for part in pair)
    return Score(value=float(value), status="ok", low=low, high=high, numerator=number, denominator=total)
