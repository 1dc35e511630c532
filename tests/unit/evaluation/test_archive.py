"""Archives: what is written is read, what contradicts itself is refused, and every problem is named."""

import json
from pathlib import Path
from typing import Any

import pytest

from fabula.errors import InputError, TargetError
from fabula.evaluation.archive.archive import (
    EVALUATION,
    JUDGEMENTS,
    Archive,
    check_hash,
    export_archive,
    merged,
    read_archive,
    sort_key,
    write_archive,
    write_judgements,
)
from fabula.evaluation.archive.form import ArchiveForm
from fabula.evaluation.archive.stand_ins import stand_in_notes
from fabula.models.spec import stand_ins_among
from fabula.schemas.judgement import EvaluationManifest, Judge, Judgement

JUDGE = Judge(spec="openai:one", provider="openai", model="one", reported_model="one-2")
ANSWER = {"answer": "a lion", "evidence_status": "recoverable", "confidence": "high"}


def judgement(item: str = "s_0001_q01", **given: Any) -> Judgement:
    values: dict[str, Any] = {
        "protocol": "katha", "kind": "question", "method": "m", "unit": "s_0001", "seed": None, "item": item,
        "condition": "image", "judge": JUDGE, "vote": 0, "prompt": "judge/x@1#0", "outcome": "answered",
        "reason": None, "raw": "{}", "parsed": ANSWER, "input_tokens": 1, "output_tokens": 2, "cost": None,
        "time": "2026-01-01T00:00:00Z",
    }  # fmt: skip
    return Judgement.model_validate(values | given)


def manifest(kind: str = "katha", **protocol: Any) -> EvaluationManifest:
    return EvaluationManifest.model_validate(
        {"kind": kind, "protocol": protocol, "subject": {}, "environment": {}}
    )


def problems(folder: Path) -> list[str]:
    with pytest.raises(InputError) as caught:
        read_archive(folder)
    return [str(problem) for problem in caught.value.problems]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    place = tmp_path / "eval"
    place.mkdir()
    write_archive(place, manifest(), [judgement()])
    return place


def test_archive_when_written_in_any_order_is_read_sorted_with_null_first(tmp_path: Path) -> None:
    text = judgement(condition="text", method=None)
    rows = [judgement("b"), judgement(seed=7), text, judgement(vote=1), judgement()]
    write_archive(tmp_path, manifest(), rows)
    archive = read_archive(tmp_path)
    assert archive.judgements == tuple(sorted(rows, key=sort_key))
    assert archive.judgements[0] == text
    assert [one.seed for one in archive.judgements] == [None, None, None, None, 7]
    before = (tmp_path / JUDGEMENTS).read_bytes()
    write_archive(tmp_path, archive.manifest, reversed(archive.judgements))
    assert (tmp_path / JUDGEMENTS).read_bytes() == before


def test_archive_when_a_line_is_there_twice_counts_it_once(folder: Path) -> None:
    path = folder / JUDGEMENTS
    path.write_bytes(path.read_bytes() * 2)
    assert read_archive(folder).judgements == (judgement(),)


def test_archive_when_two_lines_answer_differently_shows_both(folder: Path) -> None:
    path = folder / JUDGEMENTS
    other = judgement(parsed=ANSWER | {"answer": "a mouse"})
    path.write_text(path.read_text() + json.dumps(other.as_json()) + "\n")
    (problem,) = problems(folder)
    assert f"{path}:2" in problem
    assert f"{path}:1" in problem
    assert "a lion" in problem
    assert "a mouse" in problem
    assert "question s_0001_q01, image, vote 0, openai:one, m" in problem


def test_archive_when_several_lines_are_wrong_lists_them_all(folder: Path) -> None:
    good = judgement().as_json()
    rows: list[Any] = [
        good | {"schema_version": "9"},
        good | {"outcome": "guessed"},
        good | {"item": "b", "parsed": None},
        good | {"item": "c", "outcome": "refused"},
        good | {"item": "d", "vote": -1, "extra": 1},
        "text",
    ]
    text = "".join(json.dumps(row) + "\n" for row in rows)
    (folder / JUDGEMENTS).write_text(text + '{"broken\n')
    found = problems(folder)
    assert len(found) == 8
    for line in range(1, 8):
        assert any(f"{JUDGEMENTS}:{line}" in one for one in found), line


def test_archive_when_written_with_contradicting_answers_refuses_and_leaves_the_old_one(folder: Path) -> None:
    before = (folder / JUDGEMENTS).read_bytes()
    told: list[Judgement] = []
    other = judgement(parsed=ANSWER | {"answer": "a mouse"})
    with pytest.raises(InputError, match=r"(?s)a lion.* found .*a mouse"):
        write_judgements(folder, [judgement(), judgement(cost=1.0), other], told.append)
    assert told == [judgement()]
    assert (folder / JUDGEMENTS).read_bytes() == before
    assert sorted(path.name for path in folder.iterdir()) == sorted([EVALUATION, JUDGEMENTS])


def test_merged_when_two_archives_disagree_shows_both_and_agreeing_ones_are_kept_once() -> None:
    cheaper = judgement(cost=0.5, time=None)
    assert merged([("a", [judgement()]), ("b", [cheaper, judgement("z")])]) == (judgement(), judgement("z"))
    refused = judgement(outcome="refused", parsed=None, raw="no")
    with pytest.raises(InputError, match=r'(?s)b: .*"a lion".* in a, found refused'):
        merged([("a", [judgement()]), ("b", [refused])])


def test_check_hash_when_the_release_is_another_one_refuses_it() -> None:
    archive = Archive(manifest(release={"sha256": "aa"}), ())
    check_hash(archive, "release", "aa", "dist/mine")
    with pytest.raises(InputError, match=r"dist/mine: this is not the release that .* SHA-256 is bb, .* aa"):
        check_hash(archive, "release", "bb", "dist/mine")
    with pytest.raises(InputError, match="the judged one None"):
        check_hash(Archive(manifest(), ()), "suite", "bb", "suite.json")


def test_export_archive_when_the_target_is_taken_refuses_and_otherwise_copies(
    folder: Path, tmp_path: Path
) -> None:
    told = {"sources": [{"role": "release", "name": "mine", "path": "/home/me/mine"}]}
    write_archive(folder, manifest().model_copy(update={"environment": told}), [judgement()])
    exported = export_archive(folder, tmp_path / "a" / "b", ArchiveForm())
    assert exported == read_archive(tmp_path / "a" / "b")
    assert exported.judgements == (judgement(),)
    assert exported.manifest.environment == {"sources": [{"role": "release", "name": "mine"}]}
    with pytest.raises(TargetError, match="the folder is not empty"):
        export_archive(folder, tmp_path / "a" / "b", ArchiveForm())


# Evaluations by stand-ins say so.


def stand_in_manifest(**protocol: object) -> EvaluationManifest:
    return EvaluationManifest(kind="images", protocol=protocol, subject={}, environment={})


def test_notes_when_judge_and_encoders_stand_in_name_each() -> None:
    made = stand_in_manifest(
        judges=["compatible:stand-in", "openai:gpt-4.1-mini"],
        models={
            "detector": "table-detector@1/float32/cpu",
            "characters": {"x": "head-encoder@1/cpu"},
        },
    )
    judges, programs = stand_in_notes(made)
    assert judges.startswith("the replies of compatible:stand-in are made up")
    assert "gpt" not in judges
    assert programs.startswith("head-encoder, table-detector: small programs of fabula.testing")


@pytest.mark.parametrize(
    ("judge", "reported", "is_marked"),
    [
        ("openai:gpt-4.1", ["stand-in"], True),
        ("openai:gpt-4.1", ["gpt-4.1-2025-04-14", "drawn stand-in"], True),
        ("compatible:drawn", ["drawn"], True),
        ("compatible:stand-in", [], True),
        ("compatible:stand-in", ["qwen3"], False),
        ("openai:gpt-4.1", ["gpt-4.1-2025-04-14"], False),
        ("openai:gpt-4.1", [], False),
    ],
)
def test_notes_when_replies_name_their_model_go_by_that_and_not_by_what_was_asked_for(
    judge: str, reported: list[str], is_marked: bool
) -> None:
    told = {judge: {"outcomes": {"answered": 3}, "reported_models": reported}}
    made = EvaluationManifest(
        kind="katha", protocol={"judges": [judge]}, subject={}, environment={"judges": told}
    )
    assert [judge in note for note in stand_in_notes(made)] == [True] * is_marked


def test_stand_ins_when_among_producers_are_named_without_prompts() -> None:
    producers = (
        "openai:gpt-4.1 via katha/draft_scenes@3#0a1b, answered by a stand-in, json_repaired",
        "compatible:stand-in via shots/plan_shots@1#2c; rules@1; compatible:qwen3 via shots/x@1#3d",
        "rules@1", "author:ana", None,
    )  # fmt: skip
    assert stand_ins_among(producers) == ["compatible:stand-in", "openai:gpt-4.1, answered by a stand-in"]
