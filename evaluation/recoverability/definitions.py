"""The named definitions with which replies are scored; every report says which were used."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from ...errors import ConfigError
from ..stats.uncertainty import Uncertainty

Nonresponse = Literal["incorrect", "excluded"]
Support = Literal["contradicted", "eq51"]
Common = Literal["every-seed", "majority"]

PROTOCOL = "katha"
"""Name of the recoverability protocol, which its archives and scores bear."""
NONRESPONSES: Mapping[str, str] = {
    "incorrect": "a judge that was asked and did not answer counts as a vote for a wrong answer",
    "excluded": "a judge that did not answer has no vote; without any vote the question is left out",
}
SUPPORTS: Mapping[str, str] = {
    "contradicted": "under text+image, an answer whose image support is contradicted or ambiguous is wrong",
    "eq51": "under text+image, an answer whose image support is omitted is wrong too (Eq. 51 to the letter)",
}
COMMONS: Mapping[str, str] = {
    "every-seed": "common-valid are questions that are valid for every method with every seed",
    "majority": "common-valid are questions that are valid for every method with most of its seeds; each"
    " counts once, as the mean over the seeds with which it is valid",
}


@dataclass(frozen=True)
class Definitions(Uncertainty):
    """How replies become numbers; how sure they are is :class:`.Uncertainty`'s.

    ``support`` exists because the paper contradicts itself: by Eq. 51 a question is invalid wherever a judge
    says that the images omit the answer, and then no loss could ever be measured (the second row of Table 30
    would be empty, against 89.6 % valid questions in Table 73). The default keeps such questions.

    Attributes:
        matcher: how answers are compared: {evaluation.recoverability.matching:MATCHERS}; some take a value,
            as NAME=VALUE.
        nonresponse: what a judge counts as that was asked and did not answer: ``incorrect`` or ``excluded``.
        support: which image support spoils a text+image answer: ``contradicted`` or ``eq51`` [contradicted].
        common: which questions methods are compared on: {evaluation.recoverability.definitions:COMMONS}
            [every-seed].
        weights: weight of each judge, fitted on people's answers; None for one vote each.
    """

    matcher: str = "accepted"
    nonresponse: Nonresponse = "excluded"
    support: Support = "contradicted"
    weights: Mapping[str, float] | None = field(default=None, hash=False)
    common: Common = "every-seed"

    def __post_init__(self) -> None:
        _known("nonresponse", self.nonresponse, NONRESPONSES)
        _known("support", self.support, SUPPORTS)
        _known("common", self.common, COMMONS)
        super().__post_init__()

    def as_json(self) -> dict[str, Any]:
        """Return them as plain JSON; ``common`` came later and stands there where it is not the usual one."""
        given = None if self.weights is None else dict(self.weights)
        fields = asdict(self)
        if self.common == "every-seed":
            del fields["common"]
        return {
            **fields, "weights": given, "aggregation": "majority" if given is None else "weighted",
            "ties": "incorrect",
        }  # fmt: skip


def _known(name: str, value: str, there: Mapping[str, str]) -> None:
    if value not in there:
        raise ConfigError(name, expected=" or ".join(there), found=value, fix="choose one of them")
