"""Names of entities: made by rules, kept apart, found in texts, and spelled as in the registry."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Literal

from ...schemas.entities import LABELS, TYPES
from ...schemas.text import contains_phrase, normalize_answer, normalize_text, unspaced_count
from ...schemas.values import Own
from ...validators.entities.view import holds
from .windows import ShotSlots

# -- What the stages hand to each other, from a video to an episode, as JSON in the fields of items
#
# Frames are counted from 0 in the order of showing; spans are inclusive at both ends. Shots are counted
# from 1. Times are seconds after the first frame. Boxes are pixels of the upright frame, from the upper
# left corner. Vectors stand in fields as :func:`.vectors.packed` writes them: texts, eight times shorter
# than lists.

EntityKind = Literal["character", "location", "object"]

Box4 = tuple[float, float, float, float]
"""left, top, right, bottom."""


class Video(Own):
    """A video that can be read, the field ``video``."""

    video_id: str  # made of its file name, unique in the run
    # its name; where it lies is known by its hash (see :mod:`.film_files`). In runs of earlier versions, its
    # path.
    file: str
    sha256: str  # of the file
    frames: int  # how many it has, counted
    seconds: float  # from the start of the first frame to the end of the last
    fps: float  # average frames per second
    width: int  # in pixels, upright
    height: int  # in pixels, upright
    deinterlaced: str | None = None  # what joins its fields where it is interlaced; None for other films


class Shot(Own):
    """A shot of a video, the field ``shot``."""

    shot_id: str  # ``<video_id>__shot0001``
    video: Video
    number: int  # from 1, in the video
    first: int  # its first frame; ``last`` is its last one
    last: int
    start: float  # when its first frame is shown; ``end``, when its last one is not any more
    end: float
    # how it begins: with the video, with a cut, or out of a gradual change (dissolve, fade)
    opens: Literal["start", "cut", "gradual"] = "cut"


class Seen(Own):
    """Something that a detector found in a frame."""

    frame: int  # in which frame of the video
    box: Box4  # where
    score: float  # of the detector, 0 to 1
    face: Box4 | None = None  # box of the face in it, where one was found
    face_score: float | None = None  # of the face detector
    # its row in the field ``given``, where vectors came with the detections; else None
    row: int | None = None


class Tracklet(Own):
    """One person through a part of a shot."""

    tracklet_id: str  # ``<shot_id>__t001``, numbered by when and where it begins
    shot: int  # number of its shot
    # in order of frames; frames that were not looked at, or where it was lost, are left out
    seen: tuple[Seen, ...]
    best: tuple[int, ...] = ()  # indices into ``seen`` of the best views, best first
    face: str | None = None  # unit vector of its faces, packed, or None where no face was found
    body: str | None = None  # unit vector of its bodies, packed, or None where none could be encoded

    @property
    def span(self) -> tuple[int, int]:
        """The first and the last frame in which it was seen."""
        return self.seen[0].frame, self.seen[-1].frame


class Merge(Own):
    """Why two groups of tracklets are one person, or why a proposal to make them one was refused."""

    one: str  # id of the group that stays
    other: str  # id of the group that goes into it
    by: str  # ``clustering``, or the model that proposed it
    reason: str  # distance, or what the model said
    refused: str | None = None  # which constraint it would break; None for a merge that was made


class Person(Own):
    """A person of an episode: tracklets that belong together, in the fields ``people`` and ``cast``."""

    person_id: str  # ``p001``, numbered by first appearance
    tracklets: tuple[str, ...]  # ids, in order of appearance
    shots: tuple[int, ...]  # numbers of the shots in which the person is seen, ascending
    merges: tuple[Merge, ...] = ()  # how it came about, and what was refused


class Entity(Own):
    """An entity of an episode's registry, the field ``registry``."""

    label: str  # ``Character 1``, ``Location 1``, ``Object 1``: numbered by first appearance within its kind
    kind: EntityKind  # character, location or object
    name: str  # as texts name it, unique up to case in the episode
    aliases: tuple[str, ...] = ()  # other names that count as a mention
    description: str = ""  # how it looks, for generators
    shots: tuple[int, ...] = ()  # numbers of the shots in which it is scheduled, ascending
    persons: tuple[str, ...] = ()  # for a character, ids of the persons that it is


class ScriptShot(Own):
    number: int  # of the shot in the video
    scene: int  # number of its scene, from 1
    cut: bool  # whether it begins a continuation chain; else it goes on from the shot before
    action: str  # what happens in it


class Repair(Own):
    """Something that verification found, and what was done about it."""

    code: str  # what was found, such as ``unmentioned``
    shot: int | None  # number of the shot; None for the episode as a whole
    entity: str | None  # label of the entity, where it is about one
    found: str  # in words
    # ``added``, ``dropped``, ``merged``, ``rewritten``; or ``left``: it remains and is reported
    done: Literal["added", "dropped", "merged", "rewritten", "left"]


class Script(Own):
    """An episode's script, the field ``script``."""

    overview: str  # the story in two to four sentences
    shots: tuple[ScriptShot, ...]  # all of them, in order
    repairs: tuple[Repair, ...] = ()  # what verification found


# --


def person_name(number: int) -> str:
    """Return the name of a person by number from 1: A to Z, then AA, AB, ..."""
    letters = ""
    while number:
        number, rest = divmod(number - 1, 26)
        letters = chr(ord("A") + rest) + letters
    return f"Person {letters}"


def place_name(number: int) -> str:
    """Return the name of a place by number from 1."""
    return f"Place {number}"


def joined(names: Sequence[str]) -> str:
    """Return names as a sentence lists them: ``A``, ``A and B``, ``A, B and C``."""
    return " and ".join(part for part in (", ".join(names[:-1]), *names[-1:]) if part)


How = Literal["exact", "folded", "alias"]
"""``exact``: the name letter for letter; ``folded``: up to case, punctuation and spaces; ``alias``: another
name of the entity."""

_ARTICLES = ("the ", "a ", "an ")
_TAKEN = "\0"


def without_article(name: str) -> str:
    """Return a name without the English article that it begins with."""
    folded = name.casefold()
    length = next((len(word) for word in _ARTICLES if folded.startswith(word)), 0)
    return name[length:].strip()


def names_of(entity: Entity) -> tuple[str, ...]:
    """Return the names that count as a mention: its name, its aliases, and these without article."""
    names = (entity.name, *entity.aliases)
    return tuple(dict.fromkeys((*names, *map(without_article, names))))


def mentions(text: str, entities: Iterable[Entity]) -> dict[str, How]:
    """Return which entities a text mentions, by label, and how.

    A name within the longer name of another entity is no mention of its own: "the message from Julian" does
    not show Julian. Words are not cut: Leo is not in Leonard.
    """
    plain = normalize_answer(text)
    exact: set[str] = set()
    ways: dict[str, How] = {}
    calls = [(name, entity) for entity in entities for name in names_of(entity)]
    # Longest first, so that longer names take their part of the text; among equals, names before aliases.
    calls.sort(key=lambda call: (-len(normalize_answer(call[0])), call[0] != call[1].name, call[1].label))
    for name, entity in calls:
        pattern = _pattern(normalize_answer(name))
        if pattern is None:
            continue
        plain, count = pattern.subn(_TAKEN, plain)
        if not count or entity.label in exact:
            continue
        how: How = "alias" if normalize_answer(name) != normalize_answer(entity.name) else "folded"
        if how == "folded" and holds(text, name):
            how = "exact"
            exact.add(entity.label)
        if _better(how, ways.get(entity.label)):
            ways[entity.label] = how
    return ways


def unmentioned(text: str, scheduled: Sequence[Entity], registry: Iterable[Entity]) -> list[Entity]:
    """Return the scheduled entities that a text does not mention, in order."""
    named = mentions(text, registry)
    return [entity for entity in scheduled if entity.label not in named]


def _better(how: How, before: How | None) -> bool:
    order = ("exact", "folded", "alias")
    return before is None or order.index(how) < order.index(before)


@lru_cache(maxsize=4096)
def _pattern(words: str) -> re.Pattern[str] | None:
    if not words:
        return None
    if unspaced_count(words):
        return re.compile(re.escape(words))
    return re.compile(rf"(?<!\w){re.escape(words)}(?!\w)")


LONGEST_NAME = 60
_LABEL = re.compile(rf"\b({'|'.join(LABELS.values())})[ _]?\d+\b|\bGen_", re.IGNORECASE)


def tidy_name(kind: EntityKind, name: str) -> str:
    """Return a name in the form of its kind: ``the`` and small first letter for objects, else a capital.

    None is left of one that says nothing, or that is a label such as "Character 3": labels are numbered anew.
    """
    text = normalize_text(name.replace("`", "").replace(":", " ")).strip(" .,;'\"")[:LONGEST_NAME].strip()
    if not normalize_answer(text) or _LABEL.search(text):
        return ""
    if kind == "object":
        return f"the {without_article(text)}"
    return f"{text[:1].upper()}{text[1:]}"


def with_unique_names(
    entities: Sequence[Entity], spare: Callable[[Entity], str]
) -> tuple[list[Entity], list[Repair]]:
    """Return entities of which none has the name of another, and what was changed for it.

    Earlier entities keep their names. A name that is taken, holds one that is taken or is held by it, makes
    way for ``spare``'s, then for this with a number. Aliases that could mean another entity go.
    """
    taken: list[str] = []
    made: list[Entity] = []
    repairs: list[Repair] = []
    for entity in entities:
        name = entity.name
        if not name or _clashes(name, taken):
            name = _free(spare(entity), taken)
            said = f"{entity.name} is taken or part of another name" if entity.name else "no name of its own"
            repairs.append(
                Repair(
                    code="name-taken", shot=None, entity=entity.label, found=f"{said}; now {name}",
                    done="rewritten",
                )
            )  # fmt: skip
        taken.append(normalize_answer(name))
        made.append(entity.model_copy(update={"name": name}))
    return [_with_aliases(entity, made) for entity in made], repairs


def _clashes(name: str, taken: Sequence[str]) -> bool:
    plain = normalize_answer(name)
    bare = normalize_answer(without_article(name))
    return any(
        plain == other or contains_phrase(other, bare) or contains_phrase(plain, without_article(other))
        for other in taken
    )


def _free(name: str, taken: Sequence[str]) -> str:
    number, candidate = 1, name
    while _clashes(candidate, taken):
        number += 1
        candidate = f"{name} {number}"
        if number > len(taken) + 2:
            # The name itself holds one that is taken: only another one helps.
            candidate = f"Nameless {number}"
    return candidate


def _with_aliases(entity: Entity, entities: Sequence[Entity]) -> Entity:
    """Return an entity without the aliases that are too short, its own name, or could mean another one."""
    others = {normalize_answer(name) for other in entities if other is not entity for name in names_of(other)}
    kept: dict[str, str] = {}
    for alias in map(normalize_text, entity.aliases):
        plain = normalize_answer(alias)
        if len(plain) >= 3 and plain not in others and plain != normalize_answer(entity.name):
            kept.setdefault(plain, alias)
    return entity.model_copy(update={"aliases": tuple(kept.values())})


_ARTICLE = r"(?:\b(?:the|a|an|this|that|his|her|its|their|my|our|your)\s+)?"


def spelled(text: str, entity: Entity) -> str:
    """Return a text in which an entity is named letter for letter, if another name of it stands there.

    The first such place is changed, with the article before it where the name has its own. At the start of a
    sentence a name of small letters keeps its capital: the text stays as it is.
    """
    if holds(text, entity.name):
        return text
    own_article = without_article(entity.name) != entity.name
    for name in names_of(entity):
        article = _ARTICLE if own_article else ""
        pattern = re.compile(rf"{article}(?<!\w){re.escape(name)}(?!\w)", re.IGNORECASE)
        match = pattern.search(text)
        if match is None:
            continue
        before = text[: match.start()].rstrip(" \"'")
        if entity.name[:1].islower() and (not before or before[-1] in ".!?"):
            replaced = f"{entity.name[:1].upper()}{entity.name[1:]}"
        else:
            replaced = entity.name
        return f"{text[: match.start()]}{replaced}{text[match.end() :]}"
    return text


# -- What holds of every script at the end, whoever wrote it; what had to be changed for it is recorded
#
# Every slot is of a registered entity and mentioned in the action, else it is dropped. Every entity of the
# registry has a slot and a description. Entities are numbered without holes. What cannot be put right without
# a model is noted as left: a name in an action that nobody scheduled, one that is not written as in the
# registry (as at the start of a sentence), descriptions that are alike, empty shots.


def in_order(entities: Iterable[Entity]) -> tuple[list[Entity], dict[str, str]]:
    """Return entities by kind and first appearance with new labels, and old label -> new label.

    An entity that is scheduled nowhere is left out. Those that appear together keep the order they come in.
    """
    given = [entity for entity in entities if entity.shots]
    ordered, labels = [], {}
    for kind in TYPES:
        same = sorted((entity for entity in given if entity.kind == kind), key=lambda entity: entity.shots[0])
        for number, entity in enumerate(same, 1):
            labels[entity.label] = f"{LABELS[kind]} {number}"
            ordered.append(entity.model_copy(update={"label": labels[entity.label]}))
    return ordered, labels


def slots_of(script: Script, entities: Sequence[Entity]) -> list[ShotSlots]:
    """Return what counts of each shot of a script."""
    held: Mapping[int, set[tuple[str, str]]] = {shot.number: set() for shot in script.shots}
    for entity in entities:
        for number in entity.shots:
            if number in held:
                held[number].add((entity.kind, entity.label))
    return [ShotSlots(shot.scene, frozenset(held[shot.number]), len(shot.action)) for shot in script.shots]


def without_slots(entity: Entity, shots: Iterable[int]) -> Entity:
    """Return an entity that is not scheduled in some shots any more."""
    gone = frozenset(shots)
    return entity.model_copy(update={"shots": tuple(shot for shot in entity.shots if shot not in gone)})


def with_slots(entity: Entity, shots: Iterable[int]) -> Entity:
    """Return an entity that is scheduled in some more shots."""
    return entity.model_copy(update={"shots": tuple(sorted({*entity.shots, *shots}))})


def within(entity: Entity, shots: Iterable[int]) -> Entity:
    """Return an entity that is scheduled in some shots only."""
    kept = frozenset(shots)
    return entity.model_copy(update={"shots": tuple(shot for shot in entity.shots if shot in kept)})


_PLAIN = {"character": "A person", "location": "A place", "object": "A thing"}


class Checked(Own):
    """A script and its registry, verified."""

    script: Script
    entities: tuple[Entity, ...]


def settle(script: Script, entities: Iterable[Entity]) -> Checked:
    """Return script and registry as they are to stand, with what was done added to the script's repairs."""
    registry = list(entities)
    repairs = list(script.repairs)
    script = _spelled(script, registry, repairs)
    registry = _without_unmentioned(script, registry, repairs)
    registry = _described(registry, repairs)
    repairs += [
        _repair("never-scheduled", None, entity, "is in no shot any more", "dropped")
        for entity in registry
        if not entity.shots
    ]
    for shot in script.shots:
        shown = {entity.label for entity in registry if shot.number in entity.shots}
        named = mentions(shot.action, registry)
        repairs += [
            _repair("unscheduled-mention", shot.number, entity, "is named and not scheduled", "left")
            for entity in registry
            if entity.label in named and entity.label not in shown
        ]
        if not shown:
            said = "nothing is scheduled"
            repairs.append(Repair(code="empty-shot", shot=shot.number, entity=None, found=said, done="left"))
    ordered, labels = in_order(registry)
    known = tuple(dict.fromkeys(_relabelled(repair, labels) for repair in repairs))
    return Checked(script=script.model_copy(update={"repairs": known}), entities=tuple(ordered))


def _spelled(script: Script, registry: Sequence[Entity], repairs: list[Repair]) -> Script:
    """Return the script with each scheduled entity that goes by another name named letter for letter."""
    shots = []
    for shot in script.shots:
        action = shot.action
        for entity in registry:
            how = mentions(action, registry).get(entity.label) if shot.number in entity.shots else None
            text = spelled(action, entity) if how in ("alias", "folded") else action
            # Kept only if nobody else loses a mention by it.
            if text != action and mentions(action, registry).keys() <= mentions(text, registry).keys():
                repairs.append(
                    _repair("other-name", shot.number, entity, "went by another name", "rewritten")
                )
                action = text
            elif how in ("alias", "folded"):
                repairs.append(
                    _repair("other-name", shot.number, entity, "is not named letter for letter", "left")
                )
        shots.append(shot.model_copy(update={"action": action}))
    return script.model_copy(update={"shots": tuple(shots)})


def _without_unmentioned(script: Script, registry: Sequence[Entity], repairs: list[Repair]) -> list[Entity]:
    dropped: dict[str, list[int]] = {}
    for shot in script.shots:
        scheduled = [entity for entity in registry if shot.number in entity.shots]
        for entity in unmentioned(shot.action, scheduled, registry):
            dropped.setdefault(entity.label, []).append(shot.number)
            repairs.append(
                _repair("unmentioned", shot.number, entity, "is not named in the action", "dropped")
            )
    return [without_slots(entity, dropped.get(entity.label, ())) for entity in registry]


def _described(registry: Sequence[Entity], repairs: list[Repair]) -> list[Entity]:
    """Return the registry with a description for all that is scheduled; those that are alike are noted."""
    made: list[Entity] = []
    seen: dict[str, str] = {}
    for entity in registry:
        text = entity.description.strip()
        if entity.shots and not text:
            repairs.append(_repair("no-description", None, entity, "has no description", "added"))
            text = f"{_PLAIN[entity.kind]} of this story, called {entity.name}."
        if entity.shots and seen.setdefault(text, entity.name) != entity.name:
            repairs.append(
                _repair("same-description", None, entity, f"is described as {seen[text]} is", "left")
            )
        made.append(entity.model_copy(update={"description": text}))
    return made


def _repair(code: str, shot: int | None, entity: Entity, said: str, done: str) -> Repair:
    return Repair.model_validate(
        {"code": code, "shot": shot, "entity": entity.label, "found": f"{entity.name} {said}", "done": done}
    )


def _relabelled(repair: Repair, labels: dict[str, str]) -> Repair:
    """Return a repair with the new label of its entity; None for one that is gone."""
    if repair.entity is None:
        return repair
    return repair.model_copy(update={"entity": labels.get(repair.entity)})
