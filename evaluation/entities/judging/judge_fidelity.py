"""Stage: a judge scores how far the canonical crop of each entity shows what its description says (B.3.3).

Entities that were found with certainty or without are scored, those that were not found are not asked about.
"""

from collections.abc import Iterator

from ....engine.stage import Item, Made, Outcome, StageSpec, Tools
from ....prompts.loader import load_prompt
from ....schemas.canonical import Json
from ....schemas.entities import TYPES, EntityType
from ...judging.packets import GivenPacket, Packet, Reader
from ..entities import CRITERIA
from . import official
from .settings import EpisodeJudgeSettings, Reading, asked_of, pictures_named

PROMPTS = {kind: f"episodes/judge_{kind}" for kind in TYPES}

SPEC = StageSpec(
    name="judge_fidelity",
    version=1,
    shape="map",
    reads=("shot", "grounded"),
    writes=("fidelity",),
    settings=EpisodeJudgeSettings,
    asks=tuple(PROMPTS.values()),
)


async def run(item: Item, tools: Tools) -> Outcome:
    """Return one row for each entity of a shot that has a crop; none where nobody looked."""
    return Made({"fidelity": await asked_of(packets_of(item, tools), tools)})


def packets_of(item: Item, tools: Tools) -> Iterator[Packet | GivenPacket]:
    """Yield what is asked about a shot, entity by entity."""
    shot, grounded = item["shot"], item["grounded"]
    for entity in shot["entities"] if grounded is not None else ():
        seen = grounded["entities"].get(entity["key"])
        if seen is None or seen["canonical"] is None:
            continue
        item_key, crop = f"{shot['key']}/{entity['key']}", [seen["canonical"]["file"]]
        texts, kind = tools.own(EpisodeJudgeSettings).texts, entity["type"]
        if texts is not None:
            slots = official.fidelity_slots(texts, kind, entity)
            pictures = official.pictures_sent(crop, tools)
            asked: official.Asked = ("fidelity", item_key, "image")
            yield official.packet_of(texts, asked, "fidelity", slots, pictures, official.read_fidelity(kind))
            continue
        inputs = {
            "name": entity["name"],
            "description": entity["description"],
            "unsure": seen["status"] == "weak",
        }
        yield Packet(
            "fidelity", item_key, "image", load_prompt(PROMPTS[kind]), inputs,
            pictures_named(crop, tools), reader_of(kind),
            (entity["name"], entity["description"]), strict=False,
        )  # fmt: skip


def reader_of(kind: EntityType) -> Reader:
    """Return what reads the fidelity of an entity of a type."""

    def read(reply: Json) -> dict[str, Json]:
        reading = Reading(reply)
        criteria = reading.scores(CRITERIA[kind])
        return reading.parsed({"overall": reading.score("overall"), "criteria": criteria})

    return read
