"""Weights in their folder: fetched over loopback, resumed, pinned, brought from elsewhere."""

import hashlib
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from fabula.errors import MissingRequirement
from fabula.models.vision import download, weights
from fabula.models.vision.facenet_export import write_onnx
from fabula.models.vision.fetching import bring
from fabula.models.vision.stored import Source, pinned, stored, weights_folder
from fabula.models.vision.weights import fetch_file, load_pretrained, revision_of

torch = pytest.importorskip("torch", reason="the extra metrics is not installed")

pytestmark = pytest.mark.slow

COMMIT = "1" * 40
FILES = {"config.json": b"{}", "model.safetensors": b"tensors" * 1000, "vocab.txt": b"words"}
MODEL = Source("some/model", COMMIT, also=("vocab.txt", "merges.txt"))


@dataclass
class Publisher:
    """A Hub, and a place of files elsewhere, on the loopback interface."""

    files: dict[str, bytes] = field(default_factory=lambda: dict(FILES))
    asked: list[tuple[str, str, str]] = field(default_factory=list)
    stops_after: int | None = None
    url: str = ""


class Handler(BaseHTTPRequestHandler):
    publisher: Publisher

    def do_HEAD(self) -> None:
        self.answer(body=False)

    def do_GET(self) -> None:
        self.answer(body=True)

    def answer(self, *, body: bool) -> None:
        publisher = self.publisher
        publisher.asked.append((self.command, self.path, self.headers.get("Range", "")))
        name = self.path.rpartition("/")[2]
        content = publisher.files.get(name)
        if content is None:
            self.send_response(200 if self.path == "/" else 404)
            self.send_header("Content-Length", "0")
            if self.path != "/":
                self.send_header("X-Error-Code", "EntryNotFound")
            self.end_headers()
            return
        start = (
            int(self.headers["Range"].removeprefix("bytes=").rstrip("-")) if "Range" in self.headers else 0
        )
        self.send_response(206 if start else 200)
        self.send_header("X-Repo-Commit", COMMIT)
        self.send_header("ETag", f'"{hashlib.sha256(content).hexdigest()}"')
        self.send_header("Content-Length", str(len(content) - start))
        if start:
            self.send_header("Content-Range", f"bytes {start}-{len(content) - 1}/{len(content)}")
        self.end_headers()
        if body:
            self.wfile.write(content[start : publisher.stops_after])
            if publisher.stops_after is not None:
                publisher.stops_after = None
                self.close_connection = True

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture
def publisher(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Publisher]:
    from huggingface_hub import constants

    made = Publisher()
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Bound", (Handler,), {"publisher": made}))
    made.url = f"http://127.0.0.1:{server.server_port}"
    threading.Thread(target=server.serve_forever, daemon=True).start()
    template = constants.HUGGINGFACE_CO_URL_TEMPLATE.replace(constants.ENDPOINT, made.url)
    monkeypatch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", template)
    monkeypatch.setattr(constants, "ENDPOINT", made.url)
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    weights._asked.clear()
    download._lost.clear()
    yield made
    server.shutdown()
    server.server_close()
    weights._asked.clear()
    download._lost.clear()


class Kind:
    """A class of transformers that notes where it is loaded from."""

    asked: tuple[str, dict[str, Any]]

    @classmethod
    def from_pretrained(cls, place: str, **how: Any) -> str:
        cls.asked = (place, how)
        return "loaded"


def test_bring_when_the_hub_has_the_model_pins_its_files_and_loads_from_there(
    publisher: Publisher, capfd: pytest.CaptureFixture[str]
) -> None:
    bring(MODEL)
    folder = weights_folder() / "some--model"
    assert stored(MODEL) == folder
    assert {name: (folder / name).read_bytes() for name in FILES} == FILES
    entries = pinned(MODEL)
    assert set(entries) == set(FILES) and all(entry.checked for entry in entries.values())
    assert entries["config.json"].sha256 == hashlib.sha256(b"{}").hexdigest()
    assert revision_of(MODEL, None) == COMMIT
    before = len(publisher.asked)
    assert load_pretrained(Kind, MODEL) == "loaded" and Kind.asked == (
        str(folder),
        {"local_files_only": True},
    )
    bring(MODEL)
    assert [path for _, path, _ in publisher.asked[before:] if "merges" not in path] == []
    assert capfd.readouterr() == ("", "")


def test_bring_when_a_download_broke_off_goes_on_where_it_was(publisher: Publisher) -> None:
    publisher.files["head.pth"] = content = bytes(range(256)) * 500
    source = Source(
        "example.org/heads", file="head.pth", address=f"{publisher.url}/head.pth", on_request=True
    )
    publisher.stops_after = 70_000
    with pytest.raises(ConnectionError, match="broke off"):
        bring(source)
    with pytest.raises(MissingRequirement, match="nobody fetched them yet"):
        fetch_file(source)
    bring(source)
    assert fetch_file(source).read_bytes() == content
    assert publisher.asked[-1] == ("GET", "/head.pth", "bytes=70000-")
    assert not pinned(source)["head.pth"].checked


def test_file_when_it_changes_after_it_was_pinned_is_refused(publisher: Publisher) -> None:
    publisher.files["head.pth"] = b"first"
    source = Source("example.org/heads", file="head.pth", address=f"{publisher.url}/head.pth")
    bring(source)
    path = fetch_file(source)
    path.write_bytes(b"other")
    with pytest.raises(MissingRequirement, match="another SHA-256"):
        fetch_file(source)


def test_bring_when_the_content_is_not_the_recorded_one_keeps_nothing(publisher: Publisher) -> None:
    publisher.files["head-00000000.pth"] = b"other"
    source = Source("example.org/x", file="head-00000000.pth", address=f"{publisher.url}/head-00000000.pth")
    for wrong in (source, replace(source, sha256="1" * 64)):
        with pytest.raises(ValueError, match=r"has SHA-256 .* instead of (0000|1111)"):
            bring(wrong)
        assert stored(wrong) is None and not pinned(wrong)


def test_bring_when_files_come_from_a_folder_goes_by_what_the_client_noted(tmp_path: Path) -> None:
    place = tmp_path / "brought" / "some--model"
    notes = place / ".cache" / "huggingface" / "download"
    notes.mkdir(parents=True)
    for name, content in FILES.items():
        (place / name).write_bytes(content)
    bring(MODEL, tmp_path / "brought")
    assert [entry.checked for entry in pinned(MODEL).values()] == [False] * 3
    unsure = revision_of(MODEL, None)
    assert unsure != COMMIT and len(unsure) == 64

    for name, content in FILES.items():
        (notes / f"{name}.metadata").write_text(f"{COMMIT}\n{hashlib.sha256(content).hexdigest()}\n0\n")
        (weights_folder() / "some--model" / name).unlink()
    bring(MODEL, tmp_path / "brought")
    assert revision_of(MODEL, None) == COMMIT
    with pytest.raises(FileNotFoundError, match=r"no some--other/config\.json"):
        bring(replace(MODEL, repo="some/other"), tmp_path / "brought")


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of the exporter, which has the plainer graph
def test_onnx_when_a_network_takes_any_size_gives_the_same_vectors(tmp_path: Path) -> None:
    pytest.importorskip("onnxruntime", reason="the extra metrics is not installed")
    layers = (torch.nn.Conv2d(3, 4, 3), torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten())
    write_onnx(torch.nn.Sequential(*layers), tmp_path / "made.onnx", (20, 12))
    assert (tmp_path / "made.onnx").is_file()
