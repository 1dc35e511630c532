"""What the shots of an episode know of its entities: words, and which pictures the bank has, without paths.

A run of packets depends on this alone: a picture that a person replaces in the bank has another hash here.
"""

from collections.abc import Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import Literal, TypeAlias

from pydantic import Field

from ....errors import InputError, UserError
from ....schemas.canonical import sha256_bytes
from ....schemas.entities import EntityEpisode, EntityType
from ....schemas.plain_files import read_plain
from ....schemas.values import Own
from ..bank import CUTOUT, LABELLED, VIEWS, BankEntry, BankEpisode, DescribedBy, Owner, Status
from ..scripts import script_of

Use: TypeAlias = Literal["labelled", "cutout", "left", "centre", "right"]
"""What a picture of the bank is for: a labelled portrait, a cut-out for keyframes, thirds of a panorama."""
_FILES: Mapping[str, Use] = {
    LABELLED: "labelled", CUTOUT: "cutout", **{f"{view}.png": view for view in VIEWS},
}  # fmt: skip


class KnownPicture(Own):
    """One picture of the bank."""

    path: str = Field(description="Where it lies, below the bank.")
    sha256: str = Field(description="Of its bytes.")


class KnownEntity(Own):
    """One scheduled entity."""

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
            problems.append(UserError(str(path), what=f"it cannot be read: {error.strerror}", fix=fix))
            continue
        pictures[use] = KnownPicture(path=path.relative_to(root).as_posix(), sha256=sha256)
    record = entry.record
    return {
        "description": record.description, "described_by": record.described_by, "status": record.status,
        "owner": record.owner, "bounds": record.bounds, "pictures": pictures,
    }  # fmt: skip
