"""Stage: check the draft. Nothing is rejected: what fails or cannot be judged marks the record for review.

The checks that need no model are in :mod:`.rule_checks`. With a model in the settings (it need not be the one
that drafted) come those of :mod:`.model.verify`; what that model would not or could not answer is not judged.
"""

from collections.abc import Mapping, Sequence

from ...engine.asking import NoAnswer
from ...engine.stage import Item, Made, Outcome, StageSpec, Tools
from ...models.settings import ModelSettings
from ...schemas.canonical import Json
from .rule_checks import make_check, rule_checks

VERIFICATION = (
    "katha/answer_questions",
    "katha/check_answers",
    "katha/check_contrastives",
    "katha/check_record",
)
"""The prompts that a draft is verified with."""


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
    asks=VERIFICATION,
)

_JUDGED_BY: Mapping[str, str] = {"answerable": "model_answerable"}
"""Checks of the rules that need no verdict of their own where a model gave one: their code -> the model's."""


async def run(item: Item, tools: Tools) -> Outcome:
    """Return the checks: those of the screening, those of the draft by rules, those by a model."""
    settings = tools.settings
    assert isinstance(settings, VerifySettings)
    story, draft = item["story"], item["draft"]
    ruled = rule_checks(story, draft)
    judged = await model_checks(story, draft, tools) if settings.models() else []
    return Made({"checks": [*item["screening"], *_unsettled_by(judged, ruled), *judged]})


async def model_checks(story: Json, draft: Json, tools: Tools) -> list[Json]:
    """Return the checks of a draft by the model that the tools' settings name.

    Raises:
        NoAnswer: the model cannot be reached now (``unavailable``); anything else that keeps it from
            answering is a check without a verdict.
    """
    from .model.verify import check_draft

    try:
        return list(await check_draft(story, draft, tools))
    except NoAnswer as failure:
        if failure.code == "unavailable":
            raise
        return [make_check("model_checks", "$", None, f"{failure.code}: {failure.reason}")]


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
