"""Several attempts at the same answer: all are kept in an archive, and the last one counts."""

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

from ..schemas.canonical import Json
from ..schemas.judgement import Judgement

LATER = "from_later_attempts"
"""Where the environment of a manifest says how many answers of a judge come from a later attempt."""


def last_attempts(judgements: Iterable[Judgement]) -> Iterator[Judgement]:
    """Yield the judgements that count, in their order.

    Args:
        judgements: in the order of an archive, in which the attempts at an answer stand together.
    """
    last: Judgement | None = None
    for one in judgements:
        # The same attempt twice is left to whoever reads them.
        if last is not None and (one.attempt == last.attempt or one.asked() != last.asked()):
            yield last
        last = one
    if last is not None:
        yield last


class ReplyCounts:
    """Counts the replies of judges that count, by outcome; in any order of their attempts."""

    def __init__(self) -> None:
        self._outcomes: dict[str, Counter[str]] = {}
        self._reported: dict[str, set[str]] = {}
        self._tried: dict[tuple[Any, ...], tuple[int, str]] = {}

    def count(self, judgement: Judgement) -> None:
        """Take in one judgement."""
        judge, asked = judgement.judge, judgement.asked()
        outcomes = self._outcomes.setdefault(judge.spec, Counter())
        if judge.reported_model is not None:
            self._reported.setdefault(judge.spec, set()).add(judge.reported_model)
        before = self._tried.get(asked)
        if before is None and judgement.attempt == 1 and judgement.outcome == "answered":
            outcomes["answered"] += 1  # nobody asks any more: not worth to be remembered
            return
        if before is None or judgement.attempt > before[0]:
            if before is not None:
                outcomes[before[1]] -= 1
            outcomes[judgement.outcome] += 1
            self._tried[asked] = judgement.attempt, judgement.outcome

    def as_json(self) -> dict[str, Json]:
        """Return judge -> its outcomes, the models that it reported, and its answers from later attempts."""
        later = Counter(asked[6] for asked, (_, outcome) in self._tried.items() if outcome == "answered")
        return {
            spec: {
                "outcomes": {name: count for name, count in sorted(counts.items()) if count},
                "reported_models": sorted(self._reported.get(spec, ())),
                **({LATER: later[spec]} if later[spec] else {}),
            }
            for spec, counts in sorted(self._outcomes.items())
        }
