"""A stand-in for the model of the episode builder: it answers every prompt from the request alone.

It looks at no picture: places change every four shots, two things turn up now and then, people get names from
a list, and sentences name what is scheduled. Deterministic, and no model's work. Use it as the handler of a
model server::

    with ModelServer(answer) as server:
        ...

    python -m fabula.testing.model_server --handler fabula.testing.entities_model:answer
"""

import json
from collections.abc import Callable, Sequence

from ..schemas.canonical import Json, digest
from .asked_prompts import FENCE, answering, user_text
from .model_server import Asked

PLACES = ("The Harbour Office", "The Glass Garden", "The Iron Stairs")
THINGS = (("the brass key", 3), ("the folded chart", 4))
"""Things, and of how many shots each is in one."""
NAMES = (
    "Mira", "Tomas", "Ilka", "Bruno", "Selma", "Oskar", "Vera", "Emil", "Nadia", "Jonas", "Petra", "Anton",
)  # fmt: skip
LOOKS = ("grey", "green", "amber", "white", "violet", "rusty", "black", "silver")
STUFFS = ("wool", "linen", "leather", "tweed", "cotton", "felt", "canvas", "velvet")


def answer(asked: Asked) -> Json:
    """Return the reply to a prompt of the episode builder, as JSON."""
    return answering(asked, _ANSWERS)(user_text(asked))


def _under(text: str, title: str) -> Json:
    """Return the JSON between marks after a line that begins with a title; an empty list without it."""
    at = text.find(title)
    match = FENCE.search(text, at) if at >= 0 else None
    return [] if match is None else json.loads(match[2])


def place_of(shot: int) -> str:
    """Return the place that the model sees in a shot."""
    return PLACES[(shot - 1) // 4 % len(PLACES)]


def _list(text: str) -> Json:
    shots = _under(text, "The shots of the passage")
    people = sorted({person for shot in shots for person in shot["people"]})
    numbers = [shot["shot"] for shot in shots]
    places = {name: [n for n in numbers if place_of(n) == name] for name in PLACES}
    things = {name: [n for n in numbers if n % every == 0] for name, every in THINGS}
    return {
        "shots": [
            {"shot": shot["shot"], "account": f"{_joined(shot['people']) or 'Nobody'} crosses the floor."}
            for shot in shots
        ],
        "persons": [{"person": person, "looks": f"Somebody in {_look(person)}."} for person in people],
        "locations": [
            {"name": name, "looks": f"A room of {_look(name)}.", "shots": where}
            for name, where in places.items()
            if where
        ],
        "objects": [
            {"name": name, "looks": f"A small thing of {_look(name)}.", "shots": where}
            for name, where in things.items()
            if where
        ],
    }


def _merge(text: str) -> Json:
    cast, found = _under(text, "The cast:"), _under(text, "The entries of the passages:")
    groups: dict[tuple[str, str], list[Json]] = {}
    for one in found:
        kind = "locations" if ".location" in one["id"] or one["name"] in PLACES else "objects"
        groups.setdefault((kind, one["name"]), []).append(one)
    reply: dict[str, list[Json]] = {
        "characters": [
            {
                "persons": [member["person"]],
                "name": _name(member["person"]),
                "aliases": [],
                "looks": (member["looks"] or ["Somebody."])[0],
            }
            for member in cast
        ],
        "locations": [],
        "objects": [],
    }
    for (kind, name), members in groups.items():
        ids = [member["id"] for member in members]
        reply[kind].append({"members": ids, "name": name, "aliases": [], "looks": members[0]["looks"]})
    return reply


def _name(person: str) -> str:
    number = int(person.lstrip("p")) - 1 if person.startswith("p") else int(digest(person)[:4], 16)
    name, more = NAMES[number % len(NAMES)], number // len(NAMES)
    return name if not more else f"{name}{'abcdefghij'[more % 10]}"


def _look(key: str) -> str:
    number = int(digest(key)[:8], 16)
    return f"{LOOKS[number % 8]} {STUFFS[number // 8 % 8]}"


def _seen(text: str) -> Json:
    shots = _under(text, "The shots, with the entries")
    return {"shots": [{"shot": shot["shot"], "seen": shot["entries"], "contradicted": []} for shot in shots]}


def _script(text: str) -> Json:
    before = _under(text, "Shots before")
    last = before[-1] if before else None
    told = []
    for shot in _under(text, "The shots to write:"):
        new = last is None or _place(last) != _place(shot)
        people = set(shot["people"]) & set(last["people"]) if last is not None else set()
        action = f"{_joined(shot['scheduled']) or 'Nothing'} can be seen."
        told.append({
            "shot": shot["shot"], "new_scene": new, "goes_on": not new and bool(people), "action": action,
        })  # fmt: skip
        last = shot
    return {"shots": told}


def _place(shot: Json) -> str | None:
    return next((name for name in shot["scheduled"] if name in PLACES), None)


def _overview(text: str) -> Json:
    entities = _under(text, "The register:")
    people = [entity["name"] for entity in entities if entity["kind"] == "character"]
    return {"overview": f"{_joined(people) or 'Nobody'} looks for the way out. In the end it is found."}


def _polish(text: str) -> Json:
    return {
        "entities": [
            {
                "number": one["number"],
                "description": f"All in {_look(one['name'])}, with {_look(one['looks'])} about the edges"
                f" and a seam like a {digest(one['name'])[:4]}.",
            }
            for one in _under(text, ", each with what is known of its looks:")
        ]
    }


def _enrich(text: str) -> Json:
    told = []
    for shot in _under(text, "The shots to tell"):
        names = _joined(shot["scheduled"]) or "Nothing"
        told.append({"shot": shot["shot"], "action": f"In step {shot['shot']} one turns to {names} and on."})
    return {"shots": told}


def _mentions(text: str) -> Json:
    settled = []
    for shot in _under(text, "The shots:"):
        more = _joined([one["name"] for one in shot["missing"]])
        action = f"{shot['action']} By the side, one sees {more}." if more else shot["action"]
        settled.append({"shot": shot["shot"], "action": action, "dropped": [], "scheduled": shot["extra"]})
    return {"shots": settled}


def _joined(names: Sequence[str]) -> str:
    return " and ".join(part for part in (", ".join(names[:-1]), *names[-1:]) if part)


_ANSWERS: dict[str, Callable[[str], Json]] = {
    "entities/judge_style": lambda _: {"reason": "People act.", "kind": "narrative"},
    "entities/consolidate_people": lambda _: {"same": []},
    "entities/list_entities": _list,
    "entities/list_characters": lambda _: {"characters": []},
    "entities/merge_entities": _merge,
    "entities/check_registry": _seen,
    "entities/write_script": _script,
    "entities/write_overview": _overview,
    "entities/polish_characters": _polish,
    "entities/polish_locations": _polish,
    "entities/polish_objects": _polish,
    "entities/enrich_actions": _enrich,
    "entities/repair_mentions": _mentions,
    "entities/check_actions": lambda _: {"problems": []},
}
