"""Archives that anybody may have made: what is read of them is plain, bounded, and what the list says."""

import bz2
import errno
import gzip
import io
import lzma
import os
import pickle
import stat
import struct
import tarfile
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest

from fabula.errors import ExitCode, UserError
from fabula.media.images import MediaProblem, read_bytes
from fabula.media.video import probe
from fabula.schemas import plain_files
from fabula.schemas.packed_files import Limits, NotPacked, open_tar, open_zip
from fabula.schemas.plain_files import (
    DEEPEST,
    LONGEST_LINE,
    NotPlain,
    network_disk,
    open_plain,
    parse_json,
    parse_storable,
    read_plain,
    reason_of,
    unzipped,
)

LIMITS = Limits(files=20, bytes=4 << 20)
TEXT = b"Once upon a time a fox met a crow.\n"


def zipped(*entries: tuple[zipfile.ZipInfo | str, bytes], method: int = zipfile.ZIP_DEFLATED) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", method) as archive:
        for entry, data in entries:
            archive.writestr(entry, data, method)
    return out.getvalue()


def as_kind(name: str, kind: int) -> zipfile.ZipInfo:
    entry = zipfile.ZipInfo(name)
    entry.external_attr = (kind | 0o777) << 16
    return entry


def overlapping(count: int, data: bytes) -> bytes:
    """Return a zip file whose entries are all the same packed bytes, as a bomb of D. Fifield has them."""
    one = zipped(("kernel", data))
    start = one.rindex(b"PK\x01\x02")
    end = one.rindex(b"PK\x05\x06")
    listed = one[start:end] * count
    tail = struct.pack("<4s4H2LH", b"PK\x05\x06", 0, 0, count, count, len(listed), start, 0)
    return one[:start] + listed + tail


def changed(data: bytes, mark: bytes, offset: int, new: bytes) -> bytes:
    """Return an archive with other bytes so far behind the last mark."""
    at = data.rindex(mark) + offset
    return data[:at] + new + data[at + len(new) :]


ZIPS: dict[str, tuple[Callable[[], bytes], str]] = {
    "zeros": (lambda: zipped(("a", bytes(3 << 20))), "too_large"),
    "more than the limit": (lambda: zipped(("a", bytes(5 << 20)), method=zipfile.ZIP_STORED), "too_large"),
    "many files": (lambda: zipped(*((f"{n}", b"") for n in range(21))), "too_large"),
    "overlapping entries": (lambda: overlapping(15, bytes(1 << 20)), "too_large"),
    "a list as long as the file": (
        lambda: changed(zipped(("a", TEXT)), b"PK\x05\x06", 12, struct.pack("<L", 1 << 30)), "too_large"),
    "nothing": (lambda: b"", "damaged"),
    "text": (lambda: TEXT * 100, "damaged"),
    "cut": (lambda: zipped(("a", TEXT * 50))[:-40], "damaged"),
    "end alone": (lambda: b"PK\x05\x06" + bytes(3), "damaged"),
}  # fmt: skip


READ: dict[str, tuple[Callable[[], bytes], str]] = {
    "a link": (lambda: zipped((as_kind("a", stat.S_IFLNK), b"/etc/passwd")), "unsafe"),
    "a device": (lambda: zipped((as_kind("a", stat.S_IFCHR), b"")), "unsafe"),
    "a pipe": (lambda: zipped((as_kind("a", stat.S_IFIFO), b"")), "unsafe"),
    "encrypted": (lambda: changed(zipped(("a", TEXT)), b"PK\x01\x02", 8, b"\x01"), "encrypted"),
    "bzip2": (lambda: zipped(("a", TEXT), method=zipfile.ZIP_BZIP2), "damaged"),
    "lzma": (lambda: zipped(("a", TEXT), method=zipfile.ZIP_LZMA), "damaged"),
    "longer than its list says": (
        lambda: changed(zipped(("a", TEXT * 9)), b"PK\x01\x02", 24, struct.pack("<L", 35)), "damaged"),
    "another sum": (lambda: changed(zipped(("a", TEXT)), b"PK\x01\x02", 16, b"\0\0\0\0"), "damaged"),
    "another name inside": (lambda: zipped(("a", TEXT)).replace(b"\0aO", b"\0bO", 1).replace(
        b"PK\x03\x04", b"PK\x03\x05", 1), "damaged"),
}  # fmt: skip


@pytest.mark.parametrize("name", READ)
def test_read_when_a_file_is_not_plain_says_so(name: str) -> None:
    make, code = READ[name]
    with open_zip(io.BytesIO(make()), LIMITS) as archive, pytest.raises(NotPacked) as caught:
        archive.read("a")
    assert (caught.value.code, caught.value.where) == (code, "a")


def test_read_when_the_same_is_asked_for_again_and_again_has_an_end() -> None:
    with open_zip(io.BytesIO(zipped(("a", TEXT), ("b", bytes(900_000)))), LIMITS) as archive:
        assert archive.read("a") == TEXT
        with pytest.raises(NotPacked, match="more is read") as caught:
            for _ in range(5):
                archive.read("b")
    assert caught.value.code == "too_large"


@pytest.mark.parametrize("name", ["../a", "/a", "a\\b", "C:a", "a\nb", "x/../../a"])
def test_problems_when_a_name_leads_out_names_it(name: str) -> None:
    with open_zip(io.BytesIO(zipped(("fine", TEXT), (name, TEXT))), LIMITS) as archive:
        (problem,) = archive.problems()
    assert (problem.code, problem.where) == ("unsafe", name)


def test_problems_when_a_name_is_there_twice_names_it() -> None:
    with open_zip(io.BytesIO(zipped(("a", TEXT), ("A", TEXT))), LIMITS) as archive:
        assert [problem.where for problem in archive.problems()] == ["A"]


def tarred(*entries: tarfile.TarInfo, data: bytes = TEXT, pack: Callable[[bytes], bytes] = bytes) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for entry in entries:
            entry.size = len(data) if entry.isreg() else 0
            archive.addfile(entry, io.BytesIO(data))
    return pack(out.getvalue())


def entry(name: str, kind: bytes = tarfile.REGTYPE, **about: object) -> tarfile.TarInfo:
    made = tarfile.TarInfo(name)
    made.type = kind
    for key, value in about.items():
        setattr(made, key, value)
    return made


@pytest.mark.parametrize("pack", [bytes, gzip.compress, bz2.compress, lzma.compress])
def test_open_tar_when_packed_in_any_way_reads_plain_files_alone(pack: Callable[[bytes], bytes]) -> None:
    made = tarred(
        entry("top/a"),
        entry("top/link", tarfile.SYMTYPE, linkname="/etc/passwd"),
        entry("top/hard", tarfile.LNKTYPE, linkname="top/a"),
        entry("top/device", tarfile.CHRTYPE, devmajor=1, devminor=5),
        entry("top/pipe", tarfile.FIFOTYPE),
        entry("top/sparse", tarfile.GNUTYPE_SPARSE),
        entry("top/folder", tarfile.DIRTYPE),
        pack=pack,
    )
    with open_tar(io.BytesIO(made), LIMITS) as archive:
        assert dict(archive.sizes) == {"top/a": len(TEXT)}
        assert archive.read("top/a") == TEXT


TARS: dict[str, tuple[Callable[[], bytes], str]] = {
    "zeros": (lambda: tarred(entry("a"), data=bytes(3 << 20), pack=gzip.compress), "too_large"),
    "zeros in xz": (lambda: tarred(entry("a"), data=bytes(3 << 20), pack=lzma.compress), "too_large"),
    "many files": (lambda: tarred(*(entry(f"{n}") for n in range(21)), data=b""), "too_large"),
    "a header of 90 MB": (
        lambda: tarfile.TarInfo.create_pax_global_header({"comment": "x"}).replace(
            b"00000000014\0", b"00535046000\0", 1), "damaged"),
    "text": (lambda: TEXT * 100, "damaged"),
    "cut": (lambda: tarred(entry("a"), data=TEXT * 100, pack=gzip.compress)[:-20], "damaged"),
}  # fmt: skip


@pytest.mark.parametrize(
    ("opener", "make", "code"),
    [
        pytest.param(opener, *case, id=f"{opener.__name__} {name}")
        for opener, cases in ((open_zip, ZIPS), (open_tar, TARS))
        for name, case in cases.items()
    ],
)
def test_open_when_it_holds_too_much_or_is_none_says_so(opener, make, code):
    with pytest.raises(NotPacked) as caught, opener(io.BytesIO(make()), LIMITS):
        pass
    assert caught.value.code == code


# Files of others: what is no regular file, or has no end, is told by what it is, wherever it is met.


def test_read_when_the_file_is_larger_than_asked_for_says_so_as_both_sorts_of_error(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_bytes(b"12345")
    assert read_plain(path, 5) == b"12345"
    with pytest.raises(NotPlain) as caught:
        read_plain(path, 4)
    for error in (caught.value, pickle.loads(pickle.dumps(caught.value))):
        assert isinstance(error, OSError) and isinstance(error, UserError)
        assert (error.errno, error.filename, error.exit_code) == (errno.EFBIG, str(path), ExitCode.FINDINGS)
        assert reason_of(error) == "larger than 4 bytes"
        assert str(error).startswith(f"{path}: this cannot be read: larger than 4 bytes\n  fix: ")


def test_lines_when_one_has_no_end_name_the_file(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    with path.open("wb") as file:
        file.truncate(1 << 40)
    with open_plain(path) as lines, pytest.raises(NotPlain, match=rf"longer than {LONGEST_LINE:,}") as caught:
        next(iter(lines))
    assert caught.value.where == str(path)


def test_file_when_git_lfs_left_a_pointer_in_its_place_says_so_to_every_reader(tmp_path: Path) -> None:
    path = tmp_path / "a.mp4"
    pointer = b"version https://git-lfs.github.com/spec/v1\noid sha256:%s\nsize 12345\n" % (b"0" * 64)
    path.write_bytes(pointer)
    with pytest.raises(NotPlain, match="run `git lfs pull` in the clone") as caught:
        read_plain(path)
    again = pickle.loads(pickle.dumps(caught.value))
    assert reason_of(again) == "a Git LFS pointer in place of the file: run `git lfs pull`"
    assert str(again) == str(caught.value)
    for read in (probe, read_bytes):
        with pytest.raises(MediaProblem, match="Git LFS pointer"):
            read(path)
    path.write_bytes(pointer + b"x" * 1024)  # a text about pointers is none
    assert read_plain(path).startswith(pointer)


@pytest.mark.parametrize("follow", [True, False])
def test_links_when_they_are_followed_lead_to_regular_files_only(tmp_path: Path, *, follow: bool) -> None:
    (tmp_path / "file").write_bytes(b"x")
    os.mkfifo(tmp_path / "pipe")
    for name in ("file", "pipe"):
        (tmp_path / f"to {name}").symlink_to(tmp_path / name)
    with pytest.raises(NotPlain, match="a pipe or a device" if follow else "a link"):
        read_plain(tmp_path / "to pipe", follow=follow)
    if follow:
        assert read_plain(tmp_path / "to file", follow=True) == b"x"
    else:
        with pytest.raises(NotPlain, match="a link"):
            read_plain(tmp_path / "to file")


@pytest.mark.parametrize("depth", [DEEPEST + 1, 100_000])
def test_json_when_it_is_too_deep_is_a_value_error(depth: int) -> None:
    assert parse_json(b"[" * DEEPEST + b"]" * DEEPEST)
    with pytest.raises(ValueError, match=f"deeper than {DEEPEST}"):
        parse_json(b"[" * depth + b"]" * depth)
    assert reason_of(RecursionError("maximum")) == f"lists and objects deeper than {DEEPEST} in each other"


@pytest.mark.parametrize(
    "content",
    [
        b'"\\ud800"',
        b'{"\\udfff": 1}',
        b"NaN",
        b"[Infinity]",
        b"1e999",
        b"9223372036854775808",
        b"-" + b"9" * 5000,
    ],
)
def test_json_when_nothing_can_hold_it_is_a_value_error(content: bytes) -> None:
    assert parse_storable(b'["\\ud83d\\ude00", -9223372036854775807, 1e308]') == [
        "\U0001f600",
        1 - 2**63,
        1e308,
    ]
    with pytest.raises(ValueError):
        parse_storable(content)


def test_unzipped_when_it_is_a_bomb_or_ends_early_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plain_files, "UNZIPPED", 1 << 20)
    text = os.urandom(1000).hex().encode() * 1000  # 2 MB of text, which packs well
    assert unzipped(zlib.compress(text)) == text
    for packed in (zlib.compress(bytes(2 << 20)), zlib.compress(text)[:-5], b""):
        with pytest.raises(zlib.error, match="ends early, or unpacks"):
            unzipped(packed)


# Disks of a network are known by what is mounted where.


def test_network_disk_when_a_folder_is_below_a_mount_names_its_kind(tmp_path: Path) -> None:
    mounts = tmp_path / "mounts"
    mounts.write_text(
        f"/dev/vda / ext4 rw 0 0\nhost:/home {tmp_path}/a\\040b nfs4 rw 0 0\nhere {tmp_path}/c tmpfs rw 0 0\n"
    )
    kinds = [network_disk(tmp_path / name, mounts) for name in ("a b/run", "c/run", "run", "a b")]
    assert kinds == ["nfs4", None, None, "nfs4"]
    assert network_disk(tmp_path, tmp_path / "none") is None
