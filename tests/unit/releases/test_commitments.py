import hashlib
import hmac
import json
import shutil
from pathlib import Path

import pytest

from fabula.errors import ConfigError, InputError, TargetError
from fabula.releases.diff.form import Step, Version, is_enough, next_version
from fabula.releases.entities.form import import_episodes
from fabula.releases.hidden.marks import (
    CANARY_FORM,
    SALT_FILE,
    canary_file,
    check_canary,
    commitment,
    keep_salt,
    make_canary,
    read_salt,
    record_key,
    write_salt,
)
from fabula.releases.katha.package_import import import_package
from fabula.releases.shots.imports import import_set
from fabula.releases.shots.tree import read_shot_set, write_shot_set
from fabula.releases.target import staged
from fabula.testing.drawn_shots import draw_shot_set
from fabula.testing.official_packages import write_package
from fabula.testing.written_episodes import write_episodes

SALT = bytes(range(32))
OTHER = bytes(32)


def mode(path: Path) -> int:
    return path.stat().st_mode & 0o777


def test_a_commitment_when_worked_by_hand_is_two_hmacs():
    record, variants = {"story_id": "a_1", "b": "é"}, [{"variant_id": "v2"}, {"variant_id": "v1"}]
    key = hmac.new(SALT, b"fabula commitment 1\na_1", hashlib.sha256).digest()
    told = {"record": record, "variants": [{"variant_id": "v1"}, {"variant_id": "v2"}]}
    text = json.dumps(told, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    assert record_key(SALT, "a_1") == key
    assert commitment(key, record, variants) == hmac.new(key, text.encode(), hashlib.sha256).hexdigest()


def test_a_salt_when_kept_twice_is_the_same_and_for_its_owner_only(tmp_path):
    (tmp_path / f".{SALT_FILE}.killed.part").write_text(OTHER.hex())  # by a process that was killed
    first = keep_salt(tmp_path, None, None)
    assert keep_salt(tmp_path, None, None) == first
    assert len(first) == 32
    assert mode(tmp_path / SALT_FILE) == 0o600
    assert [path.name for path in tmp_path.iterdir()] == [SALT_FILE]


def test_a_salt_when_named_or_left_by_an_earlier_version_is_taken(tmp_path):
    named, earlier = tmp_path / "named", tmp_path / "earlier"
    write_salt(named, SALT)
    write_salt(earlier, OTHER)
    for folder in ("one", "two", "three"):
        (tmp_path / folder).mkdir()
    assert keep_salt(tmp_path / "one", named, earlier) == SALT
    assert keep_salt(tmp_path / "two", None, earlier) == OTHER
    assert keep_salt(tmp_path / "three", None, tmp_path / "not there") not in (SALT, OTHER)
    assert keep_salt(tmp_path / "one", None, earlier) == SALT  # what the run has, stays


def test_another_salt_when_the_run_has_one_is_refused(tmp_path):
    write_salt(tmp_path / SALT_FILE, SALT)
    write_salt(tmp_path / "named", OTHER)
    with pytest.raises(ConfigError, match="another salt than the one in"):
        keep_salt(tmp_path, tmp_path / "named", None)
    assert read_salt(tmp_path / SALT_FILE) == SALT


def test_a_salt_when_an_earlier_version_committed_is_never_made_anew(tmp_path):
    with pytest.raises(ConfigError, match="--salt"):
        keep_salt(tmp_path, None, tmp_path / "lost", promised=True)
    assert list(tmp_path.iterdir()) == []
    write_salt(tmp_path / "named", OTHER)
    assert keep_salt(tmp_path, tmp_path / "named", None, promised=True) == OTHER
    assert keep_salt(tmp_path, None, None, promised=True) == OTHER


@pytest.mark.parametrize(
    "content",
    [b"", b"\n", b"ab" * 31, b"ab" * 33, b"zz" * 32, b"\xff" * 64, b"AB" * 32, b"ab" * 32 + b"\n\n"],
)
def test_a_damaged_salt_when_read_is_refused_and_never_made_anew(tmp_path, content):
    (tmp_path / SALT_FILE).write_bytes(content)
    with pytest.raises(InputError, match="64 hexadecimal digits"):
        keep_salt(tmp_path, None, None)
    assert (tmp_path / SALT_FILE).read_bytes() == content


# Places that a release cannot be put in.


def test_copy_that_fails_for_many_files_when_reported_names_the_reason_once(tmp_path: Path) -> None:
    why = "[Errno 28] No space left on device: 'a' -> 'b'"
    failed = shutil.Error([("a", f"draft/{name}", why) for name in ("x.jsonl", "y.jsonl", "z.jsonl")])
    with pytest.raises(TargetError) as error, staged(tmp_path / "out"):
        raise failed
    assert error.value.found == "No space left on device (x.jsonl, and 2 more)"
    assert not list(tmp_path.iterdir())


# Errors about a place to write say what is made there, not that it is a release.

MAKERS = {
    "import katha": lambda folder, out: import_package(write_package(folder), out),
    "import vistory": lambda folder, out: import_set(draw_shot_set(folder), out, "2026-01-01T00:00:00Z"),
    "import entitybench": lambda folder, out: import_episodes(
        write_episodes(folder), out, "2026-01-01T00:00:00Z"
    ),
    "export vistory": lambda folder, out: write_shot_set(read_shot_set(draw_shot_set(folder))[0], out),
}


@pytest.mark.parametrize("name", MAKERS)
@pytest.mark.parametrize("place", ["filled", "a file", "below a file"])
def test_import_and_export_when_the_place_is_taken_speak_of_no_release(tmp_path, name, place):
    out = tmp_path / "out"
    if place == "filled":
        out.mkdir()
        (out / "mine.txt").write_text("kept")
    else:
        out.write_text("kept")
    with pytest.raises(TargetError) as caught:
        MAKERS[name](tmp_path / "given", out / "deeper" if place == "below a file" else out)
    assert not {"release", "version", "pack"} & set(str(caught.value).lower().replace(":", " ").split())
    assert (out / "mine.txt" if place == "filled" else out).read_text() == "kept"


CANARY = make_canary("fables", "2026-01-01T00:00:00Z")


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "CANARY.txt").write_bytes(canary_file(CANARY, "Fables"))
    for name in ("dataset_card.md", "README.md"):
        (tmp_path / name).write_text(f"# Fables\n\n`{CANARY}`\n")
    return tmp_path


def test_a_canary_when_made_again_is_the_same_and_no_other_benchmarks():
    assert CANARY_FORM.fullmatch(CANARY)
    assert make_canary("fables", "2026-01-01T00:00:00Z") == CANARY
    others = {make_canary("tales", "2026-01-01T00:00:00Z"), make_canary("fables", "2026-01-01T00:00:01Z")}
    assert CANARY not in others
    assert len(others) == 2


def test_a_release_when_it_carries_its_canary_has_no_finding(folder):
    assert list(check_canary(folder, {"canary": CANARY})) == []
    assert list(check_canary(folder, {})) == []  # packed before there were canaries


@pytest.mark.parametrize("name", ["CANARY.txt", "dataset_card.md", "README.md"])
def test_a_place_when_it_lacks_the_canary_is_named(folder, name):
    (folder / name).write_text("nothing\n")
    assert [issue.where for issue in check_canary(folder, {"canary": CANARY})] == [name]
    (folder / name).unlink()
    assert [issue.where for issue in check_canary(folder, {"canary": CANARY})] == [name]


# Which version a step asks for, by semantic versioning applied to data.


def v(text: str) -> Version:
    return Version.of(text, "--version")


@pytest.mark.parametrize(
    ("old", "step", "due"),
    [
        ("0.1.0", Step.NONE, "0.1.0"),
        ("0.1.0", Step.PATCH, "0.1.1"),
        ("0.1.4", Step.MINOR, "0.2.0"),
        ("0.1.4", Step.MAJOR, "0.2.0"),
        ("1.2.3", Step.PATCH, "1.2.4"),
        ("1.2.3", Step.MINOR, "1.3.0"),
        ("1.2.3", Step.MAJOR, "2.0.0"),
        ("1.0.0-rc.1", Step.MAJOR, "1.0.0"),
        ("1.2.3+build.7", Step.PATCH, "1.2.4"),
    ],
)
def test_next_version_when_a_step_is_due_is_the_lowest_that_says_so(old: str, step: Step, due: str) -> None:
    assert str(next_version(v(old), step)) == due


@pytest.mark.parametrize(
    ("old", "step", "new", "enough"),
    [
        ("0.1.0", Step.MINOR, "0.2.0", True),
        ("0.1.0", Step.MINOR, "0.1.1", False),
        ("0.1.0", Step.MINOR, "1.0.0", True),
        ("0.1.0", Step.MINOR, "0.2.0-rc.1", True),
        ("0.1.0", Step.MINOR, "0.1.0", False),
        ("0.1.0", Step.NONE, "0.1.0", True),
        ("0.1.0", Step.NONE, "0.0.9", False),
        ("1.0.0", Step.MAJOR, "1.9.9", False),
        ("1.0.0", Step.PATCH, "1.0.0+other", False),
        ("1.0.0-rc.1", Step.MAJOR, "1.0.0-rc.2", True),
        ("1.0.0-rc.2", Step.PATCH, "1.0.0-rc.1", False),
        ("1.0.0", Step.PATCH, "1.0.0-rc.1", False),
    ],
)
def test_version_when_stated_is_enough_or_not(old: str, step: Step, new: str, enough: bool) -> None:
    assert is_enough(v(old), step, v(new)) is enough


def test_versions_when_sorted_come_in_the_order_of_the_standard() -> None:
    # section 11 of semver.org 2.0.0
    texts = ["1.0.0-alpha", "1.0.0-alpha.1", "1.0.0-alpha.beta", "1.0.0-beta", "1.0.0-beta.2"]
    texts += ["1.0.0-beta.11", "1.0.0-rc.1", "1.0.0", "1.0.1", "1.10.0", "2.0.0"]
    assert [one.text for one in sorted(map(v, reversed(texts)), key=lambda one: one.order)] == texts
