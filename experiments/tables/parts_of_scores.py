"""Tables that every evaluation of storyboards has, of the methods of a study: by part, and controls."""

from collections.abc import Callable, Mapping

from ...evaluation.katha.report.page import controls
from ...evaluation.katha.report.tables import details
from ...evaluation.report.model import CountRow, CountTable, ScoreTable
from ...evaluation.stats.paired import Paired
from ...tables.numbers import value_text
from .ablations import effects_of
from .results import StudyResults
from .table import NoTable


def detail(name: str, why: str) -> Callable[[StudyResults], ScoreTable]:
    """Return the function that makes one of the detailed tables of an evaluation.

    Args:
        name: of the table there.
        why: why there is none where there is none.
    """

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
    known = [pair for pair in made if pair.about["value"] == "STG" and pair.difference is not None]
    if not known:
        return "undefined, no question is valid for all"
    most = max(known, key=_size)
    return f"{value_text(most.difference, 'points')} ({most.first} less {most.second})"


def _size(pair: Paired) -> float:
    return abs(pair.difference or 0.0)
