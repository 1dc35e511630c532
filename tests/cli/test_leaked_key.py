"""A service that repeats the key: no file of the run and of its release holds it, in whatever form."""

import json
import sqlite3
import zlib
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pyarrow.parquet as pq
import pytest

import fabula
from fabula.testing.katha_model import KathaModel, prompt_of
from fabula.testing.model_server import Answer, Asked, ModelServer

STORIES = Path(fabula.__file__).parent / "builders" / "katha" / "samples" / "stories.jsonl"
KEY = "planted/key+0123?456789~abcdef"
FORMS = (
    KEY,
    KEY.replace("/", "\\/"),
    "".join(f"\\u{ord(char):04X}" for char in KEY),
    json.dumps(json.dumps({"key": KEY}).replace("/", "\\/"))[1:-1],
    quote(KEY, safe=""),
)


class Echoing(KathaModel):
    """Repeats the key in what the first scene shows, each time in another form."""

    turns = 0

    def __call__(self, asked: Asked) -> Any:
        value = super().__call__(asked)
        if prompt_of(asked) not in ("katha/draft_scenes",):
            return value
        value["scenes"][0]["visual_evidence"] = "A sign says PLACE."
        form = FORMS[Echoing.turns % len(FORMS)]
        Echoing.turns += 1
        return Answer(json.dumps(value).replace("PLACE", form))


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with ModelServer(Echoing()) as server:
        yield server


def _journal_texts(path: Path) -> Iterator[bytes]:
    with closing(sqlite3.connect(path)) as connection:
        tables = [name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type='table'")]
        for table in tables:
            for row in connection.execute(f'SELECT * FROM "{table}"'):
                for cell in row:
                    if isinstance(cell, bytes):
                        yield cell
                        yield zlib.decompress(cell) if cell[:1] == b"x" else b""
                    yield str(cell).encode()


def _contents(folder: Path) -> Iterator[tuple[Path, bytes]]:
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            yield path, path.read_bytes()
        if path.suffix == ".sqlite":
            yield from ((path, text) for text in _journal_texts(path))
        if path.suffix == ".parquet":
            yield path, json.dumps(pq.read_table(path).to_pylist(), default=str).encode()


def _unescaped(content: bytes) -> Iterator[bytes]:
    yield content
    for _ in range(3):
        content = content.replace(b"\\/", b"/").replace(b"\\\\", b"\\")
        yield content


def _assert_free(folder: Path) -> None:
    wanted = (*FORMS, KEY[:12])
    for path, content in _contents(folder):
        for text in _unescaped(content):
            assert not [form for form in wanted if form.encode() in text], path


def test_build_when_the_service_repeats_the_key_keeps_it_nowhere_and_says_so(
    fabula_command, server: ModelServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    spec = f"{server.openai_url}#local"
    settings = f'[models."{spec}"]\napi_key_env = "ECHOED_KEY"\n'
    (tmp_path / "fabula.toml").write_text(settings)
    sources, run, release = tmp_path / "stories.jsonl", tmp_path / "run", tmp_path / "release"
    sources.write_bytes(b"".join(STORIES.read_bytes().splitlines(keepends=True)[:3]))
    build = ("build", "katha", sources, "--workers", 0, "--model", spec, "--out", run)
    pack = ("release", "pack", run, "--version", "0.1.0", "--license", "CC-BY-4.0", "--out", release)
    pack += ("--allow-drafts", "--allow-stand-in")
    done = fabula_command(*build, env={"ECHOED_KEY": KEY})
    assert done.returncode == 0, done.stderr
    assert KEY in server.log[0].asked.secrets, "it was sent"
    assert KEY not in done.stdout + done.stderr
    _assert_free(run)
    findings = json.loads(fabula_command("validate", run, "--json").stdout)["issues"]
    marked = [(one["where"].split()[-1], one["path"]) for one in findings if one["code"] == "secret-removed"]
    assert {path for _, path in marked} == {"$.scenes[0].visual_evidence"}
    refused = fabula_command(*pack)
    assert refused.returncode == 1 and "secret-removed" in refused.stderr and not release.exists()

    for story, path in marked:
        correction = ("--new", '"A sign hangs there."', "--who", "ana", "--why", "a key stood there")
        assert fabula_command("edit", run, story, path, *correction).returncode == 0
    assert fabula_command(*build, env={"ECHOED_KEY": KEY}).returncode == 0
    packed = fabula_command(*pack)
    assert packed.returncode == 0, packed.stderr
    for folder in (run, release):
        _assert_free(folder)
