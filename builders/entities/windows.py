"""Windows of shots that become episodes: tiers, what a window asks of a memory, and the best choice.

By default tiers are those of the released episodes: easy 10 to 12, medium 15 to 22, hard 50 shots (the
paper's text says 8 to 12 for easy ones in section 3.1, at most 14 and 14 to 30 in section F.6). Traits have
the names of the release's ``window_info``, which does not say how they are made; these are our definitions.
Gaps are differences of places, as in the release: the next shot has a gap of 1.

Windows that share no shot are chosen by weighted interval scheduling, exactly; of the same value, fewer
windows, then those that begin earlier, then those whose first different window is shorter.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise, product
from statistics import median

from pydantic import Field

from ...schemas.values import Own

Bounds = tuple[int, int]
"""Fewest and most shots."""

RELEASED: Mapping[str, Bounds] = {"easy": (10, 12), "medium": (15, 22), "hard": (50, 50)}


def problem_of(tiers: Mapping[str, Bounds]) -> str | None:
    """Return what is wrong with tiers, in one line; None if nothing is."""
    if not tiers:
        return "at least one tier is needed, such as easy = [10, 12]"
    taken: dict[int, str] = {}
    for name, (fewest, most) in tiers.items():
        if not 2 <= fewest <= most <= 1000:
            return f"{name}: expected two numbers of shots, 2 to 1000, the smaller one first"
        for length in range(fewest, most + 1):
            other = taken.setdefault(length, name)
            if other != name:
                return f"{length} shots would be both {other} and {name}"
    return None


def tier_of(length: int, tiers: Mapping[str, Bounds]) -> str | None:
    """Return the tier of an episode with so many shots; None where none has that length."""
    return next((name for name, (fewest, most) in tiers.items() if fewest <= length <= most), None)


def lengths_of(tiers: Mapping[str, Bounds]) -> tuple[int, ...]:
    """Return the lengths that episodes may have, ascending."""
    return tuple(sorted(n for fewest, most in tiers.values() for n in range(fewest, most + 1)))


Slot = tuple[str, str]
"""Kind and label of an entity."""

UNITS = 1_000_000
"""Scores are whole millionths, so that sums are exact and ties are ties everywhere."""


@dataclass(frozen=True, slots=True)
class ShotSlots:
    """What counts of a shot."""

    scene: int  # its scene; only whether neighbours have the same counts
    slots: frozenset[Slot]  # what is scheduled in it, each once
    letters: int = 0  # length of the action text in characters


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
    """What a window asks of a memory: slots that show an entity for the first time, and again."""

    first: int  # slots with an entity that was not there before
    again: int  # the others
    rate: float | None  # share of ``again`` in all; null without slots
    far: int  # slots with an entity that was last there five or more places ago
    held: int  # most entities that were there before and will be there again, after any shot


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


@dataclass(frozen=True, slots=True, order=True)
class Window:
    """A window of shots by place: from ``start``, ``length`` of them; ``value`` is what it brings.

    Of windows of one ``group``, such as a tier, only so many may be taken.
    """

    start: int
    length: int
    value: int
    group: str = ""

    @property
    def stop(self) -> int:
        """The place after its last shot."""
        return self.start + self.length


Choice = tuple[Window, ...]
_Ranked = tuple[int, int, Choice]
"""Value, negated, number of windows, and the windows: the smallest is the best."""
_NOTHING: _Ranked = (0, 0, ())


def choose_windows(windows: Sequence[Window], most: Mapping[str, int] | None = None) -> Choice:
    """Return windows that share no shot and whose values add up to most, in order.

    Time grows with the number of windows, times the product of the limits that can be reached, each plus one.

    ``windows``: what there is to choose from; those of no value are never taken. ``most``: group -> how many
    of it may be taken; of a group that is not named, any number.
    """
    useful = sorted(window for window in windows if window.value > 0)
    end = max((window.stop for window in useful), default=0)
    starting: dict[int, list[Window]] = {}
    for window in useful:
        starting.setdefault(window.start, []).append(window)
    limits = _limits(useful, end, most or {})
    free = {window.group for window in useful} - limits.keys()
    # best[left][place] is the best choice from the shots at and after a place, with so many left of a group.
    best: dict[tuple[int, ...], list[_Ranked]] = {}
    # Smaller counts come first: a choice with one window less left of a group is known by then.
    for left in product(*(range(limit + 1) for limit in limits.values())):
        here = best[left] = [_NOTHING] * (end + 1)
        # What may follow a window of each group; a group of which nothing is left is not there.
        after = {group: best[_one_less(left, at)] for at, group in enumerate(limits) if left[at]}
        after |= dict.fromkeys(free, here)
        for index in range(end - 1, -1, -1):
            ranked = here[index + 1]
            for window in starting.get(index, ()):
                if window.group in after:
                    ranked = _better(ranked, window, after[window.group][window.stop])
            here[index] = ranked
    return best[tuple(limits.values())][0][2]


def _limits(windows: Sequence[Window], end: int, most: Mapping[str, int]) -> dict[str, int]:
    """Return the limits that can be reached: group -> how many of it may be taken."""
    shortest: dict[str, int] = {}
    for window in windows:
        shortest[window.group] = min(window.length, shortest.get(window.group, window.length))
    return {
        group: most[group]
        for group, length in sorted(shortest.items())
        if group in most and most[group] < end // length
    }


def _one_less(left: tuple[int, ...], at: int) -> tuple[int, ...]:
    return (*left[:at], left[at] - 1, *left[at + 1 :])


def _better(ranked: _Ranked, window: Window, after: _Ranked) -> _Ranked:
    value, count = after[0] - window.value, after[1] + 1
    if (value, count) > ranked[:2]:
        return ranked
    return min(ranked, (value, count, (window, *after[2])))
