"""Evaluations made by hand: a release of a few stories, and judges that say what a test states."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from fabula.evaluation.archive.archive import release_sha256, write_archive
from fabula.evaluation.recoverability.matching import CONDITIONS, Definitions
from fabula.evaluation.recoverability.pooling import KathaScores
from fabula.evaluation.recoverability.score import score_folder
from fabula.releases.loading import Release, load
from fabula.schemas.judgement import EvaluationManifest, Judge, Judgement
from fabula.testing.katha_samples import sample_bundles, with_variant_questions
from fabula.testing.simulated_evaluations import write_loadable_release

Says = Callable[[str, str, str], Any]
"""(question id, condition, judge) -> True, False, an outcome, a parsed reply, or None: not asked."""


class Bench:
    """A release of stories with six questions each, and an evaluation folder that a test fills."""

    def __init__(self, folder: Path, stories: int, *, asked_of_variants: bool = False) -> None:
        bundles = sample_bundles(stories)
        if asked_of_variants:
            bundles = [with_variant_questions(bundle) for bundle in bundles]
        self.release_folder = write_loadable_release(folder / "release", bundles)
        self.release: Release = load(self.release_folder)
        self.run = folder / "run"
        self.questions = {one.question_id: one for record in self.release for one in record.questions}
        self.lines: list[Judgement] = []

    def line(self, kind: str, unit: str, item: str, condition: str, said: Any, **more: Any) -> Judgement:
        """Add a judgement; ``said`` is a parsed reply or an outcome."""
        judge = more.pop("judge", "a")
        answered = isinstance(said, dict)
        method = None if condition == "text" else more.pop("method", "m")
        one = Judgement(
            protocol="katha", kind=kind, method=method, unit=unit, seed=more.pop("seed", None), item=item,
            condition=condition, judge=Judge(spec=judge, provider="p", model=judge, reported_model=None),
            vote=more.pop("vote", 0), prompt="", outcome="answered" if answered else said,
            reason=None if answered else "why", raw=None, parsed=said if answered else None,
            input_tokens=None, output_tokens=None, cost=None, time=None,
        )  # fmt: skip
        self.lines.append(one)
        return one

    def ask(
        self, says: Says, judges: Sequence[str] = ("a",), conditions: Iterable[str] = CONDITIONS, **more: Any
    ) -> None:
        """Add a judgement of every question, condition and judge."""
        for question_id, question in self.questions.items():
            for condition in conditions:
                for judge in judges:
                    said = says(question_id, condition, judge)
                    if said is None:
                        continue
                    if isinstance(said, bool):
                        said = reply(question.gold_answer if said else "nobody knows", condition)
                    self.line(
                        "question", question.story_id, question_id, condition, said, judge=judge, **more
                    )

    def write(self, subject: Mapping[str, Any] | None = None, **protocol: Any) -> Path:
        """Write the archive; return the evaluation folder."""
        self.run.mkdir(exist_ok=True)
        methods = {one.method for one in self.lines if one.method is not None}
        manifest = EvaluationManifest(
            kind="katha",
            protocol={"release": {"sha256": release_sha256(self.release_folder)}, **protocol},
            subject={"methods": subject or {name: {} for name in methods}},
            environment={"sources": [{"role": "release", "path": str(self.release_folder)}]},
        )
        write_archive(self.run, manifest, self.lines)
        return self.run

    def score(self, definitions: Definitions | None = None, **subject: Any) -> KathaScores:
        """Write the archive and score it, without intervals where no definitions are given."""
        return score_folder(self.write(subject or None), None, definitions or Definitions(resamples=0))


def reply(answer: str, condition: str, status: str | None = None) -> dict[str, Any]:
    """Return a parsed reply with an answer and a status."""
    if condition == "text_image":
        support = {"source_answer": answer, "image_support": status or "supported"}
        return {**support, "final_answer": answer, "confidence": "high"}
    return {"answer": answer, "evidence_status": status or "recoverable", "confidence": "high"}


@pytest.fixture
def bench(tmp_path: Path) -> Callable[..., Bench]:
    """Return what makes a bench of so many stories."""
    return lambda stories=2, name="one", **more: Bench(tmp_path / name, stories, **more)


@pytest.fixture
def replied() -> Callable[..., dict[str, Any]]:
    """Return what makes a parsed reply."""
    return reply
