"""What subsets a person asks for, as ``strict=50/category:even``, and those that a release has."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from ...errors import ConfigError, InputError, UserError
from ...schemas.layout import JSONL_FILES, SUBSETS, VOTE_FILES
from ...schemas.plain_files import json_lines, read_json
from ...schemas.text import tallied

OPTION = "--subset"
DROPPED = "none"
FOLDER = "subsets"
"""Where the files of subsets lie that the paper does not name."""

_FORM = re.compile(r"(\d{1,9})(%)?(/category)?(?::(.+))?", re.ASCII)
_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}", re.ASCII)
_RESERVED = {name.removesuffix(".jsonl") for name in (*JSONL_FILES, VOTE_FILES[0])}
_RESERVED |= {DROPPED, "full", "votes"}
GOLD = ("human_gold=20%/category", "strict_gold=8%/category:human_gold")
"""The gold subsets of the paper (Table 20): 1,000 and 400 of 5,000 stories, evenly over narrative types."""


@dataclass(frozen=True, slots=True)
class SubsetRequest:
    """A subset that is asked for."""

    name: str  # its name, and that of its file
    count: int  # how many stories, in all or per category; of a share, how many per cent of all stories
    # whether the count is that of each narrative type; a share is spread evenly over them
    per_category: bool = False
    parent: str | None = None  # the subset that it is drawn from; None for the whole public part
    share: bool = False  # whether the count is a share; it is taken as far as there are stories for it

    @property
    def asked(self) -> str:
        """The request without its name, as it was typed."""
        quota = f"{'%' if self.share else ''}{'/category' if self.per_category else ''}"
        return f"{self.count}{quota}{'' if self.parent is None else f':{self.parent}'}"

    @property
    def file(self) -> str:
        """The path of its file in a release."""
        return subset_file(self.name)

    @property
    def gold(self) -> bool:
        """Whether its name claims that people reviewed its records."""
        return "gold" in self.name

    @property
    def strict(self) -> bool:
        """Whether its name claims that nothing about its records is in doubt."""
        return self.gold and "strict" in self.name

    @property
    def words(self) -> str:
        """How many stories are asked for, in words."""
        if self.share:
            return f"{self.count} % of all stories{', evenly over narrative types' * self.per_category}"
        return f"{self.count} of each narrative type" if self.per_category else tallied(self.count, "stories")


def subset_file(name: str) -> str:
    """Return the path of a subset's file: at the top for those that Table 23 names, else in a folder."""
    file = f"{name}.jsonl"
    return file if file in VOTE_FILES else f"{FOLDER}/{file}"


def requested(texts: Iterable[str], earlier: Iterable[SubsetRequest] = ()) -> list[SubsetRequest]:
    """Return the subsets to draw, each after the one that it is drawn from."""
    chosen = {request.name: request for request in earlier}
    seen: set[str] = set()
    for text in texts:
        name, request = _parsed(text)
        if name in seen:
            raise _error(text, "each subset once", f"{name} twice", "ask for it once")
        seen.add(name)
        if request is not None:
            chosen[name] = request
        elif chosen.pop(name, None) is None:
            raise _error(text, "a subset of the version before", "no such subset", "leave the option out")
    return _parents_first(chosen.values())


def _parsed(text: str) -> tuple[str, SubsetRequest | None]:
    name, equals, asked = text.partition("=")
    if not equals or not _NAME.fullmatch(name):
        raise _error(
            text,
            "NAME=SIZE, NAME=COUNT/category or NAME=COUNT/category:PARENT",
            "no name of a-z, 0-9, _ and - before a =",
            f"write it like {OPTION} lite=200",
        )
    if name in _RESERVED:
        raise _error(text, "a name that no file of a release has", name, "choose another name")
    if asked == DROPPED:
        return name, None
    match = _FORM.fullmatch(asked)
    if match is None or int(match[1]) == 0 or (match[4] is not None and not _NAME.fullmatch(match[4])):
        raise _error(
            text,
            "a size such as 200, 125/category, 20%/category or 50/category:PARENT, of at least 1",
            repr(asked),
            f"write it like {OPTION} lite=200",
        )
    count, share = int(match[1]), match[2] is not None
    if share and count > 100:
        raise _error(text, "a share of 1 to 100 %", repr(asked), f"write it like {OPTION} lite=10%")
    return name, SubsetRequest(name, count, match[3] is not None, match[4], share)


def _parents_first(requests: Iterable[SubsetRequest]) -> list[SubsetRequest]:
    waiting = {request.name: request for request in requests}
    known = set(waiting)
    ordered: list[SubsetRequest] = []
    while waiting:
        drawn = {request.name for request in ordered}
        ready = [request for request in waiting.values() if request.parent is None or request.parent in drawn]
        if not ready:
            raise _unordered(list(waiting.values()), known)
        ordered += ready
        for request in ready:
            del waiting[request.name]
    return ordered


def _unordered(requests: Sequence[SubsetRequest], known: set[str]) -> ConfigError:
    orphan = next((request for request in requests if request.parent not in known), None)
    if orphan is None:
        names = " and ".join(sorted(request.name for request in requests))
        return ConfigError(
            f"{OPTION} {names}", what="they are drawn from one another in a circle",
            fix="leave :PARENT out for one of them",
        )  # fmt: skip
    there = ", ".join(sorted(known - {orphan.name})) or "no other subset"
    return _error(
        f"{orphan.name}={orphan.asked}",
        "a parent that is a subset of this release too",
        f"{orphan.parent}; asked for: {there}",
        f"ask for it too, as {OPTION} {orphan.parent}=SIZE",
    )


def _error(text: str, expected: str, found: str, fix: str) -> ConfigError:
    return ConfigError(f"{OPTION} {text}", expected=expected, found=found, fix=fix)


def read_subsets(folder: Path) -> dict[str, tuple[SubsetRequest, tuple[str, ...]]]:
    """Return name -> request and members of the subsets of a release."""
    try:
        document = read_json(folder / SUBSETS)
        texts = [f"{entry['name']}={entry['asked']}" for entry in document["subsets"]]
        return {request.name: (request, subset_members(folder, request.file)) for request in requested(texts)}
    except FileNotFoundError as error:
        if error.filename == str(folder / SUBSETS):
            return {}
        raise _unreadable(folder, error) from error
    except (OSError, ValueError, LookupError, TypeError, ConfigError) as error:
        raise _unreadable(folder, error) from error


def subset_members(folder: Path, file: str) -> tuple[str, ...]:
    """Return the story ids that the file of a subset lists, in its order."""
    return tuple(str(row["story_id"]) for row in json_lines(folder / file))


def _unreadable(folder: Path, error: Exception) -> InputError:
    problem = UserError(
        str(folder / SUBSETS),
        expected="the subsets of a packed release",
        found=f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}",
        fix="fetch or pack that release again",
    )
    return InputError([problem])
