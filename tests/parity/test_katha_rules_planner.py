"""The rules planner on the six published storyboards: what must hold is gated, recall is only printed.

Nothing in the planner is tuned to these stories.
"""

import json
import re
import shutil
from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from fabula import BuildOptions, PackOptions, build, pack, validate, verify
from fabula.builders.katha.building import STAGES
from fabula.builders.katha.draft_scenes import describe_scenes, draft_scene_texts
from fabula.builders.text.boundaries import analyze
from fabula.evaluation.archive.archive import read_archive
from fabula.evaluation.judging.settings import ImageSettings, prepare_storyboard
from fabula.evaluation.katha.requests import EvaluateOptions, evaluate_katha
from fabula.evaluation.outputs.storyboards import check_outputs
from fabula.evaluation.report.formats import write_report
from fabula.kinds.evaluations import make_report
from fabula.schemas.katha import StoryRecord
from fabula.schemas.text import normalize_answer, normalize_text
from fabula.testing.judge_model import JudgeModel
from fabula.testing.katha_model import KathaModel
from fabula.testing.katha_samples import sample_bundles
from fabula.testing.model_server import ModelServer

STORIES = 6
SENTENCE_END = re.compile(r"[.!?][\"'”’]?$")
CLAUSE_END = re.compile(r"[,;:—–]$")
# Characters that a reader finds in the six stories, written down from the texts, before running anything.
CAST = {
    "stratagem-of-punyasena": ["Puṇyasena", "enemy"],
    "fall-of-sunda-upasunda": ["Sunda", "Upasunda", "nymph"],
    "wolf-and-lamb": ["wolf", "lamb"],
    "peacock-and-crane": ["peacock", "crane"],
    "monkey-and-wedge": ["carpenters", "monkey"],
    "merchant-fall-rise": ["merchant", "friends"],
}
CLAUSE_WORDS = frozenset(
    ("and", "but", "so", "yet", "or", "because", "since", "until", "till", "while", "when", "whenever",
     "where", "after", "before", "as", "though", "although", "if", "unless", "who", "which", "whose")
)  # fmt: skip


@pytest.fixture
def boards(reference: Path) -> list[dict]:
    path = reference / "kathatrace_demo" / "storyboards.json"
    assert path.is_file(), f"{path} is missing"
    return json.loads(path.read_text("utf-8"))


def divided(board: dict) -> tuple[dict, dict, tuple[str, ...]]:
    story = {
        "id": board["id"],
        "title": board["title"],
        "language": "en",
        "normalized_text": normalize_text(board["story"]),
    }
    analysis = analyze(story)
    texts = draft_scene_texts({"text": story["normalized_text"], **story}, analysis, 5)
    assert texts is not None, board["id"]
    return story, analysis, texts


@pytest.mark.parity
def test_boundaries_when_proposed_are_sentence_or_clause_boundaries(boards) -> None:
    assert len(boards) == STORIES
    for board in boards:
        _, _, texts = divided(board)
        for before, after in pairwise(texts):
            opens = normalize_answer(after).split()[0]
            ends = SENTENCE_END.search(before) or CLAUSE_END.search(before)
            assert ends or opens in CLAUSE_WORDS, (board["id"], before, after)


@pytest.mark.parity
def test_scenes_when_proposed_are_five_not_empty_and_in_order(boards) -> None:
    for board in boards:
        story, _, texts = divided(board)
        assert len(texts) == 5 and all(any(char.isalpha() for char in text) for text in texts)
        assert " ".join(texts) == story["normalized_text"]


@pytest.mark.parity
def test_characters_when_named_are_in_the_story(boards) -> None:
    found = expected = 0
    for board in boards:
        story, analysis, texts = divided(board)
        named = {name for scene in describe_scenes(story, analysis, texts) for name in scene["characters"]}
        folded = story["normalized_text"].casefold()
        assert all(name.casefold() in folded for name in named), board["id"]
        cast = CAST[board["id"]]
        expected += len(cast)
        found += sum(any(member.casefold() in name.casefold() for name in named) for member in cast)
    print(f"\nnamed characters recalled: {found} of {expected}")  # noqa: T201 - reported, not gated


@pytest.mark.parity
def test_captions_when_matched_to_scenes_are_counted(boards) -> None:
    """Count the captions whose best scene is the drafted one of the same number.

    The best scene shares most distinct words with the caption (words of four letters and more, cut to
    five, so that "abandons" meets "abandoned"); ties and captions without a shared word count as misses.
    """
    hits = total = 0
    for board in boards:
        _, _, texts = divided(board)
        scenes = [stems(text) for text in texts]
        for index, scene in enumerate(board["scenes"]):
            total += 1
            shared = [len(stems(scene["caption"]) & words) for words in scenes]
            hits += shared[index] > 0 and shared.count(max(shared)) == 1 and shared[index] == max(shared)
    print(f"\ncaptions that fall into the drafted scene: {hits} of {total}")  # noqa: T201 - reported, not gated
    assert total == 5 * STORIES


def stems(text: str) -> set[str]:
    return {word[:5] for word in normalize_answer(text).split() if len(word) >= 4}


# The six published storyboards, judged through the real SDK: records by a model, answers by a table.

CREATED = "2026-01-01T00:00:00Z"


def judge_of(release: Any, shown: Path) -> JudgeModel:
    """A judge that knows the published storyboards by their pictures."""
    boards = {
        record.story_id: [
            picture.sha256
            for picture in prepare_storyboard(sorted((shown / record.story_id).iterdir()), ImageSettings())
        ]
        for record in release
    }
    return JudgeModel(release.records, {"text": 0.9, "image": 0.5}, boards=boards)


@pytest.mark.parity
@pytest.mark.slow
def test_published_storyboards_when_judged_give_the_answers_of_the_table(demo, tmp_path):
    release, shown = demo
    judge = judge_of(*demo)
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


# The report on the six published storyboards shows the frames behind every verdict.


@pytest.mark.parity
@pytest.mark.slow
def test_report_on_published_storyboards_shows_every_transition_with_frames_and_verdicts(demo, tmp_path):
    release, shown = demo
    judge = judge_of(*demo)
    with ModelServer(judge) as server:
        judges = tuple(f"{server.openai_url}#{name}" for name in ("one", "two"))
        options = EvaluateOptions(judges=judges, workers=0, created_at="2026-01-01T00:00:00Z")
        evaluate_katha(release.path, shown, tmp_path / "run", options)
    document = make_report(tmp_path / "run", release.path)
    assert document.cases is not None
    cases = document.cases.shown
    asked = sorted(question.question_id for record in release for question in record.questions)
    assert sorted(item.id for case in cases for item in case.items) == asked
    for case in cases:
        assert case.frames and all(frame.data for frame in case.frames)
        for item in case.items:
            said = {(one.judge, one.condition): one for one in item.verdicts}
            assert len(said) == 2 * 3
            for (name, condition), one in said.items():
                model = name.removeprefix("compatible:")
                assert one.correct == judge.answers(item.id, condition, item.group, model)
    written = write_report(document, tmp_path / "report.html")
    assert written.files["page"].stat().st_size < 4_000_000


# The six published example storyboards of KathaTrace can be checked and prepared as they are.


@pytest.mark.parity
def test_check_outputs_when_storyboards_are_published_finds_them_sound(reference, tmp_path):
    folder = reference / "kathatrace_demo" / "storyboards"
    stories = sorted(path.name for path in folder.iterdir())
    assert len(stories) == 6
    shutil.copytree(folder, tmp_path / "demo")
    records = [
        StoryRecord.model_validate({**bundle["record"], "story_id": story})
        for bundle, story in zip(sample_bundles(6), stories, strict=True)
    ]
    report = check_outputs(tmp_path / "demo", records)
    assert report.issues == ()
    assert report.accounting()["stories_valid"] == 6
    for storyboard in report.valid:
        prepared = prepare_storyboard([panel.file for panel in storyboard.files], ImageSettings(max_side=256))
        assert [max(one.width, one.height) for one in prepared] == [256] * 5


# -- The six published stories through every stage of the model planner, to a release that verifies
#
# The model is a stand-in behind the real SDKs: this shows that the stages hold for these texts, not how well
# a model drafts.

SOURCES = {
    "Aesop’s Fables": "aesop", "Panchatantra": "panchatantra", "The Ocean of Story": "kathasaritasagara",
}  # fmt: skip
KEYS = {"openai": "OPENAI_API_KEY", "google": "GEMINI_API_KEY", "anthropic": "ANTHROPIC_API_KEY"}


@pytest.fixture
def stories(reference: Path, tmp_path: Path) -> Path:
    boards = json.loads((reference / "kathatrace_demo" / "storyboards.json").read_text("utf-8"))
    path = tmp_path / "stories.jsonl"
    with path.open("w", encoding="utf-8") as out:
        for number, board in enumerate(boards, 1):
            row = {
                "id": f"demo_{number:04}",
                "title": board["title"],
                "language": "en",
                "text": board["story"],
                "source_collection": SOURCES[board["source"]],
                "source_reference": "published storyboard",
                "rights_status": "public_domain_or_rights_compatible",
            }
            out.write(json.dumps(row, ensure_ascii=False) + "\n")
    return path


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with ModelServer(KathaModel(critical=0.5)) as running:
        yield running


@pytest.mark.slow
@pytest.mark.parity
@pytest.mark.parametrize("provider", sorted(KEYS))
def test_six_stories_when_drafted_by_a_model_become_a_release_that_verifies(
    stories: Path, server: ModelServer, provider: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(
        {"google": "GEMINI_API_KEY"}.get(provider, f"{provider.upper()}_API_KEY"), "key-for-a-test"
    )
    spec = f"{provider}:stand-in"
    models: dict[str, dict[str, Any]] = {
        spec: {"base_url": getattr(server, f"{provider}_url"), "prices": {"input": 1.0, "output": 4.0}}
    }
    options = BuildOptions(model=spec, models=models, workers=0)
    report = build("stories", stories, tmp_path / "run", options)
    assert report.totals == {"made": STORIES, "rejected": 0, "failed": 0, "pending": 0}
    assert {stage.name: stage.made for stage in report.stages} == dict.fromkeys(STAGES, STORIES)
    assert {entry.asked.protocol for entry in server.log} == {provider}
    assert sum(use.calls for use in report.models) == server.count
    assert [issue for issue in validate(tmp_path / "run").issues if issue.level == "error"] == []
    release = tmp_path / "release"
    pack(
        tmp_path / "run",
        release,
        PackOptions(
            version="0.1.0",
            license="CC-BY-4.0",
            name="six",
            title="Six",
            creators=("Nobody",),
            allow_drafts=True,
            allow_stand_in=True,
        ),
    )
    assert [issue for issue in verify(release).issues if issue.level == "error"] == []
    lines = [
        json.loads(line) for line in (tmp_path / "run" / "records.jsonl").read_text("utf-8").splitlines()
    ]
    makers = {field["producer"] for line in lines for field in line["payload"]["producers"]}
    assert all(maker == "author" or maker.startswith(f"{spec} via katha/") for maker in makers), makers
