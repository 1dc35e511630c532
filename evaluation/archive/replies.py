"""Several attempts at the same answer: all are kept in an archive, and the last one counts.

What every evaluation with judges says of their replies: how many of each kind, from which models.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from ...engine.manifest import Manifest
from ...prompts.loader import load_prompt
from ...schemas.canonical import Json
from ...schemas.judgement import Judgement

LATER = "from_later_attempts"
"""Where the environment of a manifest says how many answers of a judge come from a later attempt."""


def last_attempts(judgements: Iterable[Judgement]) -> Iterator[Judgement]:
    """Yield the judgements that count, in their order.

    Args:
        judgements: in the order of an archive, in which the attempts at an answer stand together.
    """
    last: Judgement | None = None
    for judgement in judgements:
        # The same attempt twice is left to whoever reads them.
        if last is not None and (judgement.attempt == last.attempt or judgement.asked() != last.asked()):
            yield last
        last = judgement
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


IDENTITY = ("structured", "unsupported", "extra")
"""Those settings of a model that change its answers."""


class ReplyTally:
    """Counts the replies of judges, and what was not asked yet.

    Args:
        run: the manifest of the run.
    """

    def __init__(self, run: Manifest) -> None:
        self._run = run
        self._replies = ReplyCounts()
        self._unasked: Counter[str] = Counter()

    def count(self, judgement: Judgement) -> None:
        """Take in one judgement."""
        self._replies.count(judgement)

    def leave(self, row: Json) -> None:
        """Take in one question that was not asked yet."""
        self._unasked[row["judge"]["spec"]] += 1

    def environment(self, selection: str) -> dict[str, Any]:
        """Return the part ``environment`` of the manifest.

        Args:
            selection: the stage whose settings say what was chosen.
        """
        run = self._run
        return {
            "fabula": run.fabula_version,
            "libraries": {name: text for stage in run.stages for name, text in stage.libraries.items()},
            "created_at": run.created_at,
            "selection": run.settings[selection],
            "sources": [{"role": source.role, "name": source.name} for source in run.sources],
            "judges": self._replies.as_json(),
            **({"incomplete": {"unasked": dict(sorted(self._unasked.items()))}} if self._unasked else {}),
        }


def identity_of(options: Mapping[str, Json]) -> dict[str, Any]:
    """Return those settings of a model that change its answers."""
    return {name: options[name] for name in IDENTITY if name in options}


def labels_of(prompts: Iterable[str]) -> dict[str, str]:
    """Return id -> id, version and hash of prompts, sorted."""
    return {name: load_prompt(name).label for name in sorted(prompts)}
