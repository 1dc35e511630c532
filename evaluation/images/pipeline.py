"""The stages of evaluating shot images, in order, and the files that a finished run holds."""

from collections.abc import Iterable, Iterator
from pathlib import Path

from ...engine.asking import UNASKED
from ...engine.execute import STORE
from ...engine.manifest import read_manifest
from ...engine.pipeline import Pipeline
from ...engine.stage import Item
from ...schemas.canonical import Json, jsonl_lines, write_atomic
from ...schemas.judgement import Judgement
from ..archive.archive import merged, write_archive
from .about import About
from .found import IMAGES

KIND = "evaluate-images"

SHOWN = ("number", "onstage", "expected", "sha256")
"""What a line says of a shot."""

PIPELINE = Pipeline(
    name=KIND,
    stages=tuple(
        f"{__package__}.{name}"
        for name in (
            "load_stories", "detect_characters", "encode_crops", "encode_pictures", "match_crops",
            "prepare_views", "judge_alignment",
        )
    ),
    finish=f"{__name__}:finish",
    final_fields=("story", "facts", "shots", "outputs", "boxes", "crops", "pictures", "views"),
)  # fmt: skip


def finish(folder: Path, items: Iterable[Item]) -> None:
    """Write archive, manifest, and what was found in the pictures into the run folder."""
    run = read_manifest(folder)
    about = About(run)

    def lines() -> Iterator[Json]:
        for item in items:
            about.add(item)
            yield line_of(item)

    def judgements() -> Iterator[Judgement]:
        for item in items:
            method, _, story = item.id.rpartition("/")
            for row in item["ratings"]:
                if row["outcome"] == UNASKED:
                    about.leave(row)
                    continue
                fixed = {"protocol": "images", "method": method, "unit": story, "seed": None}
                yield Judgement.model_validate({**fixed, "time": run.created_at, **row})

    write_atomic(folder / IMAGES, jsonl_lines(lines()))
    kept = merged([("the run", judgements())])
    for judgement in kept:
        about.count(judgement)
    write_archive(folder, about.manifest(), kept)


def line_of(item: Item) -> Json:
    """Return what the archive keeps of a method's story, besides ratings; no path of this machine."""
    method, _, story = item.id.rpartition("/")
    sheets = item["story"]["script"].get("Characters", {})
    return {
        "method": method,
        "story_id": story,
        "characters": {key: sheet.get("tag") for key, sheet in sheets.items()},
        "facts": item["facts"],
        "references": {
            key: [image["sha256"] for image in images]
            for key, images in item["story"]["references"].items()
        },
        "shots": [
            {name: shot[name] for name in SHOWN} for shot in item["shots"]
        ],
        "boxes": item["boxes"],
        "crops": item["crops"],
        "pictures": item["pictures"],
        "views": {
            "shots": {key: _kept(view) for key, view in item["views"]["shots"].items()},
            "crops": [_kept(view) for view in item["views"]["crops"]],
        },
    }  # fmt: skip


def _kept(view: Json) -> Json:
    return {**view, "file": f"{STORE}/{view['file']}"}
