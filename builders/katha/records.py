"""Putting a story, its draft and its checks into the published shape."""

from collections.abc import Sequence

from ...schemas.canonical import Json
from ...validators.provenance import record_hashes
from ...validators.status_rules import is_settled

REVIEW = {"human_evidence_accepted": False, "resolution": "not_reviewed"}


def make_bundle(
    story: Json, draft: Json, checks: Sequence[Json], split: str, created_at: str, license_id: str | None
) -> Json:
    """Return a ``KathaBundle`` as JSON: record, variants, producers, checks.

    The record is ``auto_checked`` where every check is settled, else ``review_needed``; never reviewed.
    """
    variants = [{**variant, "subset": split} for variant in draft["variants"]]
    variants.sort(key=lambda variant: str(variant["variant_id"]))
    record = {
        "story_id": story["id"],
        "title": draft["title"],
        "language": story["language"],
        "source_text": story["text"],
        "story_text": story["normalized_text"],
        "narrative_type": draft["narrative_type"],
        "moral_label": draft["moral_label"],
        "split": split,
        "scenes": draft["scenes"],
        "transitions": draft["transitions"],
        "questions": draft["questions"],
        "validation_status": "auto_checked" if all(map(is_settled, checks)) else "review_needed",
        "evidence_status": REVIEW,
    }
    record["provenance"] = {
        "source_dataset": story["source_collection"],
        "source_reference": story["source_reference"],
        **record_hashes(record, variants),
        "contrastive_variant_ids": [variant["variant_id"] for variant in variants],
        "created_at": created_at,
        "source_rights_status": story["rights_status"],
        "dataset_license": license_id,
    }
    return {"record": record, "variants": variants, "producers": draft["producers"], "checks": list(checks)}
