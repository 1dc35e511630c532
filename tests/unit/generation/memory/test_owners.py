"""Objects by rules: what stands alone, and whose picture shows the rest."""

from fabula.generation.memory.owners import classify_by_rules
from fabula.generation.memory.scripts import MemoryScript, ScriptEntity, ScriptShot


def entity(kind: str, name: str, shots: tuple[int, ...], description: str = "") -> ScriptEntity:
    return ScriptEntity.model_validate(
        {
            "type": kind, "name": name, "label": None, "shots": shots, "description": description or name,
            "described_by": "registry",
        }
    )  # fmt: skip


def script(*entities: ScriptEntity, actions: tuple[str, ...] = ("", "", "")) -> MemoryScript:
    shots = tuple(ScriptShot(key=f"1:{number}", action=text) for number, text in enumerate(actions, 1))
    return MemoryScript(episode_id="e", overview="", shots=shots, entities=entities, unscheduled=())


ANA = entity("character", "Ana", (0, 1, 2), "Woman with a long grey scarf.")
BEN = entity("character", "Ben", (0, 1), "Tall boy.")
HALL = entity("location", "The Hall", (0, 1))
YARD = entity("location", "The Yard", (2,))


def test_creature_vehicle_and_prop_when_classified_stand_alone() -> None:
    for name in ("the brown horse", "the police car", "the brass lantern", "the quux"):
        thing = entity("object", name, (0,))
        assert classify_by_rules(thing, script(ANA, HALL, thing)).owner is None


def test_clothes_when_a_description_has_them_are_its_characters() -> None:
    # Ben shares both shots with it as Ana does; only Ana's description has a scarf.
    scarf = entity("object", "the grey scarf", (0, 1), "Long woollen scarf.")
    owner = classify_by_rules(scarf, script(BEN, ANA, HALL, scarf)).owner
    assert owner is not None and (owner.type, owner.name) == ("character", "Ana")


def test_clothes_when_their_name_has_a_character_are_theirs() -> None:
    coat = entity("object", "Ben's coat", (0,))
    owner = classify_by_rules(coat, script(ANA, BEN, coat)).owner
    assert owner is not None and owner.name == "Ben"


def test_clothes_when_nothing_else_tells_belong_to_whom_the_action_names_before_them() -> None:
    hat = entity("object", "the felt hat", (0, 1))
    actions = ("Ana greets Ben, who lifts the felt hat.", "Ana waits. Ben drops the felt hat.", "")
    ana = entity("character", "Ana", (0, 1), "Woman.")
    owner = classify_by_rules(hat, script(ana, BEN, hat, actions=actions)).owner
    assert owner is not None and owner.name == "Ben"


def test_fixture_when_it_shares_shots_with_places_belongs_to_the_one_with_most() -> None:
    door = entity("object", "the oak door", (0, 1, 2))
    owner = classify_by_rules(door, script(ANA, YARD, HALL, door)).owner
    assert owner is not None and (owner.type, owner.name) == ("location", "The Hall")


def test_part_when_nobody_shares_a_shot_with_it_stands_alone_and_says_why() -> None:
    door = entity("object", "the oak door", (2,))
    row = classify_by_rules(door, script(ANA, HALL, door))
    assert row.owner is None and "no location shares a shot" in row.reason and row.by == "rules@1"
