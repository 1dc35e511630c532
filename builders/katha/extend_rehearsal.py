"""What becomes of new stories before they are added: the stages are rehearsed for them alone."""

from collections.abc import Sequence
from dataclasses import replace

from ...engine.config import models_of
from ...engine.execute import RunRequest
from ...engine.pipeline import load_pipeline
from ...engine.rehearsal import Script, rehearse
from ...engine.report import ItemReport
from ..spending import without_models


def would_stop(request: RunRequest, added: Sequence[str]) -> tuple[ItemReport, ...]:
    """Return which new stories the stages would turn away, and why. Asks no model, writes nothing.

    Where models draft, only what the stages before them turn away can be known.

    Args:
        request: the run as it would be executed.
        added: ids of the new stories; the stopped ones come in this order.
    """
    if not added:
        return ()
    stand_in = without_models(request.config)
    options = replace(request.options, items=tuple(added), workers=0)
    report = rehearse(replace(request, options=options), stand_in, Script(stand_in, lambda _: None))
    firm = _firm_stages(request)
    stopped = {one.id: one for one in report.items if one.stage in firm and one.status != "pending"}
    return tuple(stopped[story] for story in added if story in stopped)


def _firm_stages(request: RunRequest) -> frozenset[str]:
    """Return the stages before the first that asks a model; all, where none does."""
    found = []
    for name in load_pipeline(request.pipeline).names():
        if models_of(request.config.stages[name]):
            break
        found.append(name)
    return frozenset(found)
