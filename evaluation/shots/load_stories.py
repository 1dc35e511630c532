"""Stage: one item per method and story, with the pictures that are there; checked before any model is loaded.

A story without any picture is an item too: what is missing is counted.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path

from ...engine.stage import Child, Item, Made, StageSpec, Tools
from ...errors import ConfigError, InputError, UserError
from ...releases.shots.imports import read_story_facts
from ...releases.shots.tree import ShotSet, ShotStory, read_shot_set
from ...schemas.canonical import Json
from ...schemas.shots import StoryFacts
from ...validators.report import ValidationReport
from ..outputs.checked import require_shots
from ..outputs.named import require_distinct
from ..outputs.shot_folders import Choice
from ..outputs.shots import FATAL, CheckOptions, ShotOutputs, check_shots
from .references import generated_references, references_of
from .settings import ShotSelection

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
