"""Run and release folders made from bundles, as far as validating and packing read them."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from ..engine.journal import Entry, Journal, encode
from ..engine.manifest import NAME as MANIFEST
from ..engine.manifest import Manifest, RunPart, SourceEntry, StageEntry, write_manifest
from ..engine.stage import Made
from ..engine.status import ItemReport, RunReport, read_report, write_report
from ..schemas.canonical import Json, digest, jsonl_lines, pretty_bytes, sha256_file, write_atomic
from ..schemas.paths import (
    ANNOTATIONS,
    ASSIGNMENTS,
    BALANCE,
    MORAL_BALANCE,
    PRODUCERS,
    RECORDS,
    RELEASE,
    STATISTICS,
    VARIANTS,
)
from ..validators.katha.field_rules import record_hashes
from ..validators.katha.set_rules import RunBalance
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


def write_run(
    folder: Path,
    bundles: Sequence[Json],
    not_made: Sequence[ItemReport] = (),
    splits: Mapping[str, str] | None = None,
) -> Path:
    """Write what a finished run leaves behind, as far as it is validated and packed; return the folder.

    ``splits``: item of ``not_made`` -> the split that an earlier execution gave it.
    """
    folder.mkdir(parents=True, exist_ok=True)
    write_manifest(folder, sample_manifest())
    write_records(folder / RECORDS, bundles)
    assignments, balance = [], RunBalance()
    for record in (bundle["record"] for bundle in bundles):
        stratum = f"{record['narrative_type'] or 'none'}/{record['moral_label'] or 'none'}"
        assignments.append({"id": record["story_id"], "split": record["split"], "stratum": stratum})
        balance.add(record, stratum)
    write_jsonl(folder / ASSIGNMENTS, assignments)
    write_atomic(folder / BALANCE, [pretty_bytes(balance.document())])
    if not_made:  # else nobody asks what was assigned earlier
        assigned = {row["id"]: {"split": row["split"], "stratum": row["stratum"]} for row in assignments}
        earlier = {item: {"split": split, "stratum": "*"} for item, split in (splits or {}).items()}
        _write_decisions(folder, "assign_splits", {**assigned, **earlier})
    totals = {"made": len(bundles), "rejected": 0, "failed": 0, "pending": 0}
    for item in not_made:
        totals[item.status] += 1
    write_report(folder, RunReport(totals, (), tuple(not_made)))
    settle(folder)
    return folder


def settle(folder: Path) -> None:
    """Bring the hashes in a run's report up to date, as if the engine had left its files as they are now."""
    report = read_report(folder)
    outputs = {name: sha256_file(folder / name) for name in (RECORDS, ASSIGNMENTS, BALANCE)}
    settled = RunReport(report.totals, report.stages, report.items, sha256_file(folder / MANIFEST), outputs)
    write_report(folder, settled)


def sample_manifest() -> Manifest:
    """Return the manifest of a run of one stage, one prompt and one source."""
    return Manifest(
        kind="katha",
        created_at=CREATED_AT,
        fabula_version="0.1.0",
        seed=42,
        threshold=0.95,
        run=RunPart(item_timeout=120.0, threshold=0.95, seed=42),
        settings={"draft_scenes": {"scenes": 5}},
        stages=(StageEntry(name="draft_scenes", version=1, libraries={}),),
        prompts={"scene_image": "1" * 64},
        sources=(
            SourceEntry(role="stories", name="fables.jsonl", path="/home/me/fables.jsonl", sha256="0" * 64),
        ),
    )


def _write_decisions(folder: Path, stage: str, rows: Mapping[str, Mapping[str, Json]]) -> None:
    """Write what a gather stage decided into the journal of a run."""
    keys = {item: digest([stage, item]) for item in rows}
    table = {"items": [[item, key] for item, key in keys.items()], "kept": []}
    with Journal.open(folder) as journal:
        for item, fields in rows.items():
            journal.put(_entry(stage, keys[item], fields, item=item))
        journal.put(_entry(stage, digest(table), table, part="table"))


def _entry(stage: str, key: str, fields: Mapping[str, Json], item: str = "", part: str = "item") -> Entry:
    return Entry(
        key=key,
        stage=stage,
        item=item,
        part=part,
        version=1,
        settings="",
        libraries="",
        inputs={},
        encoded=encode(Made(dict(fields))),
    )


def read_rows(path: Path) -> Iterator[dict[str, Json]]:
    """Yield the rows of a Parquet file."""
    import pyarrow.parquet as pq

    with pq.ParquetFile(path) as file:
        for batch in file.iter_batches():
            yield from batch.to_pylist()


def write_release(folder: Path, bundles: Sequence[Json]) -> Path:
    """Write the data files of a public release that validators read; return the folder.

    Bundles of the hidden test are counted and left out, as a packer does.
    """
    folder.mkdir(parents=True, exist_ok=True)
    public = [bundle for bundle in bundles if bundle["record"]["split"] != "hidden_test"]
    hidden = [bundle for bundle in bundles if bundle["record"]["split"] == "hidden_test"]
    records = [bundle["record"] for bundle in public]
    write_jsonl(folder / ANNOTATIONS, records)
    variants = [variant for bundle in public for variant in bundle["variants"]]
    write_jsonl(folder / VARIANTS, variants)
    producers = [{"id": bundle["record"]["story_id"], "fields": bundle["producers"]} for bundle in public]
    write_jsonl(folder / PRODUCERS, producers)
    counts = StatisticsCollector()
    for bundle in public:
        counts.add_record(bundle["record"])
        counts.add_producers(bundle["producers"], bundle["record"]["story_id"])
    for variant in variants:
        counts.add_variant(variant)
    parts = {name: sum(len(bundle["record"][name]) for bundle in hidden) for name in _PARTS}
    secret = HiddenCounts(
        stories=len(hidden), variants=sum(len(bundle["variants"]) for bundle in hidden), **parts
    )
    write_atomic(folder / STATISTICS, [pretty_bytes(counts.result(secret))])
    balance = moral_balance(record["moral_label"] for record in records)
    write_atomic(folder / MORAL_BALANCE, [pretty_bytes(balance)])
    manifest = {"format": 1, "kind": "katha", "created_at": CREATED_AT, "visibility": "public"}
    write_atomic(folder / RELEASE, [pretty_bytes(manifest)])
    return folder


_PARTS = ("scenes", "transitions", "questions")
