"""The stages that look at videos of episodes alone, for tests: from outputs to crops, vectors and grids."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from ..engine.config import resolve_config
from ..engine.execute import Options, RunRequest, Source, execute
from ..engine.pipeline import Pipeline
from ..engine.stage import Item
from ..evaluation.entities.load_episodes import EPISODES, OUTPUTS
from ..schemas.canonical import jsonl_lines, write_atomic
from ..schemas.plain_files import json_lines

LINES = "looked.jsonl"
"""What a finished run holds: id and fields of every shot."""
STAGES = (
    "load_episodes", "list_shots", "quality.measure_quality", "looking.take_frames",
    "looking.ground_entities", "looking.encode_appearances", "looking.draw_grids",
)  # fmt: skip
PIPELINE = Pipeline(
    name="looked-at-episodes",
    stages=tuple(f"fabula.evaluation.entities.{name}" for name in STAGES),
    finish=f"{__name__}:finish",
    final_fields=("shot", "frames", "grounded", "vectors", "grid"),
)


def finish(folder: Path, items: Iterable[Item]) -> None:
    """Write every shot."""
    write_atomic(folder / LINES, jsonl_lines({"id": item.id, **item.fields} for item in items))


def look(
    out: Path,
    release: Path,
    methods: Sequence[Path],
    sets: Sequence[str] = (),
    options: Options | None = None,
    config: Path | None = None,
) -> list[dict[str, Any]]:
    """Look at the outputs of methods, and return the lines, one per shot."""
    settings = resolve_config(PIPELINE, config, list(sets), None)
    sources = (Source(EPISODES, release), *(Source(OUTPUTS, folder) for folder in methods))
    execute(RunRequest(out, PIPELINE, settings, sources, options=options or Options(workers=0)))
    return list(json_lines(out / LINES))
