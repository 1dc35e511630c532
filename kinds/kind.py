"""What a kind of benchmark is: a value, made of the parts that the rooms below ask for."""

from collections.abc import Callable
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..schemas.plain_files import open_plain

if TYPE_CHECKING:
    from ..builders.drafting import Drafting
    from ..engine.running import RunKind
    from ..evaluation.protocol import Protocol, Scoring
    from ..evaluation.running import Evaluating
    from ..people.study import Study
    from ..releases.form import ReleaseForm
    from ..releases.loading import Release
    from ..validators.report import RuleSet


def part(place: str) -> Callable[[], Any]:
    """Return what imports a part when it is asked for, such as ``releases.katha.form:FORM``."""
    module, _, name = place.partition(":")
    return lambda: getattr(import_module(f"..{module}", __package__), name)


_LOOKED_INTO = 5_000_000
"""So many bytes of a file are searched for a word at most."""


@dataclass(frozen=True, slots=True)
class Marks:
    """What tells data of a kind from that of others, so that only the kind that is needed is loaded."""

    # patterns of files; a folder that holds a file of one of them is data of the kind
    files: tuple[str, ...] = ()
    suffix: str = ""  # how the name of a single file of the kind ends; empty where it has none
    worded: tuple[str, bytes] | None = None  # patterns of files whose first must hold a word, and the word
    rest: bool = False  # whether what no other kind claims is read as data of this one, and refused there

    def match(self, path: Path) -> bool:
        """Return whether what lies at a path is data of the kind."""
        if path.is_file():
            return self.rest or path.suffix == self.suffix != ""
        if self.rest or any(True for pattern in self.files for _ in path.glob(pattern)):
            return True
        if self.worded is None:
            return False
        pattern, word = self.worded
        first = min(path.glob(pattern), default=None)
        if first is None or not first.is_file():
            return False
        with open_plain(first, follow=True) as file:
            return word in file.read(_LOOKED_INTO)


@dataclass(frozen=True, slots=True)
class Judging:
    """One way in which outputs are evaluated against the records of a kind."""

    # as in ``fabula evaluate images``: evaluations are runs of kind ``evaluate-NOUN``; archives of the
    # protocol bear its name. A kind judged by the protocol of another leaves archives their name.
    noun: str
    protocol: Callable[[], "Protocol"]  # how they are evaluated, scored, compared and shown
    # how such evaluations are compared with what people say; None where they are not
    study: Callable[[], "Study"] | None = None
    # how archives become numbers and a page, so that what running needs is not loaded for it; None where the
    # protocol says so
    scoring: Callable[[], "Scoring"] | None = None
    # how outputs are evaluated from Python; None where a package has a function of its own
    evaluating: Callable[[], "Evaluating"] | None = None

    def scored(self) -> "Scoring":
        """Return how archives become numbers and a page."""
        return (self.scoring or self.protocol().scoring)()


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of benchmark.

    Parts are functions that import what they return (:func:`part`): a list of kinds loads none of them.
    """

    name: str  # as ``run.json``, ``release.json`` and the command line have it; builds are runs of it
    release: Callable[[], "ReleaseForm"]  # how its runs become releases, and how these are read
    drafting: Callable[[], "Drafting"]  # how its records are drafted and corrected
    # how outputs are evaluated against it, a way each; none where nothing is
    judging: tuple[Judging, ...] = ()
    imported: tuple[str, ...] = ()  # kinds of run that hold records of this kind which were imported
    # what its data must satisfy, and what is counted over it; None where only releases are checked
    rules: Callable[[], "RuleSet"] | None = None
    marks: Marks = field(default_factory=Marks)  # what tells its data from that of other kinds
    # reads a release of it as stories with recoverability questions; None where it has none
    stories: Callable[[Path], "Release"] | None = None
    # what asks a model about drafts of it; None where its drafts are not audited
    audit: Callable[[], "RunKind"] | None = None

    @property
    def runs(self) -> tuple[str, ...]:
        """The kinds of run that something executes: builds, evaluations, and answers for audits of drafts."""
        audits = () if self.audit is None else (f"audit-{self.name}",)
        return (self.name, *(f"evaluate-{judging.noun}" for judging in self.judging), *audits)
