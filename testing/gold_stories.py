"""The sample stories with their hand-written records, as released records, without building anything."""

import json
from functools import cache
from importlib.resources import files

from ..schemas.canonical import Json
from ..schemas.katha import StoryRecord
from ..schemas.text import normalize_text
from ..validators.katha.field_rules import record_hashes
from .katha_samples import CREATED_AT

SAMPLES = "fabula.builders.katha"
BATCHES = ("", "later_")
"""What the names of the files of stories begin with, of version 0.1.0 and of those that came with 0.2.0."""


@cache
def gold_records() -> tuple[StoryRecord, ...]:
    """Return the records of the 27 sample stories, those that came later last; all are ``public_test``."""
    return tuple(StoryRecord.model_validate(bundle["record"]) for bundle in gold_bundles())


def gold_bundles() -> list[dict[str, Json]]:
    """Return the same as bundles, with their variants, as :mod:`.katha_folders` writes them."""
    stories = {story["id"]: story for name in BATCHES for story in _rows(f"{name}stories.jsonl")}
    golds = [gold for name in BATCHES for gold in _rows(f"{name}gold.jsonl")]
    return [_bundle(stories[gold["story_id"]], gold) for gold in golds]


def _rows(name: str) -> list[dict[str, Json]]:
    text = (files(SAMPLES) / "samples" / name).read_text("utf-8")
    return [json.loads(line) for line in text.splitlines()]


def _bundle(story: Json, gold: Json) -> dict[str, Json]:
    record: dict[str, Json] = {
        "story_id": gold["story_id"], "title": story["title"], "language": story["language"],
        "source_text": story["text"], "story_text": normalize_text(story["text"]),
        "narrative_type": gold["narrative_type"], "moral_label": gold["moral_label"],
        "split": "public_test", "scenes": gold["scenes"], "transitions": gold["transitions"],
        "questions": gold["questions"], "validation_status": "auto_checked",
        "evidence_status": {"human_evidence_accepted": False, "resolution": "not_reviewed"},
    }  # fmt: skip
    variants = [
        {**variant, "subset": record["split"], "narrative_type": record["narrative_type"]}
        for variant in gold["variants"]
    ]
    record["provenance"] = {
        "source_dataset": story["source_collection"], "source_reference": story["source_reference"],
        **record_hashes(record, variants),
        "contrastive_variant_ids": [variant["variant_id"] for variant in variants],
        "created_at": CREATED_AT, "source_rights_status": story["rights_status"],
        "dataset_license": "CC-BY-4.0",
    }  # fmt: skip
    check = {"code": "answerable", "path": "$.questions", "passed": True, "note": "", "producer": None}
    producers = [{"path": "$.scenes[*]", "producer": gold["author"]}]
    return {"record": record, "variants": variants, "producers": producers, "checks": [check]}
