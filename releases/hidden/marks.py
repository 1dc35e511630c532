"""What gives a hidden-test story away: its id, how its texts begin and end, a text that is much like it.

Ids are looked for where they look like ids (a digit, six characters or more). Texts are looked for by how
they begin and end, but for what a public story has as well: tales of one frame begin alike, and two tales may
share a sentence. What the source of a public story holds is public, whoever else says it; whether that story
is a hidden one, or much like it, is asked of the story as a whole.
"""

import glob
import hashlib
import hmac
import math
import os
import re
import secrets
import tempfile
import unicodedata
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import groupby, takewhile
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...errors import ConfigError, InputError, TargetError
from ...schemas.canonical import Json, canonical_bytes, canonical_text, writing
from ...schemas.paths import ANNOTATIONS, CANARY, CARD, HIDDEN_SPLIT, README, RELEASE, VARIANTS, files_in
from ...schemas.plain_files import json_lines, open_plain, parse_json, read_plain
from ...schemas.values import Issue
from ...validators.retellings import DEFAULT_THRESHOLD, shingles, signature, similarity
from ..parquet import batches, open_table

# -- Commitments to hidden-test stories: published with a version, they prove later what was fixed by then
#
# A commitment is HMAC-SHA256 of a story's record and variants (canonical JSON, without what reviewers said of
# the record) under a key of its own, which is HMAC-SHA256 of the story's id under a secret salt of 32 bytes.
# Fables are widely known: a plain hash could be guessed from the tales that a hidden one might be, a salted
# one cannot. The salt never changes, so the commitment to a story changes exactly when the story does. With
# the key of one story, that story alone can be disclosed and proven; with the salt, all of them.

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
    with writing(path, "make the folder writable, or free the disk", what="the salt"):
        if path.exists() or path.is_symlink():
            if path.is_file() and read_plain(path) == content:
                path.chmod(0o600)
                return False
            raise TargetError(
                str(path),
                what="a file with another salt is there already",
                fix="move it to a safe place (it may be the salt of another release), and pack again",
            )
        for left in path.parent.glob(f".{glob.escape(path.name)}.*.part"):  # of a pack that was killed
            left.unlink()
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


# --

_MARK = 120
SHORTEST = _MARK // 2
"""A text of fewer characters does not tell which story it is from."""

_KEY = 4
_WORDS, _BEGIN = 3, 12
"""Most words and characters of a hidden text that are shown: enough to find the place, too few to know it."""
_LIKE = DEFAULT_THRESHOLD - 0.2
"""Exact similarity from which two texts are compared by their signatures, as building compares them."""

CONTAINED = 0.9
"""Share of the word groups of a hidden story from which a text counts as holding the story."""

_FEWEST = 20
"""A text of fewer word groups is looked for as it stands only."""
_PIECE = re.compile(r"\S{1,1000}|\s+")


def plain(text: str) -> str:
    """Return a text as it is compared: in one form (NFKC) and one case."""
    if text.isascii():
        return text.casefold()
    # In pieces: a run of accents as long as a book is sorted, which takes the square of its length.
    return "".join(unicodedata.normalize("NFKC", piece) for piece in _PIECE.findall(text)).casefold()


@dataclass(slots=True)
class Marks:
    """What to look for."""

    ids: re.Pattern[str]  # finds the id of a hidden story
    quotes: frozenset[str]  # how the texts of hidden stories begin and end, words one space apart
    stories: Mapping[str, str]  # id -> text of the hidden stories
    whole: frozenset[str]  # every text of a hidden story or of its variants, as a whole
    # length and hash of the texts in which nothing was found; most come again, in tables. All texts are as
    # :func:`plain` leaves them.
    clean: set[tuple[int, int]] = field(default_factory=set)
    _by_words: dict[tuple[str, ...], list[str]] = field(default_factory=dict)
    _wordless: re.Pattern[str] = field(default_factory=lambda: re.compile("(?!)"))
    _groups: dict[str, NDArray[np.intp]] = field(default_factory=dict)
    _sizes: list[tuple[str, int]] = field(default_factory=list)
    _shortest: int = 0
    _fewest: float = math.inf

    def __post_init__(self) -> None:
        wordless = []
        for quote in sorted(self.quotes):
            words = quote.split()
            if len(words) < _KEY + 2:
                wordless.append(re.escape(quote))
            else:  # the first and the last word may be cut
                self._by_words.setdefault(tuple(words[1 : _KEY + 1]), []).append(quote)
        if wordless:
            self._wordless = re.compile("|".join(wordless))
        self._shortest = min((len(text) for text in self.stories.values()), default=0) // 2
        holders: dict[str, list[int]] = {}
        for story_id, text in sorted(self.stories.items()):
            groups = shingles(text)
            if len(groups) >= _FEWEST:
                for group in groups:
                    holders.setdefault(group, []).append(len(self._sizes))
                self._sizes.append((story_id, len(groups)))
        self._fewest = max(
            1, min(_LIKE, CONTAINED) * min((size for _, size in self._sizes), default=math.inf)
        )
        self._groups = {group: np.array(numbers, np.intp) for group, numbers in holders.items()}

    def named(self, text: str) -> str | None:
        """Return the id of a hidden story that a text names, or None."""
        return next((match[0] for match in self.ids.finditer(text) if _stands_alone(match)), None)

    def findings(self, text: str) -> list[str]:
        """Return what a text tells of hidden stories; nothing where it is too short to tell.

        What is returned goes into logs: of hidden texts it holds a few words at most.
        """
        if len(text) < SHORTEST:
            return []
        quote = next(self.quotes_in(text), None)
        findings = [] if quote is None else [f"holds {described(quote)}"]
        if len(text) >= self._shortest:
            findings += self._alike(text)
        return findings

    def quotes_in(self, text: str) -> Iterator[str]:
        """Yield each beginning or end of a hidden text that stands in a text."""
        words = text.split()
        joined = " ".join(words)
        keys = set(zip(*(words[start:] for start in range(_KEY)), strict=False)) & self._by_words.keys()
        for key in sorted(keys):
            yield from (quote for quote in self._by_words[key] if quote in joined)
        match = self._wordless.search(joined)
        while match is not None:  # they may overlap
            yield match[0]
            match = self._wordless.search(joined, match.start() + 1)

    def _alike(self, text: str) -> Iterator[str]:
        groups = shingles(text)
        known = [self._groups[group] for group in groups if group in self._groups]
        if len(known) < self._fewest:  # too few in common with any story for either of the two
            return
        shared = np.bincount(np.concatenate(known))
        for number in np.flatnonzero(shared).tolist():
            (story_id, size), count = self._sizes[number], int(shared[number])
            if count / (size + len(groups) - count) >= _LIKE:
                share = similarity(signature(text), signature(self.stories[story_id]))
                if share >= DEFAULT_THRESHOLD:
                    yield f"a text like the hidden story {story_id} ({share:.0%})"
                    continue
            if count / size >= CONTAINED:
                yield f"a text that holds most of the hidden story {story_id} ({count / size:.0%})"


def described(quote: str) -> str:
    """Return which words of a hidden story these are: how they begin, and how many characters."""
    begin = " ".join(quote.split()[:_WORDS])[:_BEGIN]
    return f"{len(quote)} characters of a hidden story, from {begin!r} on"


def _squeezed(text: str) -> str:
    return " ".join(text.split())


def marks_of(public: Path, hidden: Path, ids: Iterable[str]) -> Marks:
    """Return what to look for in a public folder."""
    marks = {(sort, mark) for sort, _, text in _texts(hidden) for mark in _ends(text)}
    marks.difference_update((sort, mark) for sort, _, text in _texts(public) for mark in _ends(text))
    names = {plain(name) for name in ids if len(name) >= 6 and any(char.isdigit() for char in name)}
    quotes = {_squeezed(mark) for _, (_, mark) in marks}
    sought = Marks(_any_of(names), frozenset(quotes), {}, frozenset())
    for text in (plain(row["source_text"]) for row in json_lines(public / ANNOTATIONS)):
        quotes.difference_update(sought.quotes_in(text))
        names.difference_update(match[0] for match in sought.ids.finditer(text) if _stands_alone(match))
    return Marks(
        ids=_any_of(names),
        quotes=frozenset(quotes),
        stories={row["story_id"]: plain(row["story_text"]) for row in json_lines(hidden / ANNOTATIONS)},
        whole=frozenset(text for _, whole, text in _texts(hidden) if whole),
    )


def public_has_whole(public: Path, marks: Marks) -> bool:
    """Return whether a record or variant of the public folder has the whole text of a hidden one."""
    return any(whole and text in marks.whole for _, whole, text in _texts(public))


def _texts(folder: Path) -> Iterator[tuple[str, bool, str]]:
    """Yield the texts of the stories of a folder and of their variants: their sort, whether whole, the text.

    Those of a sort may be alike without telling: questions and variants are often made by one pattern.
    """
    for row in json_lines(folder / ANNOTATIONS):
        yield from (("story", True, plain(row[name])) for name in ("source_text", "story_text"))
        yield from (("story", False, plain(scene["scene_text"])) for scene in row["scenes"])
        yield from (("question", False, plain(question["question"])) for question in row["questions"])
    for row in json_lines(folder / VARIANTS):
        yield "variant", True, plain(row["contrastive_story_text"])
        yield "variant", False, plain(row["contrastive_scene_text"])


def _ends(text: str) -> Iterator[tuple[str, str]]:
    """Yield how a text begins and how it ends, where that is long enough to tell."""
    if len(text) >= SHORTEST:
        yield "opening", text[:_MARK]
        yield "ending", text[-_MARK:]


def _any_of(words: Iterable[str]) -> re.Pattern[str]:
    """Return a pattern that finds any of the words, as a prefix tree that stays fast with many of them."""
    unique = sorted(set(words))
    return re.compile(_tree(unique) if unique else "(?!)", re.DOTALL)


def _tree(words: Sequence[str]) -> str:
    # The words are sorted, so what the first and the last share, all share.
    prefix = "".join(
        word for word, _ in takewhile(lambda pair: pair[0] == pair[1], zip(words[0], words[-1], strict=False))
    )
    rest = [word[len(prefix) :] for word in words]
    branches = [_tree(list(group)) for _, group in groupby(filter(None, rest), key=lambda word: word[0])]
    if not branches:
        return re.escape(prefix)
    optional = "?" if "" in rest else ""
    return re.escape(prefix) + "(?:" + "|".join(branches) + ")" + optional


def _stands_alone(match: re.Match[str]) -> bool:
    start, end = match.span()
    return not _is_letter(match.string[max(start - 1, 0) : start]) and not _is_letter(
        match.string[end : end + 1]
    )


def _is_letter(char: str) -> bool:
    return char.isascii() and char.isalnum()  # scripts without spaces put an id between their letters


# -- Looking for hidden-test stories in every file of a public release: tables too, and what a clone adds

_SPLIT_ROW = re.compile(rb'"(?:split|subset)"\s*:\s*"' + HIDDEN_SPLIT.encode() + rb'"')
_SPLIT_COLUMNS = ("split", "subset")
_ARCHIVES = {
    b"PK\x03\x04": "zip", b"\x1f\x8b": "gzip", b"BZh": "bzip2", b"\xfd7zXZ\x00": "xz", b"7z\xbc\xaf": "7z",
    b"\x28\xb5\x2f\xfd": "zstandard", b"SQLite format 3\x00": "SQLite", b"PACK\x00": "git pack",
}  # fmt: skip
_GIT_OBJECTS = ".git/objects"
_TABLE = b"PAR1"
_BLOCK = 1 << 20


def search_rows(public: Path) -> Iterator[Issue]:
    """Yield the files of a public release that hold rows of the hidden split, whosever they are."""
    listed = set(files_in(public))
    for path in _searched(public):
        has_split = False
        if _is_table(public / path, path):
            has_split = _has_split(public / path)
        elif path.endswith((".jsonl", ".json", ".csv")) or path not in listed:
            with open_plain(public / path) as lines:
                has_split = any(map(_SPLIT_ROW.search, lines))
        if has_split:
            yield Issue(path, "$", "hidden-leak", "holds a row of the hidden test split", CURE)


def search(public: Path, marks: Marks, salt: bytes | None) -> Iterator[Issue]:
    """Yield every place where a public file names, quotes or resembles a hidden-test story."""
    if (public / _GIT_OBJECTS).is_dir():
        message = "what git packed cannot be searched for hidden stories"
        cure = "verify a copy without .git, and search what was ever committed by hand"
        yield Issue(_GIT_OBJECTS, "$", "hidden-unsearched", message, cure)
    for path in _searched(public):
        file = public / path
        head = _head(file)
        kind = next((name for magic, name in _ARCHIVES.items() if head.startswith(magic)), None)
        if kind is not None:
            message = f"a {kind} file, which cannot be searched for hidden stories"
            cure = "take it out, or unpack it into the release"
            yield Issue(path, "$", "hidden-unsearched", message, cure)
        else:
            try:
                contents = _table(file, path) if _is_table(file, path) else _file(file, path)
                for where, content in contents:
                    yield from _search_content(content, where, marks)
            except ValueError as error:  # pyarrow's errors about damaged files are such
                message = f"cannot be searched for hidden stories: {str(error)[:100]}"
                yield Issue(path, "$", "hidden-unsearched", message, "take it out, or pack the run again")
        if salt is not None and _holds(file, (salt, salt.hex().encode("ascii"))):
            yield Issue(path, "$", "hidden-leak", "holds the salt of the commitments", CURE)


def _searched(public: Path) -> list[str]:
    """Return every plain file: of the release, and of what a clone or a cache has beside it unpacked."""
    files = files_in(public, clone=True)
    packed = f"{_GIT_OBJECTS}/"
    return [path for path in files if not path.startswith(packed) and not (public / path).is_symlink()]


def _head(file: Path) -> bytes:
    with open_plain(file) as start:
        return start.read(32)


def _is_table(file: Path, path: str) -> bool:
    return path.endswith(".parquet") or _head(file).startswith(_TABLE)  # Git LFS names files by their hash


def _has_split(file: Path) -> bool:
    """Return whether a table holds rows of the hidden split; one that cannot be read is told elsewhere."""
    with suppress(ValueError):
        return any(HIDDEN_SPLIT in values for _, values in _columns(file, _SPLIT_COLUMNS))
    return False


def _file(file: Path, path: str) -> Iterator[tuple[str, bytes | str]]:
    """Yield what is searched of a file, with its place: its lines, the whole, the strings of JSON."""
    if path.endswith(".jsonl"):
        with open_plain(file) as lines:
            for number, line in enumerate(lines, 1):
                yield f"{path}:{number}", line
                yield from ((f"{path}:{number}", text) for text in _strings(_parsed(line)))
        return
    content = read_plain(file)
    for number, line in enumerate(content.splitlines(), 1):
        yield f"{path}:{number}", line
    yield path, content
    if path.endswith(".json"):
        yield from ((path, text) for text in _strings(_parsed(content)))


def _table(file: Path, path: str) -> Iterator[tuple[str, bytes | str]]:
    """Yield the texts of a Parquet file, of each column and of what stands beside the rows."""
    yield from ((f"{path} metadata", note) for note in _notes(file))
    for name, values in _columns(file):
        yield from ((f"{path} {name}", value) for value in values)


def _search_content(content: bytes | str, where: str, marks: Marks) -> Iterator[Issue]:
    text = plain(content if isinstance(content, str) else content.decode("utf-8", "replace"))
    if (key := (len(text), hash(text))) in marks.clean:
        return
    named = marks.named(text)
    messages = [*([] if named is None else [f"holds {named!r} of a hidden story"]), *marks.findings(text)]
    yield from (Issue(where, "$", "hidden-leak", message, RETELL) for message in messages)
    if not messages:
        marks.clean.add(key)


def _parsed(content: bytes) -> Json:
    """Return the JSON that a content is; nothing where it is none."""
    try:
        return parse_json(content)
    except (ValueError, RecursionError):
        return None


def _strings(value: Json) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        yield from value
        for part in value.values():
            yield from _strings(part)
    elif isinstance(value, list):
        for part in value:
            yield from _strings(part)


def _notes(file: Path) -> Iterator[str]:
    """Yield what a Parquet file says beside its rows: of itself, of its schema, of each column."""
    with open_table(file, plain=True) as table:
        yield str(table.metadata.created_by)
        waiting: list[Any] = [table.metadata, table.schema_arrow, *table.schema_arrow]
        while waiting:
            node = waiting.pop()
            for key, value in (node.metadata or {}).items():
                yield from (key.decode("utf-8", "replace"), value.decode("utf-8", "replace"))
            kind: Any = getattr(node, "type", None)
            waiting += [kind.field(number) for number in range(getattr(kind, "num_fields", 0))]
        yield "\n".join(_names(table.schema_arrow))


def _names(fields: Iterable[Any]) -> Iterator[str]:
    for one in fields:
        yield one.name
        yield from _names(one.type.field(number) for number in range(one.type.num_fields))


def _columns(file: Path, only: tuple[str, ...] | None = None) -> Iterator[tuple[str, list[str]]]:
    """Yield the texts of each column of a Parquet file, a batch at a time."""
    import pyarrow as pa

    with open_table(file) as table:
        names = [name for name in table.schema_arrow.names if only is None or name in only]
        for batch in batches(table, file.stat().st_size, names) if names else ():
            for name, column in zip(batch.schema.names, batch.columns, strict=True):
                yield from ((name, texts) for texts in _texts_in(pa, column))


def _texts_in(pa: Any, column: Any) -> Iterator[list[str]]:  # noqa: ANN401 - pyarrow is imported late
    """Yield the texts of an Arrow array, however deep they lie."""
    kind = column.type
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        yield [text for text in column.to_pylist() if text is not None]
    elif pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
        yield [data.decode("utf-8", "replace") for data in column.to_pylist() if data is not None]
    elif pa.types.is_dictionary(kind):
        yield from _texts_in(pa, column.dictionary_decode())
    elif pa.types.is_list(kind) or pa.types.is_large_list(kind):
        yield from _texts_in(pa, column.flatten())
    elif pa.types.is_struct(kind):
        for part in column.flatten():
            yield from _texts_in(pa, part)


def _holds(file: Path, secrets: tuple[bytes, ...]) -> bool:
    overlap = max(map(len, secrets)) - 1
    with open_plain(file) as content:
        block = b""
        while more := content.read(_BLOCK):
            block = block[-overlap:] + more
            if any(secret in block for secret in secrets):
                return True
    return False
