"""A source: what it can draw items from, which options it has, and the function that draws."""

import random
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from ....errors import ConfigError, InputError, UserError
from ....schemas.canonical import Json
from ..items import Drawn
from .options import DrawOptions, flag_of

if TYPE_CHECKING:
    from ....releases.loading import Release

What = Literal["evaluation", "release", "run", "file", "folder"]
"""What lies at a path: an evaluation, a release, another run, a file, or a folder that is none of these."""
NOTHING = "choose others, or leave the option out"


@dataclass(frozen=True, slots=True)
class Material:
    """What items are drawn from.

    Attributes:
        path: where it lies.
        what: what it is.
        kind: of the evaluation, the release or the run; empty for a file or a folder.
        options: what of it becomes items.
        load: loads a release as stories with their questions.
    """

    path: Path
    what: What
    kind: str
    options: DrawOptions
    load: "Callable[[Path], Release]" = field(repr=False)


@dataclass(frozen=True, slots=True)
class Drawing:
    """What was drawn.

    Attributes:
        items: the items, in an order that a seed does not change.
        source: what they were drawn from, for the protocol: kind, name and hashes.
        short: what could not be drawn in the wanted number, a line each.
    """

    items: tuple[Drawn, ...] = field(repr=False)
    source: Mapping[str, Json]
    short: tuple[str, ...] = ()

    def without(self, taken: Collection[Drawn]) -> tuple[Drawn, ...]:
        """Return the items that are not taken, such as those that became training or checks."""
        named = {each.named for each in taken}
        return tuple(each for each in self.items if each.named not in named)


@dataclass(frozen=True, slots=True)
class Source:
    """A source of items.

    Attributes:
        title: what it gives, in a few words.
        takes: what it can draw from -> the kinds of that; no kind named: any.
        wanted: the same in words, for a message.
        options: the options that it has, besides the seed.
        draw: draws the items.
    """

    title: str
    takes: Mapping[What, tuple[str, ...]]
    wanted: str
    options: tuple[str, ...]
    draw: Callable[[Material], Drawing]

    def check(self, task: str, material: Material) -> None:
        """Check that items can be drawn from some material.

        Raises:
            InputError: the task cannot be made from it. ConfigError: an option says nothing about it.
        """
        kinds = self.takes.get(material.what)
        if kinds is None or (kinds and material.kind not in kinds):
            there = f"{material.what} of kind {material.kind}" if material.kind else material.what
            article = "an" if there[0] in "aeiou" else "a"
            what = f"the task {task} cannot be made from this: it is {article} {there}"
            raise InputError([UserError(str(material.path), what=what, fix=f"give {self.wanted}")])
        wrong = [name for name in material.options.given if name not in self.options]
        if wrong:
            listed = ", ".join(flag_of(name) for name in self.options) or "none"
            raise ConfigError(
                ", ".join(map(flag_of, wrong)), what=f"the task {task} does not have this option",
                fix=f"leave it out; its options for what is drawn are {listed}",
            )  # fmt: skip


def known_only(option: str, given: Collection[str], known: Collection[str], what: str) -> None:
    """Check that everything that was asked for is there.

    Args:
        option: name of the option.
        given: what was asked for.
        known: what is there.
        what: what it is, such as ``story``.

    Raises:
        ConfigError: something is not there; all of it is named.
    """
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

    Args:
        there: story or prompt -> the methods with an output of it; units and methods are sorted by name.
        per_unit: how many methods; where there are fewer, all of them are taken.
        draw: the draw.
    """
    return [
        (unit, method)
        for unit, methods in sorted(there.items())
        for method in draw.sample(sorted(methods), min(per_unit, len(methods)))
    ]
