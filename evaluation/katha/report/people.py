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
    Drawn,
    asked_tables,
    bare,
    between_people,
    if_any,
    intervals_of,
    missing_preferences,
    plain_score,
    preference_tables,
    rating_tables,
    score_of,
    whole,
)
from .cases import NAMES

# -- Judges beside people, as tables and Figure 10 (KathaTrace, Table 39), read from a calibration

AGAINST = {
    "agreement": ("Agreement", "percent"),
    "pairwise_agreement": ("Pairs ranked alike", "percent"),
    "spearman": ("Spearman", "number"),
    "mean_absolute_difference": ("Mean absolute difference", "number"),
    "calibration_error": ("Calibration error", "number"),
}
"""What a judge's answers are compared by -> its label and unit."""
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


def _followed(document: Calibration) -> Iterator[ScoreTable]:
    rows = [
        ScoreRow(
            label=f"{judge} · {NAMES[condition]}",
            scores={
                **{
                    name: score_of(compared["values"][name]) for name in AGAINST if name in compared["values"]
                },
                "kendall": plain_score(compared["kendall"]["value"], compared["kendall"]["reason"]),
                "false_acceptance": score_of(compared["false_acceptance"]),
                "false_rejection": score_of(compared["false_rejection"]),
            },
            note=_left_out(compared),
        )
        for judge, condition, compared in _answers(document)
    ]
    measures = [
        *(Measure(name=name, label=label, unit=unit) for name, (label, unit) in AGAINST.items()),
        Measure(name="kendall", label="Kendall", unit="number"),
        Measure(name="false_acceptance", label="False acceptance"),
        Measure(name="false_rejection", label="False rejection"),
    ]  # fmt: skip
    note = (
        "Right or wrong, against the majority of people; correlations and differences are of recoverability "
        "per storyboard."
    )
    yield from if_any(
        "judges_people", "Judges against people", "Judge and evidence", measures, rows, note
    )  # fmt: skip


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
    rows = [
        ScoreRow(
            label=f"{judge} · {NAMES[condition]} · bin {number}",
            scores={
                "confidence": plain_score(entry["confidence"], None),
                "accuracy": plain_score(entry["accuracy"], None),
                "difference": plain_score(entry["accuracy"] - entry["confidence"], None),
                "answers": whole(entry["count"]),
            },
        )
        for judge, condition, compared in _answers(document)
        for number, entry in enumerate(compared["bins"], 1)
    ]
    measures = [
        Measure(name="confidence", label="Confidence"),
        Measure(name="accuracy", label="Agrees with people"),
        Measure(name="difference", label="Difference", unit="points"),
        Measure(name="answers", label="Answers (n)", unit="count"),
    ]
    levels = document.get("definitions", {}).get("confidence", {})
    stand_for = ", ".join(f"{level} for {value:g}" for level, value in levels.items())
    note = (
        "Bins of stated confidence; the calibration error is the mean of their differences without sign, "
        "weighted by answers."
    )
    yield from if_any(
        "reliability", "How reliable stated confidence is", "Judge, evidence and bin", measures, rows,
        f"{note} Words stand for numbers: {stand_for}." if stand_for else note,
    )  # fmt: skip


def _weights(document: Calibration) -> Iterator[ScoreTable]:
    fitted = document.get("weights") or {"split": "", "weights": {}}
    rows = [
        ScoreRow(label=judge, scores={"weight": Score(value=weight, status="ok")})
        for judge, weight in fitted["weights"].items()
    ]
    measures = [Measure(name="weight", label="Weight", unit="number")]
    note = f"Fitted on people's answers about the split {fitted['split']}."
    yield from if_any("people_weights", "Weights of judges", "Judge", measures, rows, note)


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
