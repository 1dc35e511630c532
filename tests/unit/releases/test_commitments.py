import hashlib
import hmac
import json
from pathlib import Path

import pytest

from fabula.errors import ConfigError, InputError
from fabula.releases.hidden.commitments import (
    SALT_FILE,
    commitment,
    keep_salt,
    read_salt,
    record_key,
    write_salt,
)

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


def test_a_commitment_when_salt_id_record_or_variant_differ_is_another():
    record, variants = {"story_id": "a_1"}, [{"variant_id": "v1"}]
    base = commitment(record_key(SALT, "a_1"), record, variants)
    others = {
        commitment(record_key(OTHER, "a_1"), record, variants),
        commitment(record_key(SALT, "a_2"), record, variants),
        commitment(record_key(SALT, "a_1"), {"story_id": "a_1", "title": ""}, variants),
        commitment(record_key(SALT, "a_1"), record, []),
    }
    assert len(others) == 4
    assert base not in others


def test_a_salt_when_kept_twice_is_the_same_and_for_its_owner_only(tmp_path):
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
