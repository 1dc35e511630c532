"""The people of the drawn film, found by the stages of the entities builder, and how right they are."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..builders.entities.identities import ClusterSettings, EmbedSettings, cluster_people, embed_tracklets
from ..builders.entities.names import Person, Shot, Tracklet, Video
from ..builders.entities.tracking import DetectPeopleSettings, TrackSettings, detect_people, track_people
from ..engine.stage import Item, Made, Tools
from ..schemas.canonical import Json
from ..schemas.values import Own
from .drawn_film import FPS, HEIGHT, WIDTH, DrawnFilm
from .track_metrics import IdentityScores, Named, identity_scores, identity_switches, overlaps_of

CREATED = "2026-01-01T00:00:00Z"
LIMITS = ClusterSettings(face_limit=0.3, body_limit=0.5)
"""Settings for vectors of colours, chosen on the film itself: scores show how constraints help, no more."""


@dataclass(frozen=True, slots=True)
class FilmScores:
    """How right the people of a film are."""

    people: int  # how many were told apart
    tracklets: int  # how many there were
    identity: IdentityScores  # every frame of every person counted, over the whole film
    tracks: IdentityScores  # the same of tracklets within their shots, before they became people
    switches: int  # how often the tracklet of somebody changes within a shot
    # adjusted Rand index of the tracklets by person and by whom they show; None without scikit-learn
    rand: float | None


def film_shots(film: DrawnFilm, file: Path) -> list[Shot]:
    """Return the shots of a film as the builder's stages have them."""
    video = Video(
        video_id="film", file=str(file), sha256="0" * 64, frames=film.frames, seconds=film.frames / FPS,
        fps=float(FPS), width=WIDTH, height=HEIGHT,
    )  # fmt: skip
    return [
        Shot(
            shot_id=f"film__shot{shot.number:04d}", video=video, number=shot.number, first=shot.first,
            last=shot.last, start=shot.first / FPS, end=(shot.last + 1) / FPS,
            opens="start" if shot.number == 1 else "cut",
        )
        for shot in film.shots
    ]  # fmt: skip


def made(outcome: object) -> Mapping[str, Json]:
    """Return the fields of an outcome that must be a made one."""
    if not isinstance(outcome, Made):
        raise AssertionError(f"not made: {outcome}")
    return outcome.fields


def tracked(
    shots: Sequence[Shot],
    detecting: DetectPeopleSettings,
    embedding: EmbedSettings | None = None,
) -> list[dict[str, Any]]:
    """Return the fields of every shot after detection, tracking and embedding, as the stages make them."""
    fields: list[dict[str, Any]] = [{"shot": shot.as_json()} for shot in shots]
    names = [shot.shot_id for shot in shots]
    tools = _tools(detecting)
    for known, outcome in zip(fields, detect_people(_items(names, fields), tools), strict=True):
        known.update(made(outcome))
    for name, known in zip(names, fields, strict=True):
        known.update(made(track_people(Item(name, known), _tools(TrackSettings()))))
    tools = _tools(embedding or EmbedSettings(face=None, body=None))
    for known, outcome in zip(fields, embed_tracklets(_items(names, fields), tools), strict=True):
        known.update(made(outcome))
    return fields


def clustered(fields: Sequence[Mapping[str, Json]], settings: ClusterSettings) -> Mapping[str, Json]:
    """Return what clustering makes of shots with embedded tracklets."""
    shots = [{"shot": field["shot"], "quality": None, "tracklets": field["embedded"]} for field in fields]
    item = Item("film", {"video": fields[0]["shot"]["video"], "shots": shots})
    return made(cluster_people(item, _tools(settings)))


def film_scores(film: DrawnFilm, fields: Sequence[Mapping[str, Json]], people: Sequence[Json]) -> FilmScores:
    """Return how right tracklets and people are, in the frames that were looked at."""
    looked = [frame for field in fields for frame in field["detection"]["looked"]]
    truth = [
        (frame, one.character, one.box)
        for frame in looked
        for one in film.standing(frame)
        if one.visible >= 0.3
    ]
    tracklets = [Tracklet.model_validate(one) for known in fields for one in known["embedded"]]
    owner = {
        name: person.person_id for person in map(Person.model_validate, people) for name in person.tracklets
    }
    scores = [
        (seen.frame, owner[tracklet.tracklet_id], seen.box)
        for tracklet in tracklets
        for seen in tracklet.seen
    ]
    by_shot = [(frame, (film.shot_of(frame).number, name), box) for frame, name, box in truth]
    tracks = [
        (seen.frame, tracklet.tracklet_id, seen.box) for tracklet in tracklets for seen in tracklet.seen
    ]
    shown = shows(truth, tracks)
    return FilmScores(
        people=len(people),
        tracklets=len(tracklets),
        identity=identity_scores(truth, scores),
        tracks=identity_scores(by_shot, tracks),
        switches=identity_switches(by_shot, tracks),
        rand=_rand([shown.get(one, one) for one in owner], list(owner.values())),
    )


def shows(truth: Sequence[Named], tracks: Sequence[Named]) -> dict[str, str]:
    """Return tracklet -> the character that it shows in most frames; those that show nobody are left out."""
    counts: dict[str, Counter[str]] = {}
    for name, tracklet in overlaps_of(truth, tracks):
        counts.setdefault(str(tracklet), Counter())[str(name)] += 1
    return {name: min(some, key=lambda one: (-some[one], one)) for name, some in counts.items()}


def _rand(true: Sequence[str], found: Sequence[str]) -> float | None:
    try:
        from sklearn.metrics import adjusted_rand_score  # type: ignore[import-untyped]
    except ImportError:
        return None
    return float(adjusted_rand_score(true, found))


def _items(names: Sequence[str], fields: Sequence[Mapping[str, Json]]) -> list[Item]:
    return [Item(name, known) for name, known in zip(names, fields, strict=True)]


def _tools(settings: Own) -> Tools:
    return Tools(settings=settings, created_at=CREATED)
