"""Scores of shot images: of stories, of a set with intervals, and by kind of story and of character; pure.

By kind of story, a score is the mean over stories of the kind. By kind of character, scores of single
characters (CIDS, copy-paste rate, individual action) are taken over those of the kind; who is in which crop
was decided among all characters of the story (supplement, section C.1).

Official ranks
--------------
Question: where does a method stand where one place has to be said?
Formula: methods are ranked in each score, values that are equal up to rounding sharing the mean of their
    places and a missing value having the last one; the mean of a category's ranks is ranked again; of several
    runs of a method the one with the lowest mean over the categories counts. Among those runs the same is
    done once more, as whole numbers without holes, and so is the mean of the five.
Input: means over stories by run and score.
Output: whole numbers from 1, the best; equal ones where methods are level.
Undefined when: nobody has a value in a category. The public code ranks all first there, which changes no
    overall rank.
Source: ViStoryBench, ``utils/summarize_leaderboard.py``.
Departures from the source: its fixed list of methods is the methods of the evaluation. Of runs of a method
    that are level the first one counts, where the code takes any.
These ranks weigh a judge's rating like a cosine, and know no intervals: our own are by score, with intervals.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np

from ...errors import InputError
from ...pages.grid import DASH
from ...schemas.canonical import plain
from ...schemas.text import tallied
from ...schemas.values import Score
from ..archive.archive import Archive, read_archive
from ..archive.replies import archive_notes, not_judged
from ..metrics.alignment import hundred
from ..metrics.cids import Match, matched
from ..metrics.metric import Metric, Terms, base_of, metric_of, metrics
from ..metrics.story import FoundStory, Story
from ..report.model import coverages
from ..stats.uncertainty import mean_ranks
from .looking import (
    CHARACTER_KINDS,
    STORY_KINDS,
    UNSTATED,
    Group,
    kinds_of_characters,
    kinds_of_story,
    read_found,
)
from .ratings import Definitions, Panel, Stability, actions_of, by_story, collect_panels, stability

CATEGORIES: Mapping[str, tuple[str, ...]] = {
    "character": ("cids_self", "cids_cross"),
    "style": ("csd_self", "csd_cross"),
    "prompt": ("shot", "interaction", "scene", "action"),
    "quality": ("aesthetic",),
    "diversity": ("inception",),
}
"""Category -> its scores; the copy-paste rate and OCCM count in none."""

Values = Mapping[str, float]


@dataclass(frozen=True)
class OfficialRank:
    method: str  # its name
    run: str  # which of its runs counts
    ranks: Mapping[str, int | None]  # category -> place; None where no method has a value in it
    overall: int  # place by the mean of those


def official_ranks(
    runs: Mapping[str, Values], variants: Mapping[str, str] | None = None
) -> tuple[OfficialRank, ...]:
    """Return the methods by their overall rank.

    ``runs``: run -> score -> its mean over stories; higher is better in all of them. ``variants``: run -> the
    method that it is a run of; one that is not listed is a method of its own.
    """
    named = variants or {}
    every = _category_ranks(runs, list(runs))
    best: dict[str, str] = {}
    for run in runs:
        method = named.get(run, run)
        mean = sum(every[category][run] for category in CATEGORIES)
        if method not in best or mean < sum(every[category][best[method]] for category in CATEGORIES):
            best[method] = run
    chosen = _category_ranks(runs, list(best.values()))
    whole = {category: _whole(ranks) for category, ranks in chosen.items()}
    means = {run: float(sum(whole[category][run] for category in CATEGORIES)) for run in best.values()}
    overall = _whole(means)
    measured = {
        category for category, names in CATEGORIES.items()
        if any(name in values for values in runs.values() for name in names)
    }  # fmt: skip
    rows = []
    for method, run in best.items():
        places = {category: whole[category][run] if category in measured else None for category in CATEGORIES}
        rows.append(OfficialRank(method, run, places, overall[run]))
    return tuple(sorted(rows, key=lambda row: (row.overall, row.method)))


def _category_ranks(runs: Mapping[str, Values], among: Sequence[str]) -> dict[str, dict[str, float]]:
    """Return category -> run -> rank of the mean of its ranks in the scores of the category."""
    made = {}
    for category, names in CATEGORIES.items():
        columns = [_ranks({run: runs[run].get(name) for run in among}) for name in names]
        means = {run: sum(column[run] for column in columns) / len(columns) for run in among}
        made[category] = _ranks({run: -mean for run, mean in means.items()})
    return made


def _ranks(values: Mapping[str, float | None]) -> dict[str, float]:
    """Return places from 1 for the highest; equal values share a mean place, None has the last one."""
    there = [run for run, value in values.items() if value is not None]
    places = mean_ranks(-np.array([values[run] for run in there], dtype=np.float64))
    return dict.fromkeys(values, float(len(values))) | dict(zip(there, places.tolist(), strict=True))


def _whole(ranks: Mapping[str, float]) -> dict[str, int]:
    """Return ranks as whole numbers without holes."""
    order = sorted(set(ranks.values()))
    return {run: order.index(rank) + 1 for run, rank in ranks.items()}


@dataclass(frozen=True)
class StoryScore:
    story_id: str  # the story
    scores: Mapping[str, Score]  # metric -> value; only those whose models looked
    # which crop was taken for whom, shot by shot; none where nobody looked for characters
    matches: tuple[Match, ...] = ()
    # kind of character -> those of the metrics that are about single characters, over the characters of that
    # kind
    of_characters: Mapping[Group, Mapping[str, Score]] = field(default_factory=dict)
    # metric -> what its value is made of
    terms: Mapping[str, Terms] = field(default_factory=dict, repr=False)


def score_story(line: FoundStory, definitions: Definitions) -> StoryScore:
    """Return the metrics of a story that need no judge."""
    story = Story(line)
    terms = {
        metric.name: term for metric in metrics() if (term := _terms(metric, story, definitions)) is not None
    }
    who = matched(story, definitions)
    kinds = {} if who is None else kinds_of_characters(line)
    by_keys = {keys: _over(story.over(keys), definitions) for keys in {*kinds.values()}}
    return StoryScore(
        line.story_id,
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
        metric.name: term.score
        for metric in metrics()
        if metric.per_character and (term := _terms(metric, story, definitions)) is not None
    }


def pooled(stories: Sequence[StoryScore]) -> dict[str, Score]:
    """Return the mean over stories of every metric that any of them has; coverage is added up."""
    names = list(dict.fromkeys(name for story in stories for name in story.scores))
    made = {}
    for name in names:
        scores = [story.scores[name] for story in stories if name in story.scores]
        values = [score.value for score in scores if score.value is not None]
        counts: Counter[str] = Counter()
        for score in scores:
            counts.update(score.counts)
        reasons = Counter(score.reason for score in scores if score.reason)
        why = str(reasons.most_common(1)[0][0]) if reasons else "no story has a value"
        counted = {**counts, "stories": len(stories), "stories_counted": len(values)}
        made[name] = Score.ratio(sum(values), len(values), why, **counted)
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
    means = [scores[name] for name in names]
    bounds = np.array([metric_of(name).range for name in names]).T
    made = definitions.with_ends(
        means, np.where(known, table, 0.0), known.astype(np.float64), (bounds[0], bounds[1])
    )
    return {**scores, **dict(zip(names, made, strict=True))}


def values_of(
    stories: Sequence[StoryScore], names: Sequence[str]
) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
    """Return the values of stories, shape (stories, names); ``nan`` where there is none."""
    return np.array(
        [
            [
                np.nan if (score := story.scores.get(name)) is None or score.value is None else score.value
                for name in names
            ]
            for story in stories
        ],
        dtype=np.float64,
    ).reshape(len(stories), len(names))


Actions = Callable[[FoundStory, frozenset[str]], Score]
"""Story and keys of characters -> the rating of their actions by one judge."""


@dataclass(frozen=True)
class Stratum:
    """One method over one kind of story or character."""

    by: str  # what is told apart, such as ``culture`` or ``gender``
    kind: str  # which it is, such as ``japanese``, or ``not stated``
    stories: int  # how many stories are of the kind, or have a character of it
    characters: int | None  # how many characters are; None for a kind of story
    scores: Mapping[str, Score] = field(repr=False)  # metric -> value, with its interval over those stories


def strata_of(
    lines: Sequence[FoundStory],
    scored: Sequence[StoryScore],
    actions: Mapping[str, Actions],
    definitions: Definitions,
) -> tuple[Stratum, ...]:
    """Return one method's scores by every kind; none in a respect in which nothing is stated.

    ``actions``: name of the score of individual actions -> what tells it; one per judge.
    """
    stories: dict[Group, list[StoryScore]] = {}
    characters: dict[Group, list[StoryScore]] = {}
    counts: dict[Group, int] = {}
    for story, score in zip(lines, scored, strict=True):
        for group in kinds_of_story(story).items():
            stories.setdefault(group, []).append(score)
        groups_of = kinds_of_characters(story)
        acted = {
            keys: {name: action(story, keys) for name, action in actions.items()}
            for keys in {*groups_of.values()}
        }
        for group, keys in groups_of.items():
            values = {**score.of_characters.get(group, {}), **acted[keys]}
            characters.setdefault(group, []).append(StoryScore(story.story_id, values))
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
    return tuple(stratum for stratum in made if stratum.scores)


@dataclass(frozen=True)
class MethodScores:
    method: str  # its name
    scores: Mapping[str, Score]  # metric -> value with its interval over stories
    stories: tuple[StoryScore, ...] = field(repr=False)  # the values of each story
    accounting: Mapping[str, Any]  # shots and stories that were asked for and are there
    # judge -> sub-score -> its value in every run
    stability: Mapping[str, Mapping[str, Stability]] = field(default_factory=dict)
    # judge -> how many ratings came out how
    outcomes: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    strata: tuple[Stratum, ...] = field(default=(), repr=False)  # scores by kind of story and of character

    def too_little(self) -> str | None:
        """Return why the method stands below the line; None where it does not."""
        return next(filter(None, (each.too_little() for each in coverages(self.accounting))), None)

    def as_json(self) -> dict[str, Any]:
        """Return the scores as plain JSON, with every story."""
        own = ("method", "scores", "accounting", "stability", "outcomes", "strata")
        of_story = ("story_id", "scores", "matches")
        points = {name: of_100(name, score) for name, score in self.scores.items()}
        return {
            **{name: plain(getattr(self, name)) for name in own},
            "of_100": {name: value for name, value in points.items() if value is not None},
            "stories": [{name: plain(getattr(each, name)) for name in of_story} for each in self.stories],
        }


@dataclass(frozen=True)
class ImageScores:
    """The scores of an evaluation of shot images."""

    definitions: Definitions  # the named definitions that were used
    release_sha256: str | None  # the set of scripts
    methods: tuple[MethodScores, ...]  # one entry per method
    notes: tuple[str, ...] = ()  # what a reader must know before trusting a number
    # method here -> the method of which it is a run, for the public summary's ranks
    variants: Mapping[str, str] = field(default_factory=dict)

    def official_ranks(self) -> tuple[OfficialRank, ...]:
        """Return ranks as the public summary makes them; none of one method, or with several judges.

        Methods that left out too much come last, whatever their rank.
        """
        values = {
            method.method: {
                name: score.value for name, score in method.scores.items() if score.value is not None
            }
            for method in self.methods
        }
        several = any(name != base_of(name) for method in self.methods for name in method.scores)
        ranks = () if several or len(values) < 2 else official_ranks(values, self.variants)
        below = {each.method for each in self.methods if each.too_little()}
        return tuple(sorted(ranks, key=lambda row: row.run in below))

    def as_json(self) -> dict[str, Any]:
        official = self.official_ranks()
        return {
            "kind": "images",
            "definitions": self.definitions.as_json(),
            "release": {"sha256": self.release_sha256},
            "methods": [method.as_json() for method in self.methods],
            "notes": list(self.notes),
            **({"official_ranks": [asdict(row) for row in official]} if official else {}),
        }

    def lines(self) -> Iterable[str]:
        """Return the scores as a table for people, with intervals and coverage."""
        yield f"shot images ({self.definitions.named()})"
        for method in self.methods:
            account = method.accounting
            yield ""
            yield (
                f"{method.method}: {account['shots_valid']} of {account['shots_requested']} shots,"
                f" {account['stories_without_shot']} of {account['stories_requested']} stories without any"
            )
            for name, score in method.scores.items():
                yield f"  {name:<18}{shown(name, score)}"
            for judge, dimensions in method.stability.items():
                for name, runs in dimensions.items():
                    if runs.deviation is not None:
                        yield (
                            f"  {judge} {name}: {runs.mean:.2f} +- {runs.deviation:.2f} over"
                            f" {tallied(len(runs.runs), 'runs')}"
                        )
        for row in self.official_ranks():
            parts = ", ".join(f"{name} {DASH if rank is None else rank}" for name, rank in row.ranks.items())
            why = next(each.too_little() for each in self.methods if each.method == row.run)
            below = f"; incomplete: {why}" if why else ""
            yield f"rank {row.overall} as ViStoryBench's summary makes it: {row.run} ({parts}){below}"
        for note in self.notes:
            yield f"note: {note}"

    def rows(self) -> Iterable[dict[str, Any]]:
        """Yield one row per method, story and metric; a story that is empty is the whole set."""
        for method in self.methods:
            for name, score in method.scores.items():
                yield _row(method.method, "", name, score)
            for story in method.stories:
                for name, score in story.scores.items():
                    yield _row(method.method, story.story_id, name, score)

    def strata_rows(self) -> Iterable[dict[str, Any]]:
        """Yield one row per method, kind of story or character, and metric."""
        for method in self.methods:
            for stratum in method.strata:
                stratum_columns = {"by": stratum.by, "kind": stratum.kind}
                for name, score in stratum.scores.items():
                    row = _row(method.method, "", name, score)
                    del row["story_id"]
                    yield {"method": row.pop("method"), **stratum_columns, **row}


def of_100(name: str, score: Score) -> float | None:
    """Return a rating in the 100-point form of the metrics page; None where there is none, or for others."""
    return hundred(score.value) if metric_of(name).judged and score.value is not None else None


def shown(name: str, score: Score) -> str:
    """Return a value for people: number, interval, and the stories that it stands on."""
    if score.value is None:
        return f"{'-':>8}  {score.reason}"
    metric = metric_of(name)
    digits = 2 if metric.top == 100.0 else 3
    points = of_100(name, score)
    text = f"{score.value:8.{digits}f}" + ("" if points is None else f" of {metric.top:g}")
    if score.low is not None and score.high is not None:
        text += f"  [{score.low:.{digits}f}, {score.high:.{digits}f}]"
    if points is not None:
        text += f"  {points:.1f} of 100"
    counts = score.counts
    if "stories" in counts:
        text += f"  {counts['stories_counted']} of {counts['stories']} stories"
    missed = counts.get("expected", 0) - counts.get("matched", 0)
    if missed > 0:
        text += f", {missed} of {counts['expected']} expected characters not matched"
    for key, whole, what in metric.notes:
        if counts.get(key) and whole in counts:
            text += f", {counts[key]} of {counts[whole]} {what}"
    if "asked" in counts and counts["asked"] > counts.get("answered", 0):
        text += f", {counts['asked'] - counts['answered']} of {counts['asked']} ratings missing"
    return text


def _row(method: str, story: str, name: str, score: Score) -> dict[str, Any]:
    return {
        "method": method, "story_id": story, "metric": name, "value": score.value, "low": score.low,
        "high": score.high, "of_100": of_100(name, score), "status": score.status, "reason": score.reason,
        **{f"n_{key}": value for key, value in sorted(score.counts.items())},
    }  # fmt: skip


def score_folder(folder: str | Path, definitions: Definitions | None = None) -> ImageScores:
    """Score an evaluation folder of kind images; pure."""
    archive = read_archive(folder)
    if archive.manifest.kind != "images":
        raise InputError.one(
            str(folder), what=f"this is an evaluation of kind {archive.manifest.kind}, not of images",
            fix="give the folder of fabula evaluate images",
        )  # fmt: skip
    return score_archive(archive, read_found(folder), definitions or Definitions())


def score_archive(archive: Archive, looked_at: Sequence[FoundStory], definitions: Definitions) -> ImageScores:
    """Score an archive with what was found in its pictures."""
    manifest = archive.manifest
    panels = collect_panels(archive.judgements, looked_at)
    judges = {judge for _, judge in panels}
    asked_from = int(str(manifest.protocol.get("interaction_from", 2)))
    rated_by = {
        story.method: {judge for name, judge in panels if name == story.method} for story in looked_at
    }
    notes = [*archive_notes(manifest), *not_judged(rated_by, judges)]
    methods = []
    for method, some in groupby(sorted(looked_at, key=_by_method), key=_by_method):
        stories = tuple(some)
        judged = {judge: panel for (name, judge), panel in panels.items() if name == method}
        accounting = manifest.subject.get("methods", {}).get(method) or counted(stories)
        methods.append(
            _score_method(stories, judged, accounting, asked_from, definitions, several=len(judges) > 1)
        )
        pictures = sum(shot.sha256 is not None for story in stories for shot in story.shots)
        notes += [
            f"the {metric.label.lower()} score of {method}, of {pictures} pictures, means little"
            for metric in metrics()
            if metric.name in methods[-1].scores and pictures < metric.few
        ]
    most = max((len(method.stories) for method in methods), default=0)
    notes += definitions.notes(most, "story")
    release = manifest.protocol.get("release") or {}
    return ImageScores(definitions, release.get("sha256"), tuple(methods), tuple(notes))


def counted(stories: Sequence[FoundStory]) -> dict[str, int]:
    """Return how much was asked for and is there."""
    there = [sum(shot.sha256 is not None for shot in story.shots) for story in stories]
    return {
        "stories_requested": len(stories), "stories_without_shot": sum(not count for count in there),
        "shots_requested": sum(len(story.shots) for story in stories), "shots_valid": sum(there),
    }  # fmt: skip


def _by_method(story: FoundStory) -> str:
    return story.method


def _score_method(
    stories: Sequence[FoundStory],
    judged: Mapping[str, Panel],
    accounting: Mapping[str, object],
    asked_from: int,
    definitions: Definitions,
    *,
    several: bool,
) -> MethodScores:
    """Return the scores of a method; those of ratings bear the judge's name where there are ``several``."""

    def named(name: str, judge: str) -> str:
        return f"{name} ({judge})" if several else name

    scored = {story.story_id: score_story(story, definitions) for story in stories}
    rated: dict[str, dict[str, Score]] = {story.story_id: {} for story in stories}
    actions: dict[str, Actions] = {}
    for judge, panel in sorted(judged.items()):
        for story, scores in by_story(stories, panel, asked_from, definitions).items():
            rated[story] |= {named(name, judge): score for name, score in scores.items()}
        actions[named("action", judge)] = partial(actions_of, panel=panel, definitions=definitions)
    per_story = tuple(replace(row, scores={**row.scores, **rated[key]}) for key, row in scored.items())
    scores = with_intervals(pooled(per_story), per_story, definitions)
    for metric in metrics():
        if metric.whole and (whole := metric.whole([Story(story) for story in stories], definitions)):
            scores[metric.name] = whole
    return MethodScores(
        method=stories[0].method,
        scores={name: scores[name] for name in _ordered(scores)},
        stories=per_story,
        accounting=accounting,
        stability={
            judge: stability(stories, panel, asked_from, definitions) for judge, panel in judged.items()
        },
        outcomes={judge: dict(panel.outcomes) for judge, panel in judged.items()},
        strata=strata_of(stories, per_story, actions, definitions),
    )


def _ordered(names: Iterable[str]) -> list[str]:
    """Return names in the order of the registry, those of judges behind them as they come."""
    there, ours = list(names), [metric.name for metric in metrics() if not metric.judged]
    return [name for name in ours if name in there] + [name for name in there if name not in ours]
