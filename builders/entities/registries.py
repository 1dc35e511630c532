"""What was found in the chunks of a video, before it is put together: local registries."""

from collections.abc import Sequence

from ...schemas.base import Own
from .drafts import EntityKind, Repair


class Local(Own):
    """An object or a location of one chunk.

    Attributes:
        local_id: such as ``c02.object3``: number of the chunk, kind, number there.
        kind: location or object.
        name: as the chunk's registry calls it.
        looks: what it looks like there.
        shots: numbers of the shots in which it is seen, ascending.
    """

    local_id: str
    kind: EntityKind
    name: str
    looks: str = ""
    shots: tuple[int, ...] = ()


class PersonNote(Own):
    """What a person of the cast looks like in one chunk."""

    person: str
    looks: str


class Account(Own):
    """What happens in a shot, in one or two sentences."""

    shot: int
    text: str


class LocalRegistry(Own):
    """What was found in one chunk of shots.

    Attributes:
        chunk: its number, from 1.
        shots: numbers of its shots.
        persons: those of the cast who are seen in it.
        entities: objects and locations.
        accounts: what happens in its shots; not all of them need one.
        repairs: what was wrong with the reply, and what was done about it.
    """

    chunk: int
    shots: tuple[int, ...]
    persons: tuple[PersonNote, ...] = ()
    entities: tuple[Local, ...] = ()
    accounts: tuple[Account, ...] = ()
    repairs: tuple[Repair, ...] = ()


def chunks_of(count: int, size: int, overlap: int = 0) -> list[range]:
    """Return the chunks of a row by place: of one size but for the last, each overlapping the one before.

    Raises:
        ValueError: the overlap is no smaller than the size.
    """
    if not 0 <= overlap < size:
        raise ValueError(f"chunks of {size} cannot overlap by {overlap}")
    starts = range(0, max(count - overlap, 1), size - overlap)
    return [range(start, min(start + size, count)) for start in starts if start < count]


def accounts_of(registries: Sequence[LocalRegistry]) -> dict[int, str]:
    """Return the account of each shot that has one: the first, where chunks overlap."""
    told: dict[int, str] = {}
    for registry in registries:
        for account in registry.accounts:
            if account.text:
                told.setdefault(account.shot, account.text)
    return told
