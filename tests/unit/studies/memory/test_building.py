"""Building a bank: from a small episode to the folder, with the drawn model and with scripted ones."""

import json
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from fabula.engine.manifest import read_manifest
from fabula.studies.memory.bank import Bank, read_bank, told_of
from fabula.studies.memory.keying import KEYS
from fabula.studies.memory.pipeline import (
    MemoryBudget,
    MemoryOptions,
    build_memory,
    estimate_memory,
    memory_budget,
    memory_request,
)
from fabula.testing.killing import kill_after
from fabula.testing.memory_model import STYLE, MemoryModel
from fabula.testing.model_server import ModelServer
from fabula.testing.written_episodes import write_episodes, written_episode

CREATED = "2026-01-01T00:00:00Z"
SMALL = ("draw_references.portrait=[256,320]", "draw_references.square=[256,256]")


@pytest.fixture
def episodes(tmp_path: Path) -> Path:
    return write_episodes(tmp_path / "set", [written_episode()])


def options(**given: Any) -> MemoryOptions:
    usual = {"created_at": CREATED, "workers": 0, "candidates": 2, "settings": SMALL}
    return MemoryOptions(**{**usual, **given})


def drawn(episodes: Path, out: Path, **given: Any) -> Bank:
    build_memory(episodes, out, options(image="image:drawn:faithful", **given))
    return read_bank(out)


def content(folder: Path) -> dict[str, bytes]:
    files = [*(folder / "bank").rglob("*"), folder / "bank.html", folder / "entities.jsonl"]
    return {str(path.relative_to(folder)): path.read_bytes() for path in files if path.is_file()}


def entry_files(bank: Bank, kind: str, name: str) -> set[str]:
    entry = bank.entry("ep_a", kind, name)  # type: ignore[arg-type]
    assert entry is not None
    return {path.name for path in entry.folder.iterdir()}


@pytest.fixture
def model() -> MemoryModel:
    return MemoryModel({"the old ladder": "The Garden"})


@pytest.fixture
def served(model: MemoryModel) -> Iterator[str]:
    with ModelServer(model) as server:
        yield server.openai_url


def scripted(url: str, **given: Any) -> MemoryOptions:
    return options(**{"image": f"image:{url}#painter", "agent": f"{url}#agent", **given})


@pytest.mark.slow
def test_bank_when_drawn_has_every_entity_with_its_files_and_all_pass(episodes: Path, tmp_path: Path) -> None:
    bank = drawn(episodes, tmp_path / "run")
    (episode,) = bank.episodes
    assert [(entry.record.type, entry.record.name) for entry in episode.entries] == [
        ("character", "Ana"), ("character", "Ben"), ("location", "The Kitchen"), ("location", "The Garden"),
        ("object", "the red cup"), ("object", "the old ladder"),
    ]  # fmt: skip
    assert {entry.record.status for entry in bank.entries()} == {"verified"}
    portrait = {"portrait.png", "cutout.png", "labelled.png", "candidates.png", "entity.json"}
    assert entry_files(bank, "character", "Ana") == entry_files(bank, "object", "the red cup") == portrait
    place = {"panorama.png", "left.png", "centre.png", "right.png", "entity.json"}
    assert entry_files(bank, "location", "The Kitchen") == place
    ana = bank.entry("ep_a", "character", "Ana")
    assert ana is not None and ana.file("panorama.png") is None and ana.view("left") is None
    record = ana.record
    # Her apron is green, so that orange takes the place of the green ground.
    assert (record.key_colour, record.verified_by, record.segmenter) == (KEYS["orange"], "rules", "colour")
    assert record.described_by == "header" and record.first_shot == "1:1" and record.label == "Character 1"
    assert record.prompt is not None and record.prompt.endswith("nothing of the subject has this colour.")
    with Image.open(ana.folder / "cutout.png") as cut:
        opaque = np.asarray(cut.getchannel("A")) > 0
        left, top, right, bottom = record.bounds or (0, 0, 0, 0)
        assert cut.size == (256, 320) and opaque[top:bottom, left:right].sum() == opaque.sum()
    assert "entities: 6 verified" in list(told_of(bank))
    assert "Bank of entities" in (tmp_path / "run" / "bank.html").read_text("utf-8")


def test_budget_when_counted_is_exact_at_least_and_at_most(
    episodes: Path, tmp_path: Path, served: str, model: MemoryModel
) -> None:
    chosen = scripted(served)
    budget = memory_budget(memory_request(episodes, tmp_path / "run", chosen))
    # Two characters and two objects by rules: 4 portraits of two candidates, and 2 panoramas. Each portrait
    # takes a choice and a check. Texts: 2 objects, 6 prompts, 1 style.
    assert budget == MemoryBudget(1, 2, 2, 2, 2, 0, 9, 10, 8, 30, 24)
    plan = estimate_memory(episodes, tmp_path / "run", chosen)
    calls = {(stage.stage, stage.model.rpartition("#")[2]): stage.calls for stage in plan.stages}
    assert calls == {
        ("classify_objects", "agent"): 2, ("infer_style", "agent"): 1, ("write_prompts", "agent"): 6,
        ("draw_references", "painter"): 10, ("draw_references", "agent"): 8,
    }  # fmt: skip
    assert not model.asked, "nothing was asked"


@pytest.mark.slow
def test_bank_when_models_are_asked_has_what_they_said_and_asks_exactly_so_much(
    episodes: Path, tmp_path: Path, served: str, model: MemoryModel
) -> None:
    build_memory(episodes, tmp_path / "run", scripted(served))
    bank = read_bank(tmp_path / "run")
    ladder = bank.entry("ep_a", "object", "the old ladder")
    garden = bank.entry("ep_a", "location", "The Garden")
    assert ladder is not None and garden is not None
    assert ladder.record.status == "part_of" and bank.owner(ladder) == garden
    assert garden.record.parts == ("the old ladder",) and "seven rungs" in str(garden.record.prompt)
    assert {path.name for path in ladder.folder.iterdir()} == {"entity.json"}
    # Three portraits of two candidates each, two panoramas; a choice and a check of each portrait.
    assert model.asked == {
        "memory/classify_object": 2, "memory/infer_style": 1, "memory/write_character": 2,
        "memory/write_object": 1, "memory/write_location": 2, "picture": 8, "memory/choose_candidate": 3,
        "memory/verify_picture": 3,
    }  # fmt: skip
    ana = bank.entry("ep_a", "character", "Ana")
    assert ana is not None and ana.record.style == STYLE and ana.record.candidate == 2
    assert ana.record.chosen_because == "Its edges are clean." and ana.record.calls["picture"] == 2
    build_memory(episodes, tmp_path / "run", scripted(served))
    assert sum(model.asked.values()) == 22, "the same command asks nothing"


@pytest.mark.slow
def test_bank_when_a_portrait_never_passes_keeps_marks_and_tells_it(episodes: Path, tmp_path: Path) -> None:
    hidden = MemoryModel(look=lambda name: {"complete": False, "wrong": "No feet."} if name == "Ben" else {})
    with ModelServer(hidden) as server:
        build_memory(episodes, tmp_path / "run", scripted(server.openai_url))
    bank = read_bank(tmp_path / "run")
    ben = bank.entry("ep_a", "character", "Ben")
    assert ben is not None and ben.record.status == "unverified" and "No feet." in str(ben.record.reason)
    assert ben.file("cutout.png") is not None and ben.record.calls == {
        "picture": 6, "choice": 3, "verification": 3,
    }  # fmt: skip
    assert any("unverified: ep_a character Ben" in line for line in told_of(bank))
    assert "not verified" in (tmp_path / "run" / "bank.html").read_text("utf-8")


def test_bank_when_text_only_has_descriptions_and_asks_nobody(
    episodes: Path, tmp_path: Path, model: MemoryModel
) -> None:
    build_memory(episodes, tmp_path / "run", options(text_only=True))
    bank = read_bank(tmp_path / "run")
    assert {entry.record.status for entry in bank.entries()} == {"text_only"}
    assert {entry.record.made for entry in bank.entries()} == {"words"} and not model.asked
    assert all(not entry.record.files for entry in bank.entries())


_RUN = """
import sys
from pathlib import Path
from fabula.api.reporters import choose_reporter
from fabula.studies.memory.pipeline import MemoryOptions, build_memory
episodes, out, url, config = sys.argv[1:]
build_memory(Path(episodes), Path(out), MemoryOptions(
    image=f"image:{url}#painter", agent=f"{url}#agent", workers=0, candidates=2, config=Path(config),
    created_at="2026-01-01T00:00:00Z"), choose_reporter(as_json=True))
"""


@pytest.mark.waits
def test_run_when_killed_again_and_again_loses_one_call_at_most_and_ends_with_the_same_bytes(
    episodes: Path, tmp_path: Path, starter: Any
) -> None:
    model = MemoryModel({"the old ladder": "The Garden"})
    config = tmp_path / "fabula.toml"
    with ModelServer(model) as server:
        url = server.openai_url
        specs = (f"image:{url}#painter", f"{url}#agent")
        config.write_text("".join(f'[models."{spec}"]\nconcurrency = 1\n' for spec in specs), "utf-8")
        whole, broken = ((episodes, tmp_path / name, url, config) for name in ("whole", "broken"))
        assert starter.run_code(_RUN, *whole).returncode == 0
        asked = sum(model.asked.values())
        model.asked.clear()
        kills = 0
        for events in (3, 6, 10):
            code, _ = kill_after(partial(starter.start, broken, code=_RUN), events)
            kills += code != 0
        assert starter.run_code(_RUN, *broken).returncode == 0
        # Each kill loses what is in flight: at most one call to each of the two models.
        assert asked <= sum(model.asked.values()) <= asked + 2 * kills
    assert kills and content(tmp_path / "whole") == content(tmp_path / "broken")
    assert read_manifest(tmp_path / "broken").kind == "memory"
    rows = [json.loads(line) for line in (tmp_path / "broken/entities.jsonl").read_text("utf-8").splitlines()]
    assert len(rows) == 6
