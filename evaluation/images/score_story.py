"""The metrics of one story of one method, from what was found in its pictures; pure."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from ...schemas.score import Score
from ..metrics.cids import Match, matched
from ..metrics.metric import Metric, Terms
from ..metrics.registry import metrics
from ..metrics.story import FoundStory, Story
from .definitions import Definitions
from .groups import Group, kinds_of_characters


@dataclass(frozen=True)
class StoryScore:
    """The values of one story.

    Attributes:
        story_id: the story.
        scores: metric -> value; only those whose models looked.
        matches: which crop was taken for whom, shot by shot; none where nobody looked for characters.
        of_characters: kind of character -> those of the metrics that are about single characters, over the
            characters of that kind.
        terms: metric -> what its value is made of.
    """

    story_id: str
    scores: Mapping[str, Score]
    matches: tuple[Match, ...] = ()
    of_characters: Mapping[Group, Mapping[str, Score]] = field(default_factory=dict)
    terms: Mapping[str, Terms] = field(default_factory=dict, repr=False)


def score_story(found: FoundStory, definitions: Definitions) -> StoryScore:
    """Return the metrics of a story that need no judge."""
    story = Story(found)
    terms = {
        metric.name: told for metric in metrics() if (told := _terms(metric, story, definitions)) is not None
    }
    who = matched(story, definitions)
    kinds = {} if who is None else kinds_of_characters(found)
    by_keys = {keys: _over(story.over(keys), definitions) for keys in {*kinds.values()}}
    return StoryScore(
        found.story_id,
        {name: some.score for name, some in terms.items()},
        () if who is None else who.cids.matches,
        {group: by_keys[keys] for group, keys in kinds.items()},
        terms,
    )


def _terms(metric: Metric, story: Story, definitions: Definitions) -> Terms | None:
    return None if metric.terms is None else metric.terms(story, definitions)


def _over(story: Story, definitions: Definitions) -> dict[str, Score]:
    """Return the metrics of single characters over those of a story that count."""
    return {
        metric.name: told.score
        for metric in metrics()
        if metric.per_character and (told := _terms(metric, story, definitions)) is not None
    }
