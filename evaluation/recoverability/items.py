"""What is scored: the stories and questions of a release as arrays."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ...schemas.katha import StoryRecord, Variant
from ...schemas.values import vocabulary
from .matching import Key

Ints = NDArray[np.int64]

DIMENSIONS = ("action_visibility", "causal", "emotional", "consequence", "temporal_order", "moral")
"""The scored dimensions (Eq. 5)."""
LATENT = ("causal", "emotional", "consequence", "moral")
"""The dimensions of the latent gap (Eq. 13)."""
CONDITIONS = ("text", "image", "text_image")
GROUPINGS = ("source_family", "narrative_type", "split")
LABELS = vocabulary("moral_label").values
UNKNOWN = "unknown"


@dataclass(frozen=True)
class Items:
    """Stories, questions and contrastive pairs in the order of the release, places counted from 0."""

    records: tuple[StoryRecord, ...] = field(repr=False)  # the stories
    keys: tuple[Key, ...] = field(repr=False)  # what answers to each question are compared with
    story: Ints = field(repr=False)  # question -> place of its story, shape (questions,)
    dimension: Ints = field(repr=False)  # question -> place in :data:`DIMENSIONS`, shape (questions,)
    # story -> place in :data:`LABELS`; -1 where it has none. Shape (stories,).
    moral: Ints = field(repr=False)
    pairs: tuple[str, ...] = field(repr=False)  # the ids of the contrastive pairs
    pair_story: Ints = field(repr=False)  # pair -> place of its story, shape (pairs,)
    # pair -> place of the contrastive label in :data:`LABELS`, -1 where it has none
    pair_moral: Ints = field(repr=False)
    pair_kind: tuple[str, ...] = field(repr=False)  # kind of change of each pair

    @property
    def stories(self) -> int:
        """How many stories there are."""
        return len(self.records)

    @property
    def questions(self) -> int:
        """How many questions there are."""
        return len(self.keys)

    @cached_property
    def story_places(self) -> dict[str, int]:
        """Story id -> place."""
        return {record.story_id: index for index, record in enumerate(self.records)}

    @cached_property
    def question_places(self) -> dict[str, int]:
        """Question id -> place."""
        return {key.question_id: index for index, key in enumerate(self.keys)}

    @cached_property
    def pair_places(self) -> dict[str, int]:
        """Pair id -> place."""
        return {pair: index for index, pair in enumerate(self.pairs)}

    def chosen(self, stories: Sequence[str]) -> "Items":
        """Return some of the stories, in the order that they have here, with their questions and pairs."""
        wanted = set(stories)
        records = tuple(record for record in self.records if record.story_id in wanted)
        kept = np.array([record.story_id in wanted for record in self.records], dtype=bool)
        new = np.cumsum(kept) - 1
        of_story, of_pair = kept[self.story], kept[self.pair_story]
        return Items(
            records=records,
            keys=tuple(key for key, there in zip(self.keys, of_story, strict=True) if there),
            story=new[self.story[of_story]],
            dimension=self.dimension[of_story],
            moral=self.moral[kept],
            pairs=tuple(pair for pair, there in zip(self.pairs, of_pair, strict=True) if there),
            pair_story=new[self.pair_story[of_pair]],
            pair_moral=self.pair_moral[of_pair],
            pair_kind=tuple(kind for kind, there in zip(self.pair_kind, of_pair, strict=True) if there),
        )

    def groups(self, grouping: str) -> dict[str, NDArray[np.bool_]]:
        """Return name -> which stories belong to it, shape (stories,), for one of :data:`GROUPINGS`."""
        names = np.array([_group(record, grouping) for record in self.records], dtype=object)
        return {name: names == name for name in sorted(set(names))}


def items_of(records: Sequence[StoryRecord], variants: Sequence[Variant]) -> Items:
    """Return the stories with their questions and active contrastive variants.

    Questions of a type that is no scored dimension are left out.
    """
    places = {record.story_id: index for index, record in enumerate(records)}
    asked = [
        (index, DIMENSIONS.index(question.question_type), Key.of(question))
        for index, record in enumerate(records)
        for question in record.questions
        if question.question_type in DIMENSIONS
    ]
    pairs = [variant for variant in variants if variant.has_variant and variant.base_story_id in places]
    return Items(
        records=tuple(records),
        keys=tuple(key for _, _, key in asked),
        story=np.array([record for record, _, _ in asked], dtype=np.int64),
        dimension=np.array([dimension for _, dimension, _ in asked], dtype=np.int64),
        moral=_labels([record.moral_label for record in records]),
        pairs=tuple(pair.pair_id for pair in pairs),
        pair_story=np.array([places[pair.base_story_id] for pair in pairs], dtype=np.int64),
        pair_moral=_labels([pair.contrastive_moral for pair in pairs]),
        pair_kind=tuple(pair.change_type for pair in pairs),
    )


def _labels(labels: Sequence[str | None]) -> Ints:
    places = {label: index for index, label in enumerate(LABELS)}
    return np.array([-1 if label is None else places.get(label, -1) for label in labels], dtype=np.int64)


def _group(record: StoryRecord, grouping: str) -> str:
    if grouping == "source_family":
        return record.provenance.source_dataset
    value = record.narrative_type if grouping == "narrative_type" else record.split
    return value or UNKNOWN
