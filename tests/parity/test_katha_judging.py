"""The six published storyboards, judged through the real SDK: records by the rules, answers from a table."""

import json
import shutil
from collections import Counter
from pathlib import Path

import pytest

from fabula.builders.katha import BuildOptions, build_katha
from fabula.evaluation.archive import read_archive
from fabula.evaluation.judges import EvaluateOptions, evaluate_katha
from fabula.evaluation.judges.images import ImageSettings, prepare_storyboard
from fabula.releases.loading import Release
from fabula.testing.drawn_storyboards import judged_release
from fabula.testing.judge_model import JudgeModel
from fabula.testing.model_server import ModelServer

pytestmark = pytest.mark.parity

CREATED = "2026-01-01T00:00:00Z"


@pytest.fixture
def demo(reference: Path, tmp_path: Path) -> tuple[Release, Path]:
    """A release of the six stories as the rules draft them, and the published storyboards under its ids."""
    boards = json.loads((reference / "kathatrace_demo" / "storyboards.json").read_text("utf-8"))
    stories, shown = tmp_path / "stories.jsonl", tmp_path / "published"
    rows = []
    for number, board in enumerate(boards, 1):
        story_id = f"demo_{number:04}"
        rows.append(
            {
                "id": story_id, "title": board["title"], "language": "en", "text": board["story"],
                "source_collection": "aesop", "rights_status": "public_domain_or_rights_compatible",
            }
        )  # fmt: skip
        shutil.copytree(reference / "kathatrace_demo" / "storyboards" / board["id"], shown / story_id)
    stories.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), "utf-8")
    build_katha(stories, tmp_path / "build", BuildOptions(workers=0, created_at=CREATED))
    bundles = [
        json.loads(line)["payload"]
        for line in (tmp_path / "build" / "records.jsonl").read_text("utf-8").split("\n")
        if line
    ]
    return judged_release(tmp_path / "release", bundles), shown


def test_published_storyboards_when_judged_give_the_answers_of_the_table(
    demo: tuple[Release, Path], tmp_path: Path
) -> None:
    release, shown = demo
    boards = {
        record.story_id: [
            picture.sha256
            for picture in prepare_storyboard(sorted((shown / record.story_id).iterdir()), ImageSettings())
        ]
        for record in release
    }
    judge = JudgeModel(release.records, {"text": 0.9, "image": 0.5}, boards=boards)
    with ModelServer(judge) as server:
        given = EvaluateOptions(judges=(f"{server.openai_url}#stand-in",), workers=0, created_at=CREATED)
        report = evaluate_katha(release.path, shown, tmp_path / "run", given)
    archive = read_archive(tmp_path / "run")
    questions = {one.question_id: one for record in release for one in record.questions}
    assert report.totals["made"] == len(release) >= 4
    assert Counter(one.outcome for one in archive.judgements).keys() == {"answered"}
    asked = [one for one in archive.judgements if one.kind == "question"]
    assert len(asked) == 3 * len(questions)
    for one in asked:
        assert one.parsed is not None
        question = questions[one.item]
        said = one.parsed["final_answer" if one.condition == "text_image" else "answer"]
        right = judge.answers(one.item, one.condition, question.question_type, "stand-in")
        assert (said in question.accepted_answers) == right
    method = archive.manifest.subject["methods"]["published"]
    assert method["leaks"] == [] and method["panels"] == 5 * len(release)
