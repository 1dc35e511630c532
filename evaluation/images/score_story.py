"""The metrics of one story of one method, from what was found in its pictures; pure.

From values of stories to values of a set: means, what they stand on, and their intervals.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from ...schemas.score import Score
from ..metrics.cids import Match, matched
from ..metrics.metric import Metric, Terms
from ..metrics.registry import metrics
from ..metrics.story import FoundStory, Story
from ..stats.bootstrap import divided, resampled_sums
from .definitions import Definitions
from .found import Group, kinds_of_characters


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


def pooled(stories: Sequence[StoryScore]) -> dict[str, Score]:
    """Return the mean over stories of every metric that any of them has; coverage is added up."""
    names = list(dict.fromkeys(name for one in stories for name in one.scores))
    made = {}
    for name in names:
        scores = [one.scores[name] for one in stories if name in one.scores]
        values = [score.value for score in scores if score.value is not None]
        counts: Counter[str] = Counter()
        for score in scores:
            counts.update(score.counts)
        reasons = Counter(score.reason for score in scores if score.reason)
        why = str(reasons.most_common(1)[0][0]) if reasons else "no story has a value"
        told = {**counts, "stories": len(stories), "stories_counted": len(values)}
        made[name] = Score.ratio(sum(values), len(values), why, **told)
    return made


def with_intervals(
    scores: Mapping[str, Score], stories: Sequence[StoryScore], definitions: Definitions
) -> dict[str, Score]:
    """Return means over stories with 95 % intervals; all see the same drawings of stories."""
    names = [name for name, score in scores.items() if score.status == "ok"]
    if not names or not definitions.resamples:
        return dict(scores)
    table = values_of(stories, names)
    known = ~np.isnan(table)
    columns = np.concatenate([np.where(known, table, 0.0), known.astype(np.float64)], axis=1)
    sums = resampled_sums(columns, definitions.resamples, definitions.seed)
    replicates = divided(sums[:, : len(names)], sums[:, len(names) :])
    means = np.array([scores[name].value for name in names], dtype=np.float64)
    low, high = definitions.ends(means, replicates, known.sum(axis=0))
    ends = {name: (_end(low[place]), _end(high[place])) for place, name in enumerate(names)}
    return {
        name: score.model_copy(update=dict(zip(("low", "high"), ends[name], strict=True)))
        if name in ends
        else score
        for name, score in scores.items()
    }


def values_of(
    stories: Sequence[StoryScore], names: Sequence[str]
) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
    """Return the values of stories, shape (stories, names); ``nan`` where there is none."""
    return np.array(
        [
            [
                np.nan if (one := story.scores.get(name)) is None or one.value is None else one.value
                for name in names
            ]
            for story in stories
        ],
        dtype=np.float64,
    ).reshape(len(stories), len(names))


def _end(value: float) -> float | None:
    return None if np.isnan(value) else float(value)
