"""Evaluations: have outputs judged, then scores, comparison, report; and studies of many."""

from collections.abc import Collection, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, overload

from .calling import Place, Progress, as_paths, chosen, listed, released, reporter_of
from .results import Comparison, Evaluation, Report, Scores, open_evaluation, scores_of

if TYPE_CHECKING:
    from ..engine.estimate import CallPlan
    from ..engine.run_options import RunOptions
    from ..studies.experiments.study import ExperimentOptions, StudyStatus


@overload
def evaluate(
    release: Place, outputs: Sequence[Place] | Place, out: Place, options: "RunOptions | None" = None, *,
    dry_run: Literal[False] = False, progress: Progress = True,
    **given: Any,  # noqa: ANN401
) -> Evaluation: ...  # fmt: skip
@overload
def evaluate(
    release: Place, outputs: Sequence[Place] | Place, out: Place, options: "RunOptions | None" = None, *,
    dry_run: Literal[True], progress: Progress = True,
    **given: Any,  # noqa: ANN401
) -> "CallPlan": ...  # fmt: skip
def evaluate(
    release: Place,
    outputs: Sequence[Place] | Place,
    out: Place,
    options: "RunOptions | None" = None,
    *,
    dry_run: bool = False,
    progress: Progress = True,
    **given: Any,
) -> "Evaluation | CallPlan":
    """Have outputs judged against a release, or measured; as ``fabula evaluate NOUN``.

    A folder that has an evaluation is continued: it can be stopped at any moment, and nothing that was
    answered is asked again.

    Args:
        release: a release, a version on a Hub, a set of shot scripts or episodes, or a suite of events.
        outputs: a folder of outputs for each method.
        out: the run folder.
        options: an object of the protocol's options, such as :class:`fabula.EvaluateOptions`.
        dry_run: only tell what judges would be asked, and the cost: nothing is asked, and nothing written.
        progress: as for :func:`fabula.build`.
        given: options by keyword: ``judges``, ``max_cost`` (USD), ``limit``, ``votes``, ``models``, ...; and
            ``noun``: ``katha``, ``images``, ``events`` or ``episodes`` [what the release is of].

    Returns:
        The evaluation: ``to_pandas()`` has every reply, ``score()`` the scores. Of a dry run the plan:
        ``calls``, ``cost`` (USD; None where a price is not known) and those of each stage and judge.

    Raises:
        FabulaError: the release, the outputs, an option, a model or the folder is wrong, the cost limit was
            reached, or it was stopped; what was answered by then is kept.

    Example:
        >>> import fabula
        >>> evaluation = fabula.evaluate("dist/mine-0.1.0", "boards/model-x", "runs/eval",
        ...                              judges="openai:gpt-4.1-mini", progress=False)
        >>> frame = evaluation.to_pandas()
        >>> set(frame["outcome"]) == {"answered"}
        True
        >>> fabula.evaluate("dist/mine-0.1.0", "boards/model-y", "runs/other",
        ...                 judges="openai:gpt-4.1-mini", dry_run=True).calls > 0
        True
    """
    from ..kinds.evaluations import evaluating_of
    from ..kinds.registry import foreign_sections

    judged_by = released(release, progress)
    evaluating = evaluating_of(judged_by, given.pop("noun", None))
    for name in ("judges", "stories"):
        if isinstance(given.get(name), str):
            given[name] = [given[name]]
    options = replace(chosen(evaluating.options, options, given), others=foreign_sections)
    if dry_run:
        opened = evaluating.opened(Path(judged_by))
        return evaluating.estimate(evaluating.request(opened, listed(outputs), Path(out), options))
    report = evaluating.evaluate(judged_by, listed(outputs), Path(out), options, reporter_of(progress))
    return open_evaluation(Path(out), report)


def score(folder: Place, **options: Any) -> Scores:  # noqa: ANN401 - checked by the protocol
    """Compute the scores of an evaluation; no model is asked. As ``fabula score``.

    Args:
        folder: the evaluation folder.
        options: options of ``fabula score`` by keyword: ``release``, ``split``, ``matcher``,
            ``nonresponse``, ``define``, ``resamples``, ``seed``, ...

    Returns:
        The scores: ``to_pandas()`` has a row for each number, ``to_latex()`` the tables.

    Raises:
        InputError: archive or release cannot be read, or do not belong together.
        ConfigError: an option says nothing about such evaluations.

    Example:
        >>> import fabula
        >>> scores = fabula.score("runs/eval", resamples=0)
        >>> sorted(scores.to_pandas().columns)[:3]
        ['denominator', 'high', 'low']
    """
    return scores_of(Path(folder), options)


def compare(
    first: Place,
    second: Place | None = None,
    *,
    allow: Collection[str] = (),
    **options: Any,  # noqa: ANN401 - as score
) -> Comparison:
    """Compare the methods of one or two evaluations in paired tests. As ``fabula compare``.

    Args:
        first: evaluation folder.
        second: another [none: the methods in the first with each other].
        allow: parts of the protocol that may differ.
        options: as for :func:`score`.

    Returns:
        The differences with intervals, p-values and effect sizes.

    Raises:
        InputError: a folder cannot be read, they are not alike, or share nothing. ConfigError: as
            :func:`score`.

    Example:
        >>> import fabula
        >>> compared = fabula.compare("runs/eval", "runs/eval-y", resamples=200)
        >>> len(compared.result.comparisons) > 0
        True
    """
    from ..kinds import evaluations as verbs

    other = None if second is None else Path(second)
    made = verbs.compare(Path(first), other, as_paths(options), allow)
    folders = (Path(first), *([] if other is None else [other]))
    return Comparison(tuple(verbs.comparison_tables(made, *folders)), folders, made)


def report(
    folder: Place,
    out: Place | None = None,
    *,
    release: Place | None = None,
    outputs: Sequence[Place] | Place = (),
    **options: Any,  # noqa: ANN401 - checked by the protocol
) -> Report:
    """Write a page with the scores of an evaluation and the frames behind them. As ``fabula report``.

    Args:
        folder: the evaluation folder.
        out: the page, an ``.html`` file [``evaluation_report.html`` in the folder].
        release: what was judged [where the evaluation says].
        outputs: folders of outputs [those that the evaluation says].
        options: other options of ``fabula report`` by keyword.

    Returns:
        The report: its tables, its ``figures``, and where the page lies (``page``).

    Raises:
        InputError: something cannot be read, or does not belong together.
        ConfigError: the release is not to be found, or an option says nothing about such evaluations.
        TargetError: the page cannot be written.

    Example:
        >>> import fabula
        >>> report = fabula.report("runs/eval", "eval.html")
        >>> report.page.name
        'eval.html'
        >>> report.figures["gaps"].title  # figures["gaps"].save("gaps.pdf") writes it for a paper
        'STG per dimension'
    """
    from ..evaluation.report.formats import PAGE, Table, check_page, write_report
    from ..kinds.evaluations import make_report

    page = Path(folder) / PAGE if out is None else Path(out)
    check_page(page)
    judged_by = None if release is None else released(release)
    written = write_report(make_report(Path(folder), judged_by, listed(outputs), options), page)
    shown = written.document
    tables: tuple[Table, ...] = (
        shown.headline,
        *shown.details,
        *shown.agreement,
        *shown.people,
        *shown.controls,
        *shown.accounting,
    )
    return Report(tables, written)


def experiment(
    study: Place,
    out: Place,
    options: "ExperimentOptions | None" = None,
    *,
    parts: Sequence[str] = (),
    progress: Progress = True,
    **given: Any,  # noqa: ANN401 - options by keyword, checked against ExperimentOptions
) -> "StudyStatus":
    """Run a study of plans, renderers, seeds and judges. As ``fabula experiment run``.

    It can be stopped at any moment; the same call goes on.

    Args:
        study: the study, a TOML file (docs/experiments.md).
        out: the folder of the study; made if missing, continued if there.
        options: an object of :class:`fabula.ExperimentOptions`.
        parts: only these parts: pictures, judgements, compass, evaluators, plants or tables.
        progress: as for :func:`fabula.build`.
        given: options by keyword: ``max_cost`` (USD), ``workers``, ...

    Returns:
        How far the study is: its methods, and what it has cost.

    Raises:
        FabulaError: the study or an option is wrong, the cost limit was reached, or it was stopped.

    Example:
        >>> import fabula
        >>> status = fabula.experiment("study.toml", "runs/study", parts=["pictures"], progress=False)
        >>> status.cells[0].made == status.cells[0].ordered
        True
    """
    from ..kinds.registry import foreign_sections
    from ..studies.experiments.running import run_study, states_of
    from ..studies.experiments.study import ExperimentOptions, open_study, study_status

    options = replace(chosen(ExperimentOptions, options, given), others=foreign_sections)
    desk = open_study(Path(study), Path(out), options, reporter_of(progress))
    run_study(desk, parts)
    return study_status(desk, states_of(desk))
