"""What the rules read off a story once, and every later stage uses: segments, entities, feelings."""

from dataclasses import dataclass

from ....schemas.canonical import Json


@dataclass(frozen=True, slots=True)
class Segment:
    """One sentence, or one clause of a sentence.

    Attributes:
        start, end: span in the normalised text, without white space at its ends.
        sentence: number of the sentence, from 0.
        strength: how well a scene may begin here; 0 a sentence, 1 after ``;``, ``:`` or a dash,
            2 after a comma before a clause, 3 before a conjunction without a comma.
    """

    start: int
    end: int
    sentence: int
    strength: int


@dataclass(frozen=True, slots=True)
class Entity:
    """A character or a thing that the text names.

    Attributes:
        name: a form that occurs in the text.
        character: whether it is a character; else a thing.
        at: the numbers of the segments that name it, ascending.
    """

    name: str
    character: bool
    at: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Feeling:
    """A word of the text that tells an emotion.

    Attributes:
        segment: number of its segment.
        word: the word, in lower case.
        emotion: the emotion that it tells.
        weight: 1 for a word of this emotion alone, less where the lexicon lists it for several.
    """

    segment: int
    word: str
    emotion: str
    weight: float


@dataclass(frozen=True, slots=True)
class Analysis:
    """Everything that is read off one story.

    Attributes:
        english: whether the English cue lists apply; without them only what is language-independent
            is known.
    """

    english: bool
    segments: tuple[Segment, ...]
    entities: tuple[Entity, ...]
    feelings: tuple[Feeling, ...]

    def as_json(self) -> Json:
        """Return a compact JSON form: lists of values in the order of the attributes."""
        return {
            "english": self.english,
            "segments": [[s.start, s.end, s.sentence, s.strength] for s in self.segments],
            "entities": [[e.name, e.character, list(e.at)] for e in self.entities],
            "feelings": [[f.segment, f.word, f.emotion, f.weight] for f in self.feelings],
        }

    @classmethod
    def from_json(cls, value: Json) -> "Analysis":
        """Return the analysis that :meth:`as_json` wrote."""
        return cls(
            value["english"],
            tuple(Segment(*row) for row in value["segments"]),
            tuple(Entity(name, character, tuple(at)) for name, character, at in value["entities"]),
            tuple(Feeling(*row) for row in value["feelings"]),
        )


def segment_texts(story: Json, analysis: Json) -> list[str]:
    """Return the texts of the segments of a story, in order; they hold all of it but white space."""
    text: str = story["normalized_text"]
    return [text[segment.start : segment.end] for segment in Analysis.from_json(analysis).segments]
