"""``run spend``: what a run has cost so far, by stage, model, prompt or item. Reads only."""

import math
from collections.abc import Mapping
from contextlib import closing
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from ..errors import ConfigError
from . import journal_file
from .calls import rows_of
from .journal import NAME as JOURNAL

_FIRST = """
(SELECT request, sample, min(seq) AS seq FROM asks JOIN results ON results.key = asks.result
 GROUP BY request, sample) f USING (request, sample) LEFT JOIN results r ON r.seq = f.seq
"""
BY: Mapping[str, tuple[str, str, str]] = {
    "stage": ("c.stage", "", "s.stage"),
    "model": ("c.model", "", "s.model"),
    "prompt": ("{prompt}", "", "NULL"),
    "item": ("r.item", f"LEFT JOIN {_FIRST}", "NULL"),
}
"""What money is shown by -> what a call belongs to, the tables that say so, the same of a lost request."""
OTHERS = {
    "prompt": "not recorded",
    "item": "no result yet",
}
"""What calls belong to of which the journal does not say it."""
LOST = "without a reply"

_ANSWERED = """
SELECT {of}, sum(attempts > 0), coalesce(sum(CASE WHEN attempts > 0 THEN input_tokens END), 0),
    coalesce(sum(CASE WHEN attempts > 0 THEN {cached_tokens} END), 0),
    coalesce(sum(CASE WHEN attempts > 0 THEN {written_tokens} END), 0),
    coalesce(sum(CASE WHEN attempts > 0 THEN output_tokens END), 0), coalesce(exact_sum(cost), 0.0),
    sum(cost IS NULL AND attempts > 0)
FROM calls c {tables} GROUP BY 1
"""
_LOST = "SELECT {of}, count(*), coalesce(exact_sum(bound), 0.0) FROM sent s GROUP BY 1"


@dataclass(frozen=True, slots=True)
class Line:
    """What one stage, model, prompt or item has cost."""

    name: str  # of it; a prompt as ``id@version#hash``
    calls: int = 0  # answered calls
    input_tokens: int = 0  # as the service counted them
    cached_tokens: int = 0  # of these, those that the service had kept
    written_tokens: int = 0  # of these, those that it kept and charged for
    output_tokens: int = 0  # of the replies
    cost: float = 0.0  # USD of calls whose price is known
    unpriced: int = 0  # calls whose price is not
    lost: int = 0  # requests without a reply that may have been charged
    lost_cost: float = 0.0  # USD that those cost at most

    @property
    def most(self) -> float:
        """USD at most: what was charged, and what may have been."""
        return self.cost + self.lost_cost


@dataclass(frozen=True, slots=True)
class Spend:
    """What a run has cost."""

    by: str  # what the lines are: a key of :data:`BY`
    rows: tuple[Line, ...]  # the dearest first

    @property
    def spent(self) -> float:
        """USD in all, requests without a reply at the most that they cost."""
        return math.fsum(value for line in self.rows for value in (line.cost, line.lost_cost))

    def as_json(self) -> dict[str, Any]:
        """Return it as plain JSON."""
        return {"by": self.by, "spent": self.spent, "rows": [asdict(line) for line in self.rows]}

    def lines(self) -> list[str]:
        """Return it as lines for people."""
        width = max(len(self.by), 5, *(len(line.name) for line in self.rows)) if self.rows else 5
        row = f"{{:{width}}}  {{:>7}}  {{:>11}}  {{:>11}}  {{:>10}}  {{:>10}}  {{:>6}}".format
        lines = [row(self.by, "calls", "tokens in", "from cache", "tokens out", "USD", "share")]
        for line in self.rows:
            share = f"{line.most / self.spent:.1%}" if self.spent else "-"
            counts = (line.calls, line.input_tokens, line.cached_tokens, line.output_tokens)
            lines.append(row(line.name, *counts, f"{line.most:.4f}", share))
        lines.append(row("total", *self._sums(), f"{self.spent:.4f}", ""))
        lost, unpriced = (sum(getattr(line, name) for line in self.rows) for name in ("lost", "unpriced"))
        if lost:
            most = math.fsum(line.lost_cost for line in self.rows)
            lines.append(f"{lost} requests without a reply may have cost {most:.4f} USD of it; they count so")
        if unpriced:
            lines.append(f"{unpriced} calls are not in it, as their price is not known")
        return lines

    def _sums(self) -> tuple[int, ...]:
        names = ("calls", "input_tokens", "cached_tokens", "output_tokens")
        return tuple(sum(getattr(line, name) for line in self.rows) for name in names)


def run_spend(folder: Path, by: str = "stage") -> Spend:
    """Return what a run has cost so far; works while another process works on it.

    A reply that several items use counts for the first of them. A reply that was sent back for repair counts
    for the prompt of the question.
    """
    by = "item" if by == "story" else by
    if by not in BY:
        raise ConfigError("--by", expected=", ".join(BY), found=by, fix="choose one of these")
    path = Path(folder) / JOURNAL
    with journal_file.explained(path), closing(journal_file.connect(path, read_only=True)) as connection:
        journal_file.check_format(path, connection)
    of, tables, of_lost = BY[by]
    lines: dict[str, Line] = {}
    for name, *counts in rows_of(path, _ANSWERED.replace("{of}", of).replace("{tables}", tables)):
        known = OTHERS[by] if name is None else name
        lines[known] = Line(known, *counts)
    for name, count, bound in rows_of(path, _LOST.replace("{of}", of_lost)):
        known = LOST if name is None else name
        lines[known] = replace(lines.get(known, Line(known)), lost=count, lost_cost=bound)
    return Spend(by, tuple(sorted(lines.values(), key=lambda line: (-line.most, line.name))))
