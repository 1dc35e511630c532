"""Drawing a subset that is spread as the whole is: the same choice on every machine, and again later.

Each story counts in every field: its narrative type, moral label, the pair of both, source, language, split,
and its questions by type. A subset's distance from the whole is the sum over all values of the squared
difference between its count and the whole's share of it, in units of that share and one more (Pearson's
statistic, steadied where a share is small); pairs, most of which have a share of less than one story, weigh a
tenth, or their rounding would outweigh the fields. Stories are taken one after the other, each the one that
leaves the smallest distance; then single stories are exchanged as long as that helps. All sums are of
integers, so no machine rounds them otherwise. Stories of another kind of data set may count in other fields,
as shot scripts do (:mod:`.shots`), if all of them have the same ones in the same order.
"""

import hashlib
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from .closeness import Traits

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Numbers = NDArray[np.int64]

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

    columns: "Numbers"  # story x field -> column of its value
    questions: "Numbers"  # story x question type -> number of questions; their columns come after the others
    # column -> weight of a squared difference; ``away``: count minus target, times the scale
    weights: "Numbers"
    away: "Numbers"
    # story -> the number of the quota that it counts in; ``room``: quota -> how many it lacks
    groups: "Numbers"
    room: "Numbers"
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
        """Choose a story."""
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

    def _costs(self, columns: "Numbers", questions: "Numbers", sign: int) -> "Numbers":
        """Return by how much taking (sign 1) or dropping (-1) each of these stories changes the distance."""
        cost = self.weights * (2 * sign * self.away + _SCALE)
        at = len(self.weights) - self.questions.shape[1]
        by_type = 2 * sign * self.weights[at:] * self.away[at:]
        squares = _SCALE * self.weights[at:]
        changes: Numbers = cost[columns].sum(axis=1) + questions @ by_type + questions**2 @ squares
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
