"""The script of a story as it will stand once the corrections that wait in ``edits.jsonl`` are applied."""

from collections.abc import Mapping, Sequence

from ...engine.stage import Tools
from ...schemas.canonical import Json
from ...schemas.values import Edit
from .apply_edits import Refused, apply_edit
from .draft import editable_form, make_draft
from .planner import base_language


def draft_with(reads: Mapping[str, Json], edits: Sequence[Edit], tools: Tools) -> Json:  # noqa: ARG001
    """Return what can be corrected of a story, with corrections applied in order.

    Whether the plots still are the story is not asked: it takes two corrections to move the end of a shot.

    Args:
        reads: the fields that the stage ``apply_edits`` read of the story, whatever its edits were then.
        edits: all corrections of the story.
        tools: the tools of that stage.

    Raises:
        ValueError: one of them cannot be applied; the text says which and why.
    """
    draft, base = make_draft(reads), base_language(reads["story"]) or "en"
    try:
        for edit in edits:
            draft = apply_edit(draft, edit.as_json(), base)
    except Refused as refusal:
        raise ValueError(str(refusal)) from refusal
    return editable_form(draft, base)
