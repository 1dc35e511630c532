"""Pictures of a video's shots and people, kept by their content: how they are chosen and cut, their colours.

A picture is named by the SHA-256 of its bytes, ``<sha256>.jpg``, in the run's store.
"""

import colorsys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeVar

import numpy as np
from pydantic import BeforeValidator, Field

from ...engine.stage import UNAVAILABLE, Failed, Item, Made, NoAnswer, Outcome, Tools, stage
from ...media.images import MediaProblem, encode_image, fitted
from ...media.kept_files import keep_file, kept_bytes
from ...media.video import Frame, even_indices, frames_at
from ...models.chat import Image as ChatImage
from ...models.chat import Part
from ...models.vision.store import Box, cut
from ...schemas.canonical import Json, sha256_bytes
from ...schemas.text import normalize_answer, normalize_text
from ...schemas.values import Own
from ..step import Drafted, Problems, script_problem, texts_in
from ..step import ask as ask_model
from .names import Box4, Person, Repair, Seen, Tracklet, Video
from .videos import film_path, segments_of

if TYPE_CHECKING:
    from PIL.Image import Image

MEDIA_TYPE = "image/jpeg"


class ShotView(Own):
    """What a shot looks like."""

    shot: int  # its number
    files: tuple[str, ...]  # names of its keyframes, in order of time
    # histogram of its keyframes in thousandths: 64 bins, four levels of red, green and blue each
    colours: tuple[int, ...] = ()
    tone: str | None = None  # the colour word that fits most of its first keyframe; None without keyframes


class PersonView(Own):
    """What a person looks like."""

    person: str  # id of the person
    files: tuple[str, ...]  # names of the crops, best first
    # the colour word that fits most of the lower half of the best crop; None without crops
    tone: str | None = None
    shots: tuple[int, ...] = ()  # numbers of the shots that the crops are from


class Views(Own):
    """Pictures of a video."""

    shots: tuple[ShotView, ...] = ()
    people: tuple[PersonView, ...] = ()

    def of_shot(self, number: int) -> ShotView:
        """Return the view of a shot; one without pictures where there is none."""
        view = self._by_shot.get(number)
        return ShotView(shot=number, files=()) if view is None else view

    @cached_property
    def _by_shot(self) -> dict[int, ShotView]:
        return {view.shot: view for view in self.shots}

    def of_person(self, person: str) -> PersonView:
        """Return the view of a person; one without pictures where there is none."""
        views = (view for view in self.people if view.person == person)
        return next(views, PersonView(person=person, files=()))

    def part(self, numbers: Iterable[int], people: Iterable[str]) -> "Views":
        shots, persons = frozenset(numbers), frozenset(people)
        return Views(
            shots=tuple(view for view in self.shots if view.shot in shots),
            people=tuple(view for view in self.people if view.person in persons),
        )


def keep(data: bytes, store: Path | None) -> str:
    """Write a picture into the store, unless it is there; return its name. Without a store, only name it."""
    name = f"{sha256_bytes(data)}.jpg"
    if store is not None:
        keep_file(data, name, store)
    return name


def picture(name: str, store: Path | None) -> ChatImage:
    """Return a kept picture as a part of a message; without a store, what stands for it in a rehearsal."""
    if store is None:
        return ChatImage(name.encode("ascii"), MEDIA_TYPE, name.partition(".")[0])
    fix = "build into a new folder; --reuse takes over what models answered in this one"
    return ChatImage(kept_bytes(store, name, fix=fix), MEDIA_TYPE)


ModelName = Annotated[str | None, BeforeValidator(lambda name: None if name == "none" else name)]
"""Name of a model; ``none``, or null, for none."""


def frames_of(
    video: Video, wanted: Mapping[str, Sequence[int]], tools: Tools
) -> Iterator[tuple[Frame, tuple[str, ...]]]:
    """Yield the frames of a video that some shots want, ascending, each with the ids of those shots.

    The video is gone through once, whatever the number of shots.

    ``wanted``: id of a shot -> frames.
    """
    who: dict[int, list[str]] = {}
    for shot, numbers in wanted.items():
        for number in numbers:
            who.setdefault(number, []).append(shot)
    path = film_path(video.file, video.sha256, tools)
    for frame in frames_at(path, sorted(who), deinterlace=video.deinterlaced is not None):
        yield frame, tuple(who[frame.index])


def cut_out(image: "Image", box: Box4, around: float = 0.0) -> "Image | None":
    """Return the part of a picture in a box, with a share of its sides around it; None where no pixel is."""
    left, top, right, bottom = box
    across, down = around * (right - left), around * (bottom - top)
    return cut(image, Box(left - across, top - down, right + across, bottom + down))


LEVELS = 4
"""Levels of each of red, green and blue in a histogram."""

_HUES = (
    (15, "red"), (45, "orange"), (70, "yellow"), (165, "green"), (255, "blue"), (290, "purple"),
    (345, "pink"), (361, "red"),
)  # fmt: skip
"""Colour words and the degrees of hue below which they hold."""


def histogram(images: Iterable["Image"]) -> tuple[int, ...]:
    """Return the share of pixels in each of 64 bins, in thousandths rounded down; nothing without images."""
    counts: Counter[int] = Counter()
    for image in images:
        data = _small(image)
        step = 256 // LEVELS
        counts.update(
            (data[at] // step * LEVELS + data[at + 1] // step) * LEVELS + data[at + 2] // step
            for at in range(0, len(data), 3)
        )
    total = counts.total()
    return tuple(counts[bin] * 1000 // total for bin in range(LEVELS**3)) if total else ()


def distance(first: Sequence[int], other: Sequence[int]) -> float:
    """Return how far two histograms are apart: 0 for equal ones, 1 for colours of which none is shared.

    Without one of them nothing can be told: 1.
    """
    if not first or not other:
        return 1.0
    return min(1.0, sum(abs(a - b) for a, b in zip(first, other, strict=True)) / 2000)


def colour_word(image: "Image") -> str:
    """Return the word for the colour that most of an image has: its fullest bin's mean colour."""
    data = _small(image)
    bins: dict[tuple[int, int, int], list[int]] = {}
    for at in range(0, len(data), 3):
        red, green, blue = data[at : at + 3]
        sums = bins.setdefault((red // 64, green // 64, blue // 64), [0, 0, 0, 0])
        for index, value in enumerate((red, green, blue, 1)):
            sums[index] += value
    _, sums = min(bins.items(), key=lambda entry: (-entry[1][3], entry[0]))
    return word_of(sums[0] // sums[3], sums[1] // sums[3], sums[2] // sums[3])


def word_of(red: int, green: int, blue: int) -> str:
    """Return the word for a colour, each channel 0 to 255."""
    hue, saturation, value = colorsys.rgb_to_hsv(red / 255, green / 255, blue / 255)
    if value < 0.2:
        return "black"
    if saturation < 0.15:
        return "white" if value > 0.85 else "grey"
    word = next(word for bound, word in _HUES if hue * 360 < bound)
    return "brown" if word in ("orange", "red") and value < 0.65 and hue * 360 > 10 else word


def _small(image: "Image") -> bytes:
    from PIL.Image import Resampling

    return image.convert("RGB").resize((32, 18), Resampling.BOX).tobytes()


_HEIGHT = 128
_WIDEST = 512


@dataclass(frozen=True, slots=True)
class ViewWeights:
    """How much face, size and sharpness count."""

    face: float = 0.5
    size: float = 0.3
    sharp: float = 0.2


def qualities(
    seen: Sequence[Seen], weights: ViewWeights, sharpness: Mapping[int, float] | None = None
) -> list[float]:
    """Return the quality of every view of a tracklet; ``sharpness`` of those whose pixels were looked at."""
    largest = max((_area(sighting.box) for sighting in seen), default=0.0)
    largest_face = max((_area(sighting.face) for sighting in seen if sighting.face is not None), default=0.0)
    sharpest = max((sharpness or {}).values(), default=0.0)
    made = []
    for index, sighting in enumerate(seen):
        face = 0.0
        if sighting.face is not None and largest_face > 0:
            score = 1.0 if sighting.face_score is None else sighting.face_score
            face = score * (_area(sighting.face) / largest_face) ** 0.5
        size = (_area(sighting.box) / largest) ** 0.5 if largest > 0 else 0.0
        sharp = (sharpness or {}).get(index, 0.0) / sharpest if sharpest > 0 else 0.0
        made.append(weights.face * face + weights.size * size + weights.sharp * sharp)
    return made


def candidates(seen: Sequence[Seen], weights: ViewWeights, most: int) -> list[int]:
    """Return the views whose pixels are worth looking at, ascending: the best of each of ``most`` parts."""
    quality = qualities(seen, weights)
    parts = [part for part in np.array_split(np.arange(len(seen)), max(1, min(most, len(seen)))) if len(part)]
    return [max(part.tolist(), key=lambda index: (quality[index], -index)) for part in parts]


def best(quality: Mapping[int, float], most: int) -> list[int]:
    """Return the best of some views, best first; of equal ones the earlier."""
    return sorted(quality, key=lambda index: (-quality[index], index))[:most]


def sharpness_of(image: "Image") -> float:
    """Return how sharp a crop is: the variance of the Laplacian of its grey values, 0 or more."""
    width = min(_WIDEST, max(3, round(image.width * _HEIGHT / image.height)))
    grey = np.asarray(image.convert("L").resize((width, _HEIGHT)), dtype=np.float64)
    middle = grey[1:-1, 1:-1]
    around = grey[:-2, 1:-1] + grey[2:, 1:-1] + grey[1:-1, :-2] + grey[1:-1, 2:]
    return float(np.var(around - 4 * middle))


def _area(box: Box4) -> float:
    return max(0.0, box[2] - box[0]) * max(0.0, box[3] - box[1])


QUALITY = 88
AROUND = 0.05


def portraits(
    video: Video,
    people: Sequence[Person],
    tracklets: Mapping[str, Tracklet],
    shape: tuple[int, int],
    tools: Tools,
) -> dict[str, tuple[str, ...]]:
    """Return the names of the crops of people in the store, by person.

    ``tracklets``: id -> tracklet. ``shape``: most crops of a person, and most pixels of the longer side of a
    crop.
    """
    most, side = shape
    chosen = {person.person_id: views_of(person, tracklets, most) for person in people}
    frames = {name: [view.frame for view in views] for name, views in chosen.items()}
    made: dict[str, dict[int, str]] = {name: {} for name in chosen}
    for frame, names in frames_of(video, frames, tools):
        for name in dict.fromkeys(names):
            for index, view in enumerate(chosen[name]):
                part = cut_out(frame.image, view.box, AROUND) if view.frame == frame.index else None
                if part is not None:
                    data = encode_image(fitted(part, side), format="jpeg", quality=QUALITY)
                    made[name][index] = keep(data, tools.store)
    return {name: tuple(files[rank] for rank in sorted(files)) for name, files in made.items()}


def views_of(person: Person, tracklets: Mapping[str, Tracklet], most: int) -> list[Seen]:
    """Return a person's best views: the best of each shot, longest tracklets first, then more of them."""
    own = sorted(
        (tracklets[name] for name in person.tracklets),
        key=lambda tracklet: (-len(tracklet.seen), tracklet.tracklet_id),
    )
    shots: set[int] = set()
    first: list[Seen] = []
    rest: list[Seen] = []
    for tracklet in own:
        (rest if tracklet.shot in shots else first).append(_best(tracklet))
        shots.add(tracklet.shot)
    return [*first, *rest][:most]


def _best(tracklet: Tracklet) -> Seen:
    if tracklet.best:
        return tracklet.seen[tracklet.best[0]]
    quality = qualities(tracklet.seen, ViewWeights())
    return tracklet.seen[max(range(len(quality)), key=lambda index: (quality[index], -index))]


# -- Asking one prompt, with pictures, of the model that a stage's settings name

T = TypeVar("T")

_ENGLISH = "Everything is to be written in English."


@dataclass(frozen=True, slots=True)
class Shown:
    """Pictures under a title: a shot with its frames, a person with crops."""

    title: str
    files: tuple[str, ...]


async def ask(
    tools: Tools,
    prompt_id: str,
    read: Callable[[Json], T],
    shown: Sequence[Shown] = (),
    **inputs: Json,
) -> Drafted[T]:
    """Return a model's answer to a prompt; the pictures stand before the text."""
    return await ask_model(tools, prompt_id, read, _pictures(shown, tools), **inputs)


async def attempt(
    tools: Tools,
    prompt_id: str,
    read: Callable[[Json], T],
    shown: Sequence[Shown] = (),
    **inputs: Json,
) -> Drafted[T] | NoAnswer:
    """Return a model's answer, or why there is none: one part of an episode can do without."""
    try:
        return await ask(tools, prompt_id, read, shown, **inputs)
    except NoAnswer as failure:
        if failure.code == UNAVAILABLE:
            raise
        return failure


def why(failure: NoAnswer) -> str:
    """Return why there is no answer, in one line."""
    return f"the model gave no answer: {failure.code}: {' '.join(failure.reason.split())[:200]}"


def maker_of(answers: Iterable[Drafted[T] | NoAnswer]) -> str:
    """Return who made something that was asked for in parts, each once; rules where no part was answered."""
    makers = [answer.maker for answer in answers if isinstance(answer, Drafted)]
    return "; ".join(dict.fromkeys(makers)) or "rules@1"


def check_english(values: Json, problems: Problems) -> None:
    """Note it if texts are not in Latin letters, as English is."""
    problem = script_problem(_ENGLISH, "en", " ".join(texts_in(values)))
    if problem is not None:
        problems.add("the texts are not in English: write every value in English")


def _pictures(shown: Sequence[Shown], tools: Tools) -> list[Part]:
    parts: list[Part] = []
    for view in shown:
        if view.files:
            parts += [view.title, *(picture(name, tools.store) for name in view.files)]
    return parts


def noted(code: str, found: str, done: str, shot: int | None = None, entity: str | None = None) -> Repair:
    """Return the note of something that was found in a reply."""
    return Repair.model_validate({"code": code, "shot": shot, "entity": entity, "found": found, "done": done})


LONGEST_ACTION = 120
"""Words of an action; those of the release have 6 to 79."""


def tidy(text: str) -> str:
    """Return a text in one line, without marks around names."""
    return normalize_text(text.replace("`", ""))


def action_of_reply(text: str, where: str, problems: Problems) -> str:
    """Return an action of a reply in one line; note it where it says nothing or is too long."""
    action = tidy(text)
    words = len(action.split())
    if not normalize_answer(action):
        problems.add(f"{where}: the action says nothing")
    elif words > LONGEST_ACTION:
        problems.add(f"{where}: the action has {words} words; write at most sixty")
    return action


# -- Stage: pictures of the kept shots and of the people in them, kept in the run; what colours they have


class KeyframeSettings(Own):
    frames: int = Field(default=2, ge=1, le=16, description="Keyframes of a shot, evenly inside it.")
    crops: int = Field(default=3, ge=0, le=16, description="Crops of a person, of different shots first.")
    max_side: int = Field(default=640, ge=64, le=4096, description="Longer side of a picture at most.")
    quality: int = Field(default=88, ge=1, le=95, description="Quality of the JPEG files.")
    margin: float = Field(default=0.1, ge=0, le=1, description="Added to each side of a crop, by its size.")


SEGMENT = 50
"""Shots whose pictures are kept together."""


@dataclass(frozen=True, slots=True)
class _Crop:
    """A crop to be made: of whom, which one, from which shot, where."""

    person: str
    rank: int
    shot: int
    box: Box4


@dataclass(slots=True)
class _Taken:
    """What was taken so far: views of shots; and of each person, by rank, file, tone and shot of a crop."""

    shots: list[ShotView] = field(default_factory=list)
    crops: dict[str, dict[int, tuple[str, str, int]]] = field(default_factory=dict)

    def take(self, part: Json) -> None:
        """Add what :func:`_part` returned."""
        self.shots += [ShotView.model_validate(view) for view in part["shots"]]
        for person, rank, file, tone, shot in part["crops"]:
            self.crops.setdefault(person, {})[rank] = (file, tone, shot)


@stage(
    version=2,
    reads=("video", "shots", "cast"),
    writes=("views",),
    libraries=("pillow", "av"),
    settings=KeyframeSettings,
    patience=20,
)
def take_keyframes(item: Item, tools: Tools) -> Outcome:
    """Return the names of the pictures of each shot and person.

    Frames that cannot be decoded make the video fail.
    """
    settings, video = tools.own(KeyframeSettings), Video.model_validate(item["video"])
    shots, cast = item["shots"], [Person.model_validate(person) for person in item["cast"]]
    crops = _crops(shots, cast, settings.crops)
    inputs = {name: item[name] for name in ("shots", "cast")}
    segments = segments_of(take_keyframes.SPEC, tools, {**inputs, "sha256": video.sha256})
    taken = _Taken()
    try:
        for number, start in enumerate(range(0, len(shots), SEGMENT)):
            part = segments.get(number)
            if part is None or not _are_there(part, tools):
                part = _part(video, shots[start : start + SEGMENT], crops, tools)
                segments.put(number, part)
            taken.take(part)
    except MediaProblem as problem:
        return Failed(problem.code, str(problem))
    views = Views(
        shots=tuple(sorted(taken.shots, key=lambda view: view.shot)),
        people=tuple(_view(person.person_id, taken.crops) for person in cast),
    )
    return Made({"views": views.as_json()})


def _part(video: Video, shots: Sequence[Json], crops: Mapping[int, list[_Crop]], tools: Tools) -> Json:
    """Return what is taken of some shots, as JSON: their views, and crops with whose and which they are."""
    settings = tools.own(KeyframeSettings)
    keyframes, numbers = _keyframes(shots, settings.frames), {entry["shot"]["number"] for entry in shots}
    own = {
        frame: mine
        for frame, some in crops.items()
        if (mine := [crop for crop in some if crop.shot in numbers])
    }
    files: dict[int, list[str]] = {}
    small: dict[int, list[Image]] = {}
    views: list[Json] = []
    path, deinterlace = film_path(video.file, video.sha256, tools), video.deinterlaced is not None
    for frame in frames_at(path, sorted({*keyframes, *own}), deinterlace=deinterlace):
        for shot in keyframes.get(frame.index, ()):
            image = fitted(frame.image, settings.max_side)
            files.setdefault(shot, []).append(_kept(image, tools))
            small.setdefault(shot, []).append(image.resize((64, 36)))
        for crop in own.get(frame.index, ()):
            view = _cut(frame.image, crop, tools)
            if view is not None:
                views.append([crop.person, crop.rank, *view])
    seen = [
        ShotView(
            shot=shot, files=tuple(names), colours=histogram(small[shot]), tone=colour_word(small[shot][0])
        )
        for shot, names in files.items()
    ]
    return {"shots": [view.as_json() for view in seen], "crops": views}


def _are_there(part: Json, tools: Tools) -> bool:
    """Whether all pictures of a part are in the store."""
    files = [
        *(name for view in part["shots"] for name in view["files"]),
        *(crop[2] for crop in part["crops"]),
    ]
    return tools.store is None or all((tools.store / name).exists() for name in files)


def _keyframes(shots: Sequence[Json], count: int) -> Mapping[int, list[int]]:
    """Return frame -> numbers of the shots that it stands for: evenly spread, the ends left out."""
    wanted: dict[int, list[int]] = {}
    for entry in shots:
        first, last = entry["shot"]["first"], entry["shot"]["last"]
        frames = last - first + 1
        # Two more than asked for, so that those at the ends, which may be blends of two shots, can go.
        places = even_indices(frames, count + 2)[1:-1] if frames >= count + 2 else range(min(count, frames))
        for offset in places:
            wanted.setdefault(first + offset, []).append(entry["shot"]["number"])
    return wanted


def _crops(shots: Sequence[Json], cast: Iterable[Person], most: int) -> Mapping[int, list[_Crop]]:
    """Return frame -> crops to be made of it: the best view of each track, longest tracklets first."""
    tracklets = {
        track["tracklet_id"]: Tracklet.model_validate(track)
        for entry in shots
        for track in entry["tracklets"]
    }
    wanted: dict[int, list[_Crop]] = {}
    for person in cast:
        own = [tracklets[name] for name in person.tracklets if name in tracklets]
        own.sort(key=lambda track: (-len(track.seen), track.tracklet_id))
        first_of_shot = list({track.shot: track for track in reversed(own)}.values())[::-1]
        rest = [track for track in own if track not in first_of_shot]
        for rank, track in enumerate([*first_of_shot, *rest][:most]):
            view = track.seen[track.best[0]] if track.best else track.seen[len(track.seen) // 2]
            crop = _Crop(person.person_id, rank, track.shot, view.box)
            wanted.setdefault(view.frame, []).append(crop)
    return wanted


def _cut(image: "Image", crop: _Crop, tools: Tools) -> tuple[str, str, int] | None:
    """Return file, tone and shot of a crop; None where it has hardly a pixel."""
    settings = tools.own(KeyframeSettings)
    left, top, right, bottom = crop.box
    wide, high = (right - left) * settings.margin, (bottom - top) * settings.margin
    box = (
        max(0, int(left - wide)), max(0, int(top - high)),
        min(image.width, round(right + wide)), min(image.height, round(bottom + high)),
    )  # fmt: skip
    if box[2] - box[0] < 2 or box[3] - box[1] < 2:
        return None
    cut = fitted(image.crop(box), settings.max_side)
    # Clothes are in the lower part of a view of a person, a third of its width about the middle.
    third = max(1, cut.width // 3)
    body = cut.crop((third, cut.height // 2, min(cut.width, 2 * third + 1), cut.height))
    return _kept(cut, tools), colour_word(body), crop.shot


def _view(person: str, crops: Mapping[str, Mapping[int, tuple[str, str, int]]]) -> PersonView:
    views = [view for _, view in sorted(crops.get(person, {}).items())]
    return PersonView(
        person=person,
        files=tuple(name for name, _, _ in views),
        tone=views[0][1] if views else None,
        shots=tuple(shot for _, _, shot in views),
    )


def _kept(image: "Image", tools: Tools) -> str:
    settings = tools.own(KeyframeSettings)
    return keep(encode_image(image, format="jpeg", quality=settings.quality), tools.store)
