"""Stage: who is in the story: name, tag, gender, appearance and clothing.

Rules take those whom an English text names most often, and know of them what their name says.
"""

from collections.abc import Mapping, Sequence

from pydantic import Field

from ...releases.shots.tree import is_safe_name
from ...schemas.canonical import Json
from ...schemas.text import normalize_answer, normalize_text
from ...validators.view import mentions
from ..replies import Problems, language, needed
from ..step import PlannerSettings, Step
from ..text.segments import Analysis
from ..text.words import lower_words, word_set
from .cast import Sketch, as_planned, character

HUMAN = ("realistic_human", "unrealistic_human")
LONGEST_KEY = 60
NARRATOR = {"en": "Narrator", "ch": "叙述者"}
"""What a character is called that tells the story and that the story never names."""
SPEAKER = frozenset(("i", "me", "we", "us", "我", "我们", "俺", "咱", "咱们"))
"""Words, as answers are compared, by which a story calls who tells it: nobody can be drawn from them."""


class Settings(PlannerSettings):
    """Settings of the stage."""

    most: int = Field(default=10, ge=1, le=100, description="Characters of a story at most.")
    realistic: bool = Field(
        default=True,
        description="Whether people are to have photographs as references, where the author does not say.",
    )


def _human(sketch: Sketch, settings: Settings) -> str:
    """Return the tag of people."""
    realistic = sketch.facts().get("realistic")
    return (
        "realistic_human" if (settings.realistic if realistic is None else realistic) else "unrealistic_human"
    )


def _given_cast(sketch: Sketch) -> list[Json]:
    """Return the characters that the author gives, in the form of :mod:`.cast`."""
    base = sketch.base
    other = "ch" if base == "en" else "en"
    cast = []
    for row in sketch.facts().get("characters") or ():
        key = row["key"]
        names: Mapping[str, Json] = {"en": row["name_en"] or key, "ch": row["name_ch"]}
        cast.append(
            character(
                key, names[base] or key, tag=row["tag"], gender=row["gender"], ethnicity=row["ethnicity"],
                prompt=row[f"prompt_{base}"], other_name=names[other], other_prompt=row[f"prompt_{other}"],
            )
        )  # fmt: skip
    return cast


def _given(sketch: Sketch, settings: Settings) -> Json:
    named = _given_cast(sketch)
    return (
        named
        if named and all(person["tag"] and person["gender"] and person["prompt"] for person in named)
        else as_planned("cast")(sketch, settings)
    )


def _rules(sketch: Sketch, settings: Settings) -> list[Json]:
    human, given = _human(sketch, settings), _given_cast(sketch)
    if given:
        return [describe(character, human) for character in given]
    return find_people(sketch.analysis, human, settings.most)


def _show(sketch: Sketch, settings: Settings) -> Json:
    shown = ("key", "name", "tag", "gender", "prompt")
    return {
        "given": [
            {name: value for name, value in person.items() if name in shown} for person in _given_cast(sketch)
        ],
        "human": _human(sketch, settings),
        "language": language(sketch.story),
        "most": settings.most,
        "shots": list(sketch.plot),
        "title": sketch.story["title"],
    }


def _read(reply: Json, sketch: Sketch, settings: Settings) -> list[Json]:
    """Return the characters in the form of :mod:`.cast`; what the author gave of one stands.

    People get the tag that they are to have, whichever of the two the reply says.
    """
    given, human, most = _given_cast(sketch), _human(sketch, settings), settings.most
    entries, problems = reply["characters"], Problems()
    keys = [normalize_text(entry["key"]) for entry in entries]
    if given and keys != [character["key"] for character in given]:
        expected = ", ".join(character["key"] for character in given)
        problems.add(f"the characters must be exactly {expected}, in this order; found {', '.join(keys)}")
        problems.settle()
    if not given and len(keys) > most:
        problems.add(f"{len(keys)} characters; at most {most} are asked for, the most important ones")
    if len({key.casefold() for key in keys}) < len(keys):
        problems.add("two characters have one key; call them differently")
    known: Mapping[str, Json] = {character["key"]: character for character in given}
    cast = [
        _character(entry, key, known.get(key), human, problems)
        for entry, key in zip(entries, keys, strict=True)
    ]
    if not given:
        _check_names(cast, sketch, problems)
    problems.check_script(sketch.story, [character["prompt"] for character in cast])
    problems.settle()
    return cast


def _check_names(cast: Sequence[Json], sketch: Sketch, problems: Problems) -> None:
    """Note names that the story does not have, and pronouns; who tells the story may be the narrator."""
    text, narrator = normalize_answer(sketch.story["normalized_text"]), NARRATOR[sketch.base]
    tells_itself = any(mentions(text, word) for word in SPEAKER)
    for person in cast:
        name = person["name"]
        if SPEAKER.intersection(map(normalize_answer, (name, person["key"]))):
            problems.add(
                f"{name!r} with the key {person['key']!r} names nobody in a picture; take what the story"
                f" calls who tells it, such as child, or {narrator} with the key {NARRATOR['en']}"
            )
        elif not (mentions(text, normalize_answer(name)) or (tells_itself and name == narrator)):
            problems.add(f"the story does not have the name {name!r}; copy it letter for letter")


def _character(entry: Json, key: str, before: Json, human: str, problems: Problems) -> Json:
    where = f"character {key!r}"
    if before is None and (
        not is_safe_name(key) or not key.isascii() or len(key) > LONGEST_KEY or "/" in key
    ):
        problems.add(f"{where}: a key is a short name in Latin letters, such as Old Miller")
    look = needed(entry, "appearance", where, problems)
    tag = human if entry["tag"] in HUMAN else entry["tag"]
    drafted = {"tag": tag, "gender": entry["gender"], "prompt": look}
    if before is None:
        return character(key, needed(entry, "name", where, problems), **drafted)
    return {**before, **{name: before[name] or value for name, value in drafted.items()}}


def find_people(analysis: Json, human: str, most: int) -> list[Json]:
    """Return the characters that a story names in most of its clauses, in the order in which they come."""
    often = sorted(Analysis.from_json(analysis).entities, key=lambda one: (-len(one.at), one.at[0]))[:most]
    kept: dict[str, Json] = {}
    for entity in sorted(often, key=lambda one: one.at[0]):
        key = entity.name[:1].upper() + entity.name[1:]
        kept.setdefault(key.casefold(), describe(character(key, key), human))
    return list(kept.values())


def describe(person: Json, human: str) -> Json:
    """Return a character with the tag that its name says, where it is a noun for animals or for people."""
    last = lower_words(person["name"])[-1:]
    sorts = {"non_human": word_set("nouns", "animals"), human: word_set("nouns", "people", "titles")}
    said = next((tag for tag, nouns in sorts.items() if nouns.issuperset(last) and last), None)
    return {**person, "tag": person["tag"] or said}


STEP = Step(
    id="shots/write_characters",
    version=4,
    writes=("cast",),
    reads=("story", "analysis", "given", "plot", "planned", "planned_by"),
    sketch=Sketch.of,
    rules=_rules,
    show=_show,
    read=_read,
    given=_given,
    settings=Settings,
)
