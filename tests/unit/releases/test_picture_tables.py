"""Tables that hold pictures: what is in them, how they are cut into groups, what is found if they change."""

import io
import json
import os
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image

from fabula.errors import ConfigError, InputError
from fabula.kinds.verbs import load, pack, verify
from fabula.media.images import LIMITS
from fabula.releases.entities.form import import_episodes
from fabula.releases.entities.requests import PICTURES
from fabula.releases.options import PackOptions
from fabula.releases.pack.packing import checksums, file_entries
from fabula.releases.parquet import (
    GROUP_BYTES,
    PICTURE_ROWS,
    VIEWER_BYTES,
    Table,
    TableWriter,
    first_page,
    measured,
    table,
)
from fabula.releases.shots.tree import FOLDER
from fabula.schemas.canonical import canonical_bytes, pretty_bytes, sha256_bytes
from fabula.schemas.paths import RELEASE, SUMS
from fabula.testing.drawn_shots import draw_shot_set
from fabula.testing.made_runs import CREATED, shots_run
from fabula.testing.written_episodes import write_episodes

LICENSED = PackOptions("0.1.0", license="CC-BY-4.0", languages=("en",))


TABLE = table(
    "drawings", "One row per picture.", "name",
    ("name", "text", "Its name."), ("tags", "texts", "Words."), ("image", "picture", "The picture."),
)  # fmt: skip


def rows_of(folder: Path, sizes: list[int]) -> list[tuple[str, Table, dict]]:
    """Files of random bytes of some sizes, and the rows that name them."""
    rows = []
    for number, size in enumerate(sizes):
        data = os.urandom(size)
        (folder / f"{number}.png").write_bytes(data)
        cell = {"path": f"{number}.png", "sha256": sha256_bytes(data)}
        rows.append(("test", TABLE, {"name": str(number), "tags": ["a"], "image": cell}))
    return rows


def write(folder: Path, rows: list[tuple[str, Table, dict]]) -> pq.FileMetaData:
    with TableWriter(folder) as writer:
        for split, table, row in rows:
            writer.add(table, split, row)
    assert (writer.counts, writer.bytes) == measured(folder, rows)
    return pq.read_metadata(folder / "data/drawings/test.parquet")


@pytest.fixture
def release(tmp_path: Path) -> Path:
    """A release of two stories with four reference images."""
    run = shots_run(draw_shot_set(tmp_path / "data"), tmp_path / "run", {"Mira": "CC0-1.0"})
    return pack(run, tmp_path / "dist", LICENSED).folder


@pytest.mark.slow
def test_row_groups_when_pictures_are_large_end_before_they_are_too_many_bytes(tmp_path: Path) -> None:
    third = GROUP_BYTES // 3
    made = write(tmp_path, rows_of(tmp_path, [third, third, third, 10, third, third + 100]))
    # Two thirds and a bit; the third one, whose name and path make it too much, begins the next group.
    assert [made.row_group(n).num_rows for n in range(made.num_row_groups)] == [2, 3, 1]
    small = tmp_path / "small"
    small.mkdir()
    made = write(small, rows_of(small, [20] * (PICTURE_ROWS + 5)))
    assert [made.row_group(n).num_rows for n in range(made.num_row_groups)] == [PICTURE_ROWS, 5]


@pytest.mark.slow
def test_widest_row_when_a_picture_is_the_largest_there_can_be_is_read_by_the_viewer(tmp_path: Path) -> None:
    made = write(tmp_path, rows_of(tmp_path, [10, LIMITS.max_bytes, 10]))
    groups = [made.row_group(n) for n in range(made.num_row_groups)]
    assert [group.num_rows for group in groups] == [1, 1, 1]
    assert LIMITS.max_bytes < max(group.total_byte_size for group in groups) < VIEWER_BYTES
    assert LIMITS.max_bytes < first_page(tmp_path / "data/drawings/test.parquet") < VIEWER_BYTES


def test_table_when_written_twice_is_the_same_bytes_and_says_what_its_columns_are(tmp_path: Path) -> None:
    rows = rows_of(tmp_path, [100, 200])
    path = tmp_path / "data/drawings/test.parquet"
    write(tmp_path, rows)
    first = path.read_bytes()
    write(tmp_path, rows)
    assert path.read_bytes() == first
    schema = pq.read_schema(path)
    features = json.loads(schema.metadata[b"huggingface"])["info"]["features"]
    assert list(features) == schema.names == ["name", "tags", "image"]
    assert features["image"] == {"_type": "Image"}
    assert schema.field("image").type == pa.struct([("bytes", pa.binary()), ("path", pa.string())])
    cells = pq.read_table(path)["image"].to_pylist()
    assert [cell["bytes"] for cell in cells] == [(tmp_path / f"{n}.png").read_bytes() for n in range(2)]


def test_references_when_they_may_be_given_away_stand_in_a_table_with_their_bytes(release: Path) -> None:
    rows = pq.read_table(release / "data/reference_images/test.parquet").to_pylist()
    assert [row["file"] for row in rows] == [
        f"{FOLDER}/0{story}/image/Mira/0{n}.png" for story in (1, 2) for n in (0, 1)
    ]
    assert all(row["image"]["bytes"] == (release / row["file"]).read_bytes() for row in rows)
    assert pq.read_schema(release / "data/references/test.parquet").metadata is None
    metadata = json.loads((release / "croissant_metadata.json").read_bytes())
    described = {one["name"]: one for one in metadata["recordSet"]}["reference_images"]
    image = next(field for field in described["field"] if field["name"] == "image")
    assert image["dataType"] == "sc:ImageObject"
    assert image["source"]["extract"] == {"column": "image"}
    assert image["source"]["transform"] == {"jsonPath": "bytes"}


def reseal(folder: Path) -> None:
    document = json.loads((folder / RELEASE).read_bytes())
    document["files"] = file_entries(folder)
    (folder / RELEASE).write_bytes(pretty_bytes(document))
    (folder / SUMS).write_bytes(checksums(folder))


def test_verifying_when_a_table_has_another_picture_says_which_row(release: Path) -> None:
    path = release / "data/reference_images/test.parquet"
    table = pq.read_table(path)
    cells = table["image"].to_pylist()
    cells[1]["bytes"] = cells[0]["bytes"]
    changed = table.set_column(
        3, table.schema.field("image"), pa.array(cells, table.schema.field("image").type)
    )
    pq.write_table(changed, path)
    reseal(release)
    messages = [issue.message for issue in verify(release, quick=True).issues]
    assert any("row 1" in message and "01/image/Mira/01.png" in message for message in messages), messages


def jpeg(colour: str, size: tuple[int, int] = (640, 360)) -> bytes:
    file = io.BytesIO()
    Image.new("RGB", size, colour).save(file, "JPEG")
    return file.getvalue()


@pytest.fixture
def filmed(tmp_path: Path) -> Path:
    """A set of two episodes with keyframes of two shots and a crop each, as a build leaves them."""
    run = import_episodes(write_episodes(tmp_path / "data"), tmp_path / "run", CREATED).out
    (run / "store").mkdir()
    lines = []
    for episode in ("ep_a", "ep_b"):
        for kind, shot, label in (("keyframe", 1, None), ("keyframe", 2, None), ("crop", 1, "Character 1")):
            data = jpeg(f"#{len(lines) * 20:02x}4060")
            name = f"store/{sha256_bytes(data)}.jpg"
            (run / name).write_bytes(data)
            lines.append({"episode_id": episode, "kind": kind, "shot": shot, "label": label, "number": 1,
                          "file": name})  # fmt: skip
    (run / PICTURES).write_bytes(b"".join(canonical_bytes(line) + b"\n" for line in lines))
    return run


def with_rights(folder: Path, **line: str) -> PackOptions:
    path = folder / "rights.jsonl"
    path.write_text(json.dumps({"video": "data", **line}) + "\n", "utf-8")
    return PackOptions("0.1.0", license="CC-BY-4.0", languages=("en",), video_rights=path)


def test_pictures_of_episodes_when_their_video_is_free_are_released_with_a_thumbnail(filmed, tmp_path):
    options = with_rights(tmp_path, rights="CC0-1.0", source="https://example.org/film")
    made = pack(filmed, tmp_path / "dist", options)
    assert not any("stay out" in note for note in made.notes)
    rows = pq.read_table(made.folder / "data/pictures/test.parquet").to_pylist()
    assert [(row["episode_id"], row["kind"], row["shot"], row["label"]) for row in rows] == [
        (episode, *what)
        for episode in ("ep_a", "ep_b")
        for what in (("crop", 1, "Character 1"), ("keyframe", 1, None), ("keyframe", 2, None))
    ]
    assert all(row["image"]["bytes"] == (made.folder / row["file"]).read_bytes() for row in rows)
    small = pq.read_table(made.folder / "data/thumbnails/test.parquet").to_pylist()
    assert [(row["episode_id"], row["video"]) for row in small] == [("ep_a", "data"), ("ep_b", "data")]
    assert all(max(Image.open(io.BytesIO(row["image"]["bytes"])).size) == 256 for row in small)
    report = verify(made.folder)
    assert report.ok, report.issues
    assert load(made.folder).version == "0.1.0"
    pack(filmed, tmp_path / "again", options)
    assert (tmp_path / "again/SHA256SUMS").read_bytes() == (made.folder / "SHA256SUMS").read_bytes()

    target = made.folder / "pictures/ep_a/keyframe-0001.jpg"
    target.write_bytes(jpeg("white"))
    reseal(made.folder)
    found = verify(made.folder, quick=True)
    assert any(issue.where == "pictures/ep_a/keyframe-0001.jpg" for issue in found.issues)


@pytest.mark.parametrize("rights", [None, "fair use"])
def test_pictures_of_episodes_when_their_video_is_not_free_stay_out(filmed, tmp_path, rights):
    options = LICENSED if rights is None else with_rights(tmp_path, rights=rights)
    made = pack(filmed, tmp_path / "dist", options)
    assert any(note.startswith("6 pictures of shots and people stay out") for note in made.notes)
    assert not (made.folder / PICTURES).exists() and not (made.folder / "pictures").exists()
    assert verify(made.folder, quick=True).ok


def test_rights_of_videos_when_they_are_wrong_say_what_to_do(filmed: Path, tmp_path: Path) -> None:
    options = with_rights(tmp_path, video="other.mp4", rights="CC0-1.0")
    with pytest.raises(ConfigError, match=r"no episode is from a video called 'other\.mp4'"):
        pack(filmed, tmp_path / "bad", options)
    (tmp_path / "rights.jsonl").write_text('{"video": "data"}\n{"video": 1, "rights": "MIT"}\n', "utf-8")
    with pytest.raises(InputError) as refused:
        pack(filmed, tmp_path / "bad", options)
    assert "rights.jsonl:1 $.rights" in str(refused.value) and "rights.jsonl:2 $.video" in str(refused.value)
    assert not (tmp_path / "bad").exists()


def test_pictures_of_episodes_when_the_store_lost_one_are_not_packed(filmed: Path, tmp_path: Path) -> None:
    next((filmed / "store").iterdir()).unlink()
    with pytest.raises(InputError, match="the file that its name says"):
        pack(filmed, tmp_path / "dist", with_rights(tmp_path, rights="CC0-1.0"))
    assert not (tmp_path / "dist").exists()
