"""Stage: a judge scores how far the labelled frames of a shot show its action (B.3.4).

Interaction with objects is asked about only where the action names a scheduled object as a whole word.
"""

from collections.abc import Iterator, Sequence

from ....engine.stage import Item, Made, Outcome, StageSpec, Tools
from ....prompts.loader import load_prompt
from ....schemas.canonical import Json
from ...judging.packets import GivenPacket, Packet, Reader
from ..entities import ACTION_CRITERIA, names_any
from . import official
from .settings import EpisodeJudgeSettings, Reading, asked_of, pictures_named

PROMPT = "episodes/judge_action"
OF_OBJECTS = "object_interaction"

SPEC = StageSpec(
    name="judge_actions",
    version=1,
    shape="map",
    reads=("shot", "grid"),
    writes=("actions",),
    settings=EpisodeJudgeSettings,
    asks=(PROMPT,),
)


async def run(item: Item, tools: Tools) -> Outcome:
    """Return the row of a shot; none without a grid or an action."""
    return Made({"actions": await asked_of(packets_of(item, tools), tools)})


def packets_of(item: Item, tools: Tools) -> Iterator[Packet | GivenPacket]:
    """Yield what is asked about a shot: at most one question."""
    shot, grid = item["shot"], item["grid"]
    if grid is None or not shot["action"].strip():
        return
    named = objects_named(shot["action"], shot["entities"])
    texts = tools.own(EpisodeJudgeSettings).texts
    if texts is not None:
        names = [entry["name"] for entry in grid["legend"]]
        slots = official.action_slots(
            texts, shot["action"], names, grid.get("frames", official.FRAMES), with_objects=bool(named)
        )
        pictures, read = official.pictures_sent([grid["file"]], tools), official.read_action
        asked: official.Asked = ("action", shot["key"], "video")
        yield official.packet_of(texts, asked, "action", slots, pictures, read(with_objects=bool(named)))
        return
    legend = [{"color": entry["color"], "name": entry["name"]} for entry in grid["legend"]]
    yield Packet(
        "action", shot["key"], "video", load_prompt(PROMPT),
        {"action": shot["action"], "legend": legend, "objects": named},
        pictures_named([grid["file"]], tools), reader_of(with_objects=bool(named)), (shot["action"],),
        strict=False,
    )  # fmt: skip


def objects_named(action: str, entities: Sequence[Json]) -> list[str]:
    """Return the scheduled objects whose names stand in an action as whole words, in any case."""
    names = (entity["name"] for entity in entities if entity["type"] == "object")
    return [name for name in names if names_any(action, [name])]


def reader_of(*, with_objects: bool) -> Reader:
    """Return what reads the scores of an action."""
    criteria = [name for name in ACTION_CRITERIA if with_objects or name != OF_OBJECTS]

    def read(reply: Json) -> dict[str, Json]:
        reading = Reading(reply)
        scores = dict.fromkeys(ACTION_CRITERIA) | reading.scores(criteria)
        judged = {"overall": reading.score("overall"), "depicted": reading.verdict("depicted")}
        return reading.parsed({**judged, **scores})

    return read
