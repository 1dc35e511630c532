"""What help and the page on Python show is run: with a judge and a Hub on loopback, and real files."""

import doctest
import json
import re
import shutil
import sys
import zipfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from huggingface_hub import parse_eval_result_entries

import fabula
from fabula.engine.calls import answered
from fabula.engine.hooks import Event
from fabula.errors import ConfigError, TargetError
from fabula.evaluation.archive.archive import HubResults
from fabula.evaluation.judging.settings import SelectionSettings
from fabula.evaluation.katha import inspect_task
from fabula.evaluation.katha.inspect_task import Shown, shown_questions
from fabula.kinds.evaluations import export_inspect, export_results
from fabula.models.replies import Malformed
from fabula.schemas.text import normalize_answer

VERBS = (
    "build", "validate", "audit", "pack", "verify", "load", "diff", "evaluate", "score", "compare", "report",
    "experiment", "publish", "fetch", "extend", "metric",
)  # fmt: skip
"""In the order in which one's files are there for the next."""
PAGE = Path(fabula.__file__).parent / "docs" / "python.md"


def test_verbs_when_help_is_asked_are_there_with_types_and_an_example() -> None:
    for name in VERBS:
        verb = getattr(fabula, name)
        assert verb.__annotations__["return"]
        assert ">>> " in verb.__doc__
    assert set(VERBS) <= set(dir(fabula))


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.slow] if name == "extend" else []) for name in VERBS]
)
def test_example_when_run_gives_what_it_shows(at_desk: Any, name: str, tmp_path: Path) -> None:
    runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE)
    said: list[str] = []
    with pytest.MonkeyPatch.context() as patch:
        if name == "fetch":
            fabula.publish("dist/mine-0.1.0", "user/mine", progress=False)
        if name in ("pack", "extend"):  # these would change what other tests look at
            shutil.copytree("runs/mine", tmp_path / "runs/mine")
            for file in ("stories.jsonl", "new.jsonl", "fabula.toml"):
                shutil.copy(file, tmp_path)
            patch.chdir(tmp_path)
        text = at_desk.code(getattr(fabula, name).__doc__)
        runner.run(doctest.DocTestParser().get_doctest(text, {}, name, None, None), out=said.append)
    assert runner.summarize(verbose=False) == (0, runner.tries), "".join(said)


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: fabula.metric("alignment"), "a judge rates it"),
        (lambda: fabula.metric("fid"), "use one of cids, copy-paste, occm, csd"),
        (lambda: fabula.metric("csd", csd="none"), "csd"),
        (lambda: fabula.metric("csd", device="cpu")(["a.png"], texts=[]), "0 for 1 pictures"),
        (lambda: fabula.metric("csd", device="cpu")([np.zeros((4, 4))]), "is no picture"),
    ],
)
def test_metric_when_it_cannot_be_taken_says_why(call: Any, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        call()


def test_evaluate_when_the_settings_file_also_speaks_of_a_build_takes_its_own(at_desk, tmp_path):
    settings = Path("fabula.toml").read_text("utf-8") + '\n[assemble_records]\nlicense = "CC-BY-4.0"\n'
    (tmp_path / "both.toml").write_text(settings, "utf-8")
    plan = fabula.evaluate(
        "dist/mine-0.1.0", "boards/model-x", tmp_path / "eval", judges=at_desk.judge, dry_run=True,
        config=tmp_path / "both.toml",
    )  # fmt: skip
    assert plan.calls > 0


@pytest.mark.slow
def test_blocks_of_the_page_when_run_in_order_work(at_desk, tmp_path, capsys):
    if not PAGE.exists():
        pytest.skip("the suite runs against an installed wheel, which has no docs")
    blocks = re.findall(r"^```python\n(.*?)^```$", PAGE.read_text("utf-8"), re.DOTALL | re.MULTILINE)
    assert len(blocks) >= 7
    shutil.move("dist/mine-0.1.0", tmp_path / "before")  # it is packed again, to the same bytes
    known: dict[str, Any] = {}
    for block in blocks:
        exec(compile(at_desk.code(block), str(PAGE), "exec"), known)
    said = capsys.readouterr().out
    assert "plannner: there is no such option" in said
    assert r"\begin{table}" in said


# Hooks of a real package, as entry points name them: what they are told, and what they cannot break.

PACKAGE = '''
import json
from pathlib import Path

class Log:
    """Writes every event as a line of JSON beside the run."""

    def __init__(self, folder: Path) -> None:
        self.path = folder.parent / f"{folder.name}.log"

    def __call__(self, event) -> None:
        line = {"event": event.kind, "stage": event.stage, **event.data}
        with self.path.open("a") as file:
            file.write(json.dumps(line) + "\\n")

class Broken:
    def __init__(self, folder: Path) -> None:
        pass

    def __call__(self, event) -> None:
        raise SystemExit("a hook that gives up")
'''


class Kept:
    """A reporter that keeps what it is told."""

    def __init__(self) -> None:
        self.events: list[Event] = []

    def emit(self, event: Event) -> None:
        self.events.append(event)

    def close(self) -> None:
        pass


@pytest.fixture
def hooks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A package with two hooks on the path, one of which raises at once."""
    site = tmp_path / "site"
    about = site / "house-1.0.dist-info"
    about.mkdir(parents=True)
    (site / "house_hooks.py").write_text(PACKAGE)
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: house\nVersion: 1.0\n")
    named = (
        "[fabula.hooks]\nlog = house_hooks:Log\na-broken = house_hooks:Broken\ngone = house_hooks:Nothing\n"
    )
    (about / "entry_points.txt").write_text(f"[fabula.hooks]\n{named}")
    monkeypatch.syspath_prepend(site)


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_hooks_when_a_run_and_its_scores_are_made_hear_all_of_it_and_break_nothing(at_desk, hooks):
    kept, again = Kept(), {"judges": at_desk.judge, "stories": "kb25k_0001"}
    evaluation = fabula.evaluate("dist/mine-0.1.0", "boards/model-x", "runs/hooked", progress=kept, **again)
    warned = [event.data["message"] for event in kept.events if event.kind == "warning"]
    assert [text.split(" failed")[0] for text in warned] == ["the hook gone", "the hook a-broken"]
    assert {"item-done", "call"} & {event.kind for event in kept.events} == set()

    heard = lines(Path("runs/hooked.log"))
    kinds = [line["event"] for line in heard]
    assert kinds[0] == "run" or kinds[0] == "plan"
    assert kinds[-1] == "run-done"
    calls = [line for line in heard if line["event"] == "call"]
    replies = evaluation.to_pandas()
    assert len(calls) > 0
    assert sum(call["output_tokens"] for call in calls) >= replies["output_tokens"].sum() > 0
    assert {call["outcome"] for call in calls} == {"ok"}
    done = [line for line in heard if line["event"] == "item-done" and line["stage"] == "judge_images"]
    assert [line["status"] for line in done] == ["made"]

    with pytest.warns(UserWarning, match="the hook (gone|a-broken) failed"):
        scores = evaluation.score(resamples=0)
    told = lines(Path("runs/hooked.log"))[-1]
    assert told["event"] == "score"
    assert len(told["rows"]) == len(scores.to_pandas())


@pytest.mark.slow
def test_mlflow_log_when_a_folder_is_named_is_one_run_however_often_it_goes_on(
    at_desk: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mlflow = pytest.importorskip("mlflow", reason="the extra mlflow is not installed")
    monkeypatch.setenv("FABULA_MLFLOW", str(tmp_path / "mlruns"))
    given = {"judges": at_desk.judge, "progress": False}
    fabula.evaluate("dist/mine-0.1.0", "boards/model-x", "runs/logged", stories="kb25k_0001", **given)
    evaluation = fabula.evaluate("dist/mine-0.1.0", "boards/model-x", "runs/logged", **given)
    evaluation.score(resamples=0)

    (run,) = mlflow.MlflowClient((tmp_path / "mlruns").as_uri()).search_runs(["0"])
    assert (run.info.run_name, run.info.status) == ("logged", "FINISHED")
    assert run.data.tags["fabula.pipeline"] == "evaluate-katha"
    assert run.data.tags["fabula.folder"] == str(Path("runs/logged").absolute())
    judges = [value for name, value in run.data.params.items() if name.endswith("judge_images.judges")]
    assert at_desk.judge in judges[0]
    assert run.data.metrics["judge_images/calls"] > 0
    assert run.data.metrics["items/made"] >= 1
    assert {f"score/headline/model-x/{name}" for name in ("text", "image", "gap")} <= set(run.data.metrics)


def test_mlflow_log_when_mlflow_is_missing_says_what_to_install_and_breaks_nothing(
    at_desk: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FABULA_MLFLOW", str(tmp_path / "mlruns"))
    monkeypatch.setitem(sys.modules, "mlflow", None)
    with pytest.warns(UserWarning, match=r'(?s)the hook mlflow failed.*pip install "fabula\[mlflow\]"'):
        fabula.score("runs/eval", resamples=0)
    assert not (tmp_path / "mlruns").exists()


# An evaluation as a log of inspect_ai: the file by itself, and as inspect_ai reads it.


def test_log_when_written_has_a_sample_for_each_reply_and_the_same_bytes_again(at_desk, tmp_path):
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


# Our judging as a task of inspect_ai: what it is made of, and as inspect_ai runs it.


def questions_about_boards(condition: Any) -> list[Shown]:
    chosen = SelectionSettings(stories=("kb25k_0001",))
    boards = [Path("boards/model-x"), Path("boards/model-y")]
    return list(shown_questions(Path("dist/mine-0.1.0"), boards, condition, chosen))


def test_questions_of_the_task_when_made_are_those_that_our_judges_get(at_desk: Any) -> None:
    record = fabula.load("dist/mine-0.1.0").by_id["kb25k_0001"]
    texts, images = questions_about_boards("text"), questions_about_boards("image")
    assert len(texts) == len(record.questions) and len(images) == 2 * len(texts)
    assert len({shown.id for shown in images}) == len(images)
    assert all(len(shown.packet.pictures) == len(record.scenes) for shown in images)
    calls = answered(Path("runs/eval/journal.sqlite"))
    sent = {call.asked["messages"][-1]["parts"][-1]["text"] for call in calls}
    assert {shown.packet.parts()[-1] for shown in images} <= sent
    right, wrong = (reply_of(answer) for answer in (record.questions[0].gold_answer, "a green bicycle"))
    assert (images[0].mark(right)[0], images[0].mark(wrong)) == (True, (False, "a green bicycle"))
    with pytest.raises(Malformed):
        images[0].mark("I cannot tell.")
    with pytest.raises(ConfigError, match="boards/none: nothing there"):
        inspect_task._asked("dist/mine-0.1.0", "boards/none", "image", 42)


def reply_of(answer: str) -> str:
    return json.dumps({"answer": answer, "evidence_status": "recoverable", "confidence": "high"})


@pytest.mark.slow
def test_task_when_inspect_ai_runs_it_scores_what_was_answered_and_nothing_else(
    at_desk: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def no_tokens(*_: Any) -> int:
        return 0

    inspect_ai = pytest.importorskip("inspect_ai", reason="inspect_ai is not installed")
    from inspect_ai.model import ModelOutput, get_model

    model = get_model("mockllm/model", custom_outputs=lambda *_: ModelOutput.from_content("m", next(said)))
    monkeypatch.setattr(type(model.api), "count_tokens", no_tokens)  # it would fetch a tokenizer
    gold = [question for record in fabula.load("dist/mine-0.1.0").records for question in record.questions]
    said = iter([reply_of(gold[0].gold_answer), reply_of("a green bicycle"), *["I cannot tell."] * 100])
    (log,) = inspect_ai.eval(
        inspect_task.katha("dist/mine-0.1.0", "boards/model-x,boards/model-y"),
        model=model, log_dir=str(tmp_path), display="none", max_connections=1, max_samples=1,
    )  # fmt: skip
    assert log.status == "success", log.error
    assert len(log.samples) == 2 * len(gold)
    values = [sample.scores["recoverability"].value for sample in log.samples]
    assert len(values) >= 3 and {"C", "I"} == {value for value in values if isinstance(value, str)}
    answered_ones = sum(isinstance(value, str) for value in values)
    assert log.results.scores[0].scored_samples == answered_ones < len(values)
    pictures = [part for part in log.samples[0].input[-1].content if part.type == "image"]
    assert len(pictures) == 5


def test_results_when_written_are_what_the_hubs_client_reads_with_the_scores_of_one_method(at_desk, tmp_path):
    target, results = (
        tmp_path / ".eval_results/mine.yaml",
        HubResults("user/mine", source="https://x.org/runs"),
    )
    count = export_results(Path("runs/eval"), target, results)
    entries = parse_eval_result_entries(yaml.safe_load(target.read_text()))
    headline = fabula.score("runs/eval", resamples=0).to_pandas("headline").set_index("measure")["value"]
    stated = {entry.task_id: entry.value for entry in entries}
    assert len(stated) == count and stated["gap"] == pytest.approx(headline["gap"])
    assert {(entry.dataset_id, entry.source_url) for entry in entries} == {
        ("user/mine", "https://x.org/runs")
    }
    assert entries[0].notes.startswith("model-x, ") and at_desk.judge not in entries[0].notes
    assert entries[0].notes.endswith(" (made-up judge)"), "who reads the Hub knows it, too"
    with pytest.raises(ConfigError, match="expected 40 hexadecimal digits, found main"):
        export_results(Path("runs/eval"), tmp_path / "b.yaml", replace(results, commit="main"))
    with pytest.raises(TargetError, match="there already"):
        export_results(Path("runs/eval"), target, results)
    with pytest.raises(ConfigError, match="no scores of it"):
        export_results(Path("runs/eval"), tmp_path / "b.yaml", replace(results, method="z"))
    with pytest.raises(ConfigError, match="no such score"):
        export_results(Path("runs/eval"), tmp_path / "b.yaml", replace(results, measures=("beauty",)))


def test_log_when_inspect_ai_reads_it_has_questions_answers_and_outcomes(at_desk, tmp_path):
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
