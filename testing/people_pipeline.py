"""The stages of the episode builder from videos to the people in them alone, for tests."""

from collections.abc import Iterable, Sequence
from pathlib import Path

from ..builders.entities.load_videos import ROLE
from ..engine.config import resolve_config
from ..engine.execute import Options, RunRequest, Source
from ..engine.pipeline import Pipeline
from ..engine.stage import Item
from ..schemas.canonical import jsonl_lines, write_atomic

CAST = "cast.jsonl"
"""What a finished run holds: the people of every video, and what was proposed about them."""
STAGES = (
    "load_videos", "detect_shots", "detect_shots:LIST_SHOTS", "measure_quality", "detect_people",
    "track_people", "embed_tracklets", "detect_shots:GROUP_SHOTS", "cluster_people", "consolidate_people",
)  # fmt: skip
PIPELINE = Pipeline(
    name="people",
    stages=tuple(f"fabula.builders.entities.{name}" for name in STAGES),
    finish=f"{__name__}:finish",
    final_fields=("clustering",),
)


def finish(folder: Path, items: Iterable[Item]) -> None:
    """Write the people."""
    write_atomic(folder / CAST, jsonl_lines({"id": item.id, **item.fields} for item in items))


def people_request(
    folder: Path, videos: Sequence[Path], sets: Sequence[str] = (), *, base_url: str | None = None
) -> RunRequest:
    """Return the request that finds the people of videos; one at ``base_url`` may be asked."""
    texts, models = ["detect_shots.method='histogram'", *sets], {}
    if base_url is not None:
        texts += ["consolidate_people.model='openai:tested'", "consolidate_people.planner='model'"]
        models = {"openai:tested": {"base_url": base_url}}
    config = resolve_config(PIPELINE, None, texts, models)
    sources = tuple(Source(ROLE, path) for path in videos)
    return RunRequest(
        folder, PIPELINE, config, sources, created_at="2026-01-01T00:00:00Z", options=Options(workers=0)
    )
