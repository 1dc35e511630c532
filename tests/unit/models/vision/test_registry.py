"""Models are found by name, their settings are checked against their own loaders."""

import hashlib
import json
import socket
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from fabula.errors import ConfigError, MissingRequirement
from fabula.models.vision import registry, weights
from fabula.models.vision.fetching import fetch, survey
from fabula.models.vision.needs import check_models
from fabula.models.vision.registry import check_vision, names, open_vision
from fabula.models.vision.store import Box, Detector, suppressed
from fabula.models.vision.weights import (
    Place,
    Source,
    fetch_file,
    fetch_pretrained,
    load_pretrained,
    revision_of,
    weights_folder,
)
from fabula.testing import table_detector
from fabula.testing.table_detector import TableDetector

TABLE = "fabula.testing.table_detector:load_table_detector"


def test_open_when_a_loader_is_named_by_its_place_gives_its_model() -> None:
    model = open_vision(TABLE, Place(), kind="detector")
    assert isinstance(model, TableDetector) and isinstance(model, Detector)


def test_open_when_a_library_prints_keeps_standard_output_clean(monkeypatch, capsys):
    def loader(place: Place) -> TableDetector:
        sys.stdout.write("Downloading\n")
        return TableDetector()

    monkeypatch.setattr(table_detector, "load_table_detector", loader)
    open_vision(TABLE, Place())
    told = capsys.readouterr()
    assert (told.out, told.err) == ("", "Downloading\n")


@pytest.mark.parametrize(
    "name", ["clip", "fabula.testing.table_detector:none", "no_such_module:load", ":x", ""]
)
def test_open_when_nobody_has_the_name_lists_those_there_are(name: str) -> None:
    with pytest.raises(ConfigError, match="clip-vit-l-14"):
        open_vision(name, Place())


def test_check_when_a_setting_is_wrong_names_it_and_those_there_are(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"lokal: .*the settings are: none"):
        check_vision(TABLE, {"lokal": tmp_path})


def test_plug_in_when_installed_adds_a_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "plug_in-1.0.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_text("Metadata-Version: 2.1\nName: plug-in\nVersion: 1.0\n")
    (folder / "entry_points.txt").write_text(f"[fabula.vision_models]\nmy-boxes = {TABLE}\n")
    monkeypatch.setattr(sys, "path", [*sys.path, str(tmp_path)])
    assert names()[-1] == "my-boxes"
    assert isinstance(open_vision("my-boxes", Place()), TableDetector)


# Files with weights: taken from the cache where they are pinned, checked by hash, named where missing.

COMMIT = "0" * 40


@pytest.fixture
def cached(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache of huggingface_hub with one file of one repository, and no network."""
    from huggingface_hub import constants

    folder = tmp_path / "hub" / "models--some--repo"
    file = folder / "snapshots" / COMMIT / "face.onnx"
    file.parent.mkdir(parents=True)
    file.write_bytes(b"weights")
    (folder / "refs").mkdir()
    (folder / "refs" / "main").write_text(COMMIT)
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    return file


def test_fetch_when_the_file_is_cached_and_pinned_takes_it(cached: Path) -> None:
    right = hashlib.sha256(b"weights").hexdigest()
    for source in (
        Source("some/repo", COMMIT, "face.onnx"),
        Source("some/repo", file="face.onnx", sha256=right),
    ):
        assert fetch_file(source).read_bytes() == b"weights"
        assert revision_of(source, None) in (COMMIT, right)


def test_fetch_when_the_content_is_another_says_so(cached: Path) -> None:
    source = Source("some/repo", file="face.onnx", sha256="1" * 64)
    with pytest.raises(MissingRequirement, match="another SHA-256 than 111111111111"):
        fetch_file(source)
    with pytest.raises(MissingRequirement, match="another SHA-256"):
        fetch_file(source, cached)


def test_fetch_when_nothing_is_there_names_file_and_place(cached: Path, tmp_path: Path) -> None:
    for source in (
        Source("some/repo", file="none.onnx", sha256="1" * 64),
        Source("some/other", COMMIT, "none.onnx"),
    ):
        with pytest.raises(MissingRequirement, match=r"fetch none\.onnx of some/"):
            fetch_file(source)
    with pytest.raises(MissingRequirement, match="no file"):
        fetch_file(Source("some/repo", file="x"), tmp_path / "x")


# Values that models gave for three pictures: recorded, and compared later.

NAME = "fabula.testing.table_detector:load_colour_encoder"


def found(*, record: bool = False) -> tuple[str, str]:
    """Status and words of the comparison."""
    checked = check_models([NAME], Place(), {}, known=True, record=record)
    return next((item.status, item.detail) for item in checked.findings if item.step == "known")


def test_known_when_values_are_recorded_compares_and_names_what_changed(monkeypatch):
    assert found()[0] == "warning" and "not recorded" in found()[1]
    assert found(record=True) == ("ok", "as recorded: they differ by at most 0.0e+00")
    file = weights_folder() / registry.FILE
    entry = json.loads(file.read_text())[NAME]
    assert set(entry["values"]) == {"picture 1", "picture 2", "picture 3"}

    moved = {**entry, "libraries": {"numpy": "1.0"}}
    moved["values"] = {
        **entry["values"],
        "picture 2": [value + 0.1 for value in entry["values"]["picture 2"]],
    }
    file.write_text(json.dumps({NAME: moved}))
    status, words = found()
    assert status == "failed" and "by up to" in words and "numpy 1.0, now" in words

    file.write_text(
        json.dumps({NAME: {**entry, "identity": "colours@other/float32/cpu", "weights": "other"}})
    )
    assert found()[0] == "failed" and "other weights than recorded: other, now" in found()[1]


OTHER = "0a" * 32
"""A hash of no published file."""


@pytest.mark.parametrize(
    ("name", "published", "other"),
    [
        ("clip-vit-l-14", "32bd64288804d66eefd0ccbe215aa642df71cc41", OTHER),  # a commit
        ("csd-vit-l", "40e92fad63a361b8136100cd234c42d401ef9b34ff1748234318929ebcc7e7a1", OTHER),
        ("aesthetic-v2.5", f"9fdffc58afc957d1a03a25b10dba0329ab15c2a3+{OTHER}", f"{OTHER}+{OTHER}"),
        ("musiq-spaq", "358bb6af" + OTHER[8:], OTHER),  # the first digits are in the file's name
        ("faces-scrfd-10g", "5838f7fe053675b1c7a08b633df49e7af5495cee0493c7dcf6697200b85b5b91", OTHER),
    ],
)
def test_weights_when_their_hash_is_not_the_published_one_are_named(name, published, other):
    def told(revision: str) -> list[str]:
        # as an archive has them: with the definition behind the name, and behind an encoder of faces
        faces = f"facenet-vggface2-paper@{OTHER}/float32/cpu/{name}@{revision}/float32/cpu"
        models = {"a": f"{name}-code@{revision}/float32/cpu", "b": {"facenet-vggface2": faces}}
        return registry.not_published(json.dumps(models))

    assert (told(published), told(other)) == ([], [name])
    assert registry.not_published('{"judge":"gpt-4.1@2025-04-14","x":null}') == []


@pytest.mark.slow
def test_check_when_weights_came_from_a_folder_says_that_they_are_ready_and_sound(tmp_path: Path) -> None:
    pytest.importorskip("transformers", reason="the extra metrics is not installed")
    from fabula.testing.tiny_vision import tiny_settings

    made = Path(tiny_settings("dinov2-base", tmp_path / "made")["local"])
    made.rename(tmp_path / "facebook--dinov2-base")
    brought = fetch(survey(["dinov2-base"]), tmp_path)
    assert not brought.lacking and survey(["dinov2-base"]).rows[0].state == "here"
    assert any("(pinned here, not recorded before)" in line for line in brought.lines())

    def steps() -> dict[str, tuple[str, str]]:
        checked = check_models(["dinov2-base"], Place(), {}, known=True, record=True)
        return {item.step: (item.status, item.detail) for item in checked.findings}

    sound = steps()
    assert sound["files"][0] == sound["load"][0] == "ok" and "2 files" in sound["files"][1]
    assert sound["known"][1].startswith("as recorded")
    file = weights_folder() / "facebook--dinov2-base" / "config.json"
    file.write_text(file.read_text() + "\n")
    status, detail = steps()["files"]
    assert status == "failed" and "another SHA-256 than when it was fetched" in detail


# The Hub is looked for once and quickly; what is in the cache is taken whether it answers or not.

HUB_COMMIT = "1" * 40


class Door:
    """A place on the loopback interface that counts who knocks, and says what it was told to say."""

    def __init__(self, answer: bytes) -> None:
        self.knocks, self._answer = 0, answer
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._socket.getsockname()[1]}"
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        while True:
            try:
                visitor, _ = self._socket.accept()
            except OSError:
                return
            with visitor:
                # The client asks for other things on its own account, too.
                self.knocks += visitor.recv(65536).startswith(b"HEAD / ")
                visitor.sendall(self._answer)

    def close(self) -> None:
        self._socket.close()


@contextmanager
def door(monkeypatch: pytest.MonkeyPatch, cache: Path, answer: bytes = b"") -> Iterator[Door]:
    """The Hub of this test; without an answer it hangs up, a fault that the client tries again."""
    from huggingface_hub import constants

    opened = Door(answer)
    template = constants.HUGGINGFACE_CO_URL_TEMPLATE.replace(constants.ENDPOINT, opened.url)
    monkeypatch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", template)
    monkeypatch.setattr(constants, "ENDPOINT", opened.url)
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(cache))
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    weights._asked.clear()
    try:
        yield opened
    finally:
        opened.close()
        weights._asked.clear()


def test_hub_when_nobody_answers_is_asked_once_for_all_files(tmp_path, monkeypatch):
    sources = [Source("some/repo", HUB_COMMIT, f"{name}.onnx") for name in "abc"]
    # The client would sleep between its tries, which no test may.
    with door(monkeypatch, tmp_path) as asked:
        for source in sources:
            with pytest.raises(MissingRequirement, match=r"not in the cache.*cannot be reached"):
                fetch_file(source)
        with pytest.raises(MissingRequirement, match="cannot be reached"):
            fetch_pretrained(Source("some/model", HUB_COMMIT))
        assert asked.knocks == 1


def test_hub_when_a_file_is_cached_is_asked_only_where_nothing_pins_it(tmp_path, monkeypatch):
    folder = tmp_path / "models--some--repo"
    file = folder / "snapshots" / HUB_COMMIT / "a.onnx"
    file.parent.mkdir(parents=True)
    file.write_bytes(b"weights")
    (folder / "refs").mkdir()
    (folder / "refs" / "main").write_text(HUB_COMMIT)
    with door(monkeypatch, tmp_path) as asked:
        assert fetch_file(Source("some/repo", HUB_COMMIT, "a.onnx")).read_bytes() == b"weights"
        assert asked.knocks == 0
        assert fetch_file(Source("some/repo", file="a.onnx")).read_bytes() == b"weights"
        assert asked.knocks == 1


class Kind:
    """A class of transformers that notes what it is asked for."""

    asked: list[tuple[str, dict[str, Any]]]

    @classmethod
    def from_pretrained(cls, place: str, **how: Any) -> str:
        cls.asked.append((place, how))
        return "loaded"


def test_pretrained_when_the_hub_is_lost_is_looked_for_in_the_cache_alone(tmp_path, monkeypatch):
    Kind.asked = []
    answer = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
    source = Source("some/model", HUB_COMMIT)
    with door(monkeypatch, tmp_path) as asked:
        with pytest.raises(MissingRequirement, match=r"not in the cache.*cannot be reached"):
            load_pretrained(Kind, source)
        assert asked.knocks == 1 and not Kind.asked
    snapshot = tmp_path / "models--some--model" / "snapshots" / HUB_COMMIT
    snapshot.mkdir(parents=True)
    for name in ("config.json", "model.safetensors"):
        (snapshot / name).write_bytes(b"{}")
    for said in (b"", answer):
        with door(monkeypatch, tmp_path, said):
            assert load_pretrained(Kind, source) == "loaded"
    lost, reached = Kind.asked
    assert lost == ("some/model", {"revision": HUB_COMMIT, "local_files_only": True})
    assert reached == ("some/model", {"revision": HUB_COMMIT})


# Boxes: overlaps, and what is suppressed.


@pytest.mark.parametrize(
    ("other", "overlap"),
    [
        ((1, 1, 3, 3), 1 / 7),  # 1 of 4 + 4 - 1
        ((0, 0, 2, 2), 1.0),
        ((0, 0, 1, 2), 0.5),
        ((2, 0, 4, 2), 0.0),  # side by side
        ((2.5, 0, 4, 2), 0.0),
        ((0, 2.5, 2, 4), 0.0),
        ((2.5, 2.5, 4, 4), 0.0),  # apart both ways
    ],
)
def test_overlap_of_boxes_when_worked_by_hand_is_intersection_over_union(other, overlap):
    one, two = Box(0, 0, 2, 2), Box(*other)
    assert one.overlap(two) == two.overlap(one) == pytest.approx(overlap)
    assert Box(1, 1, 1, 1).overlap(Box(1, 1, 1, 1)) == 0.0, "no area, and so no share"


def test_suppressed_keeps_the_best_of_overlapping_boxes_whatever_their_order():
    best, worse, other = Box(0, 0, 10, 10, 0.9), Box(1, 0, 11, 10, 0.8), Box(50, 0, 60, 10, 0.3)
    assert suppressed([other, worse, best], 0.5) == (best, other)
    assert suppressed([best, other, worse], 0.5) == (best, other)
    assert suppressed([best, worse], 0.95) == (best, worse)
