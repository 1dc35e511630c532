"""Reading the replies that list the characters of a story and place them in its shots."""

from collections.abc import Mapping, Sequence

from ....releases.shot_references import is_safe_name
from ....schemas.canonical import Json
from ....schemas.text import normalize_answer, normalize_text
from ....validators.view import mentions
from ...katha.model.reading import Problems, needed
from ..cast import MOST_ONSTAGE, character
from ..planner import Sketch
from .read_script import in_order

HUMAN = ("realistic_human", "unrealistic_human")
LONGEST_KEY = 60


def read_characters(reply: Json, sketch: Sketch, given: Sequence[Json], human: str, most: int) -> list[Json]:
    """Return the characters in the form of :mod:`..cast`; what the author gave of one stands.

    People get the tag that they are to have, whichever of the two the reply says.

    Raises:
        BadReply: more characters than asked for or other ones than given, a key that is no name or used
            twice, a name that the story does not have, nothing on one's looks, or values in the wrong script.
    """
    entries, problems = reply["characters"], Problems()
    keys = [_tidy(entry["key"]) for entry in entries]
    if given and keys != [one["key"] for one in given]:
        expected = ", ".join(one["key"] for one in given)
        problems.add(f"the characters must be exactly {expected}, in this order; found {', '.join(keys)}")
        problems.settle()
    if not given and len(keys) > most:
        problems.add(f"{len(keys)} characters; at most {most} are asked for, the most important ones")
    if len({key.casefold() for key in keys}) < len(keys):
        problems.add("two characters have one key; call them differently")
    known: Mapping[str, Json] = {one["key"]: one for one in given}
    cast = [
        _character(entry, key, (known.get(key), human), problems)
        for entry, key in zip(entries, keys, strict=True)
    ]
    text = normalize_answer(sketch.story["normalized_text"])
    for one in cast if not given else ():
        if not mentions(text, normalize_answer(one["name"])):
            problems.add(f"the story does not have the name {one['name']!r}; copy it letter for letter")
    problems.check_script(sketch.story, [one["prompt"] for one in cast])
    problems.settle()
    return cast


def _tidy(key: str) -> str:
    return normalize_text(key)


def _character(entry: Json, key: str, known: tuple[Json, str], problems: Problems) -> Json:
    before, human = known
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


def read_onstage(reply: Json, sketch: Sketch) -> list[list[str]]:
    """Return the keys of the characters on stage in each shot.

    Raises:
        BadReply: a shot is missing, has more than three characters, or one that is not in the list.
    """
    folded = {one["key"].casefold(): one["key"] for one in sketch.cast}
    problems, shots = Problems(), []
    for number, entry in enumerate(in_order(reply, sketch), start=1):
        named = [normalize_text(name) for name in entry["characters"]]
        strange = [name for name in named if name.casefold() not in folded]
        if strange:
            listed = ", ".join(folded.values())
            problems.add(f"shot {number}: {', '.join(strange)} is not in the list; there are {listed}")
        keys = list(dict.fromkeys(folded[name.casefold()] for name in named if name.casefold() in folded))
        if len(keys) > MOST_ONSTAGE:
            problems.add(f"shot {number}: {len(keys)} characters; choose at most {MOST_ONSTAGE}")
        shots.append(keys)
    problems.settle()
    return shots
