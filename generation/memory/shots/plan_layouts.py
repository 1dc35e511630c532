"""Stage: the layouts of an episode, shot after shot: by a model whose answers keep the rules, or plain.

An answer that breaks a rule is sent back once with what is wrong. Where there is still none of use, the
plain layout stands in, and says why.
"""

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
from .check_layout import layout_faults
from .known import KnownEntities
from .layout import Beside, Keyframe, ShotCast, ShotLayout, Standing, cast_of, goes_on, plain_layout

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
