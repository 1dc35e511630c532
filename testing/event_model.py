"""A stand-in for a verifier of videos: flags from a table, so that what comes out is known before.

It looks at no picture, and says nothing about any real verifier. Use it as the handler of a model server::

    with ModelServer(EventModel({"A cup falls, and breaks.": (1, 0)})) as server:
        ...
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from ..schemas.canonical import Json
from .model_server import Answer, Asked

_FENCE = re.compile(r"<<<([0-9a-f]{12,64})\n(.*?)\n\1>>>", re.DOTALL)
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
        fenced = [text for _, text in _FENCE.findall(asked.text)]
        if "decide which events" not in asked.system:
            return f"{len(asked.images)} frames. Something moves."
        _, prompt, *events = fenced
        number = self.seen.get(prompt, 0)
        self.seen[prompt] = number + 1
        if number < self.refused.get(prompt, 0):
            return Answer(refusal=REFUSAL)
        flags = self.flags.get(prompt, (1,) * len(events))
        if asked.schema is not None:
            return {
                "events": [
                    {"number": place, "reason": "Seen.", "completed": bool(flag)}
                    for place, flag in enumerate(flags, 1)
                ]
            }
        return f"Each event was looked at.\n[COMPLETE_LIST]: {', '.join(map(str, flags))}"
