"""How many generations of each method can be judged (Table 57), with the pictures that cannot be decoded.

Layout and files are checked before anything else runs; whether a file holds a picture shows where it is
decoded, once. Both together say the same as ``fabula outputs check``.
"""

from collections import Counter
from typing import Any

from ...engine.stage import Item
from ...schemas.canonical import Json, digest

KEPT = (
    "stories_requested",
    "stories_valid",
    "generations_requested",
    "generations_valid",
    "generations_invalid",
    "invalid_rate",
    "seeds",
)


class Accounting:
    """Counts the generations of one method.

    Args:
        outputs: what checking the layout of its outputs found.
    """

    def __init__(self, outputs: Json) -> None:
        self._outputs = outputs
        self._good: list[tuple[str, int | None, Json]] = []
        self._unusable: Counter[str] = Counter()
        self.invalid: list[Json] = []
        """Generations that cannot be judged, each with the codes of what is wrong with it."""

    def add(self, item: Item) -> None:
        """Take in one generation."""
        shown, unusable = item["shown"], item["unusable"]
        story, seed = shown["story_id"], shown["seed"]
        codes = shown["invalid"] or unusable
        if codes:
            self.invalid.append({"story_id": story, "seed": seed, "codes": codes})
        else:
            self._good.append((story, seed, shown["sha256"]))
        if unusable:
            self._unusable[story] += 1

    def as_json(self) -> dict[str, Any]:
        """Return the counts, and the hash of the content of all valid storyboards."""
        told = {name: self._outputs[name] for name in KEPT}
        told["outputs_sha256"] = self._outputs["sha256"]
        if not self._unusable:
            return told
        count = self._unusable.total()
        told["generations_valid"] -= count
        told["generations_invalid"] += count
        told["invalid_rate"] = told["generations_invalid"] / told["generations_requested"]
        told["stories_valid"] -= len(set(self._unusable) - {story for story, _, _ in self._good})
        ordered = sorted(self._good, key=lambda one: (one[0], one[1] is not None, one[1]))
        told["outputs_sha256"] = digest([list(one) for one in ordered])
        return told
