"""Published result files become archives: texts are read again, and what differs is listed."""

import json
from pathlib import Path
from typing import Any

import pytest

from fabula.errors import InputError
from fabula.evaluation.events.published import Results, import_results
from fabula.schemas.events import Suite

BLOCKED = "Error: {'error': {'inner_error': {'code': 'ResponsibleAIPolicyViolation'}}}"


def reply(text: str, listed: list[int], seed: int = 0) -> dict[str, Any]:
    score = sum(listed) / len(listed) if listed else None
    return {
        "completion_list": listed, "completion_score": score, "description": "seen", "scoring_output": text,
        "seed": seed,
    }  # fmt: skip


@pytest.fixture
def results(tmp_path: Path, suite: Suite) -> Path:
    path = tmp_path / "my_model1.5_gpt4o_final.json"
    document = {name: prompt.as_json() for name, prompt in suite.prompts.items()}
    document["a.mp4"] |= {
        "output0": reply("[COMPLETE_LIST]: 1, 0", [1, 0]),
        "output1": reply("[COMPLETE_LIST]: 1, 1", [1, 0]),
    }
    document["b.mp4"] |= {
        "output0": reply(BLOCKED, []),
        "output1": reply("Error: ('Connection aborted.')", []),
    }
    document["c.mp4"] |= {"output0": reply("It is all there.", []), "output1": reply(" ", [])}
    path.write_text(json.dumps(document, indent=4))
    return path


def test_a_result_file_when_imported_has_every_reply_with_its_outcome(results: Path, suite: Suite) -> None:
    found = import_results([Results(results)], suite)
    told = [(one.unit, one.vote, one.outcome) for one in found.archive.judgements]
    assert told == [
        ("a.mp4", 0, "answered"), ("a.mp4", 1, "answered"), ("b.mp4", 0, "blocked"), ("b.mp4", 1, "failed"),
        ("c.mp4", 0, "malformed"), ("c.mp4", 1, "failed"),
    ]  # fmt: skip
    assert "Connection aborted" in found.archive.judgements[3].reason
    first = found.archive.judgements[0]
    assert (first.method, first.judge.spec) == ("my_model1.5", "published:gpt4o")
    assert first.parsed == {"completion": [1, 0], "description": "seen"}
    assert found.archive.manifest.protocol["votes"] == {"published:gpt4o": 2}


def test_a_reply_when_its_text_says_otherwise_than_published_is_listed(results: Path, suite: Suite) -> None:
    found = import_results([Results(results)], suite)
    (one,) = found.differences
    assert (one.unit, one.vote, one.published, one.parsed) == ("a.mp4", 1, [1, 0], [1, 1])
    assert found.archive.manifest.environment["differences"] == [vars(one)]


def test_two_files_when_they_contradict_each_other_are_refused(
    results: Path, suite: Suite, tmp_path: Path
) -> None:
    other = tmp_path / "other.json"
    other.write_text(results.read_text().replace("[COMPLETE_LIST]: 1, 0", "[COMPLETE_LIST]: 0, 0"))
    with pytest.raises(InputError, match=r"one answer to completion a\.mp4"):
        import_results([Results(results), Results(other, "my_model1.5", "gpt4o")], suite)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"z.mp4": {}}, "a video of the suite"),
        ({"a.mp4": {"event_list": ["Other"]}}, "other events"),
        ({"a.mp4": {"event_list": ["Event 0", "Event 1"]}}, "found none"),
        ({"a.mp4": {"event_list": ["Event 0", "Event 1"], "output0": 3}}, "scoring_output"),
        ({"a.mp4": None}, "other events"),
    ],
)
def test_a_result_file_when_it_does_not_fit_the_suite_is_refused(
    results: Path, suite: Suite, change: dict[str, Any], said: str
) -> None:
    results.write_text(json.dumps(json.loads(results.read_text()) | change))
    with pytest.raises(InputError, match=said):
        import_results([Results(results)], suite)
