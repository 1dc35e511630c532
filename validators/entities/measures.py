"""What is measured of one episode; everything that statistics say is put together from these.

Shots are numbered from 1 through the episode. An entity is a name in one kind of list of the schedule.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from ...schemas.entities import TYPES, EntityType, type_of_label
from .texts import Texts, read_texts
from .view import EpisodeView


@dataclass(frozen=True, slots=True)
class Track:
    """One scheduled entity of an episode.

    Attributes:
        kind: type of the list that schedules it.
        name: its name.
        shots: the shots that schedule it, ascending.
        steps: index differences of consecutive appearances: 1 where it is in neighbouring shots.
        longest_run: most shots in a row that schedule it.
        scenes: how many scenes these are in.
        registered: whether the registry has its name.
        described: whether the prompt of its first shot describes it.
        decorated: whether that prompt describes it under a decorated name.
    """

    kind: EntityType
    name: str
    shots: tuple[int, ...]
    steps: tuple[int, ...]
    longest_run: int
    scenes: int
    registered: bool
    described: bool
    decorated: bool

    @property
    def recurs(self) -> bool:
        """Whether it is in two shots or more."""
        return len(self.shots) > 1


@dataclass(frozen=True, slots=True)
class Measures:
    """One episode in numbers.

    Attributes:
        episode_id: its id.
        scenes: how many scenes it has.
        shots: how many shots.
        rows: rows of its registry.
        declared: type -> different names in the registry under labels of that type.
        in_registry: type -> those of them that are scheduled in some shot.
        tracks: its scheduled entities, in order of type and first appearance.
        loads: how many characters, locations and objects each shot schedules.
        registered: type -> slots whose name is in the registry.
        cuts: whether each shot is a cut.
        chains: lengths of its runs of shots without a cut.
        carried: for each cut but the first shot: the types of what is scheduled on both sides of it.
        headers: whether the prompt of each shot has a header.
        only_known: whether each shot schedules something, all of which was scheduled before.
        texts: what is counted in its texts.
    """

    episode_id: str
    scenes: int
    shots: int
    rows: int
    declared: Mapping[EntityType, int]
    in_registry: Mapping[EntityType, int]
    tracks: tuple[Track, ...]
    loads: tuple[tuple[int, int, int], ...]
    registered: Mapping[EntityType, int]
    cuts: tuple[bool, ...]
    chains: tuple[int, ...]
    carried: tuple[frozenset[EntityType], ...]
    headers: tuple[bool, ...]
    only_known: tuple[bool, ...]
    texts: Texts

    def slots(self, kind: EntityType) -> int:
        """Return how many slots of the schedule are of a type."""
        place = TYPES.index(kind)
        return sum(load[place] for load in self.loads)

    def of(self, kind: EntityType) -> tuple[Track, ...]:
        """Return the scheduled entities of a type."""
        return tuple(track for track in self.tracks if track.kind == kind)

    @property
    def introduced(self) -> tuple[int, ...]:
        """How many entities are scheduled for the first time in each shot."""
        counts = [0] * self.shots
        for track in self.tracks:
            counts[track.shots[0] - 1] += 1
        return tuple(counts)


def measure(view: EpisodeView) -> Measures:
    """Return the measures of an episode."""
    shown = [
        frozenset((kind, name) for kind in TYPES for name in shot.scheduled.names(kind))
        for shot in view.shots
    ]
    declared = _declared(view)
    first = {key: numbers[0] for key, numbers in view.appearances.items()}
    cuts = tuple(shot.cut for shot in view.shots)
    return Measures(
        episode_id=view.episode_id,
        scenes=len(view.script.scenes),
        shots=len(view.shots),
        rows=len(view.script.entity_descriptions),
        declared={kind: len(names) for kind, names in declared.items()},
        in_registry={kind: len(names & view.scheduled) for kind, names in declared.items()},
        tracks=tuple(_tracks(view)),
        loads=tuple(
            (len(shot.scheduled.characters), len(shot.scheduled.places), len(shot.scheduled.objects))
            for shot in view.shots
        ),
        registered={
            kind: sum(name in view.labels for shot in view.shots for name in shot.scheduled.names(kind))
            for kind in TYPES
        },
        cuts=cuts,
        chains=_chains(cuts),
        carried=tuple(
            frozenset(kind for kind, _ in shown[place - 1] & shown[place])
            for place in range(1, len(shown))
            if cuts[place]
        ),
        headers=tuple(bool(header.lines) for header in view.headers),
        only_known=tuple(
            bool(keys) and all(first[key] < number for key in keys) for number, keys in enumerate(shown, 1)
        ),
        texts=read_texts(view),
    )


def _declared(view: EpisodeView) -> dict[EntityType, set[str]]:
    names: dict[EntityType, set[str]] = {kind: set() for kind in TYPES}
    for label, entry in view.script.entity_descriptions.items():
        kind = type_of_label(label)
        if kind is not None and entry.name:
            names[kind].add(entry.name)
    return names


def _tracks(view: EpisodeView) -> list[Track]:
    tracks = []
    plain = [{line.name for line in header.lines if not line.decorated} for header in view.headers]
    decorated = [{line.name for line in header.lines if line.decorated} for header in view.headers]
    for (kind, name), numbers in view.appearances.items():
        steps = tuple(after - before for before, after in pairwise(numbers))
        tracks.append(
            Track(
                kind=kind,
                name=name,
                shots=numbers,
                steps=steps,
                longest_run=_longest_run(steps),
                scenes=len({view.shots[number - 1].scene for number in numbers}),
                registered=name in view.labels,
                described=name in plain[numbers[0] - 1],
                decorated=name in decorated[numbers[0] - 1],
            )
        )
    return sorted(tracks, key=lambda track: (TYPES.index(track.kind), track.shots[0]))


def _longest_run(steps: Sequence[int]) -> int:
    longest = run = 1
    for step in steps:
        run = run + 1 if step == 1 else 1
        longest = max(longest, run)
    return longest


def _chains(cuts: Sequence[bool]) -> tuple[int, ...]:
    starts = [place for place, cut in enumerate(cuts) if cut or place == 0]
    return tuple(after - before for before, after in pairwise((*starts, len(cuts))))
