"""Methods against each other in a report, in words; and what low, middle and high values look like."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Generic, Literal, NamedTuple, TypeVar

from ...schemas.canonical import digest
from ...schemas.judgement import EvaluationManifest
from ...schemas.text import plural
from ...schemas.values import Score
from ...tables.grid import Unit
from ...validators.resampling import FEW, LEAST
from ..metrics.metric import Quantity
from ..stats.paired import LEVEL, Paired
from ..stats.uncertainty import Uncertainty
from .model import Comparison, Definition, Example, Examples, Frame, Snap

T = TypeVar("T")
Level = Literal["low", "middle", "high"]
ENDMOST: tuple[Level, ...] = ("low", "high")
ENDS = {True: "Higher is better.", False: "Lower is better.", None: "Neither end is better."}


def comparison(
    one: Paired,
    measure: str,
    *,
    higher: bool | None,
    better: str = "is better",
    unit: Unit = "points",
    shown: bool = True,
) -> Comparison:
    """Return a paired comparison as a report shows it.

    ``higher``: whether the higher value is the better one; None of a diagnostic, where neither is.
    """
    if one.difference is None:
        difference = Score(value=None, status="undefined", reason="no question is valid for both")
    else:
        difference = Score(value=one.difference, status="ok", low=one.low, high=one.high)
    return Comparison(
        measure=measure, first=one.first, second=one.second, difference=difference, unit=unit,
        p={"Wilcoxon": one.p_wilcoxon_corrected, one.resampled_test: one.p_bootstrap_corrected},
        effects={"Cohen's d": one.cohen_d, "rank-biserial": one.rank_biserial},
        pairs=one.n, verdict=_verdict(one, better, higher=higher), shown=shown,
    )  # fmt: skip


def comparison_note(methods: int, pairs: int, units: str, how: str) -> str:
    """Return how methods were compared, or why they were not.

    ``pairs``: how many comparisons there are. ``units``: what two methods must share, as in ``no two methods
    have a story in common that counts``. ``how``: how they were compared.
    """
    if methods < 2:
        return "There is only one method; fabula compare compares it with other evaluations."
    return how if pairs else f"No two methods have {units}."


def sentences(notes: Iterable[str]) -> Iterator[str]:
    """Yield notes as sentences."""
    yield from (f"{note[:1].upper()}{note[1:]}." for note in notes)


def day_of(label: str, manifest: EvaluationManifest) -> dict[str, str]:
    """Return the day of an evaluation under its label; nothing where it is not known."""
    created = manifest.environment.get("created_at")
    return {label: str(created)[:10]} if created else {}


def resampling_definition(used: Uncertainty, unit: str) -> Definition:
    """Return what a report says of its intervals and p-values."""
    units = plural(unit)
    few = f" Below {FEW} {units} they are of Student's t, below {LEAST} there are none."
    return Definition(
        name="bootstrap", value=f"{used.resamples:,} resamples, seed {used.seed}, {used.correction}",
        meaning=f"{units.capitalize()} are drawn with replacement; intervals are percentiles."
        f"{few if used.interval == 'by-size' else ''} P-values of several comparisons are corrected by "
        f"{used.correction.capitalize()}.",
    )  # fmt: skip


def _verdict(one: Paired, better: str, *, higher: bool | None) -> str:
    if one.difference is None or not one.tests:
        return f"Too few {plural(one.unit)} for a test." if 0 < one.n < LEAST else "Cannot be said."
    if winner := one.winner(higher=higher is not False):
        return f"{winner} {better}." if higher is not None else "They differ; neither end is better."
    disagree = len(one.tests) == 2 and min(one.tests) < LEVEL
    return "The two tests disagree." if disagree else "These data do not tell them apart."


class Valued(NamedTuple, Generic[T]):
    """One thing with a value: what it is in words, and what makes its pictures."""

    value: float
    text: str
    thing: T


def examples_of(
    quantity: Quantity,
    meaning: str,
    valued: Sequence[Valued[T]],
    pictures: Callable[[T], Sequence[Frame | Snap]],
    unit: Unit = "number",
) -> Examples | None:
    """Return the card of a score; None where nothing has a value."""
    if not valued:
        return None
    ordered = sorted(valued, key=lambda one: (round(one.value, 9), digest(one.text)))
    places: dict[Level, int] = {"low": 0, "middle": len(ordered) // 2, "high": len(ordered) - 1}
    names: tuple[Level, ...] = tuple(places) if len(ordered) > 2 else ENDMOST[: len(ordered)]
    return Examples(
        name=quantity.name, label=quantity.label, note=f"{meaning} {ENDS[quantity.higher]}", unit=unit,
        total=len(ordered),
        shown=tuple(
            Example(
                level=level, value=ordered[places[level]].value, text=ordered[places[level]].text,
                frames=tuple(pictures(ordered[places[level]].thing)),
            )
            for level in names
        ),
    )  # fmt: skip
