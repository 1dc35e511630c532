"""Plans with the renderer held and renderers with the plan held, and the effects of both (Table 53).

What the plan changes with the renderer held, and what the renderer changes with the plan held (Table 53).

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
from functools import partial
from itertools import combinations
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from ....evaluation.recoverability import columns
from ....evaluation.recoverability.columns import moral_columns
from ....evaluation.recoverability.definitions import Definitions
from ....evaluation.recoverability.estimates import Sheet
from ....evaluation.recoverability.items import LATENT, Items
from ....evaluation.recoverability.method import Method, common_questions
from ....evaluation.recoverability.pooling import Sums, sums_of
from ....evaluation.recoverability.recoverability import Rates, values_of
from ....evaluation.report.formats import comparison_table
from ....evaluation.report.model import Measure, ScoreRow, ScoreTable
from ....evaluation.report.showing import sentences
from ....evaluation.stats.paired import Pair, Paired, paired
from .failures import LOCALISED, failures_by_method, localisation
from .leaderboard import FILTERED, GAP, IMAGE, INTERVALS, INVALID, MORAL, VISUAL, invalid_rate, main_of
from .results import NO_RATINGS, NoTable, StudyResults, unmeasured

Floats = NDArray[np.float64]
Factor = Literal["plan", "renderer"]
VALUES: Mapping[str, str] = {
    "image": "From images", "gap": "STG", "latent_gap": "Latent STG",
    "moral_target": "Moral target from images",
}  # fmt: skip
"""What is compared -> its name for readers."""


@dataclass(frozen=True)
class Contrast:
    """Two levels of a factor, and the methods in which they meet the same levels of the other one."""

    factor: Factor  # what differs
    first: str  # its one level
    second: str  # the other
    # for each level of the other factor that both were evaluated with, the two methods
    pairs: tuple[tuple[Method, Method], ...] = field(repr=False)


def contrasts(
    methods: Mapping[str, Method], cells: Mapping[str, tuple[str, str]], factor: Factor
) -> Iterator[Contrast]:
    """Yield every pair of levels of a factor, the later one first, as far as both were evaluated.

    ``methods``: name -> method, of those that were evaluated. ``cells``: name -> plan and renderer, of all
    methods of a study.
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
    """Return every contrast by every value of :data:`VALUES`; p-values are corrected within each value."""
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
    for position, (method, chosen) in enumerate(zip(every, common_questions(every), strict=True)):
        sheet.add(_key(number, position, "questions"), sums_of(method.outcomes, chosen, items).columns())
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


PEOPLE = Measure(name="people", label="Agreement with people", unit="plain", better="high")


def planner_ablation(results: StudyResults) -> ScoreTable:
    """The left half of Table 53, for each renderer: plans with that renderer held."""
    return ScoreTable(
        name="planner_ablation", title="Plans, with the renderer held", heading="Renderer and plan",
        note=f"{FILTERED} {INTERVALS} Localisation is that of the table of failures.",
        measures=(IMAGE, GAP, MORAL, LOCALISED, PEOPLE), rows=_rows(results, 1),
    )  # fmt: skip


def renderer_ablation(results: StudyResults) -> ScoreTable:
    """The right half of Table 53, for each plan: renderers with that plan held."""
    return ScoreTable(
        name="renderer_ablation", title="Renderers, with the plan held", heading="Plan and renderer",
        note=f"{FILTERED} {INTERVALS} The invalid rate is what the paper calls Fail.",
        measures=(IMAGE, GAP, MORAL, INVALID, VISUAL), rows=_rows(results, 0),
    )  # fmt: skip


def _rows(results: StudyResults, held: int) -> tuple[ScoreRow, ...]:
    """Return a row for each method, those that share the held part (0 plan, 1 renderer) side by side."""
    cells = {name: cell for name, cell in results.cells.items() if name in results.judged_methods}
    if len({cell[1 - held] for cell in cells.values()}) < 2:
        raise NoTable(f"fewer than two {'plans' if held else 'renderers'} were evaluated")
    methods = {method.name: method for method in results.evaluation.methods}
    rows = []
    for level in dict.fromkeys(cell[held] for cell in cells.values()):
        for name, cell in cells.items():
            if cell[held] != level:
                continue
            scores = results.scores.methods[name]
            main = main_of(scores)
            values = {
                "visual": unmeasured(NO_RATINGS), "image": main.image, "gap": main.gap,
                "moral_target": scores.moral_target["image"],
                "localisation": localisation(failures_by_method(results)[name]),
                "people": unmeasured(NO_RATINGS),
                "invalid_rate": invalid_rate(methods[name], results.definitions),
            }  # fmt: skip
            shown = (
                ("image", "gap", "moral_target", "localisation", "people")
                if held
                else ("image", "gap", "moral_target", "invalid_rate", "visual")
            )
            rows.append(
                ScoreRow(label=f"{level} · {cell[1 - held]}", scores={key: values[key] for key in shown})
            )
    return tuple(rows)


def effects_of(results: StudyResults, factor: Factor) -> tuple[Paired, ...]:
    """Return all contrasts of plans, or of renderers, by every value."""
    methods = {method.name: method for method in results.evaluation.methods}
    some = tuple(contrasts(methods, results.cells, factor))
    if not some:
        raise NoTable(f"no two {factor}s were evaluated with the same other part")
    items = results.evaluation.items
    return results.once(f"{factor} effects", lambda: effects(some, items, results.definitions))


def _effects(results: StudyResults, factor: Factor) -> ScoreTable:
    other = "renderer" if factor == "plan" else "plan"
    name = "planner" if factor == "plan" else "renderer"
    made = effects_of(results, factor)
    table = comparison_table(made, "points")
    notes = " ".join(sentences(results.definitions.notes(results.evaluation.items.stories, "story")))
    return table.model_copy(
        update={
            "name": f"{name}_effects",
            "title": f"What the {factor} changes, mean over the {other}s",
            "note": f"Mean over {other}s of the difference, in points, paired by story, over the questions "
            "that are valid for every method that is compared, with every seed. "
            f"{', '.join(VALUES.values())}. Of gaps, a negative difference says that the first loses less. "
            "p-values are corrected by "
            f"{results.definitions.correction.capitalize()} for the comparisons of a value. {notes}".strip(),
        }
    )


planner_effects = partial(_effects, factor="plan")
renderer_effects = partial(_effects, factor="renderer")
