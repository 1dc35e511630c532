"""Files of detections: read in both forms, and strictly."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from fabula.builders.entities.detections import FORMAT, open_detections
from fabula.builders.entities.names import Video
from fabula.errors import InputError, UserError

VIDEO = Video(
    video_id="film", file="/films/film.mp4", sha256="0" * 64, frames=100, seconds=4, fps=25,
    width=640, height=360,
)  # fmt: skip


def row(**more: Any) -> dict[str, Any]:
    base = {"video": "film.mp4", "frame": 3, "box": [10, 20, 60, 200], "score": 0.9}
    return {**base, **more}


def lines(path: Path, *rows: Any) -> Path:
    texts = [one if isinstance(one, str) else json.dumps(one) for one in rows]
    path.write_text("\n".join(texts) + "\n", "utf-8")
    return path


def problems(path: Path) -> list[UserError]:
    with pytest.raises(InputError) as raised:
        open_detections(path)
    return list(raised.value.problems)


def test_file_when_read_gives_rows_of_a_stretch_by_frame_then_score(tmp_path: Path) -> None:
    rows = [
        row(frame=9, score=0.3), row(frame=9, score=0.8, box=[1, 1, 9, 9]), row(frame=2),
        row(frame=5, face=[20, 30, 40, 60], face_score=0.7, face_embedding=[3, 4], body_embedding=[0, 0, 2]),
        row(video="other", frame=5),
    ]  # fmt: skip
    found = open_detections(lines(tmp_path / "d.jsonl", *rows))
    assert [(one.frame, one.score) for one in found.rows(VIDEO, 3, 9)] == [(5, 0.9), (9, 0.8), (9, 0.3)]
    (one,) = found.rows(VIDEO, 5, 5)
    face, body = one.vector("face"), one.vector("body")
    assert face is not None
    assert body is not None
    assert np.allclose(face, [0.6, 0.8])
    assert body.tolist() == [0, 0, 1]
    assert found.frames(VIDEO) == (2, 5, 9)
    assert found.names == {"film.mp4", "other"}
    assert found.looked_at(VIDEO)


def test_file_when_it_has_a_header_says_who_made_it_and_which_videos_are_empty(tmp_path: Path) -> None:
    header = {"format": FORMAT, "version": 1, "detector": "ours", "videos": ["film", "empty"]}
    found = open_detections(lines(tmp_path / "d.jsonl", header, row()))
    assert found.header.detector == "ours"
    assert found.names == {"film", "empty", "film.mp4"}
    assert len(found.rows(VIDEO, 0, 99)) == 1
    alone = open_detections(lines(tmp_path / "e.jsonl", header))
    assert alone.rows(VIDEO, 0, 99) == []
    assert alone.frames(VIDEO) == ()


def test_parquet_when_read_gives_what_json_lines_give(tmp_path: Path) -> None:
    rows = [
        row(frame=at, box=[at, 1.0, at + 9, 50.0], face_embedding=[1.0, at] if at % 2 else None)
        for at in range(50)
    ]
    table = pa.Table.from_pylist(rows).replace_schema_metadata({FORMAT: json.dumps({"detector": "theirs"})})
    parquet.write_table(table, tmp_path / "d.parquet", row_group_size=7)
    one, other = open_detections(lines(tmp_path / "d.jsonl", *rows)), open_detections(tmp_path / "d.parquet")
    assert other.rows(VIDEO, 10, 30) == one.rows(VIDEO, 10, 30)
    assert len(other.rows(VIDEO, 10, 30)) == 21
    assert other.header.detector == "theirs"


@pytest.mark.parametrize(
    ("wrong", "where", "said"),
    [
        ('{"video": "film", ', ":2", "this is no JSON: "),
        ("[1, 2]", ":2", "an object is wanted here"),
        (row(frame=-1), ":2: frame", "at least 0 is wanted here, found -1"),
        (row(frame=2.5), ":2: frame", "a whole number is wanted here, found 2.5"),
        (row(frame="2"), ":2: frame", "a whole number is wanted here, found '2'"),
        (row(box=[1, 2, 3]), ":2: box.3", "it is missing"),
        (row(box=[60, 20, 10, 200]), ":2: box", "left < right"),
        (row(box=[1, 2, 3, float("nan")]), ":2: box.3", "neither infinite nor NaN"),
        (row(score=1.5), ":2: score", "at most 1 is wanted here, found 1.5"),
        (row(video=""), ":2: video", "at least 1 character"),
        (row(colour="red"), ":2: colour", "there is no such field"),
        ({"video": "film", "frame": 1, "box": [0, 0, 9, 9]}, ":2: score", "it is missing"),
        (row(face=[5, 5, 5, 9]), ":2: face", "left < right"),
        (row(face_score=0.5), ":2: face_score", "a face with it"),
        (row(body_embedding=[0.1, float("nan"), 0.2]), ":2: body_embedding.1", "neither infinite nor NaN"),
        (row(body_embedding=[0.0, 0.0, 0.0]), ":2: body_embedding", "a vector with a direction"),
        (row(body_embedding=[1e200, 1e200, 0.0]), ":2: body_embedding", "a vector with a direction"),
        (row(body_embedding=[1, 2]), ":2: body_embedding", "3 numbers, as in the rows before"),
        (row(body_embedding=[]), ":2: body_embedding", "at least 1 item"),
        (row(body_embedding=[1, 0, 0]), ":2", "each box of a frame once"),
    ],
)
def test_file_when_a_row_is_wrong_says_which_and_why(tmp_path, wrong, where, said):
    path = lines(tmp_path / "d.jsonl", row(body_embedding=[1, 0, 0]), wrong)
    (problem,) = problems(path)
    assert problem.where == f"{path}{where}"
    assert said in problem.what
    assert "docs/identities.md" in problem.fix
    assert "should" not in problem.what


@pytest.mark.parametrize(
    "boxes",
    [
        [[0.31, 0.22, 0.55, 0.93]],
        [[0, 0, 1, 1], [0.25, 0.5, 0.5, 1.0]],
        [[-0.02, 0.4, 0.3, 1.03], [0.8, 0.1, 1.01, 0.9]],
    ],
)
def test_file_when_no_box_exceeds_one_pixel_is_refused(tmp_path: Path, boxes: list[list[float]]) -> None:
    shares = [row(frame=at, box=box) for at, box in enumerate(boxes)]
    (problem,) = problems(lines(tmp_path / "d.jsonl", *shares))
    assert (problem.where, problem.expected) == (
        f"{tmp_path / 'd.jsonl'}: box",
        "pixels of the upright frame",
    )
    assert "shares of the frame" in problem.found
    open_detections(lines(tmp_path / "e.jsonl", *shares, row()))


def test_file_when_it_is_none_says_so(tmp_path: Path) -> None:
    empty, text, cut = tmp_path / "e.jsonl", tmp_path / "d.csv", tmp_path / "cut.parquet"
    empty.write_bytes(b"")
    text.write_text("video,frame\n")
    parquet.write_table(pa.Table.from_pylist([row()]), cut)
    cut.write_bytes(cut.read_bytes()[:-20])
    assert problems(empty)[0].found == "none"
    assert problems(text)[0].found == "a name that ends with .csv"
    assert problems(tmp_path / "missing.jsonl")[0].found == "no file"
    assert "no Parquet file" in problems(cut)[0].found
    parquet.write_table(pa.Table.from_pylist([row(frame=at) for at in range(500)]), cut)
    data = cut.read_bytes()
    cut.write_bytes(data[:4] + bytes(len(data) // 2) + data[4 + len(data) // 2 :])
    assert "no Parquet file that can be read" in problems(cut)[0].found
    (tmp_path / "latin.jsonl").write_bytes('{"video": "fä"}'.encode("latin-1"))
    assert problems(tmp_path / "latin.jsonl")[0].what.startswith("this is no JSON")
    (tmp_path / "long.jsonl").write_bytes(b"[" * 1_100_000)
    assert "more than 1,000,000 bytes" in problems(tmp_path / "long.jsonl")[0].found
    header = {"format": FORMAT, "version": 9}
    assert "first line" in problems(lines(tmp_path / "h.jsonl", header, row()))[0].found


def test_parquet_when_a_column_is_missing_says_which(tmp_path: Path) -> None:
    parquet.write_table(pa.Table.from_pylist([{"video": "film", "frame": 1}]), tmp_path / "d.parquet")
    assert problems(tmp_path / "d.parquet")[0].found == "no column box"
    table = pa.Table.from_pylist([row()]).replace_schema_metadata({FORMAT: '{"version": 9}'})
    parquet.write_table(table, tmp_path / "e.parquet")
    assert problems(tmp_path / "e.parquet")[0].found.startswith(f"metadata {FORMAT} that is wrong: ")


def test_file_when_it_does_not_fit_the_video_says_where(tmp_path: Path) -> None:
    rows = [
        row(frame=99), row(frame=100), row(frame=1, box=[640, 0, 700, 90]), row(frame=2, box=[-50, 0, 0, 90]),
        row(frame=4, box=[600, -5, 700, 90]),
    ]  # fmt: skip
    found = open_detections(lines(tmp_path / "d.jsonl", *rows)).problems(VIDEO)
    assert [(problem.expected, problem.found) for problem in found] == [
        ("frames 0 to 99, as film has", "frame 100"),
        ("boxes that touch its 640 x 360 pixels", "[640.0, 0.0, 700.0, 90.0]"),
        ("boxes that touch its 640 x 360 pixels", "[-50.0, 0.0, 0.0, 90.0]"),
    ]


def test_file_when_two_videos_have_a_name_gives_the_second_its_rows_by_id_alone(tmp_path: Path) -> None:
    second = VIDEO.model_copy(update={"video_id": "film-0a1b2c3d", "file": "/other/film.mp4"})
    rows = [row(frame=1), row(frame=2, video="film"), row(frame=3, video="film-0a1b2c3d")]
    found = open_detections(lines(tmp_path / "d.jsonl", *rows))
    assert found.frames(VIDEO) == (1, 2)
    assert found.frames(second) == (3,)
