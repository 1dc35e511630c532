"""New stories beside those that a run has: which are there already, and which cannot be taken in.

A benchmark tells a story once, in one language, under one id for ever. So refused are: an id that stands for
another text, a translation of a story that is there, an id that was withdrawn, and a story that nearly equals
one that is there.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from ...schemas.canonical import canonical_text
from ...schemas.ids import primary_language
from ...schemas.story import Story
from ...schemas.values import Edit
from ...validators.similarity import near_duplicates, signature
from .rows import Reader, Row
from .story_rows import StoryRows

_OPENING = 80
_UNKNOWN = "a story that the run does not have"


@dataclass(slots=True)
class AddedRows(StoryRows):
    """Turns the rows of a run and of new sources into stories.

    Attributes:
        run: the run, as a command names it.
        first: the number of the first new source.
        withdrawn: story id -> the correction that withdrew it.
        given: story id -> where its row stands in the new sources.
    """

    run: str = ""
    first: int = 0
    withdrawn: Mapping[str, Edit] = field(default_factory=dict)
    given: dict[str, str] = field(default_factory=dict)

    @property
    def added(self) -> list[Story]:
        """The stories that only the new sources hold, in order."""
        return [story for story in self.stories.values() if self.sources[story.id] >= self.first]

    @property
    def known(self) -> list[str]:
        """The ids of the stories of the new sources that the run has just so."""
        return sorted(
            story_id
            for story_id, source in self.repeated.items()
            if source >= self.first > self.sources[story_id]
        )

    def _taken_in(self, row: Row, story: Story, source: int) -> Story | None:
        if source >= self.first:
            self.given.setdefault(story.id, row.where)
        return StoryRows._taken_in(self, row, story, source)

    def clash(self, row: Row, story: Story, known: Story) -> None:
        """Note why a row cannot have the id of a story that is there."""
        if self.sources[known.id] >= self.first:
            StoryRows.clash(self, row, story, known)
            return
        where = f"{row.where}, id"
        if known.id in self.withdrawn:
            self.refuse_withdrawn(where, known.id)
        elif primary_language(story.language) != primary_language(known.language):
            _refuse_translation(self.reader, where, story, known)
        elif story.normalized_text != known.normalized_text:
            self.reader.problem(
                where, "an id of its own, or the story that the run has under this one",
                f"{story.id} with another text: {_opening(story)}; in the run: {_opening(known)}",
                f"rename it; to correct the record that is there: fabula edit {self.run} {story.id}",
            )  # fmt: skip
        else:
            name = next(key for key in Story.model_fields if getattr(story, key) != getattr(known, key))
            now, then = (canonical_text(getattr(one, name))[:_OPENING] for one in (story, known))
            self.reader.problem(
                where, "the story as the run has it, or none",
                f"{story.id} with the same text and another {name}: {now}; in the run: {then}",
                f"leave it out; to correct the record that is there: fabula edit {self.run} {story.id}",
            )  # fmt: skip

    def refuse_withdrawn(self, where: str, story_id: str) -> None:
        """Note that an id was withdrawn."""
        gone = self.withdrawn[story_id]
        found = f"{story_id}, withdrawn by {gone.who}: {gone.why}"
        fix = "leave the story out; a new one needs another id"
        self.reader.problem(where, "an id that was never used", found, fix)


def refuse_translations(builder: AddedRows) -> None:
    """Note new stories that by their ids are others in another language: ``kb_1-zh`` beside ``kb_1``."""
    stems: dict[str, Story] = {}
    fresh = {story.id for story in builder.added}
    for story in builder.stories.values():
        stem = _stem(story)
        other = stems.setdefault(stem, story)
        if other is not story and story.id in fresh:
            _refuse_translation(builder.reader, f"{builder.places[story.id]}, id", story, other)


def refuse_duplicates(builder: AddedRows, signatures: Mapping[str, Sequence[int]], threshold: float) -> None:
    """Note new stories that nearly equal stories of the run.

    Args:
        builder: all stories.
        signatures: story id -> MinHash signature, of the stories that are there.
        threshold: estimated Jaccard similarity from which two are the same story.
    """
    added = {story.id: story for story in builder.added}
    order = [*sorted(signatures), *sorted(added)]
    numbers = {**signatures, **{key: signature(story.normalized_text) for key, story in added.items()}}
    # Under ranks, so that of equal texts the one that is there comes first and is paired with all the others.
    ranked = {f"{rank:09d}": numbers[story_id] for rank, story_id in enumerate(order)}
    nearest: dict[str, tuple[float, str]] = {}
    for first, second, share in near_duplicates(ranked, threshold):
        old, new = order[int(first)], order[int(second)]
        if old in signatures and new in added:
            nearest[new] = min(nearest.get(new, (1.0, old)), (-share, old))
    for new, (share, old) in nearest.items():
        texts = f"{_opening(added[new])}; in the run: {_opening(builder.stories[old])}"
        builder.reader.problem(
            builder.places[new], _UNKNOWN, f"{new}, {-share:.0%} like {old}: {texts}",
            f"leave it out; to correct the record that is there: fabula edit {builder.run} {old}",
        )  # fmt: skip


def _refuse_translation(reader: Reader, where: str, story: Story, known: Story) -> None:
    version = f"which by its id is {known.id} ({known.language}) in another version"
    reader.problem(
        where, _UNKNOWN, f"{story.id} in {story.language}, {version}",
        "leave it out: a benchmark tells a story once; another language makes a benchmark of its own",
    )  # fmt: skip


def _stem(story: Story) -> str:
    """Return a story's id without its language at the end, such as ``-zh`` or ``_zh-Hans``."""
    name = story.id.casefold().replace("_", "-")
    for tag in (story.language, primary_language(story.language)):
        ending = f"-{tag.casefold().replace('_', '-')}"
        if name.endswith(ending) and len(name) > len(ending):
            return name[: -len(ending)]
    return name


def _opening(story: Story) -> str:
    text = story.normalized_text
    return canonical_text(text if len(text) <= _OPENING else f"{text[:_OPENING]}...")
