"""Pictures of a generation run as folders of outputs, one for each method, as evaluations read them."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from ..engine.execute import STORE
from ..errors import InputError, TargetError, UserError
from ..schemas.canonical import Json, jsonl_lines, link_or_copy, pretty_bytes, write_atomic
from ..schemas.plain_files import parse_json, read_plain
from .pipeline import GENERATIONS

MANIFEST = "outputs.json"
Row = dict[str, Any]


def generations_of(run: Path) -> dict[str, list[Row]]:
    """Return method -> what became of each of its pictures, in order."""
    path = run / GENERATIONS
    try:
        rows = [parse_json(line) for line in read_plain(path, follow=True).splitlines()]
    except (OSError, ValueError) as error:
        fix = "finish the run: the same command continues it"
        raise InputError([UserError(str(path), what=f"it cannot be read: {error}", fix=fix)]) from error
    methods: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        methods[row["method"]].append(row)
    return dict(methods)


def place_outputs(
    run: Path, outputs: Path, truth: Path | None = None, about: Mapping[str, Mapping[str, Json]] | None = None
) -> dict[str, Path]:
    """Lay out the pictures of a finished run below a folder; what lies there already and is right stays.

    ``truth``: where what drawn pictures show is written as data, a file for each method; None for nowhere.
    ``about``: method -> more keys of its ``outputs.json``.

    Returns:
        Method -> its folder.
    """
    placed = {}
    try:
        for method, rows in sorted(generations_of(run).items()):
            folder = outputs / method
            _place(run / STORE, folder, rows)
            seeds = sorted({row["seed"] for row in rows if row["seed"] is not None})
            manifest: Row = {"method": method, **({"seeds": seeds} if seeds else {})}
            manifest |= (about or {}).get(method, {})
            shown = ({name: value for name, value in row.items() if name != "truth"} for row in rows)
            write_atomic(folder / GENERATIONS, jsonl_lines(shown))
            write_atomic(folder / MANIFEST, [pretty_bytes(manifest)])
            if truth is not None and any(row.get("truth") is not None for row in rows):
                truth.mkdir(parents=True, exist_ok=True)
                write_atomic(truth / f"{method}.jsonl", jsonl_lines(_truths(rows)))
            placed[method] = folder
    except OSError as error:
        raise TargetError(
            str(outputs), what=f"the folder cannot be written: {error.strerror or error}",
            fix="check the path, its permissions and the space on the disk",
        ) from error  # fmt: skip
    return placed


def _place(store: Path, folder: Path, rows: Sequence[Row]) -> None:
    wanted = {}
    for row in rows:
        if row["outcome"] == "made":
            seed = [] if row["seed"] is None else [f"seed_{row['seed']}"]
            ending = row["file"].rpartition(".")[2]
            wanted[Path(row["story_id"], *seed, f"{row['panel']:02}.{ending}")] = store / row["file"]
    for path in [path for path in folder.rglob("*") if path.is_file()] if folder.is_dir() else []:
        if path.relative_to(folder) not in wanted and path.name not in (MANIFEST, GENERATIONS):
            path.unlink()
    for name, source in wanted.items():
        link_from_store(source, folder / name)


def link_from_store(source: Path, target: Path) -> None:
    """Put a file of a run's store at a place, without a copy where the disk can do so."""
    if target.exists() and source.exists() and target.samefile(source):
        return
    if not source.is_file():
        fix = "remove the run's store and journal, and generate into a new folder with --reuse and this run"
        raise InputError([UserError(str(source), what="a file is gone from the run's store", fix=fix)])
    link_or_copy(source, target)


def _truths(rows: Sequence[Row]) -> Iterator[Json]:
    for row in rows:
        if row.get("truth") is not None:
            yield {name: row[name] for name in ("story_id", "seed", "panel", "truth")}
