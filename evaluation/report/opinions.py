"""What people thought of outputs, as tables: ratings of a method, preferences between two, groups of people.

What they are made of, and how: :mod:`fabula.people.ratings` in a calibration, as plain JSON.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ...schemas.values import Score
from ...tables.grid import MINUS, label_text
from .model import Measure, ScoreRow, ScoreTable
from .people import Calibration, if_any, plain_score, score_of, whole

STEPS = {
    -2: "strongly the baseline", -1: "slightly the baseline", 0: "no preference", 1: "slightly the method",
    2: "strongly the method",
}  # fmt: skip
"""The scale of preferences (KathaTrace, Table 50)."""
MEAN = Measure(name="mean", label="Mean preference", unit="plain")
NO_DIFFERENCE = "every preference is 0, or nobody decided"
BONFERRONI = "bonferroni"
OLD = "this calibration was made before it was kept; run fabula calibrate again"
Preferred = Mapping[str, Any]
"""What people preferred between two methods by one criterion, or by one dimension."""


def rating_tables(document: Calibration, names: Mapping[str, str]) -> Iterator[ScoreTable]:
    """Yield how people rated each method: mean with its interval, standard deviation, and of how many.

    ``names``: criterion -> its name for readers; any other is shown as it is.
    """
    rows = [
        ScoreRow(
            label=f"{method} · {names.get(criterion, label_text(criterion))}",
            scores={
                "mean": bare(rated["mean"]),
                "deviation": plain_score(rated["deviation"], "there is one rating only"),
                **sizes(rated["mean"], "judgements", "people", "stories"),
            },
        )
        for method, about in document["methods"].items()
        for criterion, rated in about["ratings"].items()
    ]
    measures = [
        Measure(name="mean", label="Mean", unit="plain", better="high"),
        Measure(name="deviation", label="Standard deviation", unit="plain"),
        Measure(name="judgements", label="Ratings (n)", unit="count"),
        Measure(name="people", label="People", unit="count"),
        Measure(name="stories", label="Stories", unit="count"),
    ]
    note = "The mean of all ratings, in brackets its interval over people. The deviation divides by n - 1."
    yield from if_any("ratings", "How people rated", "Method and criterion", measures, rows, note)


def preference_tables(document: Calibration) -> Iterator[ScoreTable]:
    """Yield what people preferred by criterion and dimension, the tests, and the means of groups."""
    preferred: Sequence[Preferred] = document["preferences"]
    yield from _means(preferred)
    yield from _tests(preferred)
    dimensions: Sequence[Preferred] = document.get("preference_dimensions", ())
    yield from _dimensions(dimensions)
    yield from _groups(preferred, dimensions)


def missing_preferences(document: Calibration) -> Iterator[str]:
    """Yield which preferences are not shown, and why."""
    preferred: Sequence[Preferred] = document["preferences"]
    if not preferred:
        yield "Preferences: nobody was asked to compare two methods."
        return
    if "preference_dimensions" not in document:
        yield f"Preferences by dimension: {OLD}."
    elif not any(entry["groups"] for entry in preferred):
        yield "Preferences by group of people: no line of a preference names a group."


def pairs_of(preferred: Sequence[Preferred]) -> dict[tuple[str, str], list[Preferred]]:
    """Return method and baseline -> what people preferred between them, in order."""
    pairs: dict[tuple[str, str], list[Preferred]] = {}
    for entry in preferred:
        pairs.setdefault((entry["method"], entry["baseline"]), []).append(entry)
    return pairs


def pair_text(entry: Preferred) -> str:
    """Return which methods were compared: the one that positive values favour comes first."""
    return f"{entry['method']} over {entry['baseline']}"


def criterion_text(entry: Preferred) -> str:
    """Return a criterion with what it is about, such as Q1 · causality."""
    criterion, dimension = entry["criterion"], entry.get("dimension")
    return criterion if dimension in (None, criterion) else f"{criterion} · {dimension}"


def step_text(step: int) -> str:
    """Return a step of the scale, such as +1."""
    return f"{step:+d}".replace("-", MINUS) if step else "0"


def bare(score: Mapping[str, Any]) -> Score:
    """Return a score as a calibration holds it without its counts, which stand in columns of their own."""
    return score_of({**score, "counts": {}})


def sizes(score: Mapping[str, Any], *names: str) -> dict[str, Score]:
    """Return what a score was counted from, each count as a column of its own."""
    return {name: whole(score["counts"][name]) for name in names if name in score["counts"]}


def _means(preferred: Sequence[Preferred]) -> Iterator[ScoreTable]:
    rows = [
        ScoreRow(
            label=f"{pair_text(entry)} · {criterion_text(entry)}",
            scores={
                "mean": bare(entry["mean"]),
                **sizes(entry["mean"], "judgements", "people"),
                **{
                    f"value_{step:+d}": whole(count)
                    for step, count in zip(STEPS, entry["values"], strict=True)
                },
                "unclear": whole(entry["unclear"]),
            },
        )
        for entry in preferred
    ]
    measures = [
        MEAN,
        Measure(name="judgements", label="Decided (n)", unit="count"),
        Measure(name="people", label="People", unit="count"),
        *(Measure(name=f"value_{step:+d}", label=step_text(step), unit="count") for step in STEPS),
        Measure(name="unclear", label="Unclear", unit="count"),
    ]
    scale = "; ".join(f"{step_text(step)} {text}" for step, text in STEPS.items())
    note = f"{scale}. In brackets the participant-level interval. Unclear is counted and left out."
    yield from if_any("preferences", "What people preferred", "Methods and criterion", measures, rows, note)


def _tests(preferred: Sequence[Preferred]) -> Iterator[ScoreTable]:
    rows = [
        ScoreRow(
            label=f"{pair_text(entry)} · {criterion_text(entry)}",
            scores={**_test(entry, "test", ""), **_test(entry, "by_person", "_by_person")},
            note="exact" if entry["test"]["exact"] else "normal approximation, corrected for ties",
        )
        for entry in preferred
    ]
    measures = [
        Measure(name=f"{name}{suffix}", label=f"{label}{of}", unit=unit)
        for suffix, of in (("", ""), ("_by_person", ", by person"))
        for name, label, unit in (
            ("ranked", "Other than 0", "count"), ("p", "p", "p"), ("p_corrected", "p, corrected", "p"),
            ("rank_biserial", "Rank-biserial r", "plain"),
        )
    ]  # fmt: skip
    tests = ", ".join(
        f"{pair[0]} over {pair[1]} {entries[0]['tests']:,}" for pair, entries in pairs_of(preferred).items()
    )
    corrections = sorted({str(entry.get("correction", BONFERRONI)) for entry in preferred})
    note = (
        "One-sided Wilcoxon signed-rank test of a median above 0; corrected by "
        f"{', '.join(corrections).capitalize()} for the criteria of the pair ({tests}). Judgements of one "
        "person are not independent: by person, the same test is made on one mean per person."
    )
    heading = "Methods and criterion"
    yield from if_any("preference_tests", "Tests of preferences", heading, measures, rows, note)


def _test(entry: Preferred, test: str, suffix: str) -> dict[str, Score]:
    """Return a test of a criterion; where all preferences are 0, there is nothing to rank and no p-value."""
    ranked = entry[test]["count"]

    def known(value: float | None) -> Score:
        return plain_score(value if ranked else None, NO_DIFFERENCE)

    return {
        f"ranked{suffix}": whole(ranked),
        f"p{suffix}": known(entry[test]["p_value"]),
        f"p_corrected{suffix}": known(entry[f"p_corrected{suffix}"]),
        f"rank_biserial{suffix}": known(entry[f"rank_biserial{suffix}"]),
    }


def _dimensions(dimensions: Sequence[Preferred]) -> Iterator[ScoreTable]:
    rows = [
        ScoreRow(
            label=f"{pair_text(entry)} · {entry['dimension']}",
            scores={"mean": bare(entry["mean"]), **sizes(entry["mean"], "judgements", "people")},
            note=", ".join(entry["criteria"]),
        )
        for entry in dimensions
    ]
    measures = [
        MEAN,
        Measure(name="judgements", label="Decided (n)", unit="count"),
        Measure(name="people", label="People", unit="count"),
    ]
    note = "The mean of all judgements by the criteria of a dimension."
    title = "What people preferred, by dimension"
    yield from if_any("preference_dimensions", title, "Methods and dimension", measures, rows, note)


def _groups(preferred: Sequence[Preferred], dimensions: Sequence[Preferred]) -> Iterator[ScoreTable]:
    """Yield the means of groups of people: by dimension, and by criterion where a dimension has several."""
    several = {
        (entry["method"], entry["baseline"], name)
        for entry in dimensions
        if len(entry["criteria"]) > 1
        for name in entry["criteria"]
    }
    single = [
        entry
        for entry in preferred
        if not dimensions or (entry["method"], entry["baseline"], entry["criterion"]) in several
    ]
    named = [
        *((entry["dimension"], entry) for entry in dimensions),
        *((criterion_text(entry), entry) for entry in single),
    ]
    rows = [
        ScoreRow(
            label=f"{pair_text(entry)} · {name} · {group}",
            scores={"mean": bare(mean), **sizes(mean, "judgements", "people")},
        )
        for name, entry in named
        for group, mean in entry["groups"].items()
    ]
    measures = [
        MEAN,
        Measure(name="judgements", label="Decided (n)", unit="count"),
        Measure(name="people", label="People", unit="count"),
    ]
    note = "People who name no group are in none of these rows."
    title, heading = "What groups of people preferred", "Methods, criterion and group"
    yield from if_any("preference_groups", title, heading, measures, rows, note)
