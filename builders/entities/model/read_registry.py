"""Reading the reply that lists what is in a chunk of shots.

The reply is taken as far as it can be true: a shot or person that was not shown is left out, and what is
named twice becomes one; each such case is noted.
"""

from collections.abc import Mapping, Sequence

from ....schemas.canonical import Json
from ....schemas.text import normalize_answer, normalize_text
from ...replies import LONGEST_TEXT, Problems
from ..drafts import EntityKind, Repair
from ..registries import Account, Local, LocalRegistry, PersonNote
from .asking import check_english

MOST = 24
"""Objects, and locations, of one chunk at most."""
_LISTS: Mapping[EntityKind, str] = {"location": "locations", "object": "objects"}


def read_registry(reply: Json, chunk: int, shots: Sequence[int], persons: Sequence[str]) -> LocalRegistry:
    """Return the registry of a chunk.

    Args:
        reply: what the model says.
        chunk: number of the chunk.
        shots: numbers of the shots that it was shown.
        persons: ids of the people that it was shown.

    Raises:
        BadReply: no shot has an account, or the texts are not in English.
    """
    repairs: list[Repair] = []
    problems = Problems()
    check_english(reply, problems)
    accounts = _accounts(reply["shots"], shots, repairs)
    if not accounts:
        problems.add(f"no account of any shot; the shots are {', '.join(map(str, shots))}")
    problems.settle()
    return LocalRegistry(
        chunk=chunk,
        shots=tuple(shots),
        persons=_persons(reply["persons"], persons, repairs),
        entities=tuple(
            one
            for kind, listed in _LISTS.items()
            for one in _entities(reply[listed], (chunk, kind), shots, repairs)
        ),
        accounts=accounts,
        repairs=tuple(repairs),
    )


def _accounts(entries: Sequence[Json], shots: Sequence[int], repairs: list[Repair]) -> tuple[Account, ...]:
    told: dict[int, str] = {}
    for entry in entries:
        number, text = entry["shot"], normalize_text(entry["account"])
        if number not in shots:
            repairs.append(
                noted("unknown-shot", f"an account of shot {number}, which was not shown", "dropped")
            )
        elif normalize_answer(text):
            told.setdefault(number, text[:LONGEST_TEXT])
    missing = [number for number in shots if number not in told]
    repairs += [
        noted("no-account", "the model told nothing of the shot", "left", number) for number in missing
    ]
    return tuple(Account(shot=number, text=told[number]) for number in shots if number in told)


def _persons(
    entries: Sequence[Json], persons: Sequence[str], repairs: list[Repair]
) -> tuple[PersonNote, ...]:
    looks: dict[str, str] = {}
    for entry in entries:
        person, text = entry["person"].strip(), normalize_text(entry["looks"])[:LONGEST_TEXT]
        if person not in persons:
            said = f"a person {person[:40]!r}, who was not shown"
            repairs.append(noted("unknown-person", said, "dropped"))
        elif person in looks:
            repairs.append(noted("named-twice", f"{person} is described twice", "dropped"))
        else:
            looks[person] = text
    return tuple(PersonNote(person=person, looks=looks[person]) for person in persons if person in looks)


def _entities(
    entries: Sequence[Json], where: tuple[int, EntityKind], shots: Sequence[int], repairs: list[Repair]
) -> list[Local]:
    chunk, kind = where
    found: dict[str, tuple[str, str, set[int]]] = {}
    for entry in entries:
        name, looks = normalize_text(entry["name"]), normalize_text(entry["looks"])[:LONGEST_TEXT]
        key = normalize_answer(name)
        inside = {number for number in entry["shots"] if number in shots}
        for number in sorted(set(entry["shots"]) - inside):
            said = f"{name[:80]} in shot {number}, which was not shown"
            repairs.append(noted("unknown-shot", said, "dropped"))
        if not key or not inside:
            said = f"{name[:80]!r}, which is in no shot" if key else f"a {kind} without a name"
            repairs.append(noted("no-shot" if key else "no-name", said, "dropped"))
        elif key in found:
            repairs.append(noted("named-twice", f"{name[:80]} is listed twice", "merged"))
            found[key][2].update(inside)
        elif len(found) == MOST:
            repairs.append(noted("too-many", f"{name[:80]}, beyond {MOST} of one kind", "dropped"))
        else:
            found[key] = (name[:80], looks, inside)
    return [
        Local(
            local_id=f"c{chunk:02d}.{kind}{number}", kind=kind, name=name, looks=looks,
            shots=tuple(sorted(inside)),
        )
        for number, (name, looks, inside) in enumerate(found.values(), 1)
    ]  # fmt: skip


def noted(code: str, found: str, done: str, shot: int | None = None, entity: str | None = None) -> Repair:
    """Return the note of something that was found in a reply."""
    return Repair.model_validate({"code": code, "shot": shot, "entity": entity, "found": found, "done": done})
