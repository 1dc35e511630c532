"""What packing a release tells: folders, version, counts, what was left out, and notes."""

from dataclasses import dataclass
from pathlib import Path

from ..schemas.canonical import Json
from .hidden.commitments import salt_beside
from .selection import LeftOut


@dataclass(frozen=True, slots=True)
class PackResult:
    """What was packed.

    Attributes:
        folder: the public release.
        hidden: the folder of the hidden-test stories, if there are any; their salt lies beside it.
        version: its version.
        counts: how many stories, scenes, transitions, questions and variants are public.
        left_out: the stories of the run that are in neither folder.
        notes: what a person should know, one sentence each.
    """

    folder: Path
    hidden: Path | None
    version: str
    counts: dict[str, int]
    left_out: tuple[LeftOut, ...]
    notes: tuple[str, ...]

    def as_json(self) -> dict[str, Json]:
        """Return the result as plain JSON."""
        return {
            "folder": str(self.folder),
            "hidden": None if self.hidden is None else str(self.hidden),
            "salt": None if self.hidden is None else str(salt_beside(self.hidden)),
            "version": self.version,
            "counts": dict(self.counts),
            "left_out": [entry.as_json() for entry in self.left_out],
            "notes": list(self.notes),
        }

    def summary(self) -> str:
        """Return the result as lines for people."""
        counted = ", ".join(f"{count} {name}" for name, count in self.counts.items())
        lines = [f"packed version {self.version}: {counted}", f"  release: {self.folder}"]
        if self.hidden is not None:
            lines.append(f"  hidden test, do not publish it: {self.hidden}")
            lines.append(
                f"  salt of the hidden test: {salt_beside(self.hidden)}\n"
                "    keep it secret and backed up; without it nobody can prove what the hidden test was"
            )
        return "\n".join([*lines, *(f"  note: {note}" for note in self.notes)])
