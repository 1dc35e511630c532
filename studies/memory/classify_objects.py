"""Stage: which objects get a picture of their own, and whose shows the others (EntityBench, C.2, E.1).

Characters always get portraits and locations panoramas, so that nobody is asked about them.
"""

import asyncio

from ...builders.step import ask
from ...engine.stage import UNAVAILABLE, BadReply, Item, Made, NoAnswer, Outcome, StageSpec, Tools
from ...models.spec import ModelSettings
from ...schemas.canonical import Json
from .bank import Owner
from .scripts import RULES, Classified, MemoryScript, ScriptEntity, classify_by_rules

PROMPT = "memory/classify_object"

SPEC = StageSpec(
    name="classify_objects", version=1, shape="map", reads=("script",), writes=("classified",),
    settings=ModelSettings, asks=(PROMPT,),
)  # fmt: skip


async def run(item: Item, tools: Tools) -> Outcome:
    """Return what was decided of each object, in order; by rules where no model gave an answer."""
    script = MemoryScript.model_validate(item["script"])
    objects = script.of("object")
    if tools.asker is None:
        return Made({"classified": [classify_by_rules(entity, script).as_json() for entity in objects]})
    rows = await asyncio.gather(*(_classified(entity, script, tools) for entity in objects))
    return Made({"classified": [row.as_json() for row in rows]})


async def _classified(entity: ScriptEntity, script: MemoryScript, tools: Tools) -> Classified:
    owners = [*script.of("character"), *script.of("location")]

    def read(reply: Json) -> tuple[Owner | None, str]:
        return read_owner(reply, owners)

    listed = [f"{other.type} {other.name}: {other.description}" for other in owners]
    try:
        answer = await ask(
            tools, PROMPT, read, name=entity.name, description=entity.description,
            overview=script.overview, owners=listed,
        )  # fmt: skip
    except NoAnswer as none:
        if none.code == UNAVAILABLE:
            raise
        return classify_by_rules(entity, script).model_copy(
            update={"by": f"{RULES}, as the model gave no answer ({none.code})"}
        )
    owner, reason = answer.value
    return Classified(name=entity.name, owner=owner, reason=reason, by=answer.maker)


def read_owner(reply: Json, owners: list[ScriptEntity]) -> tuple[Owner | None, str]:
    """Return the owner that a reply names, None for an object that stands alone; and the reason."""
    number, alone = reply["owner"], bool(reply["stands_alone"])
    reason = " ".join(str(reply["reason"]).split())[:300]
    if alone:
        return None, reason
    if number is None:
        raise BadReply("an object that does not stand alone needs the number of its owner")
    if not 1 <= number <= len(owners):
        raise BadReply(f"owner {number} is not in the list, which goes from 1 to {len(owners)}")
    owner = owners[number - 1]
    assert owner.type != "object"
    return Owner(type=owner.type, name=owner.name), reason
