"""A drawn film whose every frame is known: eight characters through scenes of several shots.

They change clothes from act to act; two are twins and two wear the same uniform; they cross, pass behind a
pillar, leave and come back. Each place has light of its own. Nothing is random but by the seed. The drawings
are no photographs: what works on them may not work on films, and the reverse.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from .drawn_videos import Encoder, write_frames

if TYPE_CHECKING:
    from PIL.Image import Image

Colour = tuple[int, int, int]
Box4 = tuple[float, float, float, float]
WIDTH, HEIGHT, FPS = 320, 180, 12
SHOT_SECONDS = 4
SHOTS_A_SCENE = 4
SCENES_AN_ACT = 3


@dataclass(frozen=True, slots=True)
class Figure:
    """A character."""

    name: str  # of the character
    skin: Colour  # colour of the face
    hair: Colour  # colour of the hair
    # colours of coat and trousers, one pair for each act, then from the first again
    outfits: tuple[tuple[Colour, Colour], ...]


_UNIFORM = ((40, 60, 110), (25, 35, 70))
CAST = (
    Figure("Ada", (235, 195, 165), (60, 35, 20),
           (((200, 40, 40), (50, 50, 60)), ((60, 140, 60), (90, 70, 50)), ((210, 180, 60), (60, 60, 70)))),
    Figure("Ben", (140, 90, 60), (20, 20, 20),
           (((230, 225, 215), (90, 80, 70)), ((70, 70, 160), (30, 30, 40)), ((160, 60, 150), (70, 40, 60)))),
    Figure("Cleo", (215, 165, 130), (175, 120, 45),
           (((40, 170, 170), (90, 90, 100)), ((225, 120, 40), (60, 40, 30)), ((90, 90, 90), (40, 40, 40)))),
    Figure("Cora", (215, 165, 130), (190, 150, 70),
           (((50, 150, 185), (90, 90, 100)), ((225, 150, 40), (60, 40, 30)), ((120, 100, 90), (40, 40, 40)))),
    Figure("Dov", (245, 215, 195), (220, 60, 30), ((_UNIFORM), ((150, 110, 60), (80, 60, 40)), (_UNIFORM))),
    Figure("Eli", (110, 70, 45), (130, 130, 130), ((_UNIFORM), ((200, 200, 60), (50, 80, 50)), (_UNIFORM))),
    Figure("Fay", (225, 180, 150), (245, 235, 200),
           (((150, 20, 90), (150, 20, 90)), ((240, 240, 240), (200, 200, 90)), ((20, 90, 60), (20, 60, 40)))),
    Figure("Gus", (190, 140, 105), (90, 60, 140),
           (((100, 70, 40), (60, 60, 30)), ((180, 60, 60), (40, 40, 90)), ((70, 120, 190), (200, 190, 170)))),
)  # fmt: skip
_PLACES = (
    ((150, 185, 150), (1.0, 1.0, 1.0)),
    ((190, 170, 140), (1.03, 0.99, 0.95)),
    ((120, 130, 150), (0.94, 0.96, 1.0)),
    ((205, 205, 215), (1.0, 1.01, 1.03)),
    ((90, 80, 75), (0.92, 0.9, 0.88)),
)


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
    """A shot: frames ``first`` to ``last``, its scene, place, pillar and who is in it."""

    number: int
    scene: int
    first: int
    last: int
    place: int
    pillar: int | None
    parts: tuple[Part, ...]


@dataclass(frozen=True, slots=True)
class Standing:
    """A character in a frame."""

    character: str  # name
    box: Box4  # of the figure, as far as it is in the picture
    face: Box4 | None  # of the face, as far as it is in the picture; None where less than half of it shows
    visible: float  # share of the whole figure that shows, 0 to 1


@dataclass(frozen=True)
class DrawnFilm:
    """A film."""

    seconds: int = 180  # how long; whole shots of four seconds
    seed: int = 7  # what decides who does what
    cast: tuple[Figure, ...] = field(default=CAST, repr=False)

    @property
    def frames(self) -> int:
        """How many frames it has."""
        return len(self.shots) * SHOT_SECONDS * FPS

    @cached_property
    def shots(self) -> tuple[FilmShot, ...]:
        """All shots, in order."""
        random = np.random.default_rng(self.seed)
        return tuple(self._shot(number, random) for number in range(1, self.seconds // SHOT_SECONDS + 1))

    def _shot(self, number: int, random: np.random.Generator) -> FilmShot:
        length, scene = SHOT_SECONDS * FPS, (number - 1) // SHOTS_A_SCENE
        # Twins meet in every third scene, the two in uniform in every third; the others come as they come.
        pairs: dict[int, list[int]] = {0: [2, 3], 1: [4, 5]}
        fixed = pairs.get(scene % 3, [int(random.integers(0, 2))])
        rest = [int(one) for one in random.permutation(len(self.cast)) if one not in fixed]
        chosen = [*fixed, *rest][: int(random.integers(2, 5))]
        tall = float(random.choice([70, 95, 125]))
        order = [int(one) for one in random.permutation(len(chosen))]
        parts = []
        for slot, who in zip(order, chosen, strict=True):
            start = (slot + 0.5) * WIDTH / len(chosen) + float(random.uniform(-12, 12))
            outer = slot in (0, len(chosen) - 1)
            way = ("stand", "walk", "leave")[
                int(random.choice(3, p=[0.4, 0.3, 0.3] if outer else [0.5, 0.5, 0]))
            ]
            end = -30.0 if start < WIDTH / 2 else WIDTH + 30.0
            if way == "walk":
                end = start + float(random.uniform(60, 130)) * (1 if start < WIDTH / 2 else -1)
            depth = float(random.uniform(0.85, 1.15))
            parts.append(Part(who, way, start, end, tall * depth, 110 + 62 * depth - 4 * slot))  # type: ignore[arg-type]
        pillar = int(random.integers(90, 230)) if random.random() < 0.35 else None
        first = (number - 1) * length
        return FilmShot(number, scene, first, first + length - 1, scene % len(_PLACES), pillar, tuple(parts))

    def shot_of(self, frame: int) -> FilmShot:
        """Return the shot that a frame belongs to."""
        return self.shots[frame // (SHOT_SECONDS * FPS)]

    def frame(self, number: int) -> "Image":
        """Return the picture of a frame."""
        return _draw(self, number)[0]

    def standing(self, number: int) -> tuple[Standing, ...]:
        """Return who is in a frame, the farthest first; who does not show at all is not."""
        return _draw(self, number)[1]

    def write(self, path: Path) -> Path:
        """Write the film as a video (needs the extra ``video``)."""
        frames = (np.asarray(self.frame(number)) for number in range(self.frames))
        return write_frames(path, frames, Encoder(rate=3_000_000), fps=FPS)

    def pictures(self) -> "Iterator[tuple[int, Image, tuple[Standing, ...]]]":
        """Yield every frame with its number and who is in it."""
        for number in range(self.frames):
            yield number, *_draw(self, number)


@lru_cache(maxsize=4)
def _draw(film: DrawnFilm, number: int) -> "tuple[Image, tuple[Standing, ...]]":
    from PIL import Image, ImageDraw

    shot = film.shot_of(number)
    share = (number - shot.first) / max(1, shot.last - shot.first)
    walls, light = _PLACES[shot.place]
    # Every second shot looks the other way: the walls there are darker.
    darker = 36 * (shot.number % 2)
    ground: Colour = (walls[0] - darker, walls[1] - darker, walls[2] - darker)
    image, mask = Image.new("RGB", (WIDTH, HEIGHT), ground), Image.new("L", (WIDTH, HEIGHT), 0)
    paint, count = ImageDraw.Draw(image), ImageDraw.Draw(mask)
    floor: Colour = (ground[0] // 2 + 30, ground[1] // 2 + 30, ground[2] // 2 + 30)
    paint.rectangle((0, 140, WIDTH, HEIGHT), fill=floor)
    for stripe in range(0, WIDTH, 40):
        paint.line((stripe + 7 * shot.place, 0, stripe, 140), fill=floor)
    parts = sorted(shot.parts, key=lambda part: part.feet)
    areas = []
    for at, part in enumerate(parts, start=1):
        figure = film.cast[part.character]
        coat, trousers = figure.outfits[(shot.scene // SCENES_AN_ACT) % len(figure.outfits)]
        shapes = _shapes(part, part.centre(share))
        for name, colour in (("legs", trousers), ("coat", coat)):
            paint.rectangle(shapes[name], fill=colour)
            count.rectangle(shapes[name], fill=2 * at)
        paint.ellipse(shapes["head"], fill=figure.skin)
        paint.chord(shapes["head"], 180, 360, fill=figure.hair)
        count.ellipse(shapes["head"], fill=2 * at + 1)
        areas.append((figure.name, shapes))
    if shot.pillar is not None:
        paint.rectangle((shot.pillar, 0, shot.pillar + 26, HEIGHT), fill=(70, 60, 55))
        count.rectangle((shot.pillar, 0, shot.pillar + 26, HEIGHT), fill=0)
    pixels = np.asarray(mask)
    standing = [_standing(name, shapes, at, pixels) for at, (name, shapes) in enumerate(areas, start=1)]
    lit = np.asarray(image, dtype=np.float64) * np.array(light)
    noise = np.random.default_rng((film.seed, number)).normal(0, 2, lit.shape)
    shown = Image.fromarray(np.clip(np.rint(lit + noise), 0, 255).astype(np.uint8))
    return shown, tuple(one for one in standing if one is not None)


def _shapes(part: Part, centre: float) -> dict[str, Box4]:
    """Return the rectangles around head, coat and legs of a figure, and ``all`` of it."""
    top, tall = part.feet - part.tall, part.tall
    return {
        "head": (centre - 0.11 * tall, top, centre + 0.11 * tall, top + 0.24 * tall),
        "coat": (centre - 0.17 * tall, top + 0.22 * tall, centre + 0.17 * tall, top + 0.62 * tall),
        "legs": (centre - 0.13 * tall, top + 0.6 * tall, centre + 0.13 * tall, part.feet),
        "all": (centre - 0.17 * tall, top, centre + 0.17 * tall, part.feet),
    }


def _standing(name: str, shapes: dict[str, Box4], at: int, pixels: NDArray[np.uint8]) -> Standing | None:
    shown, head = int((pixels // 2 == at).sum()), int((pixels == 2 * at + 1).sum())
    size = {key: (box[2] - box[0]) * (box[3] - box[1]) for key, box in shapes.items()}
    whole = size["coat"] + size["legs"] + 0.785 * size["head"]
    box = _inside(shapes["all"])
    if box is None or shown == 0:
        return None
    face = _inside(shapes["head"]) if head >= 0.5 * 0.785 * size["head"] else None
    return Standing(name, box, face, min(1.0, shown / whole))


def _inside(box: Box4) -> Box4 | None:
    left, top, right, bottom = max(0.0, box[0]), max(0.0, box[1]), min(WIDTH, box[2]), min(HEIGHT, box[3])
    return (left, top, right, bottom) if left < right and top < bottom else None
