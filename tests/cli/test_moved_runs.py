"""Runs, evaluations and releases that move: same bytes, nobody asked, and no path of the machine in them."""

import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import fabula
from fabula.evaluation.archive.archive import JUDGEMENTS
from fabula.testing.drawn_storyboards import draw_outputs, drawn_release
from fabula.testing.judge_model import JudgeModel
from fabula.testing.model_server import ModelServer

SAMPLES = Path(fabula.__file__).parent / "builders"
MACHINES = ("journal.sqlite", "journal.sqlite-wal", "journal.sqlite-shm", "run.lock")
"""What stays on the machine: nobody publishes a journal."""


def content(folder: Path) -> dict[str, bytes]:
    paths = (path for path in folder.rglob("*") if path.is_file() and path.name not in MACHINES)
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in paths}


def naming(folder: Path, machine: Path) -> list[str]:
    """Return the files that name a place of this machine."""
    return [name for name, data in content(folder).items() if str(machine).encode() in data]


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A folder with a release and two methods' storyboards."""
    release = drawn_release(tmp_path / "tree" / "release")
    draw_outputs(tmp_path / "tree" / "boards" / "drawn", release.records)
    return tmp_path / "tree"


@pytest.fixture
def server(tree: Path) -> Iterator[ModelServer]:
    from fabula.releases.loading import load

    with ModelServer(JudgeModel(load(tree / "release").records)) as running:
        yield running


@pytest.fixture
def evaluate(fabula_command, tree: Path, server: ModelServer) -> Callable[..., Any]:
    def run(*options: object) -> Any:
        place = ("--release", tree / "release", "--outputs", next((tree / "boards").iterdir()))
        out = ("--out", tree / "runs" / "eval", "--judge", f"{server.openai_url}#one")
        return fabula_command("evaluate", "katha", *place, *out, "--workers", 0, *options)

    return run


def test_evaluation_when_moved_with_its_outputs_keeps_its_bytes_and_asks_nobody(
    evaluate, fabula_command, server: ModelServer, tree: Path, tmp_path: Path
) -> None:
    assert evaluate().returncode == 0
    run = tree / "runs" / "eval"
    scored = fabula_command("score", run, "--json")
    assert fabula_command("report", run, "--out", run / "page.html").returncode == 0
    before, asked = content(run), server.count
    assert naming(run, tmp_path) == []
    moved = tree.rename(tmp_path / "elsewhere") / "runs" / "eval"
    assert fabula_command("score", moved, "--json").stdout == scored.stdout
    assert fabula_command("report", moved, "--out", moved / "page.html").returncode == 0
    done = fabula_command("run", "retry", moved, "--workers", 0)
    assert done.returncode == 0, done.stderr
    kept = content(moved)
    assert [name for name in kept if kept[name] != before.get(name)] == ["report.json"]
    assert not any(stage["ran"] for stage in json.loads(kept["report.json"])["stages"])
    assert server.count == asked


def test_evaluation_when_moved_before_its_end_goes_on(
    evaluate, fabula_command, server: ModelServer, tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = tmp_path / "here"
    here.mkdir()
    monkeypatch.chdir(here)
    judge = f"{server.openai_url}#one"
    Path("fabula.toml").write_text(f'[models."{judge}"]\nprices = {{input = 10.0, output = 10.0}}\n')
    assert evaluate("--max-cost", "0.2").returncode == 4
    assert 0 < server.count < 115
    moved = tree.rename(tmp_path / "elsewhere") / "runs" / "eval"
    done = fabula_command("run", "retry", moved, "--workers", 0, "--max-cost", "100")
    assert done.returncode == 0, done.stderr
    assert server.count == 115
    assert len((moved / JUDGEMENTS).read_bytes().splitlines()) == 115


def test_evaluation_when_its_outputs_alone_have_moved_asks_where_they_are(
    evaluate, fabula_command, server: ModelServer, tree: Path, tmp_path: Path
) -> None:
    assert evaluate().returncode == 0
    run, asked = tree / "runs" / "eval", server.count
    before = content(run)
    (tree / "boards").rename(tmp_path / "pictures")
    done = fabula_command("run", "retry", run, "--workers", 0)
    assert done.returncode == 1
    assert "--sources" in done.stderr
    other = fabula_command("run", "retry", run, "--sources", tree / "runs")
    assert other.returncode == 2
    assert "drawn" in other.stderr
    assert content(run) == before
    done = fabula_command("run", "retry", run, "--workers", 0, "--sources", tmp_path / "pictures")
    assert done.returncode == 0, done.stderr
    after = content(run)
    changed = {name for name in {*before, *after} if before.get(name) != after.get(name)}
    assert changed == {"run.json", "report.json"}
    paths = {one["name"]: one["path"] for one in json.loads(after["run.json"])["sources"]}
    assert paths == {"release": "../../release", "drawn": "../../../pictures/drawn"}
    assert server.count == asked


BUILDS = {
    "katha": ("katha", SAMPLES / "katha" / "samples" / "stories.jsonl", "--limit", 2),
    "shots": ("shots", SAMPLES / "katha" / "samples" / "stories.jsonl", "--limit", 2),
    "events": ("events", SAMPLES / "events" / "samples" / "seeds.jsonl"),
}


@pytest.mark.parametrize("kind", BUILDS)
def test_run_when_moved_with_its_sources_is_the_same_run(fabula_command, tmp_path: Path, kind: str) -> None:
    noun, sources, *options = BUILDS[kind]
    tree = tmp_path / "tree"
    tree.mkdir()
    source = Path(shutil.copy(sources, tree))
    done = fabula_command("build", noun, source, *options, "--out", tree / "run", "--workers", 0)
    assert done.returncode == 0, done.stderr
    assert naming(tree / "run", tmp_path) == []
    before = content(tree / "run")
    moved = tree.rename(tmp_path / "elsewhere")
    again = ("build", noun, moved / source.name, *options, "--out", moved / "run", "--workers", 0)
    done = fabula_command(*again)
    assert done.returncode == 0, done.stderr
    after = content(moved / "run")
    assert before.keys() == after.keys()
    assert [name for name in after if after[name] != before[name]] in ([], ["report.json"])
    stages = json.loads(after["report.json"])["stages"]
    assert {stage["name"] for stage in stages if stage["ran"]} <= {stages[0]["name"]}


def test_release_when_packed_names_no_place_of_the_machine(sample_release: Path) -> None:
    assert naming(sample_release, sample_release.parent) == []
