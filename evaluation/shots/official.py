"""What the public code of ViStoryBench asks of pictures and how it reads ratings; its texts are of a set.

Source: ``prompt_align_evaluator.py``, ``gptv_utils.py``, ``cids_evaluator.py`` at 514cc31. One message holds
rubric, text and picture; for a single character the rubric is the system text, and the name stands apart.
The rating is the first number behind ``score:``; where there is none, the question is asked again, a little
warmer.
"""

import re

from ...engine.stage import BadReply
from ...models.chat import Image, Message
from ...prompts.sets import TextSet
from ...schemas.canonical import Json
from ..judging.packets import GivenPacket
from ..judging.presets import Published
from ..metrics.alignment import MOST

PUBLISHED = Published(
    "images",
    "vistorybench",
    ("scene", "shot", "interaction", "action", "character"),
    {
        "vistorybench@514cc31": {
            "prepare_views.size": [512, 512], "prepare_views.stretching": "bicubic",
            "prepare_views.quality": 75, "prepare_views.subsampled": True, "judge_alignment.votes": 1,
            "judge_alignment.interaction_from": 0, "judge_alignment.temperature": 0.0, "run.attempts": 10,
        },
    },
)  # fmt: skip
MAX_TOKENS, SEED, WARMER = 512, 123, 0.1
"""Most tokens of a reply, the seed of every request, and by how much each attempt is warmer."""
_SCORE = re.compile(r"(?:score|Score):\s*[a-zA-Z]*\s*(\d{1,9})")


def official_packet(
    texts: TextSet, item: str, dimension: str, text: str, picture: Image, character: str | None = None
) -> GivenPacket:
    """Return a question as the public code asks it."""
    rubric = texts.text(dimension)
    if character is None:
        messages = [Message("user", (rubric, text, picture))]
    else:
        named = texts.fill("character", {"name": character})
        small = Image(picture.data, picture.media_type, picture.sha256, "low")
        messages = [Message("system", (rubric,)), Message("user", (text, named, small))]
    return GivenPacket(
        "alignment", item, "image", texts.label(dimension), tuple(messages), read_score,
        max_tokens=MAX_TOKENS, seed=SEED, warmer=WARMER,
    )  # fmt: skip


def read_score(reply: Json) -> dict[str, Json]:
    """Return the rating of a reply, as the public code reads it.

    Departure: a number above 4 is no rating here, and a reply without one is not 0.
    """
    match = _SCORE.search(str(reply))
    if match is None:
        raise BadReply("no score in the reply")
    rating = int(match[1])
    if rating > MOST:
        raise BadReply(f"expected a score of 0 to {MOST}, found {rating}")
    return {"rating": rating, "reason": str(reply)}
