"""How a kind's records are drafted: the part that a build of any kind needs."""

import math
import re
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, NoReturn

from ..engine.calls import model_uses
from ..engine.config import RunConfig, models_of
from ..engine.estimate import CallPlan, plan_calls, questions_of, run_apart
from ..engine.execute import RunRequest, execute
from ..engine.hooks import Event
from ..engine.journal import NAME as JOURNAL
from ..engine.manifest import NAME as MANIFEST
from ..engine.manifest import Source, read_manifest
from ..engine.pipeline import Pipeline, Stage, load_pipeline
from ..engine.run_options import RunOptions, Sets, setting_texts
from ..engine.running import RunKind
from ..engine.stage import Item, Tools
from ..engine.status import NAME as REPORT
from ..engine.status import RunReport, StageView, read_report, show_item
from ..errors import BelowThreshold, ConfigError, InputError, RunError, UserError
from ..models.chat import ChatRequest
from ..models.spec import ModelSettings
from ..prompts.loader import ENDING, other_form
from ..schemas.canonical import Json
from ..schemas.paths import Steps
from ..schemas.values import Edit, Issue, Own
from .step import PlannerSettings, Worded, check_planner

if TYPE_CHECKING:
    from ..engine.hooks import Reporter

# -- Telling what a build is about to cost, before it costs anything

REHEARSED = 20
"""Stories that are rehearsed to tell what a build will cost; ``--dry-run`` rehearses all."""


def without_models(config: RunConfig, planner: Literal["rules", "rehearsal"] = "rehearsal") -> RunConfig:
    """Return settings under which nobody is asked."""
    stages = {name: _without_model(settings, planner) for name, settings in config.stages.items()}
    return replace(config, stages=stages, models={})


def estimate(request: RunRequest) -> CallPlan:
    """Tell what a run would ask of models now, and about what that costs. Asks nothing."""
    return plan_calls(request, without_models(request.config))


def _without_model(settings: Own, planner: str) -> Own:
    if isinstance(settings, PlannerSettings):
        drafts = settings.planner == "model" and settings.models()
        return settings.model_copy(update={"planner": planner if drafts else "rules"})
    if isinstance(settings, ModelSettings):
        return settings.model_copy(update={"model": None})
    return settings


def tell_plan(
    request: RunRequest,
    reporter: "Reporter",
    stand_in: Callable[[RunConfig], RunConfig] = without_models,
    sample: int | None = REHEARSED,
    *,
    use_known: bool = False,
    by_rule: Callable[[], Mapping[str, int]] | None = None,
) -> None:
    """Tell how many calls a new run makes and about what they cost; what it cost so far where one goes on.

    ``sample``: how many items are rehearsed, and the rest taken to be like them; None for all.
    """
    if not request.config.models or _is_finished(request):
        return
    journal, limit = request.folder / JOURNAL, request.options.max_cost
    data: dict[str, object] = {} if limit is None else {"max_cost": limit}
    uses = model_uses(journal) if journal.exists() else ()
    if uses:
        data["answered"] = sum(use.calls for use in uses)
        uncertain = math.fsum(use.uncertain_cost for use in uses)
        data["uncertain"] = uncertain
        data["spent"] = math.fsum(use.cost for use in uses) + uncertain
        data["unpriced"] = sum(use.unpriced for use in uses)
    else:
        plan = plan_calls(request, stand_in(request.config), sample=sample, use_known=use_known)
        if by_rule is not None and plan.share < 1:
            plan = plan.with_calls(by_rule())
        data |= {"calls": plan.calls, "cost": plan.cost, "stages": plan.stage_costs()}
    reporter.emit(Event("plan", data=data))


def tell_added(request: RunRequest, added: Sequence[str], reporter: "Reporter") -> None:
    """Tell how many calls the new stories of a run will make and about what they cost."""
    if not request.config.models or not added:
        return
    some = tuple(added[:REHEARSED])
    options = replace(request.options, items=some, workers=0)
    plan = plan_calls(replace(request, options=options), without_models(request.config))
    share = len(some) / len(added)
    cost = None if plan.cost is None else plan.cost / share
    data: dict[str, object] = {"calls": round(plan.calls / share), "cost": cost}
    if options.max_cost is not None:
        data["max_cost"] = options.max_cost
    reporter.emit(Event("plan", data=data))


def _is_finished(request: RunRequest) -> bool:
    """Whether the run was finished with these settings; a changed source is seen by the engine alone."""
    folder = request.folder
    if not (folder / MANIFEST).exists() or not (folder / REPORT).exists() or request.options.retry_failed:
        return False
    manifest, report = read_manifest(folder), read_report(folder)
    versions = {stage.name: stage.version for stage in manifest.stages}
    same = manifest.settings == request.config.as_json() and versions == {
        stage.name: stage.spec.version for stage in load_pipeline(request.pipeline).stages
    }
    return same and not report.totals["pending"] and not report.totals["failed"]


def draft_sample(request: RunRequest, count: int, reporter: "Reporter | None") -> None:
    """Run the stages that ask models, and those before them, for the first stories of a run.

    Nothing behind them runs: the split of a story must not depend on whether there was a sample.
    """
    names = load_pipeline(request.pipeline).names()
    asking = [name for name in names if models_of(request.config.stages[name])]
    if not asking:
        return
    stages = names[: names.index(asking[-1]) + 1]
    limit = count if request.options.limit is None else min(count, request.options.limit)
    try:
        options = replace(request.options, limit=limit, stages=stages, retry_failed=False)
        execute(replace(request, options=options), reporter)
    except BelowThreshold:
        return  # what the sample shows of failures is in its report; an estimate can be made all the same


# -- What a kind of run says about corrections of its items; :mod:`.corrections` adds them


class Refused(ValueError):
    """An edit cannot be applied; the text says which and why."""


@dataclass(frozen=True, slots=True)
class Consequence:
    """What a correction of one field asks for in others."""

    values: Mapping[str, Json]  # JSON path -> the value that belongs there now; corrections of their own
    notes: tuple[str, ...] = ()  # what a person may want to do besides, in sentences


@dataclass(frozen=True, slots=True)
class Editing:
    """How the items of one kind are corrected. ``reads`` are the fields that the editing stage read."""

    # from reads and the stage's tools, the draft without any correction
    first: Callable[[Mapping[str, Json], Tools], Json]
    # from reads, draft and a correction as JSON, the draft with it; Refused where it cannot be
    apply: Callable[[Mapping[str, Json], Json, Json], Json]
    # from reads and draft, the draft by the paths that people use
    form: Callable[[Mapping[str, Json], Json], Json]
    # from reads, draft, the steps of a corrected field and its new value, what else follows. The draft is the
    # one before the correction, which is known to be possible.
    consequence: Callable[[Mapping[str, Json], Json, Steps, Json], Consequence]
    # from reads and draft, what the rules of the kind find in its record
    issues: Callable[[Mapping[str, Json], Json], list[Issue]]

    def draft(self, reads: Mapping[str, Json], edits: Sequence[Edit], tools: Tools) -> Json:
        """Return the draft with corrections applied in order.

        Whether the parts still cover the story is not asked: it takes two corrections to move a boundary.
        """
        draft = self.first(reads, tools)
        for edit in edits:
            draft = self.apply(reads, draft, edit.as_json())
        return draft


# -- How a kind's records are drafted

NOBODY = "none"
"""What ``--verifier`` says where no model is to check."""


@dataclass(frozen=True, slots=True)
class Drafting:
    """How the records of a kind are drafted."""

    run: RunKind  # what executes its builds
    request: Callable[..., RunRequest]  # sources, a run folder and options -> the build
    options: type[RunOptions]  # the type of the options that it takes
    editing: Editing | None = None  # how its items are corrected; None where no stage applies corrections
    # how records are corrected that no stage corrects, as imported ones; None where only their sources can be
    corrected_in_files: str | None = None
    of_stories: bool = False  # whether its sources are stories, so that what is asked about one can be shown
    # in place of what is usual: builds, and tells what models would be asked; both take what ``request``
    # takes, the first ``reporter=`` as well
    building: Callable[..., RunReport] | None = None
    estimating: Callable[..., CallPlan] | None = None

    def build(
        self,
        sources: Sequence[Path | str] | Path | str,
        out: Path | str,
        options: RunOptions | None = None,
        *,
        reporter: "Reporter | None" = None,
    ) -> RunReport:
        """Build records from sources; an existing run folder is continued."""
        chosen = self.options() if options is None else options
        if self.building is not None:
            return self.building(sources, out, chosen, reporter=reporter)
        return self.run.make(self.request(sources, out, chosen), reporter)

    def estimate(
        self,
        sources: Sequence[Path | str] | Path | str,
        out: Path | str,
        options: RunOptions | None = None,
        *,
        sample: int = 0,
        reporter: "Reporter | None" = None,
    ) -> CallPlan:
        """Tell what :meth:`build` would ask of models now, and about what that costs.

        Nothing is asked but about a ``sample`` of so many items, if one is wanted: the run keeps its drafts.
        """
        chosen = self.options() if options is None else options
        if self.estimating is not None:
            return self.estimating(sources, out, chosen)
        request = self.request(sources, out, chosen)
        if sample:
            draft_sample(request, sample, reporter)
        return estimate(request)


@dataclass(frozen=True, slots=True)
class DraftOptions(RunOptions):
    """How to draft. What every run may choose comes as keywords.

    Attributes:
        planner: who drafts, in every stage: ``rules``, which needs neither model nor network, or ``model``
            [as set, else rules].
        model: the model that drafts, such as ``openai:gpt-4.1-mini`` or ``http://HOST/v1#NAME``; implies the
            planner ``model``.
        limit: only the first so many stories or videos.
        items: only the story or video of this id.
        upgrade: draft anew what a run begun with other prompts holds; without it such a run keeps its drafts
            and asks nothing.
        prompts: folder with prompts of your own words, each a copied file under its id, such as
            ``katha/write_questions.j2``; its inputs and the form of its reply stay.
    """

    planner: str | None = None
    model: str | None = None
    limit: int | None = None
    items: Sequence[str] = ()
    upgrade: bool = False
    prompts: Path | None = None

    def drafting(
        self,
        pipeline: Pipeline,
        out: Path | str,
        sources: Sequence[Source],
        texts: Sequence[str],
        stages: tuple[str, ...] = (),
    ) -> RunRequest:
        """Return what the engine is to execute; see :meth:`RunOptions.request`."""
        request = self.request(
            pipeline, out, sources, texts,
            limit=self.limit, items=tuple(self.items), stages=stages, upgrade=self.upgrade,
        )  # fmt: skip
        return request if self.prompts is None else with_prompts_of(request, Path(self.prompts))


@dataclass(frozen=True, slots=True)
class StoryOptions(DraftOptions):
    """How to draft from stories.

    Attributes:
        map: a column of the sources by another name, as ``theirs=ours``, such as ``name=title``.
        language: language of stories that name none, such as ``en`` [guessed from their text].
        collection: collection of stories that name none [unknown].
        rights: rights status of stories that name none [unresolved, which keeps them out of releases].
    """

    map: Annotated[Sequence[str] | None, Sets("load_stories.columns")] = None
    language: Annotated[str | None, Sets("load_stories.language")] = None
    collection: Annotated[str | None, Sets("load_stories.source_collection")] = None
    rights: Annotated[str | None, Sets("load_stories.rights_status")] = None


def with_prompts_of(request: RunRequest, folder: Path) -> RunRequest:
    """Return a request whose stages ask with the prompts of a folder where it has them."""
    stages = load_pipeline(request.pipeline).stages
    asked = {name for stage in stages if issubclass(stage.spec.settings, Worded) for name in stage.spec.asks}
    texts: dict[str, str] = {}
    problems: list[UserError] = []
    for path in sorted(folder.rglob(f"*{ENDING}")):
        name = path.relative_to(folder).as_posix().removesuffix(ENDING)
        problem = f"this build asks with no prompt {name}" if name not in asked else other_form(name, path)
        if problem is None:
            texts[name] = path.read_text("utf-8")
        else:
            fix = "copy the file with `fabula prompts show ID` and change its words alone"
            problems.append(UserError(str(path), what=problem, fix=fix))
    if not texts and not problems:
        fix = f"put copies such as {min(asked, default='katha/draft_scenes')}{ENDING} into it"
        problems.append(UserError(f"--prompts {folder}", what="it holds no prompt", fix=fix))
    if problems:
        raise InputError(problems)
    changed = {
        stage.name: request.config.stages[stage.name].model_copy(
            update={"prompts": {name: texts[name] for name in stage.spec.asks if name in texts}}
        )
        for stage in stages
        if texts.keys() & set(stage.spec.asks)
    }
    config = replace(request.config, stages={**request.config.stages, **changed})
    return replace(request, config=config)


_ON_HUB = re.compile(r"hf:/{1,2}(?:datasets/)?([^/@]+/[^/@]+)(?:@([^/]+))?(?:/(.+))?")
DATA_FILES = (".parquet", ".jsonl", ".ndjson", ".json", ".csv")
"""Files of a data set on a Hub that are read where none is named: those of the first of these that it has."""


def _from_hub(source: Path | str) -> Sequence[Path | str]:
    """Return the files of a data set that a source such as ``hf://datasets/user/stories`` names."""
    named = _ON_HUB.fullmatch(str(source))
    if named is None:
        return (source,)
    from ..releases.hub.fetch import fetch_files

    repo, revision, inner = named.groups()

    def chosen(paths: Sequence[str]) -> Sequence[str]:
        data = [path for path in paths if path.endswith(DATA_FILES)]
        if inner:
            wanted = [path for path in data if path == inner or path.startswith(f"{inner}/")]
        else:
            first = next((end for end in DATA_FILES if any(path.endswith(end) for path in data)), "none")
            wanted = [path for path in data if path.endswith(first)]
        if not wanted:
            what = (
                f"no file of {', '.join(DATA_FILES)} is there; there are: {', '.join(paths[:10]) or 'none'}"
            )
            raise ConfigError(str(source), what=what, fix="name a file: hf://datasets/OWNER/NAME/FILE")
        return wanted

    return fetch_files(repo, revision or "", chosen)


def listed(sources: Sequence[Path | str] | Path | str, role: str, noun: str) -> list[Source]:
    """Return the sources of a build that were named; those on a Hub are fetched first."""
    named = [sources] if isinstance(sources, str | Path) else list(sources)
    if not named:
        where = "videos" if noun == "videos" else "sources"
        raise ConfigError(where, what="no file or folder is given", fix=f"name the {noun}")
    return [Source(role, Path(path)) for source in named for path in _from_hub(source)]


def planner_texts(
    pipeline: Pipeline, options: DraftOptions, verifier: str | None = None, *, drafting_only: bool = False
) -> list[str]:
    """Return planner, model and verifier as settings of every stage that has them."""
    planner, model = options.planner, options.model
    if planner is not None:
        check_planner(planner)
    if planner == "rules" and (model or verifier not in (None, NOBODY)):
        raise ConfigError(
            "--model", what="--planner rules asks no model, and a model is given",
            fix="leave --model out, or use --planner model",
        )  # fmt: skip
    unchecked = drafting_only or verifier == NOBODY
    checking = None if unchecked else verifier if verifier is not None else model
    given: dict[str, str] = {}
    for stage in load_pipeline(pipeline).stages:
        kind, name = stage.spec.settings, stage.name
        if issubclass(kind, PlannerSettings):
            if model is not None:
                given[f"{name}.model"] = model
            if planner is not None or model is not None:
                given[f"{name}.planner"] = planner or "model"
            if "verifier" in kind.model_fields and checking is not None:
                given[f"{name}.verifier"] = checking
        elif issubclass(kind, ModelSettings) and checking is not None and not kind.encodes:
            given[f"{name}.model"] = checking
    return setting_texts(given)


# -- What a prompt looks like for one story: what a stage would ask a model about it, with nothing sent

STAND_IN = "openai:none"
"""The model that stands in a preview where the settings name none. It is never asked."""


@dataclass(frozen=True, slots=True)
class Preview:
    """One request that a stage would send."""

    stage: str  # the stage that asks
    item: str  # about which item
    prompt: str  # the prompt, as ``id@version#hash``
    request: ChatRequest  # the request, before the settings of the model are applied


def stages_asking(pipeline: Pipeline, prompt_id: str) -> list[Stage]:
    """Return the stages of a pipeline that ask a model with a prompt."""
    return [
        stage for stage in load_pipeline(pipeline).stages if stage.is_async and prompt_id in stage.spec.asks
    ]


def preview_run(pipeline: Pipeline, run: Path, item: str, prompt_id: str) -> list[Preview]:
    """Return what the stages of a run would ask with a prompt about one item, from what the run holds of it.

    A stage is taken as if its settings named a model. Questions that depend on a model's answers, such as
    what to correct in a draft, cannot be shown.
    """
    loaded, manifest = load_pipeline(pipeline), read_manifest(run)
    asking = stages_asking(pipeline, prompt_id)
    if not asking:
        raise not_asked(prompt_id)
    views = {view.name: view for view in show_item(run, pipeline, item).stages}
    config = manifest.config(loaded)
    previews: list[Preview] = []
    for stage in asking:
        view = views[stage.name]
        if view.reads.keys() != set(stage.spec.reads):
            _unreached(run, item, stage.name, tuple(views.values()))
        tools = Tools(_asking(config.stages[stage.name]), manifest.created_at, config.run.seed)
        previews.extend(_asked_by(stage, Item(item, view.reads), tools))
    chosen = _distinct(preview for preview in previews if preview.prompt.startswith(f"{prompt_id}@"))
    if not chosen:
        raise RunError(
            f"{run}: item {item}",
            what=f"nothing is asked with {prompt_id} about this item (looked at: "
            f"{', '.join(stage.name for stage in asking)})",
            fix="choose another story or prompt: nothing is asked about parts that are given, and some"
            " questions depend on what a model answered before (fabula run show has those that were asked)",
        )
    return chosen


def preview_story(
    drafting: Drafting, stories: Path, item: str, prompt_id: str, options: Mapping[str, Any]
) -> list[Preview]:
    """Return what a new run would ask with a prompt about one story, on the drafts of the rules planner."""
    with tempfile.TemporaryDirectory(prefix="fabula-preview-") as scratch:
        run = Path(scratch) / "run"
        chosen = {"items": (item,), "workers": 0, **options}
        request = drafting.request(stories, run, drafting.options(**chosen))
        with suppress(BelowThreshold):  # why the story goes no further is said below
            try:
                execute(replace(request, config=without_models(request.config, "rules")))
            except ConfigError as error:
                if error.where != "--items":
                    raise
                raise ConfigError(
                    "--story", expected="the id of a story", found=item, fix=error.fix
                ) from None
        return preview_run(drafting.run.pipeline, run, item, prompt_id)


def not_asked(prompt_id: str) -> ConfigError:
    """Return the error for a prompt that no stage asks a model with."""
    return ConfigError(
        f"prompt {prompt_id}", what="no stage asks a model with this prompt",
        fix=f"look at the file with: fabula prompts show {prompt_id}",
    )  # fmt: skip


def _asking(settings: Own) -> Own:
    """Return a stage's settings as if they named a model, which one it ever is."""
    values = settings.as_json()
    if "judges" in values:
        return type(settings).model_validate(values | {"judges": values["judges"][:1] or [STAND_IN]})
    named = values.get("model") or STAND_IN
    wanted = {"model": named, "planner": "model", "verifier": values.get("verifier") or named}
    known = {name: value for name, value in wanted.items() if name in values}
    return type(settings).model_validate(values | known)


def _asked_by(stage: Stage, item: Item, tools: Tools) -> Iterator[Preview]:
    for ask in run_apart(questions_of(stage, item, tools)):
        yield Preview(stage.name, item.id, ask.prompt, ask.request)


def _distinct(previews: Iterator[Preview]) -> list[Preview]:
    return list({preview.request.key(): preview for preview in reversed(list(previews))}.values())[::-1]


def _unreached(run: Path, item: str, stage: str, views: Sequence[StageView]) -> NoReturn:
    last = next(view for view in views if view.status != "made")
    raise RunError(
        f"{run}: item {item}",
        what=f"the item did not reach {stage}: {last.status} in {last.name}"
        + (f", {last.reason}" if last.reason else ""),
        fix="choose another story, or finish the run first: fabula run retry",
    )
