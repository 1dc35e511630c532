"""A stand-in for a judge of prompt alignment: its ratings come from a table, whatever the picture shows.

Use it as the handler of a model server::

    with ModelServer(AlignmentModel({"scene": 4, "shot": 3})) as server:
        ...
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from ..schemas.canonical import Json
from .asked_prompts import prompt_of
from .model_server import Asked

_BEGINNING = "images/judge_"


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
        prompt_id = prompt_of(asked) or ""
        if not prompt_id.startswith(_BEGINNING):
            raise ValueError(f"not a prompt of alignment: {asked.system[:80]!r}")
        name = prompt_id.removeprefix(_BEGINNING)
        self.asked[name] += 1
        given = self.ratings.get(name, 2)
        if not isinstance(given, int):
            given = given[(asked.attempt - 1) % len(given)]
        return {"reason": "as the table says", "rating": given}
