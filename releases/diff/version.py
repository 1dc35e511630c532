"""Which version a change of a release asks for (semver.org 2.0.0, applied to data).

From 1.0.0 on: *major* when a record changes its meaning or goes, *minor* when records are added, *patch* for
the rest. While the major number is 0, a major step raises the minor number, as a minor step does.
"""

from dataclasses import dataclass
from enum import IntEnum
from typing import Self

from ...errors import ConfigError
from ..options import SEMVER


class Step(IntEnum):
    """How far two releases are apart; a larger one includes the smaller."""

    NONE = 0
    PATCH = 1
    MINOR = 2
    MAJOR = 3

    def __str__(self) -> str:
        return self.name.lower()


@dataclass(frozen=True, slots=True)
class Version:
    """A semantic version."""

    core: tuple[int, int, int]  # major, minor and patch number
    pre: tuple[str, ...]  # the parts of the pre-release, none for a release proper
    text: str  # as it was written, build metadata included; the metadata orders nothing

    @classmethod
    def of(cls, text: str, where: str) -> Self:
        """Read a version."""
        if not isinstance(text, str) or not SEMVER.fullmatch(text):
            raise ConfigError(
                where, expected="a semantic version such as 0.1.0", found=repr(text),
                fix="number it MAJOR.MINOR.PATCH",
            )  # fmt: skip
        plain = text.partition("+")[0]
        numbers, _, pre = plain.partition("-")
        major, minor, patch = (int(number) for number in numbers.split("."))
        return cls((major, minor, patch), tuple(pre.split(".")) if pre else (), text)

    @property
    def order(self) -> tuple[tuple[int, int, int], bool, tuple[tuple[bool, int, str], ...]]:
        """What versions sort by: a pre-release comes before its release, numbers before words."""
        parts = tuple((False, int(part), "") if part.isdecimal() else (True, 0, part) for part in self.pre)
        return (self.core, not self.pre, parts)

    def __str__(self) -> str:
        return self.text


def next_version(old: Version, step: Step) -> Version:
    """Return the lowest version that a step from an old one asks for.

    A pre-release promises nothing: what follows it is its own release, whatever changed.
    """
    major, minor, patch = old.core
    if step is Step.NONE:
        return old
    if not old.pre:
        if step is Step.PATCH:
            patch += 1
        elif step is Step.MINOR or major == 0:
            minor, patch = minor + 1, 0
        else:
            major, minor, patch = major + 1, 0, 0
    core = (major, minor, patch)
    return Version(core, (), ".".join(str(number) for number in core))


def is_enough(old: Version, step: Step, new: Version) -> bool:
    """Return whether a new version says as much as the step from the old one asks for."""
    if step is Step.NONE:
        return new.order >= old.order
    # A candidate of the version that is due may come before it: 0.2.0-rc.1 after 0.1.0.
    return new.order > old.order and new.core >= next_version(old, step).core
