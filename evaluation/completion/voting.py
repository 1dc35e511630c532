"""From several votes on the events of one video to one completion score per event."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from ...errors import ConfigError
from ..stats.uncertainty import Uncertainty

NonResponse = Literal["zero", "excluded"]
Partial = Literal["answered", "required"]
_K = re.compile(r"at_least_([1-9][0-9]?)")


@dataclass(frozen=True)
class Definitions(Uncertainty):
    """The named definitions that a completion score depends on; how sure it is is :class:`.Uncertainty`'s.

    Attributes:
        voting: ``unanimous`` (an event is completed where every vote says so), ``at_least_K`` (where K votes
            do; K is at most the number of votes that count), or ``average`` (the mean of the votes).
        nonresponse: what a prompt without any answer counts: ``zero``, as in the paper, or ``excluded``.
        partial: which votes of a prompt count: those ``answered``, which reproduces the published tables, or
            all that are ``required``, where a vote without an answer speaks against every event.
    """

    voting: str = "unanimous"
    nonresponse: NonResponse = "zero"
    partial: Partial = "answered"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.voting not in ("unanimous", "average") and _K.fullmatch(self.voting) is None:
            raise ConfigError(
                "voting", expected="unanimous, average or at_least_K", found=self.voting,
                fix="choose one of them",
            )  # fmt: skip
        for name, known in (("nonresponse", get_args(NonResponse)), ("partial", get_args(Partial))):
            if getattr(self, name) not in known:
                raise ConfigError(
                    name,
                    expected=" or ".join(known),
                    found=str(getattr(self, name)),
                    fix="choose one of them",
                )


def combine(votes: Sequence[Sequence[int]], voting: str) -> tuple[float, ...]:
    """Return the completion score of each event, in [0, 1].

    Formula: with votes s_1..s_n on an event, ``at_least_K`` is 1 where their sum is at least min(K, n), and
    ``unanimous`` is K = n (Eq. 1); ``average`` is their mean.

    Args:
        votes: completion lists of the same length, at least one.
        voting: see :class:`Definitions`.

    >>> combine([(1, 0), (1, 1), (1, 1)], "unanimous"), combine([(1, 0), (1, 1), (1, 1)], "at_least_2")
    ((1.0, 0.0), (1.0, 1.0))
    """
    sums, count = [sum(column) for column in zip(*votes, strict=True)], len(votes)
    if voting == "average":
        return tuple(total / count for total in sums)
    least = count if voting == "unanimous" else min(count, int(voting.removeprefix("at_least_")))
    return tuple(float(total >= least) for total in sums)
