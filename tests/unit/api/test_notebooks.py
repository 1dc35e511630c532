"""The notebooks in ``examples/``, executed by a real kernel beside real files; and what notebooks need."""

import os
import re
import tarfile
from pathlib import Path
from typing import Any

import pytest

import fabula
from fabula.testing.drawn_storyboards import draw_outputs
from fabula.testing.sample_evaluation import make

nbformat = pytest.importorskip("nbformat", reason="the extra notebook is not installed")
nbclient = pytest.importorskip("nbclient", reason="the extra notebook is not installed")

GOLDEN = Path(__file__).parents[2] / "golden" / "notebooks" / "sample.tar.xz"
EXAMPLES = Path(fabula.__file__).parent / "examples"


def executed(notebook: Any, folder: Path) -> Any:
    """A notebook as a kernel leaves it that began in a folder."""
    nbclient.NotebookClient(
        notebook, timeout=120, kernel_name="python3", record_timing=False,
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
    fabula.build("katha", samples, "runs/stopped", limit=1, workers=0, progress=StopsAt())
    stopped = False
except Interrupted:
    stopped = True
assert stopped
run = fabula.build("katha", samples, "runs/stopped", limit=1, workers=0)
assert run.totals["made"] == 1 and sum(stage.reused for stage in run.stages) > 0
"""
IN_A_THREAD = """
done = []
thread = threading.Thread(target=lambda: done.append(
    fabula.build("katha", samples, "runs/stopped", limit=1, workers=0, progress=False)))
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
