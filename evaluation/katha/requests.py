"""Judging storyboards: what may be chosen, what that asks of the engine, evaluating, estimating."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from ...engine.estimate import CallPlan, plan_calls
from ...engine.execute import RunRequest, Source
from ...engine.pipeline import Pipeline
from ...engine.run_options import RunOptions, Sets, setting_texts
from ...engine.status import RunReport
from ...errors import ConfigError
from ...models.spec import parse_spec
from ..archive.archive import ArchiveForm
from ..judging.presets import OWN, asking_with
from ..judging.settings import JUDGES, PRESETS, check_set, judges_of, specs_of, without_judges
from ..running import Evaluating, check_request
from .load_items import OUTPUTS, RELEASE
from .pipeline import PIPELINE, PUBLISHED
from .spending import judging_budget, tell_judging

if TYPE_CHECKING:
    from ...engine.progress import Reporter

ARCHIVE = ArchiveForm(
    ("conditions", "judges", "labels", "matcher", "metrics", "models", "prompts", "stories"), alone=False
)
LABELLED = ("judge_text", "judge_images", "judge_both")
ASKING = (*LABELLED, "judge_contrasts")
MATCHING = {"match_answers": False, "match_vectors": True}
"""Stage that compares answers -> whether it asks for vectors."""


def _each(setting: str) -> list[str]:
    """Return a setting of each stage that asks judges."""
    return [f"{stage}.{setting}" for stage in ASKING]


@dataclass(frozen=True, slots=True)
class EvaluateOptions(RunOptions):
    """How to judge. What every run may choose comes as keywords.

    Attributes:
        judges: a judge: ``openai:NAME``, ``http://HOST/v1#NAME``, or a name that the section ``[judges]`` of
            the settings file gives.
        preset: a published ensemble of judges: {evaluation.judging.settings:PRESETS}.
        votes: how often each judge answers each question [as set, else 1].
        split: only stories of this split.
        subset: only the stories that this file of the release lists, such as ``strict_gold_400``.
        stories: only this story id.
        limit: only the first so many of those stories.
        matcher: also compare answers with accepted ones by a model, or by the vectors of an encoder
            (``embedding:SPEC``); one of each.
        prompts: the judges' prompts: ``main``, ``heldout`` for another wording, or the main one with the
            stance ``neutral``, ``strict`` or ``uncertain`` (Table 72) [as set, else main].
        protocol: prompts, votes and decoding of a published protocol: ``katha``, with our words.
        questions_only: leave out moral targets and contrastive pairs.
        items: only these items of the run: method, story and seed as in ``model-x/kb25k_0001/seed_42``.
        replace: remove earlier replies from the folder that this evaluation does not ask for.
    """

    judges: Sequence[str] = ()
    preset: str | None = None
    votes: Annotated[int | None, Sets(*_each("votes"))] = None
    split: Annotated[Sequence[str], Sets("load_items.split")] = ()
    subset: Annotated[str | None, Sets("load_items.subset")] = None
    stories: Annotated[Sequence[str], Sets("load_items.stories")] = ()
    limit: Annotated[int | None, Sets("load_items.limit")] = None
    matcher: Sequence[str] | str | None = None
    prompts: Annotated[str | None, Sets("scan_packets.prompts", *_each("prompts"))] = None
    protocol: str | None = None
    questions_only: bool = False
    items: Sequence[str] = ()
    replace: bool = False


def evaluation_request(
    release: Path | str,
    outputs: Sequence[Path | str],
    out: Path | str,
    options: EvaluateOptions,
    pipeline: Pipeline = PIPELINE,
) -> RunRequest:
    """Return what the engine is to execute; another kind's pipeline reads its releases with its own stage."""
    judges = judges_of(options, options.judges, options.preset)
    given: dict[str, object] = {f"{stage}.judges": judges for stage in ASKING if judges}
    if options.matcher is not None:
        named = [options.matcher] if isinstance(options.matcher, str) else options.matcher
        matchers = specs_of(options, named)
        for stage, encodes in MATCHING.items():
            if chosen := [spec for spec in matchers if parse_spec(spec).encodes == encodes]:
                given[f"{stage}.judges"] = chosen
    asking = asking_with(PUBLISHED, options.prompts and OWN, options.protocol)
    given |= asking.given()
    if options.prompts is not None:
        check_set(options.prompts)
    if options.questions_only:
        given["judge_contrasts.judges"] = ()
        given |= {f"{stage}.labels": False for stage in LABELLED}
    sources = [Source(RELEASE, Path(release)), *(Source(OUTPUTS, Path(folder)) for folder in outputs)]
    request = options.request(
        pipeline, out, sources, setting_texts(given), {JUDGES}, items=tuple(options.items)
    )
    if not request.config.models:
        raise ConfigError(
            "--judge", what="no judge is named",
            fix=f"name models with --judge, or an ensemble with --preset: {', '.join(PRESETS)}",
        )  # fmt: skip
    return asking.put_into(request, ASKING)


def evaluate_katha(
    release: Path | str,
    outputs: Sequence[Path | str] | Path | str,
    out: Path | str,
    options: EvaluateOptions,
    *,
    reporter: "Reporter | None" = None,
) -> RunReport:
    """Have judges answer the questions of a release about generated storyboards; a run is continued.

    Where it is stopped, ``judgements.jsonl`` holds what was answered so far, and ``evaluation.json`` says
    what it lacks.
    """
    return EVALUATING.evaluate(release, _listed(outputs), out, options, reporter)


def estimate_evaluation(
    release: Path | str, outputs: Sequence[Path | str] | Path | str, out: Path | str, options: EvaluateOptions
) -> CallPlan:
    """Tell what :func:`evaluate_katha` would ask of judges now, and about what that costs. Asks nothing."""
    return _planned(evaluation_request(release, _listed(outputs), out, options))


def _planned(request: RunRequest) -> CallPlan:
    return plan_calls(request, without_judges(request.config))


def _listed(outputs: Sequence[Path | str] | Path | str) -> list[Path | str]:
    return [outputs] if isinstance(outputs, str | Path) else list(outputs)


EVALUATING = Evaluating(
    PIPELINE, ARCHIVE, evaluation_request, judging_budget, _planned, tell_judging, check_request,
    EvaluateOptions,
)  # fmt: skip
PROTOCOL = EVALUATING.protocol()
