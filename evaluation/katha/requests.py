"""Judging storyboards: what may be chosen, what that asks of the engine, evaluating, what it takes."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from ...builders.drafting import REHEARSED
from ...engine.config import RunConfig
from ...engine.estimate import CallPlan
from ...engine.execute import RunRequest, Source
from ...engine.pipeline import Pipeline
from ...engine.run_options import RunOptions, Sets, setting_texts
from ...engine.status import RunReport
from ...errors import ConfigError
from ...models.spec import parse_spec
from ...releases.loading import Release, load
from ...schemas.katha import StoryRecord
from ...schemas.text import tallied, tallies
from ..archive.archive import ArchiveForm
from ..archive.replies import TRAIN, trained_on
from ..judging.answers import OFFICIAL, OWN, asking_with
from ..judging.packets import EVIDENCE
from ..judging.settings import (
    FOLDERS,
    JUDGES,
    PRESETS,
    JudgeSettings,
    LabelledSettings,
    SelectionSettings,
    check_set,
    judges_of,
    specs_of,
)
from ..outputs.named import read_manifest
from ..outputs.storyboards import OutputsManifest, find_story_folders, list_folder, listed_of
from ..running import Evaluating, check_request
from .load_items import OUTPUTS, RELEASE, chosen_records, variant_stories
from .pipeline import ASKING, PIPELINE, PUBLISHED

if TYPE_CHECKING:
    from ...engine.hooks import Reporter

STAGE_OF = {"text": "judge_text", "image": "judge_images", "text_image": "judge_both"}
"""Evidence condition -> the stage that asks under it."""
CONTRASTS = "judge_contrasts"


@dataclass(frozen=True, slots=True)
class JudgingBudget:
    """How much a set of stories asks for (Eq. 67 and Tables 47 and 48 of the KathaTrace paper)."""

    stories: int  # stories that are judged
    generations: int  # storyboards that are judged, over all methods and seeds
    panels: int  # pictures that they must have
    questions: int  # recoverability questions of the stories
    labels: int  # stories with a moral target, asked for once per condition
    pairs: int  # contrastive pairs
    variant_questions: int  # questions about contrastive variants
    judges: int  # how many judges are asked; the largest number of any condition
    # what is asked -> calls of all judges, all votes counted: ``text`` once per story whatever the methods,
    # the others once per complete generation. Exact unless a picture cannot be read.
    calls: dict[str, int]
    one_judge: int  # calls of one judge for the questions of one generation per story: three per question
    there: int | None = None  # pictures that lie in the folders, whatever they hold; None without outputs
    # generations with missing or wrongly numbered pictures; only their text is asked about
    incomplete: int = 0
    # stories among them of the split for training, where neither split nor stories were chosen
    training: int = 0

    @property
    def total(self) -> int:
        return sum(self.calls.values())

    def as_json(self) -> dict[str, Any]:
        return {**asdict(self), "total": self.total}

    def lines(self) -> list[str]:
        asked = ", ".join(f"{count} {name.replace('_', '+')}" for name, count in self.calls.items())
        lines = [
            f"{tallies({'stories': self.stories, 'storyboards': self.generations})} of {self.panels} panels, "
            + tallies(
                {
                    "questions": self.questions,
                    "moral targets": self.labels,
                    "contrastive pairs": self.pairs,
                    **(
                        {"questions about variants": self.variant_questions} if self.variant_questions else {}
                    ),
                }
            ),
            "each question is asked of the text, of the pictures and of both: "
            f"{tallied(self.one_judge, 'calls')} of a judge for one storyboard of each story",
            f"{tallied(self.total, 'calls')} of {tallied(self.judges, 'judges')}: {asked}",
        ]
        if self.incomplete:
            lines.append(
                f"{tallied(self.incomplete, 'storyboards')} of them cannot be judged: "
                "fabula outputs check says why"
            )
        elif self.there is not None and self.there != self.panels:
            lines.append(
                f"but {tallied(self.there, 'pictures')} are there: fabula outputs check says which are amiss"
            )
        if self.training:
            lines.append(f"warning: {trained_on(self.training, self.stories)}")
        return lines


def judging_budget(request: RunRequest) -> JudgingBudget:
    """Return what an evaluation asks for, from the release and the folders' layout; no picture is opened.

    Where there are no outputs yet: what one method with one generation per story is asked.
    """
    settings = request.config.own("load_items", SelectionSettings)
    release = load(request.of_role(RELEASE)[0])
    records = chosen_records(release, settings)
    shown = [_generations(folder, records, release) for folder in request.of_role(OUTPUTS)]
    chosen = settings.split or settings.stories
    training = 0 if chosen else sum(record.split == TRAIN for record in records)
    if not shown:
        panels = sum(len(record.scenes) for record in records)
        shown = [_Generations(1, panels, None, Counter(record.story_id for record in records))]
    budget = _budget(release, records, shown, request.config)
    return replace(budget, training=training)


@dataclass(frozen=True, slots=True)
class _Generations:
    """What a method has made."""

    seeds: int  # how many
    panels: int  # pictures that one seed of all stories needs
    there: int | None  # pictures that lie there; None without outputs
    complete: Counter[str]  # story id -> generations with the right pictures


def _generations(folder: Path, records: Sequence[StoryRecord], release: Release) -> _Generations:
    manifest = read_manifest(folder, OutputsManifest)
    panels = sum(manifest.panels_of(record) for record in records)
    known = [*release.records, *variant_stories(release, release.records)]
    unit = manifest.unit
    folders = find_story_folders(folder, manifest.folders, known, unit)
    listed = [
        (record, listed_of(folders.of[record.story_id], unit))
        for record in records
        if record.story_id in folders.of
    ]
    seeds = {seed for _, there in listed for seed, _ in there.seeds}
    wanted = seeds if manifest.seeds is None else set(manifest.seeds)
    pictures, complete = 0, Counter[str]()
    for record, there in listed:
        boards = [
            list_folder(place, with_seeds=False, unit=unit).panels
            for seed, place in there.seeds
            if seed in wanted
        ]
        pictures += len(there.panels) + sum(map(len, boards))
        expected = list(range(1, manifest.panels_of(record) + 1))
        judged = boards if wanted else [there.panels]
        complete[record.story_id] = sum([number for number, _ in board] == expected for board in judged)
    return _Generations(max(1, len(wanted)), panels, pictures, complete)


def _budget(
    release: Release, records: Sequence[StoryRecord], shown: Sequence[_Generations], config: RunConfig
) -> JudgingBudget:
    questions = sum(len(record.questions) for record in records)
    labels = sum(record.moral_label is not None for record in records)
    pairs = {
        record.story_id: sum(one.has_variant for one in release.variants_of[record.story_id])
        for record in records
    }
    wanted = config.own("load_items", SelectionSettings).variant_questions
    of_variants = {
        record.story_id: sum(
            len(one.questions or ())
            for one in release.variants_of[record.story_id]
            if one.has_variant and wanted
        )
        for record in records
    }
    complete = sum((made.complete for made in shown), Counter[str]())
    generations = len(records) * sum(made.seeds for made in shown)
    calls: dict[str, int] = {}
    most = 0
    for condition in EVIDENCE:
        settings = config.own(STAGE_OF[condition], LabelledSettings)
        items = sum(
            (
                len(record.questions)
                + of_variants[record.story_id]
                + (settings.labels and record.moral_label is not None)
            )
            * (1 if condition == "text" else complete[record.story_id])
            for record in records
        )
        calls[condition] = items * len(settings.judges) * settings.votes
        most = max(most, len(settings.judges))
    contrasts = config.own(CONTRASTS, JudgeSettings)
    asked = sum(count * complete[story_id] for story_id, count in pairs.items())
    calls["contrast"] = asked * len(contrasts.judges) * contrasts.votes
    pictures = [made.there for made in shown if made.there is not None]
    return JudgingBudget(
        len(records), generations, sum(made.seeds * made.panels for made in shown),
        questions, labels, sum(pairs.values()), sum(of_variants.values()), most, calls,
        len(EVIDENCE) * questions,
        sum(pictures) if pictures else None, generations - complete.total(),
    )  # fmt: skip


def _calls_of_stages(request: RunRequest) -> dict[str, int]:
    """Return stage -> calls by rule: methods share questions about texts, which few items do not show."""
    if request.options.items or request.options.shard is not None:
        return {}
    calls = judging_budget(request).calls
    return {STAGE_OF.get(name, CONTRASTS): count for name, count in calls.items()}


ARCHIVE = ArchiveForm(
    ("conditions", "judges", "labels", "matcher", "metrics", "models", "prompts", "stories"), alone=False
)
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
        prompts: the judges' prompts: ``main``, ``heldout`` for another wording, the main one with the stance
            ``neutral``, ``strict`` or ``uncertain`` (Table 72), ``official`` (``fabula prompts fetch``), or a
            folder of the same form [as set, else main].
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
    is_ours = options.prompts is None or options.prompts in FOLDERS
    if not is_ours and options.prompts != OFFICIAL and not Path(str(options.prompts)).is_dir():
        check_set(str(options.prompts))
    words = options.prompts and OWN if is_ours else options.prompts
    asking = asking_with(PUBLISHED, words, options.protocol)
    given |= asking.given()
    if not is_ours:
        options = replace(options, prompts=None)
    if options.questions_only:
        given["judge_contrasts.judges"] = ()
        given["load_items.variant_questions"] = False
        given |= {f"{stage}.labels": False for stage in STAGE_OF.values()}
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


def _listed(outputs: Sequence[Path | str] | Path | str) -> list[Path | str]:
    return [outputs] if isinstance(outputs, str | Path) else list(outputs)


def estimate_evaluation(
    release: Path | str, outputs: Sequence[Path | str] | Path | str, out: Path | str, options: EvaluateOptions
) -> CallPlan:
    """Tell what :func:`evaluate_katha` would ask of judges now, and about what that costs. Asks nothing."""
    return EVALUATING.estimate(evaluation_request(release, _listed(outputs), out, options))


EVALUATING = Evaluating(
    PIPELINE, ARCHIVE, evaluation_request, judging_budget, check_request, EvaluateOptions,
    told=lambda _: REHEARSED, by_rule=_calls_of_stages,
)  # fmt: skip
PROTOCOL = EVALUATING.protocol()
