"""Prompts of a suite: written by a model, chosen under conditions, and graded by results.

Which go and how hard the others are follows from judged videos (StoryEval, section 2.1).
"""

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from pydantic import Field

from ...engine.stage import BadReply, Failed, Item, Made, Outcome, Rejected, Tools, stage
from ...errors import ConfigError, InputError
from ...media.images import MediaProblem, encode
from ...media.kept_files import kept_bytes
from ...models.chat import Image
from ...schemas.canonical import Json, pretty_bytes, write_atomic, writing
from ...schemas.events import DIFFICULTIES, video_name
from ...schemas.plain_files import read_json, reason_of
from ...schemas.values import Own
from ...validators.events.rules import MOST_PARTICIPANTS, MOST_WORDS, NEAR, compared, nearest, objections
from ..step import Worded, ask

# -- Stage: what judged videos say about the prompts: which go, and how hard the others are
#
# The filters that need results, and the labels easy, medium and hard (StoryEval, sections 2.1.2, 2.1.3 and
# 6.1), from completion rates in ``results.json`` of the run folder.

# -- Settings of the stages of the suite builder, and what a row of its sources holds

SILENT = {"more_than_two": 3, "at_least_two": 2}
"""Named definitions of the second filter -> how many methods without an answer a prompt goes with: section
2.1.2 of StoryEval says more than two, section 6.1 at least two."""


class Seed(Own):
    """One row of ``seeds.jsonl``: a prompt, or a video that is to be captioned."""

    prompt: str | None = Field(default=None, description="The prompt; null where a model captions the video.")
    origin: Literal["retrieval", "brainstorm"] = Field(
        default="brainstorm",
        description="retrieval: it captions a real video; brainstorm: somebody thought of it.",
    )
    event_list: tuple[str, ...] | None = Field(default=None, description="The events, where they are given.")
    participants: tuple[Literal["human", "animal", "object"], ...] | None = Field(
        default=None, description="Who leads the story, where it is given."
    )
    creative: bool | None = Field(default=None, description="Whether it can never happen.")
    video: str | None = Field(default=None, description="The real video, relative to the file.")
    author: str | None = Field(default=None, description="Who wrote it.")


class LoadSettings(Own):
    """How many prompts a model is to add, and whether a suite that is given is kept whole."""

    generate: int = Field(default=0, ge=0, le=20_000, description="Prompts that a model is asked for.")
    examples: int = Field(default=6, ge=1, le=50, description="Seeds that each of these requests shows.")
    creative_share: float = Field(
        default=0.3, ge=0, le=1, description="Share of these that are to be impossible in the real world."
    )
    keep_all: bool = Field(
        default=False,
        description="Every prompt of a suite stays, even where it breaks a condition or is a near-duplicate.",
    )


class WriteSettings(Worded):
    """Which model captions videos and writes prompts."""

    temperature: float | None = Field(default=1.0, ge=0, le=2)
    frames: int = Field(default=16, ge=1, le=64, description="Frames of a real video that a model is shown.")


class ConditionSettings(Own):
    """The general conditions of a prompt."""

    max_words: int = Field(default=MOST_WORDS, ge=5, description="Longer prompts are no short stories.")
    max_participants: int = Field(
        default=MOST_PARTICIPANTS, ge=1, le=3, description="Kinds of participants at most."
    )


class SelectSettings(Own):
    """Which prompts stay."""

    near: float = Field(
        default=NEAR, gt=0, le=100, description="Token-set similarity, 0 to 100, from which one of two goes."
    )
    most: int | None = Field(
        default=None,
        ge=1,
        description="Most prompts; the most different of the model's are taken. Null: all.",
    )


class GradeSettings(Own):
    """How results filter and grade the prompts, where there are results."""

    silent: Literal["more_than_two", "at_least_two", "off"] = Field(
        default="more_than_two", description="Prompts without an answer for so many methods go."
    )
    exempt: tuple[str, ...] = Field(
        default=(), description="Methods that do not count for that, as an early model that fails often."
    )
    max_difference: float | None = Field(
        default=None, gt=0, le=1,
        description="A prompt goes where judge and people differ by more on average. Null: none does.",
    )  # fmt: skip
    above: float = Field(
        default=0.15, ge=0, lt=1, description="Methods with a higher average count for the difficulty."
    )
    easy: int = Field(default=100, ge=0, description="So many prompts with the highest mean rate are easy.")
    hard: int = Field(default=100, ge=0, description="So many with the lowest are hard.")


# --

RESULTS = "results.json"
"""File of a run folder; a build takes it in where it is there."""
MOST_BYTES = 200_000_000
_AGAIN = "build into a new folder"


Rates = Mapping[str, Mapping[str, float | None]]
"""Method -> file name -> completion rate; null where there is no answer."""


def write_results(folder: Path, rates: Rates, people: Rates | None = None) -> Path:
    """Put completion rates into the folder of a suite's run, in place of those that are there.

    ``rates``: method -> file name -> rate by the judge; null where there is no answer.
    """
    if not rates:
        raise ConfigError(
            "--results",
            what="the evaluation has no completion rate of any method",
            fix="judge the videos of at least one method",
        )
    path = folder / RESULTS
    with writing(path, "choose another --out", what="the file"):
        folder.mkdir(parents=True, exist_ok=True)
        write_atomic(path, [pretty_bytes({"rates": _plain(rates), "people": _plain(people or {})})])
    return path


def read_results(path: Path) -> dict[str, dict[str, dict[str, float | None]]]:
    """Return ``rates`` and ``people``, each as method -> file name -> rate."""
    try:
        document = read_json(path, MOST_BYTES, follow=True)
        results = {name: _checked(document[name]) for name in ("rates", "people")}
        if not results["rates"] or set(document) != set(results):
            raise ValueError("not rates and people")
    except (OSError, ValueError, LookupError, TypeError, AttributeError) as error:
        raise InputError.one(
            str(path),
            what="this is not a file of rates (method -> file name -> rate): "
            f"{type(error).__name__}: {reason_of(error)[:200]}",
            fix="remove the file, or write it again with --results",
        ) from error
    return results


def _checked(methods: Json) -> dict[str, dict[str, float | None]]:
    for units in methods.values():
        for rate in units.values():
            if rate is not None and not (isinstance(rate, int | float) and 0 <= rate <= 1):
                raise ValueError(f"the rate {rate!r}")
    return {str(method): dict(units) for method, units in methods.items()}


def _plain(rates: Rates) -> dict[str, Mapping[str, float | None]]:
    return {method: dict(sorted(units.items())) for method, units in sorted(rates.items())}


@dataclass(frozen=True)
class Graded:
    """What results say about the prompts of a suite."""

    levels: Mapping[str, str]  # file name -> ``easy``, ``medium`` or ``hard``, of the prompts that stay
    dropped: Mapping[str, tuple[str, str]]  # file name -> code and reason why the prompt goes
    methods: tuple[str, ...]  # the methods that the difficulty is from
    means: Mapping[str, float]  # file name -> mean rate over these methods


def grade(units: Sequence[str], rates: Rates, how: GradeSettings, people: Rates | None = None) -> Graded:
    """Return which prompts filters take out, and the difficulty of the others.

    A prompt's difficulty is its mean rate over the methods above the stated average, no answer counted as
    zero; equal rates are ordered by file name.
    """
    dropped = {**_silent(units, rates, how), **_unlike(units, rates, people or {}, how)}
    kept = [name for name in units if name not in dropped]
    averages = {method: _average(rates_of_method, kept) for method, rates_of_method in rates.items()}
    methods = tuple(sorted(method for method, value in averages.items() if value > how.above))
    if not methods:
        best = max(averages.values(), default=0.0)
        raise ConfigError(
            "grade_prompts.above", expected=f"a method whose average is above {how.above:g}",
            found=f"at most {best:.3f}", fix="judge more methods, or state a lower share",
        )  # fmt: skip
    if how.easy + how.hard > len(kept):
        raise ConfigError(
            "grade_prompts.easy, grade_prompts.hard",
            expected=f"at most {len(kept)} together, as many as prompts stay",
            found=str(how.easy + how.hard),
            fix="state smaller numbers, for example --set grade_prompts.easy=1 --set grade_prompts.hard=1",
        )
    means = {name: sum(rates[method].get(name) or 0.0 for method in methods) / len(methods) for name in kept}
    order = sorted(kept, key=lambda name: (-means[name], name))
    hard = set(order[len(order) - how.hard :])
    levels = {name: "hard" if name in hard else "medium" for name in order} | dict.fromkeys(
        order[: how.easy], "easy"
    )
    return Graded({name: levels[name] for name in kept}, dropped, methods, means)


def labelled(labels: Sequence[str], level: str) -> tuple[str, ...]:
    """Return the classes of a prompt with its difficulty: where one was, else before the number of events."""
    if known := next((label for label in labels if label in DIFFICULTIES), None):
        at = labels.index(known)
        return (*labels[:at], level, *(label for label in labels[at:] if label not in DIFFICULTIES))
    others = [label for label in labels if label not in DIFFICULTIES]
    counts = [label for label in others if label.endswith("_events")]
    return (*(label for label in others if label not in counts), level, *counts)


def _silent(units: Sequence[str], rates: Rates, how: GradeSettings) -> dict[str, tuple[str, str]]:
    if how.silent == "off":
        return {}
    most, dropped = SILENT[how.silent], {}
    for name in units:
        count = sum(own.get(name) is None for method, own in rates.items() if method not in how.exempt)
        if count >= most:
            dropped[name] = ("silent", f"no answer for {count} methods ({how.silent})")
    return dropped


def _unlike(
    units: Sequence[str], rates: Rates, people: Rates, how: GradeSettings
) -> dict[str, tuple[str, str]]:
    if how.max_difference is None:
        return {}
    dropped = {}
    for name in units:
        differences = []
        for method, rates_of_method in people.items():
            rated, judged = rates_of_method.get(name), rates.get(method, {}).get(name)
            if rated is not None and judged is not None:
                differences.append(abs(rated - judged))
        if differences and (mean := sum(differences) / len(differences)) > how.max_difference:
            dropped[name] = ("unlike_people", f"judge and people differ by {mean:.2f}")
    return dropped


def _average(rates: Mapping[str, float | None], kept: Sequence[str]) -> float:
    return sum(rates.get(name) or 0.0 for name in kept) / len(kept) if kept else 0.0


@stage(
    version=2, shape="gather", reads=("choice", "results", "unit"), writes=("grade",), settings=GradeSettings
)
def grade_prompts(items: Iterable[Item], tools: Tools) -> Mapping[str, Mapping[str, Json]]:
    """Return for each prompt its difficulty, or code and reason why it goes; null without results."""
    settings = tools.own(GradeSettings)
    rows = [(item.id, item["unit"], item["choice"] is None, item["results"]) for item in items]
    chosen = sorted((unit, name) for name, unit, stays, _ in rows if stays)
    grades: dict[str, Json] = {name: None for name, *_ in rows}
    stored = next((results for *_, results in rows if results), None)
    if stored is None or not chosen:
        return {name: {"grade": level} for name, level in grades.items()}
    assert tools.store is not None
    document = json.loads(kept_bytes(tools.store, stored, fix=_AGAIN))
    units = [unit for unit, _ in chosen]
    check_judged(units, document["rates"])
    graded = grade(units, document["rates"], settings, document["people"])
    for unit, name in chosen:
        if unit in graded.dropped:
            code, reason = graded.dropped[unit]
            grades[name] = {"code": code, "reason": reason}
        else:
            grades[name] = {"level": graded.levels[unit]}
    return {name: {"grade": level} for name, level in grades.items()}


def check_judged(units: Sequence[str], rates: Rates) -> None:
    """Check that each method was judged on each prompt: what nobody looked at is neither silent nor hard."""
    for method, rates_of_method in rates.items():
        if unjudged := [name for name in units if name not in rates_of_method]:
            raise ConfigError(
                "--results", expected=f"{method} to be judged on all {len(units)} prompts",
                found=f"it was not on {len(unjudged)}, such as {unjudged[0]}",
                fix="judge these too, or leave out the method or these prompts; to grade by no results,"
                " remove results.json from the run",
            )  # fmt: skip


# -- Stage: captions of real videos and new prompts, written by a model; prompts by people stay as they are

CAPTION, WRITE = "events/caption_video", "events/write_prompt"
_TAKEN = ("prompt", "event_list", "participants", "creative", "origin", "given")


@stage(
    version=4,
    reads=("seed", "slot"),
    writes=("drafted", "drafted_by"),
    libraries=("pillow", "av"),
    optional=("av",),
    keep={"needs_model": "--model"},
    reject_codes={"needs_model": "a model has to write this prompt, and none is named"},
    settings=WriteSettings,
    asks=(CAPTION, WRITE),
)
async def write_prompts(item: Item, tools: Tools) -> Outcome:
    """Return prompt, events, participants and origin as far as they are known, and who wrote them."""
    seed, slot = item["seed"], item["slot"]
    if seed is not None and (seed["prompt"] or "given" in seed):
        drafted = {name: seed.get(name) for name in _TAKEN}
        return Made(
            {"drafted": drafted, "drafted_by": f"hand:{seed['author']}" if seed["author"] else "author"}
        )
    if tools.asker is None:
        return Rejected("needs_model", "name one with --model")
    if slot is not None:
        asked = {name: slot[name] for name in ("subject", "creative", "examples")}
        return await _ask(tools, WRITE, asked, (), "guided")
    try:
        assert seed is not None
        pictures = frames_of(Path(seed["video"]), tools)
    except MediaProblem as problem:
        return Failed(problem.code, str(problem))
    return await _ask(tools, CAPTION, {"count": len(pictures)}, pictures, "retrieval")


def frames_of(path: Path, tools: Tools) -> tuple[Image, ...]:
    """Return frames of a video, taken evenly and encoded without metadata."""
    from ...media.images import Picture, fitted
    from ...media.video import probe, sample_frames

    assert isinstance(tools.settings, WriteSettings)
    count = min(tools.settings.frames, probe(path).frames)
    taken = (Picture(fitted(frame.image, 768), "VIDEO") for frame in sample_frames(path, count))
    return tuple(Image(encode(picture, format="jpeg", quality=90), "image/jpeg") for picture in taken)


async def _ask(
    tools: Tools, prompt_id: str, inputs: dict[str, Json], pictures: tuple[Image, ...], origin: str
) -> Outcome:
    parts = [part for number, picture in enumerate(pictures, 1) for part in (f"Frame {number}", picture)]
    answer = await ask(tools, prompt_id, read_prompt, parts, **inputs)
    drafted = {**answer.value, "origin": origin, "given": None}
    if origin == "retrieval":
        drafted["creative"] = False
    return Made({"drafted": drafted, "drafted_by": answer.maker})


def read_prompt(reply: Json) -> dict[str, Any]:
    prompt = " ".join(str(reply["prompt"]).split())
    events = [" ".join(str(event).split()) for event in reply["event_list"]]
    if not prompt:
        raise BadReply("$.prompt: expected one sentence, found nothing")
    # How many there may be, and that they differ, is for the conditions: a short video has one event.
    if not events or not all(events):
        raise BadReply("$.event_list: expected the events of the prompt, found none, or an empty one")
    if not reply["participants"]:
        raise BadReply("$.participants: expected at least one, found none")
    kinds = list(dict.fromkeys(reply["participants"]))
    drafted = {"prompt": prompt, "event_list": events, "participants": kinds}
    return {**drafted, "creative": bool(reply["creative"])}


# -- Stage: near-duplicates, and the most different of the prompts that a model wrote
#
# Prompts of a suite that is kept whole stay in any case. Prompts by people come next and stay; of a model's,
# the one that is least like any chosen one is taken next. Similarity is the token-set ratio of normalised
# prompts without articles and joining words.

_STAYS, _BY_PEOPLE, _GUIDED = range(3)


def _rank(item: Item) -> tuple[int, float]:
    """Return what comes first: what stays, then people's prompts, those of a suite in its order."""
    order = math.inf if item["place"] is None else item["place"]
    if item["stays"]:
        return _STAYS, order
    return _GUIDED if item["entry"]["origin"] == "guided" else _BY_PEOPLE, order


@stage(
    version=2,
    shape="gather",
    reads=("entry", "place", "stays", "unit"),
    writes=("choice",),
    libraries=("rapidfuzz",),
    settings=SelectSettings,
)
def select_prompts(items: Iterable[Item], tools: Tools) -> Mapping[str, Mapping[str, Json]]:
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


@stage(
    version=3,
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
)
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


# -- What was chosen becomes an entry of the suite; the others are rejected with their reason


@stage(
    version=3,
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
)
def settle_prompts(item: Item, tools: Tools) -> Outcome:
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
