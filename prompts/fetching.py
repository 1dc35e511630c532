"""Fetching official prompts: from the public repository at a pinned commit into a set of the user's cache.

No official text is part of Fabula. ``official.json`` says where each stands, and which files at which commit.
"""

import ast
import json
import os
import re
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache, partial
from importlib.resources import files
from itertools import islice
from pathlib import Path, PurePosixPath
from typing import Any

from pydantic import Field

from ..errors import ConfigError, InputError, MissingRequirement, UserError
from ..models.programs import ProgramStopped, allowed_environment, run_program
from ..schemas.canonical import sha256_bytes
from ..schemas.packed_files import Limits, NotPacked, PackedFiles, open_tar, open_zip
from ..schemas.plain_files import open_plain, read_plain
from ..schemas.values import Own
from .loader import SetManifest, SetText, cache_folder, write_set

# -- Where the files of a public repository are read from: a clone, an archive, a plain folder or an address
#
# Nothing of a repository is executed, and nothing is unpacked: single files are read out.

LARGEST_FILE, LARGEST_ARCHIVE = 5_000_000, 500_000_000
"""Most bytes of a file that is read, and of an archive that is downloaded."""
LIMITS = Limits(files=200_000, bytes=2_000_000_000)
"""What an archive may hold."""
_CONNECT, _SILENT = 20.0, 120.0
"""Seconds until a connection stands, and without a byte."""

Read = Callable[[str], bytes | None]


@dataclass(frozen=True, slots=True)
class Files:
    """Files of a repository at one commit."""

    where: str  # what they are read from, for messages
    read: Read  # path in the repository -> content; None where there is no such file
    commit: str | None = None  # the commit, where the source says so itself
    # path in the repository -> files of the same name elsewhere, where a plain folder may have another layout
    elsewhere: Callable[[str], Iterator[Path]] = lambda _: iter(())

    def having(self, path: str, sha256: str) -> bytes | None:
        """Return the content of a file that has a hash, wherever it lies; else what lies at its path."""
        content = self.read(path)
        if content is not None and sha256_bytes(content) == sha256:
            return content
        others = (_content(other) for other in self.elsewhere(path))
        same = (data for data in others if data is not None and sha256_bytes(data) == sha256)
        return next(same, content)


@contextmanager
def open_files(location: str | Path, commit: str) -> Iterator[Files]:
    """Give the files of a repository."""
    if str(location).startswith(("http://", "https://")):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "archive"
            download(str(location), path)
            with _archive(path, str(location)) as files:
                yield files
        return
    path = Path(location)
    if path.is_dir():
        yield _clone(path, commit) or Files(
            str(path), lambda name: _content(path / name), elsewhere=partial(_named_alike, _index(path))
        )
    elif path.is_file():
        with _archive(path, str(path)) as files:
            yield files
    else:
        raise InputError.one(str(path), what="there is no such file or folder", fix="check the spelling")


def download(address: str, path: Path) -> None:
    import httpx2

    timeout = httpx2.Timeout(_SILENT, connect=_CONNECT)
    try:
        with httpx2.stream("GET", address, follow_redirects=True, timeout=timeout) as reply:
            reply.raise_for_status()
            size = 0
            with path.open("wb") as out:
                for chunk in reply.iter_bytes():
                    size += len(chunk)
                    if size > LARGEST_ARCHIVE:
                        raise OSError(f"more than {LARGEST_ARCHIVE:,} bytes")
                    out.write(chunk)
    except (httpx2.HTTPError, httpx2.InvalidURL, OSError) as error:
        lines = str(error).splitlines() or [type(error).__name__]
        raise MissingRequirement(
            address, what=f"it cannot be downloaded: {lines[0][:200]}",
            fix="fetch the repository on a machine with network, and name the clone or archive with --from",
        ) from error  # fmt: skip


def _clone(folder: Path, commit: str) -> Files | None:
    """Return the files of a clone at a commit.

    None where files lie in the folder itself, at whatever commit.
    """
    bare = (folder / "HEAD").is_file() and (folder / "objects").is_dir()
    if not bare and not (folder / ".git").exists():
        return None
    named = _git(folder, "rev-parse", "--verify", f"{commit}^{{commit}}")
    if named is None:
        if not bare:
            return None
        what = f"git does not find commit {commit} in this bare clone"
        fix = "fetch the commit there, and see that git is installed and the clone is yours"
        raise InputError.one(str(folder), what=what, fix=fix)
    full = named.decode("ascii").strip()
    return Files(str(folder), lambda name: _git(folder, "cat-file", "blob", f"{full}:{name}"), full)


def _git(folder: Path, *arguments: str) -> bytes | None:
    """Return what git says; None where it is not installed, or there is no such thing."""
    command = ["git", "-C", str(folder), "--no-pager", *arguments]
    try:
        ended = run_program(command, allowed_environment(), seconds=60, output="kept")
    except (OSError, ProgramStopped):
        return None
    return ended.output if ended.status == 0 else None


def _index(folder: Path) -> Callable[[], Mapping[str, list[Path]]]:
    """Return what lists the files below a folder by name, when it is first asked."""

    @cache
    def listed() -> Mapping[str, list[Path]]:
        index: dict[str, list[Path]] = {}
        walk = (Path(here, name) for here, _, names in os.walk(folder) for name in sorted(names))
        for path in islice(walk, LIMITS.files):
            index.setdefault(path.name, []).append(path)
        return index

    return listed


def _named_alike(listed: Callable[[], Mapping[str, list[Path]]], path: str) -> Iterator[Path]:
    yield from listed().get(PurePosixPath(path).name, ())


def _content(path: Path) -> bytes | None:
    try:
        return read_plain(path, LARGEST_FILE, follow=True)
    except OSError:
        return None


@contextmanager
def _archive(path: Path, where: str) -> Iterator[Files]:
    """Give the files of an archive; both forms may name their commit, as archives of hosted clones do."""
    try:
        with open_plain(path, follow=True) as file:
            is_zip = file.read(4) == b"PK\x03\x04"
            with (open_zip if is_zip else open_tar)(file, LIMITS) as packed:
                yield Files(where, _packed(packed), _commit(packed.comment))
    except NotPacked as error:
        what = f"this is no zip or tar archive that can be read: {error}"
        raise InputError.one(where, what=what, fix="give a clone, an archive or a folder") from error


def _packed(archive: PackedFiles) -> Read:
    members = {_below(name): name for name in archive.sizes}

    def read(name: str) -> bytes | None:
        member = members.get(name)
        return None if member is None or archive.sizes[member] > LARGEST_FILE else archive.read(member)

    return read


def _below(name: str) -> str:
    """Return a path without the folder that holds everything."""
    return "/".join(PurePosixPath(name).parts[1:])


def _commit(text: str) -> str | None:
    is_one = len(text) == 40 and all(char in "0123456789abcdef" for char in text)
    return text if is_one else None


# -- Fetching official prompts

# -- Texts out of program code: the syntax tree is read, and nothing is executed
#
# A constant is taken as it is. An f-string, and texts that are joined to it, become a template with a named
# slot for each expression. A part that stands under a condition gives two texts, with the part and without.


class CodeText(Own):
    """Where a text stands in a file, and how it becomes a template."""

    file: str  # path in the repository
    function: str | None = None  # function in which it stands; none: anywhere in the file
    variable: str | None = None  # name that it is assigned to
    call: str | None = None  # function or method that it is given to, in place of a variable
    nth: int = Field(default=0, ge=0)  # which of several such places, from 0
    # keys and indices that lead to it inside a list, a dictionary, ``or`` or the arguments of a call
    path: tuple[int | str, ...] = ()
    slots: Mapping[str, str] = Field(default_factory=dict)  # expression -> name of its slot
    positional: tuple[str, ...] = ()  # names of the slots of a text with empty braces, in order
    # what the text without its conditional part is called; none: there is no such part
    otherwise: str | None = None
    data: bool = False  # whether it is a dictionary of texts, kept as JSON

    @property
    def is_code(self) -> bool:
        """Whether it stands in program code; else it is the whole file."""
        return self.variable is not None or self.call is not None


class NotThere(ValueError):
    """The code has no such text, or it is made in another way; the message says what."""


def texts_in(source: str, name: str, location: CodeText) -> Iterator[tuple[str, str, bool]]:
    """Yield name, text, and whether it is a template, of what stands at a place of some code."""
    node = _at(_found(source, location), location.path)
    if location.data:
        try:
            yield name, json.dumps(ast.literal_eval(node), ensure_ascii=False, indent=1), False
        except ValueError as error:
            raise NotThere(f"{ast.unparse(node)[:60]} is no constant") from error
        return
    if location.positional:
        yield name, _named(_constant(node), location.positional), True
        return
    for choice, called in ((True, name), (False, location.otherwise)):
        if called is not None:
            text = _template(node, location.slots, choice=choice)
            yield (called, text, True) if location.slots else (called, _unescaped(text), False)


def _found(source: str, location: CodeText) -> ast.expr:
    tree: ast.AST = ast.parse(source)
    if location.function is not None:
        functions = [node for node in _walk(tree) if isinstance(node, ast.FunctionDef)]
        tree = next((node for node in functions if node.name == location.function), ast.Module([], []))
    values = [value for node in _walk(tree) if (value := _value(node, location)) is not None]
    if len(values) <= location.nth:
        raise NotThere(f"{location.function or 'the file'} has no {location.variable or location.call}")
    return values[location.nth]


def _walk(tree: ast.AST) -> list[ast.AST]:
    """Return all nodes in the order of the text."""
    nodes = [node for node in ast.walk(tree) if hasattr(node, "lineno")]
    return sorted(nodes, key=lambda node: (node.lineno, node.col_offset))  # type: ignore[attr-defined]


def _value(node: ast.AST, location: CodeText) -> ast.expr | None:
    if location.call is not None:
        is_it = isinstance(node, ast.Call) and ast.unparse(node.func) == location.call
        return ast.List(node.args, ast.Load()) if is_it else None  # type: ignore[attr-defined]
    if isinstance(node, ast.Assign | ast.AnnAssign):
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        if any(isinstance(target, ast.Name) and target.id == location.variable for target in targets):
            return node.value
    return None


def _at(node: ast.expr, path: tuple[int | str, ...]) -> ast.expr:
    for step in path:
        inner: ast.expr | None = None
        if isinstance(node, ast.Dict):
            keys = [key.value if isinstance(key, ast.Constant) else None for key in node.keys]
            inner = node.values[keys.index(step)] if step in keys else None
        elif isinstance(step, int) and isinstance(node, ast.List | ast.BoolOp):
            entries = node.elts if isinstance(node, ast.List) else node.values
            inner = entries[step] if step < len(entries) else None
        if inner is None:
            raise NotThere(f"nothing at {step!r} of {ast.unparse(node)[:60]}")
        node = inner
    return node


def _constant(node: ast.expr) -> str:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    raise NotThere(f"{ast.unparse(node)[:60]} is no text")


def _template(node: ast.expr, slots: Mapping[str, str], *, choice: bool) -> str:
    if isinstance(node, ast.JoinedStr):
        return "".join(_template(value, slots, choice=choice) for value in node.values)
    if isinstance(node, ast.Constant):
        return _constant(node).replace("{", "{{").replace("}", "}}")
    if isinstance(node, ast.FormattedValue):
        if node.conversion != -1 or node.format_spec is not None:
            raise NotThere(f"{ast.unparse(node.value)[:60]} is formatted in a way of its own")
        return _slot(node.value, slots)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        return _template(node.left, slots, choice=choice) + _template(node.right, slots, choice=choice)
    if isinstance(node, ast.IfExp):
        return _template(node.body if choice else node.orelse, slots, choice=choice)
    return _slot(node, slots)


def _slot(node: ast.expr, slots: Mapping[str, str]) -> str:
    expression = ast.unparse(node)
    if expression not in slots:
        raise NotThere(f"no slot is known for {expression[:60]}")
    return f"{{{slots[expression]}}}"


def _unescaped(text: str) -> str:
    return text.replace("{{", "{").replace("}}", "}")


def _named(text: str, names: tuple[str, ...]) -> str:
    """Return a text whose empty braces have names."""
    pieces = text.split("{}")
    if len(pieces) != len(names) + 1:
        raise NotThere(f"{len(pieces) - 1} slots where {len(names)} are known")
    filled = [piece + f"{{{name}}}" for piece, name in zip(pieces, names, strict=False)]
    return "".join([*filled, pieces[-1]])


# -- Fetching official prompts

LICENCE = "LICENSE"


class Official(Own):
    """Where the official texts of a protocol stand."""

    title: str  # the system, for people
    repository: str  # its address
    commit: str  # the pinned commit, as short as its authors print it
    licence: str | None  # what it ships; none where it has no licence
    files: Mapping[str, str]  # path -> SHA-256 of every file that is read
    texts: Mapping[str, CodeText] = Field(repr=False)  # name of a text -> where it stands
    # of texts that only a paper has: name -> what finds it in the paper's text, whose lines are joined
    passages: Mapping[str, str] = Field(default_factory=dict)

    @property
    def archive(self) -> str:
        """The address of an archive of the commit."""
        return f"{self.repository}/archive/{self.commit}.tar.gz"


@dataclass(frozen=True, slots=True)
class Fetched:
    """A set that was fetched."""

    folder: Path
    manifest: SetManifest
    where: str

    def as_json(self) -> dict[str, Any]:
        return {"folder": str(self.folder), "from": self.where, **self.manifest.as_json()}

    def lines(self) -> Iterator[str]:
        manifest = self.manifest
        checked = "" if manifest.commit_checked else " (commit not checked, every file by SHA-256)"
        yield f"{manifest.name}: {len(manifest.texts)} texts of commit {manifest.commit}{checked}"
        yield f"licence: {manifest.licence or 'none: ask its authors before you publish any of these texts'}"
        yield from (f"  {name}: {text.source}" for name, text in manifest.texts.items())
        yield f"set: {self.folder}"


@cache
def officials() -> Mapping[str, Official]:
    document = json.loads(files(__package__).joinpath("official.json").read_text(encoding="utf-8"))
    return {name: Official.model_validate(entry) for name, entry in document.items()}


def official(name: str) -> Official:
    known = officials()
    if name not in known:
        raise ConfigError(
            name, what="there are no official prompts of this name", fix=f"use {', '.join(known)}"
        )
    return known[name]


def fetch_prompts(
    name: str,
    location: str | Path | None = None,
    *,
    may_be_unlicensed: Callable[[Official], bool] | None = None,
) -> Fetched:
    """Read official prompts and write them as a set into the user's cache."""
    return fetch_set(name, official(name), location, may_be_unlicensed=may_be_unlicensed)


def fetch_set(
    name: str,
    source: Official,
    location: str | Path | None = None,
    *,
    may_be_unlicensed: Callable[[Official], bool] | None = None,
) -> Fetched:
    """Read texts of any repository in the same way; see :func:`fetch_prompts`."""
    if source.passages:
        return _from_paper(name, source, location)
    if source.licence is None and not (may_be_unlicensed and may_be_unlicensed(source)):
        raise ConfigError(
            f"official prompts of {source.title}",
            what=f"{source.repository} has no licence: its authors did not allow any use of its texts",
            fix="ask the authors; to read the texts for your own runs, repeat with --accept-no-licence",
        )
    with open_files(location or source.archive, source.commit) as repository:
        content = read_pinned(repository, source.files, source.commit, source.repository)
        named = repository.commit
    texts = dict(_texts(source, content))
    manifest = SetManifest(
        name=name,
        repository=source.repository,
        commit=source.commit,
        commit_checked=named is not None,
        licence=source.licence,
        sources=source.files,
        texts={key: about for key, (about, _) in texts.items()},
    )
    folder = cache_folder() / f"{name}@{source.commit}"
    write_set(folder, manifest, {key: text for key, (_, text) in texts.items()}, content.get(LICENCE))
    return Fetched(folder, manifest, repository.where)


def _from_paper(name: str, source: Official, location: str | Path | None) -> Fetched:
    """Read texts out of the text of a paper that the user has, and write them as a set."""
    fix = "give the paper's text, as Markdown or plain text: --from paper.md"
    pdf = "; a PDF becomes one with `pdftotext paper.pdf paper.txt`"
    if location is None:
        what = "its texts stand in the paper alone"
        raise ConfigError(f"official prompts of {source.title}", what=what, fix=fix + pdf)
    content = _content(Path(location))
    if content is None:
        raise InputError.one(str(location), what="it cannot be read", fix=fix)
    if content.startswith(b"%PDF"):
        raise InputError.one(str(location), what="this is a PDF", fix=fix + pdf)
    text = _joined(content.decode("utf-8", "replace"))
    found = {key: re.search(pattern, text) for key, pattern in source.passages.items()}
    if missing := [key for key, match in found.items() if match is None]:
        what = f"it does not have the passages {', '.join(missing)}"
        raise InputError.one(str(location), what=what, fix=f"give the whole paper of {source.title}{pdf}")
    texts = {key: match[1] for key, match in found.items() if match is not None}
    manifest = SetManifest(
        name=name, repository=source.repository, commit=source.commit, licence=source.licence,
        sources={Path(location).name: sha256_bytes(content)},
        texts={
            key: SetText(
                file=f"texts/{key}.txt", sha256=sha256_bytes(part.encode("utf-8")), source=Path(location).name
            )
            for key, part in texts.items()
        },
    )  # fmt: skip
    folder = cache_folder() / f"{name}@{source.commit}"
    write_set(folder, manifest, texts, None)
    return Fetched(folder, manifest, str(location))


def _joined(text: str) -> str:
    """Return a text in one line, without marks of Markdown; words that a line end cut are whole again."""
    plain = re.sub(r"[*`#_]+(?=\s|\w)|(?<=[\w.])[*`]+", "", text)
    return " ".join(re.sub(r"(?<=[a-z])-\s*\n\s*(?=[a-z])", "", plain).split())


def read_pinned(repository: Files, files: Mapping[str, str], commit: str, address: str) -> dict[str, bytes]:
    """Return the content of pinned files, path -> SHA-256; all that are missing or changed are named.

    ``address``: of the public repository, for messages.
    """
    if repository.commit is not None and not repository.commit.startswith(commit):
        what = f"it is of commit {repository.commit[:12]}, and {commit} is pinned"
        raise InputError.one(repository.where, what=what, fix="give a clone, or an archive of that commit")
    content, problems = {}, []
    for path, sha256 in files.items():
        data = repository.having(path, sha256)
        if data is not None and sha256_bytes(data) == sha256:
            content[path] = data
            continue
        what, fix = (
            ("it is not there", f"give a clone or archive of {address} at {commit}")
            if data is None
            else (
                f"this is not the file of commit {commit}: its SHA-256 is another one",
                f"check out {commit} without changes (and without other line ends)",
            )
        )
        problems.append(UserError(f"{repository.where}: {path}", what=what, fix=fix))
    if problems:
        raise InputError(problems)
    return content


def _texts(source: Official, content: Mapping[str, bytes]) -> Iterator[tuple[str, tuple[SetText, str]]]:
    for name, location in source.texts.items():
        text = content[location.file].decode("utf-8")
        if not location.is_code:
            yield _entry(name, text, location, template=False)
            continue
        try:
            for called, part, template in texts_in(text, name, location):
                yield _entry(called, part, location, template=template)
        except NotThere as why:  # the files are those of the commit, so the table is wrong
            raise AssertionError(f"{location.file}: {name}: {why}") from why


def _entry(name: str, text: str, location: CodeText, *, template: bool) -> tuple[str, tuple[SetText, str]]:
    ending = "json" if location.data else "txt"
    stands = ": ".join(filter(None, (location.file, location.function, location.variable or location.call)))
    sha256 = sha256_bytes(text.encode("utf-8"))
    about = SetText(file=f"texts/{name}.{ending}", sha256=sha256, template=template, source=stands)
    return name, (about, text)
