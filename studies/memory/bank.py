"""The bank of a memory run: what is known and drawn of every entity, as a folder that a person can correct.

::

    RUN/bank/<episode folder>/episode.json
    RUN/bank/<episode folder>/<entity folder>/entity.json
        portrait.png    the chosen candidate as it was made (characters, objects that stand alone)
        cutout.png      the same size, RGBA, nothing but the subject
        labelled.png    the subject with its name drawn below
        panorama.png    a location, 1536 x 512; left.png, centre.png and right.png are its thirds
        candidates.png  all candidates cut out, on a checkered ground: what was chosen from

A folder has the files that its entity has; ``entity.json`` names them with their hashes.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Literal, TypeAlias, get_args

from pydantic import Field

from ...errors import InputError, UserError
from ...schemas.entities import EntityType
from ...schemas.plain_files import read_plain, reason_of
from ...schemas.values import Own

BANK = "bank"
"""Folder of a memory run that holds the bank."""
EPISODE, ENTITY = "episode.json", "entity.json"
PORTRAIT, CUTOUT, LABELLED, CANDIDATES = "portrait.png", "cutout.png", "labelled.png", "candidates.png"
PANORAMA = "panorama.png"
View: TypeAlias = Literal["left", "centre", "right"]
VIEWS: tuple[View, ...] = ("left", "centre", "right")
"""The thirds of a panorama, as the camera angles left, front (the centre) and right use them (E.2)."""
PANORAMA_SIZE = (1536, 512)
"""Width and height of a panorama in pixels (E.2)."""
FIX = "correct the file, or remove the folder of the entity and build the bank again"

Status = Literal["verified", "unverified", "part_of", "text_only", "failed"]
"""Of an entity: its picture passed all that was asked of it; there is a picture that never passed or was
never checked; its owner's picture shows it; it has words and by choice no picture; it has no picture though
one was wanted. Why stands in ``reason``."""
DescribedBy = Literal["header", "registry", "name"]
"""Where a description is from: the header of the shot that introduces the entity, the registry, or, for an
entity that is in no registry, nothing but its name."""
HowMade = Literal["generated", "outputs", "words"]
"""How references came about: made before any video; cropped from the first output that should show the
entity; not at all."""


class Owner(Own):
    """The entity that an object is a part of."""

    type: Literal["character", "location"] = Field(description="Its type.")
    name: str = Field(min_length=1, description="Its name.")


class BankCheck(Own):
    code: str = Field(description="What was checked, such as holes or border.")
    passed: bool | None = Field(description="True, false, or null where nobody could say.")
    note: str = Field(description="What was seen, in one line.")
    by: str = Field(description="Who looked: rules, or the spec of a model.")


class Cropped(Own):
    """Where in a method's outputs a reference was taken from."""

    method: str = Field(description="Whose outputs.")
    shot: str = Field(description="Key of the shot, the first that should show the entity.")
    file: str = Field(description="Name of its video or picture.")
    box: tuple[float, float, float, float] | None = Field(
        description="Left, top, right, bottom as shares of the frame; null for the whole frame."
    )


class EntityRecord(Own):
    """What ``entity.json`` holds."""

    version: Literal[1] = Field(default=1, description="Of this form.")
    episode_id: str = Field(description="The episode.")
    type: EntityType = Field(description="Type, as the schedule lists it.")
    name: str = Field(min_length=1, description="Name, as schedule and registry have it.")
    label: str | None = Field(description="Its key in the registry; null for an entity that is in none.")
    owner: Owner | None = Field(default=None, description="Of an object: whose picture shows it.")
    parts: tuple[str, ...] = Field(
        default=(), description="Names of the objects that its picture shows, too."
    )
    first_shot: str = Field(description="Key of the first shot that schedules it.")
    description: str = Field(description="What it looks like, as it is introduced.")
    described_by: DescribedBy = Field(description="Where the description is from.")
    style: str = Field(default="", description="Style of the episode's pictures, in words.")
    made: HowMade = Field(description="How the references came about.")
    status: Status = Field(description="Whether it can be relied on.")
    reason: str | None = Field(default=None, description="Why it is not verified.")
    verified_by: str | None = Field(
        default=None, description="Who let it pass: rules, the spec of a model, or person."
    )
    checks: tuple[BankCheck, ...] = Field(default=(), description="What was looked at in the chosen picture.")
    key_colour: str | None = Field(default=None, description="Ground of the portrait, as #rrggbb.")
    round: int | None = Field(default=None, description="Which try it is from, from 1; each has its own key.")
    candidate: int | None = Field(default=None, description="Which candidate of that try, from 1.")
    chosen_because: str | None = Field(default=None, description="Why this candidate, in one line.")
    bounds: tuple[int, int, int, int] | None = Field(
        default=None, description="Left, top, right, bottom of the subject in the cut-out, in pixels."
    )
    prompt: str | None = Field(default=None, description="What the generator was asked for.")
    prompt_by: str | None = Field(default=None, description="Who wrote that: rules, or the spec of a model.")
    model: str | None = Field(default=None, description="Spec of the generator.")
    seed: int | None = Field(default=None, description="The seed that it was asked with.")
    segmenter: str | None = Field(default=None, description="Who cut the subject out.")
    licence: str | None = Field(
        default=None, description="Under what its pictures may be used; null: not said."
    )
    cropped: Cropped | None = Field(default=None, description="Where it was taken from, of outputs.")
    calls: dict[str, int] = Field(
        default_factory=dict, description="How many questions it took, by what was asked for."
    )
    locked: bool = Field(default=False, description="Set it to true, and building again leaves it as it is.")
    by_person: tuple[str, ...] = Field(default=(), description="Its files that a person put there.")
    files: dict[str, str] = Field(default_factory=dict, description="Name of each file -> its SHA-256.")


class EpisodeRecord(Own):
    """What ``episode.json`` holds."""

    version: Literal[1] = Field(default=1, description="Of this form.")
    episode_id: str = Field(description="The episode.")
    overview: str = Field(default="", description="The story, as its script tells it.")
    style: str = Field(default="", description="Style of its pictures, in words.")
    style_by: str = Field(default="rules", description="Who chose it: rules, user, or the spec of a model.")
    entities: tuple[str, ...] = Field(description="Folders of its entities, in order of appearance.")
    unregistered: tuple[str, ...] = Field(
        default=(), description="Scheduled entities that the registry does not have, as type:name."
    )
    unscheduled: tuple[str, ...] = Field(
        default=(), description="Entities of the registry that no shot schedules, as type:name."
    )


@dataclass(frozen=True, slots=True)
class BankEntry:
    folder: Path  # where its files are
    record: EntityRecord  # what is known of it

    def file(self, name: str) -> Path | None:
        """Return where one of its files is, such as ``cutout.png``; None where it has none."""
        return self.folder / name if name in self.record.files else None

    def view(self, view: View) -> Path | None:
        """Return where a third of its panorama is; None where it has none."""
        return self.file(f"{view}.png")


@dataclass(frozen=True)
class BankEpisode:
    folder: Path  # where their folders are
    record: EpisodeRecord  # what is known of the episode
    entries: tuple[BankEntry, ...]  # its entities, in order of appearance

    @cached_property
    def by_key(self) -> Mapping[tuple[EntityType, str], BankEntry]:
        return {(entry.record.type, entry.record.name): entry for entry in self.entries}


@dataclass(frozen=True)
class Bank:
    folder: Path  # the folder ``bank`` of its run
    episodes: tuple[BankEpisode, ...]  # by the order of their ids

    @cached_property
    def by_id(self) -> Mapping[str, BankEpisode]:
        return {episode.record.episode_id: episode for episode in self.episodes}

    def entry(self, episode_id: str, kind: EntityType, name: str) -> BankEntry | None:
        episode = self.by_id.get(episode_id)
        return None if episode is None else episode.by_key.get((kind, name))

    def owner(self, entry: BankEntry) -> BankEntry | None:
        """Return the entry whose picture shows an object that is a part of it; None where there is none."""
        owner = entry.record.owner
        return None if owner is None else self.entry(entry.record.episode_id, owner.type, owner.name)

    def entries(self) -> Iterator[BankEntry]:
        for episode in self.episodes:
            yield from episode.entries


def read_bank(folder: Path) -> Bank:
    root = folder / BANK if (folder / BANK).is_dir() else folder
    records = sorted(root.glob(f"*/{EPISODE}"))
    if not records:
        what = "there is no bank of entities"
        raise InputError.one(str(folder), what=what, fix="build one: fabula memory build")
    problems: list[UserError] = []
    episodes = [episode for path in records if (episode := _episode(path, problems)) is not None]
    if problems:
        raise InputError(problems)
    return Bank(root, tuple(sorted(episodes, key=lambda episode: episode.record.episode_id)))


def read_record(folder: Path, problems: list[UserError]) -> EntityRecord | None:
    """Return what the ``entity.json`` of a folder holds; None, and a problem more, where that is nothing."""
    path = folder / ENTITY
    try:
        return EntityRecord.model_validate_json(read_plain(path))
    except (OSError, ValueError) as error:
        problems.append(UserError(str(path), what=f"it cannot be used: {reason_of(error)[:300]}", fix=FIX))
        return None


def _episode(path: Path, problems: list[UserError]) -> BankEpisode | None:
    try:
        record = EpisodeRecord.model_validate_json(read_plain(path))
    except (OSError, ValueError) as error:
        problems.append(UserError(str(path), what=f"it cannot be used: {reason_of(error)[:300]}", fix=FIX))
        return None
    listed = [path.parent / name for name in record.entities]
    read = [(folder, read_record(folder, problems)) for folder in listed]
    entries = tuple(BankEntry(folder, entry) for folder, entry in read if entry is not None)
    return BankEpisode(path.parent, record, entries)


_MOST_TOLD = 10


def told_of(bank: Bank) -> Iterator[str]:
    """Yield what a person should know of a bank: how many entities are what, and which to look at."""
    counts = Counter(entry.record.status for entry in bank.entries())
    yield "entities: " + ", ".join(f"{counts[name]:,} {name}" for name in get_args(Status) if counts[name])
    doubtful = [entry.record for entry in bank.entries() if entry.record.status in ("unverified", "failed")]
    for record in doubtful[:_MOST_TOLD]:
        yield f"{record.status}: {record.episode_id} {record.type} {record.name}: {record.reason}"
    if len(doubtful) > _MOST_TOLD:
        yield f"and {len(doubtful) - _MOST_TOLD:,} more; bank.html and entity.json say why"
    unregistered = [key for episode in bank.episodes for key in episode.record.unregistered]
    if unregistered:
        yield f"{len(unregistered):,} scheduled entities are in no registry and known by name alone"
