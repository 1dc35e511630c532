"""Files of others: what is no regular file, or has no end, is told by what it is, wherever it is met."""

import errno
import os
import pickle
import zlib
from pathlib import Path

import pytest

from fabula.errors import ExitCode, UserError
from fabula.media.images import MediaProblem, read_bytes
from fabula.media.video import probe
from fabula.schemas import plain_files
from fabula.schemas.disks import network_disk
from fabula.schemas.plain_files import (
    DEEPEST,
    LONGEST_LINE,
    NotPlain,
    open_plain,
    parse_json,
    parse_storable,
    read_plain,
    reason_of,
    unzipped,
)


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
