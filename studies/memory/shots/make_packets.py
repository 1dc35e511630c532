"""Stage: the packet of every shot of an episode; one that has lost a scheduled entity is not written."""

from ....engine.stage import Failed, Item, Made, Outcome, StageSpec, Tools
from ....schemas.canonical import Json
from ....schemas.entities import EntityEpisode
from ....validators.entities.view import view_of
from .layout import ShotLayout
from .packets import PROMPT, Condition, KnownEntities, Packet, packet_of, scripted_shots

SPEC = StageSpec(
    name="make_packets", version=1, shape="map",
    reads=("episode_id", "script", "known", "layouts", "keyframes"), writes=("packets",), settings=Condition,
    prompts=(PROMPT,),
)  # fmt: skip


def run(item: Item, tools: Tools) -> Outcome:
    """Return the packets, in story order."""
    episode_id, condition = str(item["episode_id"]), tools.own(Condition)
    view = view_of(episode_id, EntityEpisode.model_validate(item["script"]))
    known = KnownEntities.model_validate(item["known"])
    packets: list[Packet] = []
    for scripted, layout, composed in zip(
        scripted_shots(view), item["layouts"], item["keyframes"], strict=True
    ):
        packets.append(packet_of(scripted, known, ShotLayout.model_validate(layout), composed, condition))
    lost = [f"{packet.shot} {name}" for packet in packets for name in packet.lost]
    if lost:
        return Failed(
            "lost_entities", f"{len(lost)} scheduled entities are in no packet: {'; '.join(lost[:5])}"
        )
    documents: list[Json] = [packet.as_json() for packet in packets]
    return Made({"packets": documents})
