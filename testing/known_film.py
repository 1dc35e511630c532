"""A film of boxes and vectors, without pixels, whose truth is known, and how right its people are when found.

Eight characters go through scenes of several shots. They change clothes from act to act; two are twins and
two wear the same uniform; they cross, pass behind a pillar, leave and come back. Detections err in boxes,
scores and vectors. Nothing is random but by the seed. Vectors are made up: what tells these people apart may
not tell those of films, and the reverse.
"""

from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from ..builders.entities.identities import ClusterSettings, EmbedSettings, cluster_people, embed_tracklets
from ..builders.entities.names import Shot, Tracklet, Video
from ..builders.entities.tracking import (
    DetectPeopleSettings,
    TrackSettings,
    detect_people,
    overlaps,
    track_people,
)
from ..engine.stage import Item, Made, Outcome, Tools
from ..schemas.canonical import Json
from ..schemas.values import Own

Box4 = tuple[float, float, float, float]
Vector = NDArray[np.float64]
Named = tuple[int, Hashable, Box4]
"""Frame, name of whom a box belongs to, box."""
WIDTH, HEIGHT, FPS = 320, 180, 12
SHOT_FRAMES, SHOTS_A_SCENE, SCENES_AN_ACT = 48, 4, 3
CAST = ("Ada", "Ben", "Cleo", "Cora", "Dov", "Eli", "Fay", "Gus")
_TWINS, _UNIFORMED = (2, 3), (4, 5)
_DIMENSIONS, _OUTFITS = 32, 3
_ERROR = 0.8
"""Length of what a detection's vector is off, against the unit vector of whom it shows."""
LIMITS = ClusterSettings(face_limit=0.3, body_limit=0.5)
"""Settings chosen on the film itself: its scores show how constraints help, no more."""
MISSED, FACELESS = 0.05, 0.25
"""Share of people, and of faces, that the detections miss."""
LEAST = 0.3
"""Share of a figure that must show for it to be found, and to count."""


@dataclass(frozen=True, slots=True)
class Part:
    """What a character does in a shot."""

    character: int  # place in the cast
    # ``stand``, ``walk`` from one place to another, or ``leave`` the picture and come back
    way: Literal["stand", "walk", "leave"]
    start: float  # centre across the picture, in pixels, where the shot begins
    end: float  # where it ends; for ``leave``, beyond which edge they go
    tall: float  # height in pixels
    feet: float  # where the feet are, in pixels from the top; who has lower feet is nearer

    def centre(self, share: float) -> float:
        """Return the centre across the picture at a share of the shot."""
        if self.way == "stand":
            return self.start + 3 * float(np.sin(6.3 * share))
        if self.way == "walk":
            return self.start + (self.end - self.start) * share
        away = min(1.0, max(0.0, 1.6 - abs(share - 0.5) * 4))
        return self.start + (self.end - self.start) * away


@dataclass(frozen=True, slots=True)
class FilmShot:
    """A shot of 48 frames."""

    number: int  # from 1
    parts: tuple[Part, ...]  # the farthest first
    pillar: int | None  # left edge of what hides 26 pixels from top to bottom

    @property
    def first(self) -> int:
        """Its first frame."""
        return (self.number - 1) * SHOT_FRAMES

    @property
    def last(self) -> int:
        """Its last frame."""
        return self.first + SHOT_FRAMES - 1


@dataclass(frozen=True, slots=True)
class Standing:
    """A character in a frame."""

    character: int  # place in the cast
    box: Box4  # of the figure, as far as it is in the picture
    face: Box4 | None  # of the face; None where less than half of it shows
    visible: float  # share of the whole figure that shows, 0 to 1


@dataclass(frozen=True)
class KnownFilm:
    """A film."""

    seconds: int = 180  # how long; whole shots of four seconds
    seed: int = 7  # what decides who does what

    @cached_property
    def shots(self) -> tuple[FilmShot, ...]:
        """All shots, in order."""
        random = np.random.default_rng(self.seed)
        count = self.seconds * FPS // SHOT_FRAMES
        return tuple(_shot(number, random) for number in range(1, count + 1))

    @property
    def frames(self) -> int:
        """How many frames it has."""
        return len(self.shots) * SHOT_FRAMES

    def standing(self, frame: int) -> tuple[Standing, ...]:
        """Return who is in a frame, the farthest first; who does not show at all is not."""
        shot = self.shots[frame // SHOT_FRAMES]
        share = (frame - shot.first) / (SHOT_FRAMES - 1)
        shown = np.zeros((HEIGHT, WIDTH), dtype=np.int64)  # who is seen in each pixel, from 1; 0: nobody
        figures = [_boxes(part, part.centre(share)) for part in shot.parts]
        for at, (whole, _) in enumerate(figures, start=1):
            shown[_pixels(whole)] = at
        if shot.pillar is not None:
            shown[:, shot.pillar : shot.pillar + 26] = 0
        found = []
        for at, (part, (whole, face)) in enumerate(zip(shot.parts, figures, strict=True), start=1):
            visible = float((shown == at).sum()) / _area(whole)
            half = float((shown[_pixels(face)] == at).sum()) >= _area(face) / 2
            if visible:
                inside = _inside(face) if half else None
                found.append(Standing(part.character, _inside(whole), inside, min(1.0, visible)))
        return tuple(found)

    def truth(self, frames: Sequence[int]) -> list[Named]:
        """Return who shows in some frames, and where."""
        return [
            (frame, CAST[one.character], one.box)
            for frame in frames
            for one in self.standing(frame)
            if one.visible >= LEAST
        ]

    @staticmethod
    def by_shot(rows: Sequence[Named]) -> list[Named]:
        """Return boxes under a name of their own in each shot, as tracklets have them."""
        return [(frame, (frame // SHOT_FRAMES, name), box) for frame, name, box in rows]

    def builder_shots(self, file: Path) -> list[Shot]:
        """Return the shots as the builder's stages have them."""
        video = Video(
            video_id="film", file=str(file), sha256="0" * 64, frames=self.frames, seconds=self.frames / FPS,
            fps=float(FPS), width=WIDTH, height=HEIGHT,
        )  # fmt: skip
        return [
            Shot(
                shot_id=f"film__shot{shot.number:04d}", video=video, number=shot.number, first=shot.first,
                last=shot.last, start=shot.first / FPS, end=(shot.last + 1) / FPS,
                opens="start" if shot.number == 1 else "cut",
            )
            for shot in self.shots
        ]  # fmt: skip

    def detections(self, every: int = 2) -> Iterator[Json]:
        """Yield the rows of a file of detections: every so many frames of a shot are looked at."""
        random = np.random.default_rng(self.seed)
        for shot in self.shots:
            outfit = (shot.number - 1) // (SHOTS_A_SCENE * SCENES_AN_ACT) % _OUTFITS
            for frame in range(shot.first, shot.last + 1, every):
                for one in self.standing(frame):
                    if one.visible >= LEAST and random.random() >= MISSED:
                        yield _row(frame, one, outfit, random)
                for _ in range(int(random.poisson(0.02))):  # nobody is there
                    left, top = random.uniform((0, 0), (WIDTH - 60, HEIGHT - 90))
                    nobody, score = _near(np.zeros(_DIMENSIONS), random), float(random.uniform(0.1, 0.65))
                    box = [float(left), float(top), float(left + 40), float(top + 85)]
                    yield {"video": "film", "frame": frame, "box": box, "score": round(score, 4),
                           "body_embedding": nobody}  # fmt: skip


def _shot(number: int, random: np.random.Generator) -> FilmShot:
    # Twins meet in every third scene, the two in uniform in every third; the others come as they come.
    scene = (number - 1) // SHOTS_A_SCENE
    fixed = {0: _TWINS, 1: _UNIFORMED}.get(scene % 3, (int(random.integers(0, 2)),))
    rest = [int(one) for one in random.permutation(len(CAST)) if one not in fixed]
    chosen = [*fixed, *rest][: int(random.integers(2, 5))]
    tall = float(random.choice([70, 95, 125]))
    order = [int(one) for one in random.permutation(len(chosen))]
    parts = []
    for slot, who in zip(order, chosen, strict=True):
        start = (slot + 0.5) * WIDTH / len(chosen) + float(random.uniform(-12, 12))
        outer = slot in (0, len(chosen) - 1)
        way: Any = random.choice(["stand", "walk", "leave"], p=[0.4, 0.3, 0.3] if outer else [0.5, 0.5, 0])
        end = -30.0 if start < WIDTH / 2 else WIDTH + 30.0
        if way == "walk":
            end = start + float(random.uniform(60, 130)) * (1 if start < WIDTH / 2 else -1)
        depth = float(random.uniform(0.85, 1.15))
        parts.append(Part(who, str(way), start, end, tall * depth, 110 + 62 * depth - 4 * slot))  # type: ignore[arg-type]
    pillar = int(random.integers(90, 230)) if random.random() < 0.35 else None
    return FilmShot(number, tuple(sorted(parts, key=lambda part: part.feet)), pillar)


def _boxes(part: Part, centre: float) -> tuple[Box4, Box4]:
    """Return the rectangles of a figure and of its face, also beyond the picture."""
    top, tall = part.feet - part.tall, part.tall
    return (
        (centre - 0.17 * tall, top, centre + 0.17 * tall, part.feet),
        (centre - 0.11 * tall, top, centre + 0.11 * tall, top + 0.24 * tall),
    )


def _inside(box: Box4) -> Box4:
    left, right = np.clip((box[0], box[2]), 0, WIDTH)
    top, bottom = np.clip((box[1], box[3]), 0, HEIGHT)
    return float(left), float(top), float(right), float(bottom)


def _pixels(box: Box4) -> tuple[slice, slice]:
    left, top, right, bottom = (round(edge) for edge in _inside(box))
    return slice(top, bottom), slice(left, right)


def _area(box: Box4) -> float:
    return (box[2] - box[0]) * (box[3] - box[1])


# -- Vectors: the twins have nearly one face, and dress alike; the two in uniform change it in one act only


def _directions(seed: int, *shape: int) -> Vector:
    rows = np.random.default_rng(seed).normal(size=(*shape, _DIMENSIONS))
    return np.asarray(rows / np.linalg.norm(rows, axis=-1, keepdims=True))


FACES = _directions(1, len(CAST))
BODIES = _directions(2, len(CAST), _OUTFITS)
FACES[_TWINS[1]] = FACES[_TWINS[0]] + 0.4 * FACES[_TWINS[1]]
BODIES[_TWINS[1]] = BODIES[_TWINS[0]] + 0.3 * BODIES[_TWINS[1]]
BODIES[_UNIFORMED[1], ::2] = BODIES[_UNIFORMED[0], 0]
BODIES[_UNIFORMED[0], 2] = BODIES[_UNIFORMED[0], 0]


def _near(vector: Vector, random: np.random.Generator) -> list[float]:
    """Return a unit vector near another."""
    off = vector + random.normal(0, _ERROR / np.sqrt(_DIMENSIONS), _DIMENSIONS)
    return [round(float(value), 6) for value in off / np.linalg.norm(off)]


def _row(frame: int, one: Standing, outfit: int, random: np.random.Generator) -> Json:
    jitter = 0.02 * (one.box[3] - one.box[1])
    face = None if one.face is None or random.random() < FACELESS else one.face
    score = float(np.clip(0.45 + 0.5 * one.visible + random.normal(0, 0.05), 0.05, 0.99))
    return {
        "video": "film", "frame": frame, "score": round(score, 4),
        "box": _moved(one.box, random.normal(0, jitter, 4)),
        "face": None if face is None else _moved(face, random.normal(0, jitter / 2, 4)),
        "face_score": None if face is None else 0.9,
        "face_embedding": None if face is None else _near(FACES[one.character], random),
        "body_embedding": _near(BODIES[one.character, outfit], random),
    }  # fmt: skip


def _moved(box: Box4, by: Vector) -> list[float]:
    left, top, right, bottom = (round(edge + float(move), 2) for edge, move in zip(box, by, strict=True))
    left, top = min(max(0.0, left), WIDTH - 4.0), min(max(0.0, top), HEIGHT - 4.0)
    return [left, top, max(left + 3, min(WIDTH, right)), max(top + 3, min(HEIGHT, bottom))]


# -- The people that the builder's stages find, and how right they are


def made(outcome: object) -> Mapping[str, Json]:
    """Return the fields of an outcome that must be a made one."""
    if not isinstance(outcome, Made):
        raise AssertionError(f"not made: {outcome}")
    return outcome.fields


def tools(settings: Own) -> Tools:
    """Return the tools of a stage that needs its settings alone."""
    return Tools(settings=settings, created_at="2026-01-01T00:00:00Z")


def tracked(
    shots: Sequence[Shot], detecting: DetectPeopleSettings, embedding: EmbedSettings | None = None
) -> list[dict[str, Any]]:
    """Return the fields of every shot after detection, tracking and embedding, as the stages make them."""
    fields: list[dict[str, Any]] = [{"shot": shot.as_json()} for shot in shots]
    items = [Item(shot.shot_id, known) for shot, known in zip(shots, fields, strict=True)]

    def take(outcomes: Iterable[Outcome]) -> None:
        for known, outcome in zip(fields, outcomes, strict=True):
            known.update(made(outcome))

    take(detect_people(items, tools(detecting)))
    take(track_people(item, tools(TrackSettings())) for item in items)
    take(embed_tracklets(items, tools(embedding or EmbedSettings(face=None, body=None))))
    return fields


def clustered(fields: Sequence[Mapping[str, Json]], settings: ClusterSettings) -> Mapping[str, Json]:
    """Return what clustering makes of shots with embedded tracklets."""
    shots = [{"shot": field["shot"], "quality": None, "tracklets": field["embedded"]} for field in fields]
    item = Item("film", {"video": fields[0]["shot"]["video"], "shots": shots})
    return made(cluster_people(item, tools(settings)))


@dataclass(frozen=True, slots=True)
class IdentityScores:
    """Counts of boxes, and what follows from them (Ristani et al., 2016); None where there are no boxes."""

    right: int  # boxes of both sides that belong together under the best one-to-one matching of names
    found: int  # boxes of the tracks
    true: int  # boxes of the truth

    @property
    def precision(self) -> float | None:
        """Share of found boxes that are right."""
        return self.right / self.found if self.found else None

    @property
    def recall(self) -> float | None:
        """Share of true boxes that were found under the right name."""
        return self.right / self.true if self.true else None

    @property
    def f1(self) -> float | None:
        """Harmonic mean of both, IDF1."""
        return 2 * self.right / (self.found + self.true) if self.found + self.true else None


def identity_scores(truth: Sequence[Named], found: Sequence[Named]) -> IdentityScores:
    """Return how many boxes bear the right name, under the best one-to-one matching of names."""
    from scipy.optimize import linear_sum_assignment

    together = _together(truth, found)
    names = [list({pair[side]: None for pair in together}) for side in (0, 1)]
    table = np.zeros((len(names[0]), len(names[1])))
    for (one, other), count in together.items():
        table[names[0].index(one), names[1].index(other)] = count
    right = table[linear_sum_assignment(-table)].sum()
    return IdentityScores(int(right), len(found), len(truth))


def _together(truth: Sequence[Named], found: Sequence[Named]) -> Counter[tuple[Hashable, Hashable]]:
    """Return how often two names have boxes in one frame that overlap by half or more."""
    counts: Counter[tuple[Hashable, Hashable]] = Counter()
    for frame in {frame for frame, _, _ in truth}:
        ours, theirs = ([row for row in rows if row[0] == frame] for rows in (truth, found))
        if theirs:
            shared = overlaps(np.array([box for _, _, box in ours]), np.array([box for _, _, box in theirs]))
            pairs = zip(*np.nonzero(shared >= 0.5), strict=True)
            counts.update((ours[row][1], theirs[column][1]) for row, column in pairs)
    return counts


@dataclass(frozen=True, slots=True)
class FilmScores:
    """How right the people of a film are."""

    identity: IdentityScores  # every frame of every person counted, over the whole film
    tracks: IdentityScores  # the same of tracklets within their shots, before they became people
    people: tuple[Hashable, ...]  # of each tracklet, whom the stages took it for
    shown: tuple[Hashable, ...]  # of each tracklet, who is in most of its boxes; itself where nobody is


def film_scores(film: KnownFilm, fields: Sequence[Mapping[str, Json]], people: Sequence[Json]) -> FilmScores:
    """Return how right tracklets and people are, in the frames that were looked at."""
    truth = film.truth([frame for known in fields for frame in known["detection"]["looked"]])
    owner = {name: person["person_id"] for person in people for name in person["tracklets"]}
    tracks: list[Named] = [
        (seen.frame, tracklet.tracklet_id, seen.box)
        for known in fields
        for tracklet in map(Tracklet.model_validate, known["embedded"])
        for seen in tracklet.seen
    ]
    counts = _together(truth, tracks)
    shown = {track: name for (name, track), _ in reversed(counts.most_common())}
    return FilmScores(
        identity_scores(truth, [(frame, owner[str(track)], box) for frame, track, box in tracks]),
        identity_scores(film.by_shot(truth), tracks),
        tuple(owner.values()),
        tuple(shown.get(track, track) for track in owner),
    )
