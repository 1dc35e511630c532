"""Records: build them, add to them, check them, measure how good drafts are."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, overload

from .calling import Place, Progress, chosen, listed, released, reporter_of

if TYPE_CHECKING:
    from ..builders.katha.extend import ExtendOptions, ExtendReport
    from ..engine.estimate import CallPlan
    from ..engine.run_options import RunOptions
    from ..engine.status import RunReport
    from ..people.audits.auditing import AuditOptions
    from ..people.audits.form import Audit
    from ..validators.report import ValidationReport


@overload
def build(
    kind: str, sources: Sequence[Place] | Place, out: Place, options: "RunOptions | None" = None, *,
    dry_run: Literal[False] = False, progress: Progress = True, **given: Any,  # noqa: ANN401
) -> "RunReport": ...  # fmt: skip
@overload
def build(
    kind: str, sources: Sequence[Place] | Place, out: Place, options: "RunOptions | None" = None, *,
    dry_run: Literal[True], progress: Progress = True, **given: Any,  # noqa: ANN401
) -> "CallPlan": ...  # fmt: skip
def build(
    kind: str,
    sources: Sequence[Place] | Place,
    out: Place,
    options: "RunOptions | None" = None,
    *,
    dry_run: bool = False,
    progress: Progress = True,
    **given: Any,
) -> "RunReport | CallPlan":
    """Build records of a kind from sources. As ``fabula build KIND``; a run that is there is continued.

    It can be stopped at any moment (Ctrl-C, or the stop button of a notebook): the same call goes on, and
    nothing that was answered is asked again.

    Args:
        kind: ``katha``, ``shots``, ``entities``, ``events``, or that of a package of yours.
        sources: files and folders of what it is built from: stories, videos, seeds.
        out: the run folder.
        options: an object of the kind's options, such as :class:`fabula.BuildOptions`.
        dry_run: only tell what models would be asked, and the cost: nothing is asked, and nothing written.
        progress: whether progress is shown; or a reporter of your own (:mod:`fabula.engine.hooks`).
        given: options by keyword, which go before those of the object: ``planner``, ``model``, ``max_cost``
            (USD), ``limit``, ``workers``, ``settings``, ...

    Returns:
        How the run ended: ``totals``, ``stages``, ``items`` that were not made, and what models cost. Of a
        dry run the plan: ``calls``, ``cost`` (USD; None where a price is not known) and those of each stage.

    Raises:
        FabulaError: a source, an option or the folder is wrong, too little was made, the cost limit was
            reached, or it was stopped; see :mod:`fabula.errors`.

    Example:
        >>> import fabula
        >>> run = fabula.build("stories", "stories.jsonl", "runs/mine", progress=False)
        >>> run.totals["made"]
        4
        >>> fabula.build("stories", "stories.jsonl", "runs/other", dry_run=True).calls
        0
    """
    from ..kinds import verbs
    from ..kinds.registry import kind_named

    options = chosen(kind_named(kind).drafting().options, options, given)
    if dry_run:
        return verbs.estimate(kind, listed(sources), Path(out), options)
    return verbs.build(kind, listed(sources), Path(out), options, reporter=reporter_of(progress))


def extend(
    run: Place,
    sources: Sequence[Place] | Place,
    options: "ExtendOptions | None" = None,
    *,
    progress: Progress = True,
    **given: Any,  # noqa: ANN401 - options by keyword, checked against ExtendOptions
) -> "ExtendReport":
    """Add stories to a finished run; what it holds stays as it is. As ``fabula extend``.

    Args:
        run: the folder of a finished run of ``build stories``.
        sources: files and folders of stories that are new to it.
        options: an object of :class:`fabula.ExtendOptions`.
        progress: as for :func:`build`.
        given: options by keyword: ``records``, ``max_cost``, ``dry_run``, ...

    Returns:
        The stories that were added or would be, and how the run ended.

    Raises:
        FabulaError: as for :func:`build`; a story is there already, or the run is not finished.

    Example:
        >>> import fabula
        >>> report = fabula.extend("runs/mine", "new.jsonl", progress=False)
        >>> len(report.added)
        2
    """
    from ..builders.katha.extend import ExtendOptions, extend_katha

    options = chosen(ExtendOptions, options, given)
    return extend_katha(Path(run), listed(sources), options, reporter=reporter_of(progress))


def validate(path: Place) -> "ValidationReport":
    """Check data of any kind against schemas and every rule. As ``fabula validate``.

    Args:
        path: a run, a release, a version on a Hub, a file of records, a suite, shot scripts, episodes.

    Returns:
        Every finding, with its place, what is wrong, and what to do; ``ok`` if there are no errors.

    Raises:
        UserError: nothing can be read there.

    Example:
        >>> import fabula
        >>> findings = fabula.validate("runs/mine")
        >>> findings.ok
        True
    """
    from ..kinds import verbs

    return verbs.validate(released(path))


def audit(
    draft: Place,
    gold: Place | None = None,
    out: Place | None = None,
    options: "AuditOptions | None" = None,
    *,
    progress: Progress = True,
    **given: Any,  # noqa: ANN401 - options by keyword, checked against AuditOptions
) -> "Audit":
    """Measure how good drafts of stories are, against gold records. As ``fabula audit``.

    Args:
        draft: a run of ``build stories``, a release of stories, or a file of records.
        gold: gold records of the same stories; without them only what people said is counted.
        out: folder for ``audit.json`` and ``audit.html``; needed where a model is asked.
        options: an object of :class:`fabula.AuditOptions`.
        progress: as for :func:`build`.
        given: options by keyword: ``model``, ``matcher``, ``readings``, ``resamples``, ...

    Returns:
        The measures with their intervals, and the worst cases.

    Raises:
        FabulaError: something cannot be read, an option is wrong, or the run stopped.

    Example:
        >>> import fabula
        >>> audit = fabula.audit("runs/mine", gold="runs/gold", resamples=0)
        >>> bool(audit.scores)
        True
    """
    from ..people.audits import auditing

    options = chosen(auditing.AuditOptions, options, given)
    options = replace(options, readings=tuple(map(Path, options.readings)))
    return auditing.audit(
        released(draft), None if gold is None else released(gold), None if out is None else Path(out),
        options, reporter_of(progress),
    )  # fmt: skip
