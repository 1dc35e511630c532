"""Whole evaluations through the real SDKs: all is archived, nothing asked twice, no item fails by a judge."""

import json
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from fabula.engine.stage import Failed, Item, Tools
from fabula.evaluation.archive.archive import EVALUATION, JUDGEMENTS, Archive, read_archive
from fabula.evaluation.judging.settings import ImageSettings, judge_specs
from fabula.evaluation.katha.judging import prepare_images
from fabula.evaluation.katha.pipeline import FRAMES
from fabula.evaluation.katha.requests import (
    EvaluateOptions,
    estimate_evaluation,
    evaluate_katha,
    evaluation_request,
    judging_budget,
)
from fabula.evaluation.recoverability.matching import Definitions
from fabula.evaluation.recoverability.score import score_folder
from fabula.releases.loading import Release
from fabula.schemas.canonical import sha256_bytes
from fabula.testing import model_server as service
from fabula.testing.drawn_storyboards import draw_outputs, drawn_release
from fabula.testing.judge_model import JudgeModel
from fabula.testing.stand_in import NAME, knowing

CREATED = "2026-01-01T00:00:00Z"
TABLE = {"text": 0.9, "image": 0.5, "text_image": 0.95, "contrast": 0.8}

Evaluate = Callable[..., Archive]


@pytest.fixture
def judge(release: Release) -> JudgeModel:
    return JudgeModel(release.records, TABLE)


@pytest.fixture
def evaluate(tmp_path: Path, release: Release, boards: Path, server: service.ModelServer) -> Evaluate:
    """Judge the drawn storyboards by models at the server; return the archive."""

    def run(*names: str, out: str = "run", outputs: Any = None, **given: Any) -> Archive:
        judges = tuple(f"{server.openai_url}#{name}" for name in names or ("one",))
        models = {judge: {"attempts": 2, "patience": 5} for judge in judges} | given.pop("models", {})
        options = EvaluateOptions(
            judges=given.pop("judges", judges), models=models, workers=0, created_at=CREATED, **given
        )
        evaluate_katha(release.path, outputs or boards, tmp_path / out, options)
        return read_archive(tmp_path / out)

    return run


def counted(archive: Archive, *names: str) -> Counter[tuple[Any, ...]]:
    return Counter(tuple(getattr(one, name) for name in names) for one in archive.judgements)


@pytest.mark.slow
def test_evaluation_when_all_is_well_archives_every_answer_as_the_table_says(
    evaluate: Evaluate, judge: JudgeModel, release: Release, server: service.ModelServer
) -> None:
    archive = evaluate("one", "two")
    assert counted(archive, "kind", "condition") == {
        ("question", "text"): 60, ("question", "image"): 60, ("question", "text_image"): 60,
        ("moral_label", "text"): 10, ("moral_label", "image"): 10, ("moral_label", "text_image"): 10,
        ("contrast", "image"): 20,
    }  # fmt: skip
    assert counted(archive, "outcome") == {("answered",): 230}
    assert server.count == 230
    answers = {
        one.question_id: (one.question_type, set(one.accepted_answers))
        for one in (question for record in release for question in record.questions)
    }
    for one in archive.judgements:
        assert one.parsed is not None and json.loads(one.raw or "")
        assert (one.judge.reported_model, one.time) == ("stand-in", CREATED)
        if one.kind != "question":
            continue
        dimension, accepted = answers[one.item]
        said = one.parsed["final_answer" if one.condition == "text_image" else "answer"]
        right = judge.answers(one.item, one.condition, dimension, one.judge.model)
        assert (said in accepted) == right
    texts = [one for one in archive.judgements if one.condition == "text"]
    assert {(one.method, one.seed) for one in texts} == {(None, None)}


@pytest.mark.slow
def test_evaluation_when_repeated_asks_nothing_and_leaves_the_same_bytes(evaluate, server, tmp_path):
    evaluate()
    written = (JUDGEMENTS, EVALUATION, FRAMES)
    before = {name: (tmp_path / "run" / name).read_bytes() for name in written}
    asked = server.count
    evaluate()
    assert server.count == asked
    assert {name: (tmp_path / "run" / name).read_bytes() for name in written} == before
    evaluate(out="again")
    other = (tmp_path / "again" / JUDGEMENTS).read_bytes()
    assert other == before[JUDGEMENTS], "the same answers give the same archive in another run"


@pytest.mark.slow
def test_evaluation_when_a_method_is_added_asks_text_only_questions_no_more(
    evaluate: Evaluate, server: service.ModelServer, tmp_path: Path, release: Release, boards: Path
) -> None:
    evaluate()
    log = len(server.log)
    other = draw_outputs(tmp_path / "other", release.records, (42, 123), side=128)
    archive = evaluate(outputs=[boards, other])
    new = [exchange.asked for exchange in server.log[log:]]
    assert new and all(asked.images for asked in new)
    assert counted(archive, "method", "seed", "condition")["other", 123, "image"] == 45
    assert counted(archive, "method")[None,] == 35


FAULTS: list[tuple[service.Fault, str, str]] = [
    (service.Refused(), "refused", ""),
    (service.ContentFilter(), "blocked", ""),
    (service.TruncatedJson(), "truncated", ""),
    (service.Prose(), "malformed", ""),
    (service.EmptyText(), "failed", "empty: "),
    (service.BadRequestFault(), "failed", "bad_request: "),
    (service.TooLong(), "failed", "too_long: "),
]


@pytest.mark.slow
@pytest.mark.parametrize(("fault", "outcome", "reason"), FAULTS, ids=lambda value: type(value).__name__)
def test_evaluation_when_one_judge_fails_on_everything_keeps_the_others_and_every_failure(
    evaluate: Evaluate, server: service.ModelServer, fault: service.Fault, outcome: str, reason: str
) -> None:
    server.faults = lambda asked: fault if asked.model == "bad" else None
    archive = evaluate("bad", "good", stories=("kb25k_0001", "kb25k_0002"))
    counts = counted(archive, "outcome")
    bad = [one for one in archive.judgements if one.judge.model == "bad"]
    assert {one.outcome for one in bad} == {outcome}
    assert all((one.reason or "").startswith(reason) and one.parsed is None for one in bad)
    assert counts == {("answered",): 46, (outcome,): 46}
    outcomes = archive.manifest.environment["judges"]
    assert outcomes["compatible:bad"]["outcomes"] == {outcome: 46}
    assert server.count == 92, "a judge is asked once: nothing is sent back for repair"


@pytest.mark.parametrize(
    ("reply", "outcome"),
    [
        ({"answer": "x", "evidence_status": "recoverable", "confidence": "high", "why": "so"}, "malformed"),
        ({"answer": "x", "evidence_status": "certain", "confidence": "high"}, "malformed"),
        ({"answer": "x", "evidence_status": "recoverable", "confidence": "high"}, "answered"),
        ({"answer": "\ud800", "evidence_status": "unclear", "confidence": "low"}, "answered"),
    ],
)
def test_evaluation_when_a_reply_is_odd_says_what_it_is(evaluate, server, judge, reply, outcome):
    server.handler = lambda asked: reply if "evidence_status" in str(asked.schema) else judge(asked)
    archive = evaluate(stories=("kb25k_0001",))
    asked = [one for one in archive.judgements if one.kind == "question" and one.condition == "image"]
    assert {one.outcome for one in asked} == {outcome}
    assert all(one.raw for one in asked)


@pytest.mark.slow
def test_evaluation_when_a_storyboard_is_broken_counts_it_and_asks_about_its_text_alone(
    evaluate: Evaluate, boards: Path, server: service.ModelServer, tmp_path: Path
) -> None:
    (boards / "kb25k_0001" / "03.png").write_bytes(b"")
    (boards / "kb25k_0002" / "05.png").unlink()
    for number in range(1, 6):
        (boards / "kb25k_0003" / f"{number:02d}.png").rename(boards / "kb25k_0003" / f"{number - 1:02d}.png")
    archive = evaluate()
    method = archive.manifest.subject["methods"]["drawn"]
    assert (method["stories_requested"], method["stories_valid"], method["panels"]) == (5, 2, 10)
    assert [(one["story_id"], one["codes"]) for one in method["invalid"]] == [
        ("kb25k_0001", ["unreadable-picture"]),
        ("kb25k_0002", ["missing"]),
        ("kb25k_0003", ["numbered-from-zero"]),
    ]
    assert counted(archive, "condition", "kind")["text", "question"] == 30
    assert counted(archive, "condition", "kind")["image", "question"] == 12
    lines = [json.loads(line) for line in (tmp_path / "run" / FRAMES).read_text().splitlines()]
    assert [len(line["frames"]) for line in lines] == [0, 0, 0, 5, 5]
    assert all((tmp_path / "run" / frame["file"]).exists() for line in lines for frame in line["frames"])


def test_evaluation_when_a_file_changes_after_it_was_found_fails_instead_of_guessing(tmp_path, boards):
    files = sorted((boards / "kb25k_0001").iterdir())
    hashes = [sha256_bytes(file.read_bytes()) for file in files]
    item = Item("one", {"shown": {"files": [str(file) for file in files], "sha256": hashes}})
    files[2].write_bytes(b"")
    outcome = prepare_images(item, Tools(ImageSettings(), CREATED, store=tmp_path / "store"))
    assert isinstance(outcome, Failed) and "03.png has changed since it was found" in outcome.reason


def test_evaluation_when_a_packet_leaks_stops_the_pictures_of_that_story(
    evaluate: Evaluate,
    server: service.ModelServer,
    release: Release,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from fabula.evaluation.judging import packets

    titled = packets.labelled

    def careless(pictures: Any) -> Iterator[Any]:
        yield release.records[0].scenes[0].scene_text
        yield from titled(pictures)

    monkeypatch.setattr(packets, "labelled", careless)
    archive = evaluate(stories=("kb25k_0001",))
    method = archive.manifest.subject["methods"]["drawn"]
    (leaking,) = method["leaks"]
    assert {one["source"] for one in leaking["leaks"]} >= {"$.scenes[0].scene_text"}
    assert not any(exchange.asked.images for exchange in server.log)
    assert counted(archive, "condition") == {("text",): 7}


def test_evaluation_when_a_matcher_is_named_archives_its_verdict_on_every_answer(evaluate, server, release):
    matcher = f"{server.openai_url}#matcher"
    archive = evaluate("one", "two", stories=("kb25k_0001",), questions_only=True, matcher=matcher)
    answers = {one.question_id: one.accepted_answers for one in release.by_id["kb25k_0001"].questions}
    verdicts = [one for one in archive.judgements if one.kind == "match"]
    assert len(verdicts) == 36 and {one.vote for one in verdicts} == {0, 1}
    for one in verdicts:
        assert one.parsed is not None and one.judge.spec == "compatible:matcher"
        assert (one.parsed["matcher"], one.parsed["of"]) == ("model", one.condition)
        assert one.parsed["matched"] == (one.parsed["answer"] in answers[one.item])
    assert archive.manifest.protocol["matcher"] == ["compatible:matcher"]
    assert archive.manifest.protocol["judges"] == ["compatible:one", "compatible:two"]


@pytest.mark.slow
def test_estimate_when_nothing_was_asked_knows_every_call_and_touches_nothing(
    evaluate: Evaluate, release: Release, boards: Path, server: service.ModelServer, tmp_path: Path
) -> None:
    spec = f"{server.openai_url}#one"
    prices = {spec: {"prices": {"input": 1.0, "output": 2.0}}}
    options = EvaluateOptions(judges=(spec,), models=prices, workers=0)
    plan = estimate_evaluation(release.path, boards, tmp_path / "run", options)
    assert plan.calls == 115
    assert plan.cost is not None and plan.cost > 0
    assert server.count == 0 and not (tmp_path / "run").exists()
    evaluate(models=prices)
    assert server.count == 115
    after = estimate_evaluation(release.path, boards, tmp_path / "run", options)
    assert after.calls == 0


def test_budget_when_outputs_have_seeds_counts_panels_and_calls_as_the_paper_does(release, boards, tmp_path):
    seeded = draw_outputs(tmp_path / "seeded", release.records, seeds=(42, 123, 2026))
    options = EvaluateOptions(judges=("openai:one", "openai:two"))
    # 5 stories with 6 questions, 1 label, 2 pairs; 3 questions' conditions: 3 x 30 = 90 (Eq. 67)
    plain = judging_budget(evaluation_request(release.path, [], tmp_path / "x", options))
    assert (plain.stories, plain.panels, plain.questions, plain.one_judge) == (5, 25, 30, 90)
    assert plain.training == sum(record.split == "train" for record in release.records)
    assert plain.calls == {"text": 70, "image": 70, "text_image": 70, "contrast": 20}
    both = judging_budget(evaluation_request(release.path, [boards, seeded], tmp_path / "x", options))
    assert (both.generations, both.panels) == (20, 100)
    assert both.calls == {"text": 70, "image": 280, "text_image": 280, "contrast": 80}
    assert "710 calls of 2 judges" in both.lines()[2]


def test_presets_name_open_weights_that_are_served_here_unless_the_settings_say_otherwise() -> None:
    named = {"smolvlm2-500m": "hf:HuggingFaceTB/SmolVLM2-500M-Video-Instruct"}
    assert judge_specs((), "kathatrace-main", named, None) == (
        "google:gemini-2.5-flash", "vllm:Qwen/Qwen2.5-VL-7B-Instruct", "vllm:Qwen/Qwen2.5-VL-3B-Instruct",
        "vllm:HuggingFaceTB/SmolVLM2-2.2B-Instruct", "hf:HuggingFaceTB/SmolVLM2-500M-Video-Instruct",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({"judges": ()}, "--judge: no judge is named"),
        ({"split": ("dev",)}, "--split"),
        ({"stories": ("kb25k_9999",)}, "--story"),
        ({"subset": "strict_gold_400"}, "--subset strict_gold_400: the release has no subsets"),
        ({"preset": "best"}, "kathatrace-main or kathatrace-pool"),
        ({"judges": ("qwen2.5-vl",)}, "no provider serves it, and .judges. does not name it: qwen2.5-vl"),
        ({"judges": ("http://a/v1#x", "http://b/v1#x")}, "compatible:x is there more than once"),
        ({"settings": ["judge_text.model='openai:x'"]}, "named by the setting judges"),
        ({"prompts": "mine"}, "--prompts mine: there is no such set of prompts\n  fix: use main, heldout, "),
        ({"prompts": "main", "protocol": "katha"}, "a protocol names its prompts itself"),
        ({"protocol": "storyeval@d095e63"}, "use katha"),
        ({"matcher": ("openai:m", "openai:n")}, "one matcher, and one verdict"),
        ({"matcher": ("embedding:openai:m", "embedding:openai:n")}, "one matcher, and one verdict"),
        (
            {"judges": ("embedding:openai:m",)},
            "--judge embedding:openai:m: this model gives vectors of texts",
        ),
        ({"settings": ["match_vectors.judges=['openai:m']"]}, "gives answers; vectors are wanted here"),
        ({"judges": ("image:openai:m",)}, "image:openai:m: this model makes pictures; it cannot answer"),
        ({"judges": ("video:google:m",)}, "makes videos; it cannot answer questions"),
        ({"matcher": "image:openai:m"}, "image:openai:m gives pictures; answers are wanted here"),
        ({"settings": ["judge_text.judges=['image:openai:m']"]}, "gives pictures; answers are wanted here"),
        ({"settings": ["match_vectors.threshold=1.0"]}, "less than 1"),
        ({"matcher": "openai:m", "settings": ["match_answers.votes=2"]}, "one matcher, and one verdict"),
    ],
)
def test_request_when_an_option_is_wrong_says_what_there_is(release, boards, tmp_path, given, problem):
    options = EvaluateOptions(**({"judges": ("openai:one",)} | given))
    with pytest.raises(Exception, match=problem) as caught:
        judging_budget(evaluation_request(release.path, [boards], tmp_path / "run", options))
    assert caught.value.__class__.__name__ in ("ConfigError", "InputError")


@pytest.mark.slow
def test_stand_in_when_it_knows_the_release_gives_boards_of_anybody_numbers_that_say_they_mean_nothing(
    tmp_path: Path,
) -> None:
    release = drawn_release(tmp_path / "release")
    boards = tmp_path / "own"
    for number, record in enumerate(release.records):
        (boards / record.story_id).mkdir(parents=True)
        for scene in range(len(record.scenes)):  # pictures that no stand-in has drawn
            noise = Image.effect_noise((64, 64), 10.0 + number)
            noise.save(boards / record.story_id / f"{scene + 1:02d}.png")
    with service.ModelServer(knowing(release.path)) as server:
        spec = f"{server.openai_url}#{NAME}"
        options = EvaluateOptions(judges=(spec,), workers=0, created_at="2026-01-01T00:00:00Z")
        evaluate_katha(release.path, boards, tmp_path / "run", options)
    scores = score_folder(tmp_path / "run", release.path, Definitions(resamples=50))
    (method,) = scores.methods.values()
    gaps = method.gaps["question"]["filtered"]
    assert gaps.gap.value is not None and method.questions["valid"] > 0
    assert any("mean nothing" in note for note in scores.notes)
