"""What Semantic Compass is compared with: controls and ablations as values.

Tables 55 and 75 name seven settings, Table 63 seven sets of terms. The paper contradicts itself: the full row
of Table 63 (56.7) is that of reranking and bridging together, and its row "recoverability only" (52.0) is
what Table 55 calls reranking by the whole score. So each arm says here whether it reranks, by what, and
whether it bridges: all rows of Table 63 but the full one rerank and do not bridge, and ``rerank-only`` is the
whole score without a bridge.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from ...errors import ConfigError
from .annotations import Shows
from .scoring import TERMS, Term

Start = Literal["all", "first", "best"]
"""Which candidates an arm takes: each one, that of the first seed, or the one with the highest score."""


@dataclass(frozen=True, slots=True)
class Insertion:
    """How an arm inserts a frame.

    Attributes:
        at: at the weakest transition (Eq. 27), or at a random one, drawn by master seed, story and arm.
        shows: what the frame shows; see :mod:`.annotations`.
        tested: whether Algorithm 1 decides: up to one frame for each seed is tried below the repair
            threshold, and the best is taken where it raises the frozen score and copies no neighbour. Else
            one frame, of the first seed, is inserted always: six pictures whatever it does (Table 74).
    """

    at: Literal["weakest", "random"]
    shows: Shows
    tested: bool


@dataclass(frozen=True, slots=True)
class Arm:
    """One row of the tables.

    Attributes:
        name: by which options, folders and tables name it.
        label: for tables.
        start: which candidates it takes.
        terms: the terms that rerank; none where it does not rerank. Their weights are the frozen ones, those
            of other terms are 0.
        insertion: how it inserts a frame; None where it does not.
        tables: numbers of the tables that have the row.
    """

    name: str
    label: str
    start: Start
    terms: tuple[Term, ...] = ()
    insertion: Insertion | None = None
    tables: tuple[int, ...] = (55, 75)

    @property
    def tests(self) -> bool:
        """Whether judges are asked about its inserted frames."""
        return self.insertion is not None and self.insertion.tested

    @property
    def localises(self) -> bool:
        """Whether it has to know the weakest transition."""
        return self.insertion is not None and self.insertion.at == "weakest"


BRIDGE = Insertion("weakest", "transition", tested=True)
ANYWHERE = Insertion("random", "transition", tested=False)
AT_REST = Insertion("weakest", "setting", tested=False)
BY_CAPTIONS = Insertion("weakest", "captions", tested=False)
R, C, P = TERMS
ARMS: tuple[Arm, ...] = (
    Arm("base", "Base, mean over seeds", "all"),
    Arm("first-seed", "Base, first seed", "first"),
    Arm("random-extra", "Random extra frame", "first", insertion=ANYWHERE),
    Arm("non-semantic-extra", "Non-semantic extra frame", "first", insertion=AT_REST),
    Arm("caption-bridge", "Caption-only bridge", "first", insertion=BY_CAPTIONS),
    Arm("rerank-only", "Candidate rerank only", "best", TERMS, tables=(55, 63, 75)),
    Arm("bridge-only", "Bridge repair only", "first", insertion=BRIDGE),
    Arm("full", "Full Semantic Compass", "best", TERMS, BRIDGE, tables=(55, 63, 75)),
    Arm("recoverability", "Recoverability only", "best", (R,), tables=(63,)),
    Arm("coverage", "Transition coverage only", "best", (C,), tables=(63,)),
    Arm("copies", "Copy penalty only", "best", (P,), tables=(63,)),
    Arm("recoverability+coverage", "Recoverability + transition coverage", "best", (R, C), tables=(63,)),
    Arm("recoverability+copies", "Recoverability + copy penalty", "best", (R, P), tables=(63,)),
    Arm("coverage+copies", "Transition coverage + copy penalty", "best", (C, P), tables=(63,)),
)  # fmt: skip
"""All arms. What does not rerank starts from the first seed's candidate, so that it has one storyboard of a
story; ``first-seed`` is that candidate itself, and ``base`` is the mean over all seeds (Table 44)."""
NAMES = tuple(arm.name for arm in ARMS)
BASE, FIRST, FULL = "base", "first-seed", "full"


def arms_named(wanted: Sequence[str] = ()) -> tuple[Arm, ...]:
    """Return arms by name, in the order of :data:`ARMS`; all where none is named.

    Raises:
        ConfigError: there is no such arm.
    """
    known = {arm.name: arm for arm in ARMS}
    missing = [name for name in wanted if name not in known]
    if missing:
        raise ConfigError(
            f"arm {missing[0]}", what=f"there are {', '.join(known)}", fix="name some of these"
        )  # fmt: skip
    return tuple(arm for arm in ARMS if not wanted or arm.name in wanted)
