"""What is still missing where unfinished evaluations are merged."""

from collections import Counter
from collections.abc import Mapping, Sequence

from ..schemas.canonical import Json
from ..schemas.judgement import EvaluationManifest
from .lacking import INCOMPLETE, lacks

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
