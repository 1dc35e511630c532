"""Sets of texts in the words of others, for judges: folders with a manifest and a hash of each text.

A set is a folder with ``set.json`` and its texts. Official sets are fetched by :mod:`.fetching` and lie
in the user's cache; any folder of the same form is a set, too.
"""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from string import Formatter
from typing import Literal

from pydantic import Field, ValidationError

from ..errors import ConfigError, InputError, MissingRequirement, UserError
from ..schemas.canonical import Json, canonical_text, sha256_bytes, sha256_file, write_atomic
from ..schemas.values import Own

MANIFEST = "set.json"
_NAME = r"^[a-z][a-z0-9_-]{0,63}$"
_LONGEST = 1_000_000
"""Most bytes of a text."""


class TextSet(Own):
    """The texts of a set, as a stage's settings hold them: a run needs neither folder nor cache."""

    name: str = Field(pattern=_NAME)  # such as ``storyeval``
    commit: str = Field(pattern=r"^[0-9A-Za-z._-]{1,64}$")  # of the repository that the texts come from
    texts: Mapping[str, str]  # name -> text
    # names of the texts that are templates: ``{slot}`` stands for a value, ``{{`` for a brace. Every other
    # text is used as it is.
    templates: tuple[str, ...] = ()

    def text(self, name: str) -> str:
        """Return a text as it is."""
        if name not in self.texts:
            raise ConfigError(
                f"prompt set {self.name}", what=f"it has no text {name!r}",
                fix=f"fetch the set again; it has {', '.join(sorted(self.texts))}",
            )  # fmt: skip
        return self.texts[name]

    def fill(self, name: str, slots: Mapping[str, object]) -> str:
        """Return a template with its slots filled, each value as ``str`` gives it.

        Other texts as they are.
        """
        text = self.text(name)
        if name not in self.templates:
            return text
        filled = []
        for literal, slot, _, _ in Formatter().parse(text):
            filled.append(literal)
            if slot is not None:
                if slot not in slots:
                    raise ConfigError(
                        f"prompt set {self.name}: {name}", what=f"nothing fills its slot {{{slot}}}",
                        fix=f"use the slots {', '.join(sorted(slots))}; write a brace twice",
                    )  # fmt: skip
                filled.append(str(slots[slot]))
        return "".join(filled)

    def data(self, name: str) -> Json:
        """Return a text that holds JSON, read."""
        return json.loads(self.text(name))

    def label(self, name: str) -> str:
        """Return a text as it stands in provenance: ``set/name@commit#`` and 12 digits of its SHA-256."""
        return f"{self.name}/{name}@{self.commit}#{sha256_bytes(self.text(name).encode())[:12]}"

    def labels(self) -> dict[str, str]:
        """Return ``set/name`` -> label of every text, sorted."""
        return {f"{self.name}/{name}": self.label(name) for name in sorted(self.texts)}


class SetText(Own):
    """What a manifest says of a text."""

    file: str
    sha256: str
    template: bool = False
    source: str = ""


class SetManifest(Own):
    """``set.json``: where a set comes from, and what it holds."""

    form: Literal["fabula prompt set 1"] = "fabula prompt set 1"
    name: str = Field(pattern=_NAME)
    repository: str = ""
    commit: str
    commit_checked: bool = False
    licence: str | None = None
    sources: Mapping[str, str] = Field(default_factory=dict, description="File it was read from -> SHA-256.")
    texts: Mapping[str, SetText]


def cache_folder() -> Path:
    """Return the folder of the user's cache in which official sets lie."""
    from platformdirs import user_cache_path

    return user_cache_path("fabula") / "prompts"


def read_set(folder: Path) -> TextSet:
    """Return the texts of a set on disk."""
    manifest = read_set_manifest(folder)
    texts, problems = {}, []
    for name, text in manifest.texts.items():
        path = folder / text.file
        if ".." in Path(text.file).parts or Path(text.file).is_absolute():
            problems.append(UserError(str(path), what="it lies outside the set", fix="fetch the set again"))
        elif not path.is_file() or path.stat().st_size > _LONGEST:
            problems.append(UserError(str(path), what="it is not there", fix="fetch the set again"))
        elif sha256_file(path) != text.sha256:
            problems.append(
                UserError(
                    str(path), what="it was changed after the set was made",
                    fix=f"fetch the set again; for a wording of yours give the set another name, and"
                    f" the text its new SHA-256, in {MANIFEST}",
                )
            )  # fmt: skip
        else:
            texts[name] = path.read_bytes().decode("utf-8")
    if problems:
        raise InputError(problems)
    templates = tuple(sorted(name for name, text in manifest.texts.items() if text.template))
    return TextSet(name=manifest.name, commit=manifest.commit, texts=texts, templates=templates)


def read_set_manifest(folder: Path) -> SetManifest:
    """Return what the manifest of a set says."""
    path = folder / MANIFEST
    try:
        return SetManifest.model_validate(json.loads(path.read_bytes()))
    except (OSError, ValueError, ValidationError) as error:
        what = "there is none" if not path.is_file() else f"this is no manifest of a set: {_line(error)}"
        fix = "give a folder that `fabula prompts fetch` wrote, or one of the same form"
        raise InputError([UserError(str(path), what=what, fix=fix)]) from error


def write_set(folder: Path, manifest: SetManifest, texts: Mapping[str, str], licence: bytes | None) -> None:
    """Write a set; the manifest comes last, so that half a set is none."""
    (folder / "texts").mkdir(parents=True, exist_ok=True)
    for name, text in manifest.texts.items():
        write_atomic(folder / text.file, [texts[name].encode("utf-8")])
    if licence is not None:
        write_atomic(folder / "LICENSE", [licence])
    write_atomic(folder / MANIFEST, [canonical_text(manifest.as_json()).encode("utf-8")])


def official_set(name: str, commit: str) -> TextSet:
    """Return an official set of the user's cache."""
    folder = cache_folder() / f"{name}@{commit}"
    if not (folder / MANIFEST).is_file():
        raise MissingRequirement(
            f"official prompts of {name}", what=f"commit {commit} is not in {cache_folder()}",
            fix=f"fetch them once: fabula prompts fetch {name}, or offline with --from CLONE",
        )  # fmt: skip
    return read_set(folder)


def check_texts(texts: TextSet, needed: Iterable[str], where: str) -> None:
    """Check that a set has the texts that a protocol asks with."""
    missing = [name for name in needed if name not in texts.texts]
    if missing:
        raise ConfigError(
            where, what=f"the set {texts.name} lacks {', '.join(missing)}",
            fix="give a set for this kind of evaluation",
        )  # fmt: skip


def _line(error: Exception) -> str:
    return " ".join(str(error).split())[:200]
