"""A stand-in for a judge of prompt alignment: its ratings come from a table, whatever the picture shows.

Use it as the handler of a model server::

    with ModelServer(AlignmentModel({"scene": 4, "shot": 3})) as server:
        ...
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from ..prompts.loader import load_prompt
from ..schemas.canonical import Json
from .model_server import Asked

DIMENSIONS = ("scene", "shot", "interaction", "action")


@dataclass
class AlignmentModel:
    """A handler for :class:`fabula.testing.model_server.ModelServer`.

    Attributes:
        ratings: dimension -> its rating, or those that one question gets by turns; 2 where there is none.
        asked: how often each dimension was asked.
    """

    ratings: Mapping[str, int | Sequence[int]] = field(default_factory=dict)
    asked: Counter[str] = field(default_factory=Counter)

    def __call__(self, asked: Asked) -> Json:
        """Return the rating as a reply.

        Raises:
            ValueError: the request was made with another prompt.
        """
        name = dimension_of(asked)
        self.asked[name] += 1
        given = self.ratings.get(name, 2)
        if not isinstance(given, int):
            given = given[(asked.attempt - 1) % len(given)]
        return {"reason": "as the table says", "rating": given}


def dimension_of(asked: Asked) -> str:
    """Return which dimension a request is about.

    Raises:
        ValueError: it was made with another prompt.
    """
    for name in DIMENSIONS:
        if asked.system == _system(name):
            return name
    raise ValueError(f"not a prompt of alignment: {asked.system[:80]!r}")


def _system(name: str) -> str:
    prompt = load_prompt(f"images/judge_{name}")
    inputs: dict[str, Json] = dict.fromkeys(prompt.card.inputs, "")
    system, _ = prompt.messages(**inputs)
    return "".join(part for part in system.parts if isinstance(part, str))
