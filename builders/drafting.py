"""How a kind's records are drafted: the part that a build of any kind needs."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from ..engine.estimate import CallPlan
from ..engine.execute import RunRequest
from ..engine.pipeline import Pipeline, load_pipeline
from ..engine.run_options import RunOptions, setting_texts
from ..engine.running import RunKind
from ..engine.sources import Source
from ..engine.status import RunReport
from ..errors import ConfigError, InputError, UserError
from ..models.spec import ModelSettings
from ..prompts.loader import ENDING, other_form
from .editing import Editing
from .step import PlannerSettings, Worded, check_planner

NOBODY = "none"
"""What ``--verifier`` says where no model is to check."""


@dataclass(frozen=True, slots=True)
class Drafting:
    """How the records of a kind are drafted."""

    run: RunKind  # what executes its builds
    # called with sources, a run folder, options and ``reporter=``, builds, and returns the report
    build: Callable[..., RunReport]
    options: type[RunOptions]  # the type of the options that it takes
    editing: Editing | None = None  # how its items are corrected; None where no stage applies corrections
    # how records are corrected that no stage corrects, as imported ones; None where only their sources can be
    corrected_in_files: str | None = None
    # called with a file or folder of stories, a run folder and options of the build by name, returns that
    # build; None where nothing is built from stories
    one_story: Callable[..., RunRequest] | None = None
    # called with sources, a run folder and options, tells what models would be asked, and asks nothing; None
    # where the kind cannot say
    estimate: Callable[..., CallPlan] | None = None


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


def listed(sources: Sequence[Path | str] | Path | str, role: str, noun: str) -> list[Source]:
    """Return the sources of a build that were named."""
    named = [sources] if isinstance(sources, str | Path) else list(sources)
    if not named:
        where = "videos" if noun == "videos" else "sources"
        raise ConfigError(where, what="no file or folder is given", fix=f"name the {noun}")
    return [Source(role, Path(path)) for path in named]


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
