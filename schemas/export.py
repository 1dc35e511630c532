"""The published JSON Schemas (draft 2020-12), generated from the types."""

from pathlib import Path

from pydantic import BaseModel

from .canonical import (
    Json,
    pretty_bytes,
    write_atomic,
    writing,
)
from .entities import EntityEpisode, EntitySplits, EpisodeRecord
from .events import SuiteRecord
from .judgement import EvaluationManifest, HumanRow, Judgement
from .katha import HumanValidation, KathaBundle, ProducerLine, StoryRecord, Variant
from .values import Edit, Envelope, Story

PUBLISHED: dict[str, type[BaseModel]] = {
    "edit": Edit,
    "entity_episode": EntityEpisode,
    "entity_record": EpisodeRecord,
    "entity_splits": EntitySplits,
    "envelope": Envelope,
    "evaluation": EvaluationManifest,
    "human_row": HumanRow,
    "judgement": Judgement,
    "katha_bundle": KathaBundle,
    "katha_human_validation": HumanValidation,
    "katha_producers": ProducerLine,
    "katha_record": StoryRecord,
    "katha_variant": Variant,
    "story": Story,
    "suite_prompt": SuiteRecord,
}
"""Schema name -> the type that it is generated from."""


def json_schema(name: str) -> dict[str, Json]:
    schema = PUBLISHED[name].model_json_schema(mode="validation")
    head = {"$schema": "https://json-schema.org/draft/2020-12/schema", "$id": f"urn:fabula:schema:{name}:1"}
    return {**head, **schema}


def export_schemas(folder: Path) -> tuple[Path, ...]:
    """Write every published schema to a folder as ``NAME.schema.json``; return the files."""
    with writing(folder, "choose another folder with --out"):
        folder.mkdir(parents=True, exist_ok=True)
        paths = tuple(folder / f"{name}.schema.json" for name in PUBLISHED)
        for name, path in zip(PUBLISHED, paths, strict=True):
            write_atomic(path, [pretty_bytes(json_schema(name))])
    return paths
