"""A stand-in for a verifier of videos: flags from a table, so that what comes out is known before.

It looks at no picture, and says nothing about any real verifier. Use it as the handler of a model server::

    with ModelServer(EventModel({"A cup falls, and breaks.": (1, 0)})) as server:
        ...
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from ..schemas.canonical import Json
from .asked_prompts import fenced_texts, prompt_of
from .model_server import Answer, Asked

REFUSAL = "I would rather not look at this."


@dataclass(frozen=True)
class EventModel:
    """A handler for :class:`fabula.testing.model_server.ModelServer`.

    Attributes:
        flags: prompt -> the flag of each event; all completed where it is not there.
        refused: prompt -> how many of its scorings are refused before one is answered.
        seen: prompt -> scorings so far.
    """

    flags: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    refused: Mapping[str, int] = field(default_factory=dict)
    seen: dict[str, int] = field(default_factory=dict)

    def __call__(self, asked: Asked) -> Json | Answer:
        """Return a description, or flags for the events of the prompt that is fenced in the request."""
        if prompt_of(asked) == "events/describe_video":
            return f"{len(asked.images)} frames. Something moves."
        _, prompt, *events = fenced_texts(asked.text)
        number = self.seen.get(prompt, 0)
        self.seen[prompt] = number + 1
        if number < self.refused.get(prompt, 0):
            return Answer(refusal=REFUSAL)
        flags = self.flags.get(prompt, (1,) * len(events))
        if asked.schema is not None:
            return {
                "events": [
                    {"number": index, "reason": "Seen.", "completed": bool(flag)}
                    for index, flag in enumerate(flags, 1)
                ]
            }
        return f"Each event was looked at.\n[COMPLETE_LIST]: {', '.join(map(str, flags))}"
