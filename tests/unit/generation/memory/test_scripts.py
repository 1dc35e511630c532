"""Scripts: which entities an episode has, and where their descriptions are from."""

import copy
from typing import Any

from fabula.generation.memory.scripts import MemoryScript, script_of
from fabula.schemas.entities import EntityEpisode
from fabula.testing.written_episodes import written_episode


def read(document: dict[str, Any]) -> MemoryScript:
    return script_of("ep_a", EntityEpisode.model_validate(document))


def test_script_when_read_has_the_scheduled_entities_by_type_and_appearance() -> None:
    script = read(written_episode())
    assert [entity.key for entity in script.entities] == [
        "character:Ana", "character:Ben", "location:The Kitchen", "location:The Garden",
        "object:the red cup", "object:the old ladder",
    ]  # fmt: skip
    ana = script.entities[0]
    assert (ana.label, ana.shots, ana.described_by) == ("Character 1", (0, 1, 3, 4), "header")
    assert ana.description.startswith("Woman of forty")
    assert [script.shots[place].key for place in ana.shots] == ["1:1", "1:2", "2:2", "2:3"]


def test_description_when_no_header_introduces_is_the_registrys_and_the_header_goes_first() -> None:
    document = copy.deepcopy(written_episode())
    first = document["scenes"][0]["video_prompts"][0]
    document["scenes"][0]["video_prompts"][0] = first.replace("Woman of forty", "Woman of fifty")
    second = document["scenes"][0]["video_prompts"][1]
    document["scenes"][0]["video_prompts"][1] = second.partition("\n\n")[2]  # Ben's line is gone
    script = read(document)
    by_name = {entity.name: entity for entity in script.entities}
    assert by_name["Ana"].description.startswith("Woman of fifty") and by_name["Ana"].described_by == "header"
    assert by_name["Ben"].described_by == "registry" and by_name["Ben"].description.startswith("Tall boy")


def test_entity_when_the_registry_lacks_it_is_known_by_name_and_told() -> None:
    document = copy.deepcopy(written_episode())
    document["entity_schedule"]["1:1"]["objects"].append("the tin whistle")
    script = read(document)
    whistle = next(entity for entity in script.entities if entity.name == "the tin whistle")
    assert (whistle.label, whistle.description, whistle.described_by) == (None, "the tin whistle", "name")
    assert script.unregistered == ("object:the tin whistle",)


def test_entity_when_no_shot_schedules_it_is_told_and_gets_no_reference() -> None:
    document = copy.deepcopy(written_episode())
    document["entity_descriptions"]["Object 9"] = {
        "name": "the spare key", "label": "Object 9", "description": "Key.",
    }  # fmt: skip
    script = read(document)
    assert script.unscheduled == ("object:the spare key",)
    assert "the spare key" not in {entity.name for entity in script.entities}
