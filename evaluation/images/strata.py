"""Scores by kind of story and by kind of character: the stratified evaluation of the supplement, section C.1.

By kind of story, every score that is a mean over stories is the mean over those of the kind. By kind of
character, the scores of single characters (CIDS, copy-paste rate, individual action) are taken over the
characters of the kind; who is in which crop was decided among all characters of the story.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ...schemas.score import Score
from ..metrics.story import FoundStory
from .definitions import Definitions
from .groups import CHARACTER_KINDS, STORY_KINDS, UNSTATED, Group, kinds_of_characters, kinds_of_story
from .pooling import pooled, with_intervals
from .score_story import StoryScore

Actions = Callable[[FoundStory, frozenset[str]], Score]
"""Story and keys of characters -> the rating of their actions by one judge."""


@dataclass(frozen=True)
class Stratum:
    """One method over one kind of story or character.

    Attributes:
        by: what is told apart, such as ``culture`` or ``gender``.
        kind: which it is, such as ``japanese``, or ``not stated``.
        stories: how many stories are of the kind, or have a character of it.
        characters: how many characters are; None for a kind of story.
        scores: metric -> value, with its interval over those stories.
    """

    by: str
    kind: str
    stories: int
    characters: int | None
    scores: Mapping[str, Score] = field(repr=False)

    def as_json(self) -> dict[str, Any]:
        """Return everything as plain JSON."""
        return {
            "by": self.by, "kind": self.kind, "stories": self.stories, "characters": self.characters,
            "scores": {name: score.as_json() for name, score in self.scores.items()},
        }  # fmt: skip


def strata_of(
    found: Sequence[FoundStory],
    scored: Sequence[StoryScore],
    actions: Mapping[str, Actions],
    definitions: Definitions,
) -> tuple[Stratum, ...]:
    """Return one method's scores by every kind; none in a respect in which nothing is stated.

    Args:
        found: the stories of the method.
        scored: their scores, in the same order.
        actions: name of the score of individual actions -> what tells it; one per judge.
        definitions: how often stories are drawn.
    """
    stories: dict[Group, list[StoryScore]] = {}
    characters: dict[Group, list[StoryScore]] = {}
    counts: dict[Group, int] = {}
    for one, score in zip(found, scored, strict=True):
        for group in kinds_of_story(one).items():
            stories.setdefault(group, []).append(score)
        groups_of = kinds_of_characters(one)
        acted = {
            keys: {name: action(one, keys) for name, action in actions.items()}
            for keys in {*groups_of.values()}
        }
        for group, keys in groups_of.items():
            told = {**score.of_characters.get(group, {}), **acted[keys]}
            characters.setdefault(group, []).append(StoryScore(one.story_id, told))
            counts[group] = counts.get(group, 0) + len(keys)
    made = []
    for respects, groups in ((STORY_KINDS, stories), (CHARACTER_KINDS, characters)):
        for by in respects:
            kinds = sorted(kind for name, kind in groups if name == by)
            if kinds in ([], [UNSTATED]):
                continue
            for kind in kinds:
                some = groups[by, kind]
                scores = with_intervals(pooled(some), some, definitions)
                made.append(Stratum(by, kind, len(some), counts.get((by, kind)), scores))
    return tuple(one for one in made if one.scores)
