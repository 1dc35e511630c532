"""Stage: the packet of every shot of an episode; one that has lost a scheduled entity is not written."""

from ....engine.stage import Failed, Item, Made, Outcome, StageSpec, Tools
from ....schemas.canonical import Json
from ....schemas.entities import EntityEpisode
from ....validators.entities.view import view_of
from .known import KnownEntities
from .layout import ShotLayout
from .packets import PROMPT, Condition, Packet, packet_of

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
    for index, (shot, layout, composed) in enumerate(
        zip(view.shots, item["layouts"], item["keyframes"], strict=True)
    ):
        before = view.shots[index - 1] if index else None
        packets.append(
            packet_of(
                episode_id, index, shot, view.headers[index], known, ShotLayout.model_validate(layout),
                composed, condition, before,
            )
        )  # fmt: skip
    lost = [f"{packet.shot} {name}" for packet in packets for name in packet.lost]
    if lost:
        return Failed(
            "lost_entities", f"{len(lost)} scheduled entities are in no packet: {'; '.join(lost[:5])}"
        )
    documents: list[Json] = [packet.as_json() for packet in packets]
    return Made({"packets": documents})
