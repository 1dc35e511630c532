"""What a contrastive variant tells, as a record of its own: its scenes, and prompts for the changed one."""

from collections.abc import Iterable

from ...releases.loading import Release
from ...schemas.canonical import Json
from ...schemas.katha import Scene, StoryRecord, Variant


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
