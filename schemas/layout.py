"""What run and release folders hold: the names of their files (Table 23 and ours) and of splits."""

import re
from pathlib import Path

RECORDS, ASSIGNMENTS, BALANCE = "records.jsonl", "assignments.jsonl", "balance.json"
"""What a builder writes into a run folder; the engine names the files that it writes itself."""
SOURCES = "sources.jsonl"
"""The same: what is known of where stories are from, beyond their collection."""
RETELLINGS = "retellings.jsonl"
"""The same: groups of stories that retell one another, with what shows it."""

FORMAT = 1
"""The newest layout of release folders that this version reads; ``release.json`` states it."""

RELEASE = "release.json"
ANNOTATIONS, VARIANTS = "annotations.jsonl", "contrastive_variants.jsonl"
REVIEWS, PRODUCERS = "human_validation.jsonl", "producers.jsonl"
DRAFTS = "drafts"
STATES = "states"
"""How many of its records are in which state, as ``release.json`` says."""
STAND_INS = "stand_ins"
"""How many of its records are drafts, as ``release.json`` says; releases of earlier versions do not."""
STATISTICS, MORAL_BALANCE = "statistics.json", "moral_balance_requirements.json"
IMPORTED = "imported"
"""Key of ``release.json`` under which the import of somebody else's package says where it comes from."""
JSONL_FILES = (ANNOTATIONS, VARIANTS, PRODUCERS)
VOTE_FILES = (REVIEWS, "human_gold_1k.jsonl", "strict_gold_400.jsonl")

SOURCE_MANIFEST = "source_manifest.json"
LICENSE = "LICENSE"
CARD = "dataset_card.md"
README = "README.md"
CROISSANT = "croissant_metadata.json"
SUMS = "SHA256SUMS"
CANARY = "CANARY.txt"
SUBSETS = "subsets.json"
"""How close each subset is to the whole; their members stand in files of their own."""

CHANGES = "changes.json"
"""What changed since the version before, by id and JSON path."""

DATA = "data"
HIDDEN_SPLIT = "hidden_test"
WHOLE = "whole"
"""Visibility of a folder whose package holds its hidden-test stories among the others."""
WITHDRAWN = "withdrawn"
"""Code of the stories of a run that were taken out for good."""
SPLIT_FILES = {"train": "train", "validation": "validation", "public_test": "test"}
"""Split of a record -> the name of its Parquet files and of the split that ``datasets`` sees (no dashes)."""

RECORD_IDS = {ANNOTATIONS: "story_id", VARIANTS: "variant_id", PRODUCERS: "id"}
"""JSONL file -> the field that names a line; lines are sorted by it."""


def parquet_path(table: str, split_file: str) -> str:
    """Return the path of one Parquet file in a release, with forward slashes."""
    return f"{DATA}/{table}/{split_file}.parquet"


def hidden_folder(public: Path) -> Path:
    """Return where the hidden-test stories of a release lie: its sibling ``<name>-hidden``."""
    return public.with_name(f"{public.name}-hidden")


_OF_A_CLONE = re.compile(r"\.gitattributes|\.git/.*|\.cache/huggingface/.*", re.DOTALL)
"""What a Hub or its client adds to a copy of a release; it is no part of it, and is never published."""


def files_in(folder: Path, *, clone: bool = False) -> list[str]:
    """Return every file of a release under its folder as a relative path with forward slashes, sorted."""
    found = (
        path.relative_to(folder).as_posix()
        for path in folder.rglob("*")
        if path.is_symlink() or not path.is_dir()
    )
    return sorted(path for path in found if clone or _OF_A_CLONE.fullmatch(path) is None)
