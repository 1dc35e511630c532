"""Which named definition of each metric is used, where paper and public code differ."""

from collections.abc import Iterable
from dataclasses import dataclass, fields, replace
from typing import Any

from ...errors import ConfigError
from ..metrics.metric import Choices, choices
from ..stats.uncertainty import Uncertainty


@dataclass(frozen=True, kw_only=True)
class Definitions(Choices, Uncertainty):
    """How an evaluation of shot images is scored; how sure scores are is :class:`.Uncertainty`'s."""

    def all(self) -> dict[str, str]:
        """Return the value of every definition that can be chosen, by its name."""
        return {choice.name: self.of(choice) for choice in choices()}

    def as_json(self) -> dict[str, Any]:
        """Return them as plain JSON."""
        plain = {field.name: getattr(self, field.name) for field in fields(self) if field.name != "chosen"}
        return plain | {name.replace("-", "_"): value for name, value in self.all().items()}

    def named(self) -> str:
        """Return the definitions as a line for people."""
        return ", ".join(f"{name}={value}" for name, value in self.all().items())


def read_definitions(texts: Iterable[str], **uncertainty: Any) -> Definitions:  # noqa: ANN401 - fields of a class
    """Return the definitions that texts such as ``cids=code`` choose."""
    made, known = Definitions(**uncertainty), {choice.name: choice.options for choice in choices()}
    for text in texts:
        name, equals, value = text.partition("=")
        if value in known.get(name, ()):
            made = replace(made, chosen={**made.chosen, name: value})
        else:
            listed = "; ".join(f"{name}={'|'.join(values)}" for name, values in known.items())
            raise ConfigError(
                f"--define {name}{equals}{value}",
                what=f"there is no such definition; there are: {listed}",
                fix="docs/images.md says what they are",
            )  # fmt: skip
    return made
