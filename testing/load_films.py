"""Stage: films as :mod:`.made_films` writes them, from a JSON file: name -> the shots, as texts.

With it the stages that write scripts run in the engine without a video or a detector; see :data:`PIPELINE`.
"""

import json
from collections.abc import Iterator
from pathlib import Path

from ..builders.entities import building
from ..engine.config import resolve_config
from ..engine.execute import Options, RunRequest, Source
from ..engine.pipeline import Pipeline
from ..engine.stage import Child, Item, Made, StageSpec, Tools
from .made_films import made_film

SPEC = StageSpec(
    name="load_films",
    version=1,
    shape="expand",
    reads=("sources",),
    writes=("video", "shots", "cast", "consolidation", "views"),
)

FROM = "list_entities"
STAGES = building.STAGES[building.STAGES.index(FROM) :]
PIPELINE = Pipeline(
    name="films",
    stages=(__name__, *(f"fabula.builders.entities.{name}" for name in STAGES)),
    finish="fabula.builders.entities.building:finish",
    final_fields=("pictures",),
)


def run(item: Item, tools: Tools) -> Iterator[Child]:
    """Yield one child per film."""
    del item
    for path in tools.paths:
        for name, shots in json.loads(path.read_bytes()).items():
            fields = made_film(shots["shots"], name=name, store=tools.store, left_out=shots.get("out", ()))
            yield Child(name, Made(fields))


def film_request(
    films: Path, out: Path, *, settings: tuple[str, ...] = (), base_url: str | None = None, **options: object
) -> RunRequest:
    """Return the request that builds episodes from films; with ``base_url`` a model of that server drafts."""
    texts = list(settings)
    models = {}
    if base_url is not None:
        from ..builders.drafting import DraftOptions, planner_texts

        texts = [*planner_texts(PIPELINE, DraftOptions(model="openai:tested")), *texts]
        models = {"openai:tested": {"base_url": base_url}}
    config = resolve_config(PIPELINE, None, texts, models)
    return RunRequest(
        out, PIPELINE, config, (Source("films", films),), created_at="2026-01-01T00:00:00Z",
        options=Options(**{"workers": 0, **options}),  # type: ignore[arg-type]
    )  # fmt: skip
