"""A source: what it can draw items from, which options it has, and the function that draws."""

import random
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from ....errors import ConfigError, InputError
from ....schemas.canonical import Json
from ..items import Drawn

if TYPE_CHECKING:
    from ....releases.loading import Release

CONDITIONS = ("text", "image", "text_image")
LEAST = {"limit": 1, "per_prompt": 1, "count": 0}
"""Option -> its least value."""
FLAGS = {"methods": "--method", "stories": "--story", "splits": "--split", "labels": "--label",
         "conditions": "--condition", "pairs": "--pair", "per_prompt": "--per-prompt"}  # fmt: skip
"""Option -> how it is written, where that is not its name."""


@dataclass(frozen=True, slots=True)
class DrawOptions:
    """What becomes items.

    Attributes:
        methods: only outputs of this method [all].
        stories: only this story, prompt or question [all].
        splits: only stories of this split [all].
        labels: only prompts with this label [all].
        limit: only the first N stories or prompts.
        per_prompt: methods drawn at random for each story or prompt [all].
        count: how many items, or parts of each kind, are drawn at random.
        conditions: evidence that people are given: text, image or text_image.
        pairs: two methods to compare, as METHOD:BASELINE.
        controls: share of answers among the items that are accepted ones, from 0 to 1 [0.1].
        outputs: outputs of one method, where the source does not hold or name them.
        release: the release that was judged, where the evaluation does not know where it is.
        human: what people said, JSONL or CSV, whose answers are drawn from as well.
        also: another evaluation folder to draw from.
        seed: seed of every draw.

    Raises ConfigError: a number is out of its range, or a condition or a pair is none.
    """

    methods: tuple[str, ...] = ()
    stories: tuple[str, ...] = ()
    splits: tuple[str, ...] = ()
    labels: tuple[str, ...] = ()
    limit: int | None = None
    per_prompt: int | None = None
    count: int | None = None
    conditions: tuple[str, ...] = ()
    pairs: tuple[str, ...] = ()
    controls: float | None = None
    outputs: tuple[Path, ...] = ()
    release: Path | None = None
    human: Path | None = None
    also: tuple[Path, ...] = ()
    seed: int = 42

    def __post_init__(self) -> None:
        for name, least in LEAST.items():
            value = getattr(self, name)
            if value is not None and value < least:
                raise ConfigError(
                    flag_of(name), what=f"{value} is below {least}", fix=f"give a number from {least}"
                )
        if self.controls is not None and not 0.0 <= self.controls < 1.0:
            what = f"the share {self.controls:g} is not from 0 to below 1"
            raise ConfigError("--controls", what=what, fix="give a share, such as 0.1")
        for condition in self.conditions:
            if condition not in CONDITIONS:
                raise ConfigError(
                    "--condition", expected=f"one of {', '.join(CONDITIONS)}", found=repr(condition),
                    fix="choose one of them",
                )  # fmt: skip
        for pair in self.pairs:
            if ":" not in pair.strip(":"):
                raise ConfigError(
                    "--pair", expected="two methods as METHOD:BASELINE", found=repr(pair),
                    fix="name the method that should win first, then a colon, then what it is compared with",
                )  # fmt: skip

    @property
    def given(self) -> tuple[str, ...]:
        """The options that were given; the seed, which every source has, is left out."""
        return tuple(
            each.name
            for each in fields(self)
            if each.name != "seed" and getattr(self, each.name) != each.default
        )


def flag_of(option: str) -> str:
    """Return how an option is written on the command line."""
    return FLAGS.get(option, f"--{option}")


What = Literal["evaluation", "release", "run", "file", "folder"]
"""What lies at a path: an evaluation, a release, another run, a file, or a folder that is none of these."""
NOTHING = "choose others, or leave the option out"


@dataclass(frozen=True, slots=True)
class Material:
    """What items are drawn from."""

    path: Path  # where it lies
    what: What  # what it is
    kind: str  # of the evaluation, the release or the run; empty for a file or a folder
    options: DrawOptions  # what of it becomes items
    load: "Callable[[Path], Release]" = field(repr=False)  # loads a release as stories with their questions


@dataclass(frozen=True, slots=True)
class Drawing:
    """What was drawn."""

    items: tuple[Drawn, ...] = field(repr=False)  # the items, in an order that a seed does not change
    source: Mapping[str, Json]  # what they were drawn from, for the protocol: kind, name and hashes
    short: tuple[str, ...] = ()  # what could not be drawn in the wanted number, a line each

    def without(self, taken: Collection[Drawn]) -> tuple[Drawn, ...]:
        """Return the items that are not taken, such as those that became training or checks."""
        named = {each.named for each in taken}
        return tuple(each for each in self.items if each.named not in named)


@dataclass(frozen=True, slots=True)
class Source:
    title: str  # what it gives, in a few words
    takes: Mapping[What, tuple[str, ...]]  # what it can draw from -> the kinds of that; no kind named: any
    wanted: str  # the same in words, for a message
    options: tuple[str, ...]  # the options that it has, besides the seed
    draw: Callable[[Material], Drawing]  # draws the items

    def check(self, task: str, material: Material) -> None:
        """Check that items can be drawn from some material."""
        kinds = self.takes.get(material.what)
        if kinds is None or (kinds and material.kind not in kinds):
            there = f"{material.what} of kind {material.kind}" if material.kind else material.what
            article = "an" if there[0] in "aeiou" else "a"
            what = f"the task {task} cannot be made from this: it is {article} {there}"
            raise InputError.one(str(material.path), what=what, fix=f"give {self.wanted}")
        wrong = [name for name in material.options.given if name not in self.options]
        if wrong:
            listed = ", ".join(flag_of(name) for name in self.options) or "none"
            raise ConfigError(
                ", ".join(map(flag_of, wrong)), what=f"the task {task} does not have this option",
                fix=f"leave it out; its options for what is drawn are {listed}",
            )  # fmt: skip


def known_only(option: str, given: Collection[str], known: Collection[str], what: str) -> None:
    """Check that everything that was asked for is there."""
    strange = sorted(set(given) - set(known))
    if strange:
        there = ", ".join(sorted(known)[:10]) + (" and others" if len(known) > 10 else "")
        raise ConfigError(
            flag_of(option), what=f"there is no {what} {', '.join(strange)}",
            fix=f"check the spelling; there are: {there or 'none'}",
        )  # fmt: skip


def draw_methods(
    there: Mapping[str, Collection[str]], per_unit: int, draw: random.Random
) -> list[tuple[str, str]]:
    """Return unit and method of what is drawn: for each unit some methods, without replacement.

    ``there``: story or prompt -> the methods with an output of it; units and methods are sorted by name.
    """
    return [
        (unit, method)
        for unit, methods in sorted(there.items())
        for method in draw.sample(sorted(methods), min(per_unit, len(methods)))
    ]
