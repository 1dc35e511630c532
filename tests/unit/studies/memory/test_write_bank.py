"""A bank that a person corrects: what they put there stays, and only what follows from it is made again."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from fabula.errors import InputError, MissingRequirement
from fabula.media.images import MediaProblem
from fabula.studies.memory import pictures
from fabula.studies.memory.bank import BankEntry, read_bank
from fabula.studies.memory.keying import KEYS, rgb_of
from fabula.studies.memory.pipeline import MemoryOptions, build_memory, memory_budget, memory_request
from fabula.studies.memory.write_bank import kept_entities, look_at
from fabula.testing.drawn_portraits import draw_portrait, png_of
from fabula.testing.memory_model import MemoryModel
from fabula.testing.model_server import ModelServer
from fabula.testing.written_episodes import write_episodes, written_episode

pytestmark = pytest.mark.slow

SETTINGS = ("draw_references.portrait=[256,320]", "draw_references.square=[256,256]")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_episodes(tmp_path / "set", [written_episode()])
    build(tmp_path)
    return tmp_path


def build(folder: Path, **given: Any) -> None:
    usual: dict[str, Any] = {
        "image": "image:drawn:faithful", "workers": 0, "candidates": 1, "settings": SETTINGS,
        "created_at": "2026-01-01T00:00:00Z",
    }  # fmt: skip
    build_memory(folder / "set", folder / "run", MemoryOptions(**{**usual, **given}))


def entry(folder: Path, kind: str, name: str) -> BankEntry:
    made = read_bank(folder / "run").entry("ep_a", kind, name)  # type: ignore[arg-type]
    assert made is not None
    return made


def times(folder: Path) -> dict[str, int]:
    return {
        str(path.relative_to(folder)): path.stat().st_mtime_ns
        for path in (folder / "run" / "bank").rglob("*")
        if path.is_file()
    }


def test_portrait_when_a_person_replaces_it_stays_and_what_follows_is_made_anew(
    folder: Path,
) -> None:
    ben = entry(folder, "character", "Ben")
    assert ben.record.key_colour == KEYS["green"]
    theirs = png_of(draw_portrait(rgb_of(KEYS["green"])))
    (ben.folder / "portrait.png").write_bytes(theirs)
    before = times(folder)
    build(folder)
    after = entry(folder, "character", "Ben")
    assert (after.folder / "portrait.png").read_bytes() == theirs
    record = after.record
    assert record.by_person == ("portrait.png",) and record.verified_by == "person"
    assert record.status == "verified" and record.seed is record.model is record.prompt is None
    # The figure of 120 x 160 begins at 16 and ends at 145; the coat goes from 40 to 79.
    assert record.bounds == (40, 16, 80, 146)
    assert {check.code for check in record.checks} >= {"holes", "pieces", "border"}
    with Image.open(after.folder / "labelled.png") as sheet:
        assert sheet.size == (120, 160 + 32)
    changed = {path for path, time in times(folder).items() if before.get(path) != time}
    own = {f"run/bank/ep_a/character-Ben/{name}" for name in ("cutout.png", "labelled.png", "entity.json")}
    assert changed == own, "nothing else of the bank was written"
    build(folder)
    assert entry(folder, "character", "Ben") == after, "and so it stays"


def test_cut_out_when_a_person_replaces_it_stays_beside_the_old_portrait(folder: Path) -> None:
    ana = entry(folder, "character", "Ana")
    portrait = (ana.folder / "portrait.png").read_bytes()
    cut = Image.new("RGBA", (50, 60))
    cut.paste((1, 2, 3, 255), (10, 5, 20, 55))
    (ana.folder / "cutout.png").write_bytes(png_of(cut))
    build(folder)
    after = entry(folder, "character", "Ana")
    assert (after.folder / "cutout.png").read_bytes() == png_of(cut)
    assert (after.folder / "portrait.png").read_bytes() == portrait
    assert after.record.by_person == ("cutout.png",) and after.record.bounds == (10, 5, 20, 55)


def test_portrait_when_a_person_gives_it_with_opacity_is_cut_by_that(folder: Path) -> None:
    ana = entry(folder, "character", "Ana")
    own = Image.new("RGBA", (80, 90))
    own.paste((200, 10, 10, 255), (20, 10, 60, 80))
    (ana.folder / "portrait.png").write_bytes(png_of(own))
    build(folder)
    after = entry(folder, "character", "Ana")
    with Image.open(after.folder / "cutout.png") as cut:
        assert np.array_equal(np.asarray(cut), np.asarray(own))
    assert after.record.segmenter == "person" and after.record.bounds == (20, 10, 60, 80)


def test_entity_when_locked_stays_as_it_is_and_nobody_is_asked_though_all_else_changes(folder: Path) -> None:
    ben = entry(folder, "character", "Ben")
    record = json.loads((ben.folder / "entity.json").read_text("utf-8"))
    record["locked"] = True
    (ben.folder / "entity.json").write_text(json.dumps(record), "utf-8")
    portrait = (ben.folder / "portrait.png").read_bytes()
    assert kept_entities(folder / "run") == ("ep_a/character:Ben",)
    model = MemoryModel()
    with ModelServer(model) as server:
        given = {"image": f"image:{server.openai_url}#painter", "style": "an oil painting"}
        options = MemoryOptions(workers=0, candidates=1, settings=SETTINGS, **given)  # type: ignore[arg-type]
        budget = memory_budget(memory_request(folder / "set", folder / "run", options))
        assert (budget.kept, budget.pictures) == (1, 5)
        build(folder, **given)
    after = entry(folder, "character", "Ben")
    assert (after.folder / "portrait.png").read_bytes() == portrait and after.record.locked
    assert after.record.model == "image:drawn:faithful" and model.asked["picture"] == 5
    assert entry(folder, "character", "Ana").record.style == "an oil painting"
    record = json.loads((ben.folder / "entity.json").read_text("utf-8"))
    (ben.folder / "entity.json").write_text(json.dumps({**record, "locked": False}), "utf-8")
    build(folder)
    assert entry(folder, "character", "Ben").record.model == "image:drawn:faithful"


def test_object_when_a_person_gives_a_picture_to_a_part_has_one_of_its_own(tmp_path: Path) -> None:
    write_episodes(tmp_path / "set", [written_episode()])
    model = MemoryModel({"the old ladder": "The Garden"})
    with ModelServer(model) as server:
        given = {"image": f"image:{server.openai_url}#painter", "agent": f"{server.openai_url}#agent"}
        build(tmp_path, **given)
        ladder = entry(tmp_path, "object", "the old ladder")
        assert ladder.record.status == "part_of"
        cut = Image.new("RGBA", (40, 40), (9, 9, 9, 255))
        (ladder.folder / "cutout.png").write_bytes(png_of(cut))
        build(tmp_path, **given)
    after = entry(tmp_path, "object", "the old ladder")
    assert after.record.status == "verified" and after.file("labelled.png") is not None
    assert after.record.owner is None and read_bank(tmp_path / "run").owner(after) is None


def test_file_when_a_person_puts_no_picture_there_is_told_with_its_place(folder: Path) -> None:
    ben = entry(folder, "character", "Ben")
    (ben.folder / "portrait.png").write_bytes(b"no picture")
    with pytest.raises(MediaProblem, match=r"character-Ben.portrait\.png"):
        build(folder)
    (ben.folder / "entity.json").write_text("{}", "utf-8")
    with pytest.raises(InputError, match="cannot be used"):
        look_at(ben.folder)
    with pytest.raises(InputError, match="cannot be used"):
        read_bank(folder / "run")


def test_names_when_they_cannot_be_drawn_stop_the_build_before_anything_is_paid(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    document = json.loads(json.dumps(written_episode()).replace("Ben", "李小龙"))
    write_episodes(tmp_path / "set", [document])
    monkeypatch.setattr(pictures, "font_files", tuple)
    with pytest.raises(MissingRequirement, match="fonts-noto-cjk"):
        build(tmp_path)
    assert not (tmp_path / "run").exists()
    build(tmp_path, without_labels=True)
    assert entry(tmp_path, "character", "李小龙").file("labelled.png") is None
