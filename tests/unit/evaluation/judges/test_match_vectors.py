"""The matcher that goes by vectors: verdicts in the archive, nothing encoded twice, the same on a rerun."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fabula.errors import InputError
from fabula.evaluation.archive.archive import JUDGEMENTS, Archive, read_archive
from fabula.evaluation.katha.requests import EvaluateOptions, evaluate_katha
from fabula.evaluation.recoverability.matching import Definitions
from fabula.evaluation.recoverability.score import score_folder
from fabula.releases.loading import Release
from fabula.schemas.judgement import Judgement
from fabula.testing.drawn_storyboards import draw_outputs
from fabula.testing.judge_model import JudgeModel
from fabula.testing.model_server import Answer, Asked, BadRequestFault, ModelServer, word_vector

CREATED = "2026-01-01T00:00:00Z"
Evaluate = Callable[..., Archive]


@pytest.fixture
def judge(release: Release) -> JudgeModel:
    return JudgeModel(release.records, {"image": 0.5})


@pytest.fixture
def evaluate(tmp_path: Path, release: Release, server: ModelServer) -> Evaluate:
    """Judge one drawn storyboard and match the answers by vectors; return the archive."""
    boards = draw_outputs(tmp_path / "drawn", release.records)

    def run(out: str = "run", **given: Any) -> Archive:
        judges = given.pop("judges", tuple(f"{server.openai_url}#{name}" for name in ("one", "two")))
        options = EvaluateOptions(
            judges=judges, stories=("kb25k_0001",), questions_only=True, workers=0, created_at=CREATED,
            **{"matcher": f"embedding:{server.openai_url}#e5", **given},
        )  # fmt: skip
        evaluate_katha(release.path, boards, tmp_path / out, options)
        return read_archive(tmp_path / out)

    return run


def verdicts(archive: Archive) -> list[Judgement]:
    return [one for one in archive.judgements if one.kind == "match"]


def encoded(server: ModelServer) -> list[str]:
    return [one.asked.text for one in server.log if one.asked.protocol == "embeddings"]


def test_vectors_when_named_give_a_verdict_on_every_answer_with_its_similarity(evaluate, server, release):
    archive = evaluate()
    found = verdicts(archive)
    assert len(found) == 36 and {one.vote for one in found} == {0, 1}
    accepted = {one.question_id: one.accepted_answers for one in release.by_id["kb25k_0001"].questions}
    for one in found:
        assert one.parsed is not None
        assert (one.judge.spec, one.judge.reported_model) == ("embedding:compatible:e5", "stand-in")
        assert (one.parsed["matcher"], one.parsed["of"]) == ("embedding", one.condition)
        same = one.parsed["answer"] in accepted[one.item]
        assert one.parsed["matched"] == (one.parsed["similarity"] > 0.8)
        assert not same or (one.parsed["similarity"], one.parsed["matched"]) == (1.0, True)
    assert len(encoded(server)) == len(set(encoded(server))), "each text once"
    assert archive.manifest.protocol["matcher"] == ["embedding:compatible:e5 above 0.8"]
    assert all("127.0.0.1" not in one.model_dump_json() for one in found)


@pytest.mark.slow
def test_vectors_when_the_threshold_changes_are_not_asked_for_again(evaluate, server, tmp_path):
    first = evaluate()
    asked, lines = server.count, (tmp_path / "run" / JUDGEMENTS).read_bytes()
    evaluate()
    assert (server.count, (tmp_path / "run" / JUDGEMENTS).read_bytes()) == (asked, lines)
    second = evaluate(settings=["match_vectors.threshold=-1"])
    assert server.count == asked
    assert all(one.parsed is not None and one.parsed["matched"] for one in verdicts(second))
    both = zip(verdicts(first), verdicts(second), strict=True)
    assert all((a.parsed or {})["similarity"] == (b.parsed or {})["similarity"] for a, b in both)


def test_vectors_when_the_encoder_fails_on_a_text_say_so_and_scoring_refuses_to_guess(
    evaluate: Evaluate, server: ModelServer, judge: JudgeModel, tmp_path: Path
) -> None:
    def broken(asked: Asked) -> Any:
        if asked.protocol != "embeddings":
            return judge(asked)
        if asked.text == "nobody can tell":
            return BadRequestFault()
        return Answer(json.dumps(word_vector(asked.text)))

    server.handler = broken
    found = verdicts(evaluate())
    failed = [one for one in found if one.outcome != "answered"]
    assert failed and {one.outcome for one in failed} == {"failed"}
    assert all((one.reason or "").startswith("no vector: bad_request: ") for one in failed)
    assert len(failed) < len(found)
    with pytest.raises(
        InputError, match="no verdict of the matcher 'embedding' on the answer 'nobody can tell'"
    ):
        score_folder(tmp_path / "run", None, Definitions(matcher="embedding", resamples=0))


def test_vectors_when_their_lengths_differ_or_an_answer_is_empty_make_no_similarity_up(
    evaluate: Evaluate, server: ModelServer, judge: JudgeModel
) -> None:
    def odd(asked: Asked) -> Any:
        if asked.protocol == "embeddings":
            return [1.0] * (10 + len(asked.text))
        answer = judge(asked)
        return answer | ({"answer": " "} if "answer" in answer and not asked.images else {})

    server.handler = odd
    found = verdicts(evaluate())
    blank = [one for one in found if one.parsed is not None and one.condition == "text"]
    assert len(blank) == 12
    assert all(
        ((one.parsed or {})["matched"], (one.parsed or {})["similarity"]) == (False, None) for one in blank
    )
    failed = [one for one in found if one.outcome == "failed"]
    assert failed and all("the encoder gave vectors of" in (one.reason or "") for one in failed)
