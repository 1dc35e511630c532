"""What a contrastive variant tells, as a record of its own, and plans for generators of stories and variants.

A plan says what each picture of a storyboard has to show. A variant's plan is that of its base story but for
the changed scene, whose prompts are made of its new text.
"""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from ...releases.loading import Release
from ...schemas.canonical import Json, jsonl_lines, write_atomic
from ...schemas.katha import Scene, StoryRecord, Variant
from ..outputs.storyboards import check_splits


def variant_story(record: StoryRecord, variant: Variant) -> StoryRecord:
    """Return what a variant tells, as a record of its id.

    The changed scene has the variant's text and prompts made of it; what else was said of that scene is not
    known of the variant and left out, but for the characters, which a variant keeps. The record has no title,
    questions, transitions or moral label: those are of the base story.
    """
    scenes = [
        _changed(scene, record, variant) if scene.scene_index == variant.changed_scene_id else scene
        for scene in record.scenes
    ]
    none: Json = {"title": "", "moral_label": None, "questions": (), "transitions": ()}
    told = {"story_id": variant.variant_id, "story_text": variant.contrastive_story_text}
    return record.model_copy(update={**none, **told, "scenes": tuple(scenes)})


def variant_stories(release: Release, records: Iterable[StoryRecord]) -> list[StoryRecord]:
    """Return the active variants of stories as records; see :func:`variant_story`."""
    return [
        variant_story(record, variant)
        for record in records
        for variant in release.variants_of[record.story_id]
        if variant.has_variant
    ]


def _changed(scene: Scene, record: StoryRecord, variant: Variant) -> Scene:
    from ...builders.katha.scene_prompts import looks_in, short_prompt, with_prompts

    story = {"title": record.title, "language": record.language, "normalized_text": record.story_text}
    text = variant.contrastive_scene_text
    unknown: Json = {"objects": (), "action": None, "emotion": None, "visual_must_show": ()}
    changed = scene.model_copy(
        update={"scene_text": text, "state": None, "visual_evidence": None, **unknown}
    ).as_json()
    looks = looks_in([scene.as_json()])
    prompts = with_prompts(changed, story, len(record.scenes), looks)
    lead = _lead(text, scene.scene_text, record.language)
    return Scene.model_validate({**prompts, "generation_prompt": short_prompt(changed, story, lead, looks)})


def _lead(text: str, before: str, language: str) -> str:
    """Return the sentences of a changed scene that fit, those that are new first."""
    from ...builders.katha.scene_prompts import LIMIT, clip_tokens
    from ...builders.text.segments import sentence_spans

    sentences = [text[start:end] for start, end in sentence_spans(text, language)]
    lead = ""
    for sentence in sorted(sentences, key=before.__contains__):
        words = sentence.split() if not lead else [sentence]
        while words and clip_tokens(" ".join([*lead.split(), *words])) > LIMIT:
            words = words[:-1]
        lead = " ".join(filter(None, [lead, *words]))
    return lead


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


def write_plans(release: Release, out: Path, splits: Sequence[str] = ()) -> dict[str, int]:
    """Write the plans of a release, or of some of its splits, into a new folder; return how many of what."""
    from ...releases.target import require_free, staged

    check_splits(release, splits)
    wanted = set(splits)
    records = [record for record in release.records if not wanted or record.split in wanted]
    lines = list(plans(release, records))
    require_free(out)
    with staged(out.absolute()) as (draft,):
        write_atomic(draft / PLANS, jsonl_lines(lines))
    return {"stories": len(records), "variants": len(lines) - len(records)}
