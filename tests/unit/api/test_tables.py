"""Results as tables: what is escaped, what is missing, and replies whose fields have no one type."""

import json
import os
import re
import sys
import tarfile
from pathlib import Path
from typing import Any

import pytest

import fabula
from fabula.api.frames import judgement_table
from fabula.errors import ConfigError, InputError, MissingRequirement
from fabula.evaluation.report.formats import long_table
from fabula.evaluation.report.model import CountRow, CountTable
from fabula.pages.grid import Grid, Tabular
from fabula.testing.drawn_storyboards import draw_outputs
from fabula.testing.sample_evaluation import make

JUDGE = {"spec": "compatible:toy", "provider": "compatible", "model": "toy", "reported_model": None}


class Made(Tabular):
    """A result of one table."""

    def __init__(self, *rows: tuple[Any, ...]) -> None:
        self.rows = rows

    def grids(self) -> list[Grid]:
        return [Grid("made", "Made & <sold>", ("what", "50%_of"), self.rows, "a_note")]


def archive(folder: Path, *parsed: object, **more: object) -> Path:
    rows = [
        {
            "schema_version": "1", "protocol": "katha", "kind": "question", "method": "x", "unit": "s1",
            "seed": None, "item": f"q{number}", "condition": "image", "judge": JUDGE, "vote": 0,
            "prompt": "p@1", "outcome": "answered" if value is not None else "refused", "reason": None,
            "raw": "...", "parsed": value, "input_tokens": 5, "output_tokens": 2, "cost": None,
            "time": "2026-01-01T00:00:00Z", **more,
        }
        for number, value in enumerate(parsed)
    ]  # fmt: skip
    (folder / "judgements.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return folder


def test_table_when_texts_are_hostile_is_shown_and_printed_as_text() -> None:
    made = Made(("<script>alert(1)</script>\u202e", 1.0), ("a_b & 5 %", None))
    page = made._repr_html_()
    assert "<script>" not in page
    assert "&lt;script&gt;" in page
    assert "\\u202e" in page
    assert "http" not in page
    latex = made.to_latex()
    assert r"a\_b \& 5 \% & -- \\" in latex
    assert r"\caption{Made \& $<$sold$>$. a\_note}" in latex
    assert r"\begin{tabular}{lr}" in latex


def test_frames_when_made_have_a_row_each_and_say_what_tables_there_are() -> None:
    made = Made(("a", 1), ("b", None))
    assert made.to_pandas()["50%_of"].sum() == 1
    assert made.to_polars().rows() == [("a", 1), ("b", None)]
    with pytest.raises(ConfigError, match="use one of: made"):
        made.to_pandas("sold")
    assert Made().to_pandas().shape == (0, 2)


def test_frame_when_polars_is_not_there_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "polars", None)  # as import finds it where it is absent
    with pytest.raises(MissingRequirement, match="pip install polars"):
        Made(("a", 1)).to_polars()


def test_replies_when_fields_differ_in_type_are_json_text_and_none_is_lost(tmp_path: Path) -> None:
    table = judgement_table(archive(tmp_path, {"score": 3}, {"score": "high"}, None, {"other": [1]}))
    assert table["parsed_score"].to_pylist() == ["3", '"high"', None, None]
    assert table["parsed_other"].to_pylist() == [None, None, None, "[1]"]
    assert table["outcome"].to_pylist() == ["answered", "answered", "refused", "answered"]


@pytest.mark.parametrize("text", ["", "{}\n", "not json\n", '{"kind": "question"}\n[1]\n'])
def test_replies_when_a_file_is_none_of_an_archive_are_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "judgements.jsonl").write_text(text)
    with pytest.raises(InputError, match=r"judgements\.jsonl"):
        judgement_table(tmp_path)
    with pytest.raises(InputError, match=r"judgements\.jsonl"):
        judgement_table(tmp_path / "none")


def test_numbers_when_values_are_texts_too_stay_numbers() -> None:
    rows = (CountRow(label="a", values={"n": 3, "name": "x"}), CountRow(label="b", values={"n": None}))
    table = CountTable(name="counts", title="Counts", columns={"n": "N", "name": "Name"}, rows=rows)
    frame = long_table([table]).to_pylist()
    assert [(row["measure"], row["value"], row["text"]) for row in frame] == [
        ("n", 3.0, None), ("name", None, "x"), ("n", None, None),
    ]  # fmt: skip
    with pytest.raises(ConfigError, match="no such table"):
        long_table([table], "scores")


# The notebooks in ``examples/``, executed by a real kernel beside real files; and what notebooks need.

nbformat = pytest.importorskip("nbformat", reason="the extra notebook is not installed")
nbclient = pytest.importorskip("nbclient", reason="the extra notebook is not installed")

GOLDEN = Path(__file__).parents[2] / "golden" / "notebooks" / "sample.tar.xz"
EXAMPLES = Path(fabula.__file__).parent / "examples"


def executed(notebook: Any, folder: Path) -> Any:
    """A notebook as a kernel leaves it that began in a folder."""
    nbclient.NotebookClient(
        notebook, timeout=120, kernel_name="python3", record_timing=False, coalesce_streams=True,
        resources={"metadata": {"path": str(folder)}},
    ).execute()  # fmt: skip
    for cell in notebook.cells:
        cell.metadata.clear()
    notebook.metadata = {name: notebook.metadata[name] for name in ("kernelspec",)}
    return notebook


@pytest.fixture(scope="module")
def sample(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What ``python -m fabula.testing.sample_evaluation`` made once; under ``make endurance`` made anew."""
    folder = tmp_path_factory.mktemp("notebooks") / "sample"
    if os.environ.get("FABULA_ENDURANCE"):
        make(folder)
        return folder
    folder.mkdir()
    with tarfile.open(GOLDEN) as archive:
        archive.extractall(folder, filter="data")
    draw_outputs(folder / "boards/model-a", fabula.load(folder / "dist/demo-0.1.0").records[:1], side=96)
    return folder


@pytest.mark.slow
@pytest.mark.parametrize("name", ["analyse_release", "analyse_evaluation"])
def test_notebook_when_executed_gives_the_outputs_that_it_is_stored_with(name: str, sample: Path) -> None:
    path = EXAMPLES / f"{name}.ipynb"
    if not path.exists():
        pytest.skip("the suite runs against an installed wheel, which has no examples")
    stored = nbformat.read(path, as_version=4)
    made = executed(nbformat.read(path, as_version=4), sample)
    if os.environ.get("UPDATE_GOLDEN"):
        nbformat.write(made, path)
        return
    assert [cell.get("outputs") for cell in made.cells] == [cell.get("outputs") for cell in stored.cells]
    text = path.read_text("utf-8")
    assert len(text) < 200_000
    assert not re.search(r'/(tmp|home|root|work|Users)/|"stderr"', text)


IN_A_LOOP = """
import asyncio, threading, warnings
warnings.simplefilter("error", RuntimeWarning)
assert asyncio.get_running_loop().is_running()
import fabula
fabula.load("runs/eval").folder  # any folder, to see that we are where we think
"""
STOPPED = """
import os, signal, threading, time
from fabula.errors import Interrupted
samples = fabula.__path__[0] + "/builders/katha/samples/stories.jsonl"

class StopsAt:  # presses the stop button of the notebook as the first stage is done
    def emit(self, event):
        if event.kind == "stage-done" and event.stage == "load_stories":
            os.kill(os.getpid(), signal.SIGINT)
    def close(self): pass

try:
    fabula.build("stories", samples, "runs/stopped", limit=1, workers=0, progress=StopsAt())
    stopped = False
except Interrupted:
    stopped = True
assert stopped
run = fabula.build("stories", samples, "runs/stopped", limit=1, workers=0)
assert run.totals["made"] == 1 and sum(stage.reused for stage in run.stages) > 0
"""
IN_A_THREAD = """
done = []
thread = threading.Thread(target=lambda: done.append(
    fabula.build("stories", samples, "runs/stopped", limit=1, workers=0, progress=False)))
thread.start(); thread.join()
assert done[0].totals["made"] == 1
assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
"""
JUDGED = """
from fabula.testing.sample_evaluation import judge
from fabula.testing.model_server import ModelServer
records = fabula.load("dist/demo-0.1.0").records
with ModelServer(judge(records)) as server:
    spec = f"{server.url}/v1#toy"
    evaluation = fabula.evaluate("dist/demo-0.1.0", "boards/model-a", "runs/in-notebook", workers=0,
        stories=[records[0].story_id], judges=spec, models={spec: {"prices": {"input": 0, "output": 0}}})
assert set(evaluation.to_pandas()["outcome"]) == {"answered"}
"""


@pytest.mark.slow
def test_functions_when_called_in_a_kernel_with_a_running_loop_work_stop_and_go_on(sample: Path) -> None:
    cells = [nbformat.v4.new_code_cell(text) for text in (IN_A_LOOP, STOPPED, IN_A_THREAD, JUDGED)]
    made = executed(
        nbformat.v4.new_notebook(
            cells=cells, metadata={"kernelspec": {"name": "python3", "display_name": "Python 3"}}
        ),
        sample,
    )
    shown = [output["data"]["text/html"] for output in made.cells[1].outputs if "data" in output]
    assert len(shown) == 1
    assert "assemble_records: 1 made" in shown[0]  # the progress of the second call, lines that stay
