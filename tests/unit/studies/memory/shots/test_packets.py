"""Packets of the written episodes: what is in them, under which condition, and that nobody is lost."""

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from fabula.builders.drafting import estimate
from fabula.engine.status import RunReport
from fabula.errors import ConfigError
from fabula.schemas.entities import EntityEpisode
from fabula.schemas.plain_files import json_lines
from fabula.studies.memory.bank import Owner
from fabula.studies.memory.shots import packets as packing
from fabula.studies.memory.shots.exports import read_packets
from fabula.studies.memory.shots.layout import cast_of, goes_on, plain_layout
from fabula.studies.memory.shots.pipeline import PacketOptions, make_packets, packets_request, read_heights
from fabula.testing import stand_in_models
from fabula.testing.memory_banks import write_bank
from fabula.testing.model_server import Asked, ModelServer
from fabula.testing.written_episodes import write_episodes, written_episode
from fabula.validators.entities.view import view_of

PICTURES = {
    "character": ("labelled", "cutout"),
    "object": ("cutout",),
    "location": ("left", "centre", "right"),
}


def pictured(entity: packing.KnownEntity) -> packing.KnownEntity:
    """The same entity with pictures that nobody opens here."""
    pictures = {
        use: packing.KnownPicture(path=f"{use}.png", sha256=f"{use}-{entity.name}")
        for use in PICTURES[entity.type]
    }
    return entity.model_copy(update={"pictures": pictures, "status": "verified"})


def packets(
    condition: packing.Condition | None = None,
    episode: Mapping[str, Any] | None = None,
    known: packing.KnownEntities | None = None,
) -> list[packing.Packet]:
    script = EntityEpisode.model_validate(episode or written_episode())
    if known is None:
        words = packing.known_entities("ep_a", script, None)
        known = packing.KnownEntities(entities=tuple(pictured(entity) for entity in words.entities))
    made: list[packing.Packet] = []
    for scripted in packing.scripted_shots(view_of("ep_a", script)):
        before = made[-1].layout.state if goes_on(scripted.shot, scripted.before) else None
        layout = plain_layout(cast_of(scripted.shot, known.alone, before))
        composed = [
            {
                "file": f"{number}.png", "shows_place": frame.location is not None,
                "boxes": {
                    key: [0, 0, 1, 1]
                    for key in (
                        *(f"character:{standing.name}" for standing in frame.characters),
                        *(f"object:{thing.name}" for thing in frame.objects),
                    )
                    if known.by_key[key].pictures
                },
            }
            for number, frame in enumerate(layout.keyframes)
        ]  # fmt: skip
        made.append(packing.packet_of(scripted, known, layout, composed, condition or packing.Condition()))
    return made


def told(made: list[packing.Packet]) -> str:
    """Return packets as text: what is shown, by what each entity is known, and what is asked."""
    lines = []
    for packet in made:
        before = packet.first_frame
        lines.append(
            f"{packet.name}: memory {packet.memory}, keyframes {packet.keyframes}, lost {packet.lost}"
        )
        lines += [] if before is None else [f"begins with {before.shot}, in memory: {before.in_memory}"]
        lines += [
            f"{one.file} {one.role} of {one.entity or one.shot or one.keyframe}: {', '.join(one.shows)}"
            f"{'' if one.verified is None else f', verified {one.verified}'}"
            for one in packet.images
        ]
        lines += [f"{entity.entity} by {', '.join(entity.by)}" for entity in packet.entities]
        lines += [f"injected {name}" for name in packet.injected]
        lines += [f"unregistered {name}" for name in packet.unregistered]
        lines += [f"describes {len(packet.described)}", *packet.prompt.splitlines(), ""]
    return "\n".join(lines)


def undescribed(*actions: str) -> list[packing.Packet]:
    """Packets of an episode in which nobody describes the cup, with other actions in the first scene."""
    episode = written_episode()
    del episode["entity_descriptions"]["Object 1"]
    if actions:
        episode["scenes"][0]["action_descriptions"] = list(actions)
    for scene in episode["scenes"]:
        scene["video_prompts"] = list(scene["action_descriptions"])
    known = packing.known_entities("ep_a", EntityEpisode.model_validate(episode), None)
    return packets(episode=episode, known=known)


def with_cup_of_ana() -> list[packing.Packet]:
    """Packets of an episode in which Ana's portrait has the cup."""
    words = packing.known_entities("ep_a", EntityEpisode.model_validate(written_episode()), None)
    owner = {"status": "part_of", "owner": Owner(type="character", name="Ana")}
    entities = [
        entity.model_copy(update=owner) if entity.name == "the red cup" else pictured(entity)
        for entity in words.entities
    ]
    return packets(known=packing.KnownEntities(entities=tuple(entities)))


CASES: dict[str, Callable[[], list[packing.Packet]]] = {
    "no keyframes": lambda: packets(packing.Condition(keyframes=False)),
    "the last frame": lambda: packets(packing.Condition(memory="last-frame")),
    "text alone": lambda: packets(packing.Condition(memory="text")),
    "a cup that nobody describes": undescribed,
    "a cup that nobody names": lambda: undescribed("Ana works.", "Ben waves."),
    "a cup in a portrait": with_cup_of_ana,  # it is not placed again
}


def test_packets_when_everything_has_a_picture_have_portraits_then_keyframes(snapshot) -> None:
    assert told(packets()) == snapshot


@pytest.mark.parametrize("case", CASES)
def test_packets_when_something_is_taken_away_lack_just_that_and_say_so(case, difference, snapshot) -> None:
    made = CASES[case]()
    assert all(packet.lost == () for packet in made)
    assert difference(told(packets()), told(made)) == snapshot


def test_looks_when_memory_is_taken_away_are_made_up_or_kept_from_the_frame_before() -> None:
    full = packets()[-1]
    assert set(packing.looks_of(full, {}).values()) == {"Ana", "Ben", "The Garden", "the red cup"}
    portraits = packing.looks_of(packets(packing.Condition(keyframes=False))[-1], {})
    assert portraits["character:Ana"] == "Ana"
    assert portraits["object:the red cup"] == packing.made_up_look("the red cup", "ep_a", "2:3")
    frame = packing.looks_of(
        packets(packing.Condition(memory="last-frame"))[-1], {"character:Ana": "Ana, made up for ep_a 2:2"}
    )
    assert frame["character:Ana"] == "Ana, made up for ep_a 2:2"
    assert frame["character:Ben"] == packing.made_up_look("Ben", "ep_a", "2:3")
    marks = packing.drawn_scene(full, packing.looks_of(full, {}))["marks"]
    assert [(mark["kind"], mark["text"]) for mark in marks] == [
        ("character", "Ana"), ("character", "Ben"), ("place", "The Garden"), ("object", "the red cup"),
        ("action", "Ana gives Ben the red cup in The Garden."),
    ]  # fmt: skip


# -- The run that makes packets, from a drawn bank to folders: by rules and by a scripted model

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


def test_packets_when_made_lie_in_a_folder_for_each_shot_with_what_they_name(memory, tmp_path):
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


def test_packets_when_an_ablation_follows_in_the_same_run_leave_nothing_behind(memory, tmp_path):
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
def test_model_when_its_layouts_keep_the_rules_plans_every_shot(memory, tmp_path, server):
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


def test_model_when_a_layout_breaks_a_rule_is_told_once_and_then_the_rules_stand_in(memory, tmp_path, key):
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


def test_estimate_when_a_model_would_plan_counts_a_call_for_each_shot(memory, tmp_path, server):
    options = PacketOptions(workers=0, created_at=CREATED, **asking(server))
    plan = estimate(packets_request(memory, tmp_path / "run", options, tmp_path / "set"))
    assert (plan.calls, server.count) == (7, 0) and plan.cost and plan.cost > 0
