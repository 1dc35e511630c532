"""What scenes are annotated with, one element at a time, and what other stories have of the same kind."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from ...schemas.canonical import digest
from ...schemas.katha import Scene, StoryRecord
from ...schemas.text import contains_phrase, normalize_answer, primary_language

KINDS = ("character", "object", "action", "state", "emotion")


@dataclass(frozen=True)
class Element:
    """Something that a scene is annotated with.

    Attributes:
        kind: one of :data:`KINDS`.
        scene: number of the scene, from 1.
        text: in the words of the annotation.
    """

    kind: str
    scene: int
    text: str


def elements_of(record: StoryRecord) -> list[Element]:
    """Return the elements of a story's scenes in order, each text once a scene and kind."""
    return [element for scene in record.scenes for element in _of_scene(scene)]


def _of_scene(scene: Scene) -> Iterator[Element]:
    texts: dict[str, Sequence[str | None]] = {
        "character": scene.characters, "object": scene.objects, "action": (scene.action,),
        "state": (scene.state,), "emotion": (scene.emotion,),
    }  # fmt: skip
    for kind in KINDS:
        known = {normalize_answer(text): text for text in reversed(texts[kind]) if text}
        known.pop("", None)
        yield from (Element(kind, scene.scene_index, text) for text in reversed(known.values()))


@dataclass(frozen=True)
class Pool:
    """The elements of many stories.

    Attributes:
        texts: (language, kind) -> (story id, text), sorted.
    """

    texts: Mapping[tuple[str, str], Sequence[tuple[str, str]]] = field(repr=False)

    @classmethod
    def of(cls, records: Iterable[StoryRecord]) -> "Pool":
        """Return the pool of some stories."""
        texts: dict[tuple[str, str], set[tuple[str, str]]] = {}
        for record in records:
            language = primary_language(record.language)
            for element in elements_of(record):
                texts.setdefault((language, element.kind), set()).add((record.story_id, element.text))
        return cls({key: sorted(pairs) for key, pairs in texts.items()})

    def foreign(self, record: StoryRecord, kind: str, most: int, order: Sequence[object]) -> list[str]:
        """Return elements of other stories that do not occur in this one.

        Args:
            record: the story.
            kind: of the elements.
            most: how many.
            order: what the choice depends on, besides the texts.
        """
        own = {normalize_answer(element.text) for element in elements_of(record)}
        story = normalize_answer(record.story_text)
        chosen: dict[str, str] = {}
        pairs = self.texts.get((primary_language(record.language), kind), ())
        for _, text in sorted(pairs, key=lambda pair: digest([*order, *pair])):
            plain = normalize_answer(text)
            apart = not any(contains_phrase(plain, mine) or contains_phrase(mine, plain) for mine in own)
            if len(chosen) < most and apart and not contains_phrase(story, plain):
                chosen.setdefault(plain, text)
        return list(chosen.values())
