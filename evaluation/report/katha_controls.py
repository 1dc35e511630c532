"""What else than lost meaning could explain the gap, and what the data say to it (Tables 4 and 72).

Only controls that need no new generation; the table of Table 73 is among the details.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from ...schemas.score import Score
from ..recoverability.scores import KathaScores
from ..words import counted
from .model import CountRow, CountTable
from .showing import DASH, label_text, value_text

NAMES = {"raw": "raw", "filtered": "filtered", "common": "common-valid"}


def controls(scores: KathaScores, subject: Mapping[str, Any]) -> CountTable:
    """Return the controls as a table.

    Args:
        scores: the scores of the evaluation.
        subject: of its manifest, where the leakage scan is accounted for.
    """
    rows = [
        *_filtering(scores), *_families(scores), *_judges(scores), _halves(scores), *_surface(scores),
        *_moral(scores), *_narrative(scores), *_leakage(subject),
    ]  # fmt: skip
    return CountTable(
        name="controls", title="Other explanations of the gap", heading="Threat",
        note="Rank correlations are Spearman's, between methods unless stated otherwise; they need three"
        " methods. Wording of prompts: fabula compare compares evaluations with two prompt"
        " sets.",
        columns={"control": "Control", "found": "Found"}, rows=tuple(rows),
    )  # fmt: skip


def _row(threat: str, control: str, found: str) -> CountRow:
    return CountRow(label=threat, values={"control": control, "found": found})


def _filtering(scores: KathaScores) -> Iterator[CountRow]:
    for pair, found in scores.robustness["filtering"].items():
        first, second = (NAMES[name] for name in pair.split("_"))
        yield _row("Filtering artifact", f"Ranking by {first} and by {second} STG", _rho(found))


def _families(scores: KathaScores) -> Iterator[CountRow]:
    for method, found in scores.robustness["source_family"].items():
        if found["groups"] > 1:
            families = counted(found["groups"], "source family")
            yield _row("Source-family artifact", f"STG of {method} over {families}", _range(found))


def _judges(scores: KathaScores) -> Iterator[CountRow]:
    for one in scores.robustness["judges"]:
        first, second = one["judges"]
        for of in ("methods", "stories"):
            yield _row("Single-judge artifact", f"Gaps of {of} by {first} and by {second}", _rho(one[of]))


def _halves(scores: KathaScores) -> CountRow:
    found = scores.robustness["half_data"]
    told = f"{DASH} ({found['reason']})"
    if found["mean"] is not None:
        told = f"mean {found['mean']:.2f}, lowest {found['lowest']:.2f}"
    halves = counted(found.get("halves", 0), "random half")
    return _row("Dataset-size artifact", f"Ranking by {halves} of the stories and by all", told)


def _surface(scores: KathaScores) -> Iterator[CountRow]:
    for name, method in scores.methods.items():
        other = method.pairs.get("gap")
        if other is not None and other.value is not None:
            found = f"{_points(method.gaps['question']['filtered'].gap)}, and {_points(other)}"
            yield _row("Surface appearance", f"STG of {name} to the story, and to contrastive labels", found)


def _moral(scores: KathaScores) -> Iterator[CountRow]:
    for name, method in scores.methods.items():
        main = method.gaps["question"]["filtered"]
        found = f"{_points(main.latent_gap)}, and {_points(main.latent_gap_without_moral)}"
        yield _row("Moral-target-only effect", f"Latent STG of {name}, and without moral questions", found)


def _narrative(scores: KathaScores) -> Iterator[CountRow]:
    for name, method in scores.methods.items():
        groups = {
            group: one
            for group, one in method.groups.get("narrative_type", {}).items()
            if one.gaps["filtered"].gap.value is not None
        }
        if len(groups) < 2:
            continue
        order = sorted(groups, key=lambda group: (groups[group].gaps["filtered"].gap.value or 0.0, group))
        told = [
            f"{label_text(group)} {_points(groups[group].gaps['filtered'].gap)}"
            f" with {_percent(groups[group].ambiguity)} ambiguous"
            for group in (order[0], order[-1])
        ]
        yield _row(
            "Scope and ambiguity", f"STG of {name}, lowest and highest narrative type", "; ".join(told)
        )


def _leakage(subject: Mapping[str, Any]) -> Iterator[CountRow]:
    methods = subject.get("methods")
    for name, about in sorted(methods.items()) if isinstance(methods, Mapping) else ():
        scanned = about.get("packets_scanned") if isinstance(about, Mapping) else None
        if isinstance(scanned, int):
            leaks = about.get("leaks")
            stopped = counted(len(leaks) if isinstance(leaks, list) else 0, "storyboard")
            yield _row(
                "Source-side leakage", f"Scan of {counted(scanned, 'packet')} of {name}", f"{stopped} stopped"
            )


def _rho(found: Mapping[str, Any]) -> str:
    if found["value"] is None:
        return f"{DASH} ({found['reason']})"
    ends = "" if found["low"] is None else f" [{found['low']:.2f}, {found['high']:.2f}]"
    return f"\N{GREEK SMALL LETTER RHO} = {found['value']:.2f}{ends}, {counted(found['pairs'], 'pair')}"


def _range(found: Mapping[str, Any]) -> str:
    if found["lowest"] is None:
        return DASH
    return f"{value_text(found['lowest'], 'points')} to {value_text(found['highest'], 'points')}"


def _points(score: Score) -> str:
    return value_text(score.value, "points")


def _percent(score: Score) -> str:
    return DASH if score.value is None else f"{value_text(score.value, 'percent')} %"
