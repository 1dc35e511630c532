"""How outputs are evaluated against a kind: the part that the verbs of evaluation take."""

from dataclasses import dataclass

from ..engine.running import RunKind


@dataclass(frozen=True, slots=True)
class Protocol:
    """How outputs are evaluated against the records of a kind.

    Attributes:
        run: what executes its evaluations.
        sections: sections of a settings file that it reads besides those of its stages.
    """

    run: RunKind
    sections: frozenset[str] = frozenset()
