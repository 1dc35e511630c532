"""The stages from detections to people, called directly, on drawn films and on a photograph."""

import io
import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fabula.builders.entities.building import check_people
from fabula.builders.entities.identities import ClusterSettings, EmbedSettings, embed_tracklets, unpacked
from fabula.builders.entities.names import Person, Seen, Shot, Tracklet, Video
from fabula.builders.entities.tracking import (
    DetectPeopleSettings,
    TrackSettings,
    detect_people,
    track_people,
    tracks_of,
)
from fabula.engine.config import RunConfig, resolve_config
from fabula.engine.stage import Failed, Item, Made, Outcome
from fabula.errors import ConfigError, InputError, MissingRequirement
from fabula.schemas.canonical import Json, sha256_file
from fabula.testing.drawn_episode import write_detections
from fabula.testing.drawn_shots import boxes_in, draw_shot
from fabula.testing.known_film import (
    LIMITS,
    KnownFilm,
    clustered,
    film_scores,
    identity_scores,
    made,
    tools,
    tracked,
)
from fabula.testing.stage_pipelines import PEOPLE
from fabula.testing.table_detector import ColourEncoder

FILM = KnownFilm(32)
COLOURS = "fabula.testing.table_detector:load_colour_encoder"
TABLE = "fabula.testing.table_detector:load_table_detector"


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_detections(tmp_path_factory.mktemp("film") / "film.jsonl", FILM.detections())


@pytest.fixture(scope="module")
def fields(file: Path) -> list[dict[str, Any]]:
    return tracked(FILM.builder_shots(Path("/films/film.mp4")), DetectPeopleSettings(detections=str(file)))


def detect(shots: list[Shot], **settings: Any) -> list[Outcome]:
    items = [Item(shot.shot_id, {"shot": shot.as_json()}) for shot in shots]
    return list(detect_people(items, tools(DetectPeopleSettings(**settings))))


def write_video(path: Path, pictures: list[Any]) -> Path:
    """Write pictures as a video without loss."""
    av = pytest.importorskip("av")
    with av.open(str(path), "w") as container:
        stream = container.add_stream("ffv1", rate=8)
        stream.width, stream.height, stream.pix_fmt = *pictures[0].size, "bgr0"
        stream.codec_context.time_base = Fraction(1, 8)
        for number, picture in enumerate(pictures):
            frame = av.VideoFrame.from_image(picture)
            frame.pts = number
            container.mux(stream.encode(frame))
        container.mux(stream.encode())
    return path


def shots_of(path: Path, frames: int, size: tuple[int, int], *spans: tuple[int, int]) -> list[Shot]:
    video = Video(
        video_id="clip", file=str(path), sha256="0" * 64, frames=frames, seconds=frames / 8, fps=8,
        width=size[0], height=size[1],
    )  # fmt: skip
    return [
        Shot(
            shot_id=f"clip__shot{number:04d}", video=video, number=number, first=first, last=last,
            start=first / 8, end=(last + 1) / 8,
        )
        for number, (first, last) in enumerate(spans, start=1)
    ]  # fmt: skip


def drawn_clip(folder: Path, casts: list[tuple[str, ...]]) -> tuple[Path, tuple[int, int]]:
    from PIL import Image

    pictures = [Image.open(io.BytesIO(draw_shot(keys))).convert("RGB") for keys in casts]
    even = (pictures[0].width // 2 * 2, pictures[0].height // 2 * 2)
    return write_video(folder / "clip.mkv", [one.crop((0, 0, *even)) for one in pictures]), even


def test_detect_when_detectors_look_finds_everybody_in_every_second_frame(tmp_path: Path) -> None:
    casts = [("Mira", "The Fox")] * 5 + [("Mira",)] * 4
    path, size = drawn_clip(tmp_path, casts)
    shots = shots_of(path, 9, size, (0, 4), (5, 8))
    both = detect(shots, people=TABLE, faces=None, every=2, batch=2)
    first, second = (made(one) for one in both)
    assert first["detection"]["looked"] == [0, 2, 4]
    assert [(one["frame"], one["score"]) for one in first["seen"]] == [
        (0, 0.9), (0, 0.7), (2, 0.9), (2, 0.7), (4, 0.9), (4, 0.7)
    ]  # fmt: skip
    left, top, right, bottom = boxes_in(("Mira", "The Fox"))[0]
    assert np.allclose(first["seen"][0]["box"], (left, top, right, min(bottom, size[1])), atol=2)
    assert second["detection"] == {
        "people": 2, "faces": 0, "looked": [5, 7], "faces_alone": 0,
        "by": {"people": "table-detector@1/float32/cpu", "faces": None},
    }  # fmt: skip
    assert first["given"] is None
    alone = [detect([shot], people=TABLE, faces=None, every=2)[0] for shot in shots]
    assert alone == both


def test_detect_when_the_video_cannot_be_read_fails_its_shots_alone(tmp_path: Path) -> None:
    path, size = drawn_clip(tmp_path, [("Mira",)] * 4)
    good = shots_of(path, 4, size, (0, 3))
    bad = [replace_file(one, tmp_path / "gone.mkv") for one in shots_of(path, 4, size, (0, 1), (2, 3))]
    late = shots_of(path, 9, size, (0, 3), (4, 8))
    found = detect([*bad, *good], people=TABLE, faces=None)
    assert [type(one) for one in found] == [Failed, Failed, Made]
    assert isinstance(found[0], Failed)
    assert found[0].code == "missing"
    found = detect(late, people=TABLE, faces=None)
    assert [type(one) for one in found] == [Made, Failed]
    assert found[1].code == "too_few_frames"  # type: ignore[union-attr]


def replace_file(shot: Shot, path: Path) -> Shot:
    video = shot.video.model_copy(update={"file": str(path)})
    return shot.model_copy(update={"video": video, "shot_id": f"gone__shot{shot.number:04d}"})


@pytest.mark.slow
def test_detect_when_real_detectors_look_gives_the_same_alone_and_together(needs_installed, tmp_path):
    needs_installed("torch", "ultralytics", "onnxruntime", "onnx")
    import torch

    from fabula.testing.tiny_vision import draw_faces, tiny_settings

    torch.set_num_threads(1)
    pictures = [draw_faces([(5, 4, 250), (12, 9, 200)], (320, 320))] * 4
    path = write_video(tmp_path / "faces.mkv", pictures)
    options = {name: tiny_settings(name, tmp_path / name) for name in ("people-yolo11n", "faces-scrfd-10g")}
    options = {name: {key: _plain(value) for key, value in some.items()} for name, some in options.items()}
    shots = shots_of(path, 4, (320, 320), (0, 1), (2, 3))
    found = [made(one) for one in detect(shots, options=options, every=1, least=0.0)]
    assert [one["detection"]["looked"] for one in found] == [[0, 1], [2, 3]]
    assert found[0]["detection"]["by"]["faces"].startswith("faces-scrfd-10g@")
    # Equal pictures: whoever is found in one is found in all, and each face is somebody's or nobody's.
    counts = [one["detection"]["faces"] + one["detection"]["faces_alone"] for one in found]
    assert counts == [4, 4]
    boxes = [
        [one["box"] for one in some["seen"] if one["frame"] == frame]
        for some, frame in zip(found, (0, 2), strict=True)
    ]
    assert boxes[0] == boxes[1]


@pytest.mark.slow
def test_detect_when_other_classes_or_phrases_are_named_finds_these(needs_installed, tmp_path):
    needs_installed("torch", "ultralytics", "transformers")
    from fabula.models.vision.detectors import _boxes
    from fabula.models.vision.registry import open_vision
    from fabula.models.vision.weights import Place
    from fabula.testing.tiny_vision import draw_faces, tiny_settings

    path = write_video(tmp_path / "faces.mkv", [draw_faces([(5, 4, 250)], (320, 320))] * 2)
    named = {
        "people-yolo11n": ({"classes": ["person", "thing 5"]}, "/person,thing 5"),
        "grounding-dino-swin-t": ({"prompt": "person. character"}, "/person. character./"),
    }
    for name, (chosen, identity) in named.items():
        small = tiny_settings(name, tmp_path / name) | chosen
        options = {name: {key: _plain(value) for key, value in small.items()}}
        shots = shots_of(path, 2, (320, 320), (0, 1))
        (found,) = detect(shots, people=name, faces="none", options=options, every=1, least=0.0)
        assert identity in made(found)["detection"]["by"]["people"]
        assert made(found)["seen"]
    (dog,) = _boxes([[1.0, 2.0, 30.0, 40.0, 0.5, 16.0]], (320, 320), {0: "person", 16: "dog"})
    assert (dog.label, dog.score) == ("dog", 0.5)
    with pytest.raises(ConfigError, match=r"no class unicorn.*\n.*person, thing 1"):
        open_vision("people-yolo11n", Place(), {**options_of(tmp_path), "classes": ["person", "unicorn"]})


def options_of(folder: Path) -> dict[str, Any]:
    return {"local": folder / "people-yolo11n/people.pt", "size": 160, "threshold": 1e-5}


def _plain(value: Any) -> Any:
    return str(value) if isinstance(value, Path) else value


def test_detect_when_a_file_says_takes_its_rows_and_vectors(file: Path) -> None:
    shot = FILM.builder_shots(Path("/films/film.mp4"))[1]
    (found,) = detect([shot], detections=str(file), detections_sha256=sha256_file(file))
    one = made(found)
    rows = [json.loads(line) for line in file.read_text().splitlines()[1:]]
    inside = [row for row in rows if shot.first <= row["frame"] <= shot.last and row["score"] >= 0.1]
    assert one["detection"]["people"] == len(inside) == len(one["seen"]) == len(one["given"]["body"])
    assert [seen["row"] for seen in one["seen"]] == list(range(len(inside)))
    assert one["detection"]["looked"] == list(range(shot.first, shot.last + 1, 2))
    assert one["detection"]["by"]["face_encoder"] == "drawn-colours"
    assert sum(vector is not None for vector in one["given"]["face"]) == sum(
        row["face"] is not None for row in inside
    )


def test_detect_when_boxes_stick_out_clips_and_counts_them(tmp_path: Path) -> None:
    shot = FILM.builder_shots(Path("/films/film.mp4"))[0]
    rows = [
        {"video": "film", "frame": 0, "box": [-10, 5, 60, 200], "score": 0.9, "face": [-30, 5, -12, 9]},
        {"video": "film", "frame": 4, "box": [10, 5, 60, 100], "score": 0.9},
        {"video": "film", "frame": 4, "box": [90, 5, 99, 100], "score": 0.05},
    ]
    (found,) = detect([shot], detections=str(write_detections(tmp_path / "d.jsonl", rows)))
    one = made(found)
    assert [seen["box"] for seen in one["seen"]] == [[0, 5, 60, 180], [10, 5, 60, 100]]
    assert one["seen"][0]["face"] is None
    assert (one["detection"]["clipped"], one["detection"]["faces_outside"]) == (1, 1)
    assert one["given"] is None
    assert one["detection"]["looked"] == list(range(0, 48, 4))


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ({"video": "film", "frame": FILM.frames, "box": [0, 0, 9, 9], "score": 1}, f"frame {FILM.frames}"),
        ({"video": "film", "frame": 1, "box": [320, 0, 330, 9], "score": 1}, "320.0, 0.0"),
        ({"video": "another", "frame": 1, "box": [0, 0, 9, 9], "score": 1}, "only those of another"),
        ({"video": "film", "frame": 1, "box": [0, 0, 9, 9]}, "score"),
    ],
)
def test_detect_when_the_file_does_not_fit_fails_and_says_why(tmp_path: Path, row: Json, said: str) -> None:
    shot = FILM.builder_shots(Path("/films/film.mp4"))[0]
    (found,) = detect([shot], detections=str(write_detections(tmp_path / "d.jsonl", [row])))
    assert isinstance(found, Failed)
    assert found.code == "bad_detections"
    assert said in found.reason


def test_track_when_shots_are_tracked_never_crosses_them_and_numbers_by_appearance(fields):
    for one in fields:
        tracklets = [Tracklet.model_validate(tracklet) for tracklet in one["tracklets"]]
        shot = Shot.model_validate(one["shot"] | {"video": one["shot"]["video"]})
        assert tracklets
        assert all(shot.first <= t.span[0] <= t.span[1] <= shot.last for t in tracklets)
        names = [f"{shot.shot_id}__t{number:03d}" for number in range(1, len(tracklets) + 1)]
        assert [t.tracklet_id for t in tracklets] == names
        starts = [(t.seen[0].frame, t.seen[0].box) for t in tracklets]
        assert starts == sorted(starts)
        assert one["tracking"]["in_tracklets"] == sum(len(t.seen) for t in tracklets)


def test_track_when_short_ones_are_unwanted_leaves_them_out_and_counts_them(fields):
    known = fields[0]
    all_of_them = len(known["tracklets"])
    found = made(track_people(Item("s", known), tools(TrackSettings(least=20))))
    assert len(found["tracklets"]) + found["tracking"]["too_short"] == all_of_them


def test_embed_when_vectors_were_given_averages_those_of_the_best_views(fields: list[dict[str, Any]]) -> None:
    known = fields[2]
    (found,) = embed_tracklets([Item("s", known)], tools(EmbedSettings(views=3)))
    one = Tracklet.model_validate(made(found)["embedded"][0])
    best = [one.seen[place] for place in one.best]
    assert len(best) == 3
    rows = [unpacked(known["given"]["body"][seen.row]) for seen in best]  # type: ignore[index]
    mean = np.mean(np.array(rows, dtype=np.float64), axis=0)
    assert one.body is not None
    assert np.allclose(unpacked(one.body), mean / np.linalg.norm(mean), atol=1e-6)
    assert abs(np.linalg.norm(unpacked(one.body)) - 1) < 1e-6


@pytest.mark.slow
def test_embed_when_views_are_decoded_encodes_each_crop_once(tmp_path: Path) -> None:
    path, size = drawn_clip(tmp_path, [("Mira", "The Fox")] * 4 + [("The Fox", "Mira")] * 4)
    shots = shots_of(path, 8, size, (0, 3), (4, 7))
    rows = [
        {"video": "clip", "frame": frame, "box": box, "score": 0.9, "face": [*box[:3], box[1] + 40]}
        for frame in range(8)
        for box in map(list, boxes_in(("Mira", "The Fox") if frame < 4 else ("The Fox", "Mira")))
    ]
    settings = EmbedSettings(face=COLOURS, body=COLOURS, views=2, candidates=4)
    detecting = DetectPeopleSettings(detections=str(write_detections(tmp_path / "d.jsonl", rows)))
    fields = tracked(shots, detecting, settings)
    tracklets = [Tracklet.model_validate(one) for known in fields for one in known["embedded"]]
    assert tracklets
    assert all(one.body is not None and 1 <= len(one.best) <= 2 for one in tracklets)
    assert any(one.face is not None for one in tracklets)
    assert fields[0]["embedding"]["by"]["body"] == ColourEncoder().identity
    again = [embed_tracklets([Item("s", known)], tools(settings))[0] for known in fields]
    assert [made(one)["embedded"] for one in again] == [known["embedded"] for known in fields]


@pytest.mark.slow
def test_people_when_clustered_are_told_apart_better_with_constraints(fields: list[dict[str, Any]]) -> None:
    pytest.importorskip("sklearn")
    from sklearn.metrics import adjusted_rand_score

    kept, free = (
        film_scores(
            FILM, fields, clustered(fields, LIMITS.model_copy(update={"constraints": wanted}))["people"]
        )
        for wanted in (True, False)
    )
    assert kept.tracks.f1 > 0.9
    assert kept.identity.f1 > 0.9 > free.identity.f1 > 0.8
    assert adjusted_rand_score(kept.shown, kept.people) > adjusted_rand_score(free.shown, free.people)


def test_people_when_clustered_are_never_seen_twice_at_once(fields: list[dict[str, Any]]) -> None:
    made_of = clustered(fields, ClusterSettings(threshold=5))
    tracklets = {
        one["tracklet_id"]: Tracklet.model_validate(one) for known in fields for one in known["embedded"]
    }
    for person in map(Person.model_validate, made_of["people"]):
        own = [tracklets[name] for name in person.tracklets]
        for at, one in enumerate(own):
            for other in own[at + 1 :]:
                apart = one.span[1] < other.span[0] or other.span[1] < one.span[0]
                assert one.shot != other.shot or apart
    assert made_of["clustering"]["apart"] > 0
    people = [Person.model_validate(one) for one in made_of["people"]]
    assert [one.person_id for one in people] == [f"p{n:03d}" for n in range(1, len(people) + 1)]
    assert sum(len(one.tracklets) for one in people) == len(tracklets)
    assert sum(len(one.merges) for one in people) == len(tracklets) - len(people)


def test_people_when_tracklets_have_no_vectors_stay_alone_and_are_counted(fields):
    blind = [
        {**one, "embedded": [{**t, "face": None, "body": None} for t in one["embedded"]]}
        for one in fields[:2]
    ]
    found = clustered([*blind, *fields[2:4]], LIMITS)
    names = {t["tracklet_id"] for one in blind for t in one["embedded"]}
    assert set(found["clustering"]["without_vectors"]) == names
    alone = {person["tracklets"][0] for person in found["people"] if len(person["tracklets"]) == 1}
    assert names <= alone
    nobody = clustered([{**fields[0], "embedded": []}], LIMITS)
    assert nobody["people"] == []


@pytest.mark.slow
def test_track_when_boxes_of_low_score_count_follows_people_through_occlusion_longer(fields):
    found: dict[bool, list[Any]] = {True: [], False: []}
    for known in fields:
        seen = [Seen.model_validate(one) for one in known["seen"]]
        for low in found:
            # Where low is as high as high, no box is of low score: plain matching by overlap.
            settings = TrackSettings(low=0.1 if low else 0.6, high=0.6)
            tracks = tracks_of(seen, known["detection"]["looked"], 12, settings)
            shot = known["shot"]["number"]
            found[low] += [
                (one.frame, (shot, at), one.box) for at, track in enumerate(tracks) for one in track
            ]
    truth = FILM.by_shot(FILM.truth([frame for one in fields for frame in one["detection"]["looked"]]))
    with_low, without = (identity_scores(truth, found[low]) for low in (True, False))
    assert with_low.recall > without.recall
    assert with_low.f1 > 0.9
    covered = [one for one in FILM.shots if one.pillar is not None]
    assert covered
    assert any(0 < s.visible < 0.3 for f in range(FILM.frames) for s in FILM.standing(f))


# -- What finding people needs is looked up before any work, and listed at once

ROW = {"video": "film", "frame": 1, "box": [0, 0, 9, 9], "score": 1.0}


def config(*sets: str) -> RunConfig:
    return resolve_config(PEOPLE, None, list(sets))


@pytest.mark.slow
def test_needs_when_neither_weights_nor_file_are_there_lists_all_of_them(needs_installed: Any) -> None:
    needs_installed("torch", "ultralytics", "onnxruntime", "transformers")
    with pytest.raises(MissingRequirement) as raised:
        check_people(config())
    found = raised.value.found
    names = ("people-yolo11n", "faces-scrfd-10g", "arcface-r100", "dinov2-l-14")
    assert "weights yolo11n.pt of " in found and "(it is not in the cache, " in found
    assert all(f", for {name}" in found for name in names)
    assert f"fabula models fetch vision --model {' --model '.join(names)}, " in raised.value.fix
    assert "--detections" in raised.value.fix


@pytest.mark.slow
def test_needs_when_named_files_are_not_there_names_them(needs_installed: Any, tmp_path: Path) -> None:
    needs_installed("torch", "ultralytics")
    gone = tmp_path / "gone.pt"
    options = f'detect_people.options={{"people-yolo11n" = {{ local = "{gone}" }}}}'
    with pytest.raises(MissingRequirement, match=r"no .*gone\.pt"):
        check_people(config(options))


def test_needs_when_a_file_has_vectors_are_nothing_else(tmp_path: Path) -> None:
    path = write_detections(tmp_path / "d.jsonl", [{**ROW, "body_embedding": [1, 0]}])
    check_people(config(f"detect_people.detections='{path}'"))
    check_people(config(f"detect_people.detections='{path}'"), frozenset({"film"}))
    with pytest.raises(InputError, match="rows of 'film'"):
        check_people(config(f"detect_people.detections='{path}'"), frozenset({"flim"}))


def test_needs_when_a_file_has_no_vectors_are_the_encoders(tmp_path: Path) -> None:
    path = write_detections(tmp_path / "d.jsonl", [ROW])
    with pytest.raises(MissingRequirement) as raised:
        check_people(config(f"detect_people.detections='{path}'"))
    assert "people-yolo11n" not in raised.value.found
