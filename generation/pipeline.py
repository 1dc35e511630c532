"""The run that carries out orders: its stages, what may be chosen, and the file that a finished run holds."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from ..engine.config import RunConfig
from ..engine.estimate import CallPlan, plan_calls
from ..engine.execute import RunRequest, Source
from ..engine.pipeline import Pipeline
from ..engine.report import RunReport
from ..engine.run_options import RunOptions, setting_texts
from ..engine.running import RunKind
from ..engine.stage import Item
from ..errors import ConfigError
from ..schemas.canonical import Json, jsonl_lines, write_atomic
from .load_orders import ROLE
from .orders import read_orders

if TYPE_CHECKING:
    from ..engine.progress import Reporter

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
    from ..builders.spending import tell_plan

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
