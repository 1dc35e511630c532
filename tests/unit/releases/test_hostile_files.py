"""Releases whose files are pipes, devices, links, bombs or far too deep: a clean answer, in little memory."""

import functools
import itertools
import json
import operator
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fabula.errors import FabulaError
from fabula.kinds.verbs import diff, verify
from fabula.schemas.canonical import Json, pretty_bytes
from fabula.schemas.paths import ANNOTATIONS, RELEASE, STATISTICS, SUMS
from fabula.schemas.plain_files import DEEPEST, open_plain, parse_json, read_plain
from fabula.testing.endurance import rounds
from fabula.tests.unit.releases.test_hostile_texts import KINDS, packed

pytestmark = pytest.mark.slow

MEMORY = 3 << 30
"""Bytes of data that a process may have here: without it, a device or a bomb takes more."""


@pytest.fixture(scope="module", params=KINDS)
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def made(kind: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp(kind)
    return packed(KINDS[kind](folder, "a title"), folder / "dist", "A title").folder


@pytest.fixture
def folder(made: Path, tmp_path: Path) -> Path:
    """A copy of the release, its files links to the same bytes, that a test may damage."""
    for path in sorted(made.rglob("*")):
        target = tmp_path / "dist" / path.relative_to(made)
        target.parent.mkdir(parents=True, exist_ok=True)
        if path.is_file():
            os.link(path, target)
    return tmp_path / "dist"


def main_file(folder: Path) -> Path:
    return next(path for path in sorted(folder.glob("*.jsonl")) if path.name in RECORDS)


RECORDS = (ANNOTATIONS, "prompts.jsonl", "episodes.jsonl", "scripts.jsonl")


def put(path: Path, how: str, outside: Path) -> None:
    path.unlink()
    if how == "pipe":
        os.mkfifo(path)
    elif how == "folder":
        path.mkdir()
    else:
        path.symlink_to({"zero": Path("/dev/zero"), "pipe behind a link": outside}.get(how, outside))


def in_little_memory(work: str, folder: Path) -> subprocess.CompletedProcess[str]:
    code = (
        "import resource, sys; from pathlib import Path; import fabula;"
        "from fabula.kinds.verbs import verify;"
        "from fabula.releases.verify.read_back import refused_tables;"
        f"resource.setrlimit(resource.RLIMIT_DATA, ({MEMORY}, {MEMORY}));"
        "from fabula.errors import FabulaError\n"
        "folder = Path(sys.argv[1])\n"
        f"try:\n    {work}\nexcept FabulaError as error:\n    print('refused', error)\n"
    )
    command = [sys.executable, "-P", "-c", code, str(folder)]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)


@pytest.mark.parametrize("how", ["pipe", "folder", "zero", "link out of it"])
def test_release_when_a_file_is_no_plain_file_is_refused_at_once(folder, tmp_path, how):
    outside = tmp_path / "outside"
    for path in (folder / RELEASE, main_file(folder), folder / STATISTICS, folder / SUMS):
        content = read_plain(path)
        outside.write_bytes(content)
        put(path, how, outside)
        assert not verify(folder, quick=True).ok
        if path.name in (RELEASE, main_file_name(folder)):
            with pytest.raises(FabulaError):
                load_any(folder)
        with pytest.raises(FabulaError):
            diff(folder, folder)
            if path.name in (SUMS, STATISTICS):  # a diff can do without
                raise FabulaError
        if path.is_dir() and not path.is_symlink():
            path.rmdir()
        else:
            path.unlink()
        path.write_bytes(content)


def main_file_name(folder: Path) -> str:
    return next(name for name in RECORDS if os.path.lexists(folder / name))


def load_any(folder: Path) -> Any:
    import fabula

    return fabula.load(folder)


@pytest.mark.endurance
def test_release_when_files_have_no_end_takes_little_memory(folder: Path) -> None:
    files = (folder / RELEASE, main_file(folder), next(folder.glob("data/*/*.parquet")))
    for path in files[: rounds(len(files))]:
        content = read_plain(path)
        path.unlink()
        path.symlink_to("/dev/zero")
        for work in ("print(verify(folder, quick=True).ok)", "fabula.load(folder); print('loaded')"):
            done = in_little_memory(work, folder)
            assert done.returncode == 0, done.stderr
            loads = path.suffix == ".parquet" and "load" in work
            assert done.stdout.startswith("loaded" if loads else ("False", "refused")), done.stdout
        path.unlink()
        with path.open("wb") as file:
            file.truncate(8 << 30)
        done = in_little_memory("fabula.load(folder); print('loaded')", folder)
        assert done.returncode == 0 and done.stdout.startswith(("refused", "loaded")), done.stderr
        path.unlink()
        path.write_bytes(content)


def bombs(folder: Path) -> Iterator[Path]:
    """Yield tables of a few kilobytes that decode to gigabytes: by compression, and by repetition."""
    zeros = pa.table({"story_id": ["\0" * (1 << 27)] * 2, "split": ["test"] * 2})
    yield written(zeros, folder / "compressed.parquet", use_dictionary=False)
    text = pa.DictionaryArray.from_arrays(pa.array([0] * 6000, pa.int32()), pa.array(["x" * (1 << 20)]))
    yield written(pa.table({"split": text}), folder / "repeated.parquet")
    zeros = pa.array(np.zeros(40_000_000, np.int64))
    many = pa.ListArray.from_arrays(pa.array([0, len(zeros)], pa.int32()), zeros)
    yield written(pa.table({"split": many}), folder / "one row.parquet")


def written(table: Any, path: Path, **more: Any) -> Path:
    pq.write_table(table, path, compression="zstd", compression_level=19, **more)
    assert path.stat().st_size < 60_000
    return path


@pytest.fixture(scope="module")
def made_bombs(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    return list(bombs(tmp_path_factory.mktemp("bombs")))


def test_tables_when_they_are_bombs_are_refused_in_little_memory(folder, made_bombs):
    table = next(folder.glob("data/*/*.parquet"))
    for bomb in made_bombs:
        table.unlink()
        os.link(bomb, table)
        work = "print(verify(folder, quick=True).ok, len(list(refused_tables(folder))))"
        done = in_little_memory(work, folder)
        assert (done.returncode, done.stdout) == (0, "False 1\n"), done.stderr


@pytest.mark.parametrize("how", [b"[", b'{"a":'])
def test_json_when_it_is_deep_is_an_error_whatever_the_depth(folder: Path, how: bytes) -> None:
    close = {b"[": b"]", b'{"a":': b"}"}[how]
    for depth in (DEEPEST + 1, 900, 5_000, 200_000):
        deep = how * depth + b"1" + close * depth
        with pytest.raises(ValueError, match="deeper than"):
            parse_json(deep)
        for path in (folder / RELEASE, main_file(folder)):
            content = read_plain(path)
            path.unlink()
            path.write_bytes(b'{"format":1,"kind":' + deep + b"}" if path.name == RELEASE else deep + b"\n")
            assert not verify(folder, quick=True).ok
            with pytest.raises(FabulaError):
                load_any(folder)
            path.write_bytes(content)
    assert parse_json(how * DEEPEST + b"1" + close * DEEPEST)


def values_in(value: Json, at: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the places of the values of a document, of long lists the first."""
    parts = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, part in itertools.islice(parts, 40):
        yield (*at, key)
        yield from values_in(part, (*at, key))


@st.composite
def damaged(draw: Any, content: bytes, name: str) -> bytes:
    """Draw another content of a file: of bytes, of lines, or of a value of JSON."""
    place = draw(st.integers(0, len(content) - 1))
    ways = [
        content[:place] + bytes([content[place] ^ draw(st.integers(1, 255))]) + content[place + 1 :],
        content[:place], content + b"\n", b"", b"null", b"[]", b"\xff\xfe",
        b'{"records": 3, "files": [], "kind": "katha", "version": 1}',
        content[:place] + draw(st.binary(min_size=1, max_size=9)) + content[place:],
    ]  # fmt: skip
    lines = content.splitlines(keepends=True)
    if name.endswith(".jsonl"):
        line = draw(st.integers(0, len(lines) - 1))
        ways += [b"".join(lines[:line] + lines[line + 1 :]), b"".join(lines[: line + 1] + lines[line:])]
        ways.append(b"".join(reversed(lines)))
    if name.endswith((".json", ".jsonl")) and draw(st.booleans()):
        document = json.loads(lines[0] if name.endswith(".jsonl") else content)
        *outer, key = draw(st.sampled_from(list(values_in(document))))
        part = functools.reduce(operator.getitem, outer, document)
        other = draw(
            st.sampled_from((None, True, 0, -1, 1.5, 10**30, "", "x", [], {}, [None], {"x": {}}, "gone"))
        )
        if other == "gone":
            del part[key]
        else:
            part[key] = other
        return pretty_bytes(document)
    return draw(st.sampled_from(ways))


@pytest.mark.endurance
def test_release_when_anything_in_it_is_damaged_is_found_and_nothing_ends_in_a_traceback(folder, tmp_path):
    names = [path.relative_to(folder).as_posix() for path in sorted(folder.rglob("*")) if path.is_file()]
    works = (load_any, lambda folder: diff(folder, folder))

    @settings(
        max_examples=rounds(400), derandomize=True, database=None, deadline=None,
        suppress_health_check=[HealthCheck.too_slow],
    )  # fmt: skip
    @given(st.data(), st.sampled_from([*names, *[RELEASE] * (len(names) // 2)]), st.integers(0, 9))
    def check(data: st.DataObject, name: str, way: int) -> None:
        path = folder / name
        content = path.read_bytes()
        other = data.draw(damaged(content, name)) if way else content
        path.unlink()
        if way == 0:  # the same bytes, elsewhere
            (tmp_path / "elsewhere").write_bytes(content)
            path.symlink_to(tmp_path / "elsewhere")
        elif way > 1:  # else it is gone
            path.write_bytes(other)
        try:
            report = verify(folder, quick=True)
            assert report.ok == (way > 1 and other == content)
            if way < 2 and name != RELEASE:
                codes = {issue.code for issue in report.issues if issue.where == name}
                assert ("file-missing", "file-not-plain")[way == 0] in codes
            for work in works:
                with suppress(FabulaError):
                    work(folder)
        finally:
            path.unlink(missing_ok=True)
            path.write_bytes(content)

    check()
    assert verify(folder, quick=True).ok


def test_file_when_it_is_opened_is_what_is_checked(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "file").write_bytes(b"12345")
    (tmp_path / "link").symlink_to("file")
    for name in ("pipe", "link", "", "/dev/null", "/dev/zero"):
        with pytest.raises(OSError, match=r"a link|a folder|a pipe or a device"):
            open_plain(tmp_path / name)
    with open_plain(tmp_path / "link", follow=True) as file:
        assert file.read() == b"12345"
    with pytest.raises(OSError, match="larger than 4 bytes"):
        read_plain(tmp_path / "file", 4)


def test_line_when_it_has_no_end_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fabula.schemas.plain_files.LONGEST_LINE", 10)
    (tmp_path / "file").write_bytes(b"123456789\n1234567890\n")
    with open_plain(tmp_path / "file") as file:
        assert next(file) == b"123456789\n"
        with pytest.raises(OSError, match="longer than 10 bytes"):
            next(file)


def test_table_when_a_byte_of_its_footer_is_changed_is_read_or_refused(tmp_path: Path) -> None:
    """Some changes make pyarrow's own metadata end the process: so it runs in one of its own."""
    pq.write_table(pa.table({"texts": [["x", "y"], [], None]}), tmp_path / "whole.parquet")
    code = (
        "import sys; from pathlib import Path\n"
        "from fabula.releases.parquet import batches, open_table\n"
        "whole, path = Path(sys.argv[1]), Path(sys.argv[1]).with_name('changed.parquet')\n"
        "content = whole.read_bytes()\n"
        "start = len(content) - 8 - int.from_bytes(content[-8:-4], 'little')\n"
        "for place in range(start, len(content)):\n"
        "    for change in (0x20, 0xa0):\n"
        "        path.write_bytes(content[:place] + bytes([content[place] ^ change]) + content[place + 1:])\n"
        "        try:\n"
        "            with open_table(path) as table:\n"
        "                [batch.to_pylist() for batch in batches(table, path.stat().st_size)]\n"
        "        except (ValueError, OSError):\n"
        "            continue\n"
    )
    command = [sys.executable, "-P", "-c", code, str(tmp_path / "whole.parquet")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stderr) == (0, "")
