"""Where the videos of a method lie: by the suite's file names, by seed, or as ``outputs.json`` says."""

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ...errors import InputError, UserError
from ..named_outputs import MANIFEST, NamedFiles, named_places, read_manifest, require_distinct

_SEED = re.compile(r"seed_(0|[1-9][0-9]{0,17})", re.ASCII)


@dataclass(frozen=True, slots=True)
class MethodVideos:
    """The videos of one method.

    Attributes:
        folder: of the method, which bears its name.
        seeds: of its sub-folders ``seed_N``; only null where it has none.
        named: file name in the suite -> file below the folder, or below that of each seed, where
            ``outputs.json`` says so.
    """

    folder: Path
    seeds: tuple[int | None, ...]
    named: Mapping[str, str] = field(default_factory=dict)

    def below(self, unit: str, seed: int | None) -> str:
        """Return where the video of a prompt is looked for, by its path in the method's folder."""
        name = self.named.get(unit, unit)
        return name if seed is None else f"seed_{seed}/{name}"

    def path(self, unit: str, seed: int | None) -> Path:
        """Return where the video of a prompt is looked for."""
        return self.folder / self.below(unit, seed)

    def own(self) -> set[str]:
        """Return what ``outputs.json`` names in the method's folder, and the file itself, by path there."""
        return {MANIFEST, *(self.below(unit, seed) for unit in self.named for seed in self.seeds)}


def videos_of(folder: Path, units: Collection[str]) -> MethodVideos:
    """Return where the videos of a method lie.

    Args:
        folder: of the method.
        units: the file names of the suite.

    Raises:
        InputError: ``outputs.json`` is not what it must be, names a file that is none of the suite's, or a
            place that cannot be used. OSError: the folder cannot be read.
    """
    named = read_manifest(folder, NamedFiles).files
    seeds = seeds_of(folder)
    for place in folder_of_each_seed(folder, seeds):
        named_places(place, "files", named, units.__contains__, "prompt of the suite")
    taken = {str(Path(name)): unit for unit, name in named.items()}
    problems = [
        UserError(
            f"{folder / MANIFEST} $.files.{taken[unit]}", what=f"{unit} is the video of another prompt",
            fix="name the file of that prompt, too",
        )
        for unit in units
        if taken.get(unit, unit) != unit and unit not in named
    ]  # fmt: skip
    if problems:
        raise InputError(problems)
    return MethodVideos(folder, seeds, named)


def seeds_of(folder: Path) -> tuple[int | None, ...]:
    """Return the seeds of a method by its sub-folders ``seed_N``; only null where it has none."""
    seeds = [
        int(found[1]) for path in folder.iterdir() if path.is_dir() and (found := _SEED.fullmatch(path.name))
    ]
    return tuple(sorted(seeds)) or (None,)


def folder_of_each_seed(folder: Path, seeds: Sequence[int | None]) -> list[Path]:
    """Return the folder of each seed: that of the method where there is one video per prompt."""
    return [folder if seed is None else folder / f"seed_{seed}" for seed in seeds]


def check_methods(folders: Sequence[Path]) -> None:
    """Check that the folders are there, and each of another method.

    Raises:
        InputError: one is no folder. ConfigError: two have the same name.
    """
    problems = [
        UserError(str(folder), what="there is no such folder of generated videos", fix="check the path")
        for folder in folders
        if not folder.is_dir()
    ]
    if problems:
        raise InputError(problems)
    require_distinct([folder.name for folder in folders])
