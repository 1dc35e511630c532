"""What people said about storyboards, as tables, a figure, and columns of the main numbers (Tables 2, 37-39).

All of it is read from a calibration (:mod:`fabula.people.katha`); nothing is computed here.
"""

from collections.abc import Iterator

from ....schemas.text import counted
from ....schemas.values import Score
from ....tables.numbers import label_text
from ...recoverability.columns import CHANCE
from ...recoverability.items import DIMENSIONS
from ...recoverability.recoverability import GAP
from ...report.model import Measure, ScoreRow, ScoreTable
from ...report.opinions import bare, missing_preferences, preference_tables, rating_tables
from ...report.people import (
    Calibration,
    Drawn,
    asked_tables,
    between_people,
    if_any,
    intervals_of,
    score_of,
    whole,
)
from .cases import NAMES
from .judges_people import judge_tables, storyboards, why_no_storyboards

COLUMNS = {
    "visual": Measure(name="visual", label="Visual", unit="plain", better="high"),
    "overall": Measure(name="human_score", label="Human Score", unit="plain", better="high"),
}
"""Criterion of people's ratings -> the column of the main numbers that their mean fills (Table 2)."""
RATINGS = {
    "NCS": "Narrative coherence (NCS)", "MAS": "Moral alignment (MAS)",
    "EES": "Emotional expressiveness (EES)", "visual": "Visual quality", "overall": "Overall",
}  # fmt: skip
"""Criterion of people's ratings -> its name for readers (F.3, Table 2); others are shown as they are."""
VALID = {
    "people": "people's majority is right from text and images",
    "judges": "judges are right from text and images",
    "all": "all questions that people answered",
}
HMR = ("HMR@1", "HMR@3")


def people_tables(document: Calibration) -> Iterator[ScoreTable]:
    """Yield the tables of a calibration."""
    yield from asked_tables(document)
    yield from _recovered(document)
    yield from _by_dimension(document)
    yield from _morals(document)
    yield from rating_tables(document, RATINGS)
    yield from preference_tables(document)
    yield from judge_tables(document)
    yield from between_people(document["agreement"])


def people_drawn(document: Calibration) -> Drawn:
    """Return the figure of a calibration, what is missing, and its columns of the main numbers."""
    scatter = storyboards(document)
    return Drawn(
        figures=(scatter,) if scatter else (),
        missing=tuple(_missing(document)),
        columns=tuple(
            (
                measure,
                {
                    method: score_of(about["ratings"][criterion]["mean"])
                    for method, about in document["methods"].items()
                    if criterion in about["ratings"]
                },
            )
            for criterion, measure in COLUMNS.items()
        ),
        note=intervals_of(document),
    )


def with_people(table: ScoreTable, drawn: Drawn) -> ScoreTable:
    """Return the main numbers with the columns of people: the first before them, the others behind them."""
    if not drawn.columns:
        return table
    criteria = {measure.name: criterion for criterion, measure in COLUMNS.items()}
    first, *others = (measure for measure, _ in drawn.columns)
    rows = []
    for row in table.rows:
        scores = dict(row.scores)
        for measure, of_methods in drawn.columns:
            why = f"people were not asked to rate “{criteria[measure.name]}”"
            scores[measure.name] = of_methods.get(row.label) or not_asked(why)
        rows.append(row.model_copy(update={"scores": scores}))
    note = (
        f"{table.note} Visual and Human Score are mean ratings of people, 1 to 5, with participant-level "
        "intervals (Table 2)."
    )
    return table.model_copy(
        update={"measures": (first, *table.measures, *others), "rows": tuple(rows), "note": note}
    )


def not_asked(why: str) -> Score:
    """Return the score of what nobody was asked."""
    return Score(value=None, status="undefined", reason=why, counts={"judgements": 0})


def _recovered(document: Calibration) -> Iterator[ScoreTable]:
    rows = [
        ScoreRow(
            label=method,
            scores={
                **{name: score_of(scores["overall"]) for name, scores in about["recoverability"].items()},
                "gap": score_of(about["stg"]["overall"]),
            },
            note=f"{about['questions_valid']:,} of {counted(about['questions_asked'], 'question')} valid: "
            f"{VALID.get(about['valid_set'], about['valid_set'])}",
        )
        for method, about in document["methods"].items()
    ]
    yield from if_any(
        "people", "What people recover", "Method", _conditions(document), rows, "The mean over dimensions."
    )


def _by_dimension(document: Calibration) -> Iterator[ScoreTable]:
    order = {name: number for number, name in enumerate(DIMENSIONS)}
    rows = [
        ScoreRow(
            label=f"{method} · {label_text(dimension)}",
            scores={
                **{name: score_of(scores[dimension]) for name, scores in about["recoverability"].items()},
                "gap": score_of(about["stg"][dimension]),
            },
        )
        for method, about in document["methods"].items()
        for dimension in sorted(about["stg"], key=lambda name: order.get(name, len(order)))
        if dimension != "overall"
    ]
    yield from if_any(
        "people_dimensions", "What people recover, by dimension", "Method and dimension",
        _conditions(document), rows, "STG compares the questions that were answered under both conditions.",
    )  # fmt: skip


def _conditions(document: Calibration) -> list[Measure]:
    methods = document["methods"].values()
    names = [name for name in NAMES if any(name in about["recoverability"] for about in methods)]
    return [*(Measure(name=name, label=NAMES[name], better="high") for name in names), Measure.of(GAP)]


def _morals(document: Calibration) -> Iterator[ScoreTable]:
    rows = [
        ScoreRow(
            label=f"{method} · {NAMES[condition]}",
            scores={
                **{name: bare(scores[name]) for name in HMR},
                "judgements": whole(scores[HMR[0]]["counts"]["judgements"]),
                "without": whole(scores[HMR[0]]["counts"]["without_intended_label"]),
            },
        )
        for method, about in document["methods"].items()
        for condition in NAMES
        if (scores := about["moral"].get(condition)) and scores[HMR[0]]["value"] is not None
    ]
    measures = [
        *(Measure(name=name, label=name, better="high") for name in HMR),
        Measure(name="judgements", label="Judgements (n)", unit="count"),
        Measure(name="without", label="Left out, no label of the story's own", unit="count"),
    ]
    note = (
        "Share of judgements that name the story's moral label first, and among the first three. Three "
        f"different labels named blindly get {100 * CHANCE:.1f} % and {300 * CHANCE:.1f} %."
    )
    yield from if_any(
        "people_morals", "Moral targets that people name", "Method and evidence", measures, rows, note
    )


def _missing(document: Calibration) -> Iterator[str]:
    """Yield what is not shown, and why."""
    abouts = document["methods"].values()
    kinds = document["people"]["lines"]
    if "answer" not in kinds:
        yield "What people recover (Table 38, Figure 10): nobody was asked a question."
    if not any(scores[HMR[0]]["value"] is not None for about in abouts for scores in about["moral"].values()):
        yield "Moral targets that people name (HMR): nobody named one for a story that has a label."
    for criterion, measure in COLUMNS.items():
        if not any(criterion in about["ratings"] for about in abouts):
            yield f"{measure.label} (Table 2): nobody was asked to rate “{criterion}”."
    yield from missing_preferences(document)
    if "answer" in kinds and storyboards(document) is None:
        yield f"People and judges per storyboard (Figure 10): {why_no_storyboards(document)}."
