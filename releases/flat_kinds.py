"""The kinds of flat releases there are."""

from .flat_kind import FlatKind
from .layout import ENTITIES, EVENTS, IMPORTED_ENTITIES, IMPORTED_SHOTS, SHOTS


def flat_kind(name: str | None) -> FlatKind | None:
    """Return the kind of flat releases that a kind of run or release is of; None for others, as stories."""
    if name == EVENTS:
        from .suite_kind import SUITE_KIND

        return SUITE_KIND
    if name in (ENTITIES, IMPORTED_ENTITIES):
        from .entity_kind import ENTITY_KIND

        return ENTITY_KIND
    if name in (SHOTS, IMPORTED_SHOTS):
        from .shot_kind import SHOT_KIND

        return SHOT_KIND
    return None
