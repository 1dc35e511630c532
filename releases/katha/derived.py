"""A release with other questions: the same stories, asked something else.

Evaluators that are compared ask their own questions about the outputs of a benchmark, and whoever selects
outputs sees half of its questions. Both are releases for ``fabula evaluate stories``; no such folder is
published.
"""

from collections.abc import Iterable, Mapping
from pathlib import Path

from ...errors import TargetError
from ...schemas.canonical import Json, canonical_bytes, digest, jsonl_lines, pretty_bytes, write_atomic
from ...schemas.katha import StoryRecord, Variant
from ...schemas.paths import ANNOTATIONS, FORMAT, PRODUCERS, RELEASE, VARIANTS
from ...schemas.plain_files import read_json
from ..loading import KIND, Release
from ..target import writing

DERIVED = "derived"
"""Key of ``release.json`` under which such a folder says what it was made from, and how."""


def write_derived(
    release: Release,
    out: Path,
    records: Iterable[StoryRecord],
    how: Mapping[str, Json],
    variants: Iterable[Variant] | None = None,
) -> Path:
    """Write records as a folder that evaluations read; one that holds the same already is left as it is.

    ``variants``: the contrastive variants; None for those of the release.

    Returns:
        The folder.
    """
    told = sorted(records, key=lambda record: record.story_id)
    kept = release.variants if variants is None else tuple(variants)
    files = {
        ANNOTATIONS: list(jsonl_lines(record.as_json() for record in told)),
        VARIANTS: list(jsonl_lines(variant.as_json() for variant in kept)),
        PRODUCERS: [],
    }
    about = {"from": str(release.info.get("version")), "how": dict(how)}
    content = {name: digest([line.decode() for line in lines]) for name, lines in files.items()}
    document = {
        "format": FORMAT, "kind": KIND, "version": release.version, DERIVED: about, "content": content,
    }  # fmt: skip
    mark = out / RELEASE
    if out.is_dir() and not mark.exists() and not all(_is_ours(path.name) for path in out.iterdir()):
        raise TargetError(str(out), what="the folder holds something else", fix="choose another folder")
    with writing(out):
        if mark.is_file() and canonical_bytes(read_json(mark)) == canonical_bytes(document):
            return out
        out.mkdir(parents=True, exist_ok=True)
        mark.unlink(missing_ok=True)
        for part in out.glob(".*.part"):
            part.unlink()
        for name, lines in files.items():
            write_atomic(out / name, lines)
        write_atomic(mark, [pretty_bytes(document)])
    return out


def _is_ours(name: str) -> bool:
    """Whether a file is of such a folder, or a part of one that was being written when its writer ended."""
    listed = (ANNOTATIONS, VARIANTS, PRODUCERS, RELEASE)
    return name in listed or (name.endswith(".part") and any(name.startswith(f".{own}.") for own in listed))
