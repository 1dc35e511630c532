"""Pipelines of some stages alone, for tests: from videos to kept shots, to people, to what is looked at."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from ..builders.entities.videos import ROLE
from ..engine.config import resolve_config
from ..engine.execute import Options, RunRequest, Source, execute
from ..engine.pipeline import Pipeline
from ..engine.stage import Item
from ..evaluation.entities.episodes import EPISODES, OUTPUTS
from ..schemas.canonical import jsonl_lines, write_atomic
from ..schemas.plain_files import json_lines

LINES = "lines.jsonl"
"""What a finished run holds: id and final fields of every item."""


def finish(folder: Path, items: Iterable[Item]) -> None:
    """Write every item."""
    write_atomic(folder / LINES, jsonl_lines({"id": item.id, **item.fields} for item in items))


def _pipeline(name: str, room: str, stages: Sequence[str], fields: tuple[str, ...]) -> Pipeline:
    named = tuple(f"fabula.{room}.entities.{stage}" for stage in stages)
    return Pipeline(name=name, stages=named, finish=f"{__name__}:finish", final_fields=fields)


SHOTS = ("videos:load_videos", "videos:detect_shots", "videos:list_shots", "selecting:measure_quality")
MEDIA = _pipeline(
    "kept-shots", "builders",
    (*SHOTS, "selecting:read_subtitles", "selecting:judge_style", "selecting:compare_shots",
     "selecting:filter_shots"),
    ("shot", "quality", "content"),
)  # fmt: skip
PEOPLE = _pipeline(
    "people", "builders",
    (*SHOTS, "tracking:detect_people", "tracking:track_people", "identities:embed_tracklets",
     "videos:group_shots", "identities:cluster_people", "identities:consolidate_people"),
    ("clustering",),
)  # fmt: skip
LOOKING = _pipeline(
    "looked-at-episodes", "evaluation",
    ("episodes:load_episodes", "episodes:list_shots", "measure_quality:measure_quality",
     "looking:take_frames", "looking:ground_entities", "looking:encode_appearances", "grids:draw_grids"),
    ("shot", "frames", "grounded", "vectors", "grid"),
)  # fmt: skip


def media_request(
    folder: Path,
    videos: Sequence[Path],
    sets: Sequence[str] = (),
    options: Options | None = None,
    models: Mapping[str, Mapping[str, Any]] | None = None,
) -> RunRequest:
    """Return the request that finds and filters the shots of videos, by histograms if nothing else is set."""
    return _request(MEDIA, folder, videos, sets, options, models)


def people_request(
    folder: Path, videos: Sequence[Path], sets: Sequence[str] = (), *, base_url: str | None = None
) -> RunRequest:
    """Return the request that finds the people of videos; one at ``base_url`` may be asked."""
    if base_url is None:
        return _request(PEOPLE, folder, videos, sets)
    asking = ("consolidate_people.model='openai:tested'", "consolidate_people.planner='model'")
    return _request(PEOPLE, folder, videos, (*sets, *asking), None, {"openai:tested": {"base_url": base_url}})


def _request(
    pipeline: Pipeline,
    folder: Path,
    videos: Sequence[Path],
    sets: Sequence[str],
    options: Options | None = None,
    models: Mapping[str, Mapping[str, Any]] | None = None,
) -> RunRequest:
    config = resolve_config(pipeline, None, ["detect_shots.method='histogram'", *sets], models)
    sources = tuple(Source(ROLE, path) for path in videos)
    return RunRequest(folder, pipeline, config, sources, created_at="2026-01-01T00:00:00Z",
                      options=options or Options(workers=0))  # fmt: skip


def look(
    out: Path,
    release: Path,
    methods: Sequence[Path],
    sets: Sequence[str] = (),
    options: Options | None = None,
    config: Path | None = None,
) -> list[dict[str, Any]]:
    """Look at the outputs of methods, and return the lines, one per shot."""
    settings = resolve_config(LOOKING, config, list(sets), None)
    sources = (Source(EPISODES, release), *(Source(OUTPUTS, folder) for folder in methods))
    execute(RunRequest(out, LOOKING, settings, sources, options=options or Options(workers=0)))
    return list(json_lines(out / LINES))
