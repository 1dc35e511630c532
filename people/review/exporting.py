"""What comes out of a study as files: votes, results, and for a review of records the files of a release."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ...schemas.canonical import canonical_bytes, new_folder, pretty_bytes, write_atomic
from ...validators.careless import CARELESS
from .care import care, care_lines
from .folder import Study
from .records import DRAWS
from .release_files import write_review_files
from .results import results
from .votes import human_rows

VOTES, RESULTS, PROTOCOLS = "votes.jsonl", "results.json", "protocols.json"


@dataclass(frozen=True)
class ExportedFiles:
    """What was written.

    Attributes:
        folder: where.
        counts: what -> how many.
        next: what to do with it.
        care: what a reader of the votes must know first.
    """

    folder: Path
    counts: Mapping[str, int] = field(default_factory=dict)
    next: tuple[str, ...] = ()
    care: tuple[str, ...] = ()

    def as_json(self) -> dict[str, Any]:
        """Return it as plain JSON."""
        return {"folder": str(self.folder), **self.counts, "care": list(self.care), "next": list(self.next)}

    def lines(self) -> Iterator[str]:
        """Return it for people."""
        yield f"written to {self.folder}: " + ", ".join(
            f"{count:,} {name}" for name, count in self.counts.items()
        )
        yield from self.care
        yield from (f"next: {line}" for line in self.next)


def export_files(study: Study, folder: Path, *, withdraw: bool = False) -> ExportedFiles:
    """Write what came out of a study into a new folder.

    Args:
        study: the study.
        folder: a new or empty folder.
        withdraw: whether records that reviewers rejected are withdrawn by the edits.

    Raises:
        TargetError: the folder is not empty, or cannot be written.
    """
    from .protocol import versions

    standing = study.standing()
    with new_folder(folder):
        document = results(study, standing)
        careful = care(study, standing)
        write_atomic(folder / CARELESS, [pretty_bytes(careful)])
        signs = tuple(care_lines(careful))
        write_atomic(folder / RESULTS, [pretty_bytes(document)])
        write_atomic(folder / PROTOCOLS, [pretty_bytes([each.as_json() for each in versions(study.folder)])])
        if study.task.card.draws == DRAWS:
            written = write_review_files(study, standing, folder, withdraw=withdraw)
            counts = {
                "records": written.records, "votes": written.votes, "edits": written.edits,
                "open_cases": written.open,
            }  # fmt: skip
            edit = f"fabula edit RUN --from {folder / 'edits.jsonl'}"
            pack = f"fabula release pack RUN --version X --reviews {folder}"
            pack += " --accept-careless" if careful["people"] else ""
            return ExportedFiles(folder, counts, (edit, pack), signs)
        rows = human_rows(study, standing)
        write_atomic(folder / VOTES, (canonical_bytes(row.as_json()) + b"\n" for row in rows))
    return ExportedFiles(
        folder, {"lines": len(rows)}, (f"fabula calibrate EVALUATION --human {folder / VOTES} --save",), signs
    )
