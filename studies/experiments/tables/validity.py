"""What each filter does to the gap, counted in questions (Table 26) and in stories (Table 57).

Both tables of the paper have a column Raw and a column Common-valid, and mean different things by them; see
:mod:`fabula.evaluation.recoverability.method`, where the sets are defined.

Tables that every evaluation of storyboards has, of the methods of a study: by part, and controls.
"""

from collections.abc import Callable, Iterator, Mapping
from operator import itemgetter

from ....evaluation.katha.report.page import controls
from ....evaluation.katha.report.tables import details
from ....evaluation.recoverability import recoverability
from ....evaluation.recoverability.definitions import COMMONS
from ....evaluation.recoverability.estimates import Estimates
from ....evaluation.recoverability.method import ValiditySet, common_stories, gaps_over, validity_sets
from ....evaluation.report.model import CountRow, CountTable, Measure, ScoreRow, ScoreTable
from ....pages.grid import value_text
from ....schemas.text import counted
from ....schemas.values import Score
from .ablations import effects_of
from .leaderboard import AMBIGUITY, INTERVALS, INVALID, invalid_rate, main_of
from .results import AskedPicture, NoTable, StudyResults

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
