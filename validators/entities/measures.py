"""What is measured of one episode; everything that statistics say is put together from these.

Shots are numbered from 1 through the episode. An entity is a name in one kind of list of the schedule.
"""

import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Decimal
from itertools import pairwise

from ...schemas.canonical import Json
from ...schemas.entities import TYPES, EntityType, type_of_label
from ..report import show
from .view import EpisodeView, holds, named

_TOKEN = re.compile(r"[\w'-]+")

VERBS: Mapping[str, tuple[str, ...]] = {
    "stand": ("stand", "stands", "standing", "stood"),
    "look": ("look", "looks", "looking", "looked"),
    "sit": ("sit", "sits", "sitting", "sat"),
    "speak": ("speak", "speaks", "speaking", "spoke", "spoken"),
    "watch": ("watch", "watches", "watching", "watched"),
    "walk": ("walk", "walks", "walking", "walked"),
    "listen": ("listen", "listens", "listening", "listened"),
    "smile": ("smile", "smiles", "smiling", "smiled"),
    "hold": ("hold", "holds", "holding", "held"),
    "turn": ("turn", "turns", "turning", "turned"),
    "talk": ("talk", "talks", "talking", "talked"),
    "lean": ("lean", "leans", "leaning", "leaned", "leant"),
    "gaze": ("gaze", "gazes", "gazing", "gazed"),
    "nod": ("nod", "nods", "nodding", "nodded"),
    "stare": ("stare", "stares", "staring", "stared"),
    "observe": ("observe", "observes", "observing", "observed"),
    "glance": ("glance", "glances", "glancing", "glanced"),
    "show": ("show", "shows", "showing", "showed", "shown"),
}
"""The 18 verbs of Table 9 of the EntityBench paper and their forms."""

VERB_GROUPS: Mapping[str, tuple[str, ...]] = {
    "posture": ("stand", "sit", "lean"),
    "perception": ("look", "watch", "gaze", "stare", "observe", "glance"),
    "dialogue": ("speak", "talk", "listen"),
    "motion": ("walk", "turn", "hold"),
}
"""What section A.4 of the paper makes of them; it leaves smile, nod and show out."""

TAGS: Mapping[str, tuple[str, ...]] = {
    "indoor_outdoor": (
        "indoor", "indoors", "outdoor", "outdoors", "inside", "outside", "interior", "exterior",
    ),
    "time_of_day": (
        "night", "nighttime", "day", "daytime", "dusk", "dawn", "morning", "midday", "noon", "afternoon",
        "evening", "sunset", "sunrise", "twilight",
    ),
    "night": ("night", "nighttime", "nights"),
    "day": ("day", "daytime", "daylight"),
    "close_up": ("close-up", "close-ups"),
    "shot_type": (
        "close-up", "close-ups", "medium shot", "wide shot", "long shot", "full shot", "over-the-shoulder",
        "establishing shot", "tracking shot", "aerial shot", "low-angle", "high-angle",
    ),
    "style": (
        "anime", "animation", "cartoon", "cinematic", "stylized", "monochrome", "black-and-white",
        "black and white", "sepia", "grainy", "watercolor", "3d",
    ),
}  # fmt: skip
"""Tag of scene design -> words that name it. The lexicon of the paper is not published; this one is ours.

"Animated" is left out: mostly it says how people talk.
"""

_TAGGED = {
    tag: re.compile(rf"(?<!\w)(?:{'|'.join(map(re.escape, sorted(words, key=len, reverse=True)))})(?!\w)")
    for tag, words in TAGS.items()
}


@dataclass(frozen=True, slots=True)
class Texts:
    """The texts of one episode in numbers."""

    # lower-case token -> how often it is in the actions; a token is letters, digits, ``_ ' -``
    tokens: Counter[str]
    action_tokens: tuple[int, ...]  # tokens of each action
    action_long_tokens: tuple[int, ...]  # likewise, tokens of one character left out
    action_words: tuple[int, ...]  # words of each action, as white space parts them
    prompt_words: tuple[int, ...]  # words of each prompt, likewise
    tags: Counter[str]  # tag of scene design -> actions that name it
    # type -> how actions name their slots (``exact``, ``case``, ``part``, ``none``) -> count
    mentions: Mapping[EntityType, Counter[str]]
    overview_words: int  # words of the overview
    # type -> names of the registry in the overview, and how many there are
    overview_names: Mapping[EntityType, tuple[int, int]]
    odd_names: int  # names of the registry with characters beyond ASCII; ``odd_actions`` likewise
    odd_actions: int


def read_texts(view: EpisodeView) -> Texts:
    actions = [shot.action for shot in view.shots]
    lowered = [action.lower() for action in actions]
    tokens = [_TOKEN.findall(action) for action in lowered]
    overview = view.script.story_overview or ""
    return Texts(
        tokens=Counter(token for text in tokens for token in text),
        action_tokens=tuple(map(len, tokens)),
        action_long_tokens=tuple(sum(len(token) > 1 for token in text) for text in tokens),
        action_words=tuple(len(action.split()) for action in actions),
        prompt_words=tuple(len(shot.prompt.split()) for shot in view.shots),
        tags=Counter(tag for action in lowered for tag, words in _TAGGED.items() if words.search(action)),
        mentions={
            kind: Counter(
                named(shot.action, name) or "none"
                for shot in view.shots
                for name in shot.scheduled.names(kind)
            )
            for kind in TYPES
        },
        overview_words=len(overview.split()),
        overview_names={kind: _named_there(view, kind, overview) for kind in TYPES},
        odd_names=sum(not name.isascii() for name in view.labels),
        odd_actions=sum(not action.isascii() for action in actions),
    )


def beyond_ascii(text: str) -> str:
    """Return the characters of a text that are not ASCII, each once, sorted, as a message shows them."""
    return show("".join(sorted({char for char in text if not char.isascii()})), 40)


def _named_there(view: EpisodeView, kind: EntityType, text: str) -> tuple[int, int]:
    names = [name.casefold() for name in view.labels if view.label_type(name) == kind]
    folded = text.casefold()
    return sum(holds(folded, name) for name in names), len(names)


@dataclass(frozen=True, slots=True)
class Track:
    """One scheduled entity of an episode."""

    kind: EntityType  # type of the list that schedules it
    name: str  # its name
    shots: tuple[int, ...]  # the shots that schedule it, ascending
    # index differences of consecutive appearances: 1 where it is in neighbouring shots
    steps: tuple[int, ...]
    longest_run: int  # most shots in a row that schedule it
    scenes: int  # how many scenes these are in
    registered: bool  # whether the registry has its name
    described: bool  # whether the prompt of its first shot describes it
    decorated: bool  # whether that prompt describes it under a decorated name

    @property
    def recurs(self) -> bool:
        """Whether it is in two shots or more."""
        return len(self.shots) > 1


@dataclass(frozen=True, slots=True)
class Measures:
    """One episode in numbers."""

    episode_id: str  # its id
    scenes: int  # how many scenes it has
    shots: int  # how many shots
    rows: int  # rows of its registry
    declared: Mapping[EntityType, int]  # type -> different names in the registry under labels of that type
    in_registry: Mapping[EntityType, int]  # type -> those of them that are scheduled in some shot
    tracks: tuple[Track, ...]  # its scheduled entities, in order of type and first appearance
    loads: tuple[tuple[int, int, int], ...]  # how many characters, locations and objects each shot schedules
    registered: Mapping[EntityType, int]  # type -> slots whose name is in the registry
    cuts: tuple[bool, ...]  # whether each shot is a cut
    chains: tuple[int, ...]  # lengths of its runs of shots without a cut
    # for each cut but the first shot: the types of what is scheduled on both sides of it
    carried: tuple[frozenset[EntityType], ...]
    headers: tuple[bool, ...]  # whether the prompt of each shot has a header
    only_known: tuple[bool, ...]  # whether each shot schedules something, all of which was scheduled before
    texts: Texts  # what is counted in its texts

    def slots(self, kind: EntityType) -> int:
        column = TYPES.index(kind)
        return sum(load[column] for load in self.loads)

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
            frozenset(kind for kind, _ in shown[index - 1] & shown[index])
            for index in range(1, len(shown))
            if cuts[index]
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
    starts = [index for index, cut in enumerate(cuts) if cut or index == 0]
    return tuple(after - before for before, after in pairwise((*starts, len(cuts))))


# -- What tables count over the episodes of a tier

_PLACES = 6


@dataclass(frozen=True, slots=True)
class Spread:
    """A mean with the population standard deviation (ddof 0), over ``of`` values."""

    mean: float
    sd: float
    of: int


@dataclass(frozen=True, slots=True)
class Share:
    """So many of so many."""

    count: int
    of: int

    @property
    def share(self) -> float:
        """The share, 0 to 1."""
        return self.count / self.of


Value = int | float | Spread | Share | None


def mean(values: Sequence[float]) -> float | None:
    """Return the mean; None of nothing."""
    return math.fsum(values) / len(values) if values else None


def spread(values: Sequence[float]) -> Spread | None:
    """Return mean and population standard deviation; None of nothing."""
    middle = mean(values)
    if middle is None:
        return None
    squares = math.fsum((value - middle) ** 2 for value in values)
    return Spread(middle, math.sqrt(squares / len(values)), len(values))


def median(values: Iterable[float]) -> float | None:
    """Return the median, the mean of the two middle ones for an even number; None of nothing."""
    ordered = sorted(values)
    if not ordered:
        return None
    half = len(ordered) // 2
    return (ordered[half - 1 + len(ordered) % 2] + ordered[half]) / 2


def share(count: int, of: int) -> Share | None:
    """Return a share; None of nothing."""
    return Share(count, of) if of else None


def ratio(above: float, below: float) -> float | None:
    """Return a quotient; None where there is nothing to divide by."""
    return above / below if below else None


def value_json(value: Value) -> Json:
    """Return a value as plain JSON, fractions to six places."""
    if isinstance(value, Spread):
        return {"mean": round(value.mean, _PLACES), "sd": round(value.sd, _PLACES), "of": value.of}
    if isinstance(value, Share):
        return {"count": value.count, "of": value.of, "share": round(value.share, _PLACES)}
    return round(value, _PLACES) if isinstance(value, float) else value


def value_text(value: Value) -> str:
    """Return a value for people: fractions to two places, shares in per cent with their count."""
    if value is None:
        return "–"
    if isinstance(value, Spread):
        return f"{fixed(value.mean)} ± {fixed(value.sd)}"
    if isinstance(value, Share):
        return f"{fixed(100 * value.share, 1)}% ({value.count:,})"
    return f"{value:,}" if isinstance(value, int) else fixed(value)


def fixed(value: float, places: int = 2) -> str:
    """Return a number with so many places, halves away from zero, as people and the paper round them."""
    exact = Decimal(str(round(value, _PLACES + 3)))
    return f"{exact.quantize(Decimal(1).scaleb(-places), ROUND_HALF_UP):,}"


Episodes = Sequence[Measures]
Load = tuple[int, int, int]

PLURALS: dict[EntityType, str] = {"character": "characters", "location": "locations", "object": "objects"}


def again(first: int, of: int) -> Share | None:
    """Return the slots that are no first appearances."""
    return share(of - first, of)


class Tier:
    """What tables count over the episodes of a tier.

    Attributes:
        episodes: the measures of its episodes.
        shots: how many shots there are.
        loads: how many characters, locations and objects each shot schedules.
        slots: how many slots the schedules have.
        tracks: all scheduled entities.
        steps: the index differences of all pairs of consecutive appearances.
        widest: the widest index difference of each recurring entity.
        declared: how many names the registries have under labels of a type.
        in_registry: how many of these are scheduled in some shot.
        chains: the lengths of all chains.
    """

    def __init__(self, episodes: Episodes) -> None:
        self.episodes = episodes
        self.shots = sum(episode.shots for episode in episodes)
        self.loads: list[Load] = [load for episode in episodes for load in episode.loads]
        self.slots = sum(map(sum, self.loads))
        self.tracks = [track for episode in episodes for track in episode.tracks]
        self.steps = [step for track in self.tracks for step in track.steps]
        self.widest = [max(track.steps) for track in self.tracks if track.recurs]
        self.declared = sum(sum(episode.declared.values()) for episode in episodes)
        self.in_registry = sum(sum(episode.in_registry.values()) for episode in episodes)
        self.chains = [length for episode in episodes for length in episode.chains]

    def slots_of(self, kind: EntityType) -> int:
        return sum(episode.slots(kind) for episode in self.episodes)

    def declared_of(self, kind: EntityType) -> int:
        """Return how many names the registries have under labels of this type."""
        return sum(episode.declared[kind] for episode in self.episodes)

    def tracks_of(self, kind: EntityType) -> list[Track]:
        """Return all scheduled entities of a type."""
        return [track for track in self.tracks if track.kind == kind]

    def of_shots(self, flags: Iterable[bool]) -> Share | None:
        """Return the share of the shots of which something is true."""
        return share(sum(flags), self.shots)


def so_many(flags: Iterable[bool]) -> Share | None:
    """Return the share of the things of which something is true."""
    listed = list(flags)
    return share(sum(listed), len(listed))
