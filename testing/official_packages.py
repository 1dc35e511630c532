"""Packages in the form of the official KathaBench release (Table 23), made from sample records.

They are no copy of the published data: names of files and fields are those of the paper's tables, everything
in them is made up.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from ..schemas.canonical import Json
from .katha_samples import sample_bundles

OURS_ALONE = ("language", "source_text", "story_text")
"""Fields of our records that no table of the paper lists."""


def package_rows(count: int = 6) -> dict[str, list[dict[str, Json]]]:
    """Return file -> lines of a package whose records people have reviewed, the hidden test among them.

    The records have the fields of the paper's tables, and the text of the story in ``story``.
    """
    annotations, variants, reviews = [], [], []
    for bundle in sample_bundles(count):
        record = bundle["record"]
        text = record["source_text"]
        record = {name: value for name, value in record.items() if name not in OURS_ALONE}
        record |= {
            "story": text,
            "validation_status": "human_adjudicator_accepted",
            "evidence_status": {"human_evidence_accepted": True, "resolution": "unanimous"},
        }
        annotations.append(record)
        variants.extend(bundle["variants"])
        reviews.append(_review(record))
    gold = [
        {"story_id": record["story_id"], "stratum": record["narrative_type"]} for record in annotations[:4]
    ]
    return {
        "annotations.jsonl": annotations,
        "contrastive_variants.jsonl": variants,
        "human_validation.jsonl": reviews,
        "human_gold_1k.jsonl": gold,
        "strict_gold_400.jsonl": list(reversed(gold[:2])),
    }


def package_documents() -> dict[str, bytes]:
    """Return file -> content of the documents of a package."""
    documents: dict[str, Json] = {
        "statistics.json": {"total_stories": 6, "note": "a form of its own"},
        "moral_balance_requirements.json": {"target": {"wisdom": 0.0833}, "relabeled": False},
        "source_manifest.json": {"collections": [{"name": "Aesop", "editions": ["Perry 1"]}]},
        "croissant_metadata.json": {"name": "package", "version": "1.2.0", "creator": [{"name": "A. Maker"}]},
    }
    return {
        **{name: json.dumps(value, indent=1).encode() for name, value in documents.items()},
        "dataset_card.md": "# A package\r\nWith a line end of its own, and Puṇyasena.\n".encode(),
        "LICENSE": b"CC BY 4.0 for the benchmark, Apache-2.0 for code.\n",
    }


def write_package(
    folder: Path,
    rows: Mapping[str, Sequence[Json]] | None = None,
    documents: Mapping[str, bytes] | None = None,
    line: Callable[[Json], bytes] | None = None,
) -> Path:
    """Write a package; return its folder.

    ``rows``: file -> lines; by default those of :func:`package_rows`. ``documents``: file -> content; by
    default those of :func:`package_documents`. ``line``: makes the bytes of one line; by default as Python's
    ``json`` writes it, with LF.
    """
    written = line or (lambda row: json.dumps(row).encode() + b"\n")
    for name, content in (package_documents() if documents is None else documents).items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
    folder.mkdir(parents=True, exist_ok=True)
    for name, lines in (package_rows() if rows is None else rows).items():
        (folder / name).write_bytes(b"".join(map(written, lines)))
    return folder


def _review(record: Json) -> dict[str, Json]:
    return {
        "story_id": record["story_id"],
        "decision": "accepted",
        "validation_status": record["validation_status"],
        "evidence_source": "source text and storyboard plan",
        "protocol_complete": True,
        "annotator_ids": ["r1", "r2", "r3"],
        "resolution": "unanimous",
        "final_moral_label": record["moral_label"],
        "correction_flags": [],
        "signed_at": "2025-12-24T00:00:00Z",
    }
