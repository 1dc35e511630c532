"""What a build asks of the engine: sources, settings and options in the engine's terms."""

from collections.abc import Sequence
from pathlib import Path

from ...engine.config import resolve_config
from ...engine.execute import RunRequest, Source
from ...engine.pipeline import stages_through
from ...errors import ConfigError
from ..drafting import planner_texts
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
            others=options.others,
        ),
        sources=tuple(listed),
        created_at=options.created_at,
        options=options.for_engine(
            limit=options.limit,
            items=tuple(options.items),
            stages=stages_through(PIPELINE, options.stage) if options.stage else (),
        ),
    )
