"""Whether an evaluation was made by programs that stand in for models, so that its numbers mean nothing."""

from collections.abc import Iterator

from ...schemas.canonical import Json
from ...schemas.judgement import EvaluationManifest

STAND_IN = "stand-in"
"""What the judge of ``python -m fabula.testing.model_server`` is called."""
PROGRAMS = frozenset({
    "table-detector", "colour-encoder", "head-encoder", "colour-texts", "colour-classes", "colour-brightness",
    "still-flow", "truth-grounder", "truth-texts", "truth-vectors",
})  # fmt: skip
"""What the detectors and encoders of ``fabula.testing`` call themselves."""


def stand_in_notes(manifest: EvaluationManifest) -> Iterator[str]:
    """Yield that judges, detectors or encoders were stand-ins, where some were."""
    judges = [name for name in _texts(manifest.protocol.get("judges")) if STAND_IN in name]
    if judges:
        named = ", ".join(sorted(set(judges)))
        yield f"the replies of {named} are made up, by a stand-in for a judge: these scores mean nothing"
    seen = {text.partition("@")[0] for text in _texts(manifest.protocol)}
    programs = sorted(seen & PROGRAMS)
    if programs:
        yield (
            f"{', '.join(programs)}: small programs of fabula.testing in the place of models; what they give "
            "means nothing"
        )


def _texts(value: Json) -> Iterator[str]:
    """Yield every text in a part of a manifest."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for part in value.values():
            yield from _texts(part)
    elif isinstance(value, list):
        for part in value:
            yield from _texts(part)
