"""Packets of the written episodes: what is in them, under which condition, and that nobody is lost."""

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from fabula.schemas.entities import EntityEpisode
from fabula.studies.memory.bank import Owner
from fabula.studies.memory.shots.layout import cast_of, goes_on, plain_layout
from fabula.studies.memory.shots.packets import (
    Condition,
    KnownEntities,
    KnownEntity,
    KnownPicture,
    Packet,
    drawn_scene,
    known_entities,
    looks_of,
    made_up_look,
    packet_of,
    scripted_shots,
)
from fabula.testing.written_episodes import written_episode
from fabula.validators.entities.view import view_of

PICTURES = {
    "character": ("labelled", "cutout"),
    "object": ("cutout",),
    "location": ("left", "centre", "right"),
}


def pictured(entity: KnownEntity) -> KnownEntity:
    """The same entity with pictures that nobody opens here."""
    pictures = {
        use: KnownPicture(path=f"{use}.png", sha256=f"{use}-{entity.name}") for use in PICTURES[entity.type]
    }
    return entity.model_copy(update={"pictures": pictures, "status": "verified"})


def packets(
    condition: Condition | None = None,
    episode: Mapping[str, Any] | None = None,
    known: KnownEntities | None = None,
) -> list[Packet]:
    script = EntityEpisode.model_validate(episode or written_episode())
    if known is None:
        words = known_entities("ep_a", script, None)
        known = KnownEntities(entities=tuple(pictured(entity) for entity in words.entities))
    made: list[Packet] = []
    for scripted in scripted_shots(view_of("ep_a", script)):
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
        made.append(packet_of(scripted, known, layout, composed, condition or Condition()))
    return made


def means(packet: Packet) -> dict[str, tuple[str, ...]]:
    return {entity.entity: entity.by for entity in packet.entities}


def roles(packet: Packet) -> list[tuple[str, str | None]]:
    return [(image.role, image.entity or image.shot) for image in packet.images]


def test_packet_when_everything_has_a_picture_has_portraits_then_keyframes() -> None:
    first, second, _, _, last = packets()
    assert roles(first) == [("portrait", "character:Ana"), ("keyframe", None)]
    assert [image.file for image in first.images] == ["01_portrait.png", "02_keyframe.png"]
    assert first.images[1].shows == ("character:Ana", "object:the red cup", "location:The Kitchen")
    assert roles(second) == [
        ("portrait", "character:Ana"), ("portrait", "character:Ben"), ("keyframe", None),
    ]  # fmt: skip
    assert [image.keyframe for image in second.images] == [None, None, 1]
    assert means(last) == {
        "character:Ana": ("portrait", "keyframe", "bank", "action"),
        "character:Ben": ("portrait", "keyframe", "bank", "action"),
        "location:The Garden": ("keyframe", "bank", "action"),
        "object:the red cup": ("keyframe", "bank", "action"),
    }
    assert all(packet.lost == () for packet in packets())


def test_first_frame_when_a_shot_goes_on_is_named_and_outside_the_memory() -> None:
    made = packets()
    assert [packet.first_frame and packet.first_frame.shot for packet in made] == [
        None,
        "1:1",
        None,
        "2:1",
        "2:2",
    ]
    assert all(packet.first_frame.in_memory is False for packet in made if packet.first_frame)
    assert all(image.role != "frame" for packet in made for image in packet.images)


def test_prompt_when_the_script_describes_somebody_has_its_line_and_injects_the_others() -> None:
    first, _, _, fourth, _ = packets()
    assert first.described == (
        "Ana: Woman of forty in a green apron with rolled sleeves.",
        "The Kitchen: Narrow room with blue tiles and one window.",
        "the red cup: Chipped red enamel cup with a white rim.",
    )
    assert first.injected == () and set(fourth.injected) == {"character:Ana", "location:The Garden"}
    assert fourth.prompt == (
        "Ana: Woman of forty in a green apron with rolled sleeves.\n"
        "The Garden: Small lawn between brick walls, with a pear tree.\n"
        f"{fourth.camera}\nAna walks across The Garden, shading her eyes."
    )
    assert fourth.camera.startswith(
        "It goes on from the shot before without a cut. The camera sees the place from"
    )


def test_entity_when_nobody_describes_it_is_named_and_told() -> None:
    episode = written_episode()
    del episode["entity_descriptions"]["Object 1"]
    for scene in episode["scenes"]:
        scene["video_prompts"] = list(scene["action_descriptions"])
    script = EntityEpisode.model_validate(episode)
    made = packets(episode=episode, known=known_entities("ep_a", script, None))
    assert [packet.unregistered for packet in made] == [
        ("object:the red cup",),
        (),
        (),
        (),
        ("object:the red cup",),
    ]
    assert means(made[0])["object:the red cup"] == ("action",)
    silent = dict(episode, scenes=[dict(scene) for scene in episode["scenes"]])
    silent["scenes"][0]["action_descriptions"] = silent["scenes"][0]["video_prompts"] = [
        "Ana works.",
        "Ben waves.",
    ]
    first = packets(episode=silent, known=known_entities("ep_a", script, None))[0]
    assert (
        means(first)["object:the red cup"] == ("name",) and "Also in the shot: the red cup." in first.prompt
    )
    assert first.lost == ()


def test_object_when_it_is_part_of_somebody_is_in_their_portrait() -> None:
    words = known_entities("ep_a", EntityEpisode.model_validate(written_episode()), None)
    owner = Owner(type="character", name="Ana")
    entities = tuple(
        entity.model_copy(update={"status": "part_of", "owner": owner}) if entity.name == "the red cup"
        else pictured(entity)
        for entity in words.entities
    )  # fmt: skip
    first, _, _, _, last = packets(known=KnownEntities(entities=entities))
    assert means(first)["object:the red cup"] == ("owner", "header", "action")
    assert first.images[0].shows == ("character:Ana", "object:the red cup")
    assert not any(frame.objects for frame in last.layout.keyframes), "it is not placed again"


@pytest.mark.parametrize(
    ("condition", "images", "cup"),
    [
        (
            Condition(keyframes=False),
            [("portrait", "character:Ana"), ("portrait", "character:Ben")],
            ("bank", "action"),
        ),
        (Condition(memory="last-frame"), [("frame", "2:2")], ("bank", "action")),
        (Condition(memory="text"), [], ("bank", "action")),
    ],
)
def test_packet_when_memory_is_taken_away_lacks_just_that_and_says_so(
    condition: Condition, images: Sequence[tuple[str, str]], cup: tuple[str, ...]
) -> None:
    last = packets(condition)[-1]
    assert roles(last) == list(images) and means(last)["object:the red cup"] == cup
    assert (last.memory, last.keyframes) == (condition.memory, False)
    assert last.lost == () and last.prompt == packets()[-1].prompt
    assert (last.first_frame is None) == (condition.memory == "text")


def test_looks_when_memory_is_taken_away_are_made_up_or_kept_from_the_frame_before() -> None:
    full = packets()[-1]
    assert set(looks_of(full, {}).values()) == {"Ana", "Ben", "The Garden", "the red cup"}
    portraits = looks_of(packets(Condition(keyframes=False))[-1], {})
    assert portraits["character:Ana"] == "Ana"
    assert portraits["object:the red cup"] == made_up_look("the red cup", "ep_a", "2:3")
    frame = looks_of(
        packets(Condition(memory="last-frame"))[-1], {"character:Ana": "Ana, made up for ep_a 2:2"}
    )
    assert frame["character:Ana"] == "Ana, made up for ep_a 2:2"
    assert frame["character:Ben"] == made_up_look("Ben", "ep_a", "2:3")
    marks = drawn_scene(full, looks_of(full, {}))["marks"]
    assert [(mark["kind"], mark["text"]) for mark in marks] == [
        ("character", "Ana"), ("character", "Ben"), ("place", "The Garden"), ("object", "the red cup"),
        ("action", "Ana gives Ben the red cup in The Garden."),
    ]  # fmt: skip
