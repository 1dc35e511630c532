"""What the public code of StoryEval asks and how it reads replies; its texts are those of a set.

Source: ``evaluate.py`` at d095e63. A system text, the question, then all frames without numbers, in three
messages; the list of a reply is every number behind its last mark.
"""

import re
from collections.abc import Mapping, Sequence

from ...engine.stage import BadReply
from ...models.chat import ChatRequest, Image, Message
from ...models.spec import ModelSettings, parse_spec
from ...prompts.sets import TextSet
from ...schemas.canonical import Json
from ..judging.presets import Published
from .votes import MARK, Completion

SYSTEM, TOKEN, DESCRIBE, SCORE = "system", "image_token", "describe", "score"
MAX_TOKENS = 2000
"""Most tokens of a reply."""
END = "{END}"
"""What a reply ends with, as the system text asks: nothing behind it is generated."""
_STOPPING: Mapping[str, Json] = {
    "anthropic": {"stop_sequences": [END]},
    "google": {"generationConfig": {"stopSequences": [END]}},
}
_NUMBER = re.compile(r"(?:(?<!\d)[-\N{MINUS SIGN}])?\d{1,9}(?:\.\d{1,9})?")
_FLAGS = {"0": 0, "1": 1, "\N{FULLWIDTH DIGIT ZERO}": 0, "\N{FULLWIDTH DIGIT ONE}": 1}
_LIST = re.compile(r"\[COMPLETE_LIST\]:\s*(.*)")

PUBLISHED = Published(
    "events",
    "storyeval",
    (SYSTEM, TOKEN, DESCRIBE, SCORE),
    {
        "storyeval@d095e63": {
            "take_frames.size": [512, 320], "take_frames.stretching": "area", "take_frames.quality": 95,
            "take_frames.subsampled": True, "judge_events.votes": 3, "judge_events.retries": 0,
            "run.attempts": 3,
        },
    },
    {"take_frames.stretching": "area"},
)  # fmt: skip


def official_request(
    texts: TextSet, question: str, pictures: Sequence[Image], settings: ModelSettings, vote: int
) -> ChatRequest:
    """Return a request as the public code builds it.

    ``pictures``: the frames.
    """
    assert settings.model is not None
    provider = parse_spec(settings.model).provider
    stopping = _STOPPING.get(provider, {"stop": END, "user": f"seed_{vote}"})
    return ChatRequest(
        model=settings.model,
        messages=(
            Message("system", (texts.text(SYSTEM),)),
            Message("user", (question,)),
            Message("user", tuple(pictures)),
        ),
        temperature=settings.temperature,
        max_tokens=settings.max_tokens or MAX_TOKENS,
        extra=stopping,
    )


def describe_question(texts: TextSet) -> str:
    """Return the question for a description."""
    return f"{texts.text(TOKEN)}\n{texts.text(DESCRIBE)}"


def score_question(texts: TextSet, description: str, prompt: str, events: Sequence[str]) -> str:
    """Return the question which events are completed."""
    listed = "\n".join(f"{number}. {event}" for number, event in enumerate(events, 1))
    slots = {
        "description": description.strip(), "prompt": prompt, "count": len(events), "events": listed
    }  # fmt: skip
    return f"{texts.text(TOKEN)}\n{texts.fill(SCORE, slots)}"


def read_completion(text: str, events: int) -> Completion:
    """Return the completion list of a reply, as the public code reads it.

    Departure: a number that is neither 0 nor 1 is no flag here, and no two flags as 0.1 or one as -1 would be
    there; none of the 6,345 published lists has one.
    """
    lists = _LIST.findall(text)
    if not lists:
        raise BadReply(f"no {MARK} in the reply")
    numbers = _NUMBER.findall(lists[-1])
    if len(numbers) != events:
        raise BadReply(f"{len(numbers)} flags for {events} events")
    if any(number not in _FLAGS for number in numbers):
        raise BadReply(f"flags that are neither 0 nor 1: {', '.join(numbers)[:80]}")
    flags = tuple(_FLAGS[number] for number in numbers)
    return Completion(flags, (None,) * events)
