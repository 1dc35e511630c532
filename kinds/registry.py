"""The kinds there are: ours in one tuple, users' own by an entry point."""

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from ..engine.manifest import NAME as MANIFEST
from ..engine.manifest import read_manifest
from ..errors import ConfigError, RunError
from ..schemas.plugins import plugins
from . import SPOKEN, entities, events, katha, shots
from .kind import Judging, Kind, part

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from ..engine.running import RunKind
    from ..releases.form import ReleaseForm

OURS = (katha.KIND, events.KIND, shots.KIND, entities.KIND)
BOOKS = "import-books"
"""Kind of a run that splits books into stories: no benchmark is of it."""
GENERATE = "generate"
"""Kind of a run that has pictures made: no benchmark is of it either."""
MEMORY, PACKETS, SHOTS = "memory", "memory-packets", "memory-generate"
"""Kinds of runs that prepare and make the shots of episodes with a memory of entities: the same."""
GROUP = "fabula.kinds"
"""The entry-point group in which a package names its own: ``comics = "comic_pages.kind:KIND"``."""


@cache
def kinds() -> tuple[Kind, ...]:
    """Return every kind, ours first."""
    known = {kind.name: kind for kind in OURS}
    runs = {run for kind in OURS for run in (*kind.runs, *kind.imported)}
    for entry in plugins(GROUP):
        kind = entry.load()
        if not isinstance(kind, Kind) or {kind.name, *kind.runs, *kind.imported} & runs:
            raise ConfigError(
                f"entry point {entry.name} of {GROUP}",
                expected="a Kind with a name, an evaluation and imports of its own",
                found=repr(kind.name if isinstance(kind, Kind) else kind), fix=f"correct {entry.value}",
            )  # fmt: skip
        known[kind.name] = kind
        runs |= {*kind.runs, *kind.imported}
    return tuple(known.values())


def kind_named(name: str) -> Kind:
    """Return a kind by its name, or by what commands call it."""
    for kind in kinds():
        if name in (kind.name, SPOKEN.get(kind.name)):
            return kind
    there = ", ".join(SPOKEN.get(kind.name, kind.name) for kind in kinds())
    raise ConfigError(f"kind {name}", what="there is no such kind", fix=f"use one of: {there}")


def kind_with(run: str) -> Kind | None:
    """Return the kind that has a kind of run: a build, an evaluation or an import; None where none has it."""
    return next((kind for kind in kinds() if run in (*kind.runs, *kind.imported)), None)


def run_kinds(kind: Kind) -> "tuple[RunKind, ...]":
    """Return what executes the runs of a kind: its build, evaluations and audit, as ``kind.runs``."""
    audits = () if kind.audit is None else (kind.audit(),)
    return (kind.drafting().run, *(judging.protocol().run for judging in kind.judging), *audits)


def judgings() -> tuple[Judging, ...]:
    """Return every way in which outputs are evaluated, in the order of the kinds."""
    return tuple(judging for kind in kinds() for judging in kind.judging)


def judging_named(noun: str) -> Judging:
    """Return the way of evaluating whose archives bear a name."""
    for judging in judgings():
        if noun in (judging.noun, SPOKEN.get(judging.noun)):
            return judging
    there = ", ".join(SPOKEN.get(judging.noun, judging.noun) for judging in judgings())
    raise ConfigError(
        f"evaluation of kind {noun}", what="there is no such judge protocol here",
        fix=f"install the package that it was made with; there are: {there}",
    )  # fmt: skip


def run_kind_of(run: Path) -> "RunKind":
    """Return what executes a run."""
    name = read_manifest(run).kind
    if name in _WITHOUT_KIND:
        return _WITHOUT_KIND[name]()
    kind = kind_with(name)
    if kind is None or name not in kind.runs:
        built, judged = zip(*((kind.runs[0], kind.runs[1:]) for kind in kinds()), strict=True)
        known = [*built, *(name for names in judged for name in names)]
        raise RunError(
            str(run),
            what=f"this is a run of kind {name}, which Fabula does not know; it knows {', '.join(known)}",
            fix="use the program that made it",
        )
    return dict(zip(kind.runs, run_kinds(kind), strict=True))[name]


_WITHOUT_KIND: "Mapping[str, Callable[[], RunKind]]" = {
    BOOKS: part("builders.books.building:RUN"),
    GENERATE: part("studies.pictures:RUN"),
    MEMORY: part("studies.memory.pipeline:RUN"),
    PACKETS: part("studies.memory.shots.pipeline:RUN"),
    SHOTS: part("studies.memory.shots.generating:RUN"),
}
"""Kind of a run that is of no kind of benchmark -> what executes it."""


def every_run_kind() -> "Iterator[tuple[str, RunKind]]":
    """Yield each kind of run by name with what executes it: those of the kinds, then those of no kind."""
    for kind in kinds():
        yield from zip(kind.runs, run_kinds(kind), strict=True)
    for name, run in _WITHOUT_KIND.items():
        yield name, run()


def foreign_sections() -> frozenset[str]:
    """Return every section that a settings file may have for some kind of run."""
    from ..engine.pipeline import load_pipeline

    sections = {name for _, run in every_run_kind() for name in load_pipeline(run.pipeline).names()}
    for kind in kinds():
        sections.update(name for judging in kind.judging for name in judging.protocol().sections)
    return frozenset(sections)


def form_of_run(run: Path) -> "ReleaseForm":
    name = read_manifest(run).kind
    kind = kind_with(name)
    if kind is None or name not in (kind.name, *kind.imported):
        there = ", ".join(kind.name for kind in kinds())
        raise RunError(
            str(run / MANIFEST),
            what=f"this is a run of kind {name!r}, and only runs of {there} have releases",
            fix="give the folder of a `fabula build` run",
        )
    return kind.release()


def form_of_release(folder: Path) -> "ReleaseForm":
    """Return the form of a release: that of the kind that it names; if damaged, that of its records."""
    from ..releases.loading import kind_of

    name = kind_of(folder)
    forms = [kind.release() for kind in kinds() if kind.name == name]
    if not forms:
        every = [kind.release() for kind in kinds()]
        forms = [form for form in every if (folder / next(iter(form.record_ids))).exists()] or every
    return forms[0]
