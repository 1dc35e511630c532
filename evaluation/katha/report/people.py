"""What people said about storyboards, as tables, a figure, and columns of the main numbers (Tables 2, 37-39).

All of it is read from a calibration (:mod:`fabula.people.katha`); nothing is computed here.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from ....pages.figures import Scatter, Spot
from ....pages.grid import interval_text, label_text, value_text
from ....schemas.text import counted
from ....schemas.values import Score
from ...recoverability.columns import CHANCE
from ...recoverability.matching import DIMENSIONS
from ...recoverability.recoverability import GAP
from ...report.model import Measure, ScoreRow, ScoreTable
from ...report.people import (
    OLD,
    Calibration,
    Column,
    Drawn,
    TableForm,
    asked_tables,
    between_people,
    if_any,
    intervals_of,
    missing_preferences,
    preference_tables,
    rating_tables,
    score_of,
)
from .cases import NAMES

# -- Judges beside people, as tables and Figure 10 (KathaTrace, Table 39), read from a calibration

ENSEMBLE = "ensemble"
IMAGE = "image"


def judge_tables(document: Calibration) -> Iterator[ScoreTable]:
    """Yield how judges follow people: answers, choices, stated confidence, and weights fitted on them."""
    yield from _followed(document)
    yield from _choices(document)
    yield from _reliability(document)
    yield from _weights(document)


def storyboards(document: Calibration) -> Scatter | None:
    """Return Figure 10, of all judges together where they are several; None where nothing can be drawn."""
    judge = _drawn_judge(document)
    compared = document["judges"].get(judge, {"answers": {}})["answers"].get(IMAGE, {})
    boards = compared.get("storyboards", ())
    if not boards:
        return None
    spearman = score_of(compared["values"]["spearman"])
    correlation = f"undefined ({compared['spearman']['reason'] or spearman.reason})"
    if spearman.value is not None:
        correlation = f"{value_text(spearman.value, 'plain')} {interval_text(spearman, 'plain')}".rstrip()
    total, several = spearman.counts["storyboards"], {board["seed"] for board in boards} != {None}
    some = f" {len(boards):,} of them are drawn, at even distances." if len(boards) < total else ""
    return Scatter(
        name="people-judges", title=f"Recovered from images: people and {judge}",
        note=f"Share of a storyboard's questions that are answered right from its images alone: from "
        f"left to right the mean of people, upwards {judge}. Larger marks are several storyboards. "
        f"Spearman's correlation {correlation}, n = {counted(total, 'storyboard')}; in brackets its 95 % "
        f"interval, participants drawn with replacement. There are no error bars.{some} (KathaTrace, Figure "
        "10)",
        across="People", up=label_text(judge), noun="storyboard",
        spots=tuple(
            Spot(
                label=f"{board['story']}, seed {board['seed']}" if several else board["story"],
                series=str(board["method"]), across=board["people"], up=board["judge"],
            )
            for board in boards
        ),
    )  # fmt: skip


def _drawn_judge(document: Calibration) -> str:
    judges = document["judges"]
    return ENSEMBLE if ENSEMBLE in judges else next(iter(judges), "")


def why_no_storyboards(document: Calibration) -> str:
    """Return why Figure 10 is not there, as the end of a sentence."""
    if not document["judges"]:
        return "there is no judge"
    compared = document["judges"][_drawn_judge(document)]["answers"].get(IMAGE)
    if compared is None:
        return "nobody was asked under image-only evidence"
    return (
        OLD if "storyboards" not in compared else "people and judges were asked about different storyboards"
    )


def _answers(document: Calibration) -> Iterator[tuple[str, str, Mapping[str, Any]]]:
    """Yield each judge, each condition, and how its answers compare with people's under it."""
    for judge, judged in document["judges"].items():
        for condition in NAMES:
            if condition in judged["answers"]:
                yield judge, condition, judged["answers"][condition]


FOLLOWED = TableForm(
    "judges_people", "Judges against people", "Judge and evidence",
    (
        Column("agreement", "Agreement", "percent", "values.agreement"),
        Column("pairwise_agreement", "Pairs ranked alike", "percent", "values.pairwise_agreement"),
        Column("spearman", "Spearman", "number", "values.spearman"),
        Column("mean_absolute_difference", "Mean absolute difference", "number",
               "values.mean_absolute_difference"),
        Column("calibration_error", "Calibration error", "number", "values.calibration_error"),
        Column("kendall", "Kendall", "number"),
        Column("false_acceptance", "False acceptance"),
        Column("false_rejection", "False rejection"),
    ),
    "Right or wrong, against the majority of people; correlations and differences are of recoverability "
    "per storyboard.",
)  # fmt: skip


def _followed(document: Calibration) -> Iterator[ScoreTable]:
    yield from FOLLOWED.of(
        ((f"{judge} · {NAMES[condition]}", compared) for judge, condition, compared in _answers(document)),
        _left_out,
    )


def _left_out(compared: Mapping[str, Any]) -> str | None:
    counts = {"without an answer of the judge": compared["silent"], "not judged": compared["not_judged"]}
    left_out = [f"{count:,} {text}" for text, count in counts.items() if count]
    pairs = str(compared["pairs"]).replace("_", " ")
    return "; ".join([f"pairs {pairs}", *left_out])


def _choices(document: Calibration) -> Iterator[ScoreTable]:
    """Yield how judges follow people's moral labels and preferences, a column for each judge."""
    judges = document["judges"]
    asked = dict.fromkeys(entry["criterion"] for entry in document["preferences"])
    parts = [("moral_label", name, f"Moral label, {label.lower()}") for name, label in NAMES.items()]
    parts += [("preferences", name, f"Preference by {name}") for name in asked]
    rows = []
    for part, name, label in parts:
        followed = {judge: score_of(said[part][name]) for judge, said in judges.items() if name in said[part]}
        if followed:
            rows.append(ScoreRow(label=label, scores=followed))
    measures = [Measure(name=judge, label=judge, better="high") for judge in judges]
    note = (
        "Agreement. Moral labels: the judge's is the one that most people put first. Preferences: the "
        "judge's recoverability from images orders the two storyboards of a story as people do on average."
    )
    yield from if_any("judges_choices", "Judges and what people chose", "Choice", measures, rows, note)


def _reliability(document: Calibration) -> Iterator[ScoreTable]:
    levels = document.get("definitions", {}).get("confidence", {})
    stand_for = ", ".join(f"{level} for {value:g}" for level, value in levels.items())
    table = TableForm(
        "reliability", "How reliable stated confidence is", "Judge, evidence and bin",
        (
            Column("confidence", "Confidence"), Column("accuracy", "Agrees with people"),
            Column("difference", "Difference", "points"), Column("answers", "Answers (n)", "count", "count"),
        ),
        "Bins of stated confidence; the calibration error is the mean of their differences without sign, "
        f"weighted by answers.{f' Words stand for numbers: {stand_for}.' if stand_for else ''}",
    )  # fmt: skip
    yield from table.of(
        (f"{judge} · {NAMES[condition]} · bin {number}",
         {**entry, "difference": entry["accuracy"] - entry["confidence"]})
        for judge, condition, compared in _answers(document)
        for number, entry in enumerate(compared["bins"], 1)
    )  # fmt: skip


def _weights(document: Calibration) -> Iterator[ScoreTable]:
    fitted = document.get("weights") or {"split": "", "weights": {}}
    note = f"Fitted on people's answers about the split {fitted['split']}."
    columns = (Column("weight", "Weight", "number"),)
    table = TableForm("people_weights", "Weights of judges", "Judge", columns, note)
    yield from table.of((judge, {"weight": weight}) for judge, weight in fitted["weights"].items())


# -- What people said about storyboards

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


MORALS = TableForm(
    "people_morals", "Moral targets that people name", "Method and evidence",
    (
        *(Column(name, name, better="high") for name in HMR),
        Column("judgements", "Judgements (n)", "count", f"{HMR[0]}.counts.judgements"),
        Column("without", "Left out, no label of the story's own", "count",
               f"{HMR[0]}.counts.without_intended_label"),
    ),
    "Share of judgements that name the story's moral label first, and among the first three. Three "
    f"different labels named blindly get {100 * CHANCE:.1f} % and {300 * CHANCE:.1f} %.",
)  # fmt: skip


def _morals(document: Calibration) -> Iterator[ScoreTable]:
    yield from MORALS.of(
        (f"{method} · {NAMES[condition]}", scores)
        for method, about in document["methods"].items()
        for condition in NAMES
        if (scores := about["moral"].get(condition)) and scores[HMR[0]]["value"] is not None
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
