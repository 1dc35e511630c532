"""The packets of a finished run as folders: for each shot its ``packet.json`` and its pictures."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from ....engine.execute import STORE
from ....engine.manifest import read_manifest
from ....errors import InputError, TargetError, UserError
from ....schemas.canonical import link_or_copy, pretty_bytes, sha256_bytes, write_atomic
from ....schemas.plain_files import parse_json, read_plain, reason_of
from .load_shots import BANK
from .packets import PACKET, Packet
from .strips import PAGE, write_strips

PACKETS, PACKETS_FILE = "packets", "packets.jsonl"
"""Folder of a run with a folder for each episode and shot; and one line for each packet."""
FIX = "make the packets again: fabula memory packets"


@dataclass(frozen=True, slots=True)
class PlacedPacket:
    """A packet with its folder."""

    folder: Path
    packet: Packet

    def picture(self, file: str) -> bytes:
        """Return the bytes of one of its pictures."""
        path = self.folder / file
        try:
            return read_plain(path, follow=True)
        except OSError as error:
            raise InputError(
                [UserError(str(path), what=f"it cannot be read: {error.strerror}", fix=FIX)]
            ) from error


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
    try:
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
    except OSError as error:
        raise TargetError(
            str(run), what=f"the folder cannot be written: {error.strerror or error}",
            fix="check the path, its permissions and the space on the disk",
        ) from error  # fmt: skip


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
    try:
        data = read_plain(source, follow=True)
    except OSError as error:
        what = f"a picture is gone: {error.strerror}"
        raise InputError([UserError(str(source), what=what, fix=FIX)]) from error
    if sha256_bytes(data) != sha256:
        raise InputError([UserError(str(source), what="it was changed since the packets were made", fix=FIX)])
    link_or_copy(source, target)


def _sweep(root: Path, wanted: set[Path]) -> None:
    """Remove what earlier packets left, and folders that are empty then."""
    for path in sorted(root.rglob("*"), reverse=True):
        if path.is_dir() and not path.is_symlink():
            if not any(path.iterdir()):
                path.rmdir()
        elif path not in wanted:
            path.unlink()
