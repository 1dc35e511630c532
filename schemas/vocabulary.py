"""The closed word lists of the formats, kept as data files in ``schemas/vocabularies``."""

import json
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """One word list."""

    name: str  # its name, such as ``moral_label``
    source: str  # the paper's table or section, and what is ours
    closed: bool  # whether other values are errors (else they are kept and reported)
    entries: dict[str, dict[str, Any]]  # value -> its description and attributes, in the file's order

    @property
    def values(self) -> tuple[str, ...]:
        """The values, in the file's order."""
        return tuple(self.entries)

    @property
    def targets(self) -> dict[str, int]:
        """Target count of each value that has one: the published distribution."""
        return {value: entry["target"] for value, entry in self.entries.items() if "target" in entry}

    def having(self, attribute: str) -> tuple[str, ...]:
        """Return the values whose attribute is true, such as ``reviewed`` or ``releasable``."""
        return tuple(value for value, entry in self.entries.items() if entry.get(attribute) is True)

    def resolve(self, text: str) -> str:
        """Return the value that a text stands for (itself, or an alias in any case), else the text."""
        folded = text.strip().casefold()
        for value, entry in self.entries.items():
            if folded in (value, *entry.get("aliases", ())):
                return value
        return text


NAMES = (
    "answerability",
    "camera_angle",
    "camera_type",
    "change_type",
    "character_tag",
    "culture",
    "decision",
    "gender",
    "moral_label",
    "narrative_type",
    "question_type",
    "resolution",
    "rights_status",
    "shot_distance",
    "source_dataset",
    "split",
    "story_type",
    "style_category",
    "transition_type",
    "validation_status",
    "variant_kind",
)


@cache
def vocabulary(name: str) -> Vocabulary:
    """Return a word list by name."""
    if name not in NAMES:
        raise KeyError(f"no vocabulary {name!r}; there are: {', '.join(NAMES)}")
    document = json.loads((files(__package__) / "vocabularies" / f"{name}.json").read_text("utf-8"))
    entries = {entry.pop("value"): entry for entry in document["values"]}
    return Vocabulary(document["name"], document["source"], document["closed"], entries)
