"""Choosing a subset of shot scripts that is spread as the whole is: what the Lite subset is to the full set.

Counted are story type, style, culture, whether a story is realistic, how long it is, and its characters by
tag and gender. The official set comes with its own choice, which is taken as given.
"""

from collections import Counter
from collections.abc import Collection, Mapping
from pathlib import Path

from ..errors import ConfigError
from ..schemas.canonical import Json, pretty_bytes, write_atomic
from ..schemas.shots import LITE, StoryFacts
from .shot_facts import read_story_facts, with_provenance, write_facts
from .shot_tree import FOLDER, ShotSet, ShotStory, write_shot_set
from .subset_closeness import field_closeness
from .subset_drawing import ALL, draw
from .subset_traits import Traits

FIELDS = ("story_type", "style", "culture", "realistic", "length")
CHARACTERS = "characters"
DOCUMENT = "lite.json"
UNKNOWN = "not known"
LENGTHS = (9, 14, 19, 24)
"""Upper ends of the classes of shots per story; the last class is open."""
OFFICIAL = "official"


def shot_traits(story: ShotStory, facts: StoryFacts | None) -> Traits:
    """Return what subsets are drawn by."""
    script = story.script
    known = facts if facts is not None else StoryFacts(story_id=story.story_id)
    kind = script.story_type.of("en") if script.story_type is not None else ""
    shots = len(script.shots)
    length = next((f"up to {end}" for end in LENGTHS if shots <= end), f"more than {LENGTHS[-1]}")
    values = (kind, known.style, known.culture, known.realistic, length)
    cast: Counter[str] = Counter()
    for key, sheet in script.characters.items():
        gender = known.characters[key].gender if key in known.characters else None
        cast.update((f"tag {sheet.tag or UNKNOWN}", f"gender {gender or UNKNOWN}"))
    return Traits(
        id=story.story_id,
        kinds=tuple(UNKNOWN if value is None or value == "" else str(value).casefold() for value in values),
        questions=cast,
        scenes=shots,
        characters=len(script.characters),
        unclear=False,
    )


def choose(shot_set: ShotSet, count: int, ids: str | Collection[str] | None = None) -> tuple[str, ...]:
    """Return the stories of a subset, in the order of their numbers.

    Args:
        shot_set: the whole.
        count: how many stories are drawn.
        ids: the stories, if they are chosen already; ``official`` for the published Lite subset.

    Raises:
        ConfigError: a story is not in the set, or more are wanted than there are.
        InputError: ``stories.jsonl`` is damaged.
    """
    order = [story.story_id for story in shot_set.stories]
    if ids is not None:
        chosen = LITE if ids == OFFICIAL else tuple(ids)
        missing = sorted(set(chosen) - set(order))
        if missing:
            raise ConfigError(
                "--ids", expected="stories of the set", found=f"{', '.join(missing[:10])}, which it lacks",
                fix="name stories that are there; the official subset is one of the official set",
            )  # fmt: skip
    elif not 1 <= count <= len(order):
        raise ConfigError(
            "--count", expected=f"1 to {len(order)}, the stories of the set", found=str(count),
            fix="choose fewer",
        )  # fmt: skip
    else:
        facts = read_story_facts(shot_set)
        everyone = [shot_traits(story, facts.get(story.story_id)) for story in shot_set.stories]
        chosen = draw("lite", everyone, order, {ALL: count})
    return tuple(story_id for story_id in order if story_id in chosen)


def subset_document(shot_set: ShotSet, ids: Collection[str]) -> dict[str, Json]:
    """Return the ids of a subset, and how near each distribution is to the whole's.

    Raises:
        InputError: ``stories.jsonl`` is damaged.
    """
    facts = read_story_facts(shot_set)
    everyone = [shot_traits(story, facts.get(story.story_id)) for story in shot_set.stories]
    own = [story for story in everyone if story.id in ids]
    fields = {
        name: field_closeness(_counts(everyone, place), _counts(own, place))
        for place, name in enumerate(FIELDS)
    }
    fields[CHARACTERS] = field_closeness(_cast(everyone), _cast(own))
    return {
        "ids": [story.id for story in own],
        "stories": {"full": len(everyone), "subset": len(own)},
        "shots_per_story": {"full": _mean(everyone), "subset": _mean(own)},
        "fields": fields,
    }


def write_subset(shot_set: ShotSet, ids: Collection[str], out: Path) -> dict[str, Json]:
    """Write a subset as a set of its own with ``lite.json`` beside it, and return what that says.

    Raises:
        TargetError: ``out`` is there already, or cannot be written. InputError: as for the facts of the set.
    """
    document = subset_document(shot_set, ids)
    part = ShotSet(shot_set.folder, tuple(story for story in shot_set.stories if story.story_id in ids))
    facts: Mapping[str, StoryFacts] = read_story_facts(part)
    images = with_provenance(part)
    write_shot_set(part, out)
    write_facts(out / FOLDER, facts.values(), images)
    write_atomic(out / DOCUMENT, [pretty_bytes(document)])
    return document


def _counts(stories: Collection[Traits], place: int) -> Counter[str]:
    return Counter(story.kinds[place] for story in stories)


def _cast(stories: Collection[Traits]) -> Counter[str]:
    total: Counter[str] = Counter()
    for story in stories:
        total.update(story.questions)
    return total


def _mean(stories: Collection[Traits]) -> float:
    return round(sum(story.scenes for story in stories) / len(stories), 6)
