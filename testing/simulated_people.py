"""Lines of simulated people about storyboards, for tests: nobody said them, and each line says so."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from ..schemas.canonical import jsonl_lines, write_atomic
from ..schemas.judgement import HumanRow
from ..schemas.katha import StoryRecord

PROTOCOLS = ("a" * 64, "b" * 64)
"""Hashes of two versions of a study's protocol; that of the second pair of methods is the second."""
CHANCES = {"text": 0.85, "image": 0.6, "text_image": 0.9}
"""Condition -> how likely an answer is right."""


@dataclass(frozen=True)
class SimulatedPeople:
    """Who is simulated, and what they are asked."""

    # whose storyboards are shown; the first is shown with text and images together, too
    methods: tuple[str, ...] = ("alpha", "beta")
    # method and baseline -> the criteria of its preferences
    pairs: Mapping[tuple[str, str], Sequence[str]] = field(
        default_factory=lambda: {("alpha", "beta"): [f"Q{n}" for n in range(1, 16)]}
    )
    # criterion -> the mean of its ratings
    ratings: Mapping[str, float] = field(
        default_factory=lambda: {"NCS": 3.7, "MAS": 3.2, "EES": 3.1, "visual": 3.9, "overall": 3.5}
    )
    people: int = 8  # how many there are; the even ones are experts, the others novices
    each: int = 3  # how many answer the same
    lean: float = 0.6  # mean preference for the method
    seed: int = 42  # of the random numbers


def write_simulated_people(
    path: Path, records: Sequence[StoryRecord], simulated: SimulatedPeople | None = None
) -> Path:
    """Write what simulated people say about the storyboards of some stories; return the file."""
    rows = simulated_people(records, simulated or SimulatedPeople())
    write_atomic(path, jsonl_lines(row.as_json() for row in rows))
    return path


def simulated_people(records: Sequence[StoryRecord], simulated: SimulatedPeople) -> Iterator[HumanRow]:
    """Yield what they say: answers, moral labels, ratings and preferences, story by story."""
    random = np.random.default_rng(simulated.seed)
    for record in records:
        yield from _answers(record, simulated, random)
        yield from _opinions(record, simulated, random)
        yield from _preferences(record, simulated, random)


def _answers(
    record: StoryRecord, simulated: SimulatedPeople, random: np.random.Generator
) -> Iterator[HumanRow]:
    shown = [("text", None), ("text_image", simulated.methods[0])]
    shown += [("image", method) for method in simulated.methods]
    for question in record.questions:
        for condition, method in shown:
            for rater in _raters(simulated, random):
                right = random.uniform() < CHANCES[condition]
                yield _line(
                    kind="answer", rater=rater, item=question.question_id, condition=condition, method=method,
                    answer=question.gold_answer if right else "unclear", seconds=20.0,
                )  # fmt: skip


def _opinions(
    record: StoryRecord, simulated: SimulatedPeople, random: np.random.Generator
) -> Iterator[HumanRow]:
    for method in simulated.methods:
        for rater in _raters(simulated, random):
            labels = (record.moral_label or "unclear",) if random.uniform() < 0.5 else ("unclear",)
            yield _line(
                kind="moral_label", rater=rater, item=record.story_id, condition="image", method=method,
                labels=labels,
            )  # fmt: skip
            for criterion, mean in simulated.ratings.items():
                value = int(np.clip(round(random.normal(mean, 1)), 1, 5))
                yield _line(
                    kind="rating", rater=rater, item=record.story_id, method=method, criterion=criterion,
                    value=value,
                )  # fmt: skip


def _preferences(
    record: StoryRecord, simulated: SimulatedPeople, random: np.random.Generator
) -> Iterator[HumanRow]:
    for number, ((method, baseline), criteria) in enumerate(simulated.pairs.items()):
        for criterion in criteria:
            for rater in _raters(simulated, random):
                value = int(np.clip(round(random.normal(simulated.lean, 1)), -2, 2))
                said = {"answer": "unclear"} if random.uniform() < 0.05 else {"value": value}
                yield _line(
                    kind="preference", rater=rater, item=record.story_id, method=method, baseline=baseline,
                    criterion=criterion, protocol=PROTOCOLS[min(number, 1)],
                    group="experts" if int(rater[-1]) % 2 == 0 else "novices", **said,
                )  # fmt: skip


def _raters(simulated: SimulatedPeople, random: np.random.Generator) -> list[str]:
    chosen = random.choice(simulated.people, min(simulated.each, simulated.people), replace=False)
    return [f"simulated-{number}" for number in sorted(map(int, chosen))]


def _line(**columns: object) -> HumanRow:
    return HumanRow.model_validate({"protocol": PROTOCOLS[0], **columns, "simulated": True})
