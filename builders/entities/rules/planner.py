"""The rules behind the face that every planner has: who is seen where, and nothing else."""

from collections import Counter
from collections.abc import Sequence

from ....schemas.base import Own
from ....schemas.canonical import Json
from ...replies import Drafted
from ..drafts import Entity, Script, ScriptShot
from ..guarantees import settle
from ..planner import Episode, Film, Identities
from ..registries import Local, LocalRegistry
from ..scheduling import in_order
from ..settings import APART, ListSettings
from .names import joined, person_name, place_name
from .places import places_of

PRODUCER = "rules@1"


class EntityRulesPlanner:
    """Drafts by rules; see :class:`fabula.builders.entities.planner.Planner`. It never waits.

    People are those of the cast. Shots whose colours are alike are at one place. There are no objects.

    Args:
        settings: the stage's; ``apart`` is read where they have it.
    """

    def __init__(self, settings: Own | None = None) -> None:
        self._apart = settings.apart if isinstance(settings, ListSettings) else APART

    async def registries(self, film: Film) -> Drafted[Json]:
        """Return one registry of the whole film, with its places."""
        colours = [film.views.of_shot(number).colours for number in film.numbers]
        shots: dict[int, list[int]] = {}
        for number, place in zip(film.numbers, places_of(colours, self._apart), strict=True):
            shots.setdefault(place, []).append(number)
        places = [
            Local(
                local_id=f"c01.location{place}", kind="location", name=place_name(place), shots=tuple(where),
                looks=f"A place in mostly {_tone(film, where)} colours, {place_name(place)} of this video.",
            )
            for place, where in shots.items()
        ]  # fmt: skip
        registry = LocalRegistry(chunk=1, shots=film.numbers, entities=tuple(places))
        return Drafted([registry.as_json()], PRODUCER)

    async def identities(self, film: Film, registries: Sequence[LocalRegistry]) -> Drafted[Json]:
        """Return each person of the cast as a character, and each place as a location."""
        kept = frozenset(film.numbers)
        people = [
            Entity(
                label=person.person_id, kind="character", name=person_name(number),
                description=_person(film, person.person_id, person_name(number)),
                shots=tuple(shot for shot in person.shots if shot in kept), persons=(person.person_id,),
            )
            for number, person in enumerate(film.cast, 1)
        ]  # fmt: skip
        places = [
            Entity(label=one.local_id, kind=one.kind, name=one.name, description=one.looks, shots=one.shots)
            for registry in registries
            for one in registry.entities
        ]
        entities, labels = in_order([*people, *places])
        members = {label: (old,) for old, label in labels.items()}
        return Drafted(Identities(entities=tuple(entities), members=members).as_json(), PRODUCER)

    async def script(
        self,
        film: Film,
        registries: Sequence[LocalRegistry],  # noqa: ARG002 - the face of a planner
        entities: Sequence[Entity],
    ) -> Drafted[Json]:
        """Return a scene for each stay at a place; a shot goes on where somebody of the one before is seen.

        Where neighbours show nobody, a shot at the same place goes on, too.
        """
        shots: list[ScriptShot] = []
        scene, before = 0, None
        for number in film.numbers:
            here = [entity for entity in entities if number in entity.shots]
            place = {entity.label for entity in here if entity.kind == "location"}
            people = {entity.label for entity in here if entity.kind == "character"}
            same = before is not None and place == before[0]
            goes_on = same and before is not None and (bool(people & before[1]) or people == before[1])
            scene += not same
            shots.append(ScriptShot(number=number, scene=scene, cut=not goes_on, action=action_of(here)))
            before = (place, people)
        return Drafted(Script(overview="", shots=tuple(shots)).as_json(), PRODUCER)

    async def overview(self, episode: Episode) -> Drafted[Json]:
        """Return how many shots there are, where, and who is seen in how many."""
        places = [entity.name for entity in episode.entities if entity.kind == "location"]
        people = [entity for entity in episode.entities if entity.kind == "character"]
        count = len(episode.numbers)
        where = f" at {joined(places)}" if places else ""
        seen = [f"{entity.name} in {len(entity.shots)}" for entity in people]
        seen[:1] = [f"{one.name} is seen in {_shots(len(one.shots))}" for one in people[:1]]
        said = joined(seen) if people else "Nobody is seen"
        return Drafted(f"This episode has {_shots(count)}{where}. {said}.", PRODUCER)

    async def descriptions(self, episode: Episode) -> Drafted[Json]:
        """Return the descriptions as they are."""
        texts = {entity.label: entity.description for entity in episode.entities}
        return Drafted([texts, []], PRODUCER)

    async def actions(self, episode: Episode) -> Drafted[Json]:
        """Return the script as it is."""
        return Drafted(episode.script.as_json(), PRODUCER)

    async def verify(self, episode: Episode) -> Drafted[Json]:
        """Return what the last rules make of it."""
        return Drafted(settle(episode.script, episode.entities).as_json(), PRODUCER)


def action_of(entities: Sequence[Entity]) -> str:
    """Return a plain sentence about what a shot shows; what it says is what is scheduled."""
    names = {kind: [one.name for one in entities if one.kind == kind] for kind in ("location", "object")}
    seen = [one.name for one in entities if one.kind == "character"] + names["object"]
    where = joined(names["location"])
    if not seen:
        return f"{where} is seen, and nobody in it." if where else "Nobody is seen."
    said = f"{joined(seen)} {'is' if len(seen) == 1 else 'are'} seen."
    return f"At {where}, {said}" if where else f"{said[:1].upper()}{said[1:]}"


def _shots(count: int) -> str:
    return "1 shot" if count == 1 else f"{count} shots"


def _person(film: Film, person: str, name: str) -> str:
    tone = film.views.of_person(person).tone
    return f"{name}, a person in {'clothes of unknown colour' if tone is None else f'mostly {tone} clothes'}."


def _tone(film: Film, shots: Sequence[int]) -> str:
    """Return the colour word of most shots; of as many, the first by the alphabet."""
    words = Counter(tone for number in shots if (tone := film.views.of_shot(number).tone) is not None)
    return min(words, key=lambda word: (-words[word], word), default="unknown")
