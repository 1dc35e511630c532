"""Stage: near-duplicates, and the most different of the prompts that a model wrote.

Prompts of a suite that is kept whole stay in any case. Prompts by people come next and stay; of a model's,
the one that is least like any chosen one is taken next. Similarity is the token-set ratio of normalised
prompts without articles and joining words.
"""

import math
from collections.abc import Iterable, Mapping

from ...engine.stage import Item, Made, OneStage, Outcome, Rejected, StageSpec, Tools
from ...schemas.canonical import Json
from ...schemas.events import video_name
from ...validators.events.rules import compared, nearest, objections
from .grade_prompts import labelled
from .settings import ConditionSettings, SelectSettings

SPEC = StageSpec(
    name="select_prompts",
    version=2,
    shape="gather",
    reads=("entry", "place", "stays", "unit"),
    writes=("choice",),
    libraries=("rapidfuzz",),
    settings=SelectSettings,
)


_STAYS, _BY_PEOPLE, _GUIDED = range(3)


def _rank(item: Item) -> tuple[int, float]:
    """Return what comes first: what stays, then people's prompts, those of a suite in its order."""
    order = math.inf if item["place"] is None else item["place"]
    if item["stays"]:
        return _STAYS, order
    return _GUIDED if item["entry"]["origin"] == "guided" else _BY_PEOPLE, order


def run(items: Iterable[Item], tools: Tools) -> Mapping[str, Mapping[str, Json]]:
    """Return for each prompt null where it stays, or code and reason why it goes."""
    settings = tools.own(SelectSettings)
    rows = sorted((*_rank(item), item.id, item["unit"], item["entry"]["prompt"]) for item in items)
    kept: list[tuple[str, str]] = []
    choices: dict[str, Json] = {}
    waiting: list[tuple[str, str]] = []
    units: dict[str, str] = {}
    for rank, _, name, unit, prompt in rows:
        text = compared(prompt)
        if unit in units:
            choices[name] = {"code": "near_duplicate", "reason": f"the same file name as {units[unit]}"}
            continue
        units[unit] = name
        if rank == _GUIDED:
            waiting.append((name, text))
        elif rank == _STAYS:
            choices[name] = None
            kept.append((name, text))
        else:
            _take((name, text), kept, choices, settings)
    _choose(waiting, kept, choices, settings)
    return {name: {"choice": choices[name]} for _, _, name, _, _ in rows}


def _take(
    row: tuple[str, str], kept: list[tuple[str, str]], choices: dict[str, Json], settings: SelectSettings
) -> None:
    name, text = row
    if near := nearest(text, [other for _, other in kept], settings.near):
        reason = f"{near[0]:.0f} of 100 like {kept[near[1]][0]}"
        choices[name] = {"code": "near_duplicate", "reason": reason}
        return
    choices[name] = None
    kept.append(row)


def _choose(
    waiting: list[tuple[str, str]],
    kept: list[tuple[str, str]],
    choices: dict[str, Json],
    settings: SelectSettings,
) -> None:
    """Take the waiting prompts one by one, always that which is least like any chosen one."""
    from rapidfuzz.fuzz import token_set_ratio

    nearest = {
        name: max((token_set_ratio(text, other) for _, other in kept), default=0.0) for name, text in waiting
    }
    left = dict(waiting)
    while left:
        name = min(left, key=lambda other: (nearest[other], other))
        text = left.pop(name)
        if nearest[name] >= settings.near:
            choices[name] = {
                "code": "near_duplicate",
                "reason": f"{nearest[name]:.0f} of 100 like one that stays",
            }
            continue
        if settings.most is not None and len(kept) >= settings.most:
            choices[name] = {
                "code": "not_chosen",
                "reason": f"{settings.most} prompts are chosen that differ more",
            }
            continue
        choices[name] = None
        kept.append((name, text))
        for other, words in left.items():
            nearest[other] = max(nearest[other], token_set_ratio(text, words))


# -- The general conditions of section 2.1.1 of StoryEval, and its first filter, as checks


def check_conditions(item: Item, tools: Tools) -> Outcome:
    """Return file name and labels of a prompt that meets the conditions, or that stays in any case."""
    settings = tools.own(ConditionSettings)
    entry, given = item["entry"], item["entry"]["given"]
    against = objections(
        entry["prompt"],
        entry["event_list"],
        entry["participants"],
        max_words=settings.max_words,
        max_participants=settings.max_participants,
    )
    for objection in () if item["stays"] else against:
        return Rejected(objection.code.replace("-", "_"), objection.message)
    if given is not None:
        return Made({"unit": given["unit"], "labels": given["entry"]["class"]})
    origin = ["retrieval"] if entry["origin"] == "retrieval" else []
    creative = ["creative"] if entry["creative"] else []
    labels = [*entry["participants"], *origin, *creative, f"{len(entry['event_list'])}_events"]
    return Made({"unit": video_name(entry["prompt"]), "labels": labels})


CHECK_CONDITIONS = OneStage(
    name="check_conditions",
    version=3,
    shape="map",
    reads=("entry", "stays"),
    writes=("unit", "labels"),
    reject_codes={
        "no_name": "no file name can be made of the prompt",
        "event_count": "fewer than two or more than four events",
        "repeated_event": "two events are the same",
        "too_long": "too long for a short story",
        "too_many_participants": "more kinds of participants than are allowed",
        "facial_expression": "an event is a facial expression, which judges cannot be relied on to see",
        "event_elsewhere": "an event is not what the prompt tells",
    },
    keep={
        "too_long": "--set check_conditions.max_words=N",
        "too_many_participants": "--set check_conditions.max_participants=3",
        **dict.fromkeys(
            ("no_name", "event_count", "repeated_event", "facial_expression", "event_elsewhere"),
            "give its event_list in the seed, or another prompt",
        ),
    },
    settings=ConditionSettings,
    run=check_conditions,
)


# -- What was chosen becomes an entry of the suite; the others are rejected with their reason


def settle(item: Item, tools: Tools) -> Outcome:
    """Return the record of a prompt: its entry in the official form, its name, and who made what."""
    choice, grade, entry, labels = item["choice"], item["grade"], item["entry"], item["labels"]
    for against in (choice, grade):
        if against is not None and "code" in against:
            return Rejected(against["code"], against["reason"])
    if grade is not None:
        labels = list(labelled(labels, grade["level"]))
    kept = {} if entry["given"] is None else entry["given"]["entry"]
    official = {"prompt": entry["prompt"], "event_list": entry["event_list"], **kept, "class": labels}
    made = {"prompt": item["drafted_by"], "event_list": item["listed_by"]}
    return Made(
        {"record": {"unit": item["unit"], "entry": official, "origin": entry["origin"], "producers": made}}
    )


SETTLE_PROMPTS = OneStage(
    name="settle_prompts",
    version=3,
    shape="map",
    reads=("choice", "drafted_by", "entry", "grade", "labels", "listed_by", "unit"),
    writes=("record",),
    reject_codes={
        "near_duplicate": "nearly the same as a prompt that stays",
        "not_chosen": "others differ more, and the suite is full",
        "silent": "too many methods without an answer of the judge",
        "unlike_people": "people and judge differ too much",
    },
    keep={
        "near_duplicate": "--set select_prompts.near=100",
        "not_chosen": "--most with a greater number, or without it",
        "silent": "--set grade_prompts.silent=off",
        "unlike_people": "--set grade_prompts.max_difference=1",
    },
    run=settle,
)
