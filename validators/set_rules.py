"""The rules that look at a data set as a whole: the registry and their common face."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from typing import ClassVar

from ..schemas.issue import Issue
from .dataset import Dataset
from .variant_index import VariantIndex
from .view import Story


@dataclass(slots=True)
class SetRule:
    """One rule about a data set: it sees every story once, keeps small facts, and reports at the end.

    Attributes:
        dataset: where files beside the stories are found.
        index: where the variants stand, for files that keep them on lines of their own.
        complete: false once a story could not be added because of schema errors; a rule that compares sums
            then has nothing to say.
        found: findings so far.
    """

    dataset: Dataset
    index: VariantIndex
    complete: bool = True
    found: list[Issue] = field(default_factory=list)

    reads: ClassVar[tuple[str, ...]] = ()

    def take(self, story: Story) -> None:
        """Add a story, unless a field that the rule reads is broken."""
        if story.readable(self.reads):
            self.add(story)
        else:
            self.complete = False

    def add(self, story: Story) -> None:
        """Note what the rule needs to know of a story."""

    def finish(self) -> Iterator[Issue]:
        """Yield the findings, once every story has been added."""
        yield from self.found


SET_RULES: tuple[tuple[str, str], ...] = (
    ("any-story", "set_ids:AnyStory"),
    ("unique-ids", "set_ids:UniqueIds"),
    ("orphans", "set_ids:Orphans"),
    ("producers", "set_ids:ProducerLines"),
    ("reviews", "set_reviews:Reviews"),
    ("near-duplicates", "set_splits:NearDuplicates"),
    ("split-sizes", "set_splits:SplitSizes"),
    ("assignments", "set_files:Assignments"),
    ("statistics", "set_files:Statistics"),
    ("moral-balance", "set_files:MoralBalance"),
    ("balance", "set_files:Balance"),
    ("manifest", "set_files:Manifest"),
)
"""Name -> ``module:class`` of every rule about a whole data set, loaded on first use."""


@cache
def load_set_rules() -> tuple[type[SetRule], ...]:
    """Return the classes of :data:`SET_RULES`."""
    return tuple(_load(target) for _, target in SET_RULES)


def _load(target: str) -> type[SetRule]:
    module, attribute = target.split(":")
    rule: type[SetRule] = getattr(import_module(f".{module}", __package__), attribute)
    return rule
