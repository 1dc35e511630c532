"""What a build asks of the engine: sources, settings and options in the engine's terms."""

from collections.abc import Sequence
from pathlib import Path

from ...engine.config import resolve_config
from ...engine.execute import RunRequest, Source
from ...engine.pipeline import Pipeline, load_pipeline, stages_through
from ...engine.run_options import setting_texts
from ...errors import ConfigError
from ...models.settings import ModelSettings
from ..registry import sections_of_others
from ..step import PlannerSettings, check_planner
from .options import BuildOptions
from .pipeline import PIPELINE


def build_request(
    sources: Sequence[Path | str] | Path | str, out: Path | str, options: BuildOptions
) -> RunRequest:
    """Return what the engine is to execute.

    Raises:
        ConfigError: a setting or an option is wrong, or no source is named.
    """
    named = [sources] if isinstance(sources, str | Path) else list(sources)
    listed = [Source("stories", Path(path)) for path in named]
    if not listed:
        raise ConfigError("sources", what="no file or folder is given", fix="name the stories")
    if options.records is not None:
        listed.append(Source("records", Path(options.records)))
    return RunRequest(
        folder=Path(out),
        pipeline=PIPELINE,
        config=resolve_config(
            PIPELINE,
            options.settings_file,
            [
                *planner_texts(PIPELINE, options.planner, options.model, options.verifier),
                *options.texts,
            ],
            options.models,
            others=lambda: sections_of_others(PIPELINE.name),
        ),
        sources=tuple(listed),
        created_at=options.created_at,
        options=options.for_engine(
            limit=options.limit,
            items=tuple(options.items),
            stages=stages_through(PIPELINE, options.stage) if options.stage else (),
        ),
    )


def planner_texts(
    pipeline: Pipeline, planner: str | None, model: str | None, verifier: str | None = None
) -> list[str]:
    """Return planner, model and verifier as settings of every stage that has them.

    Raises:
        ConfigError: there is no such planner, or a model is named for the rules.
    """
    if planner is not None:
        check_planner(planner)
    if planner == "rules" and (model or verifier):
        raise ConfigError(
            "--model", what="--planner rules asks no model, and a model is given",
            fix="leave --model out, or use --planner model",
        )  # fmt: skip
    checking = verifier if verifier is not None else model
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
        elif issubclass(kind, ModelSettings) and checking is not None:
            given[f"{name}.model"] = checking
    return setting_texts(given)
