"""What a window of shots asks of a memory, as numbers, and the score that compares windows.

The names of the traits are those that the release has in ``window_info``. It does not say how they are made;
these are our definitions. Gaps are counted as the release and the paper's tables do, as the difference of
places: an entity that is there again in the next shot has a gap of 1 (the paper's text counts the shots
between, one less).
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from statistics import median

from pydantic import Field

from ...schemas.base import Own

Slot = tuple[str, str]
"""Kind and label of an entity."""

KINDS = ("character", "location", "object")
UNITS = 1_000_000
"""Scores are whole millionths, so that sums are exact and ties are ties everywhere."""


@dataclass(frozen=True, slots=True)
class ShotSlots:
    """What counts of a shot.

    Attributes:
        scene: its scene; only whether neighbours have the same counts.
        slots: what is scheduled in it, each once.
        letters: length of the action text in characters.
    """

    scene: int
    slots: frozenset[Slot]
    letters: int = 0


class Weights(Own):
    """How much each part of a window's score counts; only their proportions matter."""

    recurrence: float = Field(
        default=0.5, ge=0, description="Share of the schedule's slots that show an entity again."
    )
    interaction: float = Field(default=0.3, ge=0, description="Share of shots with two or more characters.")
    transitions: float = Field(
        default=0.2, ge=0, description="Share of neighbouring shots between which the scene changes."
    )


class Traits(Own):
    """The traits of a window.

    ``cs_``: entities that are in two or more shots. ``interaction_density``: share of shots with two or more
    characters. ``scene_transitions``: changes of scene. ``mean_action_length``: characters. Gaps: over all
    pairs of consecutive appearances; null where nothing appears twice.
    """

    num_shots: int
    cs_characters: int
    cs_places: int
    cs_objects: int
    num_characters: int
    num_places: int
    num_objects: int
    max_chars_per_shot: int
    interaction_density: float
    scene_transitions: int
    mean_action_length: float
    mean_recurrence_gap: float | None
    max_recurrence_gap: int | None
    median_recurrence_gap: float | None


class Load(Own):
    """What a window asks of a memory: slots that show an entity for the first time, and again.

    Attributes:
        first: slots with an entity that was not there before.
        again: the others.
        rate: share of ``again`` in all; null without slots.
        far: slots with an entity that was last there five or more places ago.
        held: most entities that were there before and will be there again, after any shot.
    """

    first: int
    again: int
    rate: float | None
    far: int
    held: int


FAR = 5


def traits_of(shots: Sequence[ShotSlots]) -> Traits:
    """Return the traits of a window of at least one shot."""
    places = _places(shots)
    gaps = [gap for where in places.values() for gap in _gaps(where)]
    shown = Counter(kind for kind, _ in places)
    recurring = Counter(kind for (kind, _), where in places.items() if len(where) > 1)
    people = [_people(shot) for shot in shots]
    return Traits(
        num_shots=len(shots),
        **{f"cs_{plural}": recurring[kind] for kind, plural in _PLURALS},
        **{f"num_{plural}": shown[kind] for kind, plural in _PLURALS},
        max_chars_per_shot=max(people),
        interaction_density=_rounded(Fraction(sum(count > 1 for count in people), len(shots))),
        scene_transitions=sum(a.scene != b.scene for a, b in pairwise(shots)),
        mean_action_length=_rounded(Fraction(sum(shot.letters for shot in shots), len(shots))),
        mean_recurrence_gap=_rounded(Fraction(sum(gaps), len(gaps))) if gaps else None,
        max_recurrence_gap=max(gaps) if gaps else None,
        median_recurrence_gap=float(median(gaps)) if gaps else None,
    )


_PLURALS = (("character", "characters"), ("location", "places"), ("object", "objects"))


def load_of(shots: Sequence[ShotSlots]) -> Load:
    """Return the memory load of a window."""
    places = _places(shots)
    total, first = sum(map(len, places.values())), len(places)
    held = [
        sum(where[0] <= at < where[-1] for where in places.values()) for at in range(len(shots))
    ]  # fmt: skip
    return Load(
        first=first,
        again=total - first,
        rate=_rounded(Fraction(total - first, total)) if total else None,
        far=sum(gap >= FAR for where in places.values() for gap in _gaps(where)),
        held=max(held, default=0),
    )


def score_of(shots: Sequence[ShotSlots], weights: Weights) -> int:
    """Return the score of a window, 0 to 1, in millionths.

    The weighted mean of three shares: slots that show an entity again, shots with two or more characters,
    neighbours between which the scene changes. 0 where all weights are.
    """
    slots = [slot for shot in shots for slot in shot.slots]
    again = Fraction(len(slots) - len(set(slots)), len(slots)) if slots else Fraction(0)
    people = Fraction(sum(_people(shot) > 1 for shot in shots), len(shots))
    changes = sum(a.scene != b.scene for a, b in pairwise(shots))
    moved = Fraction(changes, len(shots) - 1) if len(shots) > 1 else Fraction(0)
    parts = ((weights.recurrence, again), (weights.interaction, people), (weights.transitions, moved))
    # The weights as written in decimals, so that 0.1 is a tenth.
    shares = [(Fraction(str(weight)), value) for weight, value in parts]
    whole = sum(weight for weight, _ in shares)
    if not whole:
        return 0
    return round(sum(weight * value for weight, value in shares) / whole * UNITS)


def _places(shots: Iterable[ShotSlots]) -> Mapping[Slot, list[int]]:
    places: dict[Slot, list[int]] = {}
    for at, shot in enumerate(shots):
        for slot in shot.slots:
            places.setdefault(slot, []).append(at)
    return places


def _gaps(where: Sequence[int]) -> list[int]:
    return [after - before for before, after in pairwise(where)]


def _people(shot: ShotSlots) -> int:
    return sum(kind == "character" for kind, _ in shot.slots)


def _rounded(value: Fraction) -> float:
    return round(float(value), 6)
