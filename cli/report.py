"""``fabula report``: an evaluation as one page for people, with JSON and CSV beside it."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from .command import command
from .common import released, show, warn
from .score import against_options


@command(
    "report", "evaluation.entities.metrics.aggregate:Definitions", megabytes="--pictures-mb",
    least_coverage="--least-coverage", references="--reference",
    owners="kinds.evaluations:owners_of_reports",
    without=("resamples", "seed", "interval", "correction"),
)  # fmt: skip
def report(
    run: Path,
    *,
    given: Mapping[str, Any],
    release: Path | None = None,
    outputs: Sequence[Path] = (),
    out: Path | None = None,
    define: Sequence[str] = (),
    unranked: Sequence[str] = (),
    stories: Sequence[str] = (),
    methods: Sequence[str] = (),
    against: str | None = None,
    references: Sequence[str] = (),
    human: Path | None = None,
    megabytes: Annotated[float | None, typer.Option(min=0)] = None,
    least_coverage: Annotated[float | None, typer.Option(min=0, max=1)] = None,
    as_json: bool = False,
) -> int:
    """Write a page with the scores and the frames behind them.

    The page is one file that needs no network. The numbers stand beside it as JSON and CSV.

    Options:
        run: Evaluation folder.
        release: Release, or suite, that was judged [where the evaluation found it].
        outputs: Storyboards or shots of one method [the run's pictures].
        out: The page, a .html file [evaluation_report.html in the folder].
        define: A named definition, such as cids=code, occm=code, csd=code.
        unranked: A method that is shown and not ranked.
        stories: A story, or an episode, to show from end to end [those that tell most].
        methods: A method whose stories are shown [the first 6].
        against: Mark what is better than this method, or than the strongest baseline of each
            measure (strongest).
        references: With --against: a method that is no baseline.
        human: With --against: people's ratings, as fabula calibrate reads them.
        megabytes: Megabytes of pictures in the page at most [12].
        least_coverage: Share of its outputs from which a method stands with the complete ones, and is ranked
            [0.95].

    Examples:
        fabula report runs/eval-a
        fabula report runs/eval-a --release dist/mine-0.1.0 --outputs storyboards/model-x --out
            pages/eval-a.html
        fabula report runs/images --unranked copy-paste --story 07 --story 12
        fabula report runs/episodes --story ep_007 --pictures-mb 20
        fabula report runs/episodes --coverage table15 --gap intervening
    """
    from ..evaluation.report.formats import PAGE, check_page, write_report
    from ..kinds.evaluations import definitions_said, make_report

    page = out or run / PAGE
    check_page(page)
    options = {
        "define": define,
        "least_coverage": least_coverage,
        "unranked": unranked,
        "stories": stories,
        "methods": methods,
        "megabytes": megabytes,
        **against_options(against, (), references, human),
        **given,
    }
    warn(*definitions_said(run))
    show(write_report(make_report(run, released(release), outputs, options), page), as_json=as_json)
    return 0
