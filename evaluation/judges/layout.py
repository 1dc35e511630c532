"""How generated storyboards lie in a folder: numbered pictures per story, or per story and seed."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from pydantic import Field, PositiveInt, ValidationError

from ...errors import InputError, UserError
from ...schemas.base import Own
from ...schemas.katha import StoryRecord
from ...schemas.paths import format_path
from ...schemas.plain_files import read_plain, reason_of

MANIFEST = "outputs.json"
# The numbers may be padded; one plain word may stand before them.
_PANEL = re.compile(r"(?:(?:scene|panel|frame|image)[_-]?)?([0-9]{1,6})\.(?:png|jpe?g|webp)", re.I | re.ASCII)
_SEED = re.compile(r"seed_([0-9]{1,18})", re.ASCII)
_SYSTEM_FILES = ("thumbs.db", "desktop.ini")
_MOST_MANIFEST_BYTES = 20_000_000


class OutputsManifest(Own):
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
    folders: dict[str, str] = Field(
        default_factory=dict,
        description="Story id -> its folder below this one, where that bears neither the id nor the title.",
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


def read_manifest(folder: Path) -> OutputsManifest:
    """Return the manifest of a folder of outputs; an empty one where there is none.

    Raises:
        InputError: the folder is not there, or its manifest is not what it must be; all problems are listed.
    """
    if not folder.is_dir():
        raise InputError([_problem(str(folder), "a folder of generated storyboards", "none")])
    path = folder / MANIFEST
    if not path.exists():
        return OutputsManifest()
    try:
        data = read_plain(path, _MOST_MANIFEST_BYTES, follow=True)
        return OutputsManifest.model_validate(json.loads(data, object_pairs_hook=_each_once))
    except ValidationError as error:
        details = error.errors(include_url=False, include_input=False)
        raise InputError(
            [
                _problem(f"{path} {format_path(one['loc'])}", "a value that is allowed", one["msg"])
                for one in details
            ]
        ) from error
    except (OSError, ValueError, RecursionError) as error:
        raise InputError([_problem(str(path), "a JSON object", reason_of(error)[:200])]) from error


def _each_once(pairs: list[tuple[str, object]]) -> dict[str, object]:
    names = [name for name, _ in pairs]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ValueError(f"the key {twice[0]!r} twice")
    return dict(pairs)


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
