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

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import combinations
from operator import itemgetter
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from ....evaluation.katha.report.page import controls
from ....evaluation.katha.report.tables import details
from ....evaluation.recoverability import columns, recoverability
from ....evaluation.recoverability.columns import moral_columns
from ....evaluation.recoverability.matching import COMMONS, LATENT, Definitions, Items
from ....evaluation.recoverability.method import (
    Method,
    ValiditySet,
    common_questions,
    common_stories,
    gaps_over,
    validity_sets,
)
from ....evaluation.recoverability.pooling import Sums, sums_of
from ....evaluation.recoverability.recoverability import Estimates, Rates, Sheet, values_of
from ....evaluation.report.formats import comparison_table
from ....evaluation.report.model import CountRow, CountTable, Measure, ScoreRow, ScoreTable
from ....evaluation.report.showing import sentences
from ....evaluation.stats.uncertainty import Pair, Paired, paired
from ....pages.grid import value_text
from ....schemas.text import counted
from ....schemas.values import Score
from .failures import LOCALISED, failures_by_method, localisation
from .leaderboard import (
    AMBIGUITY,
    FILTERED,
    GAP,
    IMAGE,
    INTERVALS,
    INVALID,
    MORAL,
    VISUAL,
    invalid_rate,
    main_of,
)
from .results import NO_RATINGS, AskedPicture, NoTable, StudyResults, unmeasured

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
    # A finished method has no plan, so that nothing is held equal with another.
    named = {cell: methods[name] for name, cell in cells.items() if name in methods and cell[0]}
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


# -- What each filter does to the gap, counted in questions (Table 26) and in stories (Table 57)
#
# Both tables of the paper have a column Raw and a column Common-valid, and mean different things by them; see
# :mod:`fabula.evaluation.recoverability.method`, where the sets are defined.
#
# Tables that every evaluation of storyboards has, of the methods of a study: by part, and controls.

LABELS: Mapping[ValiditySet, str] = {
    "before_ambiguity": "STG, raw: before ambiguity filtering",
    "before_validity": "STG, raw: before validity filtering",
    "before_both": "STG before both filters",
    "common_questions": "STG, common-valid questions",
    "common_stories": "STG, common-valid stories",
}
LONGEST_REPLY = 300
"""Characters of a service's reply that the table of invalid generations shows."""


def validity_gaps(results: StudyResults) -> dict[tuple[str, ValiditySet], Estimates]:
    """Return method and set -> recoverability and gap, all resampled together."""
    return results.once("validity gaps", lambda: _validity_gaps(results))


def _validity_gaps(results: StudyResults) -> dict[tuple[str, ValiditySet], Estimates]:
    judged = results.evaluation
    sets = validity_sets(judged.methods, judged.items)
    parts = {
        f"{method.name}\n{name}": (method, sets[method.name][name])
        for method in judged.methods
        for name in LABELS
    }
    made = gaps_over(parts, judged.items, results.definitions)
    return {
        (method.name, name): made[f"{method.name}\n{name}"] for method in judged.methods for name in LABELS
    }


def question_audit(results: StudyResults) -> ScoreTable:
    """Table 26: questions in all and valid, ambiguity, and the gap before and after ambiguity filtering."""
    gaps = validity_gaps(results)
    rows = []
    for name in results.judged_methods:
        method = results.scores.methods[name]
        asked = method.questions
        scores = {
            "total": _count(asked["total"]), "valid": _count(asked["valid"]), "ambiguity": method.ambiguity,
            **_gaps(gaps, name, "before_ambiguity"), "filtered": main_of(method).gap,
            **_gaps(gaps, name, "common_questions"),
        }  # fmt: skip
        left = {"of invalid generations": asked["invalid_generation"], "unjudged": asked["unjudged"]}
        remarks = [f"{counted(count, 'question')} {what}" for what, count in left.items() if count]
        rows.append(ScoreRow(label=name, scores=scores, note=", ".join(remarks) or None))
    return ScoreTable(
        name="question_audit", title="What ambiguity filtering does", heading="Plan + renderer",
        note="Seeds are counted apart. Raw here is before ambiguity filtering: all questions of valid "
        f"generations. {COMMONS[results.definitions.common].capitalize()}. "
        f"{INTERVALS}",
        measures=(
            Measure(name="total", label="Questions asked about", unit="count"),
            Measure(name="valid", label="Valid", unit="count"),
            AMBIGUITY, _gap("before_ambiguity"), _filtered(), _gap("common_questions"),
        ), rows=tuple(rows),
    )  # fmt: skip


def story_audit(results: StudyResults) -> ScoreTable:
    """Table 57: stories asked for and valid, the invalid rate, and the gap before and after its filter."""
    gaps = validity_gaps(results)
    methods = {method.name: method for method in results.evaluation.methods}
    shared = int(common_stories(results.evaluation.methods).sum())
    rows = []
    for name in results.judged_methods:
        made = results.scores.methods[name].generations
        scores = {
            "total": _count(made["stories_requested"]), "valid": _count(made["stories_valid"]),
            "invalid_rate": invalid_rate(methods[name], results.definitions),
            **_gaps(gaps, name, "before_both"), **_gaps(gaps, name, "before_validity"),
            "filtered": main_of(results.scores.methods[name]).gap, **_gaps(gaps, name, "common_stories"),
        }  # fmt: skip
        rows.append(ScoreRow(label=name, scores=scores))
    return ScoreTable(
        name="story_audit", title="What invalid generations do", heading="Plan + renderer",
        note="A story is valid where at least one of its generations is; the invalid rate is that of "
        "generations. Raw here is before validity filtering: the questions of an invalid generation count as "
        "not recovered from its images, and ambiguous questions are left out as far as they could be asked. "
        "Before both filters, ambiguous ones are in, too. Common-valid here are the "
        f"{counted(shared, 'story')} valid for all methods. Text and images are always counted over the same "
        f"generations. {INTERVALS}",
        measures=(
            Measure(name="total", label="Stories asked for", unit="count"),
            Measure(name="valid", label="Valid", unit="count"),
            INVALID, _gap("before_both"), _gap("before_validity"), _filtered(), _gap("common_stories"),
        ), rows=tuple(rows),
    )  # fmt: skip


def invalid_generations(results: StudyResults) -> CountTable:
    """Every generation that cannot be judged: method, story, seed, and what the renderer said."""
    rows = tuple(row for method in results.judged_methods for row in _invalid_rows(results, method))
    if not rows:
        raise NoTable("every generation of every method is valid")
    return CountTable(
        name="invalid_generations", title="Invalid generations", heading="Plan + renderer",
        note="A generation, that is a story with a seed, is invalid if any of its pictures is missing or "
        "cannot be used. Codes are those of `fabula outputs check`. Replies are cut at "
        f"{LONGEST_REPLY} characters; generations.jsonl has them whole.",
        columns={
            "story": "Story", "seed": "Seed", "codes": "What is wrong", "panel": "Picture",
            "outcome": "Outcome", "reason": "Reason", "reply": "Reply",
        }, rows=rows,
    )  # fmt: skip


def _invalid_rows(results: StudyResults, method: str) -> Iterator[CountRow]:
    lines = results.pictures.get(method, ())
    known = {line.story_id for line in lines}
    codes: dict[tuple[str, int | None], str] = {
        (entry["story_id"], entry.get("seed")): ", ".join(map(str, entry.get("codes") or ()))
        for entry in results.about(method).get("invalid") or ()
        if not known or entry["story_id"] in known  # else it was never asked for
    }
    unmade: dict[tuple[str, int | None], list[AskedPicture]] = {}
    for line in lines:
        if line.outcome != "made":
            unmade.setdefault((line.story_id, line.seed), []).append(line)
    for key in dict.fromkeys([*codes, *unmade]):
        story, seed = key
        shared = {
            "story": story,
            "seed": "none" if seed is None else str(seed),
            "codes": codes.get(key, "not in the evaluation"),
        }
        for asked in unmade.get(key, []) or [None]:  # type: ignore[list-item]
            yield CountRow(label=method, values={**shared, **_said(asked)})


def _said(line: AskedPicture | None) -> dict[str, int | float | str | None]:
    if line is None:
        return {"panel": None, "outcome": "not recorded", "reason": None, "reply": None}
    reply = line.reply
    if reply is not None and len(reply) > LONGEST_REPLY:
        reply = f"{reply[:LONGEST_REPLY]}..."
    return {"panel": line.panel, "outcome": line.outcome, "reason": line.reason, "reply": reply}


def _gap(name: ValiditySet) -> Measure:
    return Measure.of(recoverability.GAP, name=name, label=LABELS[name])


def _filtered() -> Measure:
    return Measure.of(recoverability.GAP, name="filtered", label="STG, filtered")


def _gaps(
    gaps: Mapping[tuple[str, ValiditySet], Estimates], method: str, name: ValiditySet
) -> dict[str, Score]:
    return {name: gaps[method, name].score("gap")}


def _count(number: int) -> Score:
    return Score(value=float(number), status="ok")


def detail(name: str, why: str) -> Callable[[StudyResults], ScoreTable]:
    """Return the function that makes one of the detailed tables of an evaluation."""

    def make(results: StudyResults) -> ScoreTable:
        for table in details(results.scores):
            if table.name == name:
                return table
        raise NoTable(why)

    return make


by_dimension = detail("by_dimension", "nothing was scored")
by_source_family = detail("by_source_family", "all stories are of one source family")
by_narrative_type = detail("by_narrative_type", "all stories are of one narrative type")
evidence = detail("evidence", "nothing was scored")
moral_targets = detail("moral_target", "no story was asked for its moral target")
contrastives = detail("pairs", "no contrastive pair was judged")


def robustness(results: StudyResults) -> CountTable:
    """Tables 4 and 72: other explanations of the gap, the renderer's part included."""
    table = controls(results.scores, results.evaluation.manifest.subject)
    rows = [*table.rows, *_renderer_only(results)]
    return table.model_copy(update={"name": "robustness", "rows": tuple(rows)})


def _renderer_only(results: StudyResults) -> list[CountRow]:
    largest: Mapping[str, str] = {factor: _largest(results, factor) for factor in ("plan", "renderer")}
    answer = f"plans: {largest['plan']}; renderers: {largest['renderer']}"
    control = "Largest difference of STG between plans, and between renderers"
    return [CountRow(label="Renderer-only explanation", values={"control": control, "found": answer})]


def _largest(results: StudyResults, factor: str) -> str:
    try:
        made = effects_of(results, "plan" if factor == "plan" else "renderer")
    except NoTable as reason:
        return str(reason)
    known = [
        (abs(pair.difference), pair)
        for pair in made
        if pair.about["value"] == "STG" and pair.difference is not None
    ]
    if not known:
        return "undefined, no question is valid for all"
    _, most = max(known, key=itemgetter(0))
    return f"{value_text(most.difference, 'points')} ({most.first} less {most.second})"
