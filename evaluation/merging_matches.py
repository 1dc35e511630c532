"""Verdicts of a matcher on answers of several judges, given numbers of their own when archives are merged."""

from ..schemas.judgement import Judgement
from .archive import said_digest

Asked = tuple[object, ...]


class MatchVotes:
    """Numbers the verdicts of each matcher.

    ``vote`` of a verdict is the place of the answer that it is about among those that one run collected. So
    another run, with other judges, has another answer under the same number. What a verdict is about is its
    answer: the same answer keeps the number that it had, and another one gets the next that is free.
    """

    def __init__(self) -> None:
        self._places: dict[Asked, dict[object, int]] = {}
        self._taken: dict[Asked, set[int]] = {}

    def placed(self, judgement: Judgement) -> Judgement:
        """Return a judgement under its number in the whole; all but verdicts stay as they are."""
        if judgement.kind != "match":
            return judgement
        *asked_of, _ = judgement.asked()
        asked = (*asked_of, judgement.attempt)
        places, taken = self._places.setdefault(asked, {}), self._taken.setdefault(asked, set())
        about = said_digest(judgement) if judgement.parsed is None else str(judgement.parsed.get("answer"))
        if about not in places:
            free = judgement.vote not in taken
            places[about] = judgement.vote if free else max(taken) + 1
            taken.add(places[about])
        if places[about] == judgement.vote:
            return judgement
        return judgement.model_copy(update={"vote": places[about]})
