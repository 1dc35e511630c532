"""What the one generator that draws from data is told of a packet: whom it can know, whom it must make up.

A real generator that is shown somebody's picture can draw them; of words alone it makes up a face, another
one each time. The scene says that as data: who is in a picture of the packet has the look of their name; who
is in the frame from which the generator goes on keeps the look that they had there; everybody else gets a
look of this shot alone. So an evaluation that reads drawn truth finds what a packet's pictures carry, and no
more.
"""

from collections.abc import Mapping

from ....models.generators.drawn.scene import DrawnScene, Mark, MarkKind
from ....schemas.canonical import Json
from .packets import Packet

KINDS: Mapping[str, MarkKind] = {"character": "character", "object": "object", "location": "place"}
"""Type of an entity -> how it is drawn."""


def looks_of(packet: Packet, before: Mapping[str, str]) -> dict[str, str]:
    """Return entity -> the look that it gets in a shot.

    Args:
        packet: of the shot.
        before: entity -> the look that it had in the frame that the generator is given; empty for no frame.
    """
    shown = {key for image in packet.images for key in image.shows}
    looks = {}
    for entity in packet.entities:
        key, name = entity.entity, entity.entity.partition(":")[2]
        made_up = made_up_look(name, packet.episode_id, packet.shot)
        looks[key] = name if key in shown else before.get(key, made_up)
    return looks


def made_up_look(name: str, episode_id: str, shot: str) -> str:
    """Return the look of somebody whom a generator makes up for one shot."""
    return f"{name}, made up for {episode_id} {shot}"


def drawn_scene(packet: Packet, looks: Mapping[str, str]) -> dict[str, Json]:
    """Return the scene of a shot: who and what it shows, by their looks, and what happens."""
    marks = [Mark(kind=KINDS[key.partition(":")[0]], text=look) for key, look in looks.items()]
    if packet.action.strip():
        marks.append(Mark(kind="action", text=packet.action))
    return DrawnScene(marks=tuple(marks)).as_json()
