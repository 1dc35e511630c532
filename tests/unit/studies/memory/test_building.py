"""Building a bank: from a small episode to the folder, with the drawn model and with scripted ones."""

import json
import re
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from PIL import Image

from fabula.builders.entities.building import EntityOptions, build_entities
from fabula.engine.manifest import read_manifest
from fabula.models.generators.drawn.images import codes_in
from fabula.models.generators.drawn.scene import code_of
from fabula.releases.entities.tree import read_entity_set
from fabula.studies.memory.bank import Bank, read_bank, told_of
from fabula.studies.memory.pictures import KEYS
from fabula.studies.memory.pipeline import (
    MemoryBudget,
    MemoryOptions,
    build_memory,
    estimate_memory,
    memory_budget,
    memory_request,
)
from fabula.studies.memory.shots.exports import read_packets
from fabula.studies.memory.shots.generating import ShotOptions, generate_shots, last_frame, place_videos
from fabula.studies.memory.shots.packets import EntityInPacket
from fabula.studies.memory.shots.pipeline import PacketOptions, make_packets
from fabula.testing.drawn_episode import write_episode
from fabula.testing.drawn_videos import write_frames
from fabula.testing.killing import kill_after
from fabula.testing.memory_model import STYLE, MemoryModel
from fabula.testing.model_server import ModelServer
from fabula.testing.written_episodes import SHOTS, write_episodes, written_episode

if TYPE_CHECKING:
    from PIL.Image import Image as Picture

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


def test_budget_when_counted_is_exact_at_least_and_at_most(episodes, tmp_path, served, model):
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


def test_bank_when_text_only_has_descriptions_and_asks_nobody(episodes, tmp_path, model):
    build_memory(episodes, tmp_path / "run", options(text_only=True))
    bank = read_bank(tmp_path / "run")
    assert {entry.record.status for entry in bank.entries()} == {"text_only"}
    assert {entry.record.made for entry in bank.entries()} == {"words"} and not model.asked
    assert all(not entry.record.files for entry in bank.entries())


_RUN = """
import sys
from pathlib import Path
from fabula.api.calling import choose_reporter
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


# -- The page of a bank: every entity, what it was chosen from and why, with nothing to load from anywhere


def page_of(folder: Path, model: MemoryModel, document: dict[str, object]) -> str:
    write_episodes(folder / "set", [document])
    with ModelServer(model) as server:
        options = MemoryOptions(
            image=f"image:{server.openai_url}#painter", agent=f"{server.openai_url}#agent", candidates=2,
            workers=0, retries=1, created_at="2026-01-01T00:00:00Z",
        )  # fmt: skip
        build_memory(folder / "set", folder / "run", options)
    return (folder / "run" / "bank.html").read_text("utf-8")


@pytest.mark.slow
def test_page_when_written_shows_every_entity_and_how_it_came_about(tmp_path: Path) -> None:
    model = MemoryModel(
        {"the old ladder": "The Garden"},
        paint=lambda key, _: "hole" if key == "green" else None,
        look=lambda name: {"clean": False, "wrong": "A pink rim."} if name == "Ben" else {},
    )
    page = page_of(tmp_path, model, written_episode())
    for name in ("Ana", "Ben", "The Kitchen", "The Garden", "the red cup", "the old ladder"):
        assert name in page
    assert page.count("<img ") == 5 + 3, "five references, and the candidates of three portraits"
    assert all(src.startswith("data:image/jpeg;base64,") for src in re.findall(r'src="([^"]+)"', page))
    assert "Try 1 on green: 2 pictures, 2 made; number 1 taken" in page and "failed holes" in page
    assert "Its edges are clean." in page and "leftovers (A pink rim.)" in page
    assert "shown by" in page and "not verified" in page and "<script" not in page and 'src="http' not in page
    assert "Asked: picture" in page


# -- References cut from a method's own videos, instead of being made before

pytest.importorskip("av")
COLOURS = {"001_002": (200, 40, 40), "002_001": (40, 40, 200), "002_002": (40, 160, 40)}
"""Shots that have a video, and the colour of their first frame; the first shot has none."""


def first(colour: tuple[int, int, int]) -> "Picture":
    """A frame of a colour whose left half is half as bright."""
    from PIL import Image

    image = Image.new("RGB", (192, 64), colour)
    image.paste(tuple(part // 2 for part in colour), (0, 0, 96, 64))
    return image


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    from PIL import Image

    write_episodes(tmp_path / "set", [written_episode("ep_a", SHOTS[:4])])
    videos = tmp_path / "my-model" / "ep_a"
    videos.mkdir(parents=True)
    for name, colour in COLOURS.items():
        frames = [first(colour), *[Image.new("RGB", (192, 64))] * 5]
        write_frames(videos / f"{name}.mp4", [np.asarray(frame) for frame in frames])
    return tmp_path


def built(folder: Path, **given: Any) -> Bank:
    options = MemoryOptions(
        from_outputs=folder / "my-model", workers=0, created_at="2026-01-01T00:00:00Z", **given
    )
    build_memory(folder / "set", folder / "run", options)
    return read_bank(folder / "run")


def colour_of(bank: Bank, kind: str, name: str, file: str = "portrait.png") -> tuple[int, ...]:
    from PIL import Image

    entry = bank.entry("ep_a", kind, name)  # type: ignore[arg-type]
    assert entry is not None
    path = entry.file(file)
    assert path is not None, entry.record.reason
    with Image.open(path) as image:
        pixel = image.getpixel((image.width - 8, image.height // 2))
    assert isinstance(pixel, tuple)
    return tuple(int(part) for part in pixel)


def near(found: tuple[int, ...], wanted: tuple[int, ...]) -> bool:
    """Videos do not keep colours exactly."""
    return all(abs(one - other) <= 12 for one, other in zip(found, wanted, strict=True))


def test_reference_when_outputs_are_given_is_the_first_frame_of_the_first_shot_that_has_a_video(folder):
    bank = built(folder)
    # Shot 1:1, Ana's first, has no video: hers is from 1:2, as Ben's is, whose first it is.
    for name in ("Ana", "Ben"):
        assert near(colour_of(bank, "character", name), COLOURS["001_002"])
    garden = bank.entry("ep_a", "location", "The Garden")
    assert garden is not None and garden.record.cropped is not None
    assert garden.record.cropped.shot == "2:1" and garden.record.cropped.method == "my-model"
    assert {"panorama.png", "left.png", "centre.png", "right.png"} == set(garden.record.files)
    assert near(colour_of(bank, "location", "The Garden", "right.png"), COLOURS["002_001"])
    assert garden.record.status == "unverified" and garden.record.made == "outputs"


def test_reference_when_a_box_is_given_is_cut_by_it(folder: Path) -> None:
    from PIL import Image

    boxes = folder / "boxes.jsonl"
    row = {"episode_id": "ep_a", "shot": "1:2", "type": "character", "name": "Ana", "box": [0, 0.25, 0.5, 1]}
    boxes.write_text(json.dumps(row) + "\n", "utf-8")
    bank = built(folder, boxes=boxes)
    ana = bank.entry("ep_a", "character", "Ana")
    assert ana is not None and ana.record.cropped is not None and ana.record.cropped.box == (0, 0.25, 0.5, 1)
    with Image.open(ana.folder / "portrait.png") as image:
        assert image.size == (96, 48)
    assert near(colour_of(bank, "character", "Ana"), tuple(part // 2 for part in COLOURS["001_002"]))


# From a drawn film to an episode, its bank, its packets and its videos: everybody is in every shot.

pytest.importorskip("av")
FILM_SHOTS = ("AB1", "A2", "B1", "AC2", "B1", "C2", "A3", "AB1", "C3", "A1", "BC2", "A3", "D1", "AD2")


def name_of(entity: EntityInPacket) -> str:
    return entity.entity.partition(":")[2]


@pytest.mark.slow
def test_film_when_taken_through_the_memory_has_everybody_in_every_packet_and_video(tmp_path: Path) -> None:
    write_episode(tmp_path, FILM_SHOTS)
    film, built = tmp_path / "film.mp4", tmp_path / "episodes"
    build_entities(
        film, built,
        EntityOptions(
            detections=tmp_path / "film.jsonl", workers=0, created_at=CREATED,
            settings=("detect_shots.method=histogram", "filter_shots.copies=false"),
        ),
    )  # fmt: skip
    (episode,) = read_entity_set(built)[0].episodes
    schedule = episode.script.entity_schedule or {}
    sizes = ("draw_references.portrait=[256,320]", "draw_references.square=[256,256]")
    memory = MemoryOptions(
        image="image:drawn:faithful", candidates=1, workers=0, created_at=CREATED, settings=sizes
    )
    build_memory(built, tmp_path / "memory", memory)
    bank = read_bank(tmp_path / "memory")
    assert {entry.record.status for one in bank.episodes for entry in one.entries} == {"verified"}
    make_packets(
        tmp_path / "memory", tmp_path / "packets", PacketOptions(workers=0, created_at=CREATED), built
    )
    packets = [placed.packet for placed in read_packets(tmp_path / "packets")]
    assert [packet.shot for packet in packets] == list(schedule)
    for packet, scheduled in zip(packets, schedule.values(), strict=True):
        wanted = (*scheduled.characters, *scheduled.objects, *scheduled.places)
        assert sorted(map(name_of, packet.entities)) == sorted(wanted)
        assert packet.lost == packet.unregistered == ()
    generate_shots(
        tmp_path / "packets", tmp_path / "shots",
        ShotOptions(model="video:drawn:faithful", seconds=1.0, workers=0, created_at=CREATED),
    )  # fmt: skip
    done = place_videos(tmp_path / "shots", tmp_path / "outputs")
    assert done.outcomes == {"made": len(packets)}
    for packet in packets:
        video = done.outputs / packet.episode_id / f"{packet.name}.mp4"
        _, png = last_frame(video.read_bytes(), "mp4")
        assert {code_of(name_of(entity)) for entity in packet.entities} <= codes_in(png), packet.shot
