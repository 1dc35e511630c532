"""Stage: judges see the panels of a page shuffled, and say in which order they belong."""

from collections.abc import Iterator
from functools import partial
from typing import Any

from fabula.engine.stage import BadReply, Item, StageSpec, Tools
from fabula.evaluation.judging.answers import Asking, pictures_of
from fabula.evaluation.judging.packets import Packet
from fabula.evaluation.judging.settings import JudgeSettings
from fabula.prompts.loader import load_prompt
from fabula.schemas.canonical import Json, digest

PROMPT = "comic_pages:panel_order"
ASKED = "panels.order"
"""What judgements of this protocol are about."""


def _questions(item: Item, tools: Tools) -> Iterator[Packet]:
    """Yield what is asked about a page: nothing where there are not two panels to show."""
    page, frames = item["shown"]["story_id"], item["frames"]
    if len(frames) < 2:
        return
    shuffled = sorted(range(len(frames)), key=lambda panel: digest([tools.seed, page, panel]))
    pictures = pictures_of([frames[panel] for panel in shuffled], tools.store)
    inputs = {"count": len(frames)}
    read = partial(read_order, shuffled=shuffled)
    yield Packet(ASKED, page, "image", load_prompt(PROMPT), inputs, pictures, read)


def read_order(reply: Json, shuffled: list[int]) -> dict[str, Any]:
    """Return the panels, from 1, in the order that a judge gave.

    Raises:
        BadReply: it does not name each image once.
    """
    if sorted(reply["order"]) != list(range(1, len(shuffled) + 1)):
        raise BadReply(f"$.order: expected each of 1 to {len(shuffled)} once, found {reply['order'][:20]}")
    return {"order": [shuffled[number - 1] + 1 for number in reply["order"]]}


JUDGE_ORDER = Asking(
    StageSpec(
        name="judge_order", version=1, shape="map", reads=("shown", "frames"), writes=("orders",),
        settings=JudgeSettings, asks=(PROMPT,),
    ),
    _questions,
)  # fmt: skip
