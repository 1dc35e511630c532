"""Stage: check the draft. Nothing is rejected: what fails or cannot be judged marks the record for review.

The checks that need no model are in :mod:`.rules`. With a model in the settings (it need not be the one
that drafted) come those of :mod:`.verifying`; what that model would not or could not answer is not judged.
The author of a given record may have judged the rest (:mod:`.settling`).
"""

from collections.abc import Sequence

from ....engine.stage import Item, Made, Outcome, StageSpec, Tools
from ....models.spec import ModelSettings
from ....schemas.canonical import Json
from ...replies import public_name
from ..drafts import NARRATIVE, make_check, told_story
from ..write_questions import DISTINCT, REPEATED
from .rules import rule_checks
from .settling import RULES, settle
from .verifier import GUESSING
from .verifying import PROMPTS, check_draft


class VerifySettings(ModelSettings):
    """Settings of the stage; without a model only the rules check."""

    guessing: bool = GUESSING


SPEC = StageSpec(
    name="verify_record",
    version=10,
    shape="map",
    reads=(
        *("story", *NARRATIVE, "given", "draft", REPEATED),
        *("screening", "assessment", "assessment_by"),
    ),
    writes=("checks",),
    libraries=("jsonschema-rs", "py3langid"),
    settings=VerifySettings,
    asks=PROMPTS,
)


async def run(item: Item, tools: Tools) -> Outcome:
    """Return the checks: screening, rules, a model's, its author's verdicts, and those that nobody made."""
    settings = tools.own(VerifySettings)
    story, draft, narrative = told_story(item.fields), item["draft"], item["narrative"] or {}
    assessed = {check["code"]: check for check in by(item["assessment_by"], item["assessment"])}
    screened = [
        check for check in item["screening"] if check["passed"] is not None or check["code"] not in assessed
    ]
    left_out = [make_check(DISTINCT, "$.questions", True, f"left out: {text}") for text in item[REPEATED]]
    ruled = by(RULES, [*screened, *left_out, *rule_checks(story, draft)])
    compared = by(None, narrative.get("checks", ()))
    judge = public_name(settings) if settings.models() else None
    judged = await check_draft(story, draft, tools) if settings.models() else []
    made = [*assessed.values(), *compared, *ruled, *by(judge, judged)]
    return Made({"checks": settle(made, item["given"], draft)})


def by(producer: str | None, checks: Sequence[Json]) -> list[Json]:
    """Return checks with who made them, where they do not say so themselves."""
    return [{"producer": producer, **check} for check in checks]
