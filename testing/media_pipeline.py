"""The first stages of the episode builder alone, from videos to the shots that are kept, for tests."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from ..builders.entities.load_videos import ROLE
from ..engine.config import resolve_config
from ..engine.execute import Options, RunRequest, Source
from ..engine.pipeline import Pipeline
from ..engine.stage import Item
from ..schemas.canonical import jsonl_lines, write_atomic

KEPT = "kept.jsonl"
"""What a finished run holds: id, shot, quality and what was checked of every kept shot."""
STAGES = (
    "load_videos", "detect_shots", "detect_shots:LIST_SHOTS", "measure_quality", "read_subtitles",
    "compare_shots:JUDGE_STYLE", "compare_shots", "filter_shots",
)  # fmt: skip
PIPELINE = Pipeline(
    name="kept-shots",
    stages=tuple(f"fabula.builders.entities.{name}" for name in STAGES),
    finish=f"{__name__}:finish",
    final_fields=("shot", "quality", "content"),
)


def finish(folder: Path, items: Iterable[Item]) -> None:
    """Write the shots that were kept."""
    write_atomic(folder / KEPT, jsonl_lines({"id": item.id, **item.fields} for item in items))


def media_request(
    folder: Path,
    videos: Sequence[Path],
    sets: Sequence[str] = (),
    options: Options | None = None,
    models: Mapping[str, Mapping[str, Any]] | None = None,
) -> RunRequest:
    """Return the request that finds and filters the shots of videos, by histograms if nothing else is set."""
    config = resolve_config(PIPELINE, None, ["detect_shots.method='histogram'", *sets], models)
    sources = tuple(Source(ROLE, path) for path in videos)
    return RunRequest(folder, PIPELINE, config, sources, options=options or Options(workers=0))
