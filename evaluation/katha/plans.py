"""Plans of stories: what a generator has to draw, and the same as generators of whole stories read it.

A plan says what each picture of a storyboard has to show. A variant's plan is that of its base story but for
the changed scene, whose prompts are made of its new text.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from ...releases.loading import Release
from ...releases.shots.imports import ExportedInputs, export_inputs
from ...releases.shots.tree import ShotSet, ShotStory
from ...schemas.canonical import Json, jsonl_lines, write_atomic
from ...schemas.katha import StoryRecord, Variant
from ...schemas.shots import ShotScript
from ...schemas.text import normalize_answer
from ...validators.katha.scene_rules import without_article
from ..outputs.storyboards import check_splits
from .load_items import variant_stories, variant_story

PLANS = "plans.jsonl"
"""One line for each storyboard."""


def plans(release: Release, records: Iterable[StoryRecord]) -> Iterator[Json]:
    """Yield the plan of each story and, after it, of each of its active variants."""
    for record in records:
        yield _plan(record, record, None)
        for variant in release.variants_of[record.story_id]:
            if variant.has_variant:
                yield _plan(variant_story(record, variant), record, variant)


def _plan(told: StoryRecord, record: StoryRecord, variant: Variant | None) -> Json:
    made = {
        "id": told.story_id,
        "story_id": record.story_id,
        "variant_id": variant.variant_id if variant else None,
        "changed_scene": variant.changed_scene_id if variant else None,
        "title": record.title,
        "language": record.language,
        "split": record.split,
    }
    scenes = [
        {
            "scene": scene.scene_index,
            "text": scene.scene_text,
            "characters": list(scene.characters),
            "prompt": scene.generation_prompt,
            "prompt_long": scene.generation_prompt_long,
            "file": f"{told.story_id}/{scene.scene_index:02}.png",
        }
        for scene in told.scenes
    ]
    return {**made, "scenes": scenes}


def told_in_shots(release: Release, records: Iterable[StoryRecord]) -> ShotSet:
    """Return stories and their active variants as shot scripts, a shot for each scene, without pictures.

    ``plot`` is the scene's text, ``static`` its prompt; who draws stories decides on place and camera. The
    texts are the story's, in whatever language, under both keys of the form.
    """
    told = [
        story for record in records for story in (record, *variant_stories(release, [record]))
    ]  # fmt: skip
    return ShotSet(release.path, tuple(map(_in_shots, told)))


def _in_shots(story: StoryRecord) -> ShotStory:
    from ...builders.katha.draft_scenes import looks_in

    looks = looks_in([scene.as_json() for scene in story.scenes])
    names = dict.fromkeys(name for scene in story.scenes for name in scene.characters)
    sheets: Json = {}
    for name in names:
        look = looks.get(normalize_answer(without_article(name)), name)
        sheets[name] = {"name_en": name, "name_ch": name, "prompt_en": look, "prompt_ch": look}
    shots = [
        {
            "index": scene.scene_index,
            "Plot Correspondence": _twice(scene.scene_text),
            "Static Shot Description": _twice(scene.generation_prompt or ""),
            "Characters Appearing": _twice(list(scene.characters)),
        }
        for scene in story.scenes
    ]
    kind = _twice((story.narrative_type or "").replace("_", " "))
    script = ShotScript.model_validate({"Story_type": kind, "Characters": sheets, "Shots": shots})
    return ShotStory(story.story_id, script, dict.fromkeys(names, ()))


def _twice(value: Json) -> Json:
    return {"en": value, "ch": value}


def export_plans(
    release: Release,
    out: Path,
    generator: str,
    values: Mapping[str, str | int | float],
    splits: Sequence[str] = (),
) -> ExportedInputs:
    """Write the plans of a release as a generator of whole stories reads them; see :func:`export_inputs`.

    ``results.jsonl`` says where the generator leaves each picture (``made``), and the ``file`` that it is to
    be in the folder of outputs.
    """
    records = _of_splits(release, splits)

    def rename(line: Json) -> Json:
        file = f"{line['story_id']}/{line['shot']:02}.png"
        return {"story_id": line["story_id"], "scene": line["shot"], "made": line["file"], "file": file}

    return export_inputs(
        told_in_shots(release, records), out, generator, values=values, rename=rename
    )  # fmt: skip


def _of_splits(release: Release, splits: Sequence[str]) -> list[StoryRecord]:
    check_splits(release, splits)
    wanted = set(splits)
    return [record for record in release.records if not wanted or record.split in wanted]


def write_plans(release: Release, out: Path, splits: Sequence[str] = ()) -> dict[str, int]:
    """Write the plans of a release, or of some of its splits, into a new folder; return how many of what."""
    from ...releases.target import require_free, staged

    records = _of_splits(release, splits)
    lines = list(plans(release, records))
    require_free(out)
    with staged(out.absolute()) as (draft,):
        write_atomic(draft / PLANS, jsonl_lines(lines))
    return {"stories": len(records), "variants": len(lines) - len(records)}
