"""Archives: what is written is read, what contradicts itself is refused, and every problem is named."""

import json
import tarfile
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fabula.errors import InputError, TargetError
from fabula.evaluation.archive.archive import (
    EVALUATION,
    JUDGEMENTS,
    Archive,
    ArchiveForm,
    check_hash,
    export_archive,
    lines_of,
    merged,
    read_archive,
    read_manifest,
    write_archive,
    write_judgements,
    write_manifest,
)
from fabula.evaluation.archive.merging import merged_subject
from fabula.evaluation.archive.replies import stand_in_notes
from fabula.evaluation.katha.requests import EvaluateOptions, evaluate_katha
from fabula.evaluation.recoverability.compare import compare_folders
from fabula.evaluation.recoverability.matching import Definitions
from fabula.evaluation.recoverability.score import score_folder
from fabula.kinds.evaluations import merge_archives
from fabula.models.spec import stand_ins_among
from fabula.releases.loading import Release
from fabula.schemas.canonical import canonical_bytes, digest
from fabula.schemas.judgement import EvaluationManifest, Judge, Judgement
from fabula.testing.drawn_storyboards import draw_outputs, drawn_release
from fabula.testing.judge_model import JudgeModel
from fabula.testing.model_server import ModelServer
from fabula.testing.simulated_evaluations import Simulated, write_simulated
from fabula.testing.simulated_judgements import Truth

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


def test_export_archive_when_the_target_is_taken_refuses_and_otherwise_copies(folder, tmp_path):
    told = {"sources": [{"role": "release", "name": "mine", "path": "/home/me/mine"}]}
    write_archive(folder, manifest().model_copy(update={"environment": told}), [judgement()])
    exported = export_archive(folder, tmp_path / "a" / "b", ArchiveForm())
    assert exported == read_archive(tmp_path / "a" / "b")
    assert exported.judgements == (judgement(),)
    assert exported.manifest.environment == {"sources": [{"role": "release", "name": "mine"}]}
    with pytest.raises(TargetError, match="the folder is not empty"):
        export_archive(folder, tmp_path / "a" / "b", ArchiveForm())


# Archives are sets: order, repetition and how they were split make no difference.


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Simulated:
    """An evaluation of two methods by three judges, in 234 lines."""
    truths = [("a", Truth(silent=0.1)), ("b", Truth(silent=0.2))]
    return write_simulated(tmp_path_factory.mktemp("whole"), 12, truths)


def scores(simulated: Simulated, folder: Path) -> Any:
    return score_folder(folder, simulated.release, Definitions(resamples=0)).as_json()


SPLITS: dict[str, Callable[[Judgement], object]] = {
    "judges": lambda line: line.judge.spec, "methods": lambda line: line.method,
    "stories": lambda line: line.unit, "lines": lambda line: line.key(),
}  # fmt: skip


@pytest.mark.parametrize("examples", [2, pytest.param(20, marks=pytest.mark.slow)])
def test_union_when_parts_overlap_and_come_in_any_order_is_the_whole(whole, tmp_path_factory, examples):
    lines, expected = list(lines_of(whole.run / JUDGEMENTS)), scores(whole, whole.run)
    described = read_manifest(whole.run)
    texts = [canonical_bytes(line.as_json()) + b"\n" for line in lines]

    @settings(max_examples=examples, derandomize=True, database=None, deadline=None)
    @given(st.randoms(use_true_random=True), st.sampled_from(sorted(SPLITS)), st.integers(2, 4))
    def check(random: Random, split: str, count: int) -> None:
        folder, places = tmp_path_factory.mktemp("parts"), dict[object, int]()
        parts: list[list[int]] = [[] for _ in range(count)]
        for index, line in enumerate(lines):
            place = places.setdefault(SPLITS[split](line), random.randrange(count))
            for number in {place, random.randrange(count)} if random.random() < 0.2 else {place}:
                parts[number] += [index] * random.choice((1, 1, 1, 2))
        for number, part in enumerate(parts):
            (folder / str(number)).mkdir()
            own = [lines[index] for index in sorted(set(part))]
            methods = {line.method for line in own}
            subject = {name: about for name, about in described.subject["methods"].items() if name in methods}
            protocol = described.protocol | {"judges": sorted({line.judge.spec for line in own})}
            told = {"protocol": protocol, "subject": {"methods": subject}}
            write_manifest(folder / str(number), described.model_copy(update=told))
            random.shuffle(part)
            (folder / str(number) / JUDGEMENTS).write_bytes(b"".join(texts[index] for index in part))
            assert list(read_archive(folder / str(number)).judgements) == own
        merged = merge_archives([folder / str(number) for number in range(count)], folder / "merged")
        assert (folder / "merged" / JUDGEMENTS).read_bytes() == (whole.run / JUDGEMENTS).read_bytes()
        assert [read for read, _ in merged.parts.values()] == [len(part) for part in parts]
        assert (merged.judgements, merged.passed_over) == (len(lines), 0)
        assert scores(whole, folder / "merged") == expected

    check()


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


# -- Archives of several judges, methods, stories and machines become one that is scored like a single run's

Evaluate = Callable[..., Path]


@pytest.fixture
def release(tmp_path: Path) -> Release:
    return drawn_release(tmp_path / "release", 3)


@pytest.fixture
def evaluate(tmp_path: Path, release: Release, boards: Path, server: ModelServer) -> Evaluate:
    """Judge drawn storyboards into a folder of the given name; return the folder."""

    def run(out: str, *names: str, outputs: Any = None, **given: Any) -> Path:
        judges = [f"{server.openai_url}#{name}" for name in names or ("one",)]
        options = EvaluateOptions(judges=judges, workers=0, created_at="2026-01-01T00:00:00Z", **given)
        evaluate_katha(release.path, outputs or boards, tmp_path / out, options)
        return tmp_path / out

    return run


def scores_of(folder: Path) -> Any:
    return score_folder(folder, folder.parent / "release", Definitions(resamples=50)).as_json()


def changed(folder: Path, place: int, **fields: Any) -> None:
    """Change a line of an archive."""
    lines = (folder / JUDGEMENTS).read_bytes().splitlines()
    lines[place] = canonical_bytes(json.loads(lines[place]) | fields)
    (folder / JUDGEMENTS).write_bytes(b"\n".join([*lines, b""]))


def test_subject_when_a_method_has_other_outputs_adds_them_unless_a_story_is_in_both() -> None:
    def judged(sha: str, requested: int, valid: int, *invalid: str, **more: Any) -> EvaluationManifest:
        about = {"outputs_sha256": sha, "requested": requested, "valid": valid, **more}
        about["invalid"] = [{"story_id": story} for story in invalid]
        return manifest().model_copy(update={"subject": {"methods": {"m": about}}})

    first, second = judged("a", 3, 2, "s3", seeds=[1]), judged("b", 2, 2, seeds=[2, 1])
    units = [{("m", "s1"), ("m", "s2")}, {("m", "s4"), ("m", "s5"), (None, "s6")}, {("m", "s3")}]
    subject, stories = merged_subject([first, second], units[:2])
    # 3 + 2 were asked for and 2 + 2 came: 1 of 5 is missing.
    assert subject == {"methods": {"m": {
        "outputs_sha256": digest(["a", "b"]), "requested": 5, "valid": 4, "invalid_rate": 0.2,
        "invalid": [{"story_id": "s3"}], "seeds": [1, 2],
    }}}  # fmt: skip
    assert stories == {"s1", "s2", "s3", "s4", "s5", "s6"}
    with pytest.raises(InputError, match=r"method for 1 of its stories or prompts: .* a and c"):
        merged_subject([first, judged("c", 1, 1)], [units[0], units[2]])
    twice, _ = merged_subject([first, judged("a", 3, 2, "s3", "s9")], units[:2])
    assert [one["story_id"] for one in twice["methods"]["m"]["invalid"]] == ["s3", "s9"]


@pytest.fixture(scope="module")
def images(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An evaluation of the pictures of two methods, as it is once it is merged."""
    folder = tmp_path_factory.mktemp("images")
    with tarfile.open(Path(__file__).parents[2] / "golden/replays/evaluate-images.tar.xz") as archive:
        archive.extractall(folder, filter="data")
    merge_archives([folder / "run", part_of(folder / "run", folder / "a", "model-a")], folder / "whole")
    return folder / "whole"


def part_of(whole: Path, target: Path, method: str, change: Callable[[Any], None] = lambda _: None) -> Path:
    """Write what an evaluation holds of one method, with a change of its first story."""
    target.mkdir()
    for name in ("images.jsonl", JUDGEMENTS):
        rows = [json.loads(line) for line in (whole / name).read_bytes().splitlines()]
        own = [row for row in rows if row["method"] == method]
        if name == "images.jsonl":
            change(own[0])
        (target / name).write_text("".join(json.dumps(row) + "\n" for row in own), "utf-8")
    about = json.loads((whole / EVALUATION).read_bytes())
    about["subject"]["methods"] = {method: about["subject"]["methods"][method]}
    (target / EVALUATION).write_text(json.dumps(about), "utf-8")
    return target


def test_merge_when_lines_lie_beside_the_replies_joins_them_by_story_and_method(images, tmp_path) -> None:
    first, second = (part_of(images, tmp_path / name, f"model-{name}") for name in ("a", "b"))
    merged = merge_archives([second, first], tmp_path / "merged")
    assert all(
        (tmp_path / "merged" / name).read_bytes() == (images / name).read_bytes()
        for name in ("images.jsonl", JUDGEMENTS)
    )
    whole = read_archive(images).manifest
    assert (merged.manifest.subject, merged.manifest.protocol) == (whole.subject, whole.protocol)
    assert list(merged.lines()) == [
        f"{second}: 22 judgements, 22 of them new", f"{first}: 28 judgements, 28 of them new",
        "50 judgements, images, stories of methods that were looked at: 4",
    ]  # fmt: skip
    assert merged.as_json() == {
        "kind": "images", "judgements": 50, "passed_over": 0, "stories": 4,
        "parts": [
            {"folder": str(folder), "judgements": count, "new": count}
            for folder, count in ((second, 22), (first, 28))
        ],
    }  # fmt: skip


def test_merge_when_a_story_was_found_otherwise_is_refused_unless_the_first_wins(images, tmp_path) -> None:
    def moved(row: Any) -> None:
        row["boxes"]["references"]["Mira"][0][0][0] += 1.0

    def redrawn(row: Any) -> None:
        row["shots"][0]["sha256"] = "0" * 64

    other, pictures = (
        part_of(images, tmp_path / change.__name__, "model-a", change) for change in (moved, redrawn)
    )
    for part, says in (
        (other, "have other boxes, by models"),
        (pictures, "differ in shots"),
    ):
        with pytest.raises(InputError, match=f"model-a/01: {images} and {part} {says}"):
            merge_archives([images, part], tmp_path / "merged")
    merged = merge_archives([images, other], tmp_path / "first", first_wins=True)
    assert [new for _, new in merged.parts.values()] == [50, 0]
    assert (tmp_path / "first/images.jsonl").read_bytes() == (images / "images.jsonl").read_bytes()


@pytest.mark.slow
def test_merge_when_parts_are_those_of_one_evaluation_scores_as_the_whole(
    evaluate: Evaluate, release: Release, boards: Path, tmp_path: Path
) -> None:
    both = [boards, draw_outputs(tmp_path / "other", release.records)]
    parts = [evaluate("a", "one", outputs=both), evaluate("b", "two", outputs=both)]
    whole = evaluate("whole", "one", "two", outputs=both)
    merged = merge_archives(parts, tmp_path / "merged")
    assert (tmp_path / "merged" / JUDGEMENTS).read_bytes() == (whole / JUDGEMENTS).read_bytes()
    assert merged.judgements == len(read_archive(whole).judgements)
    assert scores_of(tmp_path / "merged") == scores_of(whole)
    expected, found = (read_archive(place).manifest for place in (whole, tmp_path / "merged"))
    assert (found.protocol, found.subject) == (expected.protocol, expected.subject)


@pytest.mark.slow
def test_merge_when_one_judge_answers_the_same_differently_shows_both_or_keeps_the_first(evaluate, tmp_path):
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


@pytest.mark.slow
def test_merge_when_protocols_differ_is_refused_unless_allowed(evaluate: Evaluate, tmp_path: Path) -> None:
    parts = [evaluate("a"), evaluate("b", "two", settings=["judge_text.max_tokens=99"])]
    with pytest.raises(InputError, match=r"protocol decoding\.judge_text\.max_tokens"):
        merge_archives(parts, tmp_path / "merged")
    merge_archives(parts, tmp_path / "merged", allowed=["decoding"])
    archive: Archive = read_archive(tmp_path / "merged")
    assert archive.manifest.protocol["judges"] == ["compatible:one", "compatible:two"]


@pytest.mark.slow
def test_merge_when_outputs_of_one_method_differ_is_refused(evaluate, release, tmp_path):
    other = draw_outputs(tmp_path / "elsewhere" / "drawn", release.records, side=128)
    parts = [evaluate("a"), evaluate("b", "two", outputs=other)]
    with pytest.raises(InputError, match="method drawn: two evaluations judged different outputs"):
        merge_archives(parts, tmp_path / "merged")


@pytest.mark.slow
def test_merge_when_a_part_is_unfinished_says_so_in_the_whole(evaluate: Evaluate, tmp_path: Path) -> None:
    parts = [evaluate("a"), evaluate("b", "two")]
    document = json.loads((parts[1] / EVALUATION).read_bytes())
    document["environment"]["incomplete"] = {"unasked": {"compatible:two": 3}, "unreached": 0}
    document["environment"]["simulation"] = True
    (parts[1] / EVALUATION).write_text(json.dumps(document))
    merge_archives(parts, tmp_path / "merged")
    assert "not finished (3 questions not asked yet)" in scores_of(tmp_path / "merged")["notes"][1]
    assert read_archive(tmp_path / "merged").manifest.environment["simulation"] is True
    compared = compare_folders(parts[0], parts[1], None, Definitions(resamples=0), ["judges", "models"])
    unfinished = [note for note in compared.notes if "not finished" in note]
    assert [note.partition(": ")[0] for note in unfinished] == ["b"]


@pytest.mark.slow
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
