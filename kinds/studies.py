"""Studies with people: which source a task draws its items from, and what lies at the path it is given."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from ..engine.manifest import NAME as RUN
from ..engine.manifest import read_manifest as read_run
from ..errors import ConfigError, InputError, UserError
from ..schemas.layout import RELEASE
from .verbs import load_stories

if TYPE_CHECKING:
    from ..people.review.sources.source import Drawing, DrawOptions, Material, Source
    from ..people.review.task import Task


def _storyboard_questions() -> "Source":
    from ..people.review.sources.storyboards import QUESTIONS

    return QUESTIONS


def _storyboards() -> "Source":
    from ..people.review.sources.storyboards import BOARDS

    return BOARDS


def _storyboard_pairs() -> "Source":
    from ..people.review.sources.storyboards import PAIRS

    return PAIRS


def _shots() -> "Source":
    from ..people.review.sources.shots import SOURCE

    return SOURCE


def _videos() -> "Source":
    from ..people.review.sources.videos import SOURCE

    return SOURCE


def _appearances() -> "Source":
    from ..people.review.sources.episodes import APPEARANCES

    return APPEARANCES


def _appearance_pairs() -> "Source":
    from ..people.review.sources.episodes import PAIRS

    return PAIRS


def _answers() -> "Source":
    from ..people.review.sources.answers import SOURCE

    return SOURCE


def _drafts() -> "Source":
    from ..audits.draw_parts import SOURCE

    return SOURCE


def _records() -> "Source":
    from ..people.review.sources.records import RECORDS

    return RECORDS


def _items() -> "Source":
    from ..people.review.sources.given import SOURCE

    return SOURCE


SOURCES: Mapping[str, Callable[[], "Source"]] = {
    "storyboard_questions": _storyboard_questions,
    "storyboards": _storyboards,
    "storyboard_pairs": _storyboard_pairs,
    "shots": _shots,
    "videos": _videos,
    "appearances": _appearances,
    "appearance_pairs": _appearance_pairs,
    "answers": _answers,
    "drafts": _drafts,
    "records": _records,
    "items": _items,
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
        raise InputError([UserError(str(path), what="there is nothing at this path", fix=fix)])
    return Material(path, "folder" if path.is_dir() else "file", "", options, load_stories)
