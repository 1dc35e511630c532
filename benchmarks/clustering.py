"""Measure telling people apart: clustering under constraints as it grows, and identities of a known film.

    python benchmarks/clustering.py --sizes 500,1000,2000,5000 --seconds 180

Made tracklets have a face of 512 and a body of 1,024 numbers around one of a hundred people, three a shot at
the same time; ``whole`` is the stage's own work on them, distances among it. The peers: a look through the
whole matrix for every merge (cubic, small sizes only), and scikit-learn without constraints. Growth is the
exponent of seconds between a size and the one before. Memory is the peak of a process of its own.

The film's vectors are made up, and its limits were chosen on it: its table shows what constraints change, and
says nothing about real films.
"""

import argparse
import math
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from measure import measure

from fabula.builders.entities.identities import (
    ClusterSettings,
    Distances,
    Weighed,
    cluster,
    forbid,
    fused,
    overlapping,
    packed,
    people_of,
    unpacked,
)
from fabula.builders.entities.names import Seen, Tracklet
from fabula.builders.entities.tracking import DetectPeopleSettings
from fabula.testing.drawn_episode import write_detections
from fabula.testing.known_film import CAST, LIMITS, KnownFilm, clustered, film_scores, tracked

PEOPLE, TOGETHER = 100, 3
THRESHOLD = 0.5
PLAIN_AT_MOST = 1000


def made(count: int) -> list[Tracklet]:
    """Return that many tracklets."""
    random = np.random.default_rng(count)
    faces, bodies = random.normal(size=(PEOPLE, 512)), random.normal(size=(PEOPLE, 1024))
    found = []
    for number in range(count):
        shot, place = divmod(number, TOGETHER)
        who = int(random.integers(PEOPLE))
        vectors = [one[who] + random.normal(scale=0.8, size=one.shape[1]) for one in (faces, bodies)]
        face, body = (packed((one / np.linalg.norm(one)).astype(np.float32)) for one in vectors)
        seen = tuple(
            Seen(frame=100 * shot + at, box=(9.0 * place, 0, 9.0 * place + 8, 20), score=0.9) for at in (0, 5)
        )
        name = f"v__shot{shot:05d}__t{place + 1:03d}"
        found.append(Tracklet(tracklet_id=name, shot=shot, seen=seen, face=face, body=body))
    return found


def distances_of(count: int) -> tuple[Distances, list[tuple[int, int]]]:
    """Return distances without constraints, and the pairs to be kept apart."""
    tracklets = made(count)
    kinds = [
        Weighed([unpacked(one.face or "") for one in tracklets], 0.6, 0.7),
        Weighed([unpacked(one.body or "") for one in tracklets], 0.6, 0.3),
    ]
    return fused(kinds), list(overlapping([(one.shot, *one.span) for one in tracklets]))


def plain(distances: Distances, threshold: float) -> int:
    """Look through the whole matrix for every merge; return the number of groups."""
    table = distances.astype(np.float64)
    np.fill_diagonal(table, np.inf)
    sizes = np.ones(len(table))
    while len(table) > 1:
        one, other = sorted(divmod(int(table.argmin()), len(table)))
        if not table[one, other] <= threshold:
            break
        merged = (sizes[one] * table[one] + sizes[other] * table[other]) / (sizes[one] + sizes[other])
        merged[one] = np.inf
        table[one], table[:, one] = merged, merged
        sizes[one] += sizes[other]
        kept = np.arange(len(table)) != other
        table, sizes = table[np.ix_(kept, kept)], sizes[kept]
    return len(table)


def learned(distances: Distances, threshold: float) -> tuple[int, float]:
    """Cluster with scikit-learn; return the number of groups, and seconds without the import."""
    from sklearn.cluster import AgglomerativeClustering

    np.fill_diagonal(distances, 0)
    started = time.perf_counter()
    fitted = AgglomerativeClustering(
        n_clusters=None, metric="precomputed", linkage="average", distance_threshold=threshold
    ).fit(distances)
    return int(fitted.n_clusters_), time.perf_counter() - started


def one_run(what: str, count: int) -> None:
    """Print what a process of its own found: groups and seconds of clustering alone."""
    if what == "whole":
        tracklets, started = made(count), time.perf_counter()
        groups = len(
            people_of(tracklets, ClusterSettings(face_limit=0.6, body_limit=0.6, threshold=1)).people
        )
        print(groups, time.perf_counter() - started)
        return
    distances, pairs = distances_of(count)
    if what == "scikit-learn":
        print(*learned(distances, THRESHOLD / 0.6))
        return
    if what in ("ours", "plain"):
        forbid(distances, pairs)
    started = time.perf_counter()
    if what == "plain":
        groups = plain(distances, THRESHOLD / 0.6)
    else:
        groups = len(cluster(distances, THRESHOLD / 0.6).groups())
    print(groups, time.perf_counter() - started)


def scale(sizes: list[int]) -> None:
    """Print how clustering grows."""
    print("| what | tracklets | groups | seconds | growth | MiB |")
    print("|---|---|---|---|---|---|")
    kinds = ("ours", "ours without constraints", "scikit-learn", "plain", "whole")
    for what in kinds:
        last: tuple[int, float] | None = None
        for count in sizes if what != "plain" else [one for one in sizes if one <= PLAIN_AT_MOST]:
            run = measure(sys.executable, __file__, "--one", what, "--sizes", count)
            groups, seconds = run.output.split()
            took = float(seconds)
            growth = "" if last is None else f"{math.log(took / last[1]) / math.log(count / last[0]):.2f}"
            print(
                f"| {what} | {count} | {groups} | {took:.3f} | {growth} | {run.mebibytes:.0f} |", flush=True
            )
            last = count, took


def film(seconds: int) -> None:
    """Print how right the people of the known film are, with and without constraints."""
    from sklearn.metrics import adjusted_rand_score

    known = KnownFilm(seconds)
    with tempfile.TemporaryDirectory() as folder:
        path = write_detections(Path(folder) / "film.jsonl", known.detections())
        shots = known.builder_shots(Path(folder) / "film.mp4")
        fields = tracked(shots, DetectPeopleSettings(detections=str(path)))
    print("\n| constraints | tracklets | people | true | precision | recall | F1 | adjusted Rand |")
    print("|---|---|---|---|---|---|---|---|")
    for constraints in (True, False):
        settings = LIMITS.model_copy(update={"constraints": constraints})
        scores = film_scores(known, fields, clustered(fields, settings)["people"])
        one, rand = scores.identity, adjusted_rand_score(scores.shown, scores.people)
        numbers = " | ".join(f"{value:.3f}" for value in (one.precision, one.recall, one.f1, rand))
        counts = f"{len(scores.people)} | {len(set(scores.people))} | {len(CAST)}"
        print(f"| {'with' if constraints else 'without'} | {counts} | {numbers} |", flush=True)
    print(f"\ntracklets in their shots: IDF1 {scores.tracks.f1:.3f}")


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--sizes", default="500,1000,2000,5000", help="numbers of tracklets")
    options.add_argument("--seconds", type=int, default=180, help="length of the known film; 0 for none")
    options.add_argument("--one", help=argparse.SUPPRESS)
    given = options.parse_args()
    sizes = [int(one) for one in given.sizes.split(",")]
    if given.one:
        one_run(given.one, sizes[0])
        return
    scale(sizes)
    if given.seconds:
        film(given.seconds)


if __name__ == "__main__":
    main()
