"""What people said of crops and pairs that the judge of an evaluation of episodes saw (section B.1)."""

from collections.abc import Iterator, Mapping
from typing import Any

from ....schemas.text import counted
from ...report.model import Measure, ScoreRow, ScoreTable
from ...report.people import if_any, plain_score, score_of

TITLES = {"fidelity": "appearances", "pair": "pairs"}
AGREED = (
    Measure(name="judge", label="Judge against people", unit="number", better="high"),
    Measure(name="people", label="Between people, mean", unit="number", better="high"),
    Measure(name="least", label="Lowest", unit="number"),
    Measure(name="greatest", label="Highest", unit="number"),
)


def people_tables(document: Mapping[str, Any]) -> Iterator[ScoreTable]:
    """Yield the tables of a calibration: kappa of verdicts, Pearson's r of scores, people as the ceiling."""
    for kind, scopes in document["judges"].items():
        rows = [
            ScoreRow(
                label=f"{scope}, {name.replace('_', ' ')} ({agreed['name']})",
                scores={
                    "judge": score_of(agreed["judge"]),
                    "people": score_of(agreed["people"]),
                    **{
                        end: plain_score(agreed[end], "no two people compare")
                        for end in ("least", "greatest")
                    },
                },
                note=f"{counted(agreed['judge']['counts']['used'], 'answer')} compared",
            )
            for scope, asked in scopes.items()
            for name, agreed in asked.items()
        ]
        title = f"{document['judge']} against people: {TITLES[kind]}"
        yield from if_any(f"people_{kind}", title, "Type and question", AGREED, rows)
