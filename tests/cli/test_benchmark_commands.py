"""Benchmarks by name, as a user types it: from an empty cache to a row beside the printed ones."""

import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

import fabula
from fabula.evaluation.entities.archived import QUALITY
from fabula.schemas.canonical import Json
from fabula.testing import stand_in
from fabula.testing.drawn import write_outputs, write_video
from fabula.testing.drawn_entities import SETTINGS as LOOKING_AT_EPISODES
from fabula.testing.drawn_entities import write_outputs as write_episode_outputs
from fabula.testing.drawn_shots import draw_shot_outputs, draw_shot_set
from fabula.testing.hub import TOKEN, HubServer
from fabula.testing.model_server import Asked, ModelServer
from fabula.testing.official_packages import write_package
from fabula.testing.table_detector import SETTINGS
from fabula.testing.written_episodes import SECOND, write_episodes, written_episode

from .conftest import invoke

FAST = ("--workers", 0, "--resamples", 100)


@pytest.fixture(autouse=True)
def empty(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An empty cache, and a folder to work in."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)


def run(*words: object, code: int = 0) -> str:
    done = invoke(*words)
    assert done.exit_code == code, done.output + done.stderr
    return done.stdout + done.stderr


def answer(asked: Asked) -> object:
    """Reply in the form that each official protocol asks for."""
    if parts := re.findall(r'"(\w+)": (N|true/false)', asked.text):
        return json.dumps({name: 7 if form == "N" else True for name, form in parts})
    numbered = re.findall(r"^ *(\d+)\. ", asked.text, re.MULTILINE)
    if "COMPLETE_LIST" in asked.text:
        return "Looked at.\n[COMPLETE_LIST]: " + ", ".join("0" if int(n) > 1 else "1" for n in numbered)
    return "score: 3"


@pytest.fixture
def judge() -> Iterator[str]:
    with ModelServer(answer) as server:
        yield f"{server.openai_url}#"


@pytest.mark.slow
def test_kathabench_when_got_from_a_hub_records_the_commit_that_came(tmp_path, monkeypatch):
    from huggingface_hub import HfApi

    repo = {"repo_id": "iamjamuna/KathaBench-25K", "repo_type": "dataset"}
    with HubServer({TOKEN: "iamjamuna"}) as server:
        monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", False)
        monkeypatch.setenv("HF_ENDPOINT", server.url)
        monkeypatch.setenv("HF_TOKEN", TOKEN)
        hub = HfApi(endpoint=server.url, token=TOKEN)
        hub.create_repo(**repo)
        commit = hub.upload_folder(folder_path=write_package(tmp_path / "package"), **repo).oid
        assert "here     set" in run("fetch", "kathabench")
    (note,) = Path("cache/fabula/benchmarks/data").glob("*.json")
    read = json.loads(note.read_text("utf-8"))
    assert read["revision"] == commit and len(read["files"]["annotations.jsonl"][1]) == 64
    assert commit in run("benchmark", "show", "kathabench"), "what is here needs no network"


@pytest.mark.slow
def test_build_when_its_stories_are_a_data_set_on_a_hub_reads_the_tables_of_the_newest_commit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from huggingface_hub import HfApi

    repo = {"repo_id": "ana/tales", "repo_type": "dataset"}
    text = "Mira walked along the river. An old ferryman saw her. Mira waved. The ferryman laughed. She left."
    (tmp_path / "set" / "data").mkdir(parents=True)
    (tmp_path / "set" / "README.md").write_text("# Tales\n", "utf-8")
    (tmp_path / "set" / "data" / "train.jsonl").write_text(json.dumps({"name": "Hat", "text": text}), "utf-8")
    with HubServer({TOKEN: "ana"}) as server:
        monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", False)
        monkeypatch.setenv("HF_ENDPOINT", server.url)
        monkeypatch.setenv("HF_TOKEN", TOKEN)
        hub = HfApi(endpoint=server.url, token=TOKEN)
        hub.create_repo(**repo)
        commit = hub.upload_folder(folder_path=tmp_path / "set", **repo).oid
        build = ("build", "stories", "--map", "name=title", "--language", "en", "--workers", "0")
        run(*build, "hf://datasets/ana/tales", "--out", "first")
        run(*build, "hf://datasets/ana/tales/data/train.jsonl", "--out", "second")
        assert "no file of" in run(*build, "hf://datasets/ana/tales/more", "--out", "third", code=2)
    (source,) = json.loads(Path("first/run.json").read_text("utf-8"))["sources"]
    assert commit in source["path"] and source["name"] == "train.jsonl"
    records = [Path(name, "records.jsonl").read_text("utf-8") for name in ("first", "second")]
    assert all(json.loads(text)["payload"]["record"]["title"] == "Hat" for text in records)


@pytest.mark.slow
def test_kathabench_when_got_from_a_package_and_run_ends_with_a_row(judge: str) -> None:
    write_package(Path("downloads/KathaBench-25K"))
    told = run("benchmark", "get", "kathabench", "--from", "downloads")
    assert re.search(r"^here +data: .*58\.\d kB; CC-BY-4\.0", told, re.MULTILINE)
    assert "1 story, 2 variants, 5 pictures" in run("benchmark", "orders", "kathabench", "--out", "orders")
    plans = [json.loads(line) for line in Path("orders/plans.jsonl").read_text("utf-8").splitlines()]
    write_outputs(Path("mine"), [plan["id"] for plan in plans if plan["variant_id"] is None])
    with ModelServer(stand_in.answer) as server:
        judged = ("--outputs", "mine", "--judge", f"{server.openai_url}#{stand_in.NAME}")
        assert "nothing is missing" in run("benchmark", "run", "kathabench", *judged, "--dry-run")
        told = run("benchmark", "run", "kathabench", *judged, "--out", "runs/mine", *FAST)
    assert "KathaBench, Table 2" in told and "here; compatible:stand-in; 1 of 1 storyboards" in told
    assert re.search(r"^StoryDiffusion +3\.82 .* printed; Gemini 2\.5 Flash", told, re.MULTILINE)
    for difference in (
        "judged by compatible:stand-in; the printed rows by Gemini 2.5 Flash",
        "mine: 1 storyboard of the 500 of the benchmark",
        "no hash of the published data is known",
        "these scores mean nothing",
    ):
        assert difference in told
    again = run("benchmark", "run", "kathabench", "--out", "runs/mine", "--resamples", 100, "--format", "csv")
    assert again.startswith("table,row,measure,value") and "published-kathabench,mine," in again


@pytest.mark.slow
@pytest.mark.parity
def test_vistorybench_lite_when_got_from_a_tree_and_run_ends_with_a_row(reference: Path, judge: str) -> None:
    draw_shot_set(Path("data"), 2)
    draw_shot_outputs(Path("mine"), 1)
    shutil.copytree(reference / "official/vistorybench", "data/official")
    run("benchmark", "get", "vistorybench-lite", "--from", "data", "--without-weights", "--accept-licences")
    assert "5 shots" in run("benchmark", "orders", "vistorybench-lite", "--for", "uno", "--out", "orders")
    models = [word for setting in SETTINGS for word in ("--set", setting)]
    told = run(
        "benchmark", "run", "vistorybench-lite", "--outputs", "mine", "--judge", f"{judge}gpt-4.1",
        "--out", "runs/mine", "--device", "cpu", *models, *FAST,
    )  # fmt: skip
    row = next(line for line in told.splitlines() if line.startswith("mine "))
    assert "3.00" in row and "here; compatible:gpt-4.1; 1 of 1 stories" in row
    assert re.search(r"^UNO \(FLUX1\) +0\.425 .* printed; Gemini-3 Pro$", told, re.MULTILINE)
    assert "judged by compatible:gpt-4.1; the printed rows by Gemini-3 Pro" in told
    assert "mine: 1 story of the 20 of the benchmark" in told


@pytest.fixture
def tiny_vision() -> ModuleType:
    """What writes tiny random weights of the real classes; without their libraries the test is skipped."""
    for library in ("torch", "torchvision", "transformers", "onnx", "onnxruntime", "cv2"):
        pytest.importorskip(library, reason=f"{library} is not installed: the extra metrics is missing")
    import torch

    from fabula.testing import tiny_vision

    torch.set_num_threads(1)
    return tiny_vision


def check_told(told: str, own: set[str], *others: str) -> None:
    """The evaluation names real models, and the row those whose weights are not the published ones."""
    protocol = json.loads(Path("runs/mine/evaluation.json").read_text("utf-8"))["protocol"]
    models = json.dumps(protocol["models"])
    assert [name for name in (*own, *others) if not re.search(rf'["/]{name}[\w.-]*@', models)] == []
    (named,) = re.findall(r"weights whose hash is not that of the published ones: (.*)", told)
    assert set(named.split(", ")) == own


def cells_beside(told: str, label: str) -> dict[str, str]:
    """Return our row by the printed columns; both have a cell in each."""
    split = [re.split(r"  +", line.strip()) for line in told.splitlines()]
    columns, ours, theirs = (
        next(cells for cells in split if cells[0] == first) for first in ("Method", "mine", label)
    )
    assert len(columns) == len(ours) == len(theirs)
    return dict(zip(columns, ours, strict=True))


@pytest.mark.slow
@pytest.mark.parity
def test_vistorybench_lite_when_run_with_tiny_weights_of_the_real_models_has_every_column(
    reference: Path, judge: str, tiny_vision: ModuleType
) -> None:
    draw_shot_set(Path("data"), 1)
    draw_shot_outputs(Path("mine"), 1)
    shutil.copytree(reference / "official/vistorybench", "data/official")
    run("benchmark", "get", "vistorybench-lite", "--from", "data", "--without-weights", "--accept-licences")
    told = run(
        "benchmark", "run", "vistorybench-lite", "--outputs", "mine", "--judge", f"{judge}gpt-4.1",
        "--config", tiny_vision.write_shot_settings(Path.cwd()), "--out", "runs/mine", "--device", "cpu",
        *FAST,
    )  # fmt: skip
    row = cells_beside(told, "UNO (FLUX1)")
    assert len(row) == 15 and row["Alignment, mean"] == "3.00"
    assert all(re.fullmatch(r"-?\d+\.\d+", cell) for cell in list(row.values())[1:-1])
    own = {"aesthetic-v2.5", "adaface-ir101", "arcface-r100", "clip-vit-l-14", "faces-scrfd-10g",
           "grounding-dino-swin-t", "inception-v3", "csd-vit-l"}  # fmt: skip
    check_told(told, own, "facenet-vggface2")  # whose export has no known hash
    assert "settings that depart" not in told


def draw_episodes(episodes: list[Json]) -> Path:
    """Put episodes that can be drawn in the place of the published ones, and return outputs for them."""
    stand_ins = {"set": str(write_episodes(Path("drawn").absolute(), episodes))}
    Path("cache/fabula/benchmarks/sets/entitybench.json").write_text(json.dumps(stand_ins))
    write_episode_outputs(Path("mine"), episodes, frames=6)
    return Path("mine")


@pytest.mark.slow
@pytest.mark.parity
def test_entitybench_when_got_from_a_copy_and_run_ends_with_a_row(reference: Path, judge: str) -> None:
    """Episodes that can be drawn stand in for the published ones in the run, not in what is got."""
    pytest.importorskip("av")
    get = ("benchmark", "get", "entitybench", "--from", reference, "--without-weights")
    assert "no licence: the authors did not allow any use" in run(*get, code=2)
    run(*get, "--accept-licences")
    told = run("benchmark", "orders", "entitybench", "--out", "orders")
    assert "orders: 140 episodes, 2,491 shots" in told and "2,491 files" in told
    outputs = draw_episodes([written_episode(), written_episode("ep_b", SECOND)])
    models = [word for setting in LOOKING_AT_EPISODES for word in ("--set", setting)]
    told = run(
        "benchmark", "run", "entitybench", "--outputs", outputs, "--judge", f"{judge}gemini-2.5-pro", "--out",
        "runs/mine", "--device", "cpu", *models, "--set", "measure_quality.measures=[]", *FAST,
    )  # fmt: skip
    row = next(line for line in told.splitlines() if line.startswith("mine "))
    assert "here; compatible:gemini-2.5-pro; 2 of 2 episodes" in row
    assert re.search(r"^EntityMem +66\.00 .* printed; Gemini 2\.5 Pro$", told, re.MULTILINE)
    assert "mine: 2 episodes of the 140 of the benchmark" in told


@pytest.mark.slow
@pytest.mark.parity
def test_entitybench_when_run_with_tiny_weights_of_the_real_models_has_every_column_that_they_fill(
    reference: Path, judge: str, tiny_vision: ModuleType
) -> None:
    pytest.importorskip("av")
    run("benchmark", "get", "entitybench", "--from", reference, "--without-weights", "--accept-licences")
    shots = [(1, f"Ben holds the red cup in The Garden, {when}.", SECOND[1][2]) for when in ("now", "then")]
    outputs = draw_episodes([written_episode("ep_b", shots)])
    measures = [name for name in QUALITY if name not in ("imaging_quality", "motion_smoothness")]
    stages = {
        "measure_quality": (f"measures = {json.dumps(measures)}", ["dino-b-16", "raft-large", "laion-l-14"]),
        "ground_entities": ("present_from = -1", ["grounding-dino-swin-t", "clip-vit-b-32"]),
        "encode_appearances": ("", ["dinov2-base"]),
    }
    told = run(
        "benchmark", "run", "entitybench", "--outputs", outputs, "--judge", f"{judge}gemini-2.5-pro",
        "--config", tiny_vision.write_settings(Path.cwd(), stages, threshold=0.01), "--out", "runs/mine",
        "--device", "cpu", *FAST,
    )  # fmt: skip
    row = cells_beside(told, "EntityMem")
    assert len(row) == 26 and row["Char presence"] == "1.000" and row["Face fidelity"] == "0.700"
    assert {name for name, cell in row.items() if not re.search(r"\d", cell)} == {
        "Method", "Imaging quality", "Motion smoothness",
    }  # fmt: skip
    check_told(told, {name for _, names in stages.values() for name in names})


@pytest.mark.slow
@pytest.mark.parity
def test_storyeval_when_got_from_a_copy_and_run_ends_with_a_row(reference: Path, judge: str) -> None:
    pytest.importorskip("av")
    assert "here     prompts" in run("benchmark", "get", "storyeval", "--from", reference)
    assert "423 videos" in run("benchmark", "orders", "storyeval", "--out", "orders")
    lines = [json.loads(line) for line in Path("orders/requests.jsonl").read_text("utf-8").splitlines()]
    Path("videos/mine").mkdir(parents=True)
    for line in lines[:2]:
        write_video(Path("videos/mine") / line["file"], 20, size=(64, 48))
    judged = ("--outputs", "videos/mine", "--judge", f"{judge}gpt-4o", "--limit", 2)
    told = run("outputs", "check", "videos/mine", "--release", "storyeval", code=1)
    assert "421 errors" in told and "421 of 423 videos cannot be judged" in told
    assert "12 calls of 1 judge" in run("evaluate", "storyeval", *judged, "--dry-run")
    options = {"judges": f"{judge}gpt-4o", "limit": 2, "protocol": "storyeval@d095e63"}
    assert fabula.evaluate("storyeval", "videos/mine", "runs/dry", dry_run=True, **options).calls > 0
    told = run("benchmark", "run", "storyeval", *judged, "--out", "runs/mine", *FAST)
    assert re.search(r"^mine · compatible:gpt-4o +41\.7", told, re.MULTILINE)  # a half and a third
    assert "mine: 2 videos of the 423 of the benchmark were asked for" in told
    assert "judged by compatible" not in told and "settings that depart" not in told, "as the protocol has it"


@pytest.mark.slow
@pytest.mark.parity
def test_storyeval_when_all_published_replies_are_imported_prints_each_judges_rows(reference: Path) -> None:
    results = sorted((reference / "storyeval/results").glob("*.json"))
    run("benchmark", "get", "storyeval", "--from", reference)
    run("import", "storyeval-results", *results, "--suite", "storyeval", "--out", "runs/all")
    told = run("benchmark", "run", "storyeval", "--out", "runs/all", "--resamples", 0)
    first, second = told.split("StoryEval, Table 8")
    tables = {"gpt4o": first, "llava": second}
    names = {"pika1.5": "Pika-1.5", "modelscope": "ModelScope", "easyanimate": "EasyAnimate v4",
             "cogvideox": "CogVideoX-5B"}  # fmt: skip
    for path in results:
        method, judge = path.stem.removesuffix("_final").split("_")
        lines = {re.split(r"  +", line)[0]: re.split(r"  +", line) for line in tables[judge].splitlines()}
        ours, printed = lines[f"{method} · published:{judge}"], lines[names[method]]
        assert ours[1:-1] == printed[1:-1], method
    assert sum("· published:" in line and "here;" in line for line in told.splitlines()) == len(results)
