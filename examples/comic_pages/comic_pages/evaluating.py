"""Judging drawn pages: the recoverability protocol, with the panels of a page as its pictures."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from fabula.engine.hooks import Reporter
from fabula.engine.status import RunReport
from fabula.evaluation.katha.pipeline import PIPELINE as STORIES
from fabula.evaluation.katha.requests import PROTOCOL as STORYBOARDS
from fabula.evaluation.katha.requests import EvaluateOptions, evaluation_request
from fabula.evaluation.running import check_request

PIPELINE = replace(STORIES, name="evaluate-comics", stages=("comic_pages.load_items", *STORIES.stages[1:]))


def evaluate_comics(
    release: Path,
    outputs: Sequence[Path],
    out: Path,
    options: EvaluateOptions,
    *,
    reporter: Reporter | None = None,
) -> RunReport:
    """Ask judges the questions of drawn pages; an evaluation that is there is continued.

    Args:
        release: the released pages.
        outputs: a folder per method: ``PAGE_ID/01.png`` and so on, or with seeds ``PAGE_ID/seed_0/01.png``.
        out: the run folder.
        options: whom to ask; see :class:`fabula.evaluation.katha.requests.EvaluateOptions`.
        reporter: takes the progress, and what it is about to cost.
    """
    request = evaluation_request(release, outputs, out, options, PIPELINE)
    check_request(request)
    return PROTOCOL.run.make(request, reporter)


PROTOCOL = replace(STORYBOARDS, run=replace(STORYBOARDS.run, pipeline=PIPELINE))
