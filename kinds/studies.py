"""Studies with people: which source a task draws its items from, and what lies at the path it is given."""

from collections.abc import Callable, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

from ..engine.manifest import NAME as RUN
from ..engine.manifest import read_manifest as read_run
from ..errors import ConfigError, InputError
from ..schemas.layout import RELEASE
from .evaluations import Owners, owners_among, scored_judgings
from .kind import part
from .registry import kinds
from .verbs import load_stories

if TYPE_CHECKING:
    from ..people.review.sources.source import Drawing, DrawOptions, Material, Source
    from ..people.review.task import Task

SOURCES: Mapping[str, Callable[[], "Source"]] = {
    "storyboard_questions": part("people.review.sources.storyboards:QUESTIONS"),
    "storyboards": part("people.review.sources.storyboards:BOARDS"),
    "storyboard_pairs": part("people.review.sources.storyboards:PAIRS"),
    "shots": part("people.review.sources.shots:SOURCE"),
    "videos": part("people.review.sources.videos:SOURCE"),
    "appearances": part("people.review.sources.episodes:APPEARANCES"),
    "appearance_pairs": part("people.review.sources.episodes:PAIRS"),
    "answers": part("people.review.sources.answers:SOURCE"),
    "drafts": part("people.audits.form:SOURCE"),
    "records": part("people.review.sources.records:RECORDS"),
    "items": part("people.review.sources.given:SOURCE"),
}
"""What a task may name as ``draws`` -> its source."""


def source_of(task: "Task") -> "Source":
    """Return the source that a task draws from."""
    name = task.card.draws
    if name not in SOURCES:
        raise ConfigError(
            f"task {task.card.id}: draws", expected=f"one of {', '.join(SOURCES)}", found=repr(name),
            fix="name one of them; `items` takes anything that a file describes",
        )  # fmt: skip
    return SOURCES[name]()


def owners_of_draws() -> Owners:
    """Return whose options those of what is drawn for a study are that not all kinds have."""
    drawn = [(source, set(chain(*source.takes.values()))) for source in (load() for load in SOURCES.values())]
    having: list[tuple[str, Sequence[str]]] = []
    for judging, scoring in scored_judgings():
        kind = next(kind for kind in kinds() if judging in kind.judging)
        known = {kind.name, judging.noun, *kind.imported}
        having.append(
            (scoring.title, [name for source, of in drawn if of & known for name in source.options])
        )
    return owners_among([*having, *((source.title, source.options) for source, names in drawn if not names)])


def draw_items(task: "Task", path: Path, options: "DrawOptions | None" = None) -> "Drawing":
    """Return the items of a study, and what they were drawn from."""
    from ..people.review.sources.source import DrawOptions

    source, material = source_of(task), material_of(path, options or DrawOptions())
    source.check(task.card.id, material)
    return source.draw(material)


def material_of(path: Path, options: "DrawOptions") -> "Material":
    """Return what lies at a path: an evaluation, a release, a run, a folder or a file.

    The first that fits.
    """
    from ..evaluation.archive.archive import EVALUATION, read_manifest
    from ..people.review.sources.source import Material
    from ..releases.loading import require_release

    if (path / EVALUATION).is_file():
        return Material(path, "evaluation", read_manifest(path).kind, options, load_stories)
    if (path / RELEASE).is_file():
        return Material(path, "release", require_release(path), options, load_stories)
    if (path / RUN).is_file():
        return Material(path, "run", read_run(path).kind, options, load_stories)
    if not path.exists():
        fix = "give an evaluation, a release, a run or a file"
        raise InputError.one(str(path), what="there is nothing at this path", fix=fix)
    return Material(path, "folder" if path.is_dir() else "file", "", options, load_stories)
