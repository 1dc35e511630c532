"""The packet of a shot: the pictures and words that a generator gets, and where each entity is in them.

First come the labelled portraits of the scheduled characters, then the keyframes, which show objects and
place (EntityBench, 4). The last frame of the shot before goes to the generator as a first frame of its own
and is no part of the memory.

What the one generator that draws from data is told of a packet: whom it can know, whom it must make up.

A real generator that is shown somebody's picture can draw them; of words alone it makes up a face, another
one each time. The scene says that as data: who is in a picture of the packet has the look of their name; who
is in the frame from which the generator goes on keeps the look that they had there; everybody else gets a
look of this shot alone. So an evaluation that reads drawn truth finds what a packet's pictures carry, and no
more.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Literal, TypeAlias

from pydantic import Field

from ....engine.stage import Child, Item, Made, Tools, stage
from ....errors import InputError, UserError
from ....evaluation.entities.episodes import chosen_episodes
from ....evaluation.entities.looking import EpisodeSelection
from ....models.generators.drawn.scene import DrawnScene, Mark, MarkKind
from ....prompts.loader import load_prompt
from ....releases.entities.tree import read_entity_set
from ....schemas.canonical import Json, sha256_bytes
from ....schemas.entities import TYPES, EntityEpisode, EntityType, EpisodeShot
from ....schemas.plain_files import read_plain, reason_of
from ....schemas.values import Own
from ....validators.entities.view import EpisodeView, Header
from ..bank import CUTOUT, LABELLED, VIEWS, BankEntry, BankEpisode, DescribedBy, Owner, Status, read_bank
from ..scripts import script_of
from .layout import Keyframe, ShotLayout

# -- What the shots of an episode know of its entities: words, and which pictures the bank has, without paths
#
# A run of packets depends on this alone: a picture that a person replaces in the bank has another hash here.

Use: TypeAlias = Literal["labelled", "cutout", "left", "centre", "right"]
"""What a picture of the bank is for: a labelled portrait, a cut-out for keyframes, thirds of a panorama."""
_FILES: Mapping[str, Use] = {
    LABELLED: "labelled", CUTOUT: "cutout", **{f"{view}.png": view for view in VIEWS},
}  # fmt: skip


class KnownPicture(Own):
    path: str = Field(description="Where it lies, below the bank.")
    sha256: str = Field(description="Of its bytes.")


class KnownEntity(Own):
    type: EntityType = Field(description="Type, as the schedule lists it.")
    name: str = Field(min_length=1, description="Name, as the schedule has it.")
    description: str = Field(description="What it looks like at its first appearance; its name for no words.")
    described_by: DescribedBy = Field(description="Where that is from.")
    status: Status = Field(default="text_only", description="Whether its pictures can be relied on.")
    owner: Owner | None = Field(default=None, description="Of an object: whose picture shows it.")
    bounds: tuple[int, int, int, int] | None = Field(
        default=None, description="Left, top, right, bottom of the subject in its cut-out, in pixels."
    )
    pictures: dict[Use, KnownPicture] = Field(default_factory=dict, description="What the bank has of it.")

    @property
    def key(self) -> str:
        """How it is called beside others: ``object:the red cup``."""
        return f"{self.type}:{self.name}"


class KnownEntities(Own):
    """The scheduled entities of an episode."""

    entities: tuple[KnownEntity, ...] = Field(description="In order of appearance.")

    @cached_property
    def by_key(self) -> Mapping[str, KnownEntity]:
        """``type:name`` -> entity."""
        return {entity.key: entity for entity in self.entities}

    @property
    def alone(self) -> tuple[str, ...]:
        """Names of the objects that are placed in keyframes: all but those that others' pictures show."""
        return tuple(
            entity.name for entity in self.entities if entity.type == "object" and entity.status != "part_of"
        )

    def pictures(self) -> Iterator[tuple[KnownEntity, Use, KnownPicture]]:
        """Yield every picture with whose it is and what for."""
        for entity in self.entities:
            for use, picture in entity.pictures.items():
                yield entity, use, picture


def known_entities(
    episode_id: str, script: EntityEpisode, bank: BankEpisode | None, root: Path | None = None
) -> KnownEntities:
    """Return what is known of the entities that an episode schedules.

    ``bank``: its entries of the bank; None for words alone.
    """
    entries = {} if bank is None else bank.by_key
    problems: list[UserError] = []
    entities = []
    for entity in script_of(episode_id, script).entities:
        entry = entries.get((entity.type, entity.name))
        known = KnownEntity(
            type=entity.type, name=entity.name, description=entity.description,
            described_by=entity.described_by,
        )  # fmt: skip
        if entry is not None and root is not None:
            known = known.model_copy(update=_of_bank(entry, root, problems))
        entities.append(known)
    if problems:
        raise InputError(problems)
    return KnownEntities(entities=tuple(entities))


def _of_bank(entry: BankEntry, root: Path, problems: list[UserError]) -> dict[str, object]:
    pictures: dict[Use, KnownPicture] = {}
    for name, use in _FILES.items():
        path = entry.file(name)
        if path is None:
            continue
        try:
            sha256 = sha256_bytes(read_plain(path, follow=True))
        except OSError as error:
            fix = "build the bank again: fabula memory build"
            problems.append(UserError(str(path), what=f"it cannot be read: {reason_of(error)}", fix=fix))
            continue
        pictures[use] = KnownPicture(path=path.relative_to(root).as_posix(), sha256=sha256)
    record = entry.record
    return {
        "description": record.description, "described_by": record.described_by, "status": record.status,
        "owner": record.owner, "bounds": record.bounds, "pictures": pictures,
    }  # fmt: skip


# -- The packet of a shot

PACKET = "packet.json"
PACKET_PROMPT = "memory/video_shot"
Memory: TypeAlias = Literal["entities", "last-frame", "text"]
"""What a generator is shown of what came before: the bank's entities; the whole last frame of the shot before
it, whatever that shows; nothing but words."""
Role: TypeAlias = Literal["portrait", "keyframe", "frame"]
Means: TypeAlias = Literal["portrait", "keyframe", "owner", "header", "bank", "name", "action"]
"""How a packet has an entity: its labelled portrait; a keyframe that shows it; a picture of what it is a part
of; a line of the script; a description of the bank that was injected; its bare name, added; its name in the
action."""


class PacketImage(Own):
    """One picture of the memory."""

    role: Role = Field(description="What it is.")
    file: str | None = Field(description="Its file in the packet; null for a frame that is not made yet.")
    sha256: str | None = Field(description="Of the file.")
    entity: str | None = Field(default=None, description="Of a portrait: whose, as type:name.")
    verified: bool | None = Field(default=None, description="Of a portrait: whether it passed verification.")
    keyframe: int | None = Field(default=None, description="Of a keyframe: which of the layout, from 1.")
    shot: str | None = Field(default=None, description="Of a frame: the shot whose last one it is.")
    shows: tuple[str, ...] = Field(default=(), description="The entities that it shows, as type:name.")
    boxes: dict[str, tuple[int, int, int, int]] = Field(
        default_factory=dict, description="Of a keyframe: entity -> left, top, right, bottom in pixels."
    )


class FirstFrame(Own):
    """The picture with which a shot begins."""

    shot: str = Field(description="Key of the shot whose last frame it is.")
    in_memory: Literal[False] = Field(
        default=False,
        description="It keeps the motion going and is no reference for what anybody looks like.",
    )


class EntityInPacket(Own):
    entity: str = Field(description="type:name.")
    by: tuple[Means, ...] = Field(description="How the packet has it; empty for one that it lost.")
    described_by: str = Field(
        description="Where its description is from: header, registry, or name for none."
    )


class Packet(Own):
    """What a generator gets for one shot."""

    version: Literal[1] = Field(default=1, description="Of this form.")
    episode_id: str = Field(description="The episode.")
    shot: str = Field(description="Key of the shot, <scene>:<shot>.")
    scene: int = Field(description="Number of its scene.")
    number: int = Field(description="Its number in the scene, from 1.")
    index: int = Field(description="Its place in the episode, from 0.")
    memory: Memory = Field(description="What the generator is shown.")
    keyframes: bool = Field(description="Whether keyframes are among it.")
    prompt: str = Field(description="The words for the generator.")
    camera: str = Field(description="The part of them about the camera.")
    action: str = Field(description="The part of them about what happens.")
    described: tuple[str, ...] = Field(description="The part of them about looks, a line for each entity.")
    injected: tuple[str, ...] = Field(description="Entities whose line the script lacks here, as type:name.")
    images: tuple[PacketImage, ...] = Field(description="The memory, in order.")
    first_frame: FirstFrame | None = Field(description="With what it begins; null where it begins anew.")
    entities: tuple[EntityInPacket, ...] = Field(description="The scheduled entities, in order.")
    unregistered: tuple[str, ...] = Field(
        description="Those that the registry does not have, so that nobody says what they look like."
    )
    layout: ShotLayout = Field(description="Where everybody stands.")

    @property
    def name(self) -> str:
        """The name of its folder, and of the shot's video: ``001_002``."""
        return f"{self.scene:03d}_{self.number:03d}"

    @property
    def lost(self) -> tuple[str, ...]:
        """The scheduled entities that it has neither as picture nor as text."""
        return tuple(entity.entity for entity in self.entities if not entity.by)


class Condition(Own):
    """What of the memory packets have: switches for ablations."""

    memory: Memory = Field(
        default="entities",
        description="entities: portraits and keyframes; last-frame: the whole last frame of the shot before;"
        " text: words only.",
    )
    keyframes: bool = Field(default=True, description="Whether entities come with keyframes.")


@dataclass(frozen=True, slots=True)
class ScriptedShot:
    episode_id: str  # of the episode
    index: int  # which shot of the episode, from 0
    shot: EpisodeShot  # of the script
    header: Header  # the lines of its script that describe entities
    before: EpisodeShot | None  # the shot before it in the episode; None for the first


def scripted_shots(view: EpisodeView) -> Iterator[ScriptedShot]:
    """Yield the shots of an episode, in story order."""
    before = None
    for index, (shot, header) in enumerate(zip(view.shots, view.headers, strict=True)):
        yield ScriptedShot(view.episode_id, index, shot, header, before)
        before = shot


def packet_of(
    scripted: ScriptedShot, known: KnownEntities, layout: ShotLayout,
    composed: Sequence[Mapping[str, object] | None], condition: Condition,
) -> Packet:  # fmt: skip
    """Return the packet of a shot.

    ``composed``: what was made of each of its keyframes; None for one without a picture.
    """
    shot, before = scripted.shot, scripted.before
    scheduled = [
        known.by_key[f"{kind}:{name}"] for kind in TYPES for name in dict.fromkeys(shot.scheduled.names(kind))
    ]
    images = list(_images(scheduled, layout, composed, condition, before))
    lines = _lines(scheduled, scripted.header)
    also = [
        entity.name
        for entity in scheduled
        if entity.key not in lines and not is_named(shot.action, entity.name)
    ]
    camera = camera_words(layout)
    prompt = load_prompt(PACKET_PROMPT).render(
        action=shot.action, also=also, camera=camera, described=[line for line, _ in lines.values()]
    )
    goes = layout.continues and before is not None and condition.memory != "text"
    return Packet(
        episode_id=scripted.episode_id, shot=shot.key, scene=shot.scene, number=shot.number,
        index=scripted.index,
        memory=condition.memory, keyframes=condition.memory == "entities" and condition.keyframes,
        prompt=prompt, camera=camera, action=shot.action,
        described=tuple(line for line, _ in lines.values()),
        injected=tuple(key for key, (_, source) in lines.items() if source == "bank"),
        images=tuple(images),
        first_frame=FirstFrame(shot=before.key) if goes and before is not None else None,
        entities=tuple(_in_packet(entity, images, lines, shot, also) for entity in scheduled),
        unregistered=tuple(entity.key for entity in scheduled if entity.described_by == "name"),
        layout=layout,
    )  # fmt: skip


def camera_words(layout: ShotLayout) -> str:
    """Return what a prompt says of the camera: the view at first, and how it turns."""
    first = layout.keyframes[0]
    pans = [pan for keyframe in layout.keyframes if (pan := keyframe.pan) != "none"]
    seen = {"left": "the left side", "front": "the front", "right": "the right side"}[first.angle]
    turns = "".join(f"{', then' if number else ','} it pans to the {pan}" for number, pan in enumerate(pans))
    begins = "It goes on from the shot before without a cut. " if layout.continues else ""
    return f"{begins}The camera sees the place from {seen}{turns or ' and does not turn'}."


def _images(
    scheduled: Sequence[KnownEntity], layout: ShotLayout, composed: Sequence[Mapping[str, object] | None],
    condition: Condition, before: EpisodeShot | None,
) -> Iterator[PacketImage]:  # fmt: skip
    if condition.memory == "last-frame" and before is not None:
        yield PacketImage(role="frame", file=None, sha256=None, shot=before.key)
    if condition.memory != "entities":
        return
    number = 0
    for entity in scheduled:
        picture = entity.pictures.get("labelled") if entity.type == "character" else None
        if picture is not None:
            number += 1
            yield PacketImage(
                role="portrait", file=f"{number:02d}_portrait.png", sha256=picture.sha256, entity=entity.key,
                verified=entity.status == "verified", shows=(entity.key, *_parts(entity, scheduled)),
            )  # fmt: skip
    for which, made in enumerate(composed if condition.keyframes else (), 1):
        if made is not None:
            number += 1
            yield _keyframe_image(number, which, made, layout.keyframes[which - 1], scheduled)


def _keyframe_image(
    number: int, which: int, made: Mapping[str, object], keyframe: Keyframe, scheduled: Sequence[KnownEntity]
) -> PacketImage:
    boxes = made["boxes"]
    assert isinstance(boxes, Mapping)
    shown = list(boxes)
    if made["shows_place"]:
        shown.append(f"location:{keyframe.location}")
    by_key = {entity.key: entity for entity in scheduled}
    parts = [part for key in shown for part in _parts(by_key[key], scheduled)]
    file = str(made["file"])
    return PacketImage(
        role="keyframe", file=f"{number:02d}_keyframe.png", sha256=file.removesuffix(".png"), keyframe=which,
        shows=tuple(dict.fromkeys([*shown, *parts])),
        boxes={key: tuple(box) for key, box in boxes.items()},
    )  # fmt: skip


def _parts(owner: KnownEntity, scheduled: Sequence[KnownEntity]) -> list[str]:
    """Return the scheduled objects that the picture of their owner shows, too."""
    return [
        entity.key
        for entity in scheduled
        if entity.status == "part_of"
        and entity.owner is not None
        and (entity.owner.type, entity.owner.name) == (owner.type, owner.name)
    ]


def _lines(
    scheduled: Sequence[KnownEntity], header: Header
) -> dict[str, tuple[str, Literal["header", "bank"]]]:
    written = {
        line.name: line.text for line in header.lines if line.name is not None and line.description.strip()
    }
    lines: dict[str, tuple[str, Literal["header", "bank"]]] = {}
    for entity in scheduled:
        if entity.name in written:
            lines[entity.key] = (written[entity.name], "header")
        elif entity.described_by != "name":
            lines[entity.key] = (f"{entity.name}: {entity.description}", "bank")
    return lines


def _in_packet(
    entity: KnownEntity, images: Sequence[PacketImage],
    lines: Mapping[str, tuple[str, Literal["header", "bank"]]], shot: EpisodeShot, also: Sequence[str],
) -> EntityInPacket:  # fmt: skip
    means: list[Means] = []
    for image in images:
        if entity.key in image.shows:
            own: Means = "keyframe" if image.role == "keyframe" else "portrait"
            means.append("owner" if entity.status == "part_of" else own)
    if entity.key in lines:
        means.append(lines[entity.key][1])
    elif entity.name in also:
        means.append("name")
    if is_named(shot.action, entity.name):
        means.append("action")
    return EntityInPacket(entity=entity.key, by=tuple(dict.fromkeys(means)), described_by=entity.described_by)


def is_named(text: str, name: str) -> bool:
    """Whether a text names somebody as a whole word, in any case."""
    if re.search(rf"(?<!\w){re.escape(name)}(?!\w)", text, re.IGNORECASE):
        return bool(name)
    return not name.isascii() and name in text


KINDS: Mapping[str, MarkKind] = {"character": "character", "object": "object", "location": "place"}
"""Type of an entity -> how it is drawn."""


def looks_of(packet: Packet, before: Mapping[str, str]) -> dict[str, str]:
    """Return entity -> the look that it gets in a shot.

    ``before``: entity -> the look that it had in the frame that the generator is given; empty for no frame.
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


# -- Stage: one item per episode, with its script and what the bank knows of its entities

EPISODES, BANK = "episodes", "bank"
"""Roles of the sources: the set of episodes, and the bank of their entities."""


@stage(
    version=1,
    shape="expand",
    reads=("sources",),
    writes=("episode_id", "script", "known", "bank"),
    settings=EpisodeSelection,
)
def load_shots(item: Item, tools: Tools) -> Iterator[Child]:
    """Yield one child per episode that is chosen."""
    (episodes,), (folder,) = tools.of_role(item, EPISODES), tools.of_role(item, BANK)
    whole, _ = read_entity_set(episodes, rules=False)
    bank = read_bank(folder)
    chosen = chosen_episodes(whole, tools.own(EpisodeSelection))
    missing = [each.episode_id for each in chosen.episodes if each.episode_id not in bank.by_id]
    if missing:
        what = f"the bank has no entities of {len(missing)} episodes: {', '.join(missing[:5])}"
        fix = "build them, too: fabula memory build; or choose what it has, with --episode, --tier or --limit"
        raise InputError.one(str(folder), what=what, fix=fix)
    for episode in chosen.episodes:
        entries = bank.by_id[episode.episode_id]
        known = known_entities(episode.episode_id, episode.script, entries, bank.folder)
        fields: dict[str, Json] = {
            "episode_id": episode.episode_id, "script": episode.script.as_json(), "known": known.as_json(),
            "bank": str(bank.folder.absolute()),
        }  # fmt: skip
        yield Child(episode.episode_id, Made(fields))


def identity(fields: dict[str, Json]) -> Json:
    """Return what makes an episode the same episode."""
    return fields["episode_id"]
