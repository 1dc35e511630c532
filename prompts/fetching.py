"""Fetching official prompts: from the public repository at a pinned commit into a set of the user's cache.

No official text is part of Fabula. ``official.json`` says where each stands, and which files at which commit.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from pydantic import Field

from ..errors import ConfigError, InputError, UserError
from ..schemas.canonical import sha256_bytes
from ..schemas.values import Own
from .code_texts import CodeText, NotThere, texts_in
from .sets import SetManifest, SetText, cache_folder, write_set
from .sources import Files, open_files

LICENCE = "LICENSE"


class Official(Own):
    """Where the official texts of a protocol stand."""

    title: str  # the system, for people
    repository: str  # its address
    commit: str  # the pinned commit, as short as its authors print it
    licence: str | None  # what it ships; none where it has no licence
    files: Mapping[str, str]  # path -> SHA-256 of every file that is read
    texts: Mapping[str, CodeText] = Field(repr=False)  # name of a text -> where it stands

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
        """Return it as plain JSON."""
        return {"folder": str(self.folder), "from": self.where, **self.manifest.as_json()}

    def lines(self) -> Iterator[str]:
        """Yield it as lines for people."""
        manifest = self.manifest
        checked = "" if manifest.commit_checked else " (commit not checked, every file by SHA-256)"
        yield f"{manifest.name}: {len(manifest.texts)} texts of commit {manifest.commit}{checked}"
        yield f"licence: {manifest.licence or 'none: ask its authors before you publish any of these texts'}"
        yield from (f"  {name}: {text.source}" for name, text in manifest.texts.items())
        yield f"set: {self.folder}"


@cache
def officials() -> Mapping[str, Official]:
    """Return the official sets by name."""
    document = json.loads(files(__package__).joinpath("official.json").read_text(encoding="utf-8"))
    return {name: Official.model_validate(entry) for name, entry in document.items()}


def official(name: str) -> Official:
    """Return where an official set comes from."""
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
    if source.licence is None and not (may_be_unlicensed and may_be_unlicensed(source)):
        raise ConfigError(
            f"official prompts of {source.title}",
            what=f"{source.repository} has no licence: its authors did not allow any use of its texts",
            fix="ask the authors; to read the texts for your own runs, repeat with --accept-no-licence",
        )
    with open_files(location or source.archive, source.commit) as repository:
        content = _checked(source, repository)
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


def _checked(source: Official, repository: Files) -> dict[str, bytes]:
    """Return the content of every file."""
    if repository.commit is not None and not repository.commit.startswith(source.commit):
        what = f"it is of commit {repository.commit[:12]}, and {source.commit} is pinned"
        problem = UserError(repository.where, what=what, fix="give a clone, or an archive of that commit")
        raise InputError([problem])
    content, problems = {}, []
    for path, sha256 in source.files.items():
        data = repository.read(path)
        if data is None:
            problems.append(
                UserError(
                    f"{repository.where}: {path}", what="it is not there",
                    fix=f"give a clone or archive of {source.repository} at {source.commit}",
                )
            )  # fmt: skip
        elif sha256_bytes(data) != sha256:
            problems.append(
                UserError(
                    f"{repository.where}: {path}",
                    what=f"this is not the file of commit {source.commit}: its SHA-256 is another one",
                    fix=f"check out {source.commit} without changes (and without other line ends)",
                )
            )
        else:
            content[path] = data
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
