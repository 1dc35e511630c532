"""Stage: check the draft. Nothing is rejected: what fails or cannot be judged marks the record for review.

The checks that need no model are in :mod:`.rule_checks`. With a model in the settings (it need not be the one
that drafted) come those of :mod:`.model.verify`; what that model would not or could not answer is not judged.
"""

from collections.abc import Mapping, Sequence

from ...engine.stage import Item, Made, Outcome, StageSpec, Tools
from ...models.spec import ModelSettings
from ...schemas.canonical import Json
from .rule_checks import rule_checks
from .verifying import ANSWERABLE, CONSISTENT, PROMPTS, check_draft


class VerifySettings(ModelSettings):
    """Settings of the stage; without a model only the rules check."""


SPEC = StageSpec(
    name="verify_record",
    version=2,
    shape="map",
    reads=("story", "draft", "screening"),
    writes=("checks",),
    libraries=("jsonschema-rs",),
    settings=VerifySettings,
    asks=PROMPTS,
)

_JUDGED_BY: Mapping[str, str] = {"answerable": ANSWERABLE, "entity_continuity": CONSISTENT}
"""Checks of the rules that need no verdict of their own where a model gave one: their code -> the model's."""


async def run(item: Item, tools: Tools) -> Outcome:
    """Return the checks: those of the screening, those of the draft by rules, those by a model."""
    settings = tools.own(VerifySettings)
    story, draft = item["story"], item["draft"]
    ruled = rule_checks(story, draft)
    judged = await check_draft(story, draft, tools) if settings.models() else []
    return Made({"checks": [*item["screening"], *_unsettled_by(judged, ruled), *judged]})


def _unsettled_by(judged: Sequence[Json], ruled: Sequence[Json]) -> list[Json]:
    """Return the checks of the rules without those that had no verdict where a model has one."""
    known = {(check["code"], _part(check)) for check in judged if check["passed"] is not None}
    return [
        check
        for check in ruled
        if check["passed"] is not None or (_JUDGED_BY.get(str(check["code"])), _part(check)) not in known
    ]


def _part(check: Json) -> str:
    """Return the element of a list that a check is about, such as ``$.questions[1]``."""
    return str(check["path"]).partition("]")[0]
