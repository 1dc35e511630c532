"""Scoring an evaluation of shot images: its archive in, numbers out; no picture is opened, nobody asked."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import groupby
from pathlib import Path

from ...errors import InputError, UserError
from ...schemas.values import Score
from ..archive.archive import Archive, read_archive
from ..archive.replies import archive_notes, not_judged
from ..metrics.registry import metrics
from ..metrics.story import FoundStory, Story
from .definitions import Definitions
from .found import read_found
from .ratings import Panel, actions_of, by_story, collect_panels, stability
from .scores import Actions, ImageScores, MethodScores, pooled, score_story, strata_of, with_intervals


def score_folder(folder: str | Path, definitions: Definitions | None = None) -> ImageScores:
    """Score an evaluation folder of kind images; pure."""
    archive = read_archive(folder)
    if archive.manifest.kind != "images":
        problem = UserError(
            str(folder), what=f"this is an evaluation of kind {archive.manifest.kind}, not of images",
            fix="give the folder of fabula evaluate images",
        )  # fmt: skip
        raise InputError([problem])
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
