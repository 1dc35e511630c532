"""What the plan changes with the renderer held, and what the renderer changes with the plan held (Table 53).

Planner effect
--------------
Question: what does a plan change, whichever renderer draws it? And a renderer, whichever plan it draws?
Formula: of two plans a and b, the mean over renderers r of value(a, r) - value(b, r), r being those that were
    evaluated with both; the renderer effect is the same the other way round. The value is over the questions
    that are valid for every method of that comparison, with every seed (moral targets: over its stories).
Input: the verdicts of all methods.
Output: a difference of shares; for gaps, negative says that the first plan loses less.
Undefined when: no renderer was evaluated with both, or no question is valid for all of them.
Uncertainty: stories are drawn with replacement, all methods together, after the seeds of a story are
    averaged; the signed-rank test is over the stories' own mean differences.
Source: KathaTrace 4.4, G.5, I.2, Tables 4 and 53.
Departures from the source: it gives effects with one renderer (FLUX) and with one plan (Gemma-ST); here they
    are means over all, and the tables with one held stand beside them.
Example: plan a has STG 0.30 with one renderer and 0.26 with the other, plan b 0.40 and 0.38: the planner
    effect is ((0.30 - 0.40) + (0.26 - 0.38)) / 2 = -0.11.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from ...evaluation.recoverability import columns
from ...evaluation.recoverability.columns import moral_columns
from ...evaluation.recoverability.definitions import Definitions
from ...evaluation.recoverability.estimates import Sheet
from ...evaluation.recoverability.items import LATENT, Items
from ...evaluation.recoverability.method import Method
from ...evaluation.recoverability.pooling import Sums, sums_of
from ...evaluation.recoverability.recoverability import Rates, values_of
from ...evaluation.recoverability.validity import common_questions
from ...evaluation.stats.paired import Pair, Paired, paired

Floats = NDArray[np.float64]
Factor = Literal["plan", "renderer"]
VALUES: Mapping[str, str] = {
    "image": "From images", "gap": "STG", "latent_gap": "Latent STG",
    "moral_target": "Moral target from images",
}  # fmt: skip
"""What is compared -> its name for readers."""


@dataclass(frozen=True)
class Contrast:
    """Two levels of a factor, and the methods in which they meet the same levels of the other one.

    Attributes:
        factor: what differs.
        first: its one level.
        second: the other.
        pairs: for each level of the other factor that both were evaluated with, the two methods.
    """

    factor: Factor
    first: str
    second: str
    pairs: tuple[tuple[Method, Method], ...] = field(repr=False)


def contrasts(
    methods: Mapping[str, Method], cells: Mapping[str, tuple[str, str]], factor: Factor
) -> Iterator[Contrast]:
    """Yield every pair of levels of a factor, the later one first, as far as both were evaluated.

    Args:
        methods: name -> method, of those that were evaluated.
        cells: name -> plan and renderer, of all methods of a study.
        factor: plan or renderer.
    """
    own, other = (0, 1) if factor == "plan" else (1, 0)
    named = {cell: methods[name] for name, cell in cells.items() if name in methods}
    levels = list(dict.fromkeys(cell[own] for cell in named))
    held = list(dict.fromkeys(cell[other] for cell in named))
    for second, first in combinations(levels, 2):
        pairs = []
        for level in held:
            ours, theirs = (
                named.get((mine, level) if factor == "plan" else (level, mine)) for mine in (first, second)
            )
            if ours is not None and theirs is not None:
                pairs.append((ours, theirs))
        if pairs:
            yield Contrast(factor, first, second, tuple(pairs))


def effects(some: Sequence[Contrast], items: Items, definitions: Definitions) -> tuple[Paired, ...]:
    """Return every contrast by every value of :data:`VALUES`; p-values are corrected within each value.

    Args:
        some: the contrasts.
        items: what is scored.
        definitions: how intervals and p-values are made.
    """
    sheet = Sheet(items.stories)
    for number, contrast in enumerate(some):
        _add(sheet, number, contrast, items)
    if not some:
        return ()
    drawn = sheet.resampled(definitions)
    made: list[Paired] = []
    for value, label in VALUES.items():
        pairs = [
            _pair(sheet, number, contrast, value, label, (drawn.rows, drawn.sums, drawn.resampled))
            for number, contrast in enumerate(some)
        ]
        made += paired(pairs, "story", definitions)
    return tuple(made)


def _add(sheet: Sheet, number: int, contrast: Contrast, items: Items) -> None:
    every = [method for pair in contrast.pairs for method in pair]
    chosen = common_questions(every)
    for position, method in enumerate(every):
        mask = chosen & method.outcomes.requested
        sheet.add(_key(number, position, "questions"), sums_of(method.outcomes, mask, items).columns())
        sheet.add(_key(number, position, "moral"), moral_columns(method.labels, method.made, items))


def _key(number: int, position: int, of: str) -> tuple[str, ...]:
    return (str(number), str(position), of)


def _pair(
    sheet: Sheet, number: int, contrast: Contrast, value: str, label: str, sums: tuple[Floats, Floats, Floats]
) -> Pair:
    """Return the contrast by one value: per story, of all stories, and of resampled ones."""
    rows, whole, resampled = (_difference(sheet, number, contrast, value, each) for each in sums)
    return Pair(
        contrast.first, contrast.second, rows[~np.isnan(rows)], about={"value": label}, value=float(whole),
        replicates=resampled,
    )  # fmt: skip


def _difference(sheet: Sheet, number: int, contrast: Contrast, value: str, sums: Floats) -> Floats:
    """Return the mean difference over the levels of the other factor, of sums of shape (..., columns)."""
    values = [_value(sheet, number, position, value, sums) for position in range(2 * len(contrast.pairs))]
    differences = [first - second for first, second in zip(values[::2], values[1::2], strict=True)]
    return np.asarray(np.mean(differences, axis=0), dtype=np.float64)


def _value(sheet: Sheet, number: int, position: int, value: str, sums: Floats) -> Floats:
    if value == "moral_target":
        moral = values_of(columns.MORAL[1:2], sheet.part(sums, _key(number, position, "moral")))
        return np.asarray(moral[..., 0], dtype=np.float64)
    rates = Rates.of(Sums.of(sheet.part(sums, _key(number, position, "questions"))))
    if value == "latent_gap":
        return rates.mean_gap(LATENT)
    _, image, gap = rates.overall()
    return image if value == "image" else gap
