"""Stage: the layouts of an episode, shot after shot: by a model whose answers keep the rules, or plain.

An answer that breaks a rule is sent back once with what is wrong. Where there is still none of use, the
plain layout stands in, and says why.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial

from ....engine.stage import (
    REHEARSED,
    UNUSABLE,
    Ask,
    BadReply,
    Item,
    Made,
    NoAnswer,
    Outcome,
    StageSpec,
    Tools,
)
from ....models.spec import ModelSettings
from ....prompts.loader import load_prompt
from ....schemas.canonical import Json
from ....schemas.entities import EntityEpisode, EpisodeShot
from .layout import (
    ANGLES,
    CELLS,
    Angle,
    Beside,
    Keyframe,
    Pan,
    ShotCast,
    ShotLayout,
    Standing,
    cast_of,
    goes_on,
    places_of,
    plain_layout,
)
from .packets import KnownEntities

# -- Whether a layout is valid: the rules that every layout keeps, whoever planned it

MOST_KEYFRAMES = 8
"""Most keyframes of a shot."""
AGAINST: Mapping[Pan, Pan] = {"none": "none", "left": "right", "right": "left"}
"""Pan -> where it moves what stays in the frame."""


def layout_faults(layout: ShotLayout, cast: ShotCast) -> list[str]:
    """Return what is wrong with a layout, each as a sentence that a model can act on; none where it is valid.

    1. There are one to eight keyframes, and nobody and nothing in them that is not scheduled.
    2. Every character, place and object that stands alone is in at least one of them, once in each.
    3. No two characters share a cell; an object stands beside a character of its keyframe, or beside nobody.
    4. Where a shot goes on from another, its first keyframe has all who stay. If the camera does not turn,
       they are where they were, and so is the view; if it turns, nobody moves with it, their order stays, and
       the view moves with it.
    """
    faults = []
    if len(layout.keyframes) > MOST_KEYFRAMES:
        faults.append(f"there are {len(layout.keyframes)} keyframes; at most {MOST_KEYFRAMES}")
    for number, keyframe in enumerate(layout.keyframes, 1):
        faults += [f"keyframe {number}: {fault}" for fault in _keyframe_faults(keyframe, cast)]
    faults += _missing(layout.keyframes, cast)
    if faults:
        return faults  # the rest is about characters who are there
    return list(_continuation_faults(layout.keyframes[0], cast))


def _keyframe_faults(keyframe: Keyframe, cast: ShotCast) -> Iterator[str]:
    names = [standing.name for standing in keyframe.characters]
    things = [beside.name for beside in keyframe.objects]
    yield from _strangers("character", names, cast.characters)
    yield from _strangers("object", things, cast.objects)
    if keyframe.location is not None or cast.locations:
        yield from _strangers("place", [keyframe.location or "none"], cast.locations)
    for cell, count in Counter(standing.cell for standing in keyframe.characters).items():
        if count > 1:
            sharing = [standing.name for standing in keyframe.characters if standing.cell == cell]
            yield f"{' and '.join(sharing)} are both {cell}"
    for beside in keyframe.objects:
        if beside.user is not None and beside.user not in names:
            yield f"{beside.name} stands beside {beside.user}, who is not there"


def _strangers(noun: str, names: Sequence[str], scheduled: Iterable[str]) -> Iterator[str]:
    known = tuple(scheduled)
    for name, count in Counter(names).items():
        if name not in known:
            listed = "; ".join(known) or "none"
            yield f"{name} is no {noun} of this shot; there is: {listed}"
        elif count > 1:
            yield f"{name} is there {count} times"


def _missing(keyframes: Sequence[Keyframe], cast: ShotCast) -> Iterator[str]:
    shown = {standing.name for keyframe in keyframes for standing in keyframe.characters}
    things = {beside.name for keyframe in keyframes for beside in keyframe.objects}
    places = {keyframe.location for keyframe in keyframes}
    for name in (
        *(name for name in cast.characters if name not in shown),
        *(name for name in cast.locations if name not in places),
        *(name for name in cast.objects if name not in things),
    ):
        yield f"{name} is in no keyframe"


def _continuation_faults(first: Keyframe, cast: ShotCast) -> Iterator[str]:
    if cast.before is None:
        return
    there = places_of(first)
    for name in cast.retained:
        if name not in there:
            yield f"keyframe 1: {name} was there when the shot before ended, and is missing"
    yield from (f"keyframe 1: {fault}" for fault in pan_faults(cast.before, first, cast.retained))


def pan_faults(before: Keyframe, after: Keyframe, retained: Iterable[str]) -> list[str]:
    """Return what a keyframe gets wrong about the camera, against the arrangement that it goes on from."""
    old, new = places_of(before), places_of(after)
    moves = {name: new[name] - old[name] for name in retained if name in new}
    faults = []
    way = {"none": 0, "left": 1, "right": -1}[after.pan]
    for name, move in moves.items():
        where = f"{name} was {CELLS[old[name]]} and is {CELLS[new[name]]}"
        if way == 0 and move:
            faults.append(f"{where}, though the camera does not turn")
        elif move * way < 0:
            faults.append(f"{where}: when the camera turns {after.pan}, who stays moves {AGAINST[after.pan]}")
    names = sorted(moves, key=old.__getitem__)
    if [old[name] for name in names] and sorted(names, key=new.__getitem__) != names:
        faults.append(f"{', '.join(names)} stood in this order from left to right; a pan does not change it")
    if before.location is not None and before.location == after.location:
        faults += _angle_faults(before.angle, after)
    return faults


def _angle_faults(angle: Angle, after: Keyframe) -> list[str]:
    step = ANGLES.index(after.angle) - ANGLES.index(angle)
    way = {"none": 0, "left": -1, "right": 1}[after.pan]
    if (way == 0 and step) or step * way < 0:
        said = "does not turn" if way == 0 else f"turns {after.pan}"
        return [f"the view was {angle} and is {after.angle}, though the camera {said}"]
    return []


# -- The layouts of an episode, shot after shot

PROMPT = "memory/layout_shot"
STANDS_IN = UNUSABLE | {"bad_request", "too_long"}
"""Codes of missing answers for which the plain layout stands in."""


class LayoutSettings(ModelSettings):
    """Who plans the layouts; without a model they are the plain ones."""


SPEC = StageSpec(
    name="plan_layouts", version=2, shape="map", reads=("script", "known"), writes=("layouts",),
    settings=LayoutSettings, asks=(PROMPT,), patience=20.0,
)  # fmt: skip


async def run(item: Item, tools: Tools) -> Outcome:
    """Return the layout of each shot, in story order."""
    script = EntityEpisode.model_validate(item["script"])
    known = KnownEntities.model_validate(item["known"])
    layouts: list[ShotLayout] = []
    shots: list[EpisodeShot] = []
    open_question: NoAnswer | None = None
    for shot in script.shots():
        before = layouts[-1].state if layouts and goes_on(shot, shots[-1]) else None
        cast = cast_of(shot, known.alone, before)
        layout = plain_layout(cast)
        if tools.asker is not None and tools.own(LayoutSettings).model is not None:
            try:
                layout = await _asked(cast, script.story_overview or "", tools)
            except NoAnswer as none:
                if none.code == REHEARSED:
                    open_question = none
                elif none.code in STANDS_IN:
                    layout = layout.model_copy(update={"reason": f"{none.code}: {none.reason}"[:500]})
                else:
                    raise
        layouts.append(layout)
        shots.append(shot)
    if open_question is not None:
        raise open_question
    return Made({"layouts": [layout.as_json() for layout in layouts]})


async def _asked(cast: ShotCast, overview: str, tools: Tools) -> ShotLayout:
    assert tools.asker is not None
    prompt, settings = load_prompt(PROMPT), tools.own(LayoutSettings)
    request = prompt.request(
        settings, tools.seed, action=cast.action, before=_shown(cast.before), overview=overview,
        characters=list(cast.characters), locations=list(cast.locations), objects=list(cast.objects),
        retained=list(cast.retained), entering=list(cast.entering), leaving=list(cast.leaving),
    )  # fmt: skip
    question = Ask(request, partial(read_layout, cast), prompt.label, sample=settings.sample)
    return (await tools.asker.ask(question)).value


def read_layout(cast: ShotCast, reply: Json) -> ShotLayout:
    """Return the layout in a reply."""
    keyframes = tuple(_keyframe(entry) for entry in reply["keyframes"])
    if not keyframes:
        raise BadReply("there is no keyframe")
    layout = ShotLayout(
        shot=cast.shot, continues=cast.before is not None, retained=cast.retained, entering=cast.entering,
        leaving=cast.leaving, keyframes=keyframes, by="model", reasoning=str(reply["reasoning"])[:1000],
    )  # fmt: skip
    faults = layout_faults(layout, cast)
    if faults:
        raise BadReply("; ".join(faults))
    return layout


def _keyframe(entry: Json) -> Keyframe:
    try:
        return Keyframe(
            characters=tuple(Standing.model_validate(standing) for standing in entry["characters"]),
            objects=tuple(
                Beside(name=beside["name"], user=beside["beside"]) for beside in entry["objects"]
            ),
            location=entry["place"], angle=entry["camera"], pan=entry["pan"], shows=str(entry["shows"])[:300],
        )  # fmt: skip
    except ValueError as error:
        raise BadReply(f"a keyframe cannot be read: {str(error)[:300]}") from error


def _shown(before: Keyframe | None) -> Json:
    """Return the arrangement before, as the prompt shows it."""
    if before is None:
        return None
    return {
        "characters": [standing.as_json() for standing in before.characters],
        "camera": before.angle, "place": before.location, "shows": before.shows,
    }  # fmt: skip
