"""Choosing a subset of shot scripts that is spread as the whole is: what the Lite subset is to the full set.

Counted are story type, style, culture, whether a story is realistic, how long it is, and its characters by
tag and gender. The official set comes with its own choice, which is taken as given.
"""

from collections import Counter
from collections.abc import Collection, Mapping
from pathlib import Path

from ..engine.manifest import creation_time
from ..errors import ConfigError, InputError, TargetError, UserError
from ..schemas.canonical import Json, pretty_bytes, write_atomic
from ..schemas.plain_files import parse_json, read_plain
from ..schemas.shots import LITE, StoryFacts
from .shot_facts import read_story_facts, with_provenance, write_facts
from .shot_subset_run import write_subset_run
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
                "--ids", what=f"the set has no story {', '.join(missing[:10])}",
                fix="name stories of the set; the official subset needs the official set",
            )  # fmt: skip
    elif not 1 <= count <= len(order):
        raise ConfigError(
            "--count", what=f"the set has {len(order)} stories, and {count} are asked for",
            fix=f"give a number from 1 to {len(order)}",
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


def is_subset_document(document: Json, shot_set: ShotSet) -> bool:
    """Return whether what ``lite.json`` says of a subset follows from its stories.

    What it says of the whole, whose other stories nobody can see here, is taken as it is stated.

    Raises:
        InputError: ``stories.jsonl`` is damaged. LookupError, TypeError, AttributeError: the document is.
    """
    facts = read_story_facts(shot_set)
    own = [shot_traits(story, facts.get(story.story_id)) for story in shot_set.stories]
    whole = {
        name: Counter({value: row["full"] for value, row in field["values"].items()})
        for name, field in document["fields"].items()
    }
    counts = {name: _counts(own, place) for place, name in enumerate(FIELDS)} | {CHARACTERS: _cast(own)}
    wanted = {
        "ids": [story.id for story in own],
        "stories": {"full": document["stories"]["full"], "subset": len(own)},
        "shots_per_story": {"full": document["shots_per_story"]["full"], "subset": _mean(own)},
        "fields": {name: field_closeness(whole[name], counts[name]) for name in counts},
    }
    return bool(document == wanted)


def write_subset(
    shot_set: ShotSet, ids: Collection[str], out: Path, created_at: str | None = None
) -> dict[str, Json]:
    """Write a subset as a set of its own with ``lite.json`` beside it, and return what that says.

    The folder is like that of an imported set, so that it can be packed as a release.

    Args:
        shot_set: the whole.
        ids: the stories of the subset.
        out: the folder to make.
        created_at: time that releases of it bear, RFC 3339; else as for a new run.

    Raises:
        ConfigError: the time is none. InputError: what the set says beside its scripts is damaged.
        TargetError: ``out`` is there already, or cannot be written.
    """
    time = creation_time(created_at)
    document = subset_document(shot_set, ids)
    part = ShotSet(shot_set.folder, tuple(story for story in shot_set.stories if story.story_id in ids))
    facts: Mapping[str, StoryFacts] = read_story_facts(part)
    images = with_provenance(part)
    write_shot_set(part, out)
    try:
        write_facts(out / FOLDER, facts.values(), images)
        write_atomic(out / DOCUMENT, [pretty_bytes(document)])
        write_subset_run(shot_set, part, facts, out, time)
    except OSError as error:
        raise TargetError(
            str(out), what=f"the folder cannot be written: {error.strerror or error}",
            fix="check the path, its permissions and the space on the disk",
        ) from error  # fmt: skip
    return document


def read_subset_document(folder: Path, ids: Collection[str]) -> bytes | None:
    """Return ``lite.json`` of a subset as its file has it; None for a set that is none.

    Raises:
        InputError: it cannot be read, or names other stories than the subset has.
    """
    path = folder / DOCUMENT
    if not path.is_file():
        return None
    try:
        data = read_plain(path)
        named = sorted(map(str, parse_json(data)["ids"]))
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise InputError([_other(path, f"it cannot be read ({error})")]) from error
    if named != sorted(ids):
        raise InputError([_other(path, f"it names {len(named)} others")])
    return data


def _other(path: Path, found: str) -> UserError:
    return UserError(
        str(path), what=f"it does not name the stories that are here: {found}",
        fix="remove it, or write the subset again with fabula export lite",
    )  # fmt: skip


def _counts(stories: Collection[Traits], place: int) -> Counter[str]:
    return Counter(story.kinds[place] for story in stories)


def _cast(stories: Collection[Traits]) -> Counter[str]:
    total: Counter[str] = Counter()
    for story in stories:
        total.update(story.questions)
    return total


def _mean(stories: Collection[Traits]) -> float:
    return round(sum(story.scenes for story in stories) / len(stories), 6)
