"""Choosing a subset of shot scripts that is spread as the whole is: what the Lite subset is to the full set.

Counted are story type, style, culture, whether a story is realistic, how long it is, and its characters by
tag and gender. The official set comes with its own choice, which is taken as given.
"""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

from ...engine.manifest import SourceEntry, creation_time
from ...errors import ConfigError, InputError, UserError
from ...schemas.canonical import Json, jsonl_lines, pretty_bytes, write_atomic
from ...schemas.plain_files import parse_json, read_plain
from ...schemas.shots import LITE, ShotRecord, StoryFacts
from ...schemas.text import tallied
from ..loading import whole_rows
from ..subsets import ALL, DIGITS, Spread, Traits, draw, fields_closeness, mean_size, spread
from ..target import write_imported_run, writing
from .imports import ROLE, given_records, read_story_facts, with_provenance, write_facts
from .tree import FOLDER, IMPORTED_SHOTS, SHOT_SCRIPTS, ShotSet, ShotStory, write_shot_set

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
        kinds={
            name: UNKNOWN if value is None or value == "" else str(value).casefold()
            for name, value in zip(FIELDS, values, strict=True)
        },
        parts_field=CHARACTERS,
        parts=cast,
        sizes={"shots": shots},
    )


def _traits(shot_set: ShotSet) -> list[Traits]:
    facts = read_story_facts(shot_set)
    return [shot_traits(story, facts.get(story.story_id)) for story in shot_set.stories]


def choose(shot_set: ShotSet, count: int, ids: str | Collection[str] | None = None) -> tuple[str, ...]:
    """Return the stories of a subset, in the order of their numbers."""
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
            "--count", what=f"the set has {tallied(len(order), 'stories')}, and {count} are asked for",
            fix=f"give a number from 1 to {len(order)}",
        )  # fmt: skip
    else:
        chosen = draw("lite", _traits(shot_set), order, {ALL: count})
    return tuple(story_id for story_id in order if story_id in chosen)


def subset_document(shot_set: ShotSet, ids: Collection[str]) -> dict[str, Json]:
    """Return the ids of a subset, and how near each distribution is to the whole's."""
    everyone = _traits(shot_set)
    own = [story for story in everyone if story.id in ids]
    return _document(own, len(everyone), _shots_per_story(everyone), spread(everyone))


def _document(own: Sequence[Traits], stories: int, shots_per_story: Json, full: Spread) -> dict[str, Json]:
    """Return what ``lite.json`` says of some stories: beside them, what is known of the whole."""
    return {
        "ids": [story.id for story in own],
        "stories": {"full": stories, "subset": len(own)},
        "shots_per_story": {"full": shots_per_story, "subset": _shots_per_story(own)},
        "fields": fields_closeness(full, spread(own)),
    }


def is_subset_document(document: Json, shot_set: ShotSet) -> bool:
    """Return whether what ``lite.json`` says of a subset follows from its stories.

    What it says of the whole, whose other stories nobody can see here, is taken as it is stated.
    """
    whole = {
        name: Counter({value: row["full"] for value, row in field["values"].items()})
        for name, field in document["fields"].items()
    }
    stated = document["stories"]["full"], document["shots_per_story"]["full"]
    return bool(document == _document(_traits(shot_set), *stated, whole))


def write_subset(
    shot_set: ShotSet, ids: Collection[str], out: Path, created_at: str | None = None
) -> dict[str, Json]:
    """Write a subset as a set of its own with ``lite.json`` beside it, and return what that says.

    The folder is like that of an imported set, so that it can be packed as a release.
    """
    time = creation_time(created_at)
    document = subset_document(shot_set, ids)
    part = ShotSet(shot_set.folder, tuple(story for story in shot_set.stories if story.story_id in ids))
    facts: Mapping[str, StoryFacts] = read_story_facts(part)
    images = with_provenance(part)
    write_shot_set(part, out)
    with writing(out):
        write_facts(out / FOLDER, facts.values(), images)
        write_atomic(out / DOCUMENT, [pretty_bytes(document)])
        _write_run(shot_set, part, facts, out, time)
    return document


def read_subset_document(folder: Path, ids: Collection[str]) -> bytes | None:
    """Return ``lite.json`` of a subset as its file has it; None for a set that is none."""
    path = folder / DOCUMENT
    if not path.is_file():
        return None
    try:
        data = read_plain(path)
        named = sorted(map(str, parse_json(data)["ids"]))
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise InputError([_other(path, f"it cannot be read ({error})")]) from error
    if named != sorted(ids):
        raise InputError([_other(path, f"it names {tallied(len(named), 'others')}")])
    return data


def _other(path: Path, found: str) -> UserError:
    return UserError(
        str(path), what=f"it does not name the stories that are here: {found}",
        fix="remove it, or write the subset again with fabula export lite",
    )  # fmt: skip


def _shots_per_story(stories: Sequence[Traits]) -> float:
    return round(mean_size(stories, "shots"), DIGITS)


def _write_run(whole: ShotSet, part: ShotSet, facts: Mapping[str, StoryFacts], out: Path, time: str) -> None:
    """Write ``scripts.jsonl``, ``run.json`` and ``report.json`` beside the tree of a subset.

    Who made what goes along where the whole has it: where it is a run or a release.
    """
    root = whole.folder.parent if whole.folder.name == FOLDER else whole.folder
    scripts = root / SHOT_SCRIPTS
    before = whole_rows(scripts, ShotRecord) if scripts.is_file() else ()
    known = {record.story_id: record for record in before}
    write_atomic(out / SHOT_SCRIPTS, jsonl_lines(given_records(part, facts, known)))
    path, name = (
        text.encode("utf-8", "backslashreplace").decode("utf-8")
        for text in (str(root.absolute()), root.absolute().name)
    )
    entry = SourceEntry(role=ROLE, name=name, path=path, sha256=whole.sha256)
    write_imported_run(out, IMPORTED_SHOTS, entry, SHOT_SCRIPTS, time)
