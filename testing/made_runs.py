"""Small runs of kinds without a model, to be packed: a suite by rules, drawn shot scripts with rights."""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path

from ..builders.events.building import SuiteOptions, build_suite
from ..releases.shots.imports import import_set, with_provenance, write_facts
from ..releases.shots.tree import read_shot_set
from ..schemas.canonical import Json

CREATED = "2026-01-01T00:00:00Z"


def suite_run(folder: Path, seeds: Iterable[Json]) -> Path:
    """Build a suite of these seeds by rules below a folder; return the run."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "seeds.jsonl"
    path.write_text("".join(f"{json.dumps(seed)}\n" for seed in seeds), "utf-8")
    build_suite([path], folder / "run", SuiteOptions(workers=0, created_at=CREATED))
    return folder / "run"


def shots_run(
    tree: Path, run: Path, rights: str | Mapping[str, str] = "CC0-1.0", source: str = "drawn"
) -> Path:
    """Import a set whose images come from one source, with rights for all or by character; return the run."""
    shot_set, _ = read_shot_set(tree)
    images = [
        one.model_copy(
            update={
                "source": source,
                "rights": rights if isinstance(rights, str) else rights.get(one.character),
            }
        )
        for one in with_provenance(shot_set)
    ]
    write_facts(shot_set.folder, (), images)
    import_set(tree, run, CREATED)
    return run
