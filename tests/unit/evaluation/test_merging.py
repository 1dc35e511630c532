"""Archives of several judges, methods, stories and machines become one that is scored like a single run's."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from fabula.errors import InputError
from fabula.evaluation.archive.archive import EVALUATION, JUDGEMENTS, Archive, read_archive
from fabula.evaluation.katha.requests import EvaluateOptions, evaluate_katha
from fabula.evaluation.recoverability.compare import compare_folders
from fabula.evaluation.recoverability.definitions import Definitions
from fabula.evaluation.recoverability.score import score_folder
from fabula.kinds.evaluations import merge_archives
from fabula.releases.loading import Release
from fabula.schemas.canonical import canonical_bytes
from fabula.testing.drawn_storyboards import draw_outputs, drawn_release
from fabula.testing.judge_model import JudgeModel
from fabula.testing.model_server import ModelServer

pytestmark = pytest.mark.slow

Evaluate = Callable[..., Path]


@pytest.fixture
def release(tmp_path: Path) -> Release:
    return drawn_release(tmp_path / "release", 3)


@pytest.fixture
def boards(tmp_path: Path, release: Release) -> Path:
    return draw_outputs(tmp_path / "drawn", release.records)


@pytest.fixture
def server(release: Release) -> Iterator[ModelServer]:
    with ModelServer(JudgeModel(release.records)) as running:
        yield running


@pytest.fixture
def evaluate(tmp_path: Path, release: Release, boards: Path, server: ModelServer) -> Evaluate:
    """Judge drawn storyboards into a folder of the given name; return the folder."""

    def run(out: str, *names: str, outputs: Any = None, **given: Any) -> Path:
        judges = [f"{server.openai_url}#{name}" for name in names or ("one",)]
        options = EvaluateOptions(judges=judges, workers=0, created_at="2026-01-01T00:00:00Z", **given)
        evaluate_katha(release.path, outputs or boards, tmp_path / out, options)
        return tmp_path / out

    return run


def scores(folder: Path) -> Any:
    return score_folder(folder, folder.parent / "release", Definitions(resamples=50)).as_json()


def changed(folder: Path, place: int, **fields: Any) -> None:
    """Change a line of an archive."""
    lines = (folder / JUDGEMENTS).read_bytes().splitlines()
    lines[place] = canonical_bytes(json.loads(lines[place]) | fields)
    (folder / JUDGEMENTS).write_bytes(b"\n".join([*lines, b""]))


def test_merge_when_parts_are_those_of_one_evaluation_scores_as_the_whole(
    evaluate: Evaluate, release: Release, boards: Path, tmp_path: Path
) -> None:
    both = [boards, draw_outputs(tmp_path / "other", release.records)]
    parts = [evaluate("a", "one", outputs=both), evaluate("b", "two", outputs=both)]
    whole = evaluate("whole", "one", "two", outputs=both)
    merged = merge_archives(parts, tmp_path / "merged")
    assert (tmp_path / "merged" / JUDGEMENTS).read_bytes() == (whole / JUDGEMENTS).read_bytes()
    assert merged.judgements == len(read_archive(whole).judgements)
    assert scores(tmp_path / "merged") == scores(whole)
    expected, found = (read_archive(place).manifest for place in (whole, tmp_path / "merged"))
    assert (found.protocol, found.subject) == (expected.protocol, expected.subject)


def test_merge_when_one_judge_answers_the_same_differently_shows_both_or_keeps_the_first(
    evaluate: Evaluate, tmp_path: Path
) -> None:
    parts = [evaluate("a"), evaluate("b")]
    changed(parts[1], 0, parsed=None, outcome="refused", raw="No.", reason="the reply was refused")
    first = json.loads((parts[0] / JUDGEMENTS).read_bytes().splitlines()[0])
    with pytest.raises(InputError) as refused:
        merge_archives(parts, tmp_path / "merged")
    assert len(refused.value.problems) == 1
    assert str(parts[0]) in str(refused.value) and "found refused" in str(refused.value)
    assert str(next(iter(first["parsed"]))) in str(refused.value)
    assert not list((tmp_path / "merged").iterdir()), "nothing half-made stays"
    merged = merge_archives(parts, tmp_path / "merged", first_wins=True)
    assert (merged.passed_over, merged.judgements) == (1, len(read_archive(parts[0]).judgements))
    assert (tmp_path / "merged" / JUDGEMENTS).read_bytes() == (parts[0] / JUDGEMENTS).read_bytes()
    assert read_archive(tmp_path / "merged").manifest.environment["passed_over"] == 1


def test_merge_when_protocols_differ_is_refused_unless_allowed(evaluate: Evaluate, tmp_path: Path) -> None:
    parts = [evaluate("a"), evaluate("b", "two", settings=["judge_text.max_tokens=99"])]
    with pytest.raises(InputError, match=r"protocol decoding\.judge_text\.max_tokens"):
        merge_archives(parts, tmp_path / "merged")
    merge_archives(parts, tmp_path / "merged", allowed=["decoding"])
    archive: Archive = read_archive(tmp_path / "merged")
    assert archive.manifest.protocol["judges"] == ["compatible:one", "compatible:two"]


def test_merge_when_outputs_of_one_method_differ_is_refused(
    evaluate: Evaluate, release: Release, tmp_path: Path
) -> None:
    other = draw_outputs(tmp_path / "elsewhere" / "drawn", release.records, side=128)
    parts = [evaluate("a"), evaluate("b", "two", outputs=other)]
    with pytest.raises(InputError, match="method drawn: two evaluations judged different outputs"):
        merge_archives(parts, tmp_path / "merged")


def test_merge_when_a_part_is_unfinished_says_so_in_the_whole(evaluate: Evaluate, tmp_path: Path) -> None:
    parts = [evaluate("a"), evaluate("b", "two")]
    document = json.loads((parts[1] / EVALUATION).read_bytes())
    document["environment"]["incomplete"] = {"unasked": {"compatible:two": 3}, "unreached": 0}
    document["environment"]["simulation"] = True
    (parts[1] / EVALUATION).write_text(json.dumps(document))
    merge_archives(parts, tmp_path / "merged")
    assert "not finished (3 questions not asked yet)" in scores(tmp_path / "merged")["notes"][1]
    assert read_archive(tmp_path / "merged").manifest.environment["simulation"] is True
    compared = compare_folders(parts[0], parts[1], None, Definitions(resamples=0), ["judges", "models"])
    unfinished = [note for note in compared.notes if "not finished" in note]
    assert [note.partition(": ")[0] for note in unfinished] == ["b"]


def test_merge_when_matchers_judged_answers_of_different_judges_keeps_every_verdict(
    evaluate: Evaluate, release: Release, server: ModelServer, tmp_path: Path
) -> None:
    server.handler = JudgeModel(release.records, {"text": 0.7, "image": 0.5})
    given = {"matcher": [f"{server.openai_url}#words", f"embedding:{server.openai_url}#vectors"]}
    parts = [evaluate("a", "one", **given), evaluate("b", "two", **given)]
    merge_archives(parts, tmp_path / "merged")
    whole = evaluate("whole", "one", "two", **given)
    for matcher in ("model", "embedding"):
        named = Definitions(resamples=50, matcher=matcher)
        found, expected = (
            score_folder(one, tmp_path / "release", named).as_json() for one in (tmp_path / "merged", whole)
        )
        assert found["methods"] == expected["methods"]
