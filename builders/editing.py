"""What a kind of run says about corrections of its items; :mod:`.corrections` adds them."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from ..engine.stage import Tools
from ..schemas.canonical import Json
from ..schemas.paths import Steps
from ..schemas.values import Edit, Issue


class Refused(ValueError):
    """An edit cannot be applied; the text says which and why."""


@dataclass(frozen=True, slots=True)
class Consequence:
    """What a correction of one field asks for in others."""

    values: Mapping[str, Json]  # JSON path -> the value that belongs there now; corrections of their own
    notes: tuple[str, ...] = ()  # what a person may want to do besides, in sentences


@dataclass(frozen=True, slots=True)
class Editing:
    """How the items of one kind are corrected. ``reads`` are the fields that the editing stage read."""

    # from reads and the stage's tools, the draft without any correction
    first: Callable[[Mapping[str, Json], Tools], Json]
    # from reads, draft and a correction as JSON, the draft with it; Refused where it cannot be
    apply: Callable[[Mapping[str, Json], Json, Json], Json]
    # from reads and draft, the draft by the paths that people use
    form: Callable[[Mapping[str, Json], Json], Json]
    # from reads, draft, the steps of a corrected field and its new value, what else follows. The draft is the
    # one before the correction, which is known to be possible.
    consequence: Callable[[Mapping[str, Json], Json, Steps, Json], Consequence]
    # from reads and draft, what the rules of the kind find in its record
    issues: Callable[[Mapping[str, Json], Json], list[Issue]]

    def draft(self, reads: Mapping[str, Json], edits: Sequence[Edit], tools: Tools) -> Json:
        """Return the draft with corrections applied in order.

        Whether the parts still cover the story is not asked: it takes two corrections to move a boundary.
        """
        draft = self.first(reads, tools)
        for edit in edits:
            draft = self.apply(reads, draft, edit.as_json())
        return draft
