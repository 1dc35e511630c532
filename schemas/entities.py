"""Episode scripts in the official EntityBench shape: ``<episode>.json``, one per episode, and split files.

Shots are named ``<scene>:<shot>``, both counted from 1, the shot within its scene. The schedule says which
entities a shot shows, by name; the registry, ``entity_descriptions``, says what they look like, by label. The
schedule calls locations places. Unknown fields are kept, absent is not null; semantic rules are validators.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

from pydantic import ConfigDict, Field, RootModel, StrictBool, StrictInt, StrictStr

from .plain_files import composed
from .values import Check, Own, Wire

EntityType = Literal["character", "location", "object"]
TYPES: tuple[EntityType, ...] = ("character", "location", "object")
"""Types of entities, in the order of registries and of headers."""

LISTS: dict[str, EntityType] = {"characters": "character", "places": "location", "objects": "object"}
"""List of a schedule -> the type of what it names, in the order of the file."""

LABELS: dict[EntityType, str] = {"character": "Character", "location": "Location", "object": "Object"}
"""Type -> the word that its labels begin with: ``Character 1``."""

TIERS = ("easy", "medium", "hard")
ALL = "all"
"""The tier that holds every episode of a split file."""
_MOST_DIGITS = 9


class EntityScene(Wire):
    """One scene: three lists of one length, an element per shot."""

    scene_num: StrictInt | None = Field(default=None, description="Number of the scene, from 1.")
    video_prompts: tuple[str, ...] = Field(
        default=(), description="What a generator is given: a header that describes entities, and the action."
    )
    cut: tuple[StrictBool, ...] = Field(
        default=(), description="Whether the shot begins anew; false where it continues the one before."
    )
    action_descriptions: tuple[str, ...] = Field(default=(), description="What happens in the shot.")


class ScheduledShot(Wire):
    """Which entities a shot shows, by name; each list may be empty."""

    characters: tuple[str, ...] = Field(default=(), description="Names of characters.")
    places: tuple[str, ...] = Field(default=(), description="Names of locations.")
    objects: tuple[str, ...] = Field(default=(), description="Names of objects.")

    def names(self, kind: EntityType) -> tuple[str, ...]:
        lists = {"character": self.characters, "location": self.places, "object": self.objects}
        return lists[kind]


class RegistryEntry(Wire):
    """One entity of an episode's registry."""

    name: str | None = Field(default=None, description="How texts and the schedule name it.")
    label: str | None = Field(default=None, description="Its label, which is also its key in the registry.")
    description: str | None = Field(default=None, description="What it looks like.")


@dataclass(frozen=True, slots=True)
class EpisodeShot:
    """One shot of an episode, put together from its parts of the file."""

    key: str  # ``<scene>:<shot>``, as the schedule names it
    scene: int  # number of its scene
    number: int  # its number in the scene, from 1
    place: int  # place of its scene in the list of scenes, from 0
    cut: bool  # whether it begins anew; true where the file does not say
    action: str  # what happens in it; empty where the file has none
    prompt: str  # what a generator is given; likewise
    scheduled: ScheduledShot  # the entities that it shows; none where the schedule does not know it


class EntityEpisode(Wire):
    """The content of one script file."""

    story_name: str | None = Field(default=None, description="Id of the episode, the stem of its file.")
    story_overview: str | None = Field(default=None, description="The story in two to four sentences.")
    scenes: tuple[EntityScene, ...] = Field(default=(), description="The scenes, in order.")
    entity_schedule: dict[str, ScheduledShot] = Field(
        default_factory=dict, description="Key of a shot -> what it shows, in story order."
    )
    entity_descriptions: dict[str, RegistryEntry] = Field(
        default_factory=dict, description="The registry: label -> entity; characters, locations, objects."
    )
    window_shot_ids: tuple[str, ...] | None = Field(
        default=None, alias="_window_shot_ids", description="Ids of the source's shots, one per shot."
    )
    num_scenes: StrictInt | None = Field(default=None, alias="_num_scenes", description="How many scenes.")
    num_shots: StrictInt | None = Field(default=None, alias="_num_shots", description="How many shots.")
    name_map: dict[str, str] | None = Field(
        default=None, alias="_name_map", description="Label -> name, of the source's whole registry."
    )

    def shots(self) -> Iterator[EpisodeShot]:
        """Yield the shots in story order, as many as there are actions or prompts."""
        nothing = ScheduledShot()
        for place, scene in enumerate(self.scenes):
            number = place + 1 if scene.scene_num is None else scene.scene_num
            for index in range(max(len(scene.action_descriptions), len(scene.video_prompts))):
                key = shot_key(number, index + 1)
                yield EpisodeShot(
                    key=key,
                    scene=number,
                    number=index + 1,
                    place=place,
                    cut=scene.cut[index] if index < len(scene.cut) else True,
                    action=_at(scene.action_descriptions, index),
                    prompt=_at(scene.video_prompts, index),
                    scheduled=self.entity_schedule.get(key, nothing),
                )


class SplitItem(Wire):
    """An episode of a split as one official file has it: not its id but an object that describes it."""

    episode_id: str = Field(description="Id of the episode.")
    shot_ids: tuple[str, ...] | None = Field(default=None, description="Ids of the source's shots.")
    num_shots: StrictInt | None = Field(default=None, description="How many shots it has.")
    start_idx: StrictInt | None = Field(default=None, description="Where its window begins in the source.")
    window_score: int | float | None = Field(default=None, description="The score that chose the window.")
    is_replacement: StrictBool | None = Field(default=None, description="Whether it replaces another one.")
    window_info: dict[str, Any] | None = Field(default=None, description="What the score was made of.")


class EntitySplits(RootModel[dict[str, tuple[StrictStr | SplitItem, ...]]]):
    """The content of one split file: tier -> its episodes, in order."""

    model_config = ConfigDict(frozen=True)

    def ids(self, tier: str) -> tuple[str, ...]:
        """Return the ids of the episodes of a tier, as names are compared; none if there is no such tier."""
        items = self.root.get(tier, ())
        return tuple(composed(item if isinstance(item, str) else item.episode_id) for item in items)

    def objects(self) -> Iterator[tuple[str, int, SplitItem]]:
        """Yield every item that is an object, with its tier and its place there."""
        for tier, items in self.root.items():
            for index, item in enumerate(items):
                if not isinstance(item, str):
                    yield tier, index, item

    def as_json(self) -> dict[str, Any]:
        """Return what was read, equal as parsed JSON."""
        return {
            tier: [item if isinstance(item, str) else item.as_json() for item in items]
            for tier, items in self.root.items()
        }


class EpisodeRecord(Own):
    """One line of ``episodes.jsonl``: an episode with its history."""

    episode_id: str = Field(description="Id of the episode, which names its files.")
    tiers: dict[str, tuple[str, ...]] = Field(
        description="Split file without its ending -> the tiers that name the episode there, sorted."
    )
    entry: EntityEpisode = Field(description="The episode in the official form.")
    source: str | None = Field(description="The video or the data set that it was made from, by name.")
    producers: dict[str, str] = Field(description="Part of the entry, as a JSON path -> who made it.")
    checks: tuple[Check, ...] = Field(default=(), description="What verification looked at and found.")

    def as_json(self) -> dict[str, Any]:
        """Return the record as plain JSON, the entry in its official form."""
        return {**super().as_json(), "entry": self.entry.as_json()}


PictureKind = Literal["keyframe", "crop", "thumbnail"]


class TakenPicture(Own):
    """A picture of an episode that a run took: one line of ``pictures.jsonl`` of a run."""

    episode_id: str = Field(description="Id of the episode.")
    kind: PictureKind = Field(
        description="keyframe of a shot, crop of a person, or thumbnail of the episode."
    )
    shot: int | None = Field(description="Number of the shot in the episode, from 1; null outside it.")
    label: str | None = Field(description="Label of the entity that a crop shows.")
    number: int = Field(ge=1, description="Its place among those of its shot or entity, best or first is 1.")
    file: str = Field(description="Path in the run or release.")


class EpisodePicture(TakenPicture):
    """A picture of an episode that may be given away: one line of ``pictures.jsonl`` of a release."""

    sha256: str = Field(description="Hash of the file.")
    width: int = Field(ge=1, description="Pixels.")
    height: int = Field(ge=1, description="Pixels.")
    video: str = Field(description="The video that it is from, by name.")
    source: str | None = Field(default=None, description="Where the video comes from.")
    rights: str = Field(description="On what ground it may be used.")


def shot_key(scene: int, number: int) -> str:
    """Return how a schedule names a shot: ``3:1`` is the first shot of scene 3."""
    return f"{scene}:{number}"


def type_of_label(label: str) -> EntityType | None:
    """Return the type that a label of the form ``Object 7`` names; None for one of another form."""
    word, space, number = label.partition(" ")
    if space and number.isascii() and number.isdigit() and len(number) <= _MOST_DIGITS:
        return next((kind for kind, known in LABELS.items() if known == word), None)
    return None


def _at(texts: tuple[str, ...], index: int) -> str:
    return texts[index] if index < len(texts) else ""
