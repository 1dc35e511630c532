"""A release, evaluations of three methods with simulated judges, and a leaderboard for them."""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from fabula.evaluation.archive.archive import EVALUATION, JUDGEMENTS
from fabula.leaderboard.making import BoardOptions, init
from fabula.leaderboard.submission import SubmitOptions, submit
from fabula.schemas.canonical import pretty_bytes
from fabula.testing.simulated_evaluations import write_simulated
from fabula.testing.simulated_judgements import Truth

QUESTIONS, RESAMPLES = 54, 60
GOOD, BAD = Truth(image=(0.8,) * 6), Truth(image=(0.2,) * 6)
TRUTHS = {"model-a": GOOD, "model-b": GOOD, "model-c": BAD}


@dataclass
class World:
    """Where a test finds what it needs.

    Attributes:
        release: the release.
        runs: method -> its evaluation folder.
        folder: the leaderboard.
    """

    release: Path
    runs: dict[str, Path]
    folder: Path

    def submit(self, name: str, run: Path | None = None, **more: Any) -> Path:
        dates = {"model-a": "2026-01-01", "model-b": "2026-01-02"}
        out = more.pop("out", None)
        options = SubmitOptions(name=name, **{"date": dates.get(name, "2026-01-03"), **more})
        return submit(run or self.runs[name], self.folder, options, out).path


@pytest.fixture(scope="session")
def simulated(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Path]]:
    base = tmp_path_factory.mktemp("leaderboard")
    runs = {}
    for number, (name, truth) in enumerate(TRUTHS.items(), 1):
        (base / name).mkdir()
        made = write_simulated(base / name, QUESTIONS, [(name, truth)], seed=number)
        runs[name] = made.run
    return made.release, runs


@pytest.fixture
def world(simulated: tuple[Path, dict[str, Path]], tmp_path: Path) -> World:
    """A leaderboard without submissions."""
    release, runs = simulated
    folder = tmp_path / "board"
    init(folder, BoardOptions(like=runs["model-a"], release=release, resamples=RESAMPLES))
    return World(release, runs, folder)


@pytest.fixture
def edited(world: World, tmp_path: Path) -> Iterator[Callable[..., Path]]:
    """Make a copy of an evaluation with another method, protocol or judgements."""

    def edit(
        name: str, like: str = "model-b", protocol: Any = None, subject: Any = None,
        line: Callable[[dict[str, Any]], dict[str, Any] | None] = lambda row: row,
    ) -> Path:  # fmt: skip
        folder = tmp_path / f"run-{name}"
        folder.mkdir()
        manifest = json.loads((world.runs[like] / EVALUATION).read_bytes())
        manifest["protocol"] |= protocol or {}
        methods = manifest["subject"]["methods"]
        manifest["subject"]["methods"] = {name: {**methods[like], **(subject or {})}}
        rows = [json.loads(text) for text in (world.runs[like] / JUDGEMENTS).read_text("utf-8").splitlines()]
        kept = [line({**row, "method": row["method"] and name}) for row in rows]
        text = "".join(json.dumps(row) + "\n" for row in kept if row is not None)
        (folder / EVALUATION).write_bytes(pretty_bytes(manifest))
        (folder / JUDGEMENTS).write_text(text, "utf-8")
        return folder

    yield edit
