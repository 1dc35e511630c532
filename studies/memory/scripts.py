"""What the memory knows of an episode: its entities in order of appearance, as they are introduced."""

import asyncio
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Literal, TypeAlias

from pydantic import Field, model_validator

from ...builders.step import ask
from ...engine.stage import UNAVAILABLE, BadReply, Child, Item, Made, NoAnswer, Outcome, Tools, stage
from ...errors import InputError, UserError
from ...evaluation.entities.episodes import chosen_episodes
from ...evaluation.entities.looking import EpisodeSelection
from ...evaluation.outputs.entities import CheckOptions, check_episodes
from ...models.spec import ModelSettings
from ...releases.entities.tree import EntitySet, read_entity_set
from ...schemas.canonical import Json, sha256_file
from ...schemas.entities import TYPES, EntityEpisode, EntityType
from ...schemas.plain_files import explaining, read_plain, reason_of
from ...schemas.values import Own
from ...validators.entities.view import EpisodeView, view_of
from .bank import DescribedBy, Owner


class ScriptEntity(Own):
    type: EntityType = Field(description="Type, as the schedule lists it.")
    name: str = Field(description="Name, as the schedule has it.")
    label: str | None = Field(
        description="Its key in the registry; null where the registry has no such name."
    )
    shots: tuple[int, ...] = Field(description="Places of the shots that schedule it, from 0.")
    description: str = Field(description="What it looks like, as it is introduced.")
    described_by: DescribedBy = Field(description="Where that is from.")

    @property
    def key(self) -> str:
        """How it is called beside others: ``object:the red cup``."""
        return f"{self.type}:{self.name}"


class ScriptShot(Own):
    key: str = Field(description="``<scene>:<shot>``.")
    action: str = Field(description="What happens in it.")


class MemoryScript(Own):
    """One episode, as far as references are made from it."""

    episode_id: str = Field(description="The episode.")
    overview: str = Field(description="The story, as its script tells it.")
    shots: tuple[ScriptShot, ...] = Field(description="Its shots, in story order.")
    entities: tuple[ScriptEntity, ...] = Field(
        description="Scheduled entities: characters, locations, objects, each in order of appearance."
    )
    unscheduled: tuple[str, ...] = Field(description="Entities of the registry without a shot, as type:name.")

    @property
    def unregistered(self) -> tuple[str, ...]:
        """The scheduled entities that the registry does not have, as type:name."""
        return tuple(entity.key for entity in self.entities if entity.described_by == "name")

    def of(self, kind: EntityType) -> tuple[ScriptEntity, ...]:
        return tuple(entity for entity in self.entities if entity.type == kind)


def script_of(episode_id: str, script: EntityEpisode) -> MemoryScript:
    """Return what the memory knows of an episode.

    An entity is described by the first header line that introduces it, wherever that stands; without one by
    the registry; one that the registry does not have, by nothing but its name.
    """
    view = view_of(episode_id, script)
    introduced = {
        line.name: line.description.strip()
        for header in reversed(view.headers)
        for line in header.lines
        if line.name is not None and line.description.strip()
    }
    order = sorted(view.appearances.items(), key=lambda row: (TYPES.index(row[0][0]), row[1][0]))
    entities = []
    for (kind, name), shots in order:
        description, source = _described(view, introduced, name)
        labels = view.labels.get(name, ())
        entities.append(
            ScriptEntity(
                type=kind, name=name, label=labels[-1] if labels else None,
                shots=tuple(number - 1 for number in shots), description=description, described_by=source,
            )
        )  # fmt: skip
    return MemoryScript(
        episode_id=episode_id,
        overview=(script.story_overview or "").strip(),
        shots=tuple(ScriptShot(key=shot.key, action=shot.action) for shot in view.shots),
        entities=tuple(entities),
        unscheduled=tuple(
            f"{view.type_of(name) or 'entity'}:{name}" for name in view.labels if name not in view.scheduled
        ),
    )


def _described(view: EpisodeView, introduced: dict[str, str], name: str) -> tuple[str, DescribedBy]:
    if name in introduced:
        return introduced[name], "header"
    registered = view.descriptions.get(name, "").strip()
    return (registered, "registry") if registered else (name, "name")


def shots_with(script: MemoryScript, entity: ScriptEntity) -> Iterator[ScriptShot]:
    """Yield the shots that schedule an entity, in story order."""
    return (script.shots[number] for number in entity.shots)


def together(entity: ScriptEntity, others: Sequence[ScriptEntity]) -> dict[str, int]:
    """Return for each of some entities, by key, how many shots it shares with another one."""
    own = frozenset(entity.shots)
    return {other.key: len(own & frozenset(other.shots)) for other in others}


# -- Stage: one item per episode, with its script, and where its videos are if references come from outputs
#
# A file of boxes: where entities are in the first frames of a method's shots, one line of JSON each.
#
# ::
#
#     {"episode_id": "e1", "shot": "1:1", "type": "character", "name": "Ana", "box": [0.1, 0.2, 0.4, 0.9]}
#
# A box is left, top, right, bottom, as shares of the frame.


class EntityBox(Own):
    """Where one entity is in the first frame of a shot."""

    episode_id: str = Field(description="The episode.")
    shot: str = Field(description="Key of the shot.")
    type: EntityType = Field(description="Type of the entity.")
    name: str = Field(description="Name of the entity.")
    box: tuple[float, float, float, float] = Field(
        description="Left, top, right, bottom as shares of the frame."
    )

    @model_validator(mode="after")
    def _has_an_inside(self) -> "EntityBox":
        left, top, right, bottom = self.box
        if not (0 <= left < right <= 1 and 0 <= top < bottom <= 1):
            raise ValueError("a box has left < right and top < bottom, all from 0 to 1")
        return self


def read_boxes(path: Path) -> Mapping[str, tuple[EntityBox, ...]]:
    with explaining(path, "check the path", of=OSError):
        lines = read_plain(path, follow=True).splitlines()
    problems: list[UserError] = []
    boxes: dict[str, list[EntityBox]] = {}
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            box = EntityBox.model_validate_json(line)
        except ValueError as error:
            what = f"no box of an entity: {reason_of(error)[:300]}"
            problems.append(UserError(f"{path}:{number}", what=what, fix="correct or remove the line"))
            continue
        boxes.setdefault(box.episode_id, []).append(box)
    if problems:
        raise InputError(problems)
    return {episode: tuple(some) for episode, some in boxes.items()}


EPISODES, OUTPUTS, BOXES = "episodes", "outputs", "boxes"
"""Roles of the sources: the set, a method's videos, boxes of entities in these."""


@stage(version=2, shape="expand", reads=("sources",), writes=("script", "outputs"), settings=EpisodeSelection)
def load_scripts(item: Item, tools: Tools) -> Iterator[Child]:
    settings = tools.own(EpisodeSelection)
    roles = [source["role"] for source in item["sources"]]
    paths = dict(zip(roles, tools.paths, strict=True))
    whole, _ = read_entity_set(paths[EPISODES], rules=False)
    chosen = chosen_episodes(whole, settings)
    outputs = _outputs(paths, chosen, settings)
    for episode in chosen.episodes:
        script = script_of(episode.episode_id, episode.script)
        videos = outputs.get(episode.episode_id)
        yield Child(episode.episode_id, Made({"script": script.as_json(), "outputs": videos}))


def _outputs(paths: dict[str, Path], chosen: EntitySet, settings: EpisodeSelection) -> dict[str, Json]:
    """Return what a method made of each episode; nothing where references are not made of outputs."""
    if OUTPUTS not in paths:
        return {}
    options = CheckOptions(settings.cuts_by, settings.device, decode=False)
    checked = check_episodes(paths[OUTPUTS], chosen, chosen, options)
    boxes = read_boxes(paths[BOXES]) if BOXES in paths else {}
    made: dict[str, Json] = {}
    hashes: dict[Path, str] = {}
    for output in checked.outputs:
        videos = {}
        for shot in output.shots:
            if shot.code is not None or shot.file is None or not shot.file.is_file():
                continue
            sha256 = hashes.setdefault(shot.file, sha256_file(shot.file))
            videos[shot.key] = {
                "file": str(shot.file.absolute()), "sha256": sha256,
                "start": 0 if shot.span is None else shot.span[0],
            }  # fmt: skip
        made[output.unit] = {
            "method": checked.method,
            "videos": videos,
            "boxes": [box.as_json() for box in boxes.get(output.unit, ())],
        }
    return made


def identity(fields: dict[str, Json]) -> Json:
    """Return what makes an episode the same episode."""
    return fields["script"]["episode_id"]


# -- Word lists of ours: what sort of thing a noun names, colours of keys, styles. The lists are words.json

Sort: TypeAlias = Literal["wearable", "mark", "fixture", "creature", "vehicle", "prop"]
"""What is worn; marks of a body; what belongs to a place; animals and beings; vehicles; what is carried."""

_WORD = re.compile(r"[^\W\d_]+(?:[-'’][^\W\d_]+)*")
_BEFORE = re.compile(
    r"\s+(?:of|with|in|on|at|from|for|to|under|over|near|inside|beside|behind|that|which|made)\s",
    re.IGNORECASE,
)
_QUOTED = re.compile(r"(?<!\w)['‘“\"][^'‘’“”\"]*['’”\"](?!\w)")
_HOLDS = frozenset(
    (
        *("set", "pair", "group", "row", "collection", "pile", "stack", "bunch", "pack", "series", "number"),
        *("piece", "arrangement", "convoy", "swarm", "slice", "pint", "bale", "skein", "assortment"),
        *("cluster", "stick", "roll"),
    )
)
"""Words before ``of`` that say how much there is: what stands behind is the thing."""


@cache
def _lists() -> Mapping[str, Mapping[str, list[str]]]:
    lists: Mapping[str, Mapping[str, list[str]]] = json.loads(
        (files(__package__) / "words.json").read_text("utf-8")
    )
    return lists


@cache
def _sorts() -> Mapping[str, Sort]:
    return {word: sort for sort, words in _lists()["heads"].items() for word in words}  # type: ignore[misc]


def words_of(text: str) -> tuple[str, ...]:
    """Return the words of a text, in lower case, numbers left out."""
    return tuple(word.lower().replace("’", "'") for word in _WORD.findall(text))


def singulars(word: str) -> Iterator[str]:
    """Yield a word and what it may be the plural of, by its ending."""
    yield word
    for ending, instead in (("ies", "y"), ("ves", "f"), ("ves", "fe"), ("es", ""), ("s", "")):
        if word.endswith(ending) and len(word) > len(ending) + 1:
            yield word.removesuffix(ending) + instead


def is_many(name: str) -> bool:
    """Whether a name is of several things, by its last word or by a word such as pair: ``the metal keys``."""
    head = head_phrase(name)
    return bool(_HOLDS & set(words_of(name))) or bool(
        head and head[-1].endswith("s") and not head[-1].endswith(("ss", "us", "is"))
    )


def head_phrase(name: str) -> tuple[str, ...]:
    """Return the words of a name up to its head noun; of words such as pair, what it is a pair of.

    >>> head_phrase("the glass of milk")
    ('the', 'glass')
    >>> head_phrase("a pair of muddy boots")
    ('muddy', 'boots')
    """
    parts = _BEFORE.split(_QUOTED.sub(" ", name), maxsplit=1)
    first = words_of(parts[0])
    if len(parts) > 1 and first and _HOLDS & set(singulars(first[-1])):
        return head_phrase(parts[1])
    return first


def sort_of(name: str) -> tuple[Sort, str] | None:
    """Return what sort of thing a name is of, and the word that says so; None where no word is known.

    The head noun goes first, then the words before it, from right to left, as compounds have them.
    """
    for word in reversed(head_phrase(name)):
        for form in (*singulars(word), *(part for part in word.split("-")[-1:] if "-" in word)):
            known = _sorts().get(form)
            if known is not None:
                return known, word
    return None


def colours_worn(text: str) -> frozenset[str]:
    """Return the key colours that a description has words for: ``green`` for an olive coat."""
    words = {part for word in words_of(text) for part in (word, *word.split("-"))}
    return frozenset(name for name, known in _lists()["colours"].items() if words & set(known))


def style_in(text: str) -> str | None:
    """Return the style that a text names first in our list; None where it names none."""
    lowered = text.lower()
    for style, signs in _lists()["styles"].items():
        if any(re.search(rf"\b{re.escape(sign)}\b", lowered) for sign in signs):
            return style
    return None


# -- Which objects need a picture of their own, by rules: sorts of things by word lists, owners by the script
#
# Clothes and marks of a body are shown in a character's portrait, furniture and fixtures in a location's
# panorama; creatures, vehicles and things that are carried about stand alone (EntityBench, C.1).

OWNED_BY: dict[Sort, Literal["character", "location"]] = {
    "wearable": "character",
    "mark": "character",
    "fixture": "location",
}
"""Sort of thing -> whose picture shows it; every other sort stands alone."""
RULES = "rules@1"
_SMALL = frozenset(
    ("the", "a", "an", "of", "and", "with", "in", "on", "his", "her", "its", "their", "is", "are")
)


class Classified(Own):
    """What was decided of an object."""

    name: str = Field(description="The object.")
    owner: Owner | None = Field(description="Whose picture shows it; null: it stands alone.")
    reason: str = Field(description="Why, in one line.")
    by: str = Field(description="Who decided: rules, or a model and its prompt.")


def classify_by_rules(entity: ScriptEntity, script: MemoryScript) -> Classified:
    """Return whether an object stands alone, and else whose picture shows it.

    Something worn belongs to the character whose description or name has most of its words, then to the one
    that shares most shots with it, then to the one that actions name nearest before it; a fixture to the
    location that shares most shots with it. Nobody owns what shares no shot with anybody.
    """
    known = sort_of(entity.name)
    if known is None:
        return _alone(entity, "no word of its name is in our lists")
    sort, word = known
    kind = OWNED_BY.get(sort)
    if kind is None:
        return _alone(entity, f"{word} is a {sort}")
    owner = _owner(entity, script, kind)
    if owner is None:
        return _alone(entity, f"{word} is a {sort}, and no {kind} shares a shot with it")
    return Classified(
        name=entity.name, owner=Owner(type=kind, name=owner.name), reason=f"{word} is a {sort}", by=RULES
    )


def _alone(entity: ScriptEntity, reason: str) -> Classified:
    return Classified(name=entity.name, owner=None, reason=reason, by=RULES)


def _owner(entity: ScriptEntity, script: MemoryScript, kind: EntityType) -> ScriptEntity | None:
    candidates = [other for other in script.of(kind) if frozenset(other.shots) & frozenset(entity.shots)]
    if not candidates:
        return None
    shared = together(entity, candidates)
    near = _mentions_before(entity, script, candidates)

    def rank(other: ScriptEntity) -> tuple[int, int, int, int, int]:
        named = int(_names(entity, other))
        likeness = _likeness(entity, other) if kind == "character" else 0
        return named, likeness, shared[other.key], near[other.key], -candidates.index(other)

    return max(candidates, key=rank)


def _names(entity: ScriptEntity, other: ScriptEntity) -> bool:
    texts = f"{entity.name} {entity.description}".lower()
    return re.search(rf"(?<!\w){re.escape(other.name.lower())}(?!\w)", texts) is not None


def _likeness(entity: ScriptEntity, other: ScriptEntity) -> int:
    """Return how many words of an object stand in somebody's description; none without its head noun."""
    described = set(words_of(other.description))
    head = head_phrase(entity.name)
    if not head or head[-1] not in described:
        return 0
    own = set(words_of(entity.name)) | set(words_of(entity.description))
    return len((own - _SMALL) & described)


def _mentions_before(
    entity: ScriptEntity, script: MemoryScript, candidates: Sequence[ScriptEntity]
) -> dict[str, int]:
    """Return in how many actions each candidate is the last one named before the object."""
    counts = {other.key: 0 for other in candidates}
    for shot in shots_with(script, entity):
        at = shot.action.lower().find(entity.name.lower().removeprefix("the "))
        before = [(shot.action.rfind(other.name, 0, at), other.key) for other in candidates] if at > 0 else []
        nearest = max(before, default=(-1, ""))
        if nearest[0] >= 0:
            counts[nearest[1]] += 1
    return counts


# -- Stage: which objects get a picture of their own, and whose shows the others (EntityBench, C.2, E.1)
#
# Characters always get portraits and locations panoramas, so that nobody is asked about them.

CLASSIFY_PROMPT = "memory/classify_object"


@stage(version=1, reads=("script",), writes=("classified",), settings=ModelSettings, asks=(CLASSIFY_PROMPT,))
async def classify_objects(item: Item, tools: Tools) -> Outcome:
    """Return what was decided of each object, in order; by rules where no model gave an answer."""
    script = MemoryScript.model_validate(item["script"])
    objects = script.of("object")
    if tools.asker is None:
        return Made({"classified": [classify_by_rules(entity, script).as_json() for entity in objects]})
    rows = await asyncio.gather(*(_classified(entity, script, tools) for entity in objects))
    return Made({"classified": [row.as_json() for row in rows]})


async def _classified(entity: ScriptEntity, script: MemoryScript, tools: Tools) -> Classified:
    owners = [*script.of("character"), *script.of("location")]

    def read(reply: Json) -> tuple[Owner | None, str]:
        return read_owner(reply, owners)

    listed = [f"{other.type} {other.name}: {other.description}" for other in owners]
    try:
        answer = await ask(
            tools, CLASSIFY_PROMPT, read, name=entity.name, description=entity.description,
            overview=script.overview, owners=listed,
        )  # fmt: skip
    except NoAnswer as none:
        if none.code == UNAVAILABLE:
            raise
        return classify_by_rules(entity, script).model_copy(
            update={"by": f"{RULES}, as the model gave no answer ({none.code})"}
        )
    owner, reason = answer.value
    return Classified(name=entity.name, owner=owner, reason=reason, by=answer.maker)


def read_owner(reply: Json, owners: list[ScriptEntity]) -> tuple[Owner | None, str]:
    """Return the owner that a reply names, None for an object that stands alone; and the reason."""
    number, alone = reply["owner"], bool(reply["stands_alone"])
    reason = " ".join(str(reply["reason"]).split())[:300]
    if alone:
        return None, reason
    if number is None:
        raise BadReply("an object that does not stand alone needs the number of its owner")
    if not 1 <= number <= len(owners):
        raise BadReply(f"owner {number} is not in the list, which goes from 1 to {len(owners)}")
    owner = owners[number - 1]
    assert owner.type != "object"
    return Owner(type=owner.type, name=owner.name), reason


# -- Stage: the style of an episode's pictures, inferred from its overview (EntityBench, C.2)

STYLE_PROMPT = "memory/infer_style"
USUAL = "photorealistic film still, natural light"
"""The style where a text names none: the published episodes were made from films and series."""
_LONGEST_STYLE = 200


class StyleSettings(ModelSettings):
    """Who chooses the style."""

    style: str | None = Field(default=None, description="The style of all pictures; null: it is inferred.")

    def models(self) -> tuple[str, ...]:
        """Return the model; nobody is asked where the style is given."""
        return super().models() if self.style is None else ()


@stage(version=1, reads=("script",), writes=("style",), settings=StyleSettings, asks=(STYLE_PROMPT,))
async def infer_style(item: Item, tools: Tools) -> Outcome:
    """Return the ``text`` of the style and who chose it."""
    script, settings = MemoryScript.model_validate(item["script"]), tools.own(StyleSettings)
    if settings.style is not None:
        return Made({"style": {"text": settings.style, "by": "user"}})
    by_rules = {"text": style_in(script.overview) or USUAL, "by": RULES}
    if tools.asker is None:
        return Made({"style": by_rules})
    names = [f"{entity.name}: {entity.description}" for entity in script.entities]
    try:
        answer = await ask(tools, STYLE_PROMPT, read_style, overview=script.overview, entities=names)
    except NoAnswer as none:
        if none.code == UNAVAILABLE:
            raise
        return Made({"style": {**by_rules, "by": f"{RULES}, as the model gave no answer ({none.code})"}})
    return Made({"style": {"text": answer.value, "by": answer.maker}})


def read_style(reply: Json) -> str:
    style = " ".join(str(reply["style"]).split()).rstrip(".")
    if not style or len(style) > _LONGEST_STYLE:
        raise BadReply(f"the style must have 1 to {_LONGEST_STYLE} characters, not {len(style)}")
    return style
