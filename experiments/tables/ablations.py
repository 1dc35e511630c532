"""Plans with the renderer held and renderers with the plan held, and the effects of both (Table 53)."""

from functools import partial

from ...evaluation.report.formats import comparison_table
from ...evaluation.report.model import Measure, ScoreRow, ScoreTable
from ...evaluation.stats.paired import Paired
from .effects import VALUES, Factor, contrasts, effects
from .leaderboard import FILTERED, GAP, IMAGE, INTERVALS, INVALID, MORAL, VISUAL, invalid_rate, main_of
from .results import StudyResults
from .table import NO_RATINGS, NoTable, unmeasured

NOT_LOCALISED = "evaluators are measured by planted losses, not methods: see the first table of the page"
LOCALISATION = Measure(name="localisation", label="Localisation", unit="plain", better="high")
PEOPLE = Measure(name="people", label="Agreement with people", unit="plain", better="high")


def planner_ablation(results: StudyResults) -> ScoreTable:
    """The left half of Table 53, for each renderer: plans with that renderer held."""
    return ScoreTable(
        name="planner_ablation", title="Plans, with the renderer held", heading="Renderer and plan",
        note=f"{FILTERED} {INTERVALS}",
        measures=(IMAGE, GAP, MORAL, LOCALISATION, PEOPLE), rows=_rows(results, 1),
    )  # fmt: skip


def renderer_ablation(results: StudyResults) -> ScoreTable:
    """The right half of Table 53, for each plan: renderers with that plan held."""
    return ScoreTable(
        name="renderer_ablation", title="Renderers, with the plan held", heading="Plan and renderer",
        note=f"{FILTERED} {INTERVALS} The invalid rate is what the paper calls Fail.",
        measures=(IMAGE, GAP, MORAL, INVALID, VISUAL), rows=_rows(results, 0),
    )  # fmt: skip


def _rows(results: StudyResults, held: int) -> tuple[ScoreRow, ...]:
    """Return a row for each method, those that share the held part (0 plan, 1 renderer) side by side.

    Raises:
        NoTable: no two methods share it.
    """
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
                "moral_target": scores.moral_target["image"], "localisation": unmeasured(NOT_LOCALISED),
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
    """Return all contrasts of plans, or of renderers, by every value.

    Raises:
        NoTable: no two of them were evaluated with the same other part.
    """
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
    notes = " ".join(f"{note[:1].upper()}{note[1:]}." for note in results.definitions.notes(
        results.evaluation.items.stories, "story"))  # fmt: skip
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
