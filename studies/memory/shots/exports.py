"""Packets in the form that a named generator reads, from a description of its files.

A description is a TOML file: which files there are, what is in them, where pictures go. Texts in it are Jinja
templates, run in Jinja's sandbox; ``docs/memory.md`` tells what they can use.
"""

import io
import shlex
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal

from pydantic import Field

from ....engine.calls import model_uses
from ....engine.execute import STORE
from ....engine.journal import NAME as JOURNAL
from ....engine.manifest import read_manifest
from ....errors import InputError, UserError
from ....evaluation.report.showing import Thumbnails
from ....media.images import encode_image
from ....pages.page import policy_of, save_page, style_of, template_of
from ....releases.entities.tree import read_entity_set
from ....releases.target import DescribedFile, Description, Templates, read_description
from ....schemas.canonical import (
    Plain,
    link_or_copy,
    new_folder,
    pretty_bytes,
    sha256_bytes,
    write_atomic,
    writing,
)
from ....schemas.plain_files import explaining, parse_json, read_plain, reason_of
from ....schemas.text import tallied
from .layout import CELLS, Keyframe, places_of
from .packets import BANK, EPISODES, PACKET, Packet, PacketImage

# -- Layouts as a storyboard: a strip for each scene, with keyframes, the camera's moves, and what it cost

PAGE = "layouts.html"
SIDE, MOST_PICTURES = 288, 600
"""Longer side of a small picture, in pixels; and how many the page has at most, so that it stays light."""
_CELL, _ROW = 40, 15
"""Width of a cell in the plan of a keyframe, and height of a line, in pixels."""
_FORMS = "docs/memory.md"
_TURNS = {"left": "⟵ pans left", "right": "pans right ⟶"}

Placed = tuple[Packet, Path]
"""A packet and its folder."""


def write_strips(path: Path, packets: Sequence[Placed], run: Path) -> None:
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


# -- The packets of a finished run as folders: for each shot its ``packet.json`` and its pictures

PACKETS, PACKETS_FILE = "packets", "packets.jsonl"
"""Folder of a run with a folder for each episode and shot; and one line for each packet."""
FIX = "make the packets again: fabula memory packets"


@dataclass(frozen=True, slots=True)
class PlacedPacket:
    folder: Path
    packet: Packet

    def picture(self, file: str) -> bytes:
        path = self.folder / file
        with explaining(path, FIX, of=OSError):
            return read_plain(path, follow=True)


def place_packets(run: Path) -> None:
    """Lay out the packets of a run below its folder ``packets``, and its storyboard ``layouts.html``.

    What lies there and is right stays; what no packet names is removed. A run without packets gets nothing.
    """
    if not (run / PACKETS_FILE).is_file():
        return
    root = run / PACKETS
    bank = _bank_of(run)
    wanted: set[Path] = set()
    placed: list[PlacedPacket] = []
    with writing(run):
        for packet, portraits in _rows(run):
            folder = root / packet.episode_id / packet.name
            folder.mkdir(parents=True, exist_ok=True)
            for image in packet.images:
                if image.file is None or image.sha256 is None:
                    continue
                wanted.add(folder / image.file)
                source = run / STORE / f"{image.sha256}.png" if image.role == "keyframe" else None
                _place(source or bank / portraits[image.file], folder / image.file, image.sha256)
            content = pretty_bytes(packet.as_json())
            if not (folder / PACKET).is_file() or (folder / PACKET).read_bytes() != content:
                write_atomic(folder / PACKET, [content])
            wanted.add(folder / PACKET)
            placed.append(PlacedPacket(folder, packet))
        _sweep(root, wanted)
        write_strips(run / PAGE, [(each.packet, each.folder) for each in placed], run)


def read_packets(folder: Path) -> tuple[PlacedPacket, ...]:
    """Return all packets below a run, or below its folder ``packets``: by episode, in story order."""
    root = folder / PACKETS if (folder / PACKETS).is_dir() else folder
    problems: list[UserError] = []
    placed = []
    for path in sorted(root.glob(f"*/*/{PACKET}")):
        try:
            placed.append(PlacedPacket(path.parent, Packet.model_validate_json(read_plain(path))))
        except (OSError, ValueError) as error:
            problems.append(UserError(str(path), what=f"no packet: {reason_of(error)[:300]}", fix=FIX))
    if not placed and not problems:
        problems.append(UserError(str(folder), what="there are no packets", fix=FIX))
    if problems:
        raise InputError(problems)
    return tuple(sorted(placed, key=lambda each: (each.packet.episode_id, each.packet.index)))


def _rows(run: Path) -> Iterator[tuple[Packet, Mapping[str, str]]]:
    for line in read_plain(run / PACKETS_FILE).splitlines():
        row = parse_json(line)
        yield Packet.model_validate(row["packet"]), row["bank"]


def _bank_of(run: Path) -> Path:
    sources = read_manifest(run).source_list(run.absolute())
    return next(source.path for source in sources if source.role == BANK)


def _place(source: Path, target: Path, sha256: str) -> None:
    """Put a picture at a place, without a copy where the disk can do so."""
    if target.is_file() and sha256_bytes(target.read_bytes()) == sha256:
        return
    with explaining(source, FIX, what="a picture is gone", of=OSError):
        data = read_plain(source, follow=True)
    if sha256_bytes(data) != sha256:
        raise InputError.one(str(source), what="it was changed since the packets were made", fix=FIX)
    link_or_copy(source, target)


def _sweep(root: Path, wanted: set[Path]) -> None:
    """Remove what earlier packets left, and folders that are empty then."""
    for path in sorted(root.rglob("*"), reverse=True):
        if path.is_dir() and not path.is_symlink():
            if not any(path.iterdir()):
                path.rmdir()
        elif path not in wanted:
            path.unlink()


# -- Packets in the form that a named generator reads, from a description of its files

QUALITY = 95
"""Of a picture that goes out as JPEG, 1 to 95; colours are not subsampled."""


class ExportFile(DescribedFile):
    """One file that a generator reads."""

    per: Literal["set", "episode", "shot"] = Field(
        default="set", description="One file for all, or one each."
    )


class ExportForm(Description):
    """What a generator reads."""

    image: str = Field(
        default="{{ episode.id }}/{{ shot.name }}/{{ image.file }}",
        description="Where a picture goes; a template. One that ends in .jpg is written as JPEG.",
    )
    result: str = Field(
        default="{{ episode.id }}/{{ shot.name }}.mp4",
        description="Where the video of a shot goes, below the folder of outputs; a template.",
    )
    shot: dict[str, str] = Field(default_factory=dict, description="More texts of each shot; templates.")
    file: tuple[ExportFile, ...] = Field(min_length=1, description="The files.")


@dataclass(frozen=True, slots=True)
class Exported(Plain):
    """What was written."""

    out: Path  # the folder
    files: tuple[str, ...]  # paths of the files, in order
    images: int  # how many pictures
    shots: int  # of how many shots
    frames: int  # how many shots need the last frame of the one before, which the generator has to pass on

    def lines(self) -> list[str]:
        listed = self.files[0] if len(self.files) == 1 else tallied(len(self.files), "files")
        passed = f"{tallied(self.frames, 'shots')} beginning with the last frame of the shot before"
        return [
            f"{self.out}: {listed}, "
            f"{tallied(self.images, 'pictures')} for {tallied(self.shots, 'shots')}; {passed}"
        ]


def overviews_of(folder: Path) -> dict[str, str]:
    """Return episode -> the overview of its story, of a run of packets; nothing of another folder."""
    if not (folder / PACKETS_FILE).is_file():
        return {}
    sources = read_manifest(folder).source_list(folder.absolute())
    script = next(source.path for source in sources if source.role == EPISODES)
    episodes, _ = read_entity_set(script, rules=False)
    return {each.episode_id: each.script.story_overview or "" for each in episodes.episodes}


def export_packets(
    packets: Sequence[PlacedPacket], name: str, out: Path, values: Mapping[str, str | int | float],
    overviews: Mapping[str, str] = MappingProxyType({}),
) -> Exported:  # fmt: skip
    """Write packets in the form of a generator.

    ``overviews``: episode -> the overview of its story; of those that are not there it is empty.
    """
    filling = _Filling(name, packets, values, overviews)
    written = list(filling.files())
    with new_folder(out):
        for path, placed, file in filling.pictures:
            _write(out / path, _picture(placed.picture(file), path))
        for path, text in written:
            _write(out / path, text.encode("utf-8"))
    frames = sum(placed.packet.first_frame is not None for placed in packets)
    return Exported(out, tuple(path for path, _ in written), len(filling.pictures), len(packets), frames)


def _write(path: Path, data: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)


def _picture(data: bytes, path: str) -> bytes:
    if not path.lower().endswith((".jpg", ".jpeg")):
        return data
    from PIL import Image

    with Image.open(io.BytesIO(data)) as image:
        return encode_image(image.convert("RGB"), format="jpeg", quality=QUALITY)


class _Filling(Templates):
    """The templates of a description, filled with packets.

    Attributes:
        pictures: path below the new folder, packet, and its file, of each picture.
    """

    def __init__(
        self, name: str, packets: Sequence[PlacedPacket], values: Mapping[str, str | int | float],
        overviews: Mapping[str, str],
    ) -> None:  # fmt: skip
        self._form = read_description(name, ExportForm, __package__, _FORMS)
        super().__init__(name, self._form, values, _FORMS, {"shell": shlex.quote})
        self.pictures: list[tuple[str, PlacedPacket, str]] = []
        episodes: dict[str, dict[str, Any]] = {}
        for placed in packets:
            key = placed.packet.episode_id
            episode = episodes.setdefault(key, {"id": key, "overview": overviews.get(key, ""), "shots": []})
            episode["shots"].append(self._shot(placed, episode))
        self.common["episodes"] = list(episodes.values())

    def files(self) -> Iterator[tuple[str, str]]:
        seen = {path for path, _, _ in self.pictures}
        for number, file in enumerate(self._form.file, 1):
            where = f"file {number}"
            for given in self._units(file.per):
                path = self.path(file.path, where, **given)
                if path in seen:
                    raise self.bad(f"{where}: {path} is written twice")
                seen.add(path)
                yield path, self.written(file, where, **given).lstrip("\n")

    def _units(self, per: str) -> Iterator[dict[str, Any]]:
        if per == "set":
            yield {}
        for episode in self.common["episodes"] if per != "set" else ():
            if per == "episode":
                yield {"episode": episode}
            else:
                yield from ({"episode": episode, "shot": shot} for shot in episode["shots"])

    def _shot(self, placed: PlacedPacket, episode: Mapping[str, Any]) -> dict[str, Any]:
        packet = placed.packet
        shot: dict[str, Any] = {
            **packet.as_json(), "name": packet.name, "continues": packet.first_frame is not None,
            "before": episode["shots"][-1] if episode["shots"] else None,
        }  # fmt: skip
        given = {"episode": episode, "shot": shot}
        shot["images"] = []
        for image in packet.images:
            if image.file is None:
                continue
            entry = {**image.as_json(), "place": len(shot["images"])}
            entry["path"] = self.path(self._form.image, "image", **given, image=entry)
            shot["images"].append(entry)
            self.pictures.append((entry["path"], placed, image.file))
        shot["result"] = self.path(self._form.result, "result", **given)
        for name, template in self._form.shot.items():
            shot[name] = self.filled(template, f"shot.{name}", **given)
        return shot
