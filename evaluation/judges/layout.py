"""How generated storyboards lie in a folder: numbered pictures per story, or per story and seed."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from pydantic import Field, PositiveInt

from ...errors import InputError, UserError
from ...schemas.katha import StoryRecord
from ..named_outputs import NamedFolders

# The numbers may be padded; one plain word may stand before them.
_PANEL = re.compile(r"(?:(?:scene|panel|frame|image)[_-]?)?([0-9]{1,6})\.(?:png|jpe?g|webp)", re.I | re.ASCII)
_SEED = re.compile(r"seed_([0-9]{1,18})", re.ASCII)
_SYSTEM_FILES = ("thumbs.db", "desktop.ini")


class OutputsManifest(NamedFolders):
    """``outputs.json``: what the pictures alone do not tell. Everything in it is optional."""

    method: str | None = Field(default=None, min_length=1, description="Name of the method [the folder's].")
    panels: PositiveInt | dict[str, PositiveInt] | None = Field(
        default=None,
        description="Pictures of every story, or of each story named, bridge frames not counted "
        "[as many as the story has scenes].",
    )
    bridges: dict[str, tuple[PositiveInt, ...]] = Field(
        default_factory=dict, description="Story id -> which of its pictures are bridge frames, from 1."
    )
    seeds: tuple[int, ...] | None = Field(
        default=None, min_length=1, description="Seeds of every story [those that any story has]."
    )

    def panels_of(self, record: StoryRecord) -> int:
        """Return how many pictures a storyboard must have, bridge frames included."""
        planned = self.panels.get(record.story_id) if isinstance(self.panels, dict) else self.panels
        return (planned or len(record.scenes)) + len(set(self.bridges.get(record.story_id, ())))

    def scenes_of(self, record: StoryRecord) -> tuple[int | None, ...]:
        """Return which scene each picture shows, as far as it is known.

        None for bridge frames, and for all where pictures and scenes do not correspond one to one.
        """
        bridges = set(self.bridges.get(record.story_id, ()))
        panels = self.panels_of(record)
        shown = [number for number in range(1, panels + 1) if number not in bridges]
        if len(shown) != len(record.scenes):
            return (None,) * panels
        scene = dict(zip(shown, (scene.scene_index for scene in record.scenes), strict=True))
        return tuple(scene.get(number) for number in range(1, panels + 1))


@dataclass(frozen=True, slots=True)
class Listed:
    """What lies in one folder.

    Attributes:
        panels: number and file of each picture, sorted by number and name.
        seeds: seed -> its folder; several where a seed is written in several ways (``seed_1``, ``seed_01``).
        strays: names of everything else.
    """

    panels: tuple[tuple[int, Path], ...] = ()
    seeds: tuple[tuple[int, Path], ...] = ()
    strays: tuple[str, ...] = ()


def list_folder(folder: Path, *, with_seeds: bool = True) -> Listed:
    """Return what lies in the folder of a story, or of a seed; hidden files are left out.

    Raises:
        InputError: the folder cannot be read.
    """
    panels, seeds, strays = [], [], []
    for entry in entries(folder):
        panel, seed = _PANEL.fullmatch(entry.name), _SEED.fullmatch(entry.name)
        if panel and not entry.is_dir():
            panels.append((int(panel[1]), entry))
        elif seed and with_seeds and entry.is_dir():
            seeds.append((int(seed[1]), entry))
        else:
            strays.append(entry.name)
    return Listed(tuple(sorted(panels)), tuple(sorted(seeds)), tuple(sorted(strays)))


def entries(folder: Path) -> Iterator[Path]:
    """Yield what lies in a folder by name, without hidden files and those that systems leave behind.

    Raises:
        InputError: the folder cannot be read.
    """
    try:
        found = sorted(folder.iterdir(), key=lambda one: one.name)
    except OSError as error:
        raise InputError([_problem(str(folder), "a folder that can be read", str(error.strerror))]) from error
    for entry in found:
        if not entry.name.startswith(".") and entry.name.lower() not in _SYSTEM_FILES:
            yield entry


def _problem(where: str, expected: str, found: str) -> UserError:
    return UserError(where, expected=expected, found=found, fix="see docs/outputs.md for the layout")
