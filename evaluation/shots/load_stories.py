"""Stage: one item per method and story, with the pictures that are there; checked before any model is loaded.

A story without any picture is an item too: what is missing is counted.
"""

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ...engine.stage import Child, Item, Made, StageSpec, Tools
from ...errors import ConfigError, InputError, UserError
from ...media.images import MediaProblem, open_picture, read_bytes
from ...models.vision.store import Rows, TextEncoder, VectorStore
from ...releases.shots.imports import read_story_facts
from ...releases.shots.tree import ShotSet, ShotStory, read_shot_set
from ...schemas.canonical import Json, sha256_bytes
from ...schemas.plain_files import composed
from ...schemas.shots import Shot, ShotScript, StoryFacts, TwoTexts
from ...validators.report import ValidationReport
from ..metrics.clip_score import PARTS
from ..outputs.layout import PICTURES, require_shots
from ..outputs.named import require_distinct
from ..outputs.shots import (
    CHARACTERS,
    FATAL,
    CheckOptions,
    Choice,
    ShotOutputs,
    StoryFolder,
    check_shots,
    story_folders,
)
from .judging import ShotSelection

if TYPE_CHECKING:
    from PIL.Image import Image


# -- Cosines of texts with pictures, and reference images that a method drew of the characters itself
#
# Drawn references (Table S8) lie beside the shots of a story, in a folder whose name is or ends in
# ``characters`` or ``chars``: one picture per character named by its key or English name, numbered where
# there are several (``Mira_2.png``), or a folder of that name with pictures.

LANGUAGE = "en"
"""Of the texts: the published encoder knows English."""


@dataclass(frozen=True)
class TextMeans:
    """The encoder, what keeps its vectors, and how many it gets at once."""

    model: TextEncoder
    store: VectorStore
    batch: int


def compare_texts(story: Json, numbers: Sequence[int], images: "Sequence[Image]", means: TextMeans) -> Json:
    """Return, for each part of the texts, the cosines with the pictures and the tokens that were cut off.

    ``images``: RGB pictures.

    Returned: part -> ``cosines`` and ``cut``, one per picture; null where the shot has no such text.
    """
    shots = {shot.index: shot for shot in ShotScript.model_validate(story["script"]).shots}
    pictures = means.store.rows(means.model, images, means.batch)
    return {
        part: _compared([_text(shots[number], part) for number in numbers], pictures, means) for part in PARTS
    }


def _compared(texts: Sequence[str], pictures: Rows, means: TextMeans) -> Json:
    there = [index for index, text in enumerate(texts) if text]
    cosines: list[float | None] = [None] * len(texts)
    cut: list[int | None] = [None] * len(texts)
    if there:
        encoded = means.store.texts(means.model, [texts[index] for index in there], means.batch)
        for index, row, lost in zip(there, encoded.rows, encoded.cut, strict=True):
            cosines[index], cut[index] = _cosine(pictures[index], row), lost
    return {"cosines": cosines, "cut": cut}


def _cosine(picture: Rows, text: Rows) -> float | None:
    """Return the cosine of two unit vectors, summed exactly; None where there is no vector."""
    value = math.fsum(float(x) * float(other) for x, other in zip(picture, text, strict=True))
    return None if math.isnan(value) else min(1.0, max(-1.0, value))


def _text(shot: Shot, part: str) -> str:
    texts: TwoTexts | None = getattr(shot, part)
    return "" if texts is None else texts.of(LANGUAGE).strip()


_MARKS = re.compile(r"[\W_]+")
_NUMBER = re.compile(r"[\s_-]+[0-9]{1,3}$")


def generated_references(root: Path, choice: Choice) -> dict[int, dict[str, list[Path]]]:
    """Return number of a story -> name of a character, as it is compared -> its pictures, sorted."""
    return {int(folder.story_id): _pictures(folder) for folder in story_folders(root, choice)}


def references_of(story: ShotStory, drawn: dict[str, list[Path]]) -> dict[str, list[Json]]:
    """Return the pictures of each character of a story; none where there is none that can be decoded."""
    references: dict[str, list[Json]] = {}
    for key, sheet in story.script.characters.items():
        names = dict.fromkeys(filter(None, (compared(key), compared(sheet.name_en or ""))))
        files = [file for name in names for file in drawn.get(name, ())]
        references[key] = [*filter(None, map(_usable, dict.fromkeys(files)))]
    return references


def compared(name: str) -> str:
    """Return a name as names are compared: case, spaces, marks and forms of Unicode do not count."""
    return _MARKS.sub(" ", composed(name)).strip().casefold()


def _pictures(story: StoryFolder) -> dict[str, list[Path]]:
    drawn: dict[str, list[Path]] = {}
    for folder in _folders(story):
        for entry in sorted(folder.iterdir()):
            inside = sorted(entry.iterdir()) if entry.is_dir() else [entry]
            name = entry.name if entry.is_dir() else entry.stem
            for file in inside:
                if file.is_file() and file.suffix.lower() in PICTURES and not file.name.startswith("."):
                    for spelt in dict.fromkeys((compared(name), compared(_NUMBER.sub("", name)))):
                        drawn.setdefault(spelt, []).append(file)
    return drawn


def _folders(folder: StoryFolder) -> Iterator[Path]:
    """Yield the folders of characters: in the folder with the shots, or beside it where it is named so."""
    places = [folder.folder]
    if folder.folder.name.lower().endswith(("shots", "shot")):
        places.append(folder.folder.parent)
    for parent in places:
        yield from sorted(
            path for path in parent.iterdir() if path.is_dir() and CHARACTERS.fullmatch(path.name)
        )


def _usable(file: Path) -> Json | None:
    try:
        data = read_bytes(file)
        open_picture(data, name=file.name)
    except MediaProblem:
        return None
    return {"file": str(file.absolute()), "sha256": sha256_bytes(data)}


# --

SHOTS, OUTPUTS = "shots", "outputs"
"""Roles of the sources."""
MISNUMBERED = ("shots-from-zero", "shot-order")
"""Findings about a script under which a picture might be judged by another shot's text."""
_SHOWN = 20

SPEC = StageSpec(
    name="load_stories",
    version=7,
    shape="expand",
    reads=("sources",),
    writes=("story", "facts", "shots", "outputs"),
    libraries=("pillow",),
    settings=ShotSelection,
)


def run(item: Item, tools: Tools) -> Iterator[Child]:
    """Yield one child per method and story, by method."""
    settings = tools.own(ShotSelection)
    whole, report = read_shot_set(tools.of_role(item, SHOTS)[0])
    known = read_story_facts(whole)
    chosen = chosen_stories(whole, settings)
    check_numbers(chosen, report)
    for checked in checked_outputs(tools.of_role(item, OUTPUTS), chosen, settings):
        about = {
            "accounting": checked.accounting(),
            "codes": _codes(checked, whole),
            "references": settings.references,
            "sha256": checked.sha256,
            "release": {"sha256": whole.sha256, "stories": len(whole.stories)},
            "stories": None if len(chosen.stories) == len(whole.stories) else list(chosen.by_id),
        }
        drawn = _drawn(checked, settings)
        for story in chosen.stories:
            fields = {
                "story": _story(whole, story, drawn),
                "facts": _facts(story, known.get(story.story_id)),
                "shots": _shots(checked, story),
                "outputs": about,
            }
            yield Child(f"{checked.method}/{story.story_id}", Made(fields))


def chosen_stories(shot_set: ShotSet, settings: ShotSelection) -> ShotSet:
    """Return the stories that the settings choose, in the order of the set."""
    unknown = sorted(set(settings.stories) - set(shot_set.by_id))
    if unknown:
        raise ConfigError(
            "--story",
            what=f"the set has no story {', '.join(unknown)}",
            fix=f"check the spelling; an id is written like {next(iter(shot_set.by_id), '01')}",
        )
    kept = [story for story in shot_set.stories if not settings.stories or story.story_id in settings.stories]
    return ShotSet(shot_set.folder, tuple(kept[: settings.limit]))


def check_numbers(chosen: ShotSet, report: ValidationReport) -> None:
    """Check that the shots of the chosen stories are numbered 1, 2, 3: pictures go by these numbers."""
    wrong = [issue for issue in report.issues if issue.code in MISNUMBERED]
    wrong = [issue for issue in wrong if issue.where.partition("/")[0] in chosen.by_id]
    if wrong:
        raise InputError(
            [
                UserError(
                    f"{issue.where} {issue.path}",
                    what=f"the shots cannot be told apart: [{issue.code}] {issue.message}",
                    fix=issue.cure,
                )
                for issue in wrong[:_SHOWN]
            ]
        )


def checked_outputs(
    folders: Sequence[Path], chosen: ShotSet, settings: ShotSelection
) -> tuple[ShotOutputs, ...]:
    """Return the outputs of every method, checked, by method."""
    require_distinct([folder.resolve().name for folder in folders])
    choice = Choice(settings.mode, settings.language, settings.timestamp)
    options = CheckOptions(choice=choice, first=settings.first_shot)
    checked = [check_shots(folder, chosen, options) for folder in sorted(folders, key=lambda path: path.name)]
    require_shots(checked, FATAL, "picture")
    return tuple(checked)


def _codes(checked: ShotOutputs, whole: ShotSet) -> dict[str, int]:
    """Return how many findings each code has; a story of the set that is not chosen is none."""
    numbers = {int(story.story_id) for story in whole.stories}
    left_alone = sum(
        issue.code == "unknown-story" and int(issue.where) in numbers for issue in checked.issues
    )
    counts = dict(checked.counts)
    if left_alone:
        counts["unknown-story"] -= left_alone
    return {code: count for code, count in counts.items() if count}


Drawn = dict[int, dict[str, list[Path]]]


def _drawn(checked: ShotOutputs, settings: ShotSelection) -> Drawn | None:
    """Return the references that a method drew itself; None where those of the set count."""
    if settings.references == "dataset":
        return None
    return generated_references(checked.root, Choice(settings.mode, settings.language, settings.timestamp))


def _story(shot_set: ShotSet, story: ShotStory, drawn: Drawn | None) -> Json:
    if drawn is not None:
        own = references_of(story, drawn.get(int(story.story_id), {}))
        return {"story_id": story.story_id, "script": story.script.as_json(), "references": own}
    references = {
        key: [{"file": str(shot_set.path(image).absolute()), "sha256": image.sha256} for image in images]
        for key, images in story.references.items()
    }
    return {"story_id": story.story_id, "script": story.script.as_json(), "references": references}


def _facts(story: ShotStory, known: StoryFacts | None) -> Json:
    """Return what the set says of a story and its characters beyond what is judged."""
    facts: Json = {} if known is None else known.as_json()
    facts.pop("story_id", None)
    characters = {key: facts.get("characters", {}).get(key) for key in story.script.characters}
    return {
        **facts,
        "story_type": story.script.kind,
        "characters": {key: facts for key, facts in characters.items() if facts is not None},
    }


def _shots(checked: ShotOutputs, story: ShotStory) -> list[Json]:
    there = checked.shots[story.story_id]
    listed = []
    for shot in story.script.shots:
        cast = list(dict.fromkeys(story.script.cast(shot)))
        picture = there.get(shot.index)
        listed.append(
            {
                "number": shot.index,
                "onstage": len(cast),
                "expected": [key for key in cast if key in story.script.characters],
                "file": None if picture is None else str(picture.file.absolute()),
                "sha256": None if picture is None else picture.sha256,
            }
        )
    return listed
