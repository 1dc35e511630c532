"""The draft of a story as it will stand once the corrections that wait in ``edits.jsonl`` are applied."""

from collections.abc import Mapping, Sequence

from ...engine.stage import Item, Made, Tools
from ...schemas.canonical import Json
from ...schemas.values import Edit
from . import apply_edits


def draft_with(reads: Mapping[str, Json], edits: Sequence[Edit], tools: Tools) -> Json:
    """Return a story's draft with corrections applied in order.

    Whether the scenes still cover the story is not asked: it takes two corrections to move a boundary.

    Args:
        reads: the fields that the stage ``apply_edits`` read of the story, whatever its edits were then.
        edits: all corrections of the story.
        tools: the tools of that stage.

    Raises:
        ValueError: one of them cannot be applied; the text says which and why.
    """
    outcome = apply_edits.run(Item("", {**reads, "edits": []}), tools)
    assert isinstance(outcome, Made)  # only edits can make the stage fail
    draft: Json = outcome.fields["draft"]
    try:
        for edit in edits:
            draft = apply_edits.apply_edit(draft, edit.as_json(), reads["story"])
    except apply_edits.Refused as refusal:
        raise ValueError(str(refusal)) from refusal
    return draft
