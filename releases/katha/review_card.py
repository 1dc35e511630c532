"""The tables of a review as a card and a command line show them: titles, columns, rows of text."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ...schemas.canonical import Json
from ...validators.katha.review_tables import LABELS
from ...validators.katha.votes import UNITS

MEASURES = {
    LABELS: "Moral-target label (12-way)",
    "safety": "Narrative",
    "scene_sequence": "Scene sequence",
    "transition_annotation": "Transition annotation",
    "recoverability_qa": "Recoverability QA",
    "contrastive_variant": "Contrastive variant",
    "narrative_category": "Narrative category",
    "moral_label": "Moral-label check",
}
"""Measure of agreement -> what it is called in the paper's Tables 18 and 22."""
TIERS = {
    "responses": "Full human-review responses",
    "unanimous": "Consensus records",
    "adjudicated": "Adjudicated records",
}
"""Unit of work -> what it is called in Table 21."""


Row = tuple[str, Mapping[str, float | int | str | None]]
"""Label, and column -> value."""


@dataclass(frozen=True, slots=True)
class ShownTable:
    """One table."""

    name: str  # its name in data
    title: str  # what it shows
    heading: str  # of the first column
    columns: Mapping[str, str]  # name -> heading of the other columns
    rows: Sequence[Row]  # label, and value by column; None where there is none


def review_tables_shown(review: Mapping[str, Any]) -> list[ShownTable]:
    """Return the tables that ``statistics.json`` has under ``review``, in the order of the paper."""
    made = []
    if "validation" in review:
        made.append(_validation(review["validation"]))
    if "construction" in review:
        made.append(_construction(review["construction"]))
    if "workload" in review:
        made.append(_workload(review["workload"], review.get("agreement", {})))
    if "agreement" in review:
        made.append(_agreement(review["agreement"], review.get("confidence", {})))
    return made


def _validation(part: Mapping[str, Json]) -> ShownTable:
    rows: list[Row] = [
        ("Reviews", {"count": part["reviews"]}),
        *((f"Decision {word}", {"count": count}) for word, count in part["decisions"].items()),
        *(
            (f"Decision {word}, of stories not accepted here", {"count": count})
            for word, count in part["not_in_release"].items()
        ),
        *((f"Status {word}", {"count": count}) for word, count in part["validation_status"].items()),
        *((f"Resolution {word}", {"count": count}) for word, count in part["resolution"].items()),
        *((f"Flag {word}", {"count": count}) for word, count in part["correction_flags"].items()),
        ("Reviewers", {"count": part["reviewers"]}),
        ("Adjudicators", {"count": part["adjudicators"]}),
    ]
    if part["simulated"]:
        rows.append(("Reviewers and adjudicators that are programs", {"count": part["simulated"]}))
    return ShownTable(
        "validation", "Review summaries (Table 16); flags count stories", "What", {"count": "Count"}, rows
    )


def _construction(part: Mapping[str, Mapping[str, Json]]) -> ShownTable:
    columns = {
        "items": "Items judged", "changed": "To be changed", "judgements": "Judgements", "rate": "Rate",
        "elsewhere": "Of them elsewhere", "final": "Final count",
    }  # fmt: skip
    rows = [
        (
            unit.label,
            {
                **{name: part[key][name] for name in ("items", "changed", "judgements", "rate", "final")},
                "elsewhere": "{changed} of {judgements}".format(**part[key]["elsewhere"]),
            },
        )
        for key, unit in UNITS.items()
        if key in part
    ]
    title = "Edits and rejections before adjudication (Table 17)"
    return ShownTable("construction", title, "Component", columns, rows)


def _workload(part: Mapping[str, Any], agreement: Mapping[str, Mapping[str, Json]]) -> ShownTable:
    columns = {"items": "Items", "judgements": "Judgements", "adjudications": "Adjudications"}
    records = {"items": part["records"], "judgements": part["records"]}
    rows: list[Row] = [("Schema validation of records", records)]
    named = {label: part[name] for name, label in TIERS.items()}
    named |= {f"Subset {name}": row for name, row in part["subsets"].items()}
    for label, row in named.items():
        counts = {name: row[name] for name in ("judgements", "adjudications")}
        rows.append((label, {"items": row["stories"], **counts}))
    if LABELS in agreement:
        row = agreement[LABELS]
        rows.append(("Moral-target agreement", {"items": row["items"], "judgements": row["judgements"]}))
    return ShownTable("workload", "Work of the review (Table 21)", "Unit", columns, rows)


def _agreement(part: Mapping[str, Mapping[str, Json]], confidence: Mapping[str, Json]) -> ShownTable:
    columns = {
        "metric": "Metric", "value": "Value", "low": "Low", "high": "High", "items": "N items",
        "stories": "Stories", "judgements": "Judgements",
    }  # fmt: skip
    rows: list[Row] = []
    for key, label in MEASURES.items():
        if key in part:
            row = part[key]
            counts = {name: row[name] for name in ("low", "high", "items", "stories", "judgements")}
            rows.append((label, {"metric": "Fleiss' kappa", "value": row["kappa"], **counts}))
    if confidence.get("judgements"):
        mean = {"metric": "mean", "value": confidence["mean"], "judgements": confidence["judgements"]}
        rows.append(("Confidence (1-5)", mean))
    return ShownTable("agreement", "Agreement before adjudication (Table 22)", "Label", columns, rows)
