"""EntityMem's rules on the 140 published episodes: every scheduled entity is decided, and sanely."""

from collections import Counter
from functools import cache
from pathlib import Path

import pytest

from fabula.releases.entities.tree import read_entity_set
from fabula.studies.memory.references import references_of
from fabula.studies.memory.scripts import MemoryScript, script_of
from fabula.studies.memory.words import Classified, classify_by_rules


@cache
def read(folder: Path) -> tuple[tuple[MemoryScript, tuple[Classified, ...]], ...]:
    episodes, _ = read_entity_set(folder, rules=False)
    scripts = [script_of(episode.episode_id, episode.script) for episode in episodes.episodes]
    return tuple(
        (script, tuple(classify_by_rules(entity, script) for entity in script.of("object")))
        for script in scripts
    )


@pytest.fixture
def published(reference: Path) -> tuple[tuple[MemoryScript, tuple[Classified, ...]], ...]:
    return read(reference / "entitybench")


def test_entities_when_read_are_all_scheduled_ones_with_the_source_of_their_description(
    published: tuple[tuple[MemoryScript, tuple[Classified, ...]], ...],
) -> None:
    entities = [entity for script, _ in published for entity in script.entities]
    assert Counter(entity.type for entity in entities) == {"character": 992, "location": 652, "object": 1941}
    # A line with something between name and colon counts as introducing, too: of 3,585 entities 796 of the
    # registry have no line at all, and 53, in 57 slots, are in no registry.
    assert Counter(entity.described_by for entity in entities) == {
        "header": 2736,
        "registry": 796,
        "name": 53,
    }
    assert sum(len(entity.shots) for entity in entities) == 11437
    assert sum(len(entity.shots) for entity in entities if entity.described_by == "name") == 57
    assert all(entity.description for entity in entities)


def test_objects_when_classified_by_rules_each_have_an_owner_of_their_shots_or_stand_alone(
    published: tuple[tuple[MemoryScript, tuple[Classified, ...]], ...],
) -> None:
    counts: Counter[str] = Counter()
    for script, rows in published:
        by_key = {entity.key: entity for entity in script.entities}
        assert [row.name for row in rows] == [entity.name for entity in script.of("object")]
        for row in rows:
            counts["alone" if row.owner is None else row.owner.type] += 1
            counts["unknown"] += "no word of its name" in row.reason
            if row.owner is not None:
                owner = by_key[f"{row.owner.type}:{row.owner.name}"]
                assert set(owner.shots) & set(by_key[f"object:{row.name}"].shots)
    # The lists were completed with the nouns of these very names, so that few are unknown here; of other
    # episodes more will be.
    assert counts == {"character": 664, "location": 616, "alone": 661, "unknown": 20}


def test_objects_when_their_sort_is_plain_are_decided_as_the_paper_says(
    published: tuple[tuple[MemoryScript, tuple[Classified, ...]], ...],
) -> None:
    owners = {row.name: row.owner for _, rows in published for row in rows}
    worn = ("the blue denim jacket", "the white t-shirt", "the striped t-shirt", "the wire-frame glasses")
    assert all(owner is not None and owner.type == "character" for owner in map(owners.get, worn))
    fixed = ("the wooden church pew", "the small wooden table", "the conference table")
    assert all(owner is not None and owner.type == "location" for owner in map(owners.get, fixed))
    for name in ("the calico cat", "the black sedan", "the antique French letter", "the silver thermos"):
        assert name in owners and owners[name] is None


def test_references_when_listed_lose_no_entity_and_route_every_part(
    published: tuple[tuple[MemoryScript, tuple[Classified, ...]], ...],
) -> None:
    needs: Counter[str] = Counter()
    for script, rows in published:
        listed = list(references_of(script, rows, "plain", None, "generated"))
        assert [reference.key for reference in listed] == [entity.key for entity in script.entities]
        routed = sorted(part.name for reference in listed for part in reference.parts)
        assert routed == sorted(row.name for row in rows if row.owner is not None)
        needs.update(str(reference.needs) for reference in listed)
    assert needs == {"portrait": 992 + 661, "panorama": 652, "None": 664 + 616}
