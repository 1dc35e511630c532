"""Storyboards as a data set of their own, which the Hub shows and ``datasets`` loads.

A method's pictures are no part of a benchmark, so they are no release: a folder with the pictures, one table
with their bytes, a card and checksums. Under which licence they may be given away, only their owner knows.
"""

import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path

from ...errors import ConfigError, InputError
from ...media.images import MediaProblem, open_picture
from ...releases.loading import Release
from ...releases.options import Licence, licence
from ...releases.pack.packing import checksums, file_entries, front_matter_text, size_category, table_info
from ...releases.parquet import TableWriter, table
from ...releases.target import markdown, require_free, staged
from ...schemas.canonical import Json
from ...schemas.paths import README, SUMS, parquet_path
from ...schemas.text import slug
from .storyboards import Storyboards

SPLIT = "test"
TABLE = table(
    "storyboards", "One row per picture of a storyboard.", "method story_id seed number",
    ("method", "text", "Name of the method that made it."),
    ("story_id", "text", "The story, by its id in the release."),
    ("seed", "integer", "Seed of the generation; null where there is one per story."),
    ("number", "integer", "Number of the picture in its storyboard, from 1."),
    ("scene", "integer", "Scene of the story that it shows; null for a bridge frame, or where nobody said."),
    ("file", "text", "Path of the picture in this folder."),
    ("image", "picture", "The picture, byte for byte."),
)  # fmt: skip


def share_storyboards(
    methods: Sequence[Storyboards], release: Release, out: Path, license: str
) -> dict[str, int]:
    """Write the storyboards that can be judged into a new folder.

    Returned: how many methods, storyboards and pictures there are, and how many storyboards were left out.
    """
    chosen = licence(license)
    if release.info.get("visibility") == "hidden":
        fix = "give the public release"
        raise ConfigError(str(release.path), what="pictures of hidden stories tell the stories", fix=fix)
    counts = {
        "methods": len(methods),
        "storyboards": sum(len(method.valid) for method in methods),
        "pictures": sum(len(board.files) for method in methods for board in method.valid),
        "left out": sum(len(method.invalid) for method in methods),
    }
    if not counts["pictures"]:
        first = methods[0].path if methods else out
        fix = "run `fabula outputs check` on the outputs"
        raise InputError.one(str(first), what="no storyboard can be shared", fix=fix)
    require_free(out)
    with staged(out.absolute()) as (draft,):
        with TableWriter(draft) as writer:
            for row in _rows(methods, draft):
                writer.add(TABLE, SPLIT, row)
        card = _card(release, chosen, counts, writer, draft)
        (draft / README).write_text(card, "utf-8")
        (draft / SUMS).write_bytes(checksums(draft))
    return counts


def _rows(methods: Sequence[Storyboards], draft: Path) -> Iterator[dict[str, Json]]:
    """Copy every picture, and yield its row."""
    folders: dict[str, str] = {}
    for method in methods:
        plain = slug(method.method) or "method"
        folder = plain if plain not in folders.values() else f"{plain}-{len(folders) + 1}"
        folders[method.method] = folder
        for board in method.valid:
            seed = [] if board.seed is None else [f"seed_{board.seed}"]
            for panel in board.files:
                name = f"{panel.number:02d}{panel.file.suffix.lower()}"
                file = "/".join(("pictures", folder, board.unit, *seed, name))
                _copy(panel.file, draft / file)
                yield {
                    "method": method.method, "story_id": board.unit, "seed": board.seed,
                    "number": panel.number, "scene": panel.scene, "file": file,
                    "image": {"path": file, "sha256": panel.sha256},
                }  # fmt: skip


def _copy(source: Path, target: Path) -> None:
    try:
        open_picture(source)
    except MediaProblem as problem:
        fix = "if it is a video, take its frames with `fabula outputs keyframes`"
        what = f"it is no picture: {problem.what}"
        raise InputError.one(str(source), what=what, fix=fix) from problem
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(source, target)


def _card(release: Release, chosen: Licence, counts: dict[str, int], writer: TableWriter, draft: Path) -> str:
    about = release.info.get("about", {})
    known = about.get("title") or release.path.name
    title, name = f"Storyboards of {known}", f"{about.get('name') or known} {release.version}"
    path = parquet_path(TABLE.name, SPLIT)
    front = {
        "pretty_name": title,
        "license": chosen.hub_id,
        "size_categories": [size_category(counts["pictures"])],
        "task_categories": ["text-to-image"],
        "tags": ["storyboard", "story-visualization"],
        "dataset_info": [table_info(TABLE, {SPLIT: path}, writer.counts, writer.bytes, file_entries(draft))],
        "configs": [
            {"config_name": TABLE.name, "default": True, "data_files": [{"split": SPLIT, "path": path}]}
        ],
    }
    columns = "\n".join(f"| `{column.name}` | {column.description} |" for column in TABLE.columns)
    told = ", ".join(f"{count:,} {what}" for what, count in counts.items() if what != "left out")
    return (
        f"---\n{front_matter_text(front)}---\n\n# {markdown(title)}\n\n"
        f"{told}, made for the stories of {markdown(name)}. `story_id` names the stories; they are not here."
        "\n\n"
        f"| column | meaning |\n|---|---|\n{columns}\n\n"
        f"Licence of the pictures: {chosen.name} ({chosen.spdx_id}).\n"
    )
