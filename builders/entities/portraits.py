"""Crops of people for a model to look at: the best views of their tracklets, kept in the run's store."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from ...media.images import encode_image, fitted
from .best_views import ViewWeights, qualities
from .drafts import Person, Seen, Tracklet
from .looking import cut_out, frames_of
from .views import keep

QUALITY = 88
AROUND = 0.05


def portraits(
    file: str,
    people: Sequence[Person],
    tracklets: Mapping[str, Tracklet],
    shape: tuple[int, int],
    store: Path | None,
) -> dict[str, tuple[str, ...]]:
    """Return the names of the crops of people in the store, by person.

    Args:
        file: the video.
        people: who is wanted.
        tracklets: id -> tracklet.
        shape: most crops of a person, and most pixels of the longer side of a crop.
        store: where crops are kept; None only names them.

    Raises:
        MediaProblem: the video cannot be read. MissingRequirement: the extra ``video`` is not installed.
    """
    most, side = shape
    chosen = {person.person_id: views_of(person, tracklets, most) for person in people}
    frames = {name: [view.frame for view in views] for name, views in chosen.items()}
    made: dict[str, dict[int, str]] = {name: {} for name in chosen}
    for frame, names in frames_of(file, frames):
        for name in dict.fromkeys(names):
            for place, view in enumerate(chosen[name]):
                part = cut_out(frame.image, view.box, AROUND) if view.frame == frame.index else None
                if part is not None:
                    data = encode_image(fitted(part, side), format="jpeg", quality=QUALITY)
                    made[name][place] = keep(data, store)
    return {name: tuple(files[place] for place in sorted(files)) for name, files in made.items()}


def views_of(person: Person, tracklets: Mapping[str, Tracklet], most: int) -> list[Seen]:
    """Return a person's best views: the best of each shot, longest tracklets first, then more of them."""
    own = sorted(
        (tracklets[name] for name in person.tracklets), key=lambda one: (-len(one.seen), one.tracklet_id)
    )
    shots: set[int] = set()
    first: list[Seen] = []
    rest: list[Seen] = []
    for one in own:
        (rest if one.shot in shots else first).append(_best(one))
        shots.add(one.shot)
    return [*first, *rest][:most]


def _best(one: Tracklet) -> Seen:
    if one.best:
        return one.seen[one.best[0]]
    quality = qualities(one.seen, ViewWeights())
    return one.seen[max(range(len(quality)), key=lambda place: (quality[place], -place))]
