"""What people are to judge, how many items that takes, and the settings of who judges what.

These are the input and the result of a design.
"""

import math
import tomllib
from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from importlib.resources import files
from itertools import combinations, groupby
from statistics import NormalDist, median
from typing import Any

from pydantic import Field, ValidationError

from ...errors import ConfigError
from ...schemas.judgement import HumanKind, HumanRow
from ...schemas.text import counted
from ...schemas.values import Own
from ..study import Exclusion, Kept
from ..study import exclude as left_out
from .sources.source import DrawOptions

# -- Who and what is left out of a study, by rules that were written down before; every reason is kept
#
# Question: which answers were not given with care, or not by oneself?
# Formula: of a person, all lines go where any rule says so; all rules look at all that was said, so that
#   their order is nothing. Checks: more failed than allowed. Speed: the median, over a person's lines, of
#   their seconds divided by everybody's median for lines of that kind, below a share. Consistency: repeated
#   controls answered as before, below a share. Straight-lining: the longest run of one answer in a row on
#   one scale, as a share of the person's answers on it, above a share. Copying: a share of the answers that
#   two people have in common is the same word for word, and so many would be had by chance less than once
#   in a thousand studies: by the binomial distribution with the share of matches of all other pairs in
#   lines of that kind, times the number of pairs. Drop-outs: fewer items than wanted. Of the others, single
#   lines go that were answered too fast.
# Input: lines of a study; checks are lines of kind ``attention``.
# Undefined when: a rule is None; it is then off. Straight-lining and copying need enough answers to go by,
#   and copying a third person, to tell what is usual.
# Source: KathaTrace, F.1 (checks, speed, consistency; no thresholds). Straight-lining: the long-string
#   index of Johnson (2005), as in Meade and Craig (2012). Speed: the relative index of Leiner (2019).
#   Copying: matches of answers against chance, as in Wesolowsky (2000).
# Departures: both of two copycats go, since their answers do not tell who copied. The chance of a match is
#   one number for each kind, not one for each person and item: two people of one taste match more often
#   than that, so that ``max_match`` should be far above what is usual.
# Example: 30 ratings of which 25 in a row say 3 are a run of 25/30 = 0.83: out, if ``max_same`` is 0.8.

CHANCE = 0.001
"""How likely it may be that a study has two people who match so often by chance, for them to be copycats."""
Pressed = Callable[[HumanRow], Hashable]
"""A line -> what the person did to say it, such as which side was chosen."""


class Rules(Own):
    """Rules of exclusion; None is off."""

    attention_failures: int | None = Field(default=None, ge=0)  # most checks that a person may fail
    # least seconds of a line, for all kinds or for each; faster lines go
    min_seconds: float | Mapping[HumanKind, float] | None = None
    # least median speed of a person, as a share of everybody's median seconds
    min_speed_share: float | None = Field(default=None, gt=0, lt=1)
    # least share of repeated controls answered as before
    min_consistency: float | None = Field(default=None, ge=0, le=1)
    consistency_items: int = Field(default=1, ge=1)  # how many repeated controls a person must have for that
    # greatest share of a person's answers on a scale that may be one answer in a row
    max_same: float | None = Field(default=None, gt=0, lt=1)
    same_items: int = Field(default=10, ge=2)  # how many answers on the scale a person must have for that
    # kinds of lines that this is asked of; of others it is usual that one answer prevails
    same_kinds: tuple[HumanKind, ...] = ("rating", "preference")
    # share of shared answers that are the same, from which two people are copycats
    max_match: float | None = Field(default=None, gt=0, le=1)
    match_items: int = Field(default=20, ge=2)  # how many answers two people must share for that
    # kinds of lines that this is asked of
    match_kinds: tuple[HumanKind, ...] = ("answer", "moral_label", "rating", "preference", "review")
    min_items: int | None = Field(default=None, ge=1)  # fewest items that a person must have answered


@dataclass(frozen=True, slots=True)
class Reason:
    """Why somebody or something is left out: the rule, as a field of :class:`Rules`, and a sentence."""

    rule: str
    text: str


@dataclass(frozen=True, slots=True)
class Dropped:
    """A line that is left out, of somebody whose other lines count."""

    row: HumanRow
    reason: Reason


@dataclass(frozen=True)
class Excluded:
    """What is left out of a study, and what counts."""

    # person -> why all their lines are left out; every rule that says so
    people: Mapping[str, tuple[Reason, ...]]
    rows: tuple[Dropped, ...]  # lines of others that are left out
    kept: Kept  # the lines that count, without checks

    def as_json(self) -> dict[str, Any]:
        """Return who and what is left out, as plain JSON, without the lines that count."""
        return {
            "people": {
                rater: [{"rule": reason.rule, "why": reason.text} for reason in reasons]
                for rater, reasons in self.people.items()
            },
            "by_rule": dict(
                sorted(Counter(reason.rule for reasons in self.people.values() for reason in reasons).items())
            ),
            "lines": len(self.rows),
            "lines_by_rule": dict(sorted(Counter(dropped.reason.rule for dropped in self.rows).items())),
            "lines_kept": len(self.kept.rows),
        }


def answer_of(row: HumanRow) -> Hashable:
    """Return what a line says, so that equal answers are equal: case and spaces of free text are nothing."""
    text = None if row.answer is None else " ".join(row.answer.casefold().split())
    return (text, row.labels[:1], row.value, row.completion)


def apply(rows: Sequence[HumanRow], rules: Rules, pressed: Pressed = answer_of) -> Excluded:
    """Return what rules leave out of the lines of a study."""
    careful = left_out(rows, Exclusion(attention_failures=len(rows)))
    said = [row for row in careful.rows if not row.repeat]
    whys: dict[str, list[Reason]] = {}
    for rule in (
        _inattentive(rows, rules),
        _speeders(careful.rows, rules),
        _inconsistent(rows, careful.consistency, rules),
        _straight_liners(said, rules, pressed),
        _copycats(said, rules),
        _drop_outs(rows, said, rules),
    ):
        for rater, reason in rule:
            whys.setdefault(rater, []).append(reason)
    people = {rater: tuple(reasons) for rater, reasons in sorted(whys.items())}
    dropped, kept = [], []
    for row in careful.rows:
        if row.rater in people:
            continue
        limit = _least_seconds(row, rules)
        if row.seconds is not None and row.seconds < limit:
            text = f"answered in {row.seconds:.1f} s, below {limit:g} s"
            dropped.append(Dropped(row, Reason("min_seconds", text)))
        else:
            kept.append(row)
    reasons = {rater: "; ".join(reason.text for reason in each) for rater, each in people.items()}
    return Excluded(people, tuple(dropped), Kept(tuple(kept), reasons, len(dropped), careful.consistency))


Found = Iterator[tuple[str, Reason]]


def _least_seconds(row: HumanRow, rules: Rules) -> float:
    if isinstance(rules.min_seconds, Mapping):
        return rules.min_seconds.get(row.kind, 0.0)
    return rules.min_seconds or 0.0


def _inattentive(rows: Sequence[HumanRow], rules: Rules) -> Found:
    if rules.attention_failures is None:
        return
    failed = Counter(row.rater for row in rows if row.kind == "attention" and row.value == 0)
    for rater, count in failed.items():
        if count > rules.attention_failures:
            yield rater, Reason("attention_failures", f"attention checks failed: {count}")


def _speeders(rows: Sequence[HumanRow], rules: Rules) -> Found:
    if rules.min_speed_share is None:
        return
    timed = [(row.rater, row.kind, row.seconds) for row in rows if row.seconds is not None]
    usual = {
        kind: median(seconds for _, its, seconds in timed if its == kind) for kind in {k for _, k, _ in timed}
    }
    shares: dict[str, list[float]] = {}
    for rater, kind, seconds in timed:
        if usual[kind] > 0:
            shares.setdefault(rater, []).append(seconds / usual[kind])
    for rater, its in shares.items():
        if (share := median(its)) < rules.min_speed_share:
            yield rater, Reason("min_speed_share", f"took {share:.0%} of the median time")


def _inconsistent(rows: Sequence[HumanRow], consistency: Mapping[str, float], rules: Rules) -> Found:
    repeats = Counter(row.rater for row in rows if row.repeat)
    for rater, share in consistency.items() if rules.min_consistency is not None else ():
        if share < (rules.min_consistency or 0) and repeats[rater] >= rules.consistency_items:
            text = f"answered {share:.0%} of the repeated controls as before"
            yield rater, Reason("min_consistency", text)


def _straight_liners(said: Sequence[HumanRow], rules: Rules, pressed: Pressed) -> Found:
    if rules.max_same is None:
        return
    scales: dict[tuple[str, str, str], list[HumanRow]] = {}
    for row in said:
        if row.kind in rules.same_kinds:
            scales.setdefault((row.rater, row.kind, row.criterion or ""), []).append(row)
    for (rater, kind, criterion), rows in sorted(scales.items()):
        if len(rows) < rules.same_items:
            continue
        if all(row.at is not None for row in rows):
            rows.sort(key=lambda row: datetime.fromisoformat(row.at or ""))
        longest = max(len(list(run)) for _, run in groupby(rows, pressed))
        if longest / len(rows) > rules.max_same:
            scale = f"{kind} {criterion}".strip()
            text = f"{scale}: {longest} of {len(rows)} answers in a row are the same"
            yield rater, Reason("max_same", text)


Shared = Counter[tuple[str, str, str]]
"""Two people and a kind of lines -> how many."""


def _copycats(said: Sequence[HumanRow], rules: Rules) -> Found:
    if rules.max_match is None:
        return
    shared, matches = _in_common(said, rules.match_kinds)
    in_all = {kind: _of_kind(shared, kind) for kind in rules.match_kinds}
    same_in_all = {kind: _of_kind(matches, kind) for kind in rules.match_kinds}
    pairs = sorted({(rater, other) for rater, other, _ in shared})
    for pair in pairs:
        own = {kind: (shared[*pair, kind], matches[*pair, kind]) for kind in rules.match_kinds}
        total, same = (sum(numbers) for numbers in zip(*own.values(), strict=True))
        if total < rules.match_items or same < rules.max_match * total:
            continue
        chance = sum(
            common * (same_in_all[kind] - its) / (in_all[kind] - common) if in_all[kind] > common else common
            for kind, (common, its) in own.items()
        ) / total  # fmt: skip
        if _tail(same, total, chance) * len(pairs) < CHANCE:
            for rater, partner in (pair, pair[::-1]):
                text = f"{same} of {total} answers are the same as those of {partner}; {chance:.0%} are usual"
                yield rater, Reason("max_match", text)


def _in_common(said: Sequence[HumanRow], kinds: Sequence[HumanKind]) -> tuple[Shared, Shared]:
    """Return how many answers every two people share, and how many of these are the same."""
    units: dict[tuple[object, ...], list[tuple[str, Hashable]]] = {}
    for row in said:
        if row.kind in kinds:
            units.setdefault(row.place()[1:], []).append((row.rater, answer_of(row)))
    shared, matches = Shared(), Shared()
    for (kind, *_), answers in units.items():
        for (rater, answer), (other, theirs) in combinations(sorted(answers, key=lambda each: each[0]), 2):
            shared[rater, other, str(kind)] += 1
            matches[rater, other, str(kind)] += answer == theirs
    return shared, matches


def _of_kind(numbers: Shared, kind: str) -> int:
    return sum(number for (_, _, its), number in numbers.items() if its == kind)


def _tail(same: int, total: int, chance: float) -> float:
    """Return the probability of so many matches or more, of a total, by chance."""
    from scipy.special import bdtrc

    return float(bdtrc(same - 1, total, chance)) if same else 1.0


def _drop_outs(rows: Sequence[HumanRow], said: Sequence[HumanRow], rules: Rules) -> Found:
    if rules.min_items is None:
        return
    items: dict[str, set[tuple[object, ...]]] = {row.rater: set() for row in rows}
    for row in said:
        items[row.rater].add((row.item, row.condition, row.method, row.seed, row.baseline))
    for rater, its in items.items():
        if len(its) < rules.min_items:
            yield rater, Reason("min_items", f"answered {counted(len(its), 'item')}")


# --


@dataclass(frozen=True, slots=True)
class Unit:
    """What one person judges at a time."""

    item: str  # opaque id
    story: str  # the cluster that it belongs to
    # methods that are shown: one for a rating, two for a pair, none where only text is read
    treatments: tuple[str, ...] = ()
    condition: str | None = None  # evidence condition
    sides: int = 1  # 2 where two things stand side by side and their sides are drawn for every seat


@dataclass(frozen=True, slots=True)
class Plan:
    """The settings of a design.

    Attributes:
        seed: of every draw.
        raters: votes that are wanted of each item of the overlap.
        least: votes that are wanted of every other item.
        overlap: share of the items that get ``raters`` votes, in [0, 1]; whole stories are drawn, so that
            every treatment and condition has that share.
        seats: how many seats there are, such as the people at hand; None: as few as the rest allows.
        per_seat: most items of a seat, repeats and checks not counted; None: no limit.
        block: most places between two breaks.
        repeats: items of each seat that are shown a second time.
        gap: how many places later that is at least.
        checks: how many of the given gold items each seat has, spread over it.
        apart: never two conditions of one story in a seat.
        once: never two items of one story in a seat.

    Raises ConfigError: a setting is out of its range, or two contradict each other.
    """

    seed: int = 42
    raters: int = 3
    least: int = 1
    overlap: float = 1.0
    seats: int | None = None
    per_seat: int | None = None
    block: int = 20
    repeats: int = 0
    gap: int = 5
    checks: int = 0
    apart: bool = False
    once: bool = False

    def __post_init__(self) -> None:
        lowest = {
            "raters": 1, "least": 1, "seats": 1, "per_seat": 1, "block": 1, "gap": 1, "repeats": 0,
            "checks": 0,
        }  # fmt: skip
        for name, low in lowest.items():
            value = getattr(self, name)
            if value is not None and value < low:
                raise ConfigError(name, what=f"{value} is below {low}", fix=f"give a number from {low}")
        if not 0.0 <= self.overlap <= 1.0:
            what = f"the share {self.overlap} is not from 0 to 1"
            raise ConfigError("overlap", what=what, fix="give a share, such as 0.2")
        if self.least > self.raters:
            raise ConfigError(
                "least",
                what=f"{self.least} votes of every item are more than the {self.raters} of the overlap",
                fix="lower least, or raise raters",
            )


@dataclass(frozen=True, slots=True)
class Place:
    """One thing that a person is asked."""

    item: str  # of the unit or of the gold item
    block: int  # between which breaks, from 0
    repeat: int = 0  # 1 for the second time in this seat
    flip: bool = False  # whether the two things change sides: what comes second in ``treatments`` stands left
    check: bool = False  # whether it is a gold item, whose answer is known


@dataclass(frozen=True, slots=True)
class Seat:
    """What one person is asked, in order, without training."""

    number: int
    places: tuple[Place, ...]


def items_for(
    width: float, variance: float, raters: int = 3, by_item: float = 0.0, level: float = 0.95
) -> int:
    """Return the fewest items whose mean vote has a normal interval no wider than wished.

    The mean of n items with m votes each has the variance s^2 (a + (1 - a) / m) / n, where votes have the
    variance s^2, of which the share a is due to their items; 1 + (m - 1) a is the design effect (Kish 1965).
    The people are taken as given: other people may differ by more. Example: a share of one half, s^2 = 1/4,
    one vote each: a width of 0.1 needs (2 * 1.96 / 0.1)^2 / 4 = 384.1, so 385 items (Cochran 1977).

    ``by_item``: share of the variance that is due to items, in [0, 1].
    """
    if width <= 0 or variance < 0:
        what = f"a width of {width:g} and a variance of {variance:g}"
        raise ConfigError("--width", what=what, fix="give a width above 0 and a variance from 0")
    if not 0.0 <= by_item <= 1.0:
        what = f"the share {by_item:g} is not from 0 to 1"
        raise ConfigError("--by-item", what=what, fix="give a share, such as 0.4")
    of_item = variance * (by_item + (1 - by_item) / raters)
    return max(1, math.ceil((2 * NormalDist().inv_cdf((1 + level) / 2) / width) ** 2 * of_item))


# -- Presets: studies as papers describe them, as data: task, plan, rules, what is drawn, and other settings
#
# What the user says goes before what a preset says. Presets lie in ``people/review/published``.

ENDING = ".toml"


class Preset(Own):
    """A study as a paper describes it."""

    name: str  # the name of its file
    task: str  # what is asked
    source: str = Field(min_length=1)  # where it comes from, and what of it is ours
    training: int = Field(default=0, ge=0)  # training items that the source names; 0: it names none
    plan: Mapping[str, int | float | bool] = {}  # fields of :class:`.plan.Plan`
    rules: Mapping[str, Any] = {}  # fields of :class:`Rules`
    draw: Mapping[str, Any] = {}  # fields of :class:`.sources.source.DrawOptions`
    protocol: Mapping[str, Any] = {}  # other fields of the protocol

    def planned(self, given: Mapping[str, Any]) -> Plan:
        """Return how items are dealt to people."""
        return Plan(**{**self.plan, **given})

    def ruled(self, given: Mapping[str, Any]) -> Rules:
        """Return who is left out, and when; ``given`` goes before the preset."""
        return Rules.model_validate({**self.rules, **given})

    def chosen(self, given: Mapping[str, Any]) -> DrawOptions:
        """Return what of a source becomes items; ``given`` goes before the preset."""
        own = {name: tuple(value) if isinstance(value, list) else value for name, value in self.draw.items()}
        return DrawOptions(**{**own, **given})


def preset_names() -> tuple[str, ...]:
    return tuple(
        sorted(
            entry.name.removesuffix(ENDING)
            for entry in (files(__package__) / "published").iterdir()
            if entry.name.endswith(ENDING)
        )
    )


@cache
def load_preset(name: str) -> Preset:
    if name not in preset_names():
        raise ConfigError(
            "--preset",
            expected=f"one of {', '.join(preset_names())}",
            found=repr(name),
            fix="choose one of them",
        )
    content = (files(__package__) / "published" / f"{name}{ENDING}").read_text("utf-8")
    try:
        return Preset.model_validate({"name": name, **tomllib.loads(content)})
    except (ValidationError, tomllib.TOMLDecodeError) as error:
        raise ValueError(f"the preset {name} is broken: {error}") from error
