"""What building shot scripts asks of the engine: sources, settings and options in the engine's terms."""

from collections.abc import Sequence
from pathlib import Path

from ...engine.config import resolve_config
from ...engine.execute import RunRequest, Source
from ...engine.run_options import setting_texts
from ...engine.running import RunKind
from ...errors import ConfigError
from ..drafting import Drafting, planner_texts
from ..spending import tell_plan
from .options import ShotOptions
from .pending_edits import EDITING
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


DRAFTING = Drafting(
    RunKind(PIPELINE, tell_plan),
    EDITING,
    "copy its folder ViStory, correct NN/story.json there, and give the copy to"
    " `fabula import vistory`: facts and rights of images come along",
    lambda stories, run, **chosen: shot_request(stories, run, ShotOptions(**chosen)),
)
"""How shot scripts are drafted."""
