"""A small suite, and archives of votes on it."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest

from fabula.evaluation.archive.archive import Archive
from fabula.schemas.events import EventPrompt, Suite
from fabula.schemas.judgement import EvaluationManifest, Judge, Judgement

JUDGE = Judge(spec="openai:one", provider="openai", model="one", reported_model="one-2")


@pytest.fixture
def suite() -> Suite:
    """Three prompts: of two, two and three events."""

    def prompt(events: int, *labels: str) -> EventPrompt:
        listed = [f"Event {number}" for number in range(events)]
        return EventPrompt.model_validate({"prompt": "Events.", "event_list": listed, "class": labels})

    return Suite({
        "a.mp4": prompt(2, "human", "easy"),
        "b.mp4": prompt(2, "animal", "easy"),
        "c.mp4": prompt(3, "human", "hard"),
    })  # fmt: skip


@pytest.fixture
def archive(suite: Suite) -> Callable[..., Archive]:
    """Make an archive of votes: unit, or unit and seed -> lists, null or an outcome for no answer."""

    def make(votes: Mapping[Any, Sequence[Any]], required: int = 2, **protocol: Any) -> Archive:
        judgements = []
        for key, lists in votes.items():
            unit, seed = key if isinstance(key, tuple) else (key, None)
            for number, listed in enumerate(lists):
                answered = isinstance(listed, tuple)
                judgements.append(
                    Judgement(
                        protocol="events", kind="completion", method="m", unit=unit, seed=seed, item=unit,
                        condition="video", judge=JUDGE, vote=number, prompt="", raw="",
                        outcome="answered" if answered else listed or "refused",
                        reason=None if answered else "would not", cost=None, time=None,
                        parsed={"completion": list(listed), "description": ""} if answered else None,
                        input_tokens=None, output_tokens=None,
                    )
                )  # fmt: skip
        seeds = sorted({key[1] for key in votes if isinstance(key, tuple)})
        manifest = EvaluationManifest(
            kind="events",
            protocol={
                "suite": {"sha256": suite.sha256(), "prompts": 3}, "units": None, "judges": [JUDGE.spec],
                "votes": {JUDGE.spec: required}, **protocol,
            },
            subject={"methods": {"m": {"seeds": seeds}}},
            environment={},
        )  # fmt: skip
        return Archive(manifest, tuple(judgements))

    return make
