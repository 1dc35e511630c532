"""Rules about contrastive variants (paper, Table 15 and C.7)."""

from collections.abc import Iterator

from ..schemas.issue import Issue
from ..schemas.text import normalize_answer
from .codes import issue, show
from .scene_rules import without_article
from .view import Part, Story, first_difference, mentions, squeezed


def check_variant_ids(story: Story) -> Iterator[Issue]:
    """Check that the record's list of variants and the variants name each other."""
    listed = list(story.record["provenance"]["contrastive_variant_ids"])
    found = sorted(str(variant.data["variant_id"]) for variant in story.variants)
    if listed != found:
        path = "$.provenance.contrastive_variant_ids"
        yield issue("variant-reference", story.where, path, f"expected {show(found)}, found {show(listed)}")
    for variant in story.variants:
        if variant.data["base_story_id"] != story.id:
            message = f"expected {show(story.id)}, found {show(variant.data['base_story_id'])}"
            yield issue("story-reference", variant.where, "$.base_story_id", message)


def check_variant_texts(story: Story) -> Iterator[Issue]:
    """Check that a variant changes the scene that it names, and no other."""
    originals = [squeezed(scene["scene_text"]) for scene in story.scenes]
    for variant in story.variants:
        changed = variant.data["changed_scene_id"]
        if not 1 <= changed <= len(originals):
            message = f"expected a scene of 1 to {len(originals)}, found {changed}"
            yield issue("variant-scene", variant.where, "$.changed_scene_id", message)
            continue
        text = squeezed(variant.data["contrastive_scene_text"])
        if text == originals[changed - 1] or not text:
            message = f"the text of scene {changed} is {'as before' if text else 'empty'}"
            yield issue("variant-same", variant.where, "$.contrastive_scene_text", message)
        expected = "".join([*originals[: changed - 1], text, *originals[changed:]])
        whole = squeezed(variant.data["contrastive_story_text"])
        if whole != expected:
            base, found = first_difference(expected, whole)
            change = f"without white space, {show(base)} became {show(found)}"
            message = f"expected only scene {changed} to change: {change}"
            yield issue("variant-text", variant.where, "$.contrastive_story_text", message)


def check_entities(story: Story) -> Iterator[Issue]:
    """Check that characters of the changed scene that the base story names are still named in the variant."""
    for variant in story.variants:
        changed = variant.data["changed_scene_id"]
        if not 1 <= changed <= len(story.scenes):
            continue
        text = normalize_answer(variant.data["contrastive_story_text"])
        for name in story.scenes[changed - 1]["characters"]:
            plain = without_article(name)
            if mentions(story.answer_text, plain) and not mentions(text, plain):
                message = f"the variant no longer names {show(name)}"
                yield issue("entity-lost", variant.where, "$.contrastive_story_text", message)


def check_variant_labels(story: Story) -> Iterator[Issue]:
    """Check moral labels, the description of the change, narrative type and subset against the record."""
    record = story.record
    for variant in story.variants:
        data = variant.data
        yield from _expect(variant, "original_moral", record["moral_label"], "variant-moral")
        if data["contrastive_moral"] is not None and data["contrastive_moral"] == data["original_moral"]:
            message = f"{show(data['contrastive_moral'])} is the label of the original story"
            yield issue("variant-moral", variant.where, "$.contrastive_moral", message)
        if not data["semantic_delta"].strip():
            yield issue("variant-delta", variant.where, "$.semantic_delta", "semantic_delta is empty")
        yield from _expect(variant, "narrative_type", record["narrative_type"], "variant-context")
        yield from _expect(variant, "subset", record["split"], "variant-context")


def _expect(variant: Part, name: str, wanted: object, code: str) -> Iterator[Issue]:
    if variant.data[name] != wanted:
        message = f"expected {show(wanted)} as in the record, found {show(variant.data[name])}"
        yield issue(code, variant.where, f"$.{name}", message)
