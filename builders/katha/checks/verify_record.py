"""Stage: check the draft. Nothing is rejected: what fails or cannot be judged marks the record for review.

The checks that need no model are in :mod:`.rules`. With a model in the settings (it need not be the one
that drafted) come those of :mod:`.verifying`; what that model would not or could not answer is not judged. A
draft that was judged when it was repaired, and that nobody has edited since, is not judged again.
The author of a given record may have judged the rest (:mod:`.settling`).
"""

from collections.abc import Sequence
from typing import ClassVar

from pydantic import Field

from ....engine.stage import Item, Made, Outcome, StageSpec, Tools
from ....schemas.canonical import Json
from ...step import Worded
from ...text.segments import source_sentences
from ..drafts import NARRATIVE, make_check, told_story
from ..write_questions import DISTINCT, REPEATED
from .rules import rule_checks
from .settling import RULES, settle
from .verifying import PROMPTS, Case, check_draft, guess


class VerifySettings(Worded):
    """Settings of the stage; without a model only the rules check."""

    retired: ClassVar[tuple[str, ...]] = ("guessing",)
    guesses: int = Field(
        default=0,
        ge=0,
        le=20,
        description="How often the model guesses each answer from the question alone: a note, nothing else.",
    )


SPEC = StageSpec(
    name="verify_record",
    version=13,
    shape="map",
    reads=(
        *("story", *NARRATIVE, "given", "analysis", "edits", "draft", "judged", REPEATED),
        *("screening", "assessment", "labels_by"),
    ),
    writes=("checks",),
    libraries=("jsonschema-rs", "py3langid"),
    settings=VerifySettings,
    asks=(*PROMPTS, "katha/guess_answers"),
)


async def run(item: Item, tools: Tools) -> Outcome:
    """Return the checks: screening, rules, a model's, its author's verdicts, and those that nobody made."""
    settings = tools.own(VerifySettings)
    story, draft = told_story(item.fields), item["draft"]
    assessed = {check["code"]: check for check in by(item["labels_by"], item["assessment"])}
    screened = [
        check for check in item["screening"] if check["passed"] is not None or check["code"] not in assessed
    ]
    left_out = [make_check(DISTINCT, "$.questions", True, f"left out: {text}") for text in item[REPEATED]]
    ruled = by(RULES, [*screened, *left_out, *rule_checks(story, draft)])
    judged = item["judged"] if item["judged"] is not None and not item["edits"] else []
    if settings.models():
        if not judged:
            sentences = source_sentences(item["story"]["normalized_text"], item["analysis"])
            told = () if item["narrative"] is None else sentences
            checked = await check_draft(story, draft, tools, told)
            judged = by(checked.judge, checked.checks)
        if settings.guesses:
            case = Case(story, draft, tools)
            notes = await guess(case, settings.guesses)
            judged = [*judged, *by(case.judge, notes)]
    made = [*assessed.values(), *ruled, *judged]
    return Made({"checks": settle(made, item["given"], draft)})


def by(producer: str | None, checks: Sequence[Json]) -> list[Json]:
    """Return checks with who made them, where they do not say so themselves."""
    return [{"producer": producer, **check} for check in checks]
