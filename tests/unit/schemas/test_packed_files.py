"""Archives that anybody may have made: what is read of them is plain, bounded, and what the list says."""

import bz2
import gzip
import io
import lzma
import stat
import struct
import tarfile
import zipfile
from collections.abc import Callable
from typing import Any

import pytest

from fabula.schemas.packed_files import Limits, NotPacked, open_tar, open_zip

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
def test_open_when_it_holds_too_much_or_is_none_says_so(
    opener: Callable[..., Any], make: Callable[[], bytes], code: str
) -> None:
    with pytest.raises(NotPacked) as caught, opener(io.BytesIO(make()), LIMITS):
        pass
    assert caught.value.code == code
