"""Having a model check a draft against its story."""

from dataclasses import replace

from ....engine.stage import Tools
from ....models.settings import ModelSettings
from ....schemas.base import Own
from ....schemas.canonical import Json
from .case import Case
from .verify_parts import CONSISTENT, check_fields, check_variants
from .verify_questions import ANSWERABLE, check_questions

__all__ = ["ANSWERABLE", "CONSISTENT", "PROMPTS", "check_draft", "verifier_settings"]

PROMPTS = ("katha/answer_questions", "katha/check_answers", "katha/check_contrastives", "katha/check_record")
"""Ids of the prompts that a check asks with."""


async def check_draft(story: Json, draft: Json, tools: Tools) -> list[Json]:
    """Return what a model finds in a draft, as checks (``schemas.values.Check`` as JSON).

    The model is the ``verifier`` of the stage's settings, where they have one, else their ``model``. What it
    could not judge has no verdict and says why. The codes:

    ========================  ====================================================================
    model_answerable          without having seen the answers, the model gives an accepted one
    model_answers_equivalent  every accepted answer says the same as the canonical one
    model_contrast_minimal    a variant changes the meaning, and nothing beside it
    model_contrast_described  its kind and its description tell what was changed
    model_consistent          the story bears out the fields of a scene or transition
    model_renderable          one picture can show the scene
    model_label_fits          the story supports the label
    ========================  ====================================================================

    Args:
        story: the story.
        draft: title, labels and lists of parts, as the stage ``apply_edits`` writes it.
        tools: the stage's tools.

    Raises:
        NoAnswer: the model cannot be reached (code ``unavailable``).
    """
    case = Case(story, draft, replace(tools, settings=verifier_settings(tools.settings)))
    return [*await check_questions(case), *await check_variants(case), *await check_fields(case)]


def verifier_settings(settings: Own) -> ModelSettings:
    """Return the settings of the checks: those of the stage, with its verifier, if any, as the model."""
    assert isinstance(settings, ModelSettings)
    same = {name: getattr(settings, name) for name in ModelSettings.model_fields}
    return ModelSettings(**{**same, "model": getattr(settings, "verifier", settings.model)})
