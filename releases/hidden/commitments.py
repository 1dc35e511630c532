"""Commitments to hidden-test stories: published with a version, they prove later what was fixed by then.

A commitment is HMAC-SHA256 of a story's record and variants (canonical JSON, without what reviewers said of
the record) under a key of its own, which is HMAC-SHA256 of the story's id under a secret salt of 32 bytes.
Fables are widely known: a plain hash could be guessed from the tales that a hidden one might be, a salted one
cannot. The salt never changes, so the commitment to a story changes exactly when the story does. With the key
of one story, that story alone can be disclosed and proven; with the salt, all of them.
"""

import hashlib
import hmac
import os
import re
import secrets
import tempfile
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from ...errors import ConfigError, InputError, TargetError
from ...schemas.canonical import Json, canonical_bytes, canonical_text
from ...schemas.paths import ANNOTATIONS, CANARY, CARD, README, RELEASE, VARIANTS
from ...schemas.plain_files import json_lines, open_plain, read_plain
from ...schemas.values import Issue

CURE = "do not publish this release; pack the run again"
RETELL = (
    "do not publish this; say it otherwise in the public story (fabula edit), or withdraw one of the two "
    "stories, and pack again"
)
"""What to do where a public text tells of a hidden story: packing the same run again would tell the same."""
SCHEME = "hmac-sha256/1"
SALT_FILE = "hidden.salt"
"""Where a run keeps its salt."""

_SALT_BYTES = 32
_REVIEW = ("validation_status", "evidence_status")
_HEX = re.compile(rb"([0-9a-f]{64})\n?")


def record_key(salt: bytes, story_id: str) -> bytes:
    """Return the key of one story (32 bytes), which can be disclosed without disclosing the others'."""
    return hmac.digest(salt, b"fabula commitment 1\n" + story_id.encode("utf-8"), hashlib.sha256)


def commitment(key: bytes, record: Mapping[str, Json], variants: Sequence[Mapping[str, Json]]) -> str:
    """Return the commitment to one story (64 hexadecimal digits)."""
    ordered = sorted(variants, key=lambda variant: str(variant["variant_id"]))
    fixed = {name: value for name, value in record.items() if name not in _REVIEW}
    return hmac.new(key, canonical_bytes({"record": fixed, "variants": ordered}), hashlib.sha256).hexdigest()


def commitments_of(folder: Path, salt: bytes) -> dict[str, str]:
    """Return story id -> commitment of every story in a hidden folder."""
    variants: dict[str, list[dict[str, Json]]] = {}
    for variant in json_lines(folder / VARIANTS):
        variants.setdefault(variant["base_story_id"], []).append(variant)
    return {
        record["story_id"]: commitment(
            record_key(salt, record["story_id"]), record, variants.get(record["story_id"], [])
        )
        for record in json_lines(folder / ANNOTATIONS)
    }


def committed(commitments: Mapping[str, str], salt: bytes) -> dict[str, Json]:
    """Return what ``release.json`` says of the commitments; their order tells nothing about the stories.

    ``salt`` tells which salt it is, and nothing of it: commitments under two salts cannot be compared.
    """
    name = hmac.digest(salt, b"fabula salt 1", hashlib.sha256).hex()[:16]
    return {"salt": name, "scheme": SCHEME, "values": sorted(commitments.values())}


def salt_beside(hidden: Path) -> Path:
    """Return where the salt of a hidden folder lies: beside it, never in it."""
    return hidden.with_name(f"{hidden.name}.salt")


def read_salt(path: Path) -> bytes:
    """Return the salt that a file holds (32 bytes)."""
    try:
        with open_plain(path, follow=True) as file:
            match = _HEX.fullmatch(file.read(2 * _SALT_BYTES + 2))
        found = "something else"
    except OSError as error:
        match, found = None, str(error.strerror)
    if match is None:
        raise InputError.one(
            str(path),
            what=f"this is not a salt (64 hexadecimal digits on one line): {found}",
            fix="give the file that packing wrote beside the hidden folder, or restore it from a "
            "copy; "
            "another salt proves nothing",
        )
    return bytes.fromhex(match[1].decode("ascii"))


def keep_salt(run: Path, given: Path | None, earlier: Path | None, *, promised: bool = False) -> bytes:
    """Return the salt of a run, which is made once and kept in its folder, for its owner's eyes only."""
    kept = run / SALT_FILE
    named = None if given is None else read_salt(given)
    if kept.exists() or kept.is_symlink():
        salt = read_salt(kept)
        if named is not None and named != salt:
            raise ConfigError(
                str(given),
                what=f"this is another salt than the one in {kept}, which was used for this run's hidden "
                "stories before",
                fix=f"leave the option out, or remove {kept} if nothing was published from this run",
            )
        return salt
    if named is None and earlier is not None and earlier.exists():
        named = read_salt(earlier)
    if named is None and promised:
        raise ConfigError(
            "--salt",
            what="the earlier version protected its hidden stories with a salt, and that salt is "
            f"missing: there is no {earlier}",
            fix="give its file with --salt. If it is lost, give a file with 64 new hexadecimal digits; "
            "then nobody can prove any more "
            "that the hidden stories are still the same",
        )
    salt = secrets.token_bytes(_SALT_BYTES) if named is None else named
    write_salt(kept, salt)
    return salt


def write_salt(path: Path, salt: bytes) -> bool:
    """Write a salt for its owner's eyes only; return whether it was not there already."""
    content = f"{salt.hex()}\n".encode("ascii")
    try:
        if path.exists() or path.is_symlink():
            if path.is_file() and read_plain(path) == content:
                path.chmod(0o600)
                return False
            raise TargetError(
                str(path),
                what="a file with another salt is there already",
                fix="move it to a safe place (it may be the salt of another release), and pack again",
            )
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".part")  # mode 0600
        try:
            with os.fdopen(handle, "wb") as out:
                out.write(content)
                out.flush()
                os.fsync(out.fileno())
            Path(name).replace(path)
        finally:
            with suppress(OSError):
                Path(name).unlink(missing_ok=True)
    except OSError as error:
        raise TargetError(
            str(path),
            what=f"the salt cannot be written: {error.strerror or error}",
            fix="make the folder writable, or free the disk",
        ) from error
    return True


_OTHER = "find the hidden folder and the salt that were packed together"


def check_promises(document: Mapping[str, Json]) -> Iterator[Issue]:
    """Yield what is wrong with the commitments of a public release, as far as anybody can see."""
    if "commitments" not in document:
        return
    part, stories = document["commitments"], document.get("hidden_test", {}).get("stories")
    if not isinstance(part, dict) or part.get("scheme") != SCHEME:
        yield _issue(f"not of the scheme {SCHEME}", "use the version of Fabula that packed it")
    elif len(set(part["values"])) != stories or part["values"] != sorted(part["values"]):
        yield _issue(f"not one commitment for each of the {stories} hidden stories, sorted", CURE)


def check_commitments(document: Mapping[str, Json], hidden: Path, salt: bytes) -> Iterator[Issue]:
    """Yield hidden stories to which a public release did not commit, and the commitments without story."""
    version = document.get("version")
    if "commitments" not in document:
        cure = (
            "fetch or pack this version again; if it is from before there were commitments, give a later one"
        )
        yield _issue(f"version {version} has no commitments to hidden stories", cure)
        return
    promised = {str(value) for value in document["commitments"]["values"]}
    actual = commitments_of(hidden, salt)
    kept = promised & set(actual.values())
    if promised and actual and not kept:
        message = f"none of the {len(promised)} commitments of version {version} fits stories and salt"
        yield _issue(message, _OTHER)
        return
    for story_id, value in sorted(actual.items()):
        if value not in promised:
            message = f"{story_id} is not as version {version} committed to it, or not one of its stories"
            yield Issue(f"{hidden.name}/{ANNOTATIONS}", "$", "commitment", message, _OTHER)
    if len(kept) < len(promised):
        message = (
            f"{len(promised) - len(kept)} of {len(promised)} commitments of version {version} fit no story"
        )
        yield _issue(message, _OTHER)


def _issue(message: str, cure: str) -> Issue:
    return Issue(RELEASE, "$.commitments", "commitment", message, cure)


# -- The canary: a line that marks copies of a benchmark, so that they can be left out of training data

CANARY_FORM = re.compile(
    r"fabula-canary-[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", re.ASCII
)
_SPACE = uuid.UUID("6f0f5b0e-3c1d-5e0a-9a55-7d1f0a6c2b42")
_CURE = "pack the release again"


def make_canary(name: str, created_at: str) -> str:
    """Return the canary of a benchmark that has none yet."""
    return f"fabula-canary-{uuid.uuid5(_SPACE, canonical_text([name, created_at]))}"


def canary_file(canary: str, title: str) -> bytes:
    """Return the content of ``CANARY.txt``."""
    lines = (
        f"This folder holds the benchmark {title}. It exists to test models, not to train them.",
        "Leave every document with this line out of training data, and keep the line in every copy:",
        "",
        canary,
        "",
    )
    return "\n".join(lines).encode("utf-8")


def check_canary(folder: Path, document: Mapping[str, Json]) -> Iterator[Issue]:
    """Yield the places of a release that lack its canary.

    A release that was packed before there were canaries states none, and is not looked at.
    """
    if "canary" not in document:
        return
    canary = document["canary"]
    if not isinstance(canary, str) or not CANARY_FORM.fullmatch(canary):
        yield Issue(RELEASE, "$.canary", "canary", f"this is not a canary: {str(canary)[:80]!r}", _CURE)
        return
    holders = (CANARY,) if document.get("visibility") == "hidden" else (CANARY, CARD, README)
    for name in holders:
        path = folder / name
        if not path.is_file() or canary.encode("ascii") not in read_plain(path):
            yield Issue(name, "$", "canary", f"does not hold {canary}", _CURE)
