"""Which prompt a request to a model server was made with, and the parts of it that a stand-in reads."""

import re
from collections.abc import Mapping, Sequence
from functools import cache
from itertools import pairwise
from typing import TypeVar

from ..prompts.loader import load_prompt, prompt_ids
from ..schemas.text import is_unspaced
from .model_server import Asked

Answer = TypeVar("Answer")

FENCE = re.compile(r"<<<([0-9a-f]{12,64})\n(.*?)\n\1>>>", re.DOTALL)
"""A text between its marks, as the filter ``fenced`` puts it into a prompt: mark, text."""


def prompt_of(asked: Asked) -> str | None:
    """Return the id of the prompt that a request was made with, by its system message; None if unknown."""
    return _prompts().get(asked.system.strip())


def answering(asked: Asked, answers: Mapping[str, Answer]) -> Answer:
    """Return what answers the prompt of a request, of those that a stand-in knows."""
    prompt = prompt_of(asked) or ""
    if prompt not in answers:
        raise ValueError(f"not a prompt that this model knows: {prompt or asked.system[:80]!r}")
    return answers[prompt]


def user_text(asked: Asked) -> str:
    """Return the first message of the user: what the prompt says after its system message."""
    return "".join(part for part in asked.messages[0].parts if isinstance(part, str))


def fenced_texts(text: str) -> list[str]:
    """Return the texts that stand between marks, in order."""
    return [match[2] for match in FENCE.finditer(text)]


def fence_after(text: str, before: str) -> str:
    """Return the text between the marks that follow a line with some words."""
    match = re.search(re.escape(before) + r"[^\n]*\n" + FENCE.pattern, text, re.DOTALL)
    if match is None:
        raise ValueError(f"nothing between marks after {before!r}")
    return match[2]


def lines_after(text: str, before: str) -> list[str]:
    """Return the numbered texts between the marks that follow a line with some words."""
    return re.findall(r"\[\d+\] (.*)", fence_after(text, before))


def divided(segments: Sequence[str], count: int, joiner: str | None = None) -> tuple[list[int], list[str]]:
    """Return the first segments, from 1, of so many parts of equal length, and the texts of the parts.

    ``joiner``: what stands between segments; by default what the script of the text has between words.
    """
    if joiner is None:
        joiner = "" if is_unspaced("".join(segments)) else " "
    firsts = [1 + place * len(segments) // count for place in range(count)]
    spans = pairwise([*firsts, len(segments) + 1])
    return firsts, [joiner.join(segments[first - 1 : stop - 1]) for first, stop in spans]


def prompts_that_are_asked() -> tuple[str, ...]:
    """Return the ids of the prompts that a model answers in words; others are parts, or ask for a picture."""
    return tuple(sorted(_prompts().values()))


@cache
def _prompts() -> dict[str, str]:
    prompts = [load_prompt(name) for name in prompt_ids()]
    # The system messages take no inputs: they are the same in every request.
    return {
        prompt.parts[0][1].render().strip(): prompt.card.id for prompt in prompts if len(prompt.parts) > 1
    }
