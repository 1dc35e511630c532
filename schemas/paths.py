"""Places in JSON documents: simple paths, paths with names in quotes, and JSON pointers.

``$.scenes[2].action`` is a simple path. In a quoted one any name may stand, as in
``$.Shots[0]['Setting Description'].en``; every simple path is one of these, too.
A pointer (RFC 6901), such as ``/scenes/2/any key``, reaches keys of every form.
"""

import json
import os
import re
import uuid
from collections.abc import Callable, Mapping, Sequence
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, Optional, TypeVar

from ..errors import ConfigError, PlaceUnavailable
from .canonical import Json

Steps = tuple[str | int, ...]
_STEP = re.compile(r"\.([A-Za-z_][A-Za-z0-9_]*)|\[([0-9]+)\]")


@lru_cache(maxsize=4096)
def parse_path(path: str) -> Steps:
    return parsed(path, _STEP, lambda match: match[1] if match[1] is not None else int(match[2]))


def parsed(path: str, pattern: re.Pattern[str], step_of: Callable[[re.Match[str]], str | int]) -> Steps:
    if not path.startswith("$"):
        raise ValueError(f"a JSON path starts with $, not {path[:20]!r}")
    steps: list[str | int] = []
    position = 1
    while position < len(path):
        match = pattern.match(path, position)
        if match is None:
            raise ValueError(f"cannot read the JSON path {path!r} from {path[position:]!r} on")
        steps.append(step_of(match))
        position = match.end()
    return tuple(steps)


def format_path(steps: Sequence[str | int]) -> str:
    """Return the path that :func:`parse_path` reads as these steps."""
    return "$" + "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in steps)


def get_at(document: Json, path: str) -> Json:
    return value_at(document, parse_path(path))


def value_at(document: Json, steps: Sequence[str | int]) -> Json:
    value = document
    for number, step in enumerate(steps):
        fits = isinstance(value, list if isinstance(step, int) else dict)
        if not fits or (step >= len(value) if isinstance(step, int) else step not in value):
            places = quoted_path(steps[: number + 1]), quoted_path(steps[:number])
            raise LookupError(f"nothing at {places[0]}; {places[1]} has {_inside(value)}")
        value = value[step]
    return value


def _inside(value: Json) -> str:
    """Return what can be named within a value."""
    if isinstance(value, list):
        return f"[0] to [{len(value) - 1}]" if value else "nothing in its list"
    return ", ".join(map(str, value)) if isinstance(value, dict) else "no parts"


def replace_at(document: Json, path: str, value: Json) -> Json:
    """Return a copy of the document with the value at an existing path replaced; the rest is shared."""
    get_at(document, path)
    return _replaced(document, parse_path(path), value)


def with_value(document: Json, steps: Sequence[str | int], value: Json) -> Json:
    """Return a copy of a document with the value at an existing place replaced; the rest is shared."""
    value_at(document, steps)
    return _replaced(document, tuple(steps), value)


def _replaced(node: Json, steps: Steps, value: Json) -> Json:
    if not steps:
        return value
    head, rest = steps[0], steps[1:]
    if isinstance(node, list):
        return [_replaced(child, rest, value) if i == head else child for i, child in enumerate(node)]
    return {key: _replaced(child, rest, value) if key == head else child for key, child in node.items()}


def pointer(steps: Sequence[str | int]) -> str:
    """Return the pointer made of these steps; of none it is empty, and stands for the whole."""
    return "".join(f"/{str(step).replace('~', '~0').replace('/', '~1')}" for step in steps)


_QUOTED_STEP = re.compile(
    r"\.([A-Za-z_][A-Za-z0-9_]*)|\[([0-9]+)\]|\['([^'\\]*)'\]|\[(\"(?:[^\"\\]|\\.)*\")\]", re.DOTALL
)
_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def parse_quoted(path: str) -> Steps:
    return parsed(path, _QUOTED_STEP, _quoted_step)


def _quoted_step(match: re.Match[str]) -> str | int:
    plain, index, single, double = match.groups()
    if index is not None:
        return int(index)
    if double is None:
        return str(plain if plain is not None else single)
    try:
        return str(json.loads(double))
    except ValueError as error:
        raise ValueError(f"cannot read the name {double[:40]} in the JSON path {match.string!r}") from error


def quoted_path(steps: Sequence[str | int]) -> str:
    """Return the path that :func:`parse_quoted` reads as these steps, whatever names are among them."""
    return "$" + "".join(map(_written, steps))


def _written(step: str | int) -> str:
    if isinstance(step, int):
        return f"[{step}]"
    if _PLAIN.fullmatch(step):
        return f".{step}"
    return f"['{step}']" if "'" not in step and "\\" not in step else f"[{json.dumps(step)}]"


# -- What run and release folders hold: the names of their files (Table 23 and ours) and of splits

RECORDS, ASSIGNMENTS, BALANCE = "records.jsonl", "assignments.jsonl", "balance.json"
"""What a builder writes into a run folder; the engine names the files that it writes itself."""
SOURCES = "sources.jsonl"
"""The same: what is known of where stories are from, beyond their collection."""
RETELLINGS = "retellings.jsonl"
"""The same: groups of stories that retell one another, with what shows it."""

FORMAT = 1
"""The newest layout of release folders that this version reads; ``release.json`` states it."""

RELEASE = "release.json"
ANNOTATIONS, VARIANTS = "annotations.jsonl", "contrastive_variants.jsonl"
REVIEWS, PRODUCERS = "human_validation.jsonl", "producers.jsonl"
DRAFTS = "drafts"
STATES = "states"
"""How many of its records are in which state, as ``release.json`` says."""
STAND_INS = "stand_ins"
"""How many of its records are drafts, as ``release.json`` says; releases of earlier versions do not."""
STATISTICS, MORAL_BALANCE = "statistics.json", "moral_balance_requirements.json"
IMPORTED = "imported"
"""Key of ``release.json`` under which the import of somebody else's package says where it comes from."""
JSONL_FILES = (ANNOTATIONS, VARIANTS, PRODUCERS)
VOTE_FILES = (REVIEWS, "human_gold_1k.jsonl", "strict_gold_400.jsonl")

SOURCE_MANIFEST = "source_manifest.json"
LICENSE = "LICENSE"
CARD = "dataset_card.md"
README = "README.md"
CROISSANT = "croissant_metadata.json"
SUMS = "SHA256SUMS"
CANARY = "CANARY.txt"
SUBSETS = "subsets.json"
"""How close each subset is to the whole; their members stand in files of their own."""

TASKS = "eval.yaml"
"""Tasks of inspect_ai, as the Hub reads them."""
CHANGES = "changes.json"
"""What changed since the version before, by id and JSON path."""

DATA = "data"
HIDDEN_SPLIT = "hidden_test"
WHOLE = "whole"
"""Visibility of a folder whose package holds its hidden-test stories among the others."""
WITHDRAWN = "withdrawn"
"""Code of the stories of a run that were taken out for good."""
SPLIT_FILES = {"train": "train", "validation": "validation", "public_test": "test"}
"""Split of a record -> the name of its Parquet files and of the split that ``datasets`` sees (no dashes)."""

RECORD_IDS = {ANNOTATIONS: "story_id", VARIANTS: "variant_id", PRODUCERS: "id"}
"""JSONL file -> the field that names a line; lines are sorted by it."""


def parquet_path(table: str, split_file: str) -> str:
    """Return the path of one Parquet file in a release, with forward slashes."""
    return f"{DATA}/{table}/{split_file}.parquet"


def hidden_folder(public: Path) -> Path:
    """Return where the hidden-test stories of a release lie: its sibling ``<name>-hidden``."""
    return public.with_name(f"{public.name}-hidden")


_OF_A_CLONE = re.compile(r"\.gitattributes|\.git/.*|\.cache/huggingface/.*", re.DOTALL)
"""What a Hub or its client adds to a copy of a release; it is no part of it, and is never published."""


def files_in(folder: Path, *, clone: bool = False) -> list[str]:
    """Return every file of a release under its folder as a relative path with forward slashes, sorted."""
    found = (
        path.relative_to(folder).as_posix()
        for path in folder.rglob("*")
        if path.is_symlink() or not path.is_dir()
    )
    return sorted(path for path in found if clone or _OF_A_CLONE.fullmatch(path) is None)


# -- Small files that machines share: in a folder, or in any file system that fsspec knows, such as a bucket
#
# No database: SQLite needs locks that network disks and buckets do not have. Several machines may write the
# same file at once. A file is put in place whole where the file system can do so; where it cannot, whoever
# reads has to see from the content that it is a part.

STORE = "FABULA_STORE"
"""The environment variable that names where stored files of runs are shared, such as ``s3://bucket/files``."""
VECTORS = "FABULA_VECTORS"
"""The same for vectors of pictures and texts."""
T = TypeVar("T")


class SharedFiles:
    """Files by name at an address.

    ``address``: a folder, or an address of a file system that fsspec knows. ``variable``: the environment
    variable that names it, for messages.

    Raises ConfigError: there is no such file system, or what it needs is not installed.
    """

    def __init__(self, address: str, variable: str) -> None:
        import fsspec

        self._where = f"{variable}={address}"
        try:
            self._files, root = fsspec.core.url_to_fs(address)
        except (ValueError, ImportError) as error:
            raise ConfigError(
                variable, what=f"{address} cannot be used: {error}",
                fix="name a folder, or an address whose fsspec package is installed, such as s3fs for s3://",
            ) from error  # fmt: skip
        self._root = root.rstrip("/")
        self._renames = "file" in self._files.protocol

    @classmethod
    def named_by(cls, variable: str) -> Optional["SharedFiles"]:
        """Return the files where an environment variable says; None where it is not set."""
        address = os.environ.get(variable)
        return _opened(address, variable) if address else None

    def read(self, names: Sequence[str]) -> dict[str, bytes]:
        paths = {self._path(name): name for name in names}
        files: dict[str, Any] = self._tried(lambda: self._files.cat(list(paths), on_error="return"))
        contents = {}
        for path, content in files.items():
            name = next(known for known in (path, path.removeprefix("/")) if known in paths)
            if isinstance(content, bytes):
                contents[paths[name]] = content
            elif not isinstance(content, FileNotFoundError):
                raise self._unavailable(content) from content
        return contents

    def size(self, name: str) -> int | None:
        def size() -> int | None:
            try:
                return int(self._files.info(self._path(name))["size"])
            except FileNotFoundError:
                return None

        return self._tried(size)

    def write(self, contents: Mapping[str, bytes]) -> None:
        """Put files there; those that are there are replaced."""
        placed = {self._path(name): content for name, content in contents.items()}
        written = {self._part(path): path for path in placed}

        def put() -> None:
            for folder in {path.rpartition("/")[0] for path in placed}:
                self._files.makedirs(folder, exist_ok=True)
            self._files.pipe({part: placed[path] for part, path in written.items()})
            for part, path in written.items():
                if part != path:
                    self._files.mv(part, path)

        self._tried(put)

    def _path(self, name: str) -> str:
        return f"{self._root}/{name[:2]}/{name}"

    def _part(self, path: str) -> str:
        """Return where a file is written first: buckets put it in place whole, disks by renaming."""
        folder, _, name = path.rpartition("/")
        return f"{folder}/.{name}.{uuid.uuid4().hex}.part" if self._renames else path

    def _tried(self, work: Callable[[], T]) -> T:
        try:
            return work()
        except Exception as error:  # file system boundary: each raises errors of its own
            raise self._unavailable(error) from error

    def _unavailable(self, error: BaseException) -> PlaceUnavailable:
        return PlaceUnavailable(
            self._where, what=f"the shared files cannot be used: {error or type(error).__name__}",
            fix="check the address, the network and your rights there, or unset the variable",
        )  # fmt: skip


@cache
def _opened(address: str, variable: str) -> SharedFiles:
    return SharedFiles(address, variable)
