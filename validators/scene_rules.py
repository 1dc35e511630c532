"""Rules about scenes, transitions and the text that they divide."""

from collections.abc import Iterator

from ..schemas.issue import Issue
from .codes import issue, show
from .view import Story, mentions, squeezed

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
    joined = "".join(squeezed(scene["scene_text"]) for scene in story.scenes)
    whole = squeezed(story.record["story_text"])
    if joined == whole:
        return
    ends = 0
    for position, scene in enumerate(story.scenes):
        text = squeezed(scene["scene_text"])
        if whole[ends : ends + len(text)] != text:
            here, there = show(text[:20]), show(whole[ends : ends + 20])
            found = f"the text from {here} on does not continue the story at {there}"
            yield issue("scene-span", story.where, f"$.scenes[{position}].scene_text", found)
            return
        ends += len(text)
    rest = f"the scenes leave out the end of the story, from {show(whole[ends : ends + 20])} on"
    yield issue("scene-span", story.where, "$.scenes", rest)


def check_story_text(story: Story) -> Iterator[Issue]:
    """Check that the story text is the normal form of the source text."""
    if story.record["story_text"] != story.normal_source:
        found = f"expected the source in normal form, {show(story.normal_source, 40)}"
        yield issue(
            "story-text",
            story.where,
            "$.story_text",
            f"{found}, found {show(story.record['story_text'], 40)}",
        )


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
        found = f"expected {expected} transitions for {len(story.scenes)} scenes, found {len(transitions)}"
        yield issue("transition-link", story.where, "$.transitions", found)
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
        found = f"expected {int(label is not None)} transitions with a moral target, found {len(targets)}"
        yield issue("moral-target", story.where, "$.transitions", found)
    for position, target in targets:
        if target != label:
            path = f"$.transitions[{position}].moral_target"
            yield issue("moral-target", story.where, path, f"expected {show(label)}, found {show(target)}")
