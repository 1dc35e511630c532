"""Which prompts of an unfinished evaluation can be scored: those with all their votes, or without a video.

The others were not asked about yet, which is no silence of the judge: they count as nothing, not as zero.
"""

from collections import Counter
from collections.abc import Mapping

from ...schemas.events import Suite
from ..archive import Archive
from ..attempts import last_attempts
from .votes import Panel


def finished(archive: Archive, panel: Panel, scope: Suite, required: int) -> Suite:
    """Return the prompts of a suite that are done for one method and verifier.

    Args:
        archive: of the evaluation.
        panel: method and verifier.
        scope: the prompts that are to be judged.
        required: how many votes a video needs.
    """
    votes = Counter(
        (one.unit, one.seed)
        for one in last_attempts(archive.judgements)
        if (one.kind, one.method, one.judge.spec) == ("completion", panel.method, panel.judge)
    )
    methods = archive.manifest.subject.get("methods")
    about = methods.get(panel.method) if isinstance(methods, Mapping) else None
    told = about if isinstance(about, Mapping) else {}
    listed = told.get("invalid")
    invalid = {
        (one.get("unit"), one.get("seed"))
        for one in (listed if isinstance(listed, list) else ())
        if isinstance(one, Mapping)
    }
    seeds = told.get("seeds") or [None]
    return Suite({
        unit: prompt
        for unit, prompt in scope.prompts.items()
        if all(votes[unit, seed] >= required or (unit, seed) in invalid for seed in seeds)
    })  # fmt: skip
