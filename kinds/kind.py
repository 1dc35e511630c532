"""What a kind of benchmark is: a value, made of the parts that the rooms below ask for."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..builders.drafting import Drafting
    from ..evaluation.protocol import Protocol
    from ..people.study import Study
    from ..releases.form import ReleaseForm
    from ..releases.loading import Release
    from ..validators.rules import RuleSet


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of benchmark.

    Parts are functions that import what they return, so that a list of kinds loads none of them.

    Attributes:
        name: as ``run.json``, ``release.json`` and the command line have it; builds are runs of it.
        release: how its runs become releases, and how these are read.
        drafting: how its records are drafted and corrected.
        judged: the noun of its evaluation, as in ``fabula evaluate images``; its evaluations are runs of kind
            ``evaluate-NOUN``. None where nothing is evaluated against it.
        protocol: how outputs are evaluated against it; None where nothing is.
        imported: kinds of run that hold records of this kind which were imported.
        study: how its evaluations are compared with what people say; None where they are not.
        rules: what its data must satisfy, and what is counted over it; None where only releases are checked.
        stories: reads a release of it as stories with recoverability questions; None where it has none.
    """

    name: str
    release: Callable[[], "ReleaseForm"]
    drafting: Callable[[], "Drafting"]
    judged: str | None = None
    protocol: Callable[[], "Protocol"] | None = None
    imported: tuple[str, ...] = ()
    study: Callable[[], "Study"] | None = None
    rules: Callable[[], "RuleSet"] | None = None
    stories: Callable[[Path], "Release"] | None = None

    @property
    def runs(self) -> tuple[str, ...]:
        """The kinds of run that something executes: builds and evaluations."""
        return (self.name,) if self.judged is None else (self.name, f"evaluate-{self.judged}")
