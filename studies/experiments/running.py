"""Running a study: its parts in order, each of which goes on where it was stopped."""

import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from pathlib import Path
from typing import cast

from ...engine.budget import check_models
from ...engine.calls import model_uses
from ...engine.hooks import Event
from ...engine.journal_file import NAME as JOURNAL
from ...errors import ConfigError, TargetError
from ...evaluation.judging.settings import MAIN, PromptSet
from ...evaluation.katha.requests import EvaluateOptions, evaluate_katha, evaluation_request
from ...evaluation.recoverability.matching import Definitions
from ..compass.arms import BASE, FULL, FrameMaker
from ..compass.frozen import FROZEN
from ..compass.judging import Half, Ledger
from ..compass.requests import CompassRequest, apply, tune
from ..pictures import GenerateOptions
from .evaluators.deriving import derive, write_by_model, writing_request
from .evaluators.evaluator import Evaluator, evaluator_of
from .losses import compass_budgets
from .planting import UNPLANTED, Planted, PlantOptions, plant
from .study import (
    COMPASS,
    EVALUATION,
    EVALUATIONS,
    EVALUATORS,
    GENERATION,
    PLANTED,
    RELEASES,
    STORYBOARDS,
    TABLES,
    TRUTH,
    Desk,
    ExperimentOptions,
    Study,
    judge_methods,
    judging_options,
    keep_study,
    make_pictures,
    method_name,
    splits_of,
)

# -- The other parts of a study: Semantic Compass, the evaluators of others, planted losses, tables and page

FULL_PROTOCOL = "katha"
"""Name of the evaluator that asks the benchmark's own questions."""
FRAMES = "frames"


def compass_part(desk: Desk) -> None:
    """Tune Semantic Compass on its split, apply it to the stories that are reported on, and judge its arms.

    The arms are judged with the half of the questions that selection has not seen and the prompts of the
    report; the base and the whole, for Table 64, also under the three protocols that are less strict.
    """
    part = desk.study.compass
    assert part is not None
    out = desk.folder / COMPASS
    given = desk.run_options(out)
    ledger = Ledger(given.get("max_cost"))
    candidates = _candidates(desk, out)
    options = replace(judging_options(desk, out), stories=())
    renderer = desk.study.renderers[part.renderer]
    assert renderer.model is not None, "a study checks that the candidates are of a renderer with a model"
    frames = FrameMaker(
        out / FRAMES, renderer.model, GenerateOptions(**given, replace_sources=True), renderer.width,
        renderer.height, renderer.steps, renderer.negative, desk.reporter, ledger,
    )  # fmt: skip
    tuning = CompassRequest(
        desk.release.path, candidates, out, options, part.coverage,
        part.copies, part.weakest, selection_set=part.selection_set,
        definitions=Definitions(matcher=desk.study.matcher),
        splits=(part.tuned_on,), limit=desk.study.limit, ledger=ledger, reporter=desk.reporter,
    )  # fmt: skip
    if desk.reporter is not None:
        for budget in compass_budgets(desk):
            desk.reporter.emit(Event("warning", data={"message": "\n".join(budget.lines())}))
    tune(tuning, frames)
    applying = replace(tuning, splits=desk.study.split)
    applied = apply(applying, frames, out / FROZEN, part.arms)
    _judge_arms(desk, out, applied.outputs, part.reported_prompts)


def _candidates(desk: Desk, out: Path) -> Path:
    """Return the storyboards that are selected from and repaired, with the loss that is planted into them."""
    part = desk.study.compass
    assert part is not None
    method = method_name(part.plan, part.renderer)
    if part.loss is None:
        return desk.outputs(method)
    truth = desk.folder / TRUTH / f"{method}.jsonl"
    options = PlantOptions((part.loss,), splits_of(desk.study), truth if truth.is_file() else None)
    planted = _planted(desk, method, out / STORYBOARDS, options)
    if part.loss not in planted.methods:
        what = f"the loss {part.loss} could be planted in no storyboard: see {out / STORYBOARDS / UNPLANTED}"
        raise ConfigError("[compass] loss", what=what, fix="name another loss, or a renderer that drew boxes")
    return planted.methods[part.loss]


def _planted(desk: Desk, method: str, out: Path, options: PlantOptions) -> Planted:
    """Plant losses into the outputs of a method; anew where they are others than before."""
    try:
        return plant(desk.outputs(method), desk.release, out, options)
    except TargetError:  # nothing in it was paid for
        shutil.rmtree(out, ignore_errors=True)
        return plant(desk.outputs(method), desk.release, out, options)


def _judge_arms(desk: Desk, out: Path, outputs: Mapping[str, Path], reported: PromptSet) -> None:
    halves = cast("tuple[Half, ...]", ("reporting", "selection"))
    for half, prompts in product(halves, (reported, MAIN)):
        is_report = (half, prompts) == ("reporting", reported)
        shown = [path for arm, path in outputs.items() if is_report or arm in (BASE, FULL)]
        if not shown or (prompts == reported and reported == MAIN and not is_report):
            continue
        run = out / EVALUATIONS / f"{half}-{prompts}"
        options = replace(judging_options(desk, run), prompts=prompts)
        if not is_report:
            options = replace(options, questions_only=True)
        evaluate_katha(out / half, shown, run, options, reporter=desk.reporter)


def evaluators_part(desk: Desk) -> None:
    """Have every method judged with the questions of each evaluator of others.

    Evaluators that ask the benchmark's own questions are read off the evaluation that is there.
    """
    methods = [desk.outputs(method) for method in desk.study.methods()]
    for evaluator in _others(desk):
        _judge(desk, evaluator, methods, desk.folder / EVALUATORS / evaluator.name)


def plants_part(desk: Desk) -> None:
    """Plant losses into the outputs of one method, and have them judged by every evaluator."""
    wanted = desk.study.plants
    assert wanted is not None
    truth = desk.folder / TRUTH / f"{wanted.method}.jsonl"
    options = PlantOptions(wanted.losses, desk.study.split, truth if truth.is_file() else None)
    planted = _planted(desk, wanted.method, desk.folder / PLANTED / STORYBOARDS, options)
    # The unchanged outputs are beside them; what was answered about these elsewhere is not paid for again.
    shown = [desk.outputs(wanted.method), *planted.methods.values()]
    run = desk.folder / PLANTED / FULL_PROTOCOL
    judging = _reusing(judging_options(desk, run), desk.folder / EVALUATION)
    evaluate_katha(desk.release.path, shown, run, judging, reporter=desk.reporter)
    for evaluator in _others(desk):
        run = desk.folder / PLANTED / evaluator.name
        _judge(desk, evaluator, shown, run, desk.folder / EVALUATORS / evaluator.name)


def tables_part(desk: Desk) -> None:
    """Write every table and the page."""
    from .tables.page import write_page

    write_page(desk.folder)


def _others(desk: Desk) -> list[Evaluator]:
    """Return the evaluators of the study that ask questions of their own."""
    named = (evaluator_of(name) for name in desk.study.evaluators)
    return [evaluator for evaluator in named if not evaluator.reuses]


def _judge(
    desk: Desk, evaluator: Evaluator, outputs: Sequence[Path], run: Path, known: Path | None = None
) -> None:
    release = _questions(desk, evaluator)
    options = replace(judging_options(desk, run), questions_only=not evaluator.contrasts)
    evaluate_katha(release, outputs, run, _reusing(options, known), reporter=desk.reporter)


def _reusing(options: EvaluateOptions, run: Path | None) -> EvaluateOptions:
    """Return options with which replies of a run are taken over, where there is one."""
    if run is None or not (run / JOURNAL).is_file():
        return options
    return replace(options, reuse=(*options.reuse, run))


def _questions(desk: Desk, evaluator: Evaluator) -> Path:
    """Return the folder of an evaluator's questions, which are made where they are not there."""
    releases = desk.folder / EVALUATORS / RELEASES
    written = None
    writer = desk.study.question_writer
    if writer is not None and evaluator.prompt is not None:
        run = releases / f"{evaluator.name}-written"
        options = ExperimentOptions(**desk.run_options(run))
        request = writing_request(desk.release.path, evaluator, run, writer, options, desk.study.split)
        written = write_by_model(request, desk.reporter)
    return derive(desk.release, evaluator, releases / evaluator.name, desk.study.split, written)


# -- Running a study


@dataclass(frozen=True, slots=True)
class Part:
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
    Part("pictures", "pictures of every method", GENERATION, _pictures, lambda study: bool(study.plans)),
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
    desk.finished_boards()
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
