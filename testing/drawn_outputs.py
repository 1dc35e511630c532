"""Outputs of the drawn renderers for a plan, without a run: pictures in their folders, the truth beside."""

from collections.abc import Iterable, Sequence
from pathlib import Path

from ..models.generators.drawn.figures import draw_scene
from ..models.generators.drawn.images import FAITHFUL, encode_png, forgetting
from ..models.generators.request import PictureRequest
from ..schemas.canonical import Json, jsonl_lines, write_atomic
from ..schemas.katha import StoryRecord
from ..studies.pictures import Plan, PlannedPanel

SIDE = 256


def draw_method(
    outputs: Path, records: Iterable[StoryRecord], plan: Plan, renderer: str = FAITHFUL,
    seeds: Sequence[int | None] = (), truth: Path | None = None,
) -> Path:  # fmt: skip
    """Draw every scene of some stories as a study would; return the folder of the method."""
    folder = outputs / f"{plan.name}+{renderer}"
    rows: list[Json] = []
    for record in records:
        for seed in seeds or (None,):
            below = folder / record.story_id / ("" if seed is None else f"seed_{seed}")
            below.mkdir(parents=True, exist_ok=True)
            for panel in plan.panels(record):
                data, shown = draw_panel(panel, renderer, seed)
                (below / f"{panel.scene:02}.png").write_bytes(data)
                rows.append({"story_id": record.story_id, "seed": seed, "panel": panel.scene, "truth": shown})
    if truth is not None:
        write_atomic(truth, jsonl_lines(rows))
    return folder


def draw_panel(panel: PlannedPanel, renderer: str, seed: int | None) -> tuple[bytes, Json]:
    """Return one picture of a plan and what it shows."""
    asked = PictureRequest(f"image:drawn:{renderer}", panel.prompt, seed=seed)
    drawing = draw_scene(panel.drawn, (SIDE, SIDE), forgetting(renderer, asked))
    return encode_png(drawing.canvas.image), drawing.truth()
