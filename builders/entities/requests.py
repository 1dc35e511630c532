"""What building episodes asks of the engine: sources, settings and options in the engine's terms."""

from collections.abc import Sequence
from pathlib import Path

from ...engine.config import resolve_config
from ...engine.execute import RunRequest, Source
from ...engine.run_options import setting_texts
from ...errors import ConfigError
from ...schemas.canonical import sha256_file
from ..drafting import planner_texts
from .load_videos import ROLE
from .options import EntityOptions
from .pinned import pinned
from .pipeline import PIPELINE


def entity_request(
    videos: Sequence[Path | str] | Path | str, out: Path | str, options: EntityOptions
) -> RunRequest:
    """Return what the engine is to execute.

    Raises:
        ConfigError: a setting or an option is wrong, or no video is named.
    """
    named = [videos] if isinstance(videos, str | Path) else list(videos)
    paths = [Path(path) for path in named]
    if not paths:
        raise ConfigError("videos", what="no file or folder is given", fix="name the videos")
    given: dict[str, object] = {}
    if options.detections is not None:
        file = Path(options.detections).absolute()
        if not file.is_file():
            raise ConfigError(
                "--detections",
                what=f"there is no file {file}",
                fix="check the path; see docs/identities.md",
            )
        given = {
            "detect_people.detections": str(file),
            "detect_people.detections_sha256": sha256_file(file),
        }
    texts = [
        *planner_texts(PIPELINE, options.planner, options.model, drafting_only=True),
        *setting_texts(given),
        *options.texts,
    ]
    config = resolve_config(
        PIPELINE, options.settings_file, texts, options.models,
        others=options.others,
    )  # fmt: skip
    return RunRequest(
        folder=Path(out),
        pipeline=PIPELINE,
        config=pinned(config),
        sources=tuple(Source(ROLE, path) for path in paths),
        created_at=options.created_at,
        options=options.for_engine(limit=options.limit, items=tuple(options.items)),
    )
