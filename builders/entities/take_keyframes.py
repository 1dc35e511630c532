"""Stage: pictures of the kept shots and of the people in them, kept in the run; what colours they have."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import Field

from ...engine.stage import Failed, Item, Made, Outcome, StageSpec, Tools
from ...media.images import MediaProblem, encode_image, fitted
from ...media.video import even_indices, frames_at
from ...schemas.canonical import Json
from ...schemas.values import Own
from .drafts import Box4, Person, Tracklet
from .pictures import PersonView, ShotView, Views, colour_word, histogram, keep

if TYPE_CHECKING:
    from PIL.Image import Image


class Settings(Own):
    """Settings of the stage."""

    frames: int = Field(default=2, ge=1, le=16, description="Keyframes of a shot, evenly inside it.")
    crops: int = Field(default=3, ge=0, le=16, description="Crops of a person, of different shots first.")
    max_side: int = Field(default=640, ge=64, le=4096, description="Longer side of a picture at most.")
    quality: int = Field(default=88, ge=1, le=95, description="Quality of the JPEG files.")
    margin: float = Field(default=0.1, ge=0, le=1, description="Added to each side of a crop, by its size.")


SPEC = StageSpec(
    name="take_keyframes",
    version=1,
    shape="map",
    reads=("video", "shots", "cast"),
    writes=("views",),
    libraries=("pillow", "av"),
    settings=Settings,
    patience=20,
)


@dataclass(frozen=True, slots=True)
class _Crop:
    """A crop to be made: of whom, which one, from which shot, where."""

    person: str
    rank: int
    shot: int
    box: Box4


@dataclass(slots=True)
class _Taken:
    """What was taken so far; a shot's small keyframes are kept until all of them are there."""

    frames: dict[int, list[str]] = field(default_factory=dict)
    small: dict[int, list["Image"]] = field(default_factory=dict)
    crops: dict[str, dict[int, tuple[str, str, int]]] = field(default_factory=dict)


def run(item: Item, tools: Tools) -> Outcome:
    """Return the names of the pictures of each shot and person.

    Frames that cannot be decoded make the video fail.
    """
    settings = tools.own(Settings)
    shots, cast = item["shots"], [Person.model_validate(person) for person in item["cast"]]
    keyframes = _keyframes(shots, settings.frames)
    crops = _crops(shots, cast, settings.crops)
    taken = _Taken()
    try:
        for frame in frames_at(Path(item["video"]["file"]), sorted({*keyframes, *crops})):
            for shot in keyframes.get(frame.index, ()):
                image = fitted(frame.image, settings.max_side)
                taken.frames.setdefault(shot, []).append(_kept(image, tools))
                taken.small.setdefault(shot, []).append(image.resize((64, 36)))
            for crop in crops.get(frame.index, ()):
                _take(frame.image, crop, taken, tools)
    except MediaProblem as problem:
        return Failed(problem.code, str(problem))
    views = Views(
        shots=tuple(
            ShotView(
                shot=shot, files=tuple(files), colours=histogram(taken.small[shot]),
                tone=colour_word(taken.small[shot][0]),
            )
            for shot, files in sorted(taken.frames.items())
        ),
        people=tuple(_view(person.person_id, taken.crops) for person in cast),
    )  # fmt: skip
    return Made({"views": views.as_json()})


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


def _take(image: "Image", crop: _Crop, taken: _Taken, tools: Tools) -> None:
    settings = tools.own(Settings)
    left, top, right, bottom = crop.box
    wide, high = (right - left) * settings.margin, (bottom - top) * settings.margin
    box = (
        max(0, int(left - wide)), max(0, int(top - high)),
        min(image.width, round(right + wide)), min(image.height, round(bottom + high)),
    )  # fmt: skip
    if box[2] - box[0] < 2 or box[3] - box[1] < 2:
        return
    cut = fitted(image.crop(box), settings.max_side)
    # Clothes are in the lower part of a view of a person, a third of its width about the middle.
    third = max(1, cut.width // 3)
    body = cut.crop((third, cut.height // 2, min(cut.width, 2 * third + 1), cut.height))
    views = taken.crops.setdefault(crop.person, {})
    views[crop.rank] = (_kept(cut, tools), colour_word(body), crop.shot)


def _view(person: str, crops: Mapping[str, Mapping[int, tuple[str, str, int]]]) -> PersonView:
    views = [view for _, view in sorted(crops.get(person, {}).items())]
    return PersonView(
        person=person,
        files=tuple(name for name, _, _ in views),
        tone=views[0][1] if views else None,
        shots=tuple(shot for _, _, shot in views),
    )


def _kept(image: "Image", tools: Tools) -> str:
    settings = tools.own(Settings)
    return keep(encode_image(image, format="jpeg", quality=settings.quality), tools.store)
