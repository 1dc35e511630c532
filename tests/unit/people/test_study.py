"""The whole way: an archive, a release or suite, a file of made-up answers; and the command on top."""

import json
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.calibration import calibration_curve
from typer.testing import CliRunner

from fabula.cli.main import app
from fabula.errors import ConfigError, InputError
from fabula.evaluation.archive.archive import release_sha256, write_archive
from fabula.evaluation.recoverability.score import read_weights
from fabula.kinds.evaluations import calibrate
from fabula.people.against import Bin, bins_by, bins_of
from fabula.people.recoverability import Resampling
from fabula.people.study import Followed, StudySettings
from fabula.releases.events.form import write_suite
from fabula.releases.loading import Release
from fabula.schemas.events import EventPrompt, Suite
from fabula.schemas.judgement import EvaluationManifest, HumanRow, Judgement
from fabula.schemas.katha import Question

FEW = StudySettings(resampling=Resampling(50))
Line = Callable[..., HumanRow]
Reply = Callable[..., Judgement]


def manifest(
    kind: str, protocol: dict[str, Any], methods: Sequence[str], **environment: Any
) -> EvaluationManifest:
    subject = {"methods": {method: {} for method in methods}}
    return EvaluationManifest.model_validate(
        {"kind": kind, "protocol": protocol, "subject": subject, "environment": environment}
    )


@pytest.fixture
def storyboards(tmp_path: Path, release: Release, reply: Reply, questions: dict[str, Question]) -> Path:
    """An evaluation of one method by two judges."""
    replies = [
        reply(item, (number + shift) % 3 > 0, judge, condition=condition)
        for number, item in enumerate(questions)
        for shift, judge in enumerate(("test:a", "test:b"))
        for condition in ("text", "image", "text_image")
    ]
    folder = tmp_path / "evaluation"
    folder.mkdir()
    sources = [{"role": "release", "name": "release", "path": str(release.path)}]
    about = manifest("katha", {"release": {"sha256": release_sha256(release.path)}}, ["m"], sources=sources)
    write_archive(folder, about, replies)
    return folder


@pytest.fixture
def people(tmp_path: Path, line: Line, questions: dict[str, Question], release: Release) -> Path:
    """A made-up study of four participants; nobody took part in it."""
    rows = []
    for number, item in enumerate(questions):
        for person in range(4):
            rows += [
                line("answer", f"p{person}", item, number % 5 > 0, condition="text"),
                line("answer", f"p{person}", item, (number + person) % 3 > 0, confidence="low"),
                line("answer", f"p{person}", item, number % 7 > 0, condition="text_image"),
            ]
    for record in release.records:
        for person in range(4):
            rows += [
                line("moral_label", f"p{person}", record.story_id, labels=(record.moral_label,)),
                line("rating", f"p{person}", record.story_id, method="m", criterion="NCS", value=person + 1),
                line("preference", f"p{person}", record.story_id, method="m", baseline="o", criterion="Q15",
                     value=person - 1),
            ]  # fmt: skip
    rows.append(line("attention", "p9", "check", value=0))
    rows.append(line("rating", "p9", release.records[0].story_id, method="m", criterion="NCS", value=1))
    path = tmp_path / "people.jsonl"
    path.write_text("".join(json.dumps(row.as_json()) + "\n" for row in rows), encoding="utf-8")
    return path


def test_study_when_whole_has_every_part(storyboards: Path, people: Path) -> None:
    found, again = (calibrate(storyboards, people, settings=FEW) for _ in range(2))
    document = json.loads(json.dumps(found.as_json(), allow_nan=False))
    assert document == json.loads(json.dumps(again.as_json()))
    assert document["people"]["raters"] == 4
    assert document["people"]["excluded_raters"] == {"p9": "attention checks failed: 1"}
    assert document["people"]["items_with_too_few_raters"] == []
    method = document["methods"]["m"]
    assert method["valid_set"] == "people"
    assert 0 < method["questions_valid"] < method["questions_asked"]
    text, image = (method["recoverability"][name]["overall"]["value"] for name in ("text", "image"))
    assert method["stg"]["overall"]["value"] == pytest.approx(text - image)
    assert method["ratings"]["NCS"]["mean"]["value"] == 2.5
    assert method["moral"]["image"]["HMR@1"]["value"] == 1.0
    assert [one["criterion"] for one in document["preferences"]] == ["Q15"]
    assert [one["dimension"] for one in document["preference_dimensions"]] == ["overall preference"]
    boards = document["judges"]["ensemble"]["answers"]["image"]["storyboards"]
    assert set(boards[0]) == {"method", "seed", "story", "people", "judge", "questions"}
    assert set(document["judges"]) == {"ensemble", "test:a", "test:b"}
    assert set(document["judges"]["test:a"]["answers"]) == {"text", "image", "text_image"}
    whats = {one["what"] for one in document["agreement"]}
    assert {"answer, image", "rating, NCS", "moral_label, image"} <= whats
    assert document["definitions"]["confidence"] == {"low": 0.25, "medium": 0.5, "high": 0.9}
    lines = list(found.lines())
    assert any("STG" in text for text in lines)
    assert any("left out: p9" in text for text in lines)


def test_study_when_lines_are_simulated_or_of_several_protocols_says_so(storyboards, people):
    rows = [json.loads(row) for row in people.read_text().splitlines()]
    for number, row in enumerate(rows[:30]):
        row |= {"simulated": number < 7, "protocol": ("a" if number < 20 else "b") * 64}
    people.write_text("\n".join(map(json.dumps, rows)))
    found = calibrate(storyboards, people, settings=FEW)
    about = found.as_json()["people"]
    assert about["lines_read"] == len(rows)
    assert (about["simulated"], about["protocols"]) == (7, {"a" * 64: 20, "b" * 64: 10})
    first, second, *_ = found.lines()
    assert first.startswith(f"warning: 7 of {len(rows):,} lines come from simulated people")
    assert second == (
        "warning: Lines given under 2 versions of the study's protocol are pooled: aaaaaaaaaaaa (20 lines), "
        f"bbbbbbbbbbbb (10 lines); {len(rows) - 30:,} lines name none."
    )


@pytest.mark.parametrize(("named", "warned"), [(0, False), (1, True), (-1, False)])
def test_study_when_one_protocol_is_pooled_with_none_says_so(storyboards, people, named, warned):
    rows = [json.loads(row) for row in people.read_text().splitlines()]
    for row in rows[: named if named >= 0 else len(rows)]:
        row["protocol"] = "c" * 64
    people.write_text("\n".join(map(json.dumps, rows)))
    found = calibrate(storyboards, people, settings=FEW)
    assert found.as_json()["people"]["simulated"] == 0
    assert any("pooled: cccccccccccc (1 line)" in text for text in found.lines()) == warned
    assert not any("simulated" in text for text in found.lines())


@pytest.mark.parametrize("valid", ["judges", "all"])
def test_study_when_valid_questions_are_defined_otherwise_says_so(storyboards, people, valid):
    found = calibrate(storyboards, people, settings=StudySettings(resampling=Resampling(0), valid=valid))
    assert found.as_json()["methods"]["m"]["valid_set"] == valid
    with pytest.raises(ConfigError):
        StudySettings(valid="nobody")


def test_study_when_weights_are_fitted_uses_one_split(storyboards, people, release):
    split = next(iter(release.splits))
    found = calibrate(storyboards, people, settings=StudySettings(resampling=Resampling(0), fit_split=split))
    weights = found.as_json()["weights"]
    assert weights["split"] == split
    assert set(weights["weights"]) == {"test:a", "test:b"}


def test_study_when_people_are_few_lists_the_items(storyboards: Path, people: Path) -> None:
    rows = [row for row in people.read_text().splitlines() if '"p3"' not in row and '"p2"' not in row]
    people.write_text("\n".join(rows))
    found = calibrate(storyboards, people, settings=FEW)
    thin = found.as_json()["people"]["items_with_too_few_raters"]
    assert len(thin) == found.as_json()["people"]["items"] > 0
    assert any("too few people" in text for text in found.lines())


def test_study_when_release_is_another_is_refused(storyboards, people, tmp_path, release):
    other = Path(shutil.copytree(release.path, tmp_path / "other"))
    with (other / "annotations.jsonl").open("ab") as file:
        file.write(b"\n")
    with pytest.raises(InputError, match="this is not the release that was judged"):
        calibrate(storyboards, people, other, FEW)


Judged = Callable[..., tuple[Path, Path]]


@pytest.fixture
def videos(tmp_path: Path) -> Judged:
    """An evaluation of videos of one suite, and made-up answers of one person by task."""
    prompt = EventPrompt.model_validate({"prompt": "x", "event_list": ["One", "Two"], "class": ["human"]})
    suite = Suite({"a.mp4": prompt, "b.mp4": prompt})
    who = {"spec": "test:v", "provider": "test", "model": "v", "reported_model": None}

    def make(votes: dict[str, list[list[int] | None]], told: dict[str, list[int]]) -> tuple[Path, Path]:
        folder = tmp_path / "events"
        folder.mkdir()
        write_suite(folder / "all_prompts.json", suite)
        replies = [
            Judgement.model_validate({
                "protocol": "events", "kind": "completion", "method": method, "unit": unit, "seed": None,
                "item": unit, "condition": "video", "judge": who, "vote": number, "prompt": "",
                "outcome": "answered" if done else "refused", "reason": None, "raw": None,
                "parsed": {"completion": done, "description": ""} if done else None,
                "input_tokens": None, "output_tokens": None, "cost": None, "time": None,
            })
            for method, given in votes.items()
            for unit in suite.prompts
            for number, done in enumerate(given)
        ]  # fmt: skip
        write_archive(folder, manifest("events", {"suite": {"sha256": suite.sha256()}}, list(votes)), replies)
        key, rows = {}, []
        for number, (method, done) in enumerate(told.items()):
            key[f"task_{number}"] = ["a.mp4", method]
            rows.append({"kind": "completion", "rater": "p", "item": f"task_{number}", "completion": done})
        (tmp_path / "key.json").write_text(json.dumps(key))
        (tmp_path / "told.jsonl").write_text("\n".join(map(json.dumps, rows)))
        return folder, tmp_path / "told.jsonl"

    return make


def test_videos_when_people_judged_tasks_are_aligned_by_class(videos: Judged, tmp_path: Path) -> None:
    rates = {"x": [0, 0], "y": [1, 0], "z": [1, 1]}
    folder, people = videos({name: [done] for name, done in rates.items()}, rates)
    found = calibrate(folder, people, key=tmp_path / "key.json", settings=FEW)
    judge = found.as_json()["judges"]["test:v"]
    assert (judge["videos"], judge["not_answered"], judge["nonresponse"]) == (3, 0, "zero")
    assert judge["classes"]["human"]["spearman"]["value"] == 1.0
    assert any("human: 3 models, Spearman 1.000" in text for text in found.lines())
    assert any("models on human: 3 are too few to conclude anything" in text for text in found.lines())


def test_videos_when_votes_differ_compare_the_ways_to_combine_them(videos: Judged, tmp_path: Path) -> None:
    votes: dict[str, list[list[int] | None]] = {
        "x": [[1, 0], [0, 0], [0, 0]], "y": [[1, 1], [1, 1], [0, 0]], "z": [[1, 1], [1, 1], [1, 1]],
    }  # fmt: skip
    folder, people = videos(votes, {"x": [0, 0], "y": [0, 0], "z": [1, 1]})
    found = calibrate(folder, people, key=tmp_path / "key.json", settings=FEW)
    ways = found.as_json()["judges"]["test:v"]["alternatives"]
    # Rates of x, y, z: average 1/6, 2/3, 1; one of three 1/2, 1, 1; two of three 0, 1, 1; all 0, 0, 1.
    wanted = {"average": 5 / 18, "at_least_1": 1 / 2, "at_least_2": 1 / 3, "unanimous": 0}
    assert {way: one["difference"] for way, one in ways.items()} == pytest.approx(wanted)
    assert ways["unanimous"]["spearman"]["value"] == pytest.approx(1)
    assert any("    at_least_2: Spearman" in text for text in found.lines())


def test_videos_when_the_judge_is_silent_count_as_scoring_says(videos: Judged, tmp_path: Path) -> None:
    folder, people = videos({"x": [None], "y": [[1, 0]]}, {"x": [1, 1], "y": [1, 0]})

    def told(nonresponse: Any) -> tuple[Any, ...]:
        settings = StudySettings(resampling=Resampling(0), nonresponse=nonresponse)
        found = calibrate(folder, people, key=tmp_path / "key.json", settings=settings).as_json()
        judge = found["judges"]["test:v"]
        models = judge["classes"]["all"]["models"].items()
        said = found["definitions"]["nonresponse"], judge["not_answered"]
        return (*said, {name: values[1] for name, values in models})

    assert told(None) == ("zero", 1, {"x": 0.0, "y": 0.5})
    assert told("incorrect") == told(None)
    assert told("excluded") == ("excluded", 1, {"y": 0.5})
    with pytest.raises(ConfigError, match="nonresponse"):
        told("zero")


def test_answers_when_of_another_kind_of_evaluation_give_one_problem(videos, storyboards, people, tmp_path):
    folder, completions = videos({"x": [[1, 0]]}, {"x": [1, 1]})
    with pytest.raises(InputError) as caught:
        calibrate(folder, people)
    (problem,) = caught.value.problems
    assert "the evaluation is of videos" in problem.expected
    with pytest.raises(InputError) as caught:
        calibrate(storyboards, completions)
    (problem,) = caught.value.problems
    assert ("the evaluation is of storyboards" in problem.expected, problem.found) == (
        True, "1 of kind completion",
    )  # fmt: skip


def test_command_when_given_answers_prints_them_for_people_and_scripts(storyboards, people):
    options = ["calibrate", str(storyboards), "--human", str(people), "--resamples", "20"]
    shown = CliRunner().invoke(app, options)
    assert shown.exit_code == 0, shown.output
    assert "Krippendorff's alpha" in shown.output
    document = json.loads(CliRunner().invoke(app, [*options, "--json", "--confidence", "high=0.8"]).output)
    assert document["definitions"]["confidence"]["high"] == 0.8


def test_command_when_answers_or_options_are_wrong_exits_with_what_to_do(storyboards, people):
    people.write_text(people.read_text() + '{"kind": "rating"}\n')
    done = CliRunner().invoke(app, ["calibrate", str(storyboards), "--human", str(people)])
    assert done.exit_code == 1
    assert "rater: expected the anonymised id of the person" in done.output
    options = ["calibrate", str(storyboards), "--human", str(people), "--confidence"]
    assert CliRunner().invoke(app, [*options, "sure=1"]).exit_code == 2
    assert CliRunner().invoke(app, [*options, "high=2"]).exit_code == 2


def test_command_when_weights_are_fitted_writes_what_scoring_reads(storyboards, people, tmp_path, release):
    options = ["calibrate", str(storyboards), "--human", str(people), "--resamples", "0", "--fit-weights"]
    done = CliRunner().invoke(app, [*options, str(tmp_path / "weights.json")])
    assert "validation" in release.splits
    assert done.exit_code == 0, done.output
    assert set(read_weights(tmp_path / "weights.json")) == {"test:a", "test:b"}
    assert CliRunner().invoke(app, [*options, str(tmp_path / "none" / "w.json")]).exit_code == 2
    stories = {record.story_id for record in release.splits["validation"]}
    rows = [row for row in people.read_text().splitlines() if not any(story in row for story in stories)]
    people.write_text("\n".join(rows))
    assert CliRunner().invoke(app, [*options, str(tmp_path / "weights.json")]).exit_code == 1


# -- Bins of stated confidence: by hand, and beside scikit-learn's calibration curve


def test_bins_when_worked_by_hand_are_those() -> None:
    confidence = np.array([0.9, 0.9, 0.25, 0.9, 0.9])
    bins = bins_of(confidence, np.array([1, 1, 0, 0, 1], dtype=bool), bins_by(confidence, single=True))
    assert bins == (Bin(1, 0.25, 0.0), Bin(4, pytest.approx(0.9), 0.75))


def test_bins_when_compared_are_those_of_scikit_learn() -> None:
    random = np.random.default_rng(0)
    confidence = random.uniform(size=500)
    right = random.uniform(size=500) < confidence**2
    accuracy, stated = calibration_curve(right, confidence, n_bins=10)
    sizes = np.histogram(confidence, bins=np.linspace(0, 1, 11))[0]
    bins = bins_of(confidence, right, bins_by(confidence, single=False))
    assert [one.count for one in bins] == list(sizes[sizes > 0])
    assert [one.accuracy for one in bins] == pytest.approx(accuracy)
    assert [one.confidence for one in bins] == pytest.approx(stated)


def test_bins_when_confidence_is_whole_or_nobody_answered_are_the_last_or_none() -> None:
    ones = np.ones(3)
    assert bins_of(ones, ones > 0, bins_by(ones, single=False)) == (Bin(3, 1.0, 1.0),)
    # ten of equal width, the last with its upper end; what nobody states falls into the first
    edges = np.array([0.0, 0.09, 0.1, 0.95, 1.0, np.nan])
    assert bins_by(edges, single=False).tolist() == [0, 0, 1, 9, 9, 0]
    assert bins_of(np.zeros(0), np.zeros(0, dtype=bool), bins_by(np.zeros(0), single=False)) == ()


@pytest.mark.parametrize(
    ("followed", "said"),
    [
        (Followed("j, answers", 0.81, 120, people=0.84),
         "81% of 120, and they agree with each other on 84%: it may stand in"),
        (Followed("j, answers", 0.71, 120, people=0.84), "on 84%: do not let it"),
        (Followed("j, answers", 0.81, 120), "how far people agree among themselves is not known"),
        (Followed("j, answers", 1.0, 29, people=0.8), "29 are too few to conclude anything"),
        (Followed("j, answers", None, 500, people=0.8), "too few to conclude anything"),
        (Followed("m for style", 0.7, 6, ranks=True), "it follows people (rank correlation 0.70 over 6)"),
        (Followed("m for style", 0.4, 6, ranks=True), "follows people loosely"),
        (Followed("m for style", -0.2, 6, ranks=True), "does not follow people"),
        (Followed("m for style", 0.9, 5, ranks=True), "5 are too few"),
    ],
)  # fmt: skip
def test_conclusion_when_drawn_says_what_the_number_allows(followed: Followed, said: str) -> None:
    assert said in followed.line()
