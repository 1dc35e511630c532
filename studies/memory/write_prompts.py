"""Stage: what a generator is asked for, for each entity that needs a picture (EntityBench, C.2 and E.2).

Rules fill a template; a model writes for each type in its own words. The ground is added by us, so that
another colour of it changes nothing else.
"""

from collections.abc import Mapping

from ...builders.step import ask
from ...engine.stage import UNAVAILABLE, BadReply, Item, Made, NoAnswer, Outcome, StageSpec, Tools
from ...models.spec import ModelSettings
from ...prompts.loader import load_prompt
from ...schemas.canonical import Json
from ...schemas.entities import EntityType
from .keying import KEYS, Key
from .references import Reference
from .scripts import RULES

GROUND = "memory/ground"
FILLED: Mapping[EntityType, str] = {
    "character": "memory/character_picture",
    "object": "memory/object_picture",
    "location": "memory/location_picture",
}
"""Type -> the template that rules fill."""
WRITTEN: Mapping[EntityType, str] = {
    "character": "memory/write_character",
    "object": "memory/write_object",
    "location": "memory/write_location",
}
"""Type -> the prompt by which a model writes one."""
_LONGEST = 2000

SPEC = StageSpec(
    name="write_prompts", version=1, shape="map", reads=("reference",), writes=("prompt",),
    settings=ModelSettings, prompts=tuple(FILLED.values()), asks=tuple(WRITTEN.values()),
)  # fmt: skip


async def run(item: Item, tools: Tools) -> Outcome:
    """Return the ``text`` of the prompt, without the ground, and who wrote it; null where none is needed."""
    reference = Reference.model_validate(item["reference"])
    if reference.needs is None or reference.kept or reference.made != "generated":
        return Made({"prompt": None})
    inputs: dict[str, Json] = {
        "description": reference.description, "name": reference.name, "style": reference.style,
        "parts": [f"{part.name}: {part.description}" for part in reference.parts],
    }  # fmt: skip
    filled = load_prompt(FILLED[reference.type])
    by_rules = filled.render(**{name: inputs[name] for name in filled.card.inputs})
    if tools.asker is None:
        return Made({"prompt": {"text": by_rules, "by": RULES}})
    try:
        answer = await ask(tools, WRITTEN[reference.type], read_prompt, **inputs)
    except NoAnswer as none:
        if none.code == UNAVAILABLE:
            raise
        by = f"{RULES}, as the model gave no answer ({none.code})"
        return Made({"prompt": {"text": by_rules, "by": by}})
    return Made({"prompt": {"text": answer.value, "by": answer.maker}})


def read_prompt(reply: Json) -> str:
    """Return the prompt in a reply, in one line."""
    text = " ".join(str(reply["prompt"]).split())
    if not text or len(text) > _LONGEST:
        raise BadReply(f"the prompt must have 1 to {_LONGEST} characters, not {len(text)}")
    return text


def with_ground(prompt: str, key: Key) -> str:
    """Return a prompt with the sentence that asks for a ground of one colour."""
    return f"{prompt}\n{load_prompt(GROUND).render(colour=key, code=KEYS[key])}"
