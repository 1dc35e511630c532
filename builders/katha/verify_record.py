"""Stage: check the draft. Nothing is rejected: what fails or cannot be judged marks the record for review.

The checks that need no model are in :mod:`.rule_checks`. With a model in the settings (it need not be the one
that drafted) come those of :mod:`.verifying`; what that model would not or could not answer is not judged.
The author of a given record may have judged the rest (:mod:`.settle_checks`).
"""

from collections.abc import Sequence

from ...engine.stage import Item, Made, Outcome, StageSpec, Tools
from ...models.spec import ModelSettings
from ...schemas.canonical import Json
from ..replies import public_name
from .rule_checks import rule_checks
from .settle_checks import RULES, settle
from .verifying import PROMPTS, check_draft


class VerifySettings(ModelSettings):
    """Settings of the stage; without a model only the rules check."""


SPEC = StageSpec(
    name="verify_record",
    version=3,
    shape="map",
    reads=("story", "given", "draft", "screening"),
    writes=("checks",),
    libraries=("jsonschema-rs",),
    settings=VerifySettings,
    asks=PROMPTS,
)


async def run(item: Item, tools: Tools) -> Outcome:
    """Return the checks: screening, rules, a model's, its author's verdicts, and those that nobody made."""
    settings = tools.own(VerifySettings)
    story, draft = item["story"], item["draft"]
    ruled = by(RULES, [*item["screening"], *rule_checks(story, draft)])
    judged = await check_draft(story, draft, tools) if settings.models() else []
    made = [*ruled, *by(public_name(settings) if judged else None, judged)]
    return Made({"checks": settle(made, item["given"], draft)})


def by(producer: str | None, checks: Sequence[Json]) -> list[Json]:
    """Return checks with who made them, where they do not say so themselves."""
    return [{"producer": producer, **check} for check in checks]
