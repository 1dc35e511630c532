"""A service that repeats the key: no file of the run and of its release holds it, in whatever form."""

import json
import shutil
import sqlite3
import zlib
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pyarrow.parquet as pq
import pytest

import fabula
from fabula.evaluation.archive.archive import JUDGEMENTS
from fabula.releases.loading import Release
from fabula.studies.memory.bank import read_bank
from fabula.testing.asked_prompts import prompt_of
from fabula.testing.compass_stories import compass_release, draw_candidates, loses_share
from fabula.testing.drawn_judge import DrawnJudge
from fabula.testing.drawn_storyboards import draw_outputs, drawn_release
from fabula.testing.judge_model import JudgeModel
from fabula.testing.katha_model import KathaModel
from fabula.testing.memory_model import MemoryModel
from fabula.testing.model_server import Answer, Asked, ModelServer
from fabula.testing.written_episodes import write_episodes

STORIES = Path(fabula.__file__).parent / "builders" / "katha" / "samples" / "stories.jsonl"
KEY = "planted/key+0123?456789~abcdef"
FORMS = (
    KEY,
    KEY.replace("/", "\\/"),
    "".join(f"\\u{ord(char):04X}" for char in KEY),
    json.dumps(json.dumps({"key": KEY}).replace("/", "\\/"))[1:-1],
    quote(KEY, safe=""),
)


class Echoing(KathaModel):
    """Repeats the key in what the first scene shows, each time in another form."""

    turns = 0

    def __call__(self, asked: Asked) -> Any:
        value = super().__call__(asked)
        if prompt_of(asked) not in ("katha/draft_scenes",):
            return value
        value["scenes"][0]["visual_evidence"] = "A sign says PLACE."
        form = FORMS[Echoing.turns % len(FORMS)]
        Echoing.turns += 1
        return Answer(json.dumps(value).replace("PLACE", form))


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with ModelServer(Echoing()) as server:
        yield server


def _journal_texts(path: Path) -> Iterator[bytes]:
    with closing(sqlite3.connect(path)) as connection:
        tables = [name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type='table'")]
        for table in tables:
            for row in connection.execute(f'SELECT * FROM "{table}"'):
                for cell in row:
                    if isinstance(cell, bytes):
                        yield cell
                        yield zlib.decompress(cell) if cell[:1] == b"x" else b""
                    yield str(cell).encode()


def _contents(folder: Path) -> Iterator[tuple[Path, bytes]]:
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            yield path, path.read_bytes()
        if path.suffix == ".sqlite":
            yield from ((path, text) for text in _journal_texts(path))
        if path.suffix == ".parquet":
            yield path, json.dumps(pq.read_table(path).to_pylist(), default=str).encode()


def _unescaped(content: bytes) -> Iterator[bytes]:
    yield content
    for _ in range(3):
        content = content.replace(b"\\/", b"/").replace(b"\\\\", b"\\")
        yield content


def _assert_free(folder: Path) -> None:
    wanted = (*FORMS, KEY[:12])
    for path, content in _contents(folder):
        for text in _unescaped(content):
            assert not [form for form in wanted if form.encode() in text], path


def test_build_when_the_service_repeats_the_key_keeps_it_nowhere_and_says_so(
    fabula_command, server: ModelServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    spec = f"{server.openai_url}#local"
    settings = f'[models."{spec}"]\napi_key_env = "ECHOED_KEY"\n'
    (tmp_path / "fabula.toml").write_text(settings)
    sources, run, release = tmp_path / "stories.jsonl", tmp_path / "run", tmp_path / "release"
    sources.write_bytes(b"".join(STORIES.read_bytes().splitlines(keepends=True)[:3]))
    build = ("build", "katha", sources, "--workers", 0, "--model", spec, "--out", run)
    pack = ("release", "pack", run, "--version", "0.1.0", "--license", "CC-BY-4.0", "--out", release)
    pack += ("--allow-drafts", "--allow-stand-in")
    done = fabula_command(*build, env={"ECHOED_KEY": KEY})
    assert done.returncode == 0, done.stderr
    assert KEY in server.log[0].asked.secrets, "it was sent"
    assert KEY not in done.stdout + done.stderr
    _assert_free(run)
    findings = json.loads(fabula_command("validate", run, "--json").stdout)["issues"]
    marked = [(one["where"].split()[-1], one["path"]) for one in findings if one["code"] == "secret-removed"]
    assert {path for _, path in marked} == {"$.scenes[0].visual_evidence"}
    refused = fabula_command(*pack)
    assert refused.returncode == 1 and "secret-removed" in refused.stderr and not release.exists()

    for story, path in marked:
        correction = ("--new", '"A sign hangs there."', "--who", "ana", "--why", "a key stood there")
        assert fabula_command("edit", run, story, path, *correction, "--later").returncode == 0
    assert fabula_command(*build, env={"ECHOED_KEY": KEY}).returncode == 0
    packed = fabula_command(*pack)
    assert packed.returncode == 0, packed.stderr
    for folder in (run, release):
        _assert_free(folder)


# -- Runs, evaluations and releases that move: same bytes, nobody asked, and no path of the machine in them

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
def judge_server(tree: Path) -> Iterator[ModelServer]:
    from fabula.releases.loading import load

    with ModelServer(JudgeModel(load(tree / "release").records)) as running:
        yield running


@pytest.fixture
def evaluate(fabula_command, tree: Path, judge_server: ModelServer) -> Callable[..., Any]:
    def run(*options: object) -> Any:
        place = ("--release", tree / "release", "--outputs", next((tree / "boards").iterdir()))
        out = ("--out", tree / "runs" / "eval", "--judge", f"{judge_server.openai_url}#one")
        return fabula_command("evaluate", "katha", *place, *out, "--workers", 0, *options)

    return run


def test_evaluation_when_moved_with_its_outputs_keeps_its_bytes_and_asks_nobody(
    evaluate, fabula_command, judge_server: ModelServer, tree: Path, tmp_path: Path
) -> None:
    assert evaluate().returncode == 0
    run = tree / "runs" / "eval"
    scored = fabula_command("score", run, "--json")
    assert fabula_command("report", run, "--out", run / "page.html").returncode == 0
    before, asked = content(run), judge_server.count
    assert naming(run, tmp_path) == []
    moved = tree.rename(tmp_path / "elsewhere") / "runs" / "eval"
    assert fabula_command("score", moved, "--json").stdout == scored.stdout
    assert fabula_command("report", moved, "--out", moved / "page.html").returncode == 0
    done = fabula_command("run", "retry", moved, "--workers", 0)
    assert done.returncode == 0, done.stderr
    kept = content(moved)
    assert [name for name in kept if kept[name] != before.get(name)] == ["report.json"]
    assert not any(stage["ran"] for stage in json.loads(kept["report.json"])["stages"])
    assert judge_server.count == asked


def test_evaluation_when_moved_before_its_end_goes_on(
    evaluate,
    fabula_command,
    judge_server: ModelServer,
    tree: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    here = tmp_path / "here"
    here.mkdir()
    monkeypatch.chdir(here)
    judge = f"{judge_server.openai_url}#one"
    Path("fabula.toml").write_text(f'[models."{judge}"]\nprices = {{input = 10.0, output = 10.0}}\n')
    assert evaluate("--max-cost", "0.2").returncode == 4
    assert 0 < judge_server.count < 115
    moved = tree.rename(tmp_path / "elsewhere") / "runs" / "eval"
    done = fabula_command("run", "retry", moved, "--workers", 0, "--max-cost", "100")
    assert done.returncode == 0, done.stderr
    assert judge_server.count == 115
    assert len((moved / JUDGEMENTS).read_bytes().splitlines()) == 115


def test_evaluation_when_its_outputs_alone_have_moved_asks_where_they_are(
    evaluate, fabula_command, judge_server: ModelServer, tree: Path, tmp_path: Path
) -> None:
    assert evaluate().returncode == 0
    run, asked = tree / "runs" / "eval", judge_server.count
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
    assert judge_server.count == asked


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


# -- fabula memory build: a bank from the command line, forecast, made, gone on with, or refused

SMALL = ("--set", "draw_references.portrait=[256,320]", "--set", "draw_references.square=[256,256]")


@pytest.fixture
def episodes(tmp_path: Path) -> Path:
    return write_episodes(tmp_path / "set")


def test_build_when_only_forecast_counts_calls_and_makes_nothing(fabula_command, episodes, tmp_path):
    out = tmp_path / "run"
    done = fabula_command(
        "memory", "build", episodes, "--image", "image:drawn:faithful", "--viewer", "openai:gpt-4.1",
        "--dry-run", "--json", "--out", out,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    budget = json.loads(done.stdout)["budget"]
    # Of each type two in episode a, one in b: 3 and 3 portraits of five candidates, 3 panoramas.
    assert (budget["characters"], budget["locations"], budget["objects"], budget["alone"]) == (3, 3, 3, 3)
    assert (budget["pictures"], budget["most_pictures"]) == (33, 99) and budget["looks"] == 12
    assert not out.exists()


def test_build_when_run_tells_what_came_of_it_and_the_same_command_goes_on(
    fabula_command: Any, episodes: Path, tmp_path: Path
) -> None:
    out, model = tmp_path / "run", MemoryModel({"the old ladder": "The Garden"})
    with ModelServer(model) as image_server:
        url = image_server.openai_url
        command = (
            "memory", "build", episodes, "--image", f"image:{url}#painter", "--agent", f"{url}#agent",
            "--candidates", 2, "--episode", "ep_a", "--workers", 0, "--out", out, *SMALL,
        )  # fmt: skip
        done = fabula_command(*command)
        assert done.returncode == 0, done.stderr
        assert "5 verified, 1 part_of" in done.stdout and "bank.html" in done.stdout
        asked = sum(model.asked.values())
        again = fabula_command(*command)
        assert again.returncode == 0 and sum(model.asked.values()) == asked
    bank = read_bank(out)
    assert [episode.record.episode_id for episode in bank.episodes] == ["ep_a"]


def test_build_when_no_model_is_named_says_what_to_do(fabula_command, episodes, tmp_path):
    done = fabula_command("memory", "build", episodes, "--out", tmp_path / "run")
    assert done.returncode != 0 and "--image" in done.stderr and "Traceback" not in done.stderr
    words = fabula_command(
        "memory", "build", episodes, "--text-only", "--workers", 0, "--out", tmp_path / "w"
    )
    assert words.returncode == 0 and "9 text_only" in words.stdout


# fabula baseline compass: forecasts, frames that somebody makes, a frozen file and what it refuses.


@pytest.fixture(scope="module")
def release(tmp_path_factory: pytest.TempPathFactory) -> Release:
    return compass_release(tmp_path_factory.mktemp("compass") / "release", 2, 2)


@pytest.fixture(scope="module")
def image_server(release: Release) -> Iterator[ModelServer]:
    with ModelServer(DrawnJudge(release.records)) as running:
        yield running


@pytest.fixture(scope="module")
def boards(release: Release) -> Path:
    return draw_candidates(release.path.parent / "model-x", release.records, loses_share(0.5))


@pytest.fixture
def compass(
    fabula_command: Callable[..., Any], release: Release, boards: Path, image_server: ModelServer
) -> Callable[..., Any]:
    def run(verb: str, *options: object) -> Any:
        return fabula_command(
            "baseline", "compass", verb, "--release", release.path, "--outputs", boards, "--judge",
            f"{image_server.openai_url}#one", "--coverage", "drawn-marks", "--copies", "pixels",
            "--workers", 0, "--created-at", "2026-01-01T00:00:00Z", *options,
        )  # fmt: skip

    return run


def test_compass_when_only_forecast_tells_calls_and_pictures_and_asks_nobody(compass, image_server, tmp_path):
    before = len(image_server.log)
    done = compass("tune", "--dry-run", "--json", "--out", tmp_path / "out")
    assert done.returncode == 0, done.stderr
    # 2 stories, 16 questions, 3 seeds
    assert json.loads(done.stdout)["arms"]["tuning"]["candidates"] == 2 * 16 * 3
    done = compass("apply", "--dry-run", "--frozen", tmp_path / "none.json", "--arm", "full", "--arm", "base")
    assert done.returncode == 0, done.stderr
    assert "full" in done.stdout and "base" in done.stdout and "bridge-only" not in done.stdout
    assert len(image_server.log) == before
    assert not (tmp_path / "out").exists()
