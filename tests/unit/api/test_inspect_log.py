"""An evaluation as a log of inspect_ai: the file by itself, and as inspect_ai reads it."""

import json
import zipfile
from pathlib import Path
from typing import Any

import pytest

import fabula
from fabula.errors import ConfigError, TargetError
from fabula.kinds.evaluations import export_inspect
from fabula.schemas.text import normalize_answer


def test_log_when_written_has_a_sample_for_each_reply_and_the_same_bytes_again(
    at_desk: Any, tmp_path: Path
) -> None:
    replies = fabula.load("runs/eval").to_pandas()
    first, second = tmp_path / "a.eval", tmp_path / "b.eval"
    assert export_inspect(Path("runs/eval"), first) == len(replies)
    export_inspect(Path("runs/eval"), second)
    assert first.read_bytes() == second.read_bytes()
    with zipfile.ZipFile(first) as log:
        names = set(log.namelist())
        assert {"header.json", "summaries.json", "_journal/start.json"} <= names
        assert sum(name.startswith("samples/") for name in names) == len(replies)
        header = json.loads(log.read("header.json"))
        assert at_desk.judge not in log.read("header.json").decode()
        samples = [json.loads(log.read(name)) for name in sorted(names) if name.startswith("samples/")]
    questions = [sample for sample in samples if sample["metadata"]["kind"] == "question"]
    for sample in questions:
        value, said = sample["scores"]["correct"]["value"], sample["scores"]["correct"]["answer"]
        if said is not None:
            accepted = {normalize_answer(text) for text in sample["target"]}
            assert (value == "C") == (normalize_answer(said) in accepted)
    right = [sample["scores"]["correct"]["value"] == "C" for sample in questions]
    assert 0 < sum(right) < len(right)
    assert all("correct" not in sample["scores"] for sample in samples if sample not in questions)
    gap = fabula.score("runs/eval", resamples=0).to_pandas("headline").set_index("measure")["value"]["gap"]
    assert header["results"]["scores"][0]["metrics"]["gap"]["value"] == pytest.approx(gap)


def test_log_when_it_is_there_or_has_another_ending_is_refused(at_desk: Any, tmp_path: Path) -> None:
    (tmp_path / "there.eval").touch()
    with pytest.raises(TargetError, match="there already"):
        export_inspect(Path("runs/eval"), tmp_path / "there.eval")
    with pytest.raises(ConfigError, match=r"ends with \.eval"):
        export_inspect(Path("runs/eval"), tmp_path / "log.json")


def test_log_when_inspect_ai_reads_it_has_questions_answers_and_outcomes(
    at_desk: Any, tmp_path: Path
) -> None:
    reader = pytest.importorskip("inspect_ai.log", reason="inspect_ai is not installed")
    export_inspect(Path("runs/eval"), tmp_path / "x.eval")
    log = reader.read_eval_log(str(tmp_path / "x.eval"))
    replies = fabula.load("runs/eval").to_pandas()
    questions = fabula.load("dist/mine-0.1.0").to_pandas("questions").set_index("question_id")
    assert log.status == "success"
    assert log.eval.model == "compatible:toy"
    assert sorted(sample.output.completion for sample in log.samples) == sorted(replies["raw"])
    asked = next(sample for sample in log.samples if sample.metadata["kind"] == "question")
    item = next(part for part in asked.id.split(":") if part in questions.index)
    assert asked.input == questions.loc[item, "question"]
    assert asked.scores["outcome"].value == "answered"
    assert {asked.scores["correct"].value} <= {"C", "I"}
    assert len(reader.read_eval_log_sample_summaries(str(tmp_path / "x.eval"))) == len(replies)
