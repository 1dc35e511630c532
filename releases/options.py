"""What a person says about a release: its version, name, licence and authors."""

import re
from dataclasses import dataclass
from pathlib import Path

from ..errors import ConfigError
from ..schemas.canonical import Json

# The grammar of semantic versions (semver.org, version 2.0.0).
_CORE = r"(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)"
_PRE = r"(-(0|[1-9]\d*|\d*[A-Za-z-][0-9A-Za-z-]*)(\.(0|[1-9]\d*|\d*[A-Za-z-][0-9A-Za-z-]*))*)?"
SEMVER = re.compile(rf"{_CORE}{_PRE}(\+[0-9A-Za-z-]+(\.[0-9A-Za-z-]+)*)?", re.ASCII)
AUTO = "auto"
"""Stands for the lowest version that the changes since the version before ask for."""
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,95}", re.ASCII)
_URL = re.compile(r"[a-z][a-z0-9+.-]*:\S+", re.ASCII)


@dataclass(frozen=True, slots=True)
class PackOptions:
    """What a person says about a release.

    Attributes:
        version: semantic version, such as ``0.1.0``, or ``auto``: the next one after the release that it
            follows.
        name: short name, as in a repository address.
        title: full title, for people.
        license: SPDX or Hub id of its licence [as the records, fabula.toml or the earlier release state].
        usual_license: that of records that state none, where ``license`` is None.
        creators: who made the benchmark.
        url: where it is published; without one a URN of name and version stands in.
        contact: how to reach the maintainers.
        citation: a BibTeX entry; without one it is made from name, title, creators and version.
        languages: language tag of the prompts or scripts; stories say their own.
        since: the earlier release, a folder or user/name@tag, whose canary and subsets go on.
        subsets: draw a representative subset: NAME=SIZE or NAME=COUNT/category; with :PARENT from another.
        reviews: summaries of human reviews (Table 16), as JSON Lines; gold subsets need them.
        salt: the salt file of an earlier version, for a run that has none yet.
    """

    version: str
    name: str = "fabula-story-benchmark"
    title: str = "Fabula story benchmark"
    license: str | None = None
    usual_license: str | None = None
    creators: tuple[str, ...] = ("The benchmark authors",)
    url: str | None = None
    contact: str | None = None
    citation: str | None = None
    languages: tuple[str, ...] = ()
    since: Path | None = None
    subsets: tuple[str, ...] = ()
    reviews: Path | None = None
    salt: Path | None = None

    def checked(self) -> "PackOptions":
        """Return the options after checking their form.

        Raises:
            ConfigError: a value has a wrong form.
        """
        if self.version != AUTO:
            _match(
                SEMVER,
                self.version,
                "--version",
                "a semantic version such as 0.1.0",
                "number it MAJOR.MINOR.PATCH",
            )
        elif self.since is None:
            raise ConfigError(
                f"--version {AUTO}",
                what="the next version can only be counted from an earlier release, and none is given",
                fix="name the earlier release with --since, or give the version of a first release, such "
                "as 0.1.0",
            )
        _match(
            _NAME,
            self.name,
            "--name",
            "1 to 96 letters, digits, dots, dashes and underscores, a letter or digit first",
            "choose a name that could be a repository's",
        )
        if self.url is not None:
            _match(
                _URL,
                self.url,
                "--url",
                "an address such as https://example.org/data",
                "give the full address",
            )
        for option, value in (("--title", self.title), *(("--creator", name) for name in self.creators)):
            if not value.strip() or not value.isprintable():
                raise ConfigError(
                    option, what=f"{value!r} is not one line of text", fix="write some text on one line"
                )
        if self.citation is not None and ("```" in self.citation or not self.citation.strip()):
            raise ConfigError(
                "--citation",
                what=f"{self.citation!r} is not a BibTeX entry",
                fix="give a BibTeX entry, or leave it out",
            )
        if not self.creators:
            raise ConfigError("--creator", what="no creator is given", fix="name who made it")
        return self

    @property
    def address(self) -> str:
        """Where the release is published, or a URN that names it."""
        return self.url or f"urn:fabula:release:{self.name}:{self.version}"

    @property
    def reference(self) -> str:
        """The BibTeX entry that the card shows."""
        if self.citation is not None:
            return self.citation.strip()
        key = re.sub(r"[^a-z0-9]+", "_", self.name.casefold())
        lines = {
            "title": self.title,
            "author": " and ".join(f"{{{name}}}" for name in self.creators),
            "howpublished": self.address,
            "note": f"Version {self.version}",
        }
        body = ",\n".join(f"  {field} = {{{value}}}" for field, value in lines.items())
        return f"@misc{{{key},\n{body}\n}}"

    def as_json(self) -> dict[str, Json]:
        """Return what ``release.json`` keeps of the options."""
        return {
            "name": self.name,
            "title": self.title,
            "creators": list(self.creators),
            "url": self.address,
            "contact": self.contact,
            "citation": self.reference,
        }


def _match(pattern: re.Pattern[str], value: str, option: str, expected: str, fix: str) -> None:
    if not pattern.fullmatch(value):
        raise ConfigError(option, expected=expected, found=repr(value), fix=fix)
