"""Plots of a study: bars with intervals by renderer and plan, and the effects of both apart."""

from collections.abc import Iterator

from ...evaluation.report.model import Plot, PlotPoint, ScoreTable
from ...evaluation.report.people import plain_score
from ...schemas.values import Score
from .ablations import effects_of
from .effects import Factor
from .leaderboard import main_of
from .results import StudyResults
from .table import MadeTables, NoTable


def plots_of(results: StudyResults, made: MadeTables, group: str) -> Iterator[Plot]:
    """Yield the plots of a section."""
    if group == "results" and "leaderboard" in made.tables:
        yield from _headline(results)
    if group == "effects":
        for factor in ("plan", "renderer"):
            if f"{'planner' if factor == 'plan' else factor}_effects" in made.tables:
                yield from _effects(results, "plan" if factor == "plan" else "renderer")
    if group == "planted" and "planted_losses" in made.tables:
        yield from _planted(made.tables["planted_losses"])
    if group == "compass" and "bridge_controls" in made.tables:
        yield from _compass(made.tables["bridge_controls"])


def _headline(results: StudyResults) -> Iterator[Plot]:
    held: dict[str, list[tuple[str, str]]] = {}
    for method in results.judged_methods:
        plan, renderer = results.cells.get(method, (method, "other outputs"))
        held.setdefault(renderer, []).append((plan, method))
    for name, title, note in (
        ("gap", "STG", "Text minus images, in percentage points: further left is better."),
        ("image", "What images tell", "Valid questions answered from images alone, in %."),
    ):
        yield Plot(
            name=f"headline_{name}", title=f"{title}, by renderer and plan",
            note=f"{note} Lines are 95 % intervals.", unit="points" if name == "gap" else "percent",
            groups={
                renderer: tuple(
                    PlotPoint(series=plan, score=getattr(main_of(results.scores.methods[method]), name))
                    for plan, method in some
                )
                for renderer, some in held.items()
            },
        )  # fmt: skip


def _effects(results: StudyResults, factor: Factor) -> Iterator[Plot]:
    try:
        made = effects_of(results, factor)
    except NoTable:
        return
    groups: dict[str, list[PlotPoint]] = {}
    for pair in made:
        score = plain_score(pair.difference, "no question is valid for all")
        score = score.model_copy(update={"low": pair.low, "high": pair.high})
        point = PlotPoint(series=f"{pair.first} less {pair.second}", score=score)
        groups.setdefault(pair.about["value"], []).append(point)
    other = "renderers" if factor == "plan" else "plans"
    yield Plot(
        name=f"{factor}_effects", title=f"What the {factor} changes", unit="points",
        note=f"Differences in percentage points, means over {other}, with 95 % intervals; zero is no "
        "difference. Of gaps, left of zero the first loses less.",
        groups={value: tuple(points) for value, points in groups.items()},
    )  # fmt: skip


def _planted(table: object) -> Iterator[Plot]:
    assert isinstance(table, ScoreTable)
    labels = {"localisation": "Dimension localised", "localisation_chance": "By chance",
              "sensitivity": "Losses seen", "false_alarms": "False alarms"}  # fmt: skip
    groups = {
        row.label: tuple(
            PlotPoint(series=label, score=row.scores[name])
            for name, label in labels.items()
            if _known(row.scores.get(name))
        )
        for row in table.rows
    }
    groups = {label: points for label, points in groups.items() if points}
    if groups:
        yield Plot(
            name="planted", title="What evaluators see of planted losses", groups=groups,
            note="In %, with 95 % intervals. An evaluator that guesses localises as often as by chance.",
        )  # fmt: skip


def _compass(table: object) -> Iterator[Plot]:
    assert isinstance(table, ScoreTable)
    groups = {
        row.label: (PlotPoint(series="STG", score=row.scores["gap"]),)
        for row in table.rows
        if _known(row.scores.get("gap"))
    }
    if groups:
        yield Plot(
            name="compass", title="STG of Semantic Compass and its controls", unit="points", groups=groups,
            note="In percentage points, with 95 % intervals: further left is better.",
        )  # fmt: skip


def _known(score: Score | None) -> bool:
    return score is not None and score.value is not None
