"""``fabula score`` and ``fabula compare``: numbers from an evaluation, and two of them against each other."""

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from ..errors import ConfigError
from .command import command
from .common import chosen_form, released, say, show, show_tables, warn

DEFINITIONS = (
    "evaluation.recoverability.matching:Definitions",
    "evaluation.events.votes:Definitions",
    "evaluation.entities.metrics.aggregate:Definitions",
)


@command(
    "score", *DEFINITIONS, owners="kinds.evaluations:owners_of_scoring", least_coverage="--least-coverage"
)
def score(
    run: Path,
    *,
    given: Mapping[str, Any],
    release: Path | None = None,
    suite: Path | None = None,
    split: Sequence[str] = (),
    weights: Path | None = None,
    define: Sequence[str] = (),
    alias: Sequence[str] = (),
    resamples: Annotated[int, typer.Option(min=0)] = 10_000,
    least_coverage: Annotated[float | None, typer.Option(min=0, max=1)] = None,
    tables: Path | None = None,
    form: str | None = None,
    as_json: bool = False,
) -> int:
    """Compute the scores of an evaluation; no model is asked.

    An evaluation that is not finished can be scored too: the scores then say what is missing. Tables
    (--format) have what people said behind the scores, where fabula calibrate --save has kept it.

    Options:
        run: Evaluation folder.
        release: Release that was judged [where the evaluation says].
        suite: Event suite that was judged [the copy in the folder].
        split: Only stories of this split.
        matcher: Who compares answers: {evaluation.recoverability.matching:MATCHERS}, or a matcher with
            archived verdicts [accepted].
        nonresponse: No answer counts as incorrect (zero) or is excluded [excluded; events: zero].
        weights: Weights of judges, fitted on a validation split [one vote each].
        define: A named definition, such as cids=code, occm=code, csd=code.
        alias: NAME=METHOD, for a method here that is a run of METHOD, or a file with such lines: the
            ranks of the official summary count the best run of each.
        least_coverage: Share of its outputs from which a method stands with the complete ones; others stand
            below a line [0.95].
        tables: Also write tables here: answers, matches, masks; of images, scores, strata, shots.

    Examples:
        fabula score runs/eval-a
        fabula score runs/eval-a --json
        fabula score runs/eval-a --format latex > scores.tex
    """
    from ..evaluation.archive.archive import read_manifest
    from ..evaluation.report.model import LEAST, below_the_line, least_covered
    from ..evaluation.report.people import People, saved_people
    from ..kinds.evaluations import definitions_said, judging_of, remarks_on, tables_of
    from ..kinds.evaluations import score as score_as

    form = chosen_form(form, as_json=as_json)
    options = {
        "split": split, "weights": weights, "tables": tables, "suite": suite, "define": define,
        "alias": alias,
        "release": released(release), "resamples": resamples, **given,
    }  # fmt: skip
    warn(*definitions_said(run))
    scores, scoring = score_as(run, options), judging_of(run).scored()
    of_people = None if form in ("text", "json") else scoring.of_people
    people = People() if of_people is None else saved_people(run, of_people)
    warn(*people.warnings)
    made = [] if form in ("text", "json") else tables_of(run, scores, least_coverage)
    remarks = partial(remarks_on, scores, run)
    show_tables(scores, lambda: made and (*made, *people.tables), form, remarks)
    least = LEAST if least_coverage is None else least_coverage
    tell = say if form == "text" else warn
    tell(*below_the_line(least_covered(read_manifest(run)), least))
    return 0


def against_options(
    against: str | None, measures: Sequence[str], references: Sequence[str], human: Path | None
) -> dict[str, Any]:
    """Return the options of a comparison with the strongest baseline; none where nobody asked for it."""
    if against is None:
        if measures or references or human:
            what = "--measure, --reference and --human are about --against"
            raise ConfigError("--against", what=what, fix="add --against strongest, or the name of a method")
        return {}
    from ..people.katha import story_ratings

    ratings = None if human is None else partial(story_ratings, human)
    return {"against": against, "measures": measures, "references": references, "human": ratings}


@command(
    "compare", *DEFINITIONS, owners="kinds.evaluations:owners_of_scoring", measures="--measure",
    references="--reference",
)  # fmt: skip
def compare(
    first: Path,
    second: Path | None = None,
    *,
    given: Mapping[str, Any],
    release: Path | None = None,
    suite: Path | None = None,
    allow: Sequence[str] = (),
    against: str | None = None,
    measures: Sequence[str] = (),
    references: Sequence[str] = (),
    human: Path | None = None,
    weights: Path | None = None,
    define: Sequence[str] = (),
    manifest: str | None = None,
    resamples: Annotated[int, typer.Option(min=0)] = 10_000,
    form: str | None = None,
    as_json: bool = False,
) -> int:
    """Compare methods of one or two evaluations in paired tests.

    Two must have been judged under the same protocol. The definitions are those of `fabula score`.

    Options:
        first: Evaluation folder.
        second: Another evaluation folder [none: the methods in the first with each other].
        release: Release that was judged [where the evaluations say].
        suite: Event suite that was judged [the copies in the folders].
        allow: Part of the protocol that may differ, such as prompts.
        against: Compare each method with this one alone, or with the strongest baseline of each
            measure (strongest), and mark what is better.
        measures: With --against: image, gap, moral, human, with commas between [all that there are].
        references: With --against: a method that is no baseline, such as the one that is proposed or a closed
            system.
        human: With --against: people's ratings, as fabula calibrate reads them.
        nonresponse: No answer counts as incorrect (zero) or is excluded [excluded; events: zero].
        weights: Weights of judges, fitted on a validation split [one vote each].
        define: A named definition, such as cids=code.
        manifest: What must be the same: ours, the protocol, or b5, as in EntityBench everything but
            method, time, platform and number of API keys, versions of libraries too [ours].

    Examples:
        fabula compare runs/eval-a
        fabula compare runs/eval-a runs/eval-c
        fabula compare runs/eval-a runs/eval-c --format markdown
        fabula compare runs/eval-a --against strongest --reference mine --format latex
    """
    from ..evaluation.archive.archive import read_manifest
    from ..evaluation.report.model import compared_over
    from ..kinds.evaluations import compare as compare_as
    from ..kinds.evaluations import comparison_tables, definitions_said, remarks_on

    form = chosen_form(form, as_json=as_json)
    options = {
        "weights": weights, "suite": suite, "define": define, "release": released(release),
        "manifest": manifest, "resamples": resamples, **given,
        **against_options(against, measures, references, human),
    }  # fmt: skip
    if second is not None and against:
        what = "it compares the methods of one evaluation"
        fix = "give one folder; `fabula import archive` makes one of several"
        raise ConfigError("--against", what=what, fix=fix)
    folders = (first, *([] if second is None else [second]))
    warn(*definitions_said(*folders))
    made = compare_as(first, second, options, allow)
    warn(*compared_over(read_manifest(folder) for folder in folders))
    show_tables(made, lambda: comparison_tables(made, *folders), form, partial(remarks_on, made, *folders))
    return 0


# -- ``fabula report``: an evaluation as one page for people, with JSON and CSV beside it


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
