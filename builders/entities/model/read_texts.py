"""Reading the replies with texts of shots and entities."""

import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from ....schemas.canonical import Json
from ....schemas.text import normalize_answer, normalize_text
from ...replies import Problems, by_number
from ..drafts import Entity, Repair
from ..mentions import without_article
from .asking import check_english
from .read_registry import noted

LONGEST_ACTION = 120
"""Words of an action; those of the release have 6 to 79."""
LONGEST_DESCRIPTION = 60
"""Words of a description; as the longest of the release."""
LONGEST_OVERVIEW = 160
# A thing may have a frame or be a camera; what these words say is of the picture that was taken.
_CAMERA = re.compile(
    r"\b(close-?up|zoom(s|ed|ing)? (in|out)|in (the )?frame|(the|this) (camera|shot|video|footage|benchmark))"
    r"\b",
    re.IGNORECASE,
)


class Seen(NamedTuple):
    """What a model sees of a shot: numbers of entries, and those that are another one, with the reason."""

    entries: tuple[int, ...]
    contradicted: tuple[tuple[int, str], ...]


class Settled(NamedTuple):
    """How a model settles a shot: the action, names that are to go and names that are to come."""

    action: str
    dropped: tuple[str, ...]
    scheduled: tuple[str, ...]


class Problem(NamedTuple):
    """What a model finds wrong in a shot, and the action put right."""

    shot: int
    kind: str
    found: str
    action: str


def tidy(text: str) -> str:
    """Return a text in one line, without marks around names."""
    return normalize_text(text.replace("`", ""))


def _action(text: str, where: str, problems: Problems) -> str:
    action = tidy(text)
    words = len(action.split())
    if not normalize_answer(action):
        problems.add(f"{where}: the action says nothing")
    elif words > LONGEST_ACTION:
        problems.add(f"{where}: the action has {words} words; write at most sixty")
    return action


def read_script(reply: Json, numbers: Sequence[int]) -> list[tuple[bool, bool, str]]:
    """Return for each shot whether a scene begins, whether it goes on from the one before, and its action.

    Raises:
        BadReply: a shot is missing or none of those asked for, or an action cannot be used.
    """
    problems = Problems()
    check_english(reply, problems)
    made = []
    for entry in by_number(reply["shots"], "shot", numbers, "shots"):
        action = _action(entry["action"], f"shot {entry['shot']}", problems)
        made.append((bool(entry["new_scene"]), bool(entry["goes_on"]), action))
    problems.settle()
    return made


def read_overview(reply: Json) -> str:
    """Return the overview.

    Raises:
        BadReply: it says nothing, is too long, or not in English.
    """
    problems = Problems()
    check_english(reply, problems)
    text = tidy(reply["overview"])
    words = len(text.split())
    if not normalize_answer(text) or words > LONGEST_OVERVIEW:
        problems.add(f"the overview has {words} words; write two to four sentences")
    problems.settle()
    return text


def read_descriptions(reply: Json, entities: Sequence[Entity]) -> list[str]:
    """Return the description of each entity, with a full stop.

    Raises:
        BadReply: one is missing, says nothing, is too long or of the camera, or two are alike.
    """
    problems = Problems()
    check_english(reply, problems)
    made: list[str] = []
    numbers = range(1, len(entities) + 1)
    for entry in by_number(reply["entities"], "number", numbers, "entities"):
        text = tidy(entry["description"])
        words, where = len(text.split()), f"number {entry['number']}"
        if not normalize_answer(text):
            problems.add(f"{where}: the description says nothing")
        elif words > LONGEST_DESCRIPTION:
            problems.add(f"{where}: {words} words; write twelve to thirty")
        elif found := _CAMERA.search(text):
            problems.add(f"{where}: the description says {found[0]!r}; leave camera and footage out")
        elif text.rstrip(".") in (one.rstrip(".") for one in made):
            problems.add(f"{where}: the same description as another; tell the two apart")
        made.append(text if text.endswith((".", "!", "?")) else f"{text}.")
    problems.settle()
    return made


def read_actions(reply: Json, numbers: Sequence[int]) -> list[str]:
    """Return the action of each shot.

    Raises:
        BadReply: a shot is missing or none of those asked for, or an action cannot be used.
    """
    problems = Problems()
    check_english(reply, problems)
    made = [
        _action(entry["action"], f"shot {entry['shot']}", problems)
        for entry in by_number(reply["shots"], "shot", numbers, "shots")
    ]
    problems.settle()
    return made


def read_settled(
    reply: Json, shots: Mapping[int, tuple[Sequence[Entity], Sequence[Entity]]]
) -> tuple[dict[int, Settled], list[Repair]]:
    """Return how each shot is settled, and what the reply says of entities that were not in question.

    Args:
        reply: what the model says.
        shots: number -> the entities that its action misses, and those that it names besides.

    Raises:
        BadReply: a shot is missing or none of those asked for, or an action cannot be used.
    """
    problems = Problems()
    check_english(reply, problems)
    made: dict[int, Settled] = {}
    repairs: list[Repair] = []
    for entry in by_number(reply["shots"], "shot", list(shots), "shots"):
        number = entry["shot"]
        labels = [
            _labels(entry[key], asked, number, repairs)
            for key, asked in zip(("dropped", "scheduled"), shots[number], strict=True)
        ]
        made[number] = Settled(_action(entry["action"], f"shot {number}", problems), labels[0], labels[1])
    problems.settle()
    return made, repairs


def _labels(
    names: Sequence[str], asked: Sequence[Entity], shot: int, repairs: list[Repair]
) -> tuple[str, ...]:
    known = {normalize_answer(without_article(one.name)): one.label for one in asked}
    found = []
    for name in names:
        label = known.get(normalize_answer(without_article(tidy(name))))
        if label is None:
            said = f"{tidy(name)[:60]!r} was not in question"
            repairs.append(noted("unknown-entity", said, "dropped", shot))
        else:
            found.append(label)
    return tuple(dict.fromkeys(found))


def read_problems(reply: Json, numbers: Sequence[int]) -> tuple[list[Problem], list[Repair]]:
    """Return what is wrong in some shots, one problem a shot, and what the reply says of other shots.

    Raises:
        BadReply: an action cannot be used.
    """
    problems = Problems()
    check_english(reply, problems)
    made: dict[int, Problem] = {}
    repairs: list[Repair] = []
    for entry in reply["problems"]:
        number, found = entry["shot"], tidy(entry["found"])[:200]
        if number not in numbers:
            said = f"a problem in shot {number}, which was not asked about"
            repairs.append(noted("unknown-shot", said, "dropped"))
            continue
        action = _action(entry["action"], f"shot {number}", problems)
        made.setdefault(number, Problem(number, entry["kind"], found, action))
    problems.settle()
    return list(made.values()), repairs


def read_seen(reply: Json, numbers: Sequence[int], entries: int) -> tuple[dict[int, Seen], list[Repair]]:
    """Return what is seen in each shot, and what the reply says of entries that there are not.

    Args:
        reply: what the model says.
        numbers: of the shots.
        entries: how many entries there are, numbered from 1.

    Raises:
        BadReply: a shot is missing or none of those asked for.
    """
    made: dict[int, Seen] = {}
    repairs: list[Repair] = []
    for entry in by_number(reply["shots"], "shot", numbers, "shots"):
        number = entry["shot"]
        others = [(one["entity"], tidy(one["why"])[:200]) for one in entry["contradicted"]]
        for strange in sorted({*entry["seen"], *(one for one, _ in others)} - set(range(1, entries + 1))):
            repairs.append(noted("unknown-entity", f"entry {strange} is not there", "dropped", number))
        made[number] = Seen(
            tuple(dict.fromkeys(one for one in entry["seen"] if 1 <= one <= entries)),
            tuple((one, said) for one, said in others if 1 <= one <= entries),
        )
    return made, repairs
