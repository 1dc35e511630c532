"""A stand-in for the model of the suite builder: prompts made from the subject that is asked for.

Deterministic, and no model's work. Use it as the handler of a model server.
"""

import re

from ..schemas.canonical import Json
from .asked_prompts import fenced_texts, prompt_of
from .model_server import Asked

_SUBJECT = re.compile(r"Who or what leads it: (.+)\.")
_ACTS = (
    ("climbs a ladder", "rings a bell"),
    ("crosses a bridge", "opens a gate"),
    ("pushes a cart", "drops a stone"),
    ("rolls down a hill", "splashes into a pond"),
    ("lifts a lid", "closes a drawer"),
)


def answer(asked: Asked) -> Json:
    """Return a drafted prompt, a caption or a list of events, by what the request asks for.

    Raises:
        ValueError: it is none of the suite builder's requests.
    """
    prompt_id = prompt_of(asked)
    if prompt_id == "events/caption_video":
        return _drafted("wheel", ("turns slowly", "stands still"), creative=False)
    if prompt_id == "events/write_prompt":
        found = _SUBJECT.search(asked.text)
        subject = found[1] if found else "thing"
        acts = _ACTS[sum(map(ord, subject)) % len(_ACTS)]
        return _drafted(subject, acts, creative="It must be impossible" in asked.text)
    if prompt_id == "events/list_events":
        prompt, *_ = fenced_texts(asked.text)
        first, *rest = prompt.rstrip(".").split(", ")
        return {"event_list": [first, *rest], "participants": ["object"], "creative": False}
    raise ValueError(f"not a request of the suite builder: {asked.system[:80]!r}")


def _drafted(subject: str, acts: tuple[str, str], *, creative: bool) -> Json:
    return {
        "prompt": f"A {subject} {acts[0]}, and then {acts[1]}.",
        "event_list": [f"A {subject} {acts[0]}", f"And then the {subject} {acts[1]}"],
        "participants": ["object"],
        "creative": creative,
    }
