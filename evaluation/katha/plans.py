"""Plans for generators: what each picture of a storyboard has to show, of stories and of their variants.

A variant's plan is that of its base story but for the changed scene, whose prompts are made of its new text.
"""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from ...releases.loading import Release
from ...releases.target import require_free, staged
from ...schemas.canonical import Json, jsonl_lines, write_atomic
from ...schemas.katha import StoryRecord, Variant
from ..outputs.storyboards import check_splits
from .variants import variant_story

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
    check_splits(release, splits)
    wanted = set(splits)
    records = [record for record in release.records if not wanted or record.split in wanted]
    lines = list(plans(release, records))
    require_free(out)
    with staged(out.absolute()) as (draft,):
        write_atomic(draft / PLANS, jsonl_lines(lines))
    return {"stories": len(records), "variants": len(lines) - len(records)}
