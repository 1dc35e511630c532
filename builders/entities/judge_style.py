"""Stage: what kind of footage a shot is, asked of a chat model about a few shots of each video. Optional."""

from ...engine.stage import UNAVAILABLE, Item, Made, NoAnswer, Outcome, StageSpec, Tools
from ...models.spec import ModelSettings
from ...schemas.canonical import Json
from .pictures import Shown, ask

PROMPT = "entities/judge_style"
DOCUMENTARY = ("documentary", "interview", "news", "presentation")
"""Kinds of documentary-style footage, in the words of the prompt."""

SPEC = StageSpec(
    name="judge_style",
    version=1,
    shape="map",
    reads=("shot", "quality"),
    writes=("style",),
    settings=ModelSettings,
    asks=(PROMPT,),
)


async def run(item: Item, tools: Tools) -> Outcome:
    """Return the ``kind`` of footage, why, and who said so; null for shots that nobody is asked about.

    Where there is no answer the kind is null, with the reason why.
    """
    view = item["quality"]["view"]
    if tools.asker is None or view is None:
        return Made({"style": None})
    try:
        answer = await ask(tools, PROMPT, read_kind, [Shown("The frame:", (view,))])
    except NoAnswer as failure:
        if failure.code == UNAVAILABLE:
            raise
        return Made({"style": {"kind": None, "reason": failure.code, "by": None}})
    return Made({"style": {**answer.value, "by": answer.maker}})


def read_kind(reply: Json) -> dict[str, Json]:
    """Return the kind of footage and the reason for it."""
    return {"kind": reply["kind"], "reason": str(reply["reason"])}
