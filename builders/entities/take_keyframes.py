"""Stage: pictures of the kept shots and of the people in them, kept in the run; what colours they have."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pydantic import Field

from ...engine.stage import Failed, Item, Made, Outcome, StageSpec, Tools
from ...media.images import MediaProblem, encode_image, fitted
from ...media.video import even_indices, frames_at
from ...schemas.canonical import Json
from ...schemas.values import Own
from .load_videos import film_path, segments_of
from .names import Box4, Person, Tracklet, Video
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


SEGMENT = 50
"""Shots whose pictures are kept together."""
SPEC = StageSpec(
    name="take_keyframes",
    version=2,
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
    """What was taken so far: views of shots; and of each person, by rank, file, tone and shot of a crop."""

    shots: list[ShotView] = field(default_factory=list)
    crops: dict[str, dict[int, tuple[str, str, int]]] = field(default_factory=dict)

    def take(self, part: Json) -> None:
        """Add what :func:`_part` returned."""
        self.shots += [ShotView.model_validate(view) for view in part["shots"]]
        for person, rank, file, tone, shot in part["crops"]:
            self.crops.setdefault(person, {})[rank] = (file, tone, shot)


def run(item: Item, tools: Tools) -> Outcome:
    """Return the names of the pictures of each shot and person.

    Frames that cannot be decoded make the video fail.
    """
    settings, video = tools.own(Settings), Video.model_validate(item["video"])
    shots, cast = item["shots"], [Person.model_validate(person) for person in item["cast"]]
    crops = _crops(shots, cast, settings.crops)
    inputs = {name: item[name] for name in ("shots", "cast")}
    segments = segments_of(SPEC, tools, {**inputs, "sha256": video.sha256})
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
    settings = tools.own(Settings)
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
    settings = tools.own(Settings)
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
    settings = tools.own(Settings)
    return keep(encode_image(image, format="jpeg", quality=settings.quality), tools.store)
