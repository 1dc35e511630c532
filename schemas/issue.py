"""One finding about a data set: what is wrong, where, and what to do."""

from dataclasses import asdict, dataclass
from typing import Literal

Level = Literal["error", "warning"]


@dataclass(frozen=True, slots=True, order=True)
class Issue:
    """One finding of a validator.

    Attributes:
        where: the file (and line) or the record id concerned.
        path: JSON path inside the record, ``$`` for the whole of it.
        code: stable code of the rule, such as ``scene-order``.
        message: what was expected and what was found.
        cure: what to do, in one line.
        level: ``error`` makes a data set invalid, ``warning`` is worth a look.
    """

    where: str
    path: str
    code: str
    message: str
    cure: str
    level: Level = "error"

    def __str__(self) -> str:
        return f"{self.where} {self.path} [{self.code}] {self.message}\n  fix: {self.cure}"

    def as_dict(self) -> dict[str, str]:
        """Return the issue as plain JSON."""
        return asdict(self)
