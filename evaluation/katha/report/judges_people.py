"""Judges beside people, as tables and Figure 10 (KathaTrace, Table 39), read from a calibration."""

from collections.abc import Iterator, Mapping
from typing import Any

from ....pages.figures import Scatter, Spot
from ....schemas.text import counted
from ....schemas.values import Score
from ....tables.numbers import interval_text, label_text, value_text
from ...report.model import Measure, ScoreRow, ScoreTable
from ...report.opinions import OLD
from ...report.people import Calibration, if_any, plain_score, score_of, whole
from .cases import NAMES

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
