"""Inserted frames made by a generator: orders for the run that makes pictures."""

from collections.abc import Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING

from ...engine.execute import STORE
from ...engine.run_options import RunOptions
from ...errors import TargetError
from ...generation.orders import ORDERS, Order, PanelOrder, read_orders, write_orders
from ...generation.pipeline import GenerateOptions, generate
from ...generation.placing import generations_of
from .frames import FrameRequest, Frames
from .spending import Ledger

if TYPE_CHECKING:
    from ...engine.progress import Reporter

_SEPARATOR = "~"
METHOD = "inserted"
FRAMES = "frames"
"""What its run is called in a ledger."""


@dataclass(frozen=True)
class FrameMaker:
    """Has frames made by one generator; a :data:`.frames.Render`.

    All frames are orders of one engine run, which grows: what was made is not asked for again, whoever wants
    it next.

    Attributes:
        folder: where the orders and the run lie.
        model: spec of the generator, such as ``image:drawn``.
        options: how to run.
        width: of a frame in pixels; None leaves it to the generator.
        height: the same.
        steps: of denoising; None leaves it to the generator.
        negative: what must not be seen.
        reporter: takes the progress.
        ledger: what its runs cost, and others with the same limit.
    """

    folder: Path
    model: str
    options: GenerateOptions = field(default_factory=GenerateOptions)
    width: int | None = None
    height: int | None = None
    steps: int | None = None
    negative: str | None = None
    reporter: "Reporter | None" = None
    ledger: Ledger = field(default_factory=Ledger)

    def __call__(self, requests: Sequence[FrameRequest]) -> Frames:
        """Return the pictures; None for those that the generator refused or spoiled.

        Raises:
            FabulaError: as :func:`fabula.generation.pipeline.generate`.
        """
        if not requests:
            return {}
        orders = [self._order(request) for request in requests]
        path = self.folder / ORDERS
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            before = read_orders(path) if path.is_file() else ()
            write_orders(path, {order.key: order for order in (*before, *orders)}.values())
        except OSError as error:
            raise TargetError(
                str(self.folder), what=f"the orders cannot be written: {error.strerror or error}",
                fix="check the path, its permissions and the space on the disk",
            ) from error  # fmt: skip
        run = self.folder / "run"
        options = replace(self.options, max_cost=self.ledger.left(FRAMES), replace_sources=True)
        self.ledger.enter(FRAMES, generate(path, run, options, self.reporter))
        rows = {
            (row["method"], row["story_id"], row["seed"]): row
            for some in generations_of(run).values()
            for row in some
        }
        return {
            request.key: None if (row := rows[order.method, order.story_id, order.seed])["outcome"] != "made"
            else run / STORE / row["file"]
            for request, order in zip(requests, orders, strict=True)
        }  # fmt: skip

    def _order(self, request: FrameRequest) -> Order:
        method = _SEPARATOR.join((METHOD, request.shows, f"t{request.transition}"))
        panel = PanelOrder(number=1, prompt=request.prompt, scene=request.scene)
        return Order(
            method=method, story_id=request.story_id, seed=request.seed, model=self.model, width=self.width,
            height=self.height, steps=self.steps, negative=self.negative, panels=(panel,),
        )  # fmt: skip


def frame_maker(
    folder: Path, model: str, options: RunOptions, ledger: Ledger, reporter: "Reporter | None"
) -> FrameMaker:
    """Return what has frames made by a generator, with the options that every run has.

    Args:
        folder: where its orders and its run lie.
        model: spec of the generator.
        options: of the evaluation; what is judges' own is left out.
        ledger: shared with the judges.
        reporter: takes the progress.
    """
    kept = {
        name.name: getattr(options, name.name)
        for name in fields(RunOptions)
        if name.name not in ("settings", "reuse", "replace_sources", "shard")
    }
    return FrameMaker(folder, model, GenerateOptions(**kept), ledger=ledger, reporter=reporter)
