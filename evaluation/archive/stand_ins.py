"""Whether an evaluation was made by programs that stand in for models, so that its numbers mean nothing."""

from collections.abc import Iterator, Mapping

from ...models.spec import PROGRAMS, is_stand_in
from ...schemas.canonical import Json
from ...schemas.judgement import EvaluationManifest


def stand_in_judges(manifest: EvaluationManifest) -> list[str]:
    """Return the judges that a stand-in answered for: as their replies say, or else their names."""
    judged = manifest.environment.get("judges")
    accounts = judged.items() if isinstance(judged, Mapping) else ()
    reported = {
        judge: account.get("reported_models") for judge, account in accounts if isinstance(account, Mapping)
    }
    named = {*_texts(manifest.protocol.get("judges")), *reported}
    # What the replies say counts; the name that was asked for, only where they say nothing.
    return sorted(
        judge for judge in named if any(map(is_stand_in, list(_texts(reported.get(judge))) or [judge]))
    )


def stand_in_notes(manifest: EvaluationManifest) -> Iterator[str]:
    """Yield that judges, detectors or encoders were stand-ins, where some were."""
    if judges := stand_in_judges(manifest):
        named = ", ".join(judges)
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
