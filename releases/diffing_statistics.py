"""The statistics of two releases, number by number."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from ..schemas.canonical import Json
from .changes import path_text

SHARES = ("share", "target_share", "deviation")
"""Numbers that follow from counts: kept in JSON, left out where people read."""


@dataclass(frozen=True, slots=True)
class Shift:
    """A number that differs.

    Attributes:
        path: where it stands in ``statistics.json``.
        before: its old value; None where there was none.
        after: its new value; None where there is none any more.
    """

    path: str
    before: float | None
    after: float | None

    @property
    def is_count(self) -> bool:
        """Whether it is a count, and not a share that follows from counts."""
        return not self.path.endswith(tuple(f".{name}" for name in SHARES))

    def as_json(self) -> dict[str, Json]:
        """Return it as plain JSON."""
        return {"path": self.path, "before": self.before, "after": self.after}


def shifts_between(old: Mapping[str, Json], new: Mapping[str, Json]) -> tuple[Shift, ...]:
    """Return the numbers that differ, in the order of the old statistics, then of the new ones."""
    before, after = dict(_numbers(old, ())), dict(_numbers(new, ()))
    return tuple(
        Shift(path, before.get(path), after.get(path))
        for path in {**before, **after}
        if before.get(path) != after.get(path)
    )


def _numbers(value: Json, steps: tuple[str | int, ...]) -> Iterator[tuple[str, float]]:
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from _numbers(inner, (*steps, str(name)))
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield path_text(steps), value
