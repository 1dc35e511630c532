"""What a study took: pictures and calls of each method, judges, and what that cost (Table 48)."""

import math
from collections import Counter
from typing import get_args

from ...evaluation.report.model import CountRow, CountTable
from .results import Outcome, StudyResults

OUTCOMES: tuple[str, ...] = get_args(Outcome)


def picture_costs(results: StudyResults) -> CountTable:
    """Pictures of each method: how many were asked for, what came back, and what they cost."""
    rows = []
    for method, lines in results.pictures.items():
        outcomes = Counter(line.outcome for line in lines)
        costs = [line.cost for line in lines if line.cost is not None]
        values: dict[str, int | float | str | None] = {
            "asked": len(lines), **{name: outcomes[name] for name in OUTCOMES},  # type: ignore[index]
            "usd": round(math.fsum(costs), 6) if costs else None, "without_price": len(lines) - len(costs),
        }  # fmt: skip
        rows.append(CountRow(label=method, values=values))
    return CountTable(
        name="picture_costs", title="Pictures asked for, and their cost", heading="Plan + renderer",
        note="USD if the price is known. A picture that was refused or blocked may have been paid for, too.",
        columns={
            "asked": "Asked for", **{name: name.capitalize() for name in OUTCOMES}, "usd": "USD",
            "without_price": "Of unknown price",
        }, rows=tuple(rows),
    )  # fmt: skip


def judge_costs(results: StudyResults) -> CountTable:
    """What the judges of the main evaluation took."""
    return results.accounts.cost_table().model_copy(update={"name": "judge_costs"})


def leaderboard_cost(results: StudyResults) -> CountTable:
    """Table 48: pictures and calls that one method with one seed takes, by split, for one judge."""
    items = results.evaluation.items
    groups = items.groups("split")
    rows = []
    for name, stories in groups.items():
        questions = int(stories[items.story].sum())
        rows.append(
            CountRow(
                label=name,
                values={
                    "stories": int(stories.sum()),
                    "pictures": sum(
                        len(record.scenes)
                        for record, there in zip(items.records, stories, strict=True)
                        if there
                    ),
                    "questions": questions,
                    "calls": 3 * questions,
                },
            )
        )
    return CountTable(
        name="leaderboard_cost", title="What evaluating one more method takes", heading="Split",
        note="For one seed and one judge: a call for each question under each of the three evidence "
        "conditions. Text-only calls are the same for all methods and are asked once; moral labels and "
        "contrastive pairs come on top.",
        columns={
            "stories": "Stories", "pictures": "Pictures", "questions": "Questions", "calls": "Judge calls",
        }, rows=tuple(rows),
    )  # fmt: skip
