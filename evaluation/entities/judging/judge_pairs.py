"""Stage: a judge compares the crop that stands for an entity with each other one (Eq. 31-36).

Both crops are sent in the order of their content, so that no order shows which one is the anchor or earlier,
and a pair is the same question whichever of the two is the anchor.
"""

from collections.abc import Iterator

from ....engine.stage import Item, Made, Outcome, StageSpec, Tools
from ....prompts.loader import load_prompt
from ....schemas.canonical import Json
from ....schemas.entities import EntityType
from ...judging.packets import GivenPacket, Packet, Reader
from ..entities import CRITERIA, entity_parts
from . import official
from .settings import EpisodeJudgeSettings, Reading, asked_of, pictures_named

PROMPTS: dict[EntityType, str] = {
    "character": "episodes/compare_characters",
    "object": "episodes/compare_objects",
}

SPEC = StageSpec(
    name="judge_pairs",
    version=1,
    shape="map",
    reads=("shots", "gate"),
    writes=("pairs",),
    settings=EpisodeJudgeSettings,
    asks=tuple(PROMPTS.values()),
)


async def run(item: Item, tools: Tools) -> Outcome:
    """Return one row for each pair of an anchor and another appearance; none where nobody looked."""
    return Made({"pairs": await asked_of(packets_of(item, tools), tools)})


def packets_of(item: Item, tools: Tools) -> Iterator[Packet | GivenPacket]:
    """Yield what is asked about an episode, entity by entity."""
    shots = {shot["shot"]["key"]: shot for shot in item["shots"]}
    for key, first, other in pairs_of(item["gate"]):
        kind = entity_parts(key)[0]
        if kind not in PROMPTS:
            continue
        files = [shots[name]["grounded"]["entities"][key]["canonical"]["file"] for name in (first, other)]
        inputs = described(shots[first], key)
        texts = tools.own(EpisodeJudgeSettings).texts
        if texts is not None:
            slots = official.pair_slots(texts, kind, inputs)
            pictures = official.pictures_sent(files, tools)
            asked: official.Asked = ("pair", f"{key}/{first}/{other}", "image")
            yield official.packet_of(texts, asked, "pair", slots, pictures, official.read_pair(kind))
            continue
        yield Packet(
            "pair", f"{key}/{first}/{other}", "image", load_prompt(PROMPTS[kind]), inputs,
            pictures_named(sorted(files), tools), reader_of(kind), tuple(inputs.values()), strict=False,
        )  # fmt: skip


def pairs_of(gate: Json) -> Iterator[tuple[str, str, str]]:
    """Yield entity, anchor and other shot of every pair that is compared."""
    for key, appearances in ({} if gate is None else gate).items():
        if appearances["anchor"] is not None:
            for other in appearances["pool"]:
                if other != appearances["anchor"]:
                    yield key, appearances["anchor"], other


def described(shot: Json, key: str) -> dict[str, Json]:
    """Return name and description of an entity that a shot schedules."""
    entity = next(entity for entity in shot["shot"]["entities"] if entity["key"] == key)
    return {name: entity[name] for name in ("name", "description")}


def reader_of(kind: EntityType, *, described: bool = False) -> Reader:
    """Return what reads the comparison of two appearances of an entity of a type."""

    def read(reply: Json) -> dict[str, Json]:
        reading = Reading(reply)
        before = {"descriptions": reading.texts("descriptions")} if described else {}
        criteria = reading.scores(CRITERIA[kind])
        verdict = {"same": reading.verdict("same"), "similarity": reading.score("similarity")}
        return reading.parsed({**before, **verdict, "criteria": criteria})

    return read
