"""Stage: the script as it is to stand: every slot is of the registry and named in the action of its shot.

In several passes a model adds mentions or drops slots, and rewrites actions that contradict a description or
cannot be; in the end rules drop what is still not named, and report what remains. See :mod:`.guarantees`.
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from pydantic import Field

from ...engine.stage import Item, NoAnswer, Tools
from ...schemas.canonical import Json
from ...schemas.text import normalize_answer
from ..step import Drafted, PlannerSettings, Problems, Step, by_number
from .list_entities import (
    Episode,
    chunks_of,
    episode_of,
)
from .names import (
    Checked,
    Entity,
    Repair,
    ScriptShot,
    mentions,
    settle,
    with_slots,
    without_article,
    without_slots,
)
from .pictures import action_of_reply, attempt, check_english, noted, tidy, why
from .script_parts import shot_told

Open = Mapping[int, tuple[Sequence[Entity], Sequence[Entity]]]
"""Number of a shot -> the entities that its action misses, and those that it names besides."""


class Settings(PlannerSettings):
    passes: int = Field(default=3, ge=1, le=10, description="Most passes through the script.")
    at_once: int = Field(default=8, ge=1, le=100, description="Shots that a model is asked about at once.")
    context: int = Field(default=2, ge=0, le=20, description="Shots before and after that it is shown.")


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


@dataclass(slots=True)
class _Work:
    """An episode under verification, what was done so far, and who did it.

    ``tried`` holds what was put to the model before, and ``clean`` the shots in which it found nothing wrong,
    each with the action that it was asked about.
    """

    episode: Episode
    repairs: list[Repair] = field(default_factory=list)
    makers: list[str] = field(default_factory=list)
    clean: set[tuple[int, str]] = field(default_factory=set)
    failed: set[str] = field(default_factory=set)


def _episode(item: Item) -> Episode:
    episode = episode_of(item)
    before = [Repair.model_validate(repair) for repair in item["description_repairs"]]
    script = episode.script.model_copy(update={"repairs": (*episode.script.repairs, *before)})
    return episode.with_script(script)


def _fields(checked: Checked) -> Json:
    made = checked.as_json()
    return {"script": made["script"], "registry": made["entities"]}


async def verify(tools: Tools, episode: Episode) -> Drafted[Json]:
    """Return script and registry as they are to stand.

    In each pass mentions are settled first, then contradictions and impossible actions are looked for where
    something changed. It ends when nothing changes, or with the last pass; the rules have the last word.
    """
    settings = tools.own(Settings)
    work = _Work(episode)
    for _ in range(settings.passes):
        before = (work.episode.script, work.episode.entities)
        await _settle_mentions(tools, work)
        await _find_problems(tools, work)
        if (work.episode.script, work.episode.entities) == before:
            break
    script = work.episode.script
    script = script.model_copy(update={"repairs": (*script.repairs, *work.repairs)})
    checked = settle(script, work.episode.entities)
    return Drafted(_fields(checked), "; ".join(dict.fromkeys([*work.makers, "rules@1"])))


def open_shots(episode: Episode) -> Open:
    """Return the shots whose actions and schedules do not agree."""
    shots: dict[int, tuple[Sequence[Entity], Sequence[Entity]]] = {}
    for shot in episode.script.shots:
        named = mentions(shot.action, episode.entities)
        shown = episode.scheduled(shot.number)
        missing = [entity for entity in shown if entity.label not in named]
        extra = [entity for entity in episode.entities if entity.label in named and entity not in shown]
        if missing or extra:
            shots[shot.number] = (missing, extra)
    return shots


async def _settle_mentions(tools: Tools, work: _Work) -> None:
    settings = tools.own(Settings)
    waiting = open_shots(work.episode)
    numbers = list(waiting)
    parts = [
        {number: waiting[number] for number in numbers[part.start : part.stop]}
        for part in chunks_of(len(numbers), settings.at_once)
    ]
    answers = await asyncio.gather(*(_ask_mentions(tools, work.episode, part) for part in parts))
    for part, answer in zip(parts, answers, strict=True):
        if not isinstance(answer, Drafted):
            _fail(work, "mentions", list(part), answer)
            continue
        work.makers.append(answer.maker)
        settled, strange = answer.value
        work.repairs += strange
        for number, how in settled.items():
            _take(work, number, how, part[number])


async def _ask_mentions(
    tools: Tools, episode: Episode, part: Open
) -> Drafted[tuple[dict[int, Settled], list[Repair]]] | NoAnswer:
    shots = {shot.number: shot for shot in episode.script.shots}
    actions = [shot.action for shot in episode.script.shots]
    around = zip(["", *actions], [*actions[1:], ""], strict=False)
    neighbours = dict(zip(shots, around, strict=True))
    return await attempt(
        tools,
        "entities/repair_mentions",
        lambda reply: read_settled(reply, part),
        overview=episode.script.overview,
        shots=[
            {
                **shot_told(episode, shots[number]),
                "action_before": neighbours[number][0],
                "action_after": neighbours[number][1],
                "missing": [{"name": entity.name, "looks": entity.description} for entity in missing],
                "extra": [entity.name for entity in extra],
            }
            for number, (missing, extra) in part.items()
        ],
    )


def _take(work: _Work, number: int, how: Settled, asked: tuple[Sequence[Entity], Sequence[Entity]]) -> None:
    """Take over how the model settles a shot, and note what came of it."""
    missing, extra = asked
    old = next(shot for shot in work.episode.script.shots if shot.number == number)
    named = mentions(how.action, work.episode.entities)
    for thing in missing:
        if thing.label in how.dropped:
            work.repairs.append(
                noted("unmentioned", f"{thing.name} does not fit the action", "dropped", number, thing.label)
            )
        elif thing.label in named:
            work.repairs.append(
                noted("unmentioned", f"{thing.name} was not named", "added", number, thing.label)
            )
    for thing in extra:
        if thing.label in how.scheduled:
            said = f"{thing.name} was named and not scheduled"
            work.repairs.append(noted("unscheduled-mention", said, "added", number, thing.label))
        elif thing.label not in named:
            said = f"{thing.name} was named and not scheduled"
            work.repairs.append(noted("unscheduled-mention", said, "rewritten", number, thing.label))
    entities = []
    for entity in work.episode.entities:
        if entity.label in how.dropped:
            entities.append(without_slots(entity, [number]))
        elif entity.label in how.scheduled:
            entities.append(with_slots(entity, [number]))
        else:
            entities.append(entity)
    work.episode = replace(work.episode, entities=tuple(entities))
    _rewrite(work, old, how.action)


def _rewrite(work: _Work, old: ScriptShot, action: str) -> None:
    shots = tuple(
        shot.model_copy(update={"action": action}) if shot.number == old.number else shot
        for shot in work.episode.script.shots
    )
    work.episode = work.episode.with_script(work.episode.script.model_copy(update={"shots": shots}))


async def _find_problems(tools: Tools, work: _Work) -> None:
    """Look for contradictions in the shots that were not found to be clean as they are."""
    settings = tools.own(Settings)
    shots = work.episode.script.shots
    parts = [
        part
        for part in chunks_of(len(shots), settings.at_once)
        if any((shots[at].number, shots[at].action) not in work.clean for at in part)
    ]
    answers = await asyncio.gather(*(_ask_problems(tools, work.episode, part) for part in parts))
    for part, answer in zip(parts, answers, strict=True):
        numbers = [shots[at].number for at in part]
        if not isinstance(answer, Drafted):
            _fail(work, "contradictions", numbers, answer)
            continue
        work.makers.append(answer.maker)
        problems, strange = answer.value
        work.repairs += strange
        wrong = {problem.shot: problem for problem in problems}
        for at in part:
            shot = shots[at]
            if shot.number in wrong:
                _put_right(work, shot, wrong[shot.number])
            else:
                work.clean.add((shot.number, shot.action))


def _put_right(work: _Work, shot: ScriptShot, problem: Problem) -> None:
    """Take over an action that was put right, unless it loses the name of something scheduled."""
    named = mentions(problem.action, work.episode.entities)
    lost = [entity.name for entity in work.episode.scheduled(shot.number) if entity.label not in named]
    if lost:
        said = f"{problem.found}; the rewritten action lost {', '.join(lost)} and was not taken"
        work.repairs.append(noted(problem.kind, said, "left", shot.number))
        work.clean.add((shot.number, shot.action))
        return
    work.repairs.append(noted(problem.kind, problem.found, "rewritten", shot.number))
    _rewrite(work, shot, problem.action)


async def _ask_problems(
    tools: Tools, episode: Episode, part: range
) -> Drafted[tuple[list[Problem], list[Repair]]] | NoAnswer:
    settings = tools.own(Settings)
    known = [shot_told(episode, shot) for shot in episode.script.shots]
    here = known[part.start : part.stop]
    numbers = [line["shot"] for line in here]
    shown = [entity for entity in episode.entities if set(entity.shots) & set(numbers)]
    return await attempt(
        tools,
        "entities/check_actions",
        lambda reply: read_problems(reply, numbers),
        after=known[part.stop : part.stop + settings.context],
        before=known[max(0, part.start - settings.context) : part.start],
        entities=[
            {"kind": entity.kind, "name": entity.name, "looks": entity.description} for entity in shown
        ],
        shots=here,
    )


def _fail(work: _Work, what: str, numbers: Sequence[int], failure: NoAnswer) -> None:
    """Note, once for the same shots, that the model did not check them."""
    said = f"{what} of shots {numbers[0]} to {numbers[-1]} were not checked: {why(failure)}"
    if said not in work.failed:
        work.failed.add(said)
        work.repairs.append(noted("unchecked", said, "left"))


def read_settled(
    reply: Json, shots: Mapping[int, tuple[Sequence[Entity], Sequence[Entity]]]
) -> tuple[dict[int, Settled], list[Repair]]:
    """Return how each shot is settled, and what the reply says of entities that were not in question.

    ``shots``: number -> the entities that its action misses, and those that it names besides.
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
        made[number] = Settled(
            action_of_reply(entry["action"], f"shot {number}", problems), labels[0], labels[1]
        )
    problems.settle()
    return made, repairs


def _labels(
    names: Sequence[str], asked: Sequence[Entity], shot: int, repairs: list[Repair]
) -> tuple[str, ...]:
    known = {normalize_answer(without_article(entity.name)): entity.label for entity in asked}
    labels = []
    for name in names:
        label = known.get(normalize_answer(without_article(tidy(name))))
        if label is None:
            said = f"{tidy(name)[:60]!r} was not in question"
            repairs.append(noted("unknown-entity", said, "dropped", shot))
        else:
            labels.append(label)
    return tuple(dict.fromkeys(labels))


def read_problems(reply: Json, numbers: Sequence[int]) -> tuple[list[Problem], list[Repair]]:
    """Return what is wrong in some shots, one problem a shot, and what the reply says of other shots."""
    problems = Problems()
    check_english(reply, problems)
    made: dict[int, Problem] = {}
    repairs: list[Repair] = []
    for entry in reply["problems"]:
        number, fault = entry["shot"], tidy(entry["found"])[:200]
        if number not in numbers:
            said = f"a problem in shot {number}, which was not asked about"
            repairs.append(noted("unknown-shot", said, "dropped"))
            continue
        action = action_of_reply(entry["action"], f"shot {number}", problems)
        made.setdefault(number, Problem(number, entry["kind"], fault, action))
    problems.settle()
    return list(made.values()), repairs


STEP = Step(
    id="entities/verify_script",
    version=2,
    writes=("script", "registry"),
    by="verified_by",
    reads=("entities", "written", "pictures", "overview", "described", "description_repairs", "enriched"),
    sketch=_episode,
    rules=lambda episode, settings: _fields(settle(episode.script, episode.entities)),
    ask=verify,
    asks=("entities/repair_mentions", "entities/check_actions"),
    settings=Settings,
)
