"""What a kind of run says about corrections of its items; :mod:`.corrections` adds them."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from ..engine.stage import Tools
from ..schemas.canonical import Json
from ..schemas.paths import Steps
from ..schemas.values import Edit, Issue


@dataclass(frozen=True, slots=True)
class Consequence:
    """What a correction of one field asks for in others.

    Attributes:
        values: JSON path -> the value that belongs there now; corrections of their own.
        notes: what a person may want to do besides, in sentences.
    """

    values: Mapping[str, Json]
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Editing:
    """How the items of one kind are corrected. ``reads`` are the fields that the editing stage read.

    Attributes:
        draft: from reads, corrections in order and the stage's tools, the draft with the corrections
            applied; a ValueError says which one cannot be, and why.
        form: from reads and draft, the draft by the paths that people use.
        consequence: from reads, draft, the steps of a corrected field and its new value, what else follows.
            The draft is the one before the correction, which is known to be possible.
        issues: from reads and draft, what the rules of the kind find in its record.
    """

    draft: Callable[[Mapping[str, Json], Sequence[Edit], Tools], Json]
    form: Callable[[Mapping[str, Json], Json], Json]
    consequence: Callable[[Mapping[str, Json], Json, Steps, Json], Consequence]
    issues: Callable[[Mapping[str, Json], Json], list[Issue]]
