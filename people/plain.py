"""Results as plain JSON."""

import math
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any

from ..schemas.base import Own
from .preference import Preferred


def as_plain(value: object) -> Any:  # noqa: ANN401 - a JSON value
    """Return results, with what they hold, as plain JSON; numbers that are undefined become null."""
    if isinstance(value, Own):
        return value.as_json()
    if is_dataclass(value) and not isinstance(value, type):
        return _fields(value) | (_derived(value) if isinstance(value, Preferred) else {})

    if isinstance(value, Mapping):
        return {str(key): as_plain(entry) for key, entry in value.items()}
    if isinstance(value, tuple | list):
        return [as_plain(entry) for entry in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _fields(value: Any) -> dict[str, Any]:  # noqa: ANN401 - any dataclass
    return {one.name: as_plain(getattr(value, one.name)) for one in fields(value)}


def _derived(value: Preferred) -> dict[str, Any]:
    return {
        "p_corrected": value.corrected,
        "p_corrected_by_person": value.corrected_by_person,
        "rank_biserial": as_plain(value.test.rank_biserial),
        "rank_biserial_by_person": as_plain(value.by_person.rank_biserial),
    }
