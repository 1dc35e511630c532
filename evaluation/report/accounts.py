"""What was asked and what came back, per judge: outcomes and cost, counted over an archive."""

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from pydantic import ValidationError

from ...schemas.judgement import Judgement
from ...schemas.plain_files import open_plain
from ..archive.archive import JUDGEMENTS, read_archive
from .model import CountRow, CountTable

FEW_ANSWERS = 0.95
"""Share of answers of a judge below which a page says so at its top."""
OUTCOMES = ("answered", "refused", "blocked", "truncated", "malformed", "failed")


def read_lines(folder: Path) -> Iterator[Judgement]:
    """Yield the judgements of an evaluation folder, one line at a time."""
    try:
        with open_plain(folder / JUDGEMENTS, follow=True) as handle:
            for line in handle:
                yield Judgement.model_validate_json(line)
    except (OSError, ValidationError):
        read_archive(folder)  # says everything that is wrong with it
        raise


@dataclass
class Accounts:
    """Counts over the judgements of an archive; a matcher's own verdicts are no replies and left out."""

    replies: Counter[str] = field(default_factory=Counter)
    outcomes: dict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    tokens: dict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    costs: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    reported: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))

    def add(self, judgement: Judgement) -> None:
        """Take in one judgement."""
        if judgement.kind == "match":
            return
        judge = judgement.judge.spec
        self.replies[judge] += 1
        self.outcomes[judge][judgement.outcome] += 1
        if judgement.input_tokens is not None or judgement.output_tokens is not None:
            self.tokens[judge]["input"] += judgement.input_tokens or 0
            self.tokens[judge]["output"] += judgement.output_tokens or 0
        if judgement.cost is not None:
            self.costs[judge].append(judgement.cost)
        if judgement.judge.reported_model:
            self.reported[judge].add(judgement.judge.reported_model)

    @classmethod
    def of(cls, judgements: Iterable[Judgement]) -> "Accounts":
        """Return the counts over some judgements."""
        accounts = cls()
        for judgement in judgements:
            accounts.add(judgement)
        return accounts

    def warnings(self) -> Iterator[str]:
        """Yield which judges answered so little that readers must know it first."""
        for judge, count in sorted(self.replies.items()):
            answered = self.outcomes[judge]["answered"]
            if answered < FEW_ANSWERS * count:
                yield f"{judge} answered {answered:,} of {count:,} requests; see Coverage and outcomes."

    @property
    def total(self) -> int:
        """How many replies there are."""
        return sum(self.replies.values())

    def outcome_table(self) -> CountTable:
        """Return the replies by outcome, one row per judge."""
        rows = [
            CountRow(label=judge, values={"replies": count, **{o: self.outcomes[judge][o] for o in OUTCOMES}})
            for judge, count in sorted(self.replies.items())
        ]
        columns = {"replies": "Replies", **{name: name.capitalize() for name in OUTCOMES}}
        return CountTable(
            name="outcomes", title="Replies by outcome", heading="Judge", columns=columns, rows=tuple(rows),
            note="Every request has exactly one outcome; replies that serve several methods count once.",
        )  # fmt: skip

    def cost_table(self) -> CountTable:
        """Return what the replies took, one row per judge."""
        columns = {
            "replies": "Replies", "input_tokens": "Input tokens", "output_tokens": "Output tokens",
            "usd": "USD", "without_price": "Replies of unknown price", "reported": "Model as reported",
        }  # fmt: skip
        rows = []
        for judge, count in sorted(self.replies.items()):
            costs, tokens = self.costs.get(judge, []), self.tokens.get(judge)
            values: dict[str, int | float | str | None] = {
                "replies": count,
                "input_tokens": tokens["input"] if tokens else None,
                "output_tokens": tokens["output"] if tokens else None,
                "usd": round(math.fsum(costs), 6) if costs else None,
                "without_price": count - len(costs),
                "reported": ", ".join(sorted(self.reported.get(judge, ()))) or None,
            }
            rows.append(CountRow(label=judge, values=values))
        return CountTable(
            name="cost", title="Replies and cost", heading="Judge", columns=columns, rows=tuple(rows),
            note="Tokens as the services counted them; USD if the price is known.",
        )  # fmt: skip
