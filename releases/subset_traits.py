"""What a subset must have in common with the whole: the traits of each story, and how they are spread."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from ..schemas.canonical import Json
from ..schemas.plain_files import open_plain, parse_json
from ..validators.statistics import NO_VALUE
from .layout import ANNOTATIONS

CATEGORY = "narrative_type"
"""The field whose values are the categories of Table 20."""

KINDS = (CATEGORY, "moral_label", "source_dataset", "language", "split")
"""The fields of which each story has one value."""

QUESTIONS = "question_type"
FIELDS = (*KINDS, QUESTIONS)


@dataclass(frozen=True, slots=True)
class Traits:
    """What is known about one story where subsets are drawn.

    Attributes:
        id: story id.
        kinds: its value of each field of :data:`KINDS`, in that order; of other fields in other data sets.
        questions: question type -> how many of its questions have it.
        scenes: how many scenes it has.
        characters: length of its text. Nothing is drawn by it, so it shows how close a subset is elsewhere.
        unclear: whether it is open if some question of it can be answered.
    """

    id: str
    kinds: tuple[str, ...]
    questions: Mapping[str, int]
    scenes: int
    characters: int
    unclear: bool

    @property
    def category(self) -> str:
        """Its narrative type."""
        return self.kinds[0]


def traits_of(record: Mapping[str, Json]) -> Traits:
    """Return the traits of one record."""
    values = {**record, "source_dataset": record["provenance"]["source_dataset"]}
    return Traits(
        id=record["story_id"],
        kinds=tuple(NO_VALUE if values[name] is None else str(values[name]) for name in KINDS),
        questions=Counter(str(question[QUESTIONS]) for question in record["questions"]),
        scenes=len(record["scenes"]),
        characters=len(record["story_text"]),
        unclear=any(question["answerability"] == "unclear" for question in record["questions"]),
    )


def read_traits(folder: Path) -> list[Traits]:
    """Return the traits of the stories of a release, in id order.

    Raises:
        OSError, ValueError, LookupError, TypeError: its records cannot be read.
    """
    with open_plain(folder / ANNOTATIONS) as lines:
        return [traits_of(parse_json(line)) for line in lines]


def spread(stories: Iterable[Traits]) -> dict[str, Counter[str]]:
    """Return field -> value -> how many stories have it; of question types, how many questions."""
    counts: dict[str, Counter[str]] = {name: Counter() for name in FIELDS}
    for story in stories:
        for name, value in zip(KINDS, story.kinds, strict=True):
            counts[name][value] += 1
        counts[QUESTIONS].update(story.questions)
    return counts
