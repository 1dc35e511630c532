"""Run and release folders made from bundles, as far as validation reads them."""

from collections.abc import Iterable, Sequence
from pathlib import Path

from ..schemas.canonical import Json, jsonl_lines, pretty_bytes, write_atomic
from ..validators.provenance import record_hashes
from ..validators.run_balance import RunBalance
from ..validators.statistics import HiddenCounts, StatisticsCollector, moral_balance
from .katha_samples import CREATED_AT


def rehash(bundle: Json) -> None:
    """Bring a changed bundle's provenance hashes and variant ids up to date, in place."""
    record, variants = bundle["record"], bundle["variants"]
    record["provenance"] |= record_hashes(record, variants)
    record["provenance"]["contrastive_variant_ids"] = sorted(variant["variant_id"] for variant in variants)


def write_jsonl(path: Path, rows: Iterable[Json]) -> Path:
    """Write rows as canonical JSONL; return the file."""
    write_atomic(path, jsonl_lines(rows))
    return path


def write_records(path: Path, bundles: Iterable[Json]) -> Path:
    """Write bundles in their envelopes, as a run's ``records.jsonl`` holds them; return the file."""
    return write_jsonl(
        path,
        (
            {"kind": "katha", "schema_version": "1", "id": bundle["record"]["story_id"], "payload": bundle}
            for bundle in bundles
        ),
    )


def write_run(folder: Path, bundles: Sequence[Json]) -> Path:
    """Write what a finished run leaves behind, as far as validators read it; return the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    manifest = {"format": 1, "kind": "katha", "created_at": CREATED_AT}
    write_atomic(folder / "run.json", [pretty_bytes(manifest)])
    write_records(folder / "records.jsonl", bundles)
    assignments, balance = [], RunBalance()
    for record in (bundle["record"] for bundle in bundles):
        stratum = f"{record['narrative_type'] or 'none'}/{record['moral_label'] or 'none'}"
        assignments.append({"id": record["story_id"], "split": record["split"], "stratum": stratum})
        balance.add(record, stratum)
    write_jsonl(folder / "assignments.jsonl", assignments)
    write_atomic(folder / "balance.json", [pretty_bytes(balance.document())])
    return folder


def write_release(folder: Path, bundles: Sequence[Json]) -> Path:
    """Write the data files of a public release that validators read; return the folder.

    Bundles of the hidden test are counted and left out, as a packer does.
    """
    folder.mkdir(parents=True, exist_ok=True)
    public = [bundle for bundle in bundles if bundle["record"]["split"] != "hidden_test"]
    hidden = [bundle for bundle in bundles if bundle["record"]["split"] == "hidden_test"]
    records = [bundle["record"] for bundle in public]
    write_jsonl(folder / "annotations.jsonl", records)
    variants = [variant for bundle in public for variant in bundle["variants"]]
    write_jsonl(folder / "contrastive_variants.jsonl", variants)
    producers = [{"id": bundle["record"]["story_id"], "fields": bundle["producers"]} for bundle in public]
    write_jsonl(folder / "producers.jsonl", producers)
    counts = StatisticsCollector()
    for bundle in public:
        counts.add_record(bundle["record"])
        counts.add_producers(bundle["producers"])
    for variant in variants:
        counts.add_variant(variant)
    parts = {name: sum(len(bundle["record"][name]) for bundle in hidden) for name in _PARTS}
    secret = HiddenCounts(
        stories=len(hidden), variants=sum(len(bundle["variants"]) for bundle in hidden), **parts
    )
    write_atomic(folder / "statistics.json", [pretty_bytes(counts.result(secret))])
    balance = moral_balance(record["moral_label"] for record in records)
    write_atomic(folder / "moral_balance_requirements.json", [pretty_bytes(balance)])
    manifest = {"format": 1, "kind": "katha", "created_at": CREATED_AT, "visibility": "public"}
    write_atomic(folder / "release.json", [pretty_bytes(manifest)])
    return folder


_PARTS = ("scenes", "transitions", "questions")
