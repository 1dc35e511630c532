"""The run that carries out orders: its stages, what may be chosen, and the file that a finished run holds."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...engine.config import RunConfig
from ...engine.estimate import CallPlan, plan_calls
from ...engine.execute import STORE, RunRequest, Source
from ...engine.pipeline import Pipeline
from ...engine.run_options import RunOptions, setting_texts
from ...engine.running import RunKind
from ...engine.stage import Item
from ...engine.status import RunReport
from ...errors import ConfigError, InputError, TargetError
from ...schemas.canonical import Json, jsonl_lines, link_or_copy, pretty_bytes, write_atomic
from ...schemas.plain_files import parse_json, read_plain, reason_of
from .load_orders import ROLE
from .plans import read_orders

if TYPE_CHECKING:
    from ...engine.hooks import Reporter

GENERATIONS = "generations.jsonl"
"""One line for each picture that was ordered: what was asked, and what came of it."""
PIPELINE = Pipeline(
    name="generate",
    stages=tuple(f"{__package__}.{name}" for name in ("load_orders", "rewrite_prompts", "render_pictures")),
    finish=f"{__name__}:finish",
    final_fields=("order",),
    identity=f"{__package__}.load_orders:identity",
)


@dataclass(frozen=True, slots=True)
class GenerateOptions(RunOptions):
    """How to carry out orders. What every run may choose comes as keywords."""


def without_generators(config: RunConfig) -> RunConfig:
    """Return settings under which nobody is asked."""
    bare = {"render_pictures": {"generators": ()}, "rewrite_prompts": {"writers": ()}}
    stages = {
        name: settings.model_copy(update=bare.get(name, {})) for name, settings in config.stages.items()
    }
    return replace(config, stages=stages, models={})


def tell_generating(request: RunRequest, reporter: "Reporter") -> None:
    """Tell how many calls a new run makes and about what they cost, or what it has cost so far."""
    from ...builders.drafting import tell_plan

    tell_plan(request, reporter, without_generators)


RUN = RunKind(PIPELINE, tell_generating)
"""How orders are carried out."""


def generate_request(orders: Path, out: Path, options: GenerateOptions) -> RunRequest:
    """Return what the engine is to execute."""
    listed = read_orders(orders)
    if not listed:
        raise ConfigError(str(orders), what="it holds no order", fix="order at least one storyboard")
    given = {
        "render_pictures.generators": sorted({order.model for order in listed}),
        "rewrite_prompts.writers": sorted({order.rewrite for order in listed if order.rewrite is not None}),
        # A storyboard whose generator cannot be reached is an item that is run again; no share of the
        # others is too small to go on with.
        "run.threshold": 0.0,
    }
    return options.request(PIPELINE, out, [Source(ROLE, orders)], setting_texts(given))


def generate(
    orders: Path, out: Path, options: GenerateOptions | None = None, reporter: "Reporter | None" = None
) -> RunReport:
    """Carry out orders; a run is continued, and no picture that was made is asked for again."""
    return RUN.make(generate_request(orders, out, options or GenerateOptions()), reporter)


def estimate_generation(orders: Path, out: Path, options: GenerateOptions | None = None) -> CallPlan:
    """Tell what :func:`generate` would ask now, and about what that costs. Asks nothing."""
    request = generate_request(orders, out, options or GenerateOptions())
    return plan_calls(request, without_generators(request.config))


def finish(folder: Path, items: Iterable[Item]) -> None:
    """Write ``generations.jsonl``."""
    write_atomic(folder / GENERATIONS, jsonl_lines(row for item in items for row in _rows(item)))


def _rows(item: Item) -> Iterable[dict[str, Json]]:
    order = item["order"]
    head = {"method": order["method"], "story_id": order["story_id"], "seed": order["seed"],
            "model": order["model"], "rewritten": order.get("rewrite")}  # fmt: skip
    for panel, picture in zip(order["panels"], item["pictures"], strict=True):
        ordered = {"ordered": panel["prompt"]} if head["rewritten"] else {}
        yield {**head, **ordered, **picture}


# -- Pictures of a generation run as folders of outputs, one for each method, as evaluations read them

MANIFEST = "outputs.json"
Row = dict[str, Any]


def generations_of(run: Path) -> dict[str, list[Row]]:
    """Return method -> what became of each of its pictures, in order."""
    path = run / GENERATIONS
    try:
        rows = [parse_json(line) for line in read_plain(path, follow=True).splitlines()]
    except (OSError, ValueError) as error:
        fix = "finish the run: the same command continues it"
        raise InputError.one(str(path), what=f"it cannot be read: {reason_of(error)}", fix=fix) from error
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
        raise InputError.one(str(source), what="a file is gone from the run's store", fix=fix)
    link_or_copy(source, target)


def _truths(rows: Sequence[Row]) -> Iterator[Json]:
    for row in rows:
        if row.get("truth") is not None:
            yield {name: row[name] for name in ("story_id", "seed", "panel", "truth")}
