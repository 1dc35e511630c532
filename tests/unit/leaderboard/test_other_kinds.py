"""Boards of pictures and of episodes, of evaluations that were really made."""

import json
import shutil
import tarfile
from pathlib import Path

import pytest

import fabula
from fabula.evaluation.archive.archive import read_archive, write_archive
from fabula.evaluation.entities.requests import EVALUATING, EpisodeOptions
from fabula.kinds.evaluations import judging_of
from fabula.leaderboard.checking import check
from fabula.leaderboard.making import BoardOptions, init
from fabula.leaderboard.site import DATA, build
from fabula.leaderboard.submission import SubmitOptions, submit
from fabula.testing import episode_judge
from fabula.testing.drawn_entities import SETTINGS, Fault, write_outputs
from fabula.testing.model_server import ModelServer
from fabula.testing.written_episodes import SECOND, write_episodes, written_episode

pytestmark = pytest.mark.slow

REPLAYS = Path(fabula.__file__).parent / "tests" / "golden" / "replays"


def ranks(folder: Path, runs: dict[str, Path], *, release: Path, rank_by: str) -> dict[str, tuple[int, int]]:
    """Begin a board like the first evaluation, submit all, and build it: method -> range of ranks."""
    like = next(iter(runs.values()))
    init(folder, BoardOptions(like=like, release=release, rank_by=rank_by, resamples=40, least_coverage=0.5))
    for number, (name, run) in enumerate(runs.items(), 1):
        submit(run, folder, SubmitOptions(name=name, date=f"2026-01-0{number}"))
    report = check(folder)
    assert {row.name: row.issues for row in report.rows} == dict.fromkeys(sorted(runs), ())
    build(folder, folder / "site")
    for name in runs:
        assert (folder / "site" / "methods" / f"{name}.html").is_file()
    made = json.loads((folder / "site" / DATA).read_bytes())["ranks"]
    return {name: (rank["low"], rank["high"]) for name, rank in made.items()}


def alone(run: Path, method: str, folder: Path) -> Path:
    """Write what an evaluation has of one method; return the folder."""
    archive, files = read_archive(run), judging_of(run).protocol().archive.files
    folder.mkdir()
    for name in files:
        if (run / name).is_file():
            shutil.copyfile(run / name, folder / name)
    about = archive.manifest.subject["methods"][method]
    manifest = archive.manifest.model_copy(update={"subject": {"methods": {method: about}}})
    write_archive(folder, manifest, [each for each in archive.judgements if each.method in (None, method)])
    return folder


def test_board_of_pictures_when_built_ranks_methods_and_counts_what_is_valid(tmp_path: Path) -> None:
    if not REPLAYS.is_dir():
        pytest.skip("the suite runs against an installed wheel, which has no tests")
    with tarfile.open(REPLAYS / "evaluate-images.tar.xz") as packed:
        packed.extractall(tmp_path / "old", filter="data")
    runs = {name: alone(tmp_path / "old/run", name, tmp_path / name) for name in ("model-a", "model-b")}
    made = ranks(tmp_path / "board", runs, release=tmp_path / "old/judged", rank_by="csd_self")
    assert set(made) == set(runs)
    assert {low for low, _ in made.values()} <= {1, 2}


def test_board_of_episodes_when_built_has_a_row_for_each_method(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("av")
    monkeypatch.setenv("OPENAI_API_KEY", "test-key-0123456789")
    episodes = (written_episode(), written_episode("ep_b", SECOND))
    faults: dict[str, dict[str, Fault]] = {
        "ep_a/2:2": {"Ana": "changed"}, "ep_a/2:3": {"the red cup": "faded"},
    }  # fmt: skip
    write_episodes(tmp_path / "set", episodes)
    write_outputs(tmp_path / "good", episodes, frames=8)
    write_outputs(tmp_path / "poor", episodes, faults, frames=8)
    (tmp_path / "poor/ep_a/002_001.mkv").unlink()
    runs = {name: tmp_path / f"run-{name}" for name in ("good", "poor")}
    with ModelServer(episode_judge.answer) as server:
        price = {"base_url": server.openai_url, "concurrency": 1, "prices": {"input": 1.0, "output": 2.0}}
        for name, run in runs.items():
            options = EpisodeOptions(
                judges=["openai:one"], models={"openai:one": price}, settings=SETTINGS, device="cpu",
                workers=0, pillars="2,3", created_at="2026-01-01T00:00:00Z",
            )  # fmt: skip
            EVALUATING.evaluate(tmp_path / "set", [tmp_path / name], run, options)
    made = ranks(tmp_path / "board", runs, release=tmp_path / "set", rank_by="intra_face_fidelity")
    assert made == {"good": (1, 2), "poor": (1, 2)}, "two episodes tell nobody apart"
    (row,) = (row for row in check(tmp_path / "board").rows if row.name == "good")
    assert row.scores["intra_face_fidelity"].value == pytest.approx(episode_judge.GOOD / 10)
