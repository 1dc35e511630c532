"""Stage: one item per episode, with its packets and where their pictures are."""

from collections.abc import Iterator

from pydantic import Field

from ....engine.stage import Child, Item, Made, StageSpec, Tools
from ....errors import ConfigError
from ....schemas.canonical import Json, sha256_bytes
from ....schemas.values import Own
from .exports import PlacedPacket, read_packets

PACKETS = "packets"
"""Role of the source: a folder of packets."""


class PacketSelection(Own):
    """Which packets are used."""

    episodes: tuple[str, ...] = Field(default=(), description="Only these episodes [all].")
    limit: int | None = Field(default=None, ge=1, description="Only the first so many episodes [all].")


SPEC = StageSpec(
    name="load_packets", version=1, shape="expand", reads=("sources",), writes=("episode_id", "packets"),
    settings=PacketSelection,
)  # fmt: skip


def run(item: Item, tools: Tools) -> Iterator[Child]:
    """Yield one child per episode."""
    del item
    settings = tools.own(PacketSelection)
    episodes: dict[str, list[PlacedPacket]] = {}
    for placed in read_packets(tools.paths[0]):
        episodes.setdefault(placed.packet.episode_id, []).append(placed)
    unknown = sorted(set(settings.episodes) - set(episodes))
    if unknown:
        raise ConfigError(
            "--episode", what=f"there are no packets of {', '.join(unknown)}",
            fix=f"check the spelling; there are some of {', '.join(list(episodes)[:3])}",
        )  # fmt: skip
    chosen = [name for name in episodes if not settings.episodes or name in settings.episodes]
    for name in chosen[: settings.limit]:
        packets: list[Json] = [_entry(placed) for placed in episodes[name]]
        yield Child(name, Made({"episode_id": name, "packets": packets}))


def _entry(placed: PlacedPacket) -> Json:
    """Return a packet with the hash of each of its pictures as it is now, whoever replaced it."""
    files = [image.file for image in placed.packet.images if image.file is not None]
    hashes = {file: sha256_bytes(placed.picture(file)) for file in files}
    return {"packet": placed.packet.as_json(), "folder": str(placed.folder.absolute()), "hashes": hashes}


def identity(fields: dict[str, Json]) -> Json:
    """Return what makes an episode the same episode."""
    return fields["episode_id"]
