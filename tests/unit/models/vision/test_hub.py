"""The Hub is looked for once and quickly; what is in the cache is taken whether it answers or not."""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from fabula.errors import MissingRequirement
from fabula.models.vision import weights
from fabula.models.vision.stored import Source
from fabula.models.vision.weights import fetch_file, fetch_pretrained, load_pretrained

COMMIT = "1" * 40


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


def test_hub_when_nobody_answers_is_asked_once_for_all_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sources = [Source("some/repo", COMMIT, f"{name}.onnx") for name in "abc"]
    # The client would sleep between its tries, which no test may.
    with door(monkeypatch, tmp_path) as asked:
        for source in sources:
            with pytest.raises(MissingRequirement, match=r"not in the cache.*cannot be reached"):
                fetch_file(source)
        with pytest.raises(MissingRequirement, match="cannot be reached"):
            fetch_pretrained(Source("some/model", COMMIT))
        assert asked.knocks == 1


def test_hub_when_the_answer_is_old_is_asked_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with door(monkeypatch, tmp_path) as asked:
        assert weights.unreachable() is not None
        place, (_, found) = next(iter(weights._asked.items()))
        weights._asked[place] = (weights.time.monotonic() - weights.BELIEVED, found)
        assert weights.unreachable() is not None
        assert asked.knocks == 2


def test_hub_when_it_answers_at_all_counts_as_reached(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    answer = b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
    with door(monkeypatch, tmp_path, answer):
        assert weights.unreachable() is None
        with pytest.raises(MissingRequirement, match="on the Hub"):
            fetch_file(Source("some/repo", COMMIT, "a.onnx"))


def test_hub_when_offline_is_not_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from huggingface_hub import constants

    with door(monkeypatch, tmp_path) as asked:
        monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
        with pytest.raises(MissingRequirement, match="HF_HUB_OFFLINE"):
            fetch_file(Source("some/repo", COMMIT, "a.onnx"))
        assert asked.knocks == 0


def test_hub_when_a_file_is_cached_is_asked_only_where_nothing_pins_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "models--some--repo"
    file = folder / "snapshots" / COMMIT / "a.onnx"
    file.parent.mkdir(parents=True)
    file.write_bytes(b"weights")
    (folder / "refs").mkdir()
    (folder / "refs" / "main").write_text(COMMIT)
    with door(monkeypatch, tmp_path) as asked:
        assert fetch_file(Source("some/repo", COMMIT, "a.onnx")).read_bytes() == b"weights"
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


def test_pretrained_when_the_hub_is_lost_is_looked_for_in_the_cache_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Kind.asked = []
    answer = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
    source = Source("some/model", COMMIT)
    with door(monkeypatch, tmp_path) as asked:
        with pytest.raises(MissingRequirement, match=r"not in the cache.*cannot be reached"):
            load_pretrained(Kind, source)
        assert asked.knocks == 1 and not Kind.asked
    snapshot = tmp_path / "models--some--model" / "snapshots" / COMMIT
    snapshot.mkdir(parents=True)
    for name in ("config.json", "model.safetensors"):
        (snapshot / name).write_bytes(b"{}")
    for said in (b"", answer):
        with door(monkeypatch, tmp_path, said):
            assert load_pretrained(Kind, source) == "loaded"
    lost, reached = Kind.asked
    assert lost == ("some/model", {"revision": COMMIT, "local_files_only": True})
    assert reached == ("some/model", {"revision": COMMIT})
