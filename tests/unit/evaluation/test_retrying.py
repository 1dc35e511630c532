"""Judgements that got no usable reply are asked for once more; all attempts stay, the last counts."""

import json
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

import pytest

from fabula.engine.execute import execute
from fabula.errors import InputError
from fabula.evaluation.archive.archive import Archive, read_archive
from fabula.evaluation.archive.replies import LATER, last_attempts
from fabula.evaluation.events.requests import EVALUATING, EventOptions, events_request
from fabula.evaluation.events.score import score_folder as score_events
from fabula.evaluation.katha.requests import EvaluateOptions, estimate_evaluation, evaluate_katha
from fabula.evaluation.recoverability.compare import compare_folders
from fabula.evaluation.recoverability.matching import Definitions
from fabula.evaluation.recoverability.score import score_folder
from fabula.kinds.evaluations import merge_archives
from fabula.kinds.verbs import continue_run
from fabula.releases.events.form import suite_bytes
from fabula.schemas.canonical import canonical_text, digest
from fabula.schemas.judgement import Judgement
from fabula.testing import model_server as service
from fabula.testing.asked_prompts import prompt_of
from fabula.testing.drawn import write_video
from fabula.testing.judge_model import JudgeModel
from fabula.testing.stand_in_models import EventModel

CREATED = "2026-01-01T00:00:00Z"
QUICK = Definitions(resamples=50)
FAULTS: dict[str, Any] = {
    "refused": service.Refused(),
    "blocked": service.SafetyBlock(),
    "empty": service.EmptyText(),
    "no choice": service.EmptyChoices(),
    "truncated": service.TruncatedJson(),
    "prose": service.Prose("Who can tell."),
    "malformed": service.MalformedJson("wrong_type"),
}
"""How a reply can be of no use, by name."""


class Spoiler:
    """Spoils the replies to one in four requests, as long as it is on."""

    def __init__(self, model: Callable[[service.Asked], Any], fault: Any) -> None:
        self.model, self.fault, self.on = model, fault, True
        self.log: list[tuple[str, bool]] = []

    def spoils(self, asked: service.Asked) -> bool:
        return int(digest(self.name(asked))[:8], 16) % 4 == 0

    @staticmethod
    def name(asked: service.Asked) -> str:
        pictures = [digest(image.data.hex()) for image in asked.images]
        return json.dumps([asked.system, asked.text, pictures])

    def __call__(self, asked: service.Asked) -> Any:
        spoilt = self.spoils(asked)
        self.log.append((self.name(asked), spoilt))
        return self.fault if spoilt and self.on else self.model(asked)

    def spoilt(self) -> list[str]:
        return sorted(name for name, spoilt in self.log if spoilt)


def options(server: service.ModelServer, **given: Any) -> EvaluateOptions:
    judge = f"{server.openai_url}#one"
    prices = {"input": 1.0, "output": 2.0}
    models = {judge: {"attempts": 1, "prices": prices}}
    given = {"limit": 2, **given}
    return EvaluateOptions(judges=(judge,), models=models, workers=0, created_at=CREATED, **given)


def lines(judgements: Iterable[Judgement]) -> set[str]:
    return {canonical_text(one.as_json()) for one in judgements}


def by_attempt(archive: Archive) -> Counter[tuple[int, str]]:
    return Counter((one.attempt, one.outcome) for one in archive.judgements)


@pytest.mark.slow
@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS)
def test_evaluation_when_retried_asks_exactly_for_what_had_no_answer(tmp_path, release, boards, fault):
    spoiler, out = Spoiler(JudgeModel(release.records), fault), tmp_path / "run"
    with service.ModelServer(spoiler) as server:
        plain = options(server)
        retry = replace(plain, retry_failed=True)
        evaluate_katha(release.path, boards, out, plain)
        first = read_archive(out)
        spoilt, asked = spoiler.spoilt(), len(spoiler.log)
        assert 0 < len(spoilt) < asked
        evaluate_katha(release.path, boards, out, plain)
        assert len(spoiler.log) == asked, "the same command asks nothing"
        planned = estimate_evaluation(release.path, boards, out, retry)
        assert planned.calls == len(spoilt) and (planned.cost or 0) > 0
        assert len(spoiler.log) == asked, "a plan asks nothing"
        spoiler.on = False
        evaluate_katha(release.path, boards, out, retry)
        again = [name for name, _ in spoiler.log[asked:]]
        assert sorted(again) == spoilt
        evaluate_katha(release.path, boards, out, retry)
        evaluate_katha(release.path, boards, out, plain)
        assert len(spoiler.log) == asked + len(spoilt), "everything is answered"
    archive = read_archive(out)
    assert lines(first.judgements) < lines(archive.judgements), "every attempt is kept"
    assert by_attempt(archive)[2, "answered"] == len(spoilt)
    assert len(archive.judgements) == asked + len(spoilt)
    counted = list(last_attempts(archive.judgements))
    assert len(counted) == asked and {one.outcome for one in counted} == {"answered"}
    (told,) = archive.manifest.environment["judges"].values()
    assert told["outcomes"] == {"answered": asked} and told[LATER] == len(spoilt)


@pytest.mark.slow
def test_scores_when_answers_came_later_are_those_of_an_evaluation_without_a_fault(tmp_path, release, boards):
    model = JudgeModel(release.records, {"text": 0.9, "image": 0.5})
    spoiler = Spoiler(model, service.Refused())
    with service.ModelServer(spoiler) as server:
        plain = options(server)
        evaluate_katha(release.path, boards, tmp_path / "run", plain)
        spoiler.on = False
        continue_run(tmp_path / "run", retry_failed=True, workers=0)
        evaluate_katha(release.path, boards, tmp_path / "clean", plain)
    late, clean = (score_folder(tmp_path / name, release.path, QUICK) for name in ("run", "clean"))
    assert late.methods == clean.methods and late.coverage == clean.coverage
    made_up, training, few = clean.notes
    assert "stand-in" in made_up and "of the split train" in training and "too few for intervals" in few
    assert late.notes[0] == made_up and "came from a later attempt" in late.notes[1]
    with pytest.raises(InputError, match="protocol attempts"):
        compare_folders(tmp_path / "run", tmp_path / "clean", release.path, QUICK)
    found = compare_folders(tmp_path / "run", tmp_path / "clean", release.path, QUICK, ("attempts",))
    assert [one.path for one in found.differences] == ["attempts"]
    with pytest.raises(InputError, match="protocol attempts"):
        merge_archives([tmp_path / "run", tmp_path / "clean"], tmp_path / "merged")


@pytest.mark.slow
def test_matching_when_a_matcher_had_failed_is_asked_again_under_the_same_answers(tmp_path, release, boards):
    model = JudgeModel(release.records)

    class Matching(Spoiler):
        def spoils(self, asked: service.Asked) -> bool:
            is_match = asked.protocol == "embeddings" or "match" in (prompt_of(asked) or "")
            return is_match and super().spoils(asked)

    spoiler = Matching(model, service.EmptyText())
    with service.ModelServer(spoiler) as server:
        plain = options(server, matcher=f"{server.openai_url}#matcher")
        evaluate_katha(release.path, boards, tmp_path / "run", plain)
        asked, spoilt = len(spoiler.log), spoiler.spoilt()
        first = [one for one in read_archive(tmp_path / "run").judgements if one.kind == "match"]
        spoiler.on = False
        evaluate_katha(release.path, boards, tmp_path / "run", replace(plain, retry_failed=True))
        assert sorted(name for name, _ in spoiler.log[asked:]) == sorted(set(spoilt)) and spoilt
    matches = [one for one in read_archive(tmp_path / "run").judgements if one.kind == "match"]
    assert lines(first) < lines(matches)
    last = list(last_attempts(matches))
    assert len(last) == len(first) and {one.outcome for one in last} == {"answered"}


@pytest.mark.parametrize(
    "fault",
    [service.Refused(), service.TruncatedJson(), service.EmptyText()],
    ids=["refused", "cut", "empty"],
)
def test_votes_on_videos_when_too_few_answered_are_asked_again_until_enough_did(tmp_path, monkeypatch, fault):
    monkeypatch.setenv("OPENAI_API_KEY", "test-key-0123456789")
    cup, dog = "A cup falls, and breaks.", "A dog runs, and sleeps."
    suite, videos = tmp_path / "suite.json", tmp_path / "videos" / "model-x"
    videos.mkdir(parents=True)
    entries = {}
    for name, text, width in (("cup", cup, 48), ("dog", dog, 64)):
        listed = [f"Event {number} of: {text}" for number in (1, 2)]
        entries[f"{name}.mp4"] = {"prompt": text, "event_list": listed, "class": ["object", "2_events"]}
        write_video(videos / f"{name}.mp4", 20, size=(width, 48))
    suite.write_bytes(suite_bytes(entries) + b"\n")
    model, spoiling, log = EventModel(), True, list[str]()

    def handler(asked: service.Asked) -> Any:
        scores_dog = dog in asked.text
        log.append("dog" if scores_dog else "other")
        return fault if spoiling and scores_dog else model(asked)

    with service.ModelServer(handler) as server:
        models = {"openai:tested": {"base_url": server.openai_url, "attempts": 1}}
        plain = EventOptions(
            judges=["openai:tested"], models=models, workers=0, created_at=CREATED, votes=2,
            settings=["judge_events.retries=1"],
        )  # fmt: skip
        out = tmp_path / "run"
        execute(events_request(suite, [videos], out, plain))
        first = read_archive(out)
        silent = sum(one.outcome != "answered" for one in first.judgements)
        assert silent == (3 if isinstance(fault, service.Refused) else 2)
        retry = events_request(suite, [videos], out, replace(plain, retry_failed=True))
        assert EVALUATING.estimate(retry).calls == 1, (
            "of the second vote nobody knows yet whether it is needed"
        )
        before, spoiling = len(log), False
        EVALUATING.run(retry)
        assert log[before:] == ["dog", "dog"], "two answers are enough"
    archive = read_archive(out)
    assert lines(first.judgements) < lines(archive.judgements)
    assert by_attempt(archive)[2, "answered"] == 2
    (panel,) = score_events(out).panels
    assert panel.outcomes["votes"]["answered"] == 4
