"""Made-up lines of people and judges. Nobody answered these: they are test data and stand for no person."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fabula.people.read import Known
from fabula.releases.loading import Release
from fabula.schemas.judgement import HumanRow, Judgement
from fabula.schemas.katha import Question
from fabula.testing.drawn_storyboards import drawn_release

Line = Callable[..., HumanRow]
Reply = Callable[..., Judgement]


@pytest.fixture(scope="session")
def release(tmp_path_factory: pytest.TempPathFactory) -> Release:
    return drawn_release(tmp_path_factory.mktemp("human") / "release")


@pytest.fixture(scope="session")
def known(release: Release) -> Known:
    return Known.of_records(release.records, frozenset({"m", "n"}))


@pytest.fixture(scope="session")
def questions(release: Release) -> dict[str, Question]:
    return {one.question_id: one for record in release.records for one in record.questions}


@pytest.fixture
def line(questions: dict[str, Question]) -> Line:
    """A person's line; ``right`` puts an accepted or a wrong answer."""

    def make(kind: str, rater: str, item: str, right: bool | None = None, **given: Any) -> HumanRow:
        if right is not None:
            given["answer"] = questions[item].gold_answer if right else "something else"
        if kind in ("answer", "moral_label"):
            given = {"condition": "image", "method": "m"} | given
            if given["condition"] == "text":
                given["method"] = None
        return HumanRow.model_validate({"kind": kind, "rater": rater, "item": item, **given})

    return make


@pytest.fixture
def reply(questions: dict[str, Question]) -> Reply:
    """A judge's reply to a question."""

    def make(item: str, right: bool, judge: str = "test:a", **given: Any) -> Judgement:
        condition = given.pop("condition", "image")
        said = questions[item].gold_answer if right else "something else"
        parsed = {"confidence": given.pop("confidence", "high")}
        if condition == "text_image":
            parsed |= {"source_answer": said, "image_support": "supported", "final_answer": said}
        else:
            parsed |= {"answer": said, "evidence_status": "recoverable"}
        who = {"spec": judge, "provider": "test", "model": judge, "reported_model": None}
        values = {
            "protocol": "katha", "kind": "question", "method": None if condition == "text" else "m",
            "unit": questions[item].story_id, "seed": None, "item": item, "condition": condition,
            "judge": who, "vote": 0, "prompt": "", "outcome": "answered", "reason": None, "raw": None,
            "parsed": parsed, "input_tokens": None, "output_tokens": None, "cost": None, "time": None,
        }  # fmt: skip
        return Judgement.model_validate(values | given)

    return make


@pytest.fixture
def written(tmp_path: Path) -> Callable[..., Path]:
    """A file with these lines."""

    def write(name: str, *lines: str) -> Path:
        path = tmp_path / name
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
        return path

    return write
