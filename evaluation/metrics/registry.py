"""Which metrics there are: an explicit tuple, and an entry-point group for users' own."""

from collections.abc import Iterable
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any, cast

from ...errors import ConfigError
from ...schemas.plugins import plugins

if TYPE_CHECKING:
    from .metric import Choice, Metric, Need

METRICS = (
    ("cids", ".cids:CROSS"),
    ("cids", ".cids:SELF"),
    ("copy-paste", ".copy_paste:METRIC"),
    ("occm", ".occm:METRIC"),
    ("csd", ".style:CROSS"),
    ("csd", ".style:SELF"),
    ("aesthetic", ".aesthetic:METRIC"),
    ("inception", ".inception:METRIC"),
    ("clip-score", ".clip_score:METRIC"),
    ("shot-similarity", ".shot_similarity:METRIC"),
    ("alignment", ".alignment:SCENE"),
    ("alignment", ".alignment:SHOT"),
    ("alignment", ".alignment:INTERACTION"),
    ("alignment", ".alignment:ACTION"),
    ("alignment", ".alignment:AVERAGE"),
)
"""By which name a metric is chosen, and where it is; scores are listed in this order. Each passes
``tests/contract/test_metrics.py``."""
NAMES = tuple(dict.fromkeys(name for name, _ in METRICS))
"""What of ours can be chosen; some are several scores."""
GROUP = "fabula.metrics"
"""Entry points of this group add metrics: the name is the one by which it is chosen, the object a
:class:`.metric.Metric`."""


@cache
def registered() -> "tuple[tuple[str, Metric], ...]":
    """Return all metrics, our own first, each behind the name by which it is chosen."""
    from .metric import Metric

    own = [(name, cast("Metric", _load(address))) for name, address in METRICS]
    others = [(entry.name, entry.load()) for entry in plugins(GROUP)]
    known = {metric.name for _, metric in own}
    for name, metric in others:
        if not isinstance(metric, Metric) or metric.name in known or name in NAMES:
            raise ConfigError(
                f"entry point {name} of {GROUP}", what="it is no Metric, or there is one of that name",
                fix="name it, and its score, otherwise; docs/images.md shows how",
            )  # fmt: skip
        known.add(metric.name)
    return (*own, *others)


def _load(address: str) -> Any:  # noqa: ANN401 - checked by the contract test
    module, _, attribute = address.partition(":")
    return getattr(import_module(module, __package__), attribute)


def metrics(chosen: Iterable[str] | None = None) -> "tuple[Metric, ...]":
    """Return the metrics of some names; None for all."""
    wanted = None if chosen is None else set(chosen)
    return tuple(metric for name, metric in registered() if wanted is None or name in wanted)


def names() -> tuple[str, ...]:
    """Return every name by which metrics can be chosen."""
    return tuple(dict.fromkeys(name for name, _ in registered()))


def choices() -> "tuple[Choice[str], ...]":
    """Return every definition that can be chosen."""
    return tuple(dict.fromkeys(choice for metric in metrics() for choice in metric.choices))


def needs() -> "tuple[Need, ...]":
    """Return every model that some metric needs."""
    return tuple(dict.fromkeys(need for metric in metrics() for need in metric.needs))


def base_of(name: str) -> str:
    """Return a score's name without the judge that stands behind it where there are several."""
    return name.partition(" (")[0]


def judge_of(name: str) -> str:
    """Return the judge in a score's name; empty where there is one judge or none."""
    return name.partition(" (")[2].removesuffix(")")


def metric_of(name: str) -> "Metric":
    """Return the metric of a score."""
    base = base_of(name)
    return next(metric for metric in metrics() if metric.name == base)


def label_of(name: str) -> str:
    """Return a score's name for readers, with its judge where there are several."""
    judge = judge_of(name)
    return metric_of(name).label + (f" · {judge}" if judge else "")


def in_order(scores: Iterable[str]) -> list[str]:
    """Return scores as Table S6 orders them, the others behind, those of several judges side by side."""
    there = list(scores)
    ordered = sorted(metrics(), key=lambda metric: (metric.column is None, metric.column or 0))
    return [name for metric in ordered for name in there if base_of(name) == metric.name]


def lead_of(scores: Iterable[str]) -> str | None:
    """Return the score by which stories are chosen and rows are sorted; None where there is none."""
    leading = [(lead, name) for name in scores if (lead := metric_of(name).lead) is not None]
    return min(leading, key=lambda entry: entry[0])[1] if leading else None
