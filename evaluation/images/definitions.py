"""Which named definition of each metric is used, where paper and public code differ."""

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

from ...errors import ConfigError
from ..stats.uncertainty import Uncertainty

NAMED: dict[str, tuple[str, ...]] = {
    "cids": ("paper", "code"),
    "copy-paste": ("paper", "code"),
    "occm": ("paper", "code"),
    "csd": ("first", "all", "code"),
    "ensemble": ("average", "weighted"),
    "alignment": ("paper", "code"),
    "clip-score": ("hessel", "cosine"),
    "clip-text": ("static", "setting", "plot", "perspective", "mean"),
}
"""Metric -> its definitions, the default first; the metrics' own files say what they are."""
WEIGHTS = {"arcface-r100": 0.4, "adaface-ir101": 0.4, "facenet-vggface2": 0.2}
"""Of encoders of faces under ``ensemble=weighted``: those that the settings of the public code give, and that
its default rule, the plain mean, does not read; the paper gives none."""


@dataclass(frozen=True)
class Definitions(Uncertainty):
    """How an evaluation of shot images is scored; how sure scores are is :class:`.Uncertainty`'s.

    Attributes:
        cids: see :mod:`fabula.evaluation.metrics.cids`; the others likewise.
        least: pairs of crop and character below this similarity are no match; None takes every pair.
        ensemble: how the cosines of several encoders of one crop become one.
        splits: parts of the set for the inception score.
    """

    cids: Literal["paper", "code"] = "paper"
    copy_paste: Literal["paper", "code"] = "paper"
    occm: Literal["paper", "code"] = "paper"
    csd: Literal["first", "all", "code"] = "first"
    alignment: Literal["paper", "code"] = "paper"
    least: float | None = None
    splits: int = 1
    clip_score: Literal["hessel", "cosine"] = "hessel"
    clip_text: Literal["static", "setting", "plot", "perspective", "mean"] = "static"
    ensemble: Literal["average", "weighted"] = "average"

    @property
    def weights(self) -> Mapping[str, float] | None:
        """Encoder -> its weight among several; None where all count alike."""
        return WEIGHTS if self.ensemble == "weighted" else None

    def as_json(self) -> dict[str, Any]:
        """Return them as plain JSON."""
        return asdict(self)

    def named(self) -> str:
        """Return the definitions as a line for people."""
        told = [f"{name}={getattr(self, name.replace('-', '_'))}" for name in NAMED]
        return ", ".join([*told, *([] if self.least is None else [f"least={self.least:g}"])])


def read_definitions(texts: Iterable[str], **uncertainty: Any) -> Definitions:  # noqa: ANN401 - fields of a class
    """Return the definitions that texts such as ``cids=code`` or ``least=0.3`` choose.

    Raises:
        ConfigError: there is no such metric, definition or number.
    """
    made = Definitions(**uncertainty)
    for text in texts:
        name, equals, value = text.partition("=")
        if name in NAMED and value in NAMED[name]:
            made = replace(made, **{name.replace("-", "_"): value})  # type: ignore[arg-type]  # checked above
        elif name == "least" and (least := _number(value)) is not None and -1 <= least <= 1:
            made = replace(made, least=least)
        elif name == "splits" and value.isascii() and value.isdigit() and int(value) > 0:
            made = replace(made, splits=int(value))
        else:
            listed = "; ".join(f"{one}={'|'.join(values)}" for one, values in NAMED.items())
            raise ConfigError(
                f"--define {name}{equals}{value}",
                what=f"there is no such definition; there are: {listed}; least=-1...1; splits=1, 2, ...",
                fix="docs/images.md says what they are",
            )  # fmt: skip
    return made


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None
