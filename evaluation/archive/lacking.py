"""What an unfinished evaluation says that it lacks, in the environment of its manifest.

What is still missing where unfinished evaluations are merged.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from ...schemas.canonical import Json
from ...schemas.judgement import EvaluationManifest
from ..words import counted
from .replies import LATER

INCOMPLETE = "incomplete"
"""Where the environment says that an evaluation is not finished, and what is missing."""


def lacks(environment: Mapping[str, Json]) -> tuple[int, int]:
    """Return how many questions were not asked yet, and how many outputs were not reached."""
    told = environment.get(INCOMPLETE)
    if not isinstance(told, Mapping):
        return 0, 0
    unasked, unreached = told.get("unasked"), told.get("unreached")
    counts = unasked.values() if isinstance(unasked, Mapping) else ()
    asked = sum(count for count in counts if isinstance(count, int))
    return asked, unreached if isinstance(unreached, int) else 0


def lacking(unasked: int, unreached: int) -> str:
    """Return what an evaluation lacks, in words."""
    parts = []
    if unasked:
        parts.append(f"{counted(unasked, 'question')} not asked yet")
    if unreached:
        parts.append(f"{counted(unreached, 'output')} not reached")
    return ", ".join(parts) or "nothing is missing"


def notes_of_both(folders: Mapping[str, EvaluationManifest]) -> tuple[str, ...]:
    """Return the same for evaluations that are compared, each with its name before it."""
    return tuple(f"{name}: {note}" for name, one in folders.items() for note in incomplete_notes(one))


def incomplete_notes(manifest: EvaluationManifest) -> Iterator[str]:
    """Yield what a reader of scores must know: what is not finished, and what came from a later attempt."""
    unasked, unreached = lacks(manifest.environment)
    if unasked or unreached:
        yield (
            f"the evaluation is not finished ({lacking(unasked, unreached)}): the scores are of what was "
            "answered so far, and coverage is of what was asked"
        )
    judges = manifest.environment.get("judges")
    told = judges.values() if isinstance(judges, Mapping) else ()
    later = sum(
        count for one in told if isinstance(one, Mapping) and isinstance(count := one.get(LATER), int)
    )
    if later:
        yield (
            f"{counted(later, 'answer')} came from a later attempt, after a reply that could not be used;"
            f" each question was asked at most {manifest.protocol.get('attempts', 1)} times"
        )


SCOPE = ("conditions", "labels", "matcher", "prompts", "stories", "units", "votes")
"""The parts of a protocol that say what is asked of a judge; who the judges are is not one of them."""


def still_lacking(manifests: Sequence[EvaluationManifest]) -> dict[str, Json] | None:
    """Return what the whole lacks, as its environment says it; None where nothing is missing.

    What one part has not asked of a judge counts as missing unless another part of the same stories, methods
    and prompts has asked that judge everything.
    """
    unasked, unreached = Counter[str](), 0
    for one in manifests:
        same = [other for other in manifests if other is not one and _scope(other) == _scope(one)]
        for judge, count in _unasked(one).items():
            if not any(_is_done(other, judge) for other in same):
                unasked[judge] += count
        if not any(lacks(other.environment) == (0, 0) for other in same):
            unreached += lacks(one.environment)[1]
    if not unasked and not unreached:
        return None
    return {"unasked": dict(sorted(unasked.items())), "unreached": unreached}


def _scope(manifest: EvaluationManifest) -> tuple[object, ...]:
    return (sorted(manifest.subject.get("methods") or ()), *map(manifest.protocol.get, SCOPE))


def _unasked(manifest: EvaluationManifest) -> Mapping[str, int]:
    told = manifest.environment.get(INCOMPLETE)
    unasked = told.get("unasked") if isinstance(told, Mapping) else None
    return unasked if isinstance(unasked, Mapping) else {}


def _is_done(manifest: EvaluationManifest, judge: str) -> bool:
    """Whether a judge was asked everything in an evaluation that reached all outputs."""
    asked = judge in (manifest.environment.get("judges") or ())
    return asked and judge not in _unasked(manifest) and not lacks(manifest.environment)[1]
