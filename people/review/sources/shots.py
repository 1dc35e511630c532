"""Shot images as people see them: all pictures of a story by one method, each beside its script."""

import random
from collections.abc import Mapping, Sequence
from pathlib import Path

from ....engine.manifest import read_manifest as read_run
from ....errors import InputError, RunError, UserError
from ....evaluation.archive.archive import Archive, check_hash, read_manifest
from ....evaluation.outputs.shots import ShotOutputs
from ....evaluation.shots.judging import ShotSelection
from ....evaluation.shots.load_stories import OUTPUTS, SHOTS, checked_outputs, chosen_stories
from ....evaluation.shots.looking import read_found
from ....releases.shots.tree import ShotSet, ShotStory, read_shot_set
from ....schemas.canonical import Json
from ....schemas.shots import Shot, TwoTexts
from ..items import Drawn
from .source import Drawing, DrawOptions, Material, Source, draw_methods, known_only

STAGE = "load_stories"
"""Stage of an evaluation whose settings say how outputs are read."""


def draw_shots(material: Material) -> Drawing:
    """Draw the shots of every story by every method; a story without any picture is left out."""
    options = material.options
    folder, folders, selection = _sources(material)
    whole, _ = read_shot_set(folder)
    if material.what == "evaluation":
        check_hash(Archive(read_manifest(material.path), ()), "release", whole.sha256, str(folder))
    chosen = chosen_stories(whole, selection)
    outputs = {checked.method: checked for checked in checked_outputs(folders, chosen, selection)}
    known_only("methods", options.methods, outputs, "method")
    kept = {name: made for name, made in outputs.items() if not options.methods or name in options.methods}
    if material.what == "evaluation":
        _check_judged(material.path, kept)
    items = [_item(story, method, kept[method]) for story, method in _drawn(chosen, kept, options)]
    if not items:
        what = "no method has a picture of the chosen stories"
        raise InputError.one(str(material.path), what=what, fix="choose other stories or methods")
    source: dict[str, Json] = {
        "kind": material.what, "path": material.path.resolve().name, "release_sha256": whole.sha256,
        "outputs_sha256": {name: made.sha256 for name, made in sorted(kept.items())},
    }  # fmt: skip
    return Drawing(tuple(items), source)


def _check_judged(folder: Path, outputs: Mapping[str, ShotOutputs]) -> None:
    """Refuse pictures that are not those of the evaluation: people would rate others than were scored."""
    seen = {
        (story.method, story.story_id, shot.number): shot.sha256
        for story in read_found(folder)
        for shot in story.shots
    }
    what, fix = "this is not the picture that was evaluated", "give the folder as it was evaluated"
    problems = [
        UserError(str(shot.file), what=what, fix=fix)
        for method, made in outputs.items()
        for story_id, shots in made.shots.items()
        for number, shot in shots.items()
        if seen.get((method, story_id, number)) != shot.sha256
    ]
    if problems:
        raise InputError(problems)


def _sources(material: Material) -> tuple[Path, Sequence[Path], ShotSelection]:
    """Return the set, the folders of outputs, and which stories are taken and how outputs are read."""
    options = material.options
    own = {"stories": options.stories, "limit": options.limit}
    if material.what != "evaluation":
        if not options.outputs:
            fix = "give the outputs of each method: --outputs FOLDER"
            raise InputError.one(str(material.path), what="whose pictures are seen is not said", fix=fix)
        return material.path, options.outputs, ShotSelection.model_validate(own)
    try:
        run = read_run(material.path)
        listed = [(source.role, source.path) for source in run.source_list(material.path)]
        given = {name: value for name, value in own.items() if value}
        selection = ShotSelection.model_validate({**run.settings[STAGE], **given})
    except (RunError, KeyError) as error:
        what = "a copy of an archive does not hold the scripts and pictures of shots"
        fix = "give the run folder of the evaluation, or the set of scripts with --outputs FOLDER"
        raise InputError.one(str(material.path), what=what, fix=fix) from error
    folder = options.release or next(path for role, path in listed if role == SHOTS)
    return folder, options.outputs or [path for role, path in listed if role == OUTPUTS], selection


def _drawn(
    chosen: ShotSet, outputs: Mapping[str, ShotOutputs], options: DrawOptions
) -> list[tuple[ShotStory, str]]:
    """Return story and method of every item, after the draw of methods."""
    there = {
        story.story_id: sorted(name for name, made in outputs.items() if made.shots[story.story_id])
        for story in chosen.stories
    }
    per_story = len(outputs) if options.per_prompt is None else options.per_prompt
    drawn = draw_methods(there, per_story, random.Random(options.seed))
    return [(chosen.by_id[story], method) for story, method in sorted(drawn)]


def _item(story: ShotStory, method: str, outputs: ShotOutputs) -> Drawn:
    pictures = outputs.shots[story.story_id]
    numbers = sorted(pictures)
    shots = [
        {**_script(story, shot), "picture": numbers.index(shot.index) if shot.index in pictures else None}
        for shot in story.script.shots
    ]
    return Drawn(
        story.story_id, story.story_id, {"shots": shots}, (tuple(pictures[n].file for n in numbers),),
        methods=(method,),
    )  # fmt: skip


def _script(story: ShotStory, shot: Shot) -> dict[str, Json]:
    """Return what a script says of a shot, in both languages."""
    cast = story.script.cast(shot)
    sheets = story.script.characters
    names = {
        language: [
            (sheets[key].name(own) if key in sheets else "") or key for key in cast
        ]
        for language, own in (("en", "en"), ("zh", "ch"))
    }  # fmt: skip
    return {
        "number": shot.index, "plot": _both(shot.plot), "setting": _both(shot.setting),
        "camera": _both(shot.perspective), "still": _both(shot.static),
        "characters": {language: ", ".join(listed) for language, listed in names.items()},
    }  # fmt: skip


def _both(texts: TwoTexts | None) -> dict[str, str]:
    """Return a text by language; where a language is missing the other stands in."""
    english, chinese = ("", "") if texts is None else (texts.of("en"), texts.of("ch"))
    return {"en": english or chinese, "zh": chinese or english}


SOURCE = Source(
    "shots of stories", {"evaluation": ("images",), "release": ("shots",), "run": ("shots", "import-shots"),
    "folder": ()}, "an evaluation of shot images (fabula evaluate images), or a set of scripts and --outputs",
    ("methods", "stories", "limit", "per_prompt", "outputs", "release"), draw_shots,
)  # fmt: skip
