"""What people preferred, drawn for each pair of methods (KathaTrace, Figures 4-9), with n and what bars are.

A pair has figures of its own, as it has tests of its own. They are drawn from the calibration alone: nothing
is smoothed, and nothing is drawn where nobody was asked.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from ...schemas.text import tallied
from ..stats.paired import LEVEL
from .figure_model import Distribution, Spread
from .figures import Figure
from .model import Plot, PlotPoint
from .opinions import BONFERRONI, OLD, STEPS, Preferred, criterion_text, pair_text, pairs_of
from .people import Calibration, score_of
from .showing import MINUS, p_text

MOST_PAIRS = 6
"""Pairs of methods that are drawn; the tables have all of them."""
BARS = "Bars: 95 % intervals of the mean, participants drawn with replacement."
SCALE = f"From {MINUS}2 (strongly the baseline) to +2 (strongly the method)."
VERDICTS = ("rejected by both tests", "rejected by one of the tests", "not rejected")


def preference_figures(document: Calibration) -> dict[str, tuple[Figure, ...]]:
    """Return name of a table of preferences -> its figures, pair after pair."""
    criteria = _drawn(document["preferences"])
    dimensions = _drawn(document.get("preference_dimensions", ()))
    figures: dict[str, tuple[Figure, ...]] = {
        "preferences": tuple(figure for suffix, said in criteria for figure in _spread(said, suffix)),
        "preference_tests": tuple(
            _significance(_known(said), suffix) for suffix, said in criteria if _known(said)
        ),
        "preference_dimensions": tuple(
            _dimensions(_known(said), suffix) for suffix, said in dimensions if _known(said)
        ),
        "preference_groups": tuple(
            _groups(grouped, suffix)
            for suffix, said in dimensions
            if (grouped := [entry for entry in _known(said) if entry["groups"]])
        ),
    }
    return {name: drawn for name, drawn in figures.items() if drawn}


def missing_preferences(document: Calibration) -> Iterator[str]:
    """Yield which figures of preferences there are not, and why."""
    preferred: Sequence[Preferred] = document["preferences"]
    if not preferred:
        yield "Preferences (Figures 4 to 9): nobody was asked to compare two methods."
        return
    pairs = pairs_of(preferred)
    if len(pairs) > MOST_PAIRS:
        more = f"Figures of {len(pairs) - MOST_PAIRS:,} more pairs of methods"
        yield f"{more}: the first {MOST_PAIRS} pairs are drawn; the tables have all."
    for entry in preferred:
        if entry["mean"]["value"] is None:
            name = f"{entry['criterion']} of {pair_text(entry)}"
            yield f"The mean preference by {name} (Figures 7 and 8): nobody decided."
    if "preference_dimensions" not in document:
        yield f"Preferences by dimension (Figures 6 and 9): {OLD}."
    elif not any(entry["groups"] for entry in preferred):
        yield "Preferences by group of people (Figure 9): no line of a preference names a group."


def _drawn(preferred: Sequence[Preferred]) -> list[tuple[str, list[Preferred]]]:
    """Return the pairs of methods that are drawn, each with what makes the names of its figures its own."""
    pairs = list(pairs_of(preferred).values())
    return [
        ("" if len(pairs) == 1 else f"-{number}", said) for number, said in enumerate(pairs[:MOST_PAIRS], 1)
    ]


def _known(preferred: Sequence[Preferred]) -> list[Preferred]:
    return [entry for entry in preferred if entry["mean"]["value"] is not None]


def _spread(preferred: Sequence[Preferred], suffix: str) -> Iterator[Figure]:
    """Yield Figures 4, 5 and 7 of a pair of methods."""
    pair, sizes = pair_text(preferred[0]), _sizes(entry["mean"] for entry in preferred)
    bands = tuple(
        Spread(
            label=criterion_text(entry), counts=tuple(entry["values"]), mean=score_of(entry["mean"]),
            unclear=entry["unclear"],
        )
        for entry in preferred
    )  # fmt: skip
    unclear = sum(entry["unclear"] for entry in preferred)
    left_out = f" {tallied(unclear, 'unclear judgements')} are left out." if unclear else ""
    yield Distribution(
        name=f"preference-shares{suffix}", title=f"How preferences are distributed: {pair}", shape="stacked",
        note=f"Share of each step by criterion, in %; half of the judgements without a preference on either "
        f"side of the line. There are no error bars. {sizes}{left_out} (KathaTrace, Figure 4)",
        steps=tuple(STEPS), labels=tuple(STEPS.values()), bands=bands,
    )  # fmt: skip
    yield Distribution(
        name=f"preference-density{suffix}", title=f"Density of preferences: {pair}", shape="violin",
        note=f"The scale has five steps: each has a column, nothing is smoothed. Its height is the share of "
        f"judgements, on one scale for all criteria. {SCALE} {BARS} {sizes} (KathaTrace, Figure 5)",
        steps=tuple(STEPS), labels=tuple(STEPS.values()), bands=bands,
    )  # fmt: skip
    ranked = sorted(_known(preferred), key=lambda entry: -entry["mean"]["value"])
    if ranked:
        yield Plot(
            name=f"preference-ranks{suffix}", title=f"Criteria by mean preference: {pair}", unit="plain",
            note=f"The mean of all judgements by a criterion, the highest first. {SCALE} {BARS} {sizes} "
            "(KathaTrace, Figure 7)",
            groups={criterion_text(entry): (_point("Mean preference", entry["mean"]),) for entry in ranked},
        )  # fmt: skip


def _significance(known: Sequence[Preferred], suffix: str) -> Plot:
    """Return Figure 8: which criteria are told from no preference after correction."""
    first, sizes = known[0], _sizes(entry["mean"] for entry in known)
    correction = str(first.get("correction", BONFERRONI)).capitalize()
    return Plot(
        name=f"preference-tests{suffix}", title=f"Significance of preferences: {pair_text(first)}",
        unit="plain", series=VERDICTS,
        note=f"Which one-sided Wilcoxon signed-rank tests reject no preference at {LEVEL:g}, corrected by "
        f"{correction} for {first['tests']:,} criteria: that over single judgements, whose corrected p is "
        "given with the criterion, and that over one mean per person. Marks stand at the mean preference. "
        f"{BARS} They are not corrected. {sizes} (KathaTrace, Figure 8)",
        groups={_tested(entry): (_point(_verdict(entry), entry["mean"]),) for entry in known},
    )  # fmt: skip


def _dimensions(known: Sequence[Preferred], suffix: str) -> Plot:
    """Return Figure 6: the mean of each dimension."""
    sizes = _sizes((entry["mean"] for entry in known), "dimension")
    return Plot(
        name=f"preference-dimensions{suffix}", title=f"Mean preference by dimension: {pair_text(known[0])}",
        unit="plain",
        note=f"The mean of all judgements by the criteria of a dimension (Table 51). {SCALE} {BARS} {sizes} "
        "(KathaTrace, Figure 6)",
        groups={entry["dimension"]: (_point("Mean preference", entry["mean"]),) for entry in known},
    )  # fmt: skip


def _groups(grouped: Sequence[Preferred], suffix: str) -> Plot:
    """Return Figure 9: the mean of each group of people, by dimension."""
    sizes = _sizes((mean for entry in grouped for mean in entry["groups"].values()), "group and dimension")
    return Plot(
        name=f"preference-groups{suffix}", unit="plain",
        title=f"Mean preference by group of people: {pair_text(grouped[0])}",
        note=f"The mean of all judgements of a group by the criteria of a dimension. {SCALE} {BARS} {sizes} "
        "(KathaTrace, Figure 9)",
        groups={
            entry["dimension"]: tuple(_point(group, mean) for group, mean in entry["groups"].items())
            for entry in grouped
        },
    )  # fmt: skip


def _point(series: str, mean: Mapping[str, Any]) -> PlotPoint:
    return PlotPoint(series=series, score=score_of(mean))


def _tested(entry: Preferred) -> str:
    """Return a criterion behind its corrected p: a long name is cut at its end."""
    text = p_text(entry["p_corrected"] if entry["test"]["count"] else None)
    return f"p {text if text.startswith('<') else f'= {text}'} · {criterion_text(entry)}"


def _verdict(entry: Preferred) -> str:
    tests = (("test", "p_corrected"), ("by_person", "p_corrected_by_person"))
    rejected = sum(bool(entry[test]["count"]) and entry[p] < LEVEL for test, p in tests)
    return VERDICTS[2 - rejected]


def _sizes(means: Iterable[Mapping[str, Any]], of: str = "criterion") -> str:
    """Return n as a sentence: how many judgements and people each mean stands on."""
    counts = [mean["counts"] for mean in means]
    parts = [f"{_range([count[name] for count in counts])} {name}" for name in ("judgements", "people")]
    return f"n: {' of '.join(parts)} per {of}."


def _range(numbers: Sequence[int]) -> str:
    least, most = min(numbers, default=0), max(numbers, default=0)
    return f"{least:,}" if least == most else f"{least:,} to {most:,}"
