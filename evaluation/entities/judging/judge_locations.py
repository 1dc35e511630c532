"""Stage: a judge says whether shots show the same location, whatever the camera does (Eq. 37-43).

Definition ``paper``: the shot whose crop is nearest to the centroid with each other one, by a few full frames
of each, the sharpest first. Definition ``code``, as the public evaluator has it: one question for a location,
with frames of at most eight shots.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence

from ....engine.stage import Item, Made, Outcome, StageSpec, Tools
from ....prompts.loader import load_prompt
from ....schemas.canonical import Json
from ....schemas.entities import EntityType
from ...judging.packets import GivenPacket, Packet, Reader
from ..entities import CRITERIA, entity_parts
from . import official
from .judge_pairs import described, pairs_of
from .judge_pairs import reader_of as pair_reader
from .settings import LocationSettings, Reading, asked_of, pictures_named

PAIR, SET = "episodes/compare_locations", "episodes/compare_location_set"
LOCATION: EntityType = "location"

SPEC = StageSpec(
    name="judge_locations",
    version=1,
    shape="map",
    reads=("shots", "gate"),
    writes=("locations",),
    settings=LocationSettings,
    asks=(PAIR, SET),
)


async def run(item: Item, tools: Tools) -> Outcome:
    """Return one row for each pair of shots, or for each location; none where nobody looked."""
    packets: Callable[[Item, Tools], Iterator[Packet | GivenPacket]]
    packets = pair_packets if tools.own(LocationSettings).definition == "paper" else set_packets
    return Made({"locations": await asked_of(packets(item, tools), tools)})


def pair_packets(item: Item, tools: Tools) -> Iterator[Packet]:
    """Yield a question for each pair of the anchor and another shot of a location."""
    shots = _shots(item)
    for key, first, other in pairs_of(item["gate"]):
        if entity_parts(key)[0] != LOCATION:
            continue
        sides = sorted(_frames(shots[name], tools) for name in (first, other))
        inputs = {**described(shots[first], key), "counts": [len(files) for files in sides]}
        yield Packet(
            "pair", f"{key}/{first}/{other}", "image", load_prompt(PAIR), inputs,
            pictures_named([file for files in sides for file in files], tools),
            pair_reader(LOCATION, described=True), (inputs["name"], inputs["description"]), strict=False,
        )  # fmt: skip


def set_packets(item: Item, tools: Tools) -> Iterator[Packet | GivenPacket]:
    """Yield a question for each location that two shots or more are compared of."""
    shots = _shots(item)
    for key, appearances in (item["gate"] or {}).items():
        if entity_parts(key)[0] != LOCATION or len(appearances["pool"]) < 2:
            continue
        chosen = evenly(appearances["pool"], tools.own(LocationSettings).shots)
        files = [file for name in chosen for file in _frames(shots[name], tools)]
        texts = tools.own(LocationSettings).texts
        if texts is not None:
            of_files = [name for name in chosen for _ in _frames(shots[name], tools)]
            pool = appearances["pool"]
            slots = official.location_slots(texts, described(shots[pool[0]], key), of_files, len(pool))
            name = "location_sampled" if len(pool) > len(chosen) else "location"
            pictures, read = official.pictures_sent(files, tools), official.read_location(len(files))
            yield official.packet_of(texts, ("location", key, "image"), name, slots, pictures, read)
            continue
        inputs = {**described(shots[chosen[0]], key), "count": len(files)}
        yield Packet(
            "location", key, "image", load_prompt(SET), inputs, pictures_named(files, tools),
            set_reader(len(files)), (inputs["name"], inputs["description"]), strict=False,
        )  # fmt: skip


def evenly(names: Sequence[str], most: int) -> list[str]:
    """Return at most so many names, taken evenly, the first and the last among them."""
    if len(names) <= most:
        return list(names)
    return [names[round(index * (len(names) - 1) / (most - 1))] for index in range(most)]


def set_reader(count: int) -> Reader:
    """Return what reads the verdict on so many frames of a location."""

    def read(reply: Json) -> dict[str, Json]:
        reading = Reading(reply)
        before = {"descriptions": reading.texts("descriptions")}
        criteria = reading.scores(CRITERIA[LOCATION])
        verdict = {"consistent": reading.verdict("consistent"), "consistency": reading.score("consistency")}
        return reading.parsed(
            {**before, **verdict, "criteria": criteria, "outliers": reading.numbers("outliers", count)}
        )

    return read


def _shots(item: Item) -> Mapping[str, Json]:
    return {shot["shot"]["key"]: shot for shot in item["shots"]}


def _frames(shot: Json, tools: Tools) -> list[str]:
    """Return the files of the sharpest frames of a shot."""
    frames = shot["frames"]
    chosen = frames["scene"][: tools.own(LocationSettings).frames]
    return [frames["pictures"][str(index)] for index in chosen]
