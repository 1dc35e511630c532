"""What a prompt looks like for one story: what a stage would ask a model about it, with nothing sent."""

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NoReturn

from ..engine.estimate import questions_of, run_apart
from ..engine.execute import execute
from ..engine.manifest import read_manifest
from ..engine.pipeline import Pipeline, Stage, load_pipeline
from ..engine.stage import Item, Tools
from ..engine.status import StageView, show_item
from ..errors import BelowThreshold, ConfigError, RunError
from ..models.chat import ChatRequest
from ..schemas.values import Own
from .drafting import Drafting, without_models

NOBODY = "openai:none"
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
        return type(settings).model_validate(values | {"judges": values["judges"][:1] or [NOBODY]})
    named = values.get("model") or NOBODY
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
