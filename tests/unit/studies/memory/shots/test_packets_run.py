"""The run that makes packets, from a drawn bank to folders: by rules and by a scripted model."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from fabula.builders.spending import estimate
from fabula.engine.status import RunReport
from fabula.errors import ConfigError
from fabula.schemas.plain_files import json_lines
from fabula.studies.memory.bank import Owner
from fabula.studies.memory.shots.exports import read_packets
from fabula.studies.memory.shots.pipeline import (
    PacketOptions,
    make_packets,
    packets_request,
    read_heights,
)
from fabula.testing import stand_in_models
from fabula.testing.memory_banks import write_bank
from fabula.testing.model_server import Asked, ModelServer
from fabula.testing.written_episodes import write_episodes

CREATED = "2026-01-01T00:00:00Z"


@pytest.fixture(scope="module")
def drawn(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("drawn")
    write_episodes(folder / "set")
    return write_bank(folder / "set", folder / "memory")


@pytest.fixture
def memory(drawn: Path, tmp_path: Path) -> Path:
    """A bank of the test's own."""
    write_episodes(tmp_path / "set")
    (tmp_path / "memory").mkdir()
    for path in sorted(drawn.rglob("*")):
        target = tmp_path / "memory" / path.relative_to(drawn)
        if path.is_dir():
            target.mkdir(exist_ok=True)
        else:
            target.write_bytes(path.read_bytes())
    return tmp_path / "memory"


def made(bank: Path, out: str = "run", **options: Any) -> RunReport:
    chosen = PacketOptions(workers=0, created_at=CREATED, **options)
    return make_packets(bank, bank.parent / out, chosen, bank.parent / "set")


def files(folder: Path) -> dict[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()
    }


def ran(report: RunReport) -> dict[str, int]:
    return {stage.name: stage.ran for stage in report.stages}


def layouts(run: Path) -> list[dict[str, Any]]:
    return list(json_lines(run / "layouts.jsonl"))


def test_packets_when_made_lie_in_a_folder_for_each_shot_with_what_they_name(
    memory: Path, tmp_path: Path
) -> None:
    report = made(memory)
    assert report.totals["made"] == 2
    placed = read_packets(tmp_path / "run")
    assert [(each.packet.episode_id, each.packet.name) for each in placed] == [
        *(("ep_a", name) for name in ("001_001", "001_002", "002_001", "002_002", "002_003")),
        ("ep_b", "001_001"), ("ep_b", "001_002"),
    ]  # fmt: skip
    for each in placed:
        named = {image.file for image in each.packet.images}
        assert named | {"packet.json"} == {path.name for path in each.folder.iterdir()}
        assert each.packet.lost == ()
    first = placed[0]
    labelled = min((memory / "bank/ep_a").glob("*/labelled.png"))
    assert first.picture("01_portrait.png") == labelled.read_bytes()
    assert first.packet.images[1].boxes.keys() == {"character:Ana", "object:the red cup"}
    lines = layouts(tmp_path / "run")
    assert [(line["episode_id"], line["shot"]) for line in lines][:2] == [("ep_a", "1:1"), ("ep_a", "1:2")]
    page = (tmp_path / "run/layouts.html").read_text("utf-8")
    assert page.count("<img ") == 7 and "Ana fills the red cup" in page and "They come in: " in page
    assert str(tmp_path) not in page + (tmp_path / "run/packets.jsonl").read_text("utf-8")


@pytest.mark.slow
def test_picture_when_a_person_replaces_it_is_in_the_next_packets(memory: Path, tmp_path: Path) -> None:
    made(memory)
    before = files(tmp_path / "run/packets")
    ana = next(path for path in sorted((memory / "bank/ep_a").glob("*/labelled.png")))
    ben = sorted((memory / "bank/ep_a").glob("*/cutout.png"))[1]
    for name in ("labelled.png", "cutout.png"):
        (ana.parent / name).write_bytes((ben.parent / name).read_bytes())
    report = made(memory)
    after = files(tmp_path / "run/packets")
    changed = {name for name in after if after[name] != before.get(name)}
    assert "ep_a/001_001/01_portrait.png" in changed and "ep_a/001_001/02_keyframe.png" in changed
    assert not any(name.startswith("ep_b") for name in changed)
    assert ran(report)["compose_keyframes"] == 1, "the other episode's pictures are as they were"


def test_packets_when_an_ablation_follows_in_the_same_run_leave_nothing_behind(
    memory: Path, tmp_path: Path
) -> None:
    made(memory)
    made(memory, memory="text")
    assert not list((tmp_path / "run/packets").rglob("*.png"))
    assert {each.packet.memory for each in read_packets(tmp_path / "run")} == {"text"}
    made(memory, no_keyframes=True)
    names = {path.name for path in (tmp_path / "run/packets").rglob("*.png")}
    assert names == {"01_portrait.png", "02_portrait.png"}
    assert {each.packet.keyframes for each in read_packets(tmp_path / "run")} == {False}


@pytest.mark.slow
def test_heights_when_a_file_gives_them_scale_the_figures(memory: Path, tmp_path: Path) -> None:
    (tmp_path / "heights.toml").write_text('"Ana" = 0.5\n[ep_b]\n"Ben" = 0.25\n')
    assert read_heights(tmp_path / "heights.toml") == {"Ana": 0.5, "ep_b/Ben": 0.25}
    made(memory, "usual")
    made(memory, "scaled", heights=tmp_path / "heights.toml")

    def height(run: str, place: int, name: str) -> int:
        boxes = next(
            image.boxes for image in read_packets(tmp_path / run)[place].packet.images if image.boxes
        )
        return boxes[name][3] - boxes[name][1]

    # 0.72 * 480 = 345.6, and a half and a quarter of it.
    assert (height("usual", 0, "character:Ana"), height("scaled", 0, "character:Ana")) == (346, 173)
    assert (height("usual", 5, "character:Ben"), height("scaled", 5, "character:Ben")) == (346, 86)
    for text in ('"Ana" = "tall"', '"Ana" = 9', "Ana ="):
        (tmp_path / "heights.toml").write_text(text)
        with pytest.raises(ConfigError, match="heights"):
            read_heights(tmp_path / "heights.toml")


@pytest.mark.slow
def test_owner_when_it_shows_an_object_is_not_joined_by_it(tmp_path: Path) -> None:
    write_episodes(tmp_path / "set")
    owners = {"the red cup": Owner(type="character", name="Ana")}
    made(write_bank(tmp_path / "set", tmp_path / "memory", owners, without=("The Kitchen",)))
    first = read_packets(tmp_path / "run")[0].packet
    assert first.images[0].shows == ("character:Ana", "object:the red cup")
    assert first.images[1].boxes.keys() == {"character:Ana"} and first.lost == ()
    assert {entity.entity: entity.by for entity in first.entities}["location:The Kitchen"] == (
        "header",
        "action",
    )


@pytest.fixture
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "test-key-0123456789")


@pytest.fixture
def server(key: None) -> Iterator[ModelServer]:
    with ModelServer(stand_in_models.answer_layout) as server:
        yield server


def asking(server: ModelServer, **more: Any) -> dict[str, Any]:
    settings = {"base_url": server.openai_url, "concurrency": 2, "prices": {"input": 1.0, "output": 2.0}}
    return {"model": "openai:planner", "models": {"openai:planner": settings}, **more}


@pytest.mark.slow
def test_model_when_its_layouts_keep_the_rules_plans_every_shot(
    memory: Path, tmp_path: Path, server: ModelServer
) -> None:
    made(memory, **asking(server))
    lines = layouts(tmp_path / "run")
    assert server.count == 7 and {line["by"] for line in lines} == {"model"}
    assert lines[0]["keyframes"][0]["characters"] == [{"name": "Ana", "cell": "far-left"}]
    # The second shot goes on: Ana is where she was, Ben takes the first free cell.
    assert lines[1]["keyframes"][0]["characters"] == [
        {"name": "Ana", "cell": "far-left"}, {"name": "Ben", "cell": "left"},
    ]  # fmt: skip
    assert lines[1]["reasoning"] == "The camera rests."
    page = (tmp_path / "run/layouts.html").read_text("utf-8")
    assert "plan_layouts asked openai:planner 7 times" in page and "USD" in page
    made(memory, **asking(server))
    assert server.count == 7, "no layout is asked for twice"


def test_model_when_a_layout_breaks_a_rule_is_told_once_and_then_the_rules_stand_in(
    memory: Path, tmp_path: Path, key: None
) -> None:
    asked: list[str] = []

    def answer(question: Asked) -> Any:
        last = question.messages[-1].parts[-1]
        asked.append(last if isinstance(last, str) else "")
        is_repair = "are both" in asked[-1]
        if "Ana gives Ben" in str(question.messages[0].parts):
            return stand_in_models.crowded(question)
        return stand_in_models.answer_layout(question) if is_repair else stand_in_models.crowded(question)

    with ModelServer(answer) as server:
        made(memory, **asking(server))
    lines = {f"{line['episode_id']} {line['shot']}": line for line in layouts(tmp_path / "run")}
    # Two people in the centre: 1:2 is mended at the second try, 2:3 is not.
    assert lines["ep_a 1:2"]["by"] == "model" and lines["ep_a 1:2"]["reason"] is None
    assert lines["ep_a 2:3"]["by"] == "rules" and "Ana and Ben are both centre" in lines["ep_a 2:3"]["reason"]
    assert sum("are both centre" in text for text in asked) == 2
    assert "Rules stand in for the model" in (tmp_path / "run/layouts.html").read_text("utf-8")


def test_estimate_when_a_model_would_plan_counts_a_call_for_each_shot(
    memory: Path, tmp_path: Path, server: ModelServer
) -> None:
    options = PacketOptions(workers=0, created_at=CREATED, **asking(server))
    plan = estimate(packets_request(memory, tmp_path / "run", options, tmp_path / "set"))
    assert (plan.calls, server.count) == (7, 0) and plan.cost and plan.cost > 0
