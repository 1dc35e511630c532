"""What a data set must satisfy: schemas, rules with stable codes, statistics.

Everything here returns findings; nothing stops at the first one. The rules are listed in
:data:`fabula.validators.codes.CODES`.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .dataset import Dataset, iter_bundles, open_dataset
    from .record_rules import check_story, incomplete_reason
    from .report import ValidationReport
    from .statistics import HiddenCounts, StatisticsCollector, moral_balance
    from .status_rules import record_hashes
    from .validation import statistics_of, validate

_HOME = {
    "Dataset": "dataset",
    "HiddenCounts": "statistics",
    "StatisticsCollector": "statistics",
    "ValidationReport": "report",
    "check_story": "record_rules",
    "incomplete_reason": "record_rules",
    "iter_bundles": "dataset",
    "moral_balance": "statistics",
    "open_dataset": "dataset",
    "record_hashes": "status_rules",
    "statistics_of": "validation",
    "validate": "validation",
}

__all__ = [
    "Dataset",
    "HiddenCounts",
    "StatisticsCollector",
    "ValidationReport",
    "check_story",
    "incomplete_reason",
    "iter_bundles",
    "moral_balance",
    "open_dataset",
    "record_hashes",
    "statistics_of",
    "validate",
]


def __getattr__(name: str) -> object:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f".{_HOME[name]}", __name__), name)
