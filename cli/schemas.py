"""``fabula schemas``: the published JSON Schemas, and the words that fields may hold."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from ..errors import ConfigError
from .command import command
from .common import answer


@command("schemas list")
def list_schemas(*, as_json: bool = False) -> int:
    """List the schemas.

    Examples:
        fabula schemas list
    """
    from ..schemas.export import PUBLISHED

    lines = (f"{name:24}{(kind.__doc__ or '').splitlines()[0]}" for name, kind in sorted(PUBLISHED.items()))
    return answer(sorted(PUBLISHED), lines, as_json=as_json)


@command("schemas export")
def export(*, out: Path, as_json: bool = False) -> int:
    """Write the schemas as NAME.schema.json (draft 2020-12).

    Options:
        out: Folder to write to.

    Examples:
        fabula schemas export --out schemas/
    """
    from ..schemas.export import export_schemas

    paths = [str(path) for path in export_schemas(out)]
    return answer(paths, paths, as_json=as_json)


USES: dict[str, str] = {
    "moral_label": "moral_label of a story",
    "narrative_type": "narrative_type of a story",
    "rights_status": "rights_status of a story",
    "source_dataset": "source_collection of a story",
    "transition_type": "transition_type of a transition",
    "question_type": "question_type of a question",
    "answerability": "answerability of a question",
    "variant_kind": "variant_kind of a variant",
    "change_type": "change_type of a variant",
    "split": "split of a record",
    "validation_status": "validation_status of a record",
    "resolution": "evidence_status.resolution of a record",
    "decision": "decision of a review",
    "story_type": "story_type of a script",
    "style_category": "style of a script",
    "culture": "culture of a script",
    "character_tag": "tag of a character",
    "gender": "gender of a character",
    "shot_distance": "Shot Perspective Design of a shot",
    "camera_angle": "Shot Perspective Design of a shot",
    "camera_type": "Shot Perspective Design of a shot",
}
"""Word list -> the field that takes its words. What input needs first comes first."""

EVENTS: dict[str, tuple[str, dict[str, str]]] = {
    "participants": (
        "participants of a seed, class of a prompt",
        {
            "human": "People lead the story.",
            "animal": "Animals lead the story.",
            "object": "Things lead the story.",
        },
    ),
    "origin": (
        "class of a prompt",
        {
            "retrieval": "It captions something that can happen.",
            "creative": "It can never happen in the real world.",
        },
    ),
    "difficulty": (
        "class of a prompt",
        {
            "easy": "Video models complete most of its events.",
            "medium": "Neither easy nor hard.",
            "hard": "Video models complete few of its events.",
        },
    ),
}
"""The labels of a prompt suite: list -> the field that takes its words, and what each means."""


@dataclass(frozen=True, slots=True)
class WordList:
    """Words that a field may hold."""

    name: str  # its name
    field: str  # the field that takes its words
    closed: bool  # whether other words are errors; else they are kept, with a warning
    words: dict[str, str]  # word -> its meaning
    source: str  # the paper's table, and what is ours

    def as_json(self) -> dict[str, Any]:
        """Return it as plain JSON."""
        return {"field": self.field, "closed": self.closed, "words": self.words, "source": self.source}

    def lines(self) -> Iterator[str]:
        """Yield it as lines for people."""
        others = "no other words" if self.closed else "other words are kept, with a warning"
        yield f"{self.name}: {self.field}; {others}"
        width = max(map(len, self.words)) + 2
        yield from (f"  {word:{width}}{meaning}" for word, meaning in self.words.items())


@command("schemas words")
def words(
    names: Annotated[Sequence[str], typer.Argument(metavar="[LIST...]")] = (), *, as_json: bool = False
) -> int:
    """Print the words that fields may hold, and what they mean.

    A list can also be named by a field that uses it: source_collection shows the list source_dataset.

    Options:
        names: Only these lists.

    Examples:
        fabula schemas words
        fabula schemas words moral_label rights_status
        fabula schemas words --json
    """
    lists = {words.name: words for words in word_lists()}
    called = {words.field.split(" of ")[0].split(".")[-1]: name for name, words in lists.items()}
    unknown = [name for name in names if name not in lists and name not in called]
    if unknown:
        raise ConfigError(
            "fabula schemas words", what=f"there is no list {unknown[0]!r}",
            fix=f"the lists are: {', '.join(lists)}",
        )  # fmt: skip
    chosen = [lists[name] if name in lists else lists[called[name]] for name in names or lists]
    lines = (line for number, words in enumerate(chosen) for line in (*[""][: number > 0], *words.lines()))
    return answer({words.name: words.as_json() for words in chosen}, lines, as_json=as_json)


def word_lists() -> Iterator[WordList]:
    """Yield every list, those that input needs first."""
    from ..schemas.values import vocabulary

    for name, field in USES.items():
        listed = vocabulary(name)
        meanings = {word: str(entry["description"]) for word, entry in listed.entries.items()}
        yield WordList(name, field, listed.closed, meanings, listed.source)
    for name, (field, meanings) in EVENTS.items():
        yield WordList(name, field, False, meanings, "StoryEval, prompt suite")
