"""What building shot scripts asks of the engine: sources, settings and options in the engine's terms."""

from collections.abc import Sequence
from pathlib import Path

from ...engine.config import resolve_config
from ...engine.execute import RunRequest, Source
from ...engine.run_options import setting_texts
from ...errors import ConfigError
from ..drafting import planner_texts
from .options import ShotOptions
from .pipeline import PIPELINE


def shot_request(
    sources: Sequence[Path | str] | Path | str, out: Path | str, options: ShotOptions
) -> RunRequest:
    """Return what the engine is to execute.

    Raises:
        ConfigError: a setting or an option is wrong, or no source is named.
    """
    named = [sources] if isinstance(sources, str | Path) else list(sources)
    listed = [Source("stories", Path(path)) for path in named]
    if not listed:
        raise ConfigError("sources", what="no file or folder is given", fix="name the stories")
    if options.scripts is not None:
        listed.append(Source("scripts", Path(options.scripts)))
    given: dict[str, object] = {}
    if options.shots is not None:
        given["plan_shots.shots"] = options.shots
    if options.languages is not None:
        for stage in ("translate_names", "translate_script", "translate_edits"):
            given[f"{stage}.languages"] = list(options.languages)
    texts = [*planner_texts(PIPELINE, options.planner, options.model), *setting_texts(given)]
    return RunRequest(
        folder=Path(out),
        pipeline=PIPELINE,
        config=resolve_config(
            PIPELINE,
            options.settings_file,
            [*texts, *options.texts],
            options.models,
            others=options.others,
        ),
        sources=tuple(listed),
        created_at=options.created_at,
        options=options.for_engine(
            limit=options.limit,
            items=tuple(options.items),
        ),
    )
