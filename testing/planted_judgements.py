"""Evaluations of storyboards with planted losses, by judges whose errors are stated.

Whatever is computed from them is a **simulation** and says nothing about any model or judge: it finds out
whether measures give what follows from the stated losses and errors.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ..evaluation.archive.archive import release_sha256, write_archive
from ..evaluation.recoverability.matching import CONDITIONS
from ..releases.loading import Release, load
from ..schemas.canonical import Json, jsonl_lines, write_atomic
from ..schemas.judgement import EvaluationManifest, Judge, Judgement
from ..schemas.katha import Question
from .katha_samples import sample_bundles
from .simulated_evaluations import write_loadable_release

BASE, NONE = "base", "none"
PROVIDER = "simulated"
Says = Callable[[str, Question, str], bool | None]
"""(method, question, condition) -> whether the answer is right; None: not asked."""


@dataclass(frozen=True)
class Planted:
    """A simulated evaluation of planted losses on disk."""

    release: Release  # the release
    run: Path  # the evaluation folder; its methods are ``base``, ``none`` and one for each loss
    plants: Path  # the file of plants


def write_judged(
    run: Path, release: Release, methods: Sequence[str], says: Says, judges: Sequence[str] = ("a",)
) -> Path:
    """Write an evaluation whose judges answer as stated; return its folder. All judges say the same."""
    run.mkdir(parents=True, exist_ok=True)
    manifest = EvaluationManifest(
        kind="katha",
        protocol={"release": {"sha256": release_sha256(release.path)}},
        subject={"methods": {name: {"seeds": [None], "invalid": []} for name in methods}},
        environment={"simulation": True, "sources": [{"role": "release", "path": str(release.path)}]},
    )
    write_archive(run, manifest, list(_lines(release, methods, says, judges)))
    return run


def write_planted(
    folder: Path, stories: int, losses: Mapping[str, Sequence[str]], error: float, seed: int = 42
) -> Planted:
    """Write an evaluation in which every loss is planted in every story, by a judge that errs at random.

    Every question is answered rightly from the unchanged pictures, and from the changed ones but for the
    dimensions that the loss hits; the judge sees the opposite with the stated probability, from pictures
    alone. From text, and from text and pictures, it is always right.

    ``folder``: where; release, evaluation and plants lie below it. ``losses``: loss -> dimensions that it
    hits. ``error``: share of image-only verdicts that are the opposite of what is so; 0.5 is guessing.
    """
    bundles = sample_bundles(stories)
    release = load(write_loadable_release(folder / "release", bundles))
    random = np.random.default_rng(seed)
    hit = {BASE: (), NONE: (), **losses}

    def says(method: str, question: Question, condition: str) -> bool:
        if condition != "image":
            return True
        return (question.question_type not in hit[method]) != (random.random() < error)

    run = write_judged(folder / "run", release, tuple(hit), says)
    plants = folder / "plants.jsonl"
    write_atomic(plants, jsonl_lines(_plants(release, {NONE: (), **losses})))
    return Planted(release, run, plants)


def _plants(release: Release, losses: Mapping[str, Sequence[str]]) -> Iterator[Json]:
    for loss, dimensions in losses.items():
        for number, record in enumerate(release):
            link = None if loss == NONE else number % 4 + 1
            yield {
                "story_id": record.story_id, "seed": None, "loss": loss, "panels": [],
                "transition": link, "dimensions": list(dimensions), "method": loss,
            }  # fmt: skip


def _lines(
    release: Release, methods: Sequence[str], says: Says, judges: Sequence[str]
) -> Iterator[Judgement]:
    for record in release:
        for question in record.questions:
            for condition in CONDITIONS:
                for method in methods[:1] if condition == "text" else methods:
                    right = says(method, question, condition)
                    for judge in judges if right is not None else ():
                        yield _line(question, condition, method, judge, right=bool(right))


def _line(question: Question, condition: str, method: str, judge: str, *, right: bool) -> Judgement:
    answer = question.gold_answer if right else "nobody knows"
    parsed: dict[str, object] = {"answer": answer, "evidence_status": "recoverable", "confidence": "high"}
    if condition == "text_image":
        parsed = {
            "source_answer": answer, "image_support": "supported", "final_answer": answer,
            "confidence": "high",
        }  # fmt: skip
    return Judgement(
        protocol="katha", kind="question", method=None if condition == "text" else method,
        unit=question.story_id, seed=None, item=question.question_id, condition=condition,
        judge=Judge(spec=judge, provider=PROVIDER, model=judge, reported_model=None), vote=0, prompt="",
        outcome="answered", reason=None, raw=None, parsed=parsed, input_tokens=None, output_tokens=None,
        cost=None, time=None,
    )  # fmt: skip
