"""Subsets: how they are drawn, the same on every machine, and asked for by name."""

import hashlib
import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import ConfigError, InputError
from ..schemas.canonical import Json
from ..schemas.paths import JSONL_FILES, SUBSETS, VOTE_FILES
from ..schemas.plain_files import json_lines, read_json
from ..schemas.text import tallied

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


# -- What subsets a person asks for, as ``strict=50/category:even``, and those that a release has

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
    return InputError.one(
        str(folder / SUBSETS),
        expected="the subsets of a packed release",
        found=f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}",
        fix="fetch or pack that release again",
    )


# -- Drawing a subset that is spread as the whole is: the same choice on every machine, and again later
#
# Each story counts in every field: its narrative type, moral label, the pair of both, source, language,
# split, and its questions by type. A subset's distance from the whole is the sum over all values of the
# squared difference between its count and the whole's share of it, in units of that share and one more
# (Pearson's statistic, steadied where a share is small); pairs, most of which have a share of less than one
# story, weigh a tenth, or their rounding would outweigh the fields. Stories are taken one after the other,
# each the one that leaves the smallest distance; then single stories are exchanged as long as that helps.
# All sums are of integers, so no machine rounds them otherwise. Stories of another kind of data set may
# count in other fields, as shot scripts do (:mod:`.shots`), if all of them have the same ones in the same
# order.

# -- How close a subset is to the whole: distributions side by side (as ViStoryBench, Table S2, has scores)

DIGITS = 6


@dataclass(frozen=True, slots=True)
class Traits:
    """What is known about one story where subsets are drawn and compared."""

    id: str  # story id
    # field -> its value, the category first; all stories have the same fields in the same order
    kinds: Mapping[str, str]
    parts_field: str  # the field of its parts, such as the type of its questions
    parts: Mapping[str, int]  # value of that field -> how many of its parts have it
    # what is counted -> how many. Nothing is drawn by it: it shows how close a subset is elsewhere.
    sizes: Mapping[str, int]
    unclear: bool = False  # whether it is open if some question of it can be answered

    @property
    def category(self) -> str:
        """The value of its first field, such as its narrative type."""
        return next(iter(self.kinds.values()))


Spread = dict[str, Counter[str]]
"""Field -> value -> how many stories have it; of the field of parts, how many parts."""


def spread(stories: Iterable[Traits]) -> Spread:
    counts: Spread = {}
    for story in stories:
        for name, value in story.kinds.items():
            counts.setdefault(name, Counter())[value] += 1
        counts.setdefault(story.parts_field, Counter()).update(story.parts)
    return counts


def closeness(whole: Sequence[Traits], part: Sequence[Traits]) -> dict[str, Json]:
    """Return how far the distributions of a subset are from those of the whole.

    ``part``: those of the subset; at least one.

    Returned: ``fields``: see :func:`fields_closeness`. ``means``: per story, each of their sizes in both, and
    the ``difference`` relative to the whole.
    """
    return {"fields": fields_closeness(spread(whole), spread(part)), "means": _means(whole, part)}


def fields_closeness(full: Spread, own: Spread) -> dict[str, Json]:
    """Return field -> how far its distribution in a subset is from that in the whole.

    Each has the ``values`` with count and share in both and the difference of the shares;
    ``total_variation``, half the sum of the absolute differences (0: equal, 1: nothing in common);
    ``chi_square``, Pearson's statistic of the subset's counts against the whole's shares, and its
    ``degrees_of_freedom``. There is no p-value: nothing was drawn at random.
    """
    return {name: _field_closeness(full[name], own[name]) for name in own}


def _field_closeness(full: Counter[str], own: Counter[str]) -> dict[str, Json]:
    total, size = full.total(), own.total()
    # Whole numbers as long as possible: half the sum of |k/n - K/N|, and the sum of (k - nK/N)^2 / (nK/N).
    apart = {value: own[value] * total - size * full[value] for value in sorted(full)}
    scale = total * size
    chi_square = sum(difference**2 / (scale * full[value]) for value, difference in apart.items() if scale)
    return {
        "values": {value: _row(full[value], total, own[value], size) for value in apart},
        "total_variation": round(sum(map(abs, apart.values())) / (2 * scale), DIGITS) if scale else 0.0,
        "chi_square": round(chi_square, DIGITS) if scale else 0.0,
        "degrees_of_freedom": max(0, len(full) - 1),
    }


def _row(full: int, total: int, own: int, size: int) -> dict[str, Json]:
    shares = (full / total if total else 0.0, own / size if size else 0.0)
    return {
        "full": full,
        "full_share": round(shares[0], DIGITS),
        "subset": own,
        "subset_share": round(shares[1], DIGITS),
        "difference": round(shares[1] - shares[0], DIGITS),
    }


def mean_size(stories: Sequence[Traits], name: str) -> float:
    """Return how many of something a story has on average, unrounded."""
    return sum(story.sizes[name] for story in stories) / len(stories)


def _means(whole: Sequence[Traits], part: Sequence[Traits]) -> dict[str, Json]:
    means: dict[str, Json] = {}
    for name in dict.fromkeys(chain.from_iterable(story.sizes for story in part)):
        full, own = mean_size(whole, name), mean_size(part, name)
        difference = round(own / full - 1, DIGITS) if full else 0.0
        means[name] = {"full": round(full, DIGITS), "subset": round(own, DIGITS), "difference": difference}
    return means


# -- Drawing

_SCALE = 1_000
_WEIGHT = 1_000_000
_ROUNDS = 5
_PAIR = 10
_AND = "pair="
ALL = "all"


def draw(
    name: str,
    everyone: Sequence[Traits],
    eligible: Collection[str],
    quotas: Mapping[str, int],
    keep: Collection[str] = (),
) -> tuple[str, ...]:
    """Return the ids of the stories that a subset consists of, sorted.

    ``quotas``: category -> number of stories, or ``{"all": number}``.
    """
    groups = {story.id: ALL if ALL in quotas else story.category for story in everyone}
    pool = [story for story in everyone if story.id in eligible and groups[story.id] in quotas]
    pool.sort(key=lambda story: hashlib.sha256(f"{name}\n{story.id}".encode()).digest())
    table = _Table.of(pool, everyone, groups, quotas)
    for number, story in enumerate(pool):
        if story.id in keep:
            table.take(number)
    while (row := table.overfull()) is not None:
        table.drop(row)
    fixed = set(table.chosen)
    while (row := table.best()) is not None:
        table.take(row)
    for _ in range(_ROUNDS):
        if not _exchange(table, [row for row in table.chosen if row not in fixed]):
            break
    return tuple(sorted(pool[row].id for row in table.chosen))


def _exchange(table: "_Table", rows: Sequence[int]) -> bool:
    """Put a better story in the place of each, where there is one; return whether there was any."""
    better = False
    for row in rows:
        table.drop(row)
        other = table.best(instead_of=row)
        table.take(row if other is None else other)
        better |= other is not None
    return better


@dataclass
class _Table:
    """The stories that may be drawn, as columns of numbers, and the distance of those chosen."""

    columns: "NDArray[np.int64]"  # story x field -> column of its value
    # story x question type -> number of questions; their columns come after the others
    questions: "NDArray[np.int64]"
    # column -> weight of a squared difference; ``away``: count minus target, times the scale
    weights: "NDArray[np.int64]"
    away: "NDArray[np.int64]"
    # story -> the number of the quota that it counts in; ``room``: quota -> how many it lacks
    groups: "NDArray[np.int64]"
    room: "NDArray[np.int64]"
    free: "NDArray[np.bool_]"
    # the stories chosen, in order; ``free``: story -> whether it is not chosen
    chosen: dict[int, None] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        pool: Sequence[Traits],
        everyone: Sequence[Traits],
        groups: Mapping[str, str],
        quotas: Mapping[str, int],
    ) -> "_Table":
        import numpy as np

        values = sorted({key for story in everyone for key in _keys(story)})
        types = sorted({name for story in everyone for name in story.parts})
        column_of = {key: number for number, key in enumerate((*values, *types))}
        target = _targets(everyone, groups, quotas, column_of)
        questions = [[story.parts.get(name, 0) for name in types] for story in pool]
        columns = [[column_of[key] for key in _keys(story)] for story in pool]
        numbers = {group: number for number, group in enumerate(quotas)}
        fields = len(_keys(everyone[0])) if everyone else 0
        return cls(
            columns=np.array(columns, dtype=np.int64).reshape(len(pool), fields),
            questions=np.array(questions, dtype=np.int64).reshape(len(pool), len(types)),
            weights=np.array(
                [
                    _WEIGHT * _SCALE // (wanted + _SCALE) // (_PAIR if key.startswith(_AND) else 1)
                    for key, wanted in zip(column_of, target, strict=True)
                ],
                dtype=np.int64,
            ),
            away=-np.array(target, dtype=np.int64),
            groups=np.array([numbers[groups[story.id]] for story in pool], dtype=np.int64),
            room=np.array(list(quotas.values()), dtype=np.int64),
            free=np.ones(len(pool), dtype=bool),
        )

    def take(self, row: int) -> None:
        self._count(row, 1)
        self.chosen[row] = None

    def drop(self, row: int) -> None:
        """Take a story back."""
        self._count(row, -1)
        del self.chosen[row]

    def best(self, instead_of: int | None = None) -> int | None:
        """Return the story whose choice leaves the smallest distance; None where none can be taken."""
        import numpy as np

        can = self.free & (self.room > 0)[self.groups]
        if not can.any():
            return None
        costs = np.where(can, self._costs(self.columns, self.questions, 1), np.iinfo(np.int64).max)
        row = int(costs.argmin())
        return None if instead_of is not None and costs[row] >= costs[instead_of] else row

    def overfull(self) -> int | None:
        """Return the chosen story of a quota with too many whose loss leaves the smallest distance."""
        rows = [row for row in self.chosen if self.room[self.groups[row]] < 0]
        if not rows:
            return None
        return rows[int(self._costs(self.columns[rows], self.questions[rows], -1).argmin())]

    def _costs(
        self, columns: "NDArray[np.int64]", questions: "NDArray[np.int64]", sign: int
    ) -> "NDArray[np.int64]":
        """Return by how much taking (sign 1) or dropping (-1) each of these stories changes the distance."""
        cost = self.weights * (2 * sign * self.away + _SCALE)
        at = len(self.weights) - self.questions.shape[1]
        by_type = 2 * sign * self.weights[at:] * self.away[at:]
        squares = _SCALE * self.weights[at:]
        changes: NDArray[np.int64] = cost[columns].sum(axis=1) + questions @ by_type + questions**2 @ squares
        return changes

    def _count(self, row: int, sign: int) -> None:
        self.room[self.groups[row]] -= sign
        self.free[row] = sign < 0
        self.away[self.columns[row]] += sign * _SCALE
        self.away[len(self.away) - self.questions.shape[1] :] += sign * _SCALE * self.questions[row]


def _targets(
    everyone: Sequence[Traits],
    groups: Mapping[str, str],
    quotas: Mapping[str, int],
    column_of: Mapping[str, int],
) -> list[int]:
    """Return column -> how many a subset should have of it, times the scale."""
    sizes = Counter(groups[story.id] for story in everyone)
    sums: dict[str, Counter[int]] = {group: Counter() for group in quotas}
    for story in everyone:
        if groups[story.id] in quotas:
            counts = sums[groups[story.id]]
            counts.update(column_of[key] for key in _keys(story))
            counts.update({column_of[name]: number for name, number in story.parts.items()})
    return [
        sum(quota * sums[group][column] * _SCALE // sizes[group] for group, quota in quotas.items())
        for column in range(len(column_of))
    ]


def _keys(story: Traits) -> list[str]:
    """Return the values that a story counts in, each with its field's number."""
    values = list(story.kinds.values())
    kinds = (f"{number}={value}" for number, value in enumerate(values))
    return [*kinds, f"{_AND}{values[0]}/{values[1]}"]
