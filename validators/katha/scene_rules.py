"""Rules about scenes, transitions and the text that they divide."""

from collections.abc import Iterator
from itertools import accumulate

from ...schemas.text import normalize_answer
from ...schemas.values import Issue
from ..codes import issue, show
from ..view import Part, Story, first_difference, mentions, squeezed

_ARTICLES = ("the ", "a ", "an ")


def check_scenes(story: Story) -> Iterator[Issue]:
    """Check that scenes are at least two, numbered from 1 in order, and none is empty."""
    scenes = story.scenes
    if len(scenes) < 2:
        yield issue(
            "scene-count", story.where, "$.scenes", f"expected at least 2 scenes, found {len(scenes)}"
        )
    for position, scene in enumerate(scenes):
        index = scene["scene_index"]
        if index != position + 1:
            path = f"$.scenes[{position}].scene_index"
            yield issue("scene-order", story.where, path, f"expected {position + 1}, found {index}")
        if not scene["scene_text"].strip():
            yield issue(
                "scene-empty", story.where, f"$.scenes[{position}].scene_text", "the scene has no text"
            )


def check_spans(story: Story) -> Iterator[Issue]:
    """Check that the scenes, joined, are the story text; white space does not count."""
    texts = [squeezed(scene["scene_text"]) for scene in story.scenes]
    whole, joined = squeezed(story.record["story_text"]), "".join(texts)
    if joined == whole:
        return
    fitting = sum(whole.startswith(text) for text in accumulate(texts))
    part = min(fitting, max(0, len(texts) - 1))
    expected, found = first_difference(whole, joined)
    message = f"without white space, the story goes on {show(expected)}, the scenes go on {show(found)}"
    yield issue("scene-span", story.where, f"$.scenes[{part}].scene_text", message)


def check_story_text(story: Story) -> Iterator[Issue]:
    """Check that the story text is the normal form of the source text, or of what was written from it."""
    if story.record["provenance"].get("normalised_by") is not None:
        return
    if story.record["story_text"] != story.normal_source:
        expected, found = first_difference(story.normal_source, story.record["story_text"])
        message = f"the normal form of the source has {show(expected)}, the story text {show(found)}"
        yield issue("story-text", story.where, "$.story_text", message)


def check_characters(story: Story) -> Iterator[Issue]:
    """Check that each character of a scene is named in the story; a leading article does not count."""
    for position, scene in enumerate(story.scenes):
        for number, name in enumerate(scene["characters"]):
            if not mentions(story.answer_text, without_article(name)):
                path = f"$.scenes[{position}].characters[{number}]"
                yield issue("character-unknown", story.where, path, f"the story does not name {show(name)}")


def without_article(name: str) -> str:
    """Return a name without a leading English article."""
    folded = name.strip().casefold()
    for article in _ARTICLES:
        if folded.startswith(article):
            return folded[len(article) :]
    return folded


def check_transitions(story: Story) -> Iterator[Issue]:
    """Check that each neighbouring pair of scenes has its one transition, in order."""
    transitions = story.record["transitions"]
    expected = max(0, len(story.scenes) - 1)
    if len(transitions) != expected:
        found = f"expected {expected} for {len(story.scenes)} scenes, found {len(transitions)}"
        yield issue("transition-link", story.where, "$.transitions", found)
        return
    for position, transition in enumerate(transitions):
        link = (transition["from_scene"], transition["to_scene"])
        if link != (position + 1, position + 2):
            found = f"expected scenes {position + 1} to {position + 2}, found {link[0]} to {link[1]}"
            yield issue("transition-link", story.where, f"$.transitions[{position}]", found)


def check_moral_target(story: Story) -> Iterator[Issue]:
    """Check that one transition, and only one, carries the record's moral label (Table 10)."""
    label = story.record["moral_label"]
    targets = [
        (position, transition["moral_target"])
        for position, transition in enumerate(story.record["transitions"])
        if transition["moral_target"] is not None
    ]
    if len(targets) != (label is not None):
        wanted = "one transition" if label is not None else "no transition"
        found = f"expected {wanted} with a moral target for the label {show(label)}, found {len(targets)}"
        yield issue("moral-target", story.where, "$.transitions", found)
    for position, target in targets:
        if target != label:
            path = f"$.transitions[{position}].moral_target"
            yield issue("moral-target", story.where, path, f"expected {show(label)}, found {show(target)}")


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
