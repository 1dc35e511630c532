"""What people are to judge, how many items that takes, and the settings of who judges what.

These are the input and the result of a design.
"""

import math
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from statistics import NormalDist
from typing import Any

from pydantic import Field, ValidationError

from ...errors import ConfigError
from ...schemas.values import Own
from .exclusions import Rules
from .sources.source import DrawOptions


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

    Raises:
        ConfigError: a setting is out of its range, or two contradict each other.
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
    rules: Mapping[str, Any] = {}  # fields of :class:`.exclusions.Rules`
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
    """Return the names of all presets."""
    return tuple(
        sorted(
            entry.name.removesuffix(ENDING)
            for entry in (files(__package__) / "published").iterdir()
            if entry.name.endswith(ENDING)
        )
    )


@cache
def load_preset(name: str) -> Preset:
    """Return a preset."""
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
