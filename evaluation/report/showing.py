"""Methods against each other in a report, in words; and what low, middle and high values look like.

What was asked and what came back, per judge: outcomes and cost, counted over an archive.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Generic, Literal, NamedTuple, TypeVar

from pydantic import ValidationError

from ...errors import ConfigError
from ...pages.grid import Unit
from ...schemas.canonical import digest
from ...schemas.judgement import EvaluationManifest, Judgement
from ...schemas.plain_files import open_plain
from ...schemas.text import plural
from ...schemas.values import Score
from ...validators.resampling import FEW, LEAST
from ..archive.archive import JUDGEMENTS, read_archive
from ..metrics.metric import Quantity
from ..stats.paired import LEVEL, Paired
from ..stats.uncertainty import Uncertainty
from .model import LEAST as LEAST_COVERAGE
from .model import Comparison, CountRow, CountTable, Definition, Example, Examples, Frame, Snap
from .pictures import MEGABYTES

METHODS = 6
"""Methods whose units are shown with pictures, where no others are asked for."""
FEW_ANSWERS = 0.95
"""Share of answers of a judge below which a page says so at its top."""
OUTCOMES = ("answered", "refused", "blocked", "truncated", "malformed", "failed")


def read_lines(folder: Path) -> Iterator[Judgement]:
    """Yield the judgements of an evaluation folder, one line at a time."""
    try:
        with open_plain(folder / JUDGEMENTS, follow=True) as handle:
            for line in handle:
                yield Judgement.model_validate_json(line)
    except (OSError, ValidationError):
        read_archive(folder)  # says everything that is wrong with it
        raise


@dataclass
class Accounts:
    """Counts over the judgements of an archive; a matcher's own verdicts are no replies and left out."""

    replies: Counter[str] = field(default_factory=Counter)
    outcomes: dict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    tokens: dict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    costs: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    reported: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))

    def add(self, judgement: Judgement) -> None:
        """Take in one judgement."""
        if judgement.kind == "match":
            return
        judge = judgement.judge.spec
        self.replies[judge] += 1
        self.outcomes[judge][judgement.outcome] += 1
        for name, count in (("input", judgement.input_tokens), ("output", judgement.output_tokens)):
            if count is not None:
                self.tokens[judge][name] += count
        if judgement.cost is not None:
            self.costs[judge].append(judgement.cost)
        if judgement.judge.reported_model:
            self.reported[judge].add(judgement.judge.reported_model)

    @classmethod
    def of(cls, judgements: Iterable[Judgement]) -> "Accounts":
        """Return the counts over some judgements."""
        accounts = cls()
        for judgement in judgements:
            accounts.add(judgement)
        return accounts

    def warnings(self) -> Iterator[str]:
        """Yield which judges answered so little that readers must know it first."""
        for judge, count in sorted(self.replies.items()):
            answered = self.outcomes[judge]["answered"]
            if answered < FEW_ANSWERS * count:
                yield f"{judge} answered {answered:,} of {count:,} requests; see Coverage and outcomes."

    @property
    def total(self) -> int:
        """How many replies there are."""
        return sum(self.replies.values())

    def outcome_table(self) -> CountTable:
        """Return the replies by outcome, one row per judge."""
        rows = [
            CountRow(label=judge, values={"replies": count, **{o: self.outcomes[judge][o] for o in OUTCOMES}})
            for judge, count in sorted(self.replies.items())
        ]
        columns = {"replies": "Replies", **{name: name.capitalize() for name in OUTCOMES}}
        return CountTable(
            name="outcomes", title="Replies by outcome", heading="Judge", columns=columns, rows=tuple(rows),
            note="Every request has exactly one outcome; replies that serve several methods count once.",
        )  # fmt: skip

    def cost_table(self) -> CountTable:
        """Return what the replies took, one row per judge."""
        columns = {
            "replies": "Replies", "input_tokens": "Input tokens", "output_tokens": "Output tokens",
            "usd": "USD", "without_price": "Replies of unknown price", "reported": "Model as reported",
        }  # fmt: skip
        rows = []
        for judge, count in sorted(self.replies.items()):
            costs, tokens = self.costs.get(judge, []), self.tokens.get(judge, Counter())
            values: dict[str, int | float | str | None] = {
                "replies": count,
                "input_tokens": tokens.get("input"),
                "output_tokens": tokens.get("output"),
                "usd": round(math.fsum(costs), 6) if costs else None,
                "without_price": count - len(costs),
                "reported": ", ".join(sorted(self.reported.get(judge, ()))) or None,
            }
            rows.append(CountRow(label=judge, values=values))
        return CountTable(
            name="cost", title="Replies and cost", heading="Judge", columns=columns, rows=tuple(rows),
            note="Tokens as the services counted them; USD if the price is known.",
        )  # fmt: skip


T = TypeVar("T")
Level = Literal["low", "middle", "high"]
ENDMOST: tuple[Level, ...] = ("low", "high")
ENDS = {True: "Higher is better.", False: "Lower is better.", None: "Neither end is better."}


def comparison(
    pair: Paired,
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
    if pair.difference is None:
        difference = Score(value=None, status="undefined", reason="no question is valid for both")
    else:
        difference = Score(value=pair.difference, status="ok", low=pair.low, high=pair.high)
    return Comparison(
        measure=measure, first=pair.first, second=pair.second, difference=difference, unit=unit,
        p={"Wilcoxon": pair.p_wilcoxon_corrected, pair.resampled_test: pair.p_bootstrap_corrected},
        effects={"Cohen's d": pair.cohen_d, "rank-biserial": pair.rank_biserial},
        pairs=pair.n, verdict=_verdict(pair, better, higher=higher), shown=shown,
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


def _verdict(pair: Paired, better: str, *, higher: bool | None) -> str:
    if pair.difference is None or not pair.tests:
        return f"Too few {plural(pair.unit)} for a test." if 0 < pair.n < LEAST else "Cannot be said."
    if winner := pair.winner(higher=higher is not False):
        return f"{winner} {better}." if higher is not None else "They differ; neither end is better."
    disagree = len(pair.tests) == 2 and min(pair.tests) < LEVEL
    return "The two tests disagree." if disagree else "These data do not tell them apart."


@dataclass(frozen=True)
class Wanted(Generic[T]):
    """What a report with pictures shows."""

    definitions: T  # how scores are made
    units: tuple[str, ...] = ()  # stories or episodes that were asked for; none for those that tell most
    methods: tuple[str, ...] = ()  # whose units are shown; none for the first ones
    megabytes: float = MEGABYTES  # how large all pictures together may be
    unranked: tuple[str, ...] = ()  # methods that are shown and not ranked
    least: float = LEAST_COVERAGE  # share of its units from which a method is ranked

    def check(self, units: Sequence[str], methods: Sequence[str]) -> None:
        """Refuse names of units and methods that are not in the evaluation."""
        for option, names, there in (
            ("--story", self.units, units), ("--method", self.methods, methods),
            ("--unranked", self.unranked, methods),
        ):  # fmt: skip
            unknown = [name for name in names if name not in there]
            if unknown:
                raise ConfigError(
                    option, what=f"{', '.join(unknown)} is not in the evaluation",
                    fix=f"use some of {', '.join(dict.fromkeys(there[:20]))}",
                )  # fmt: skip

    def shown(self, methods: Sequence[str]) -> tuple[str, ...]:
        """Return the methods whose units are shown, of these in order."""
        return self.methods or tuple(methods[:METHODS])


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
    ordered = sorted(valued, key=lambda entry: (round(entry.value, 9), digest(entry.text)))
    levels: dict[Level, int] = {"low": 0, "middle": len(ordered) // 2, "high": len(ordered) - 1}
    names: tuple[Level, ...] = tuple(levels) if len(ordered) > 2 else ENDMOST[: len(ordered)]
    return Examples(
        name=quantity.name, label=quantity.label, note=f"{meaning} {ENDS[quantity.higher]}", unit=unit,
        total=len(ordered),
        shown=tuple(
            Example(
                level=level, value=ordered[levels[level]].value, text=ordered[levels[level]].text,
                frames=tuple(pictures(ordered[levels[level]].thing)),
            )
            for level in names
        ),
    )  # fmt: skip
