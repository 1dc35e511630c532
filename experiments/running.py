"""Running a study: its parts in order, each of which goes on where it was stopped."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from ..engine.budget import check_models
from ..engine.calls import model_uses
from ..engine.journal_file import NAME as JOURNAL
from ..engine.progress import Event
from ..errors import ConfigError
from ..evaluation.katha.requests import evaluation_request
from .comparing import compass_part, evaluators_part, plants_part, tables_part
from .desk import Desk, ExperimentOptions, keep_study
from .evaluators.deriving import writing_request
from .evaluators.registry import evaluator_of
from .pictures import judge_methods, judging_options, make_pictures
from .study import COMPASS, EVALUATION, EVALUATORS, GENERATION, PLANTED, TABLES, Study


@dataclass(frozen=True, slots=True)
class Part:
    """One part of a study."""

    name: str  # by which the command line names it
    title: str  # what it does, for people
    folder: str  # where its results lie, below the study's
    run: Callable[[Desk], object] = field(repr=False)  # does it
    wanted: Callable[[Study], bool] = field(default=lambda _: True, repr=False)  # whether a study has it


def _pictures(desk: Desk) -> None:
    make_pictures(desk)


def _judgements(desk: Desk) -> None:
    judge_methods(desk, {method: desk.outputs(method) for method in desk.study.methods()})


PARTS: tuple[Part, ...] = (
    Part("pictures", "pictures of every method", GENERATION, _pictures),
    Part("judgements", "judgements on every method", EVALUATION, _judgements),
    Part("compass", "Semantic Compass", COMPASS, compass_part, lambda study: study.compass is not None),
    Part(
        "evaluators", "evaluators of others", EVALUATORS, evaluators_part,
        lambda study: any(not evaluator_of(name).reuses for name in study.evaluators),
    ),
    Part("plants", "planted losses", PLANTED, plants_part, lambda study: study.plants is not None),
    Part("tables", "tables and page", TABLES, tables_part),
)  # fmt: skip
"""The parts of a study, in the order in which they need each other."""


def run_study(desk: Desk, parts: Sequence[str] = ()) -> None:
    """Do a study, or some parts of it; what is done already is not done again."""
    known = [part.name for part in PARTS]
    unknown = [name for name in parts if name not in known]
    if unknown:
        raise ConfigError(
            f"--part {unknown[0]}", what=f"there is no such part; there are: {', '.join(known)}",
            fix="use one of them",
        )  # fmt: skip
    if not parts:
        check_asked(desk)
    keep_study(desk)
    for part in PARTS:
        if part.wanted(desk.study) and (not parts or part.name in parts):
            if desk.reporter is not None:
                desk.reporter.emit(Event("part", data={"message": part.title}))
            part.run(desk)


def check_asked(desk: Desk) -> None:
    """Check that judges, matchers and the writer of questions can be asked, before a picture is paid for.

    Those that the study has asked already are not checked: there may be nothing left to ask them.
    """
    out, study = desk.folder / EVALUATION, desk.study
    asked = {use.model for journal in desk.folder.rglob(JOURNAL) for use in model_uses(journal)}
    outputs = [desk.outputs(method) for method in study.methods()]
    requests = [evaluation_request(desk.release.path, outputs, out, judging_options(desk, out))]
    evaluator = next((one for name in study.evaluators if (one := evaluator_of(name)).prompt), None)
    if study.question_writer is not None and evaluator is not None:
        options = ExperimentOptions(**desk.run_options(out))
        requests.append(
            writing_request(desk.release.path, evaluator, out, study.question_writer, options, study.split)
        )
    for request in requests:
        check_models(request.config, desk.options.max_cost, (), asked)


def states_of(desk: Desk) -> dict[str, str]:
    """Return part of the study -> whether its results are there."""
    return {
        part.name: "there" if (desk.folder / part.folder).exists() else "not begun"
        for part in PARTS
        if part.wanted(desk.study)
    }
