"""Layouts as a storyboard: a strip for each scene, with keyframes, the camera's moves, and what it cost."""

from collections import Counter
from collections.abc import Iterator, Sequence
from html import escape
from pathlib import Path
from typing import Any

from ....engine.calls import model_uses
from ....engine.journal import NAME as JOURNAL
from ....evaluation.report.pictures import Thumbnails
from ....pages.page import policy_of, save_page, style_of, template_of
from .layout import CELLS, Keyframe, places_of
from .packets import Packet, PacketImage

PAGE = "layouts.html"
SIDE, MOST_PICTURES = 288, 600
"""Longer side of a small picture, in pixels; and how many the page has at most, so that it stays light."""
_CELL, _ROW = 40, 15
"""Width of a cell in the plan of a keyframe, and height of a line, in pixels."""
_TURNS = {"left": "⟵ pans left", "right": "pans right ⟶"}

Placed = tuple[Packet, Path]
"""A packet and its folder."""


def write_strips(path: Path, packets: Sequence[Placed], run: Path) -> None:
    """Write the storyboard of a run's packets."""
    save_page(path, render_strips(packets, _cost_lines(run)))


def render_strips(packets: Sequence[Placed], cost: Sequence[str]) -> str:
    """Return the page. All texts of episodes are escaped and isolated in their direction."""
    style = style_of("strips.css", __package__)
    left = [MOST_PICTURES]
    episodes: dict[str, list[Placed]] = {}
    for placed in packets:
        episodes.setdefault(placed[0].episode_id, []).append(placed)
    page: str = template_of("strips.j2", __package__).render(
        style=style, policy=policy_of(style), cells=CELLS,
        totals=_totals([packet for packet, _ in packets]), cost=cost,
        episodes=[
            {"id": name, "scenes": [_scene(scene, left) for scene in _scenes(shots)]}
            for name, shots in episodes.items()
        ],
    )  # fmt: skip
    return page


def _totals(packets: Sequence[Packet]) -> dict[str, int]:
    layouts = [packet.layout for packet in packets]
    by = Counter(layout.by for layout in layouts)
    return {
        "shots": len(packets),
        "that go on from the shot before": sum(layout.continues for layout in layouts),
        "keyframes": sum(len(layout.keyframes) for layout in layouts),
        "turns of the camera": sum(frame.pan != "none" for layout in layouts for frame in layout.keyframes),
        "layouts by rules": by["rules"],
        "layouts by a model": by["model"],
        "where rules stood in for the model": sum(layout.reason is not None for layout in layouts),
        "scheduled entities": sum(len(packet.entities) for packet in packets),
        "of these without a description anywhere": sum(len(packet.unregistered) for packet in packets),
    }


def _cost_lines(run: Path) -> list[str]:
    path = run / JOURNAL
    uses = model_uses(path) if path.is_file() else ()
    return [
        f"{use.stage} asked {use.model} {use.calls} times:"
        f" {use.input_tokens} tokens in, {use.output_tokens} out, "
        + ("price unknown" if use.unpriced else f"{use.cost:.4f} USD")
        for use in uses
    ]


def _scenes(shots: Sequence[Placed]) -> Iterator[list[Placed]]:
    scene: list[Placed] = []
    for placed in shots:
        if scene and placed[0].scene != scene[0][0].scene:
            yield scene
            scene = []
        scene.append(placed)
    if scene:
        yield scene


def _scene(shots: Sequence[Placed], left: list[int]) -> dict[str, Any]:
    return {"number": shots[0][0].scene, "shots": [_shot(packet, folder, left) for packet, folder in shots]}


def _shot(packet: Packet, folder: Path, left: list[int]) -> dict[str, Any]:
    pictures = {image.keyframe: image for image in packet.images if image.role == "keyframe"}
    layout = packet.layout
    return {
        "key": packet.shot, "continues": layout.continues, "action": packet.action, "by": layout.by,
        "reason": layout.reason, "reasoning": layout.reasoning, "unregistered": packet.unregistered,
        "lists": [
            (label, names)
            for label, names in (
                ("stay", layout.retained), ("come in", layout.entering), ("are gone", layout.leaving)
            )
            if names
        ],
        "keyframes": [
            {
                "picture": _small(pictures.get(number), folder, left), "angle": frame.angle,
                "turn": _TURNS.get(frame.pan, ""), "location": frame.location, "shows": frame.shows,
                "plan": _plan(frame), "alt": _said(frame),
                "objects": [
                    f"{thing.name} (beside {thing.user})" if thing.user else thing.name
                    for thing in frame.objects
                ],
            }
            for number, frame in enumerate(layout.keyframes, 1)
        ],
    }  # fmt: skip


def _small(image: PacketImage | None, folder: Path, left: list[int]) -> dict[str, Any] | None:
    """Return a small picture as data; None where there is none, or the page has enough."""
    if image is None or image.file is None or not left[0]:
        return None
    left[0] -= 1
    frame = Thumbnails(SIDE).frame(folder / image.file, "")
    return {"data": frame.data, "width": frame.width, "height": frame.height} if frame.data else None


def _said(frame: Keyframe) -> str:
    """Return a keyframe in words."""
    people = ", ".join(f"{standing.name} {standing.cell}" for standing in frame.characters)
    return f"{people or 'nobody'}; {frame.location or 'no place'} from the {frame.angle}"


def _plan(frame: Keyframe) -> str:
    """Return the seven cells with who stands in them, as SVG; names stand below each other."""
    places = sorted(places_of(frame).items(), key=lambda row: row[1])
    width, height = _CELL * len(CELLS), _ROW * (len(places) + 1) + 4
    cells = "".join(
        f'<rect x="{_CELL * cell + 1}" y="1" width="{_CELL - 2}" height="{_ROW - 3}" rx="3"'
        f' class="{"taken" if cell in dict(places).values() else "free"}"/>'
        for cell in range(len(CELLS))
    )
    names = "".join(
        f'<text x="{_at(cell)}" y="{_ROW * (row + 2) - 2}" text-anchor="{_anchor(cell)}">'
        f"{escape(name)}</text>"
        for row, (name, cell) in enumerate(places)
    )
    return (
        f'<svg class="plan" viewBox="0 0 {width} {height}" width="{width}" height="{height}" role="img"'
        f' aria-label="{escape(_said(frame))}">{cells}{names}</svg>'
    )


def _at(cell: int) -> int:
    return {"start": _CELL * cell + 2, "middle": _CELL * cell + _CELL // 2, "end": _CELL * (cell + 1) - 2}[
        _anchor(cell)
    ]


def _anchor(cell: int) -> str:
    return "start" if cell < 3 else "middle" if cell == 3 else "end"
