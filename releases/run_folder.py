"""What packing needs of a run folder: its manifest, its report and its finished records."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from ..errors import InputError, RunError, UserError
from ..schemas.canonical import Json, canonical_bytes

MANIFEST_FORMAT = 1
RECORDS = "records.jsonl"


@dataclass(frozen=True, slots=True)
class FinishedRun:
    """A run that has nothing left to do.

    Attributes:
        folder: where it is.
        manifest: its ``run.json``.
        report: its ``report.json``.
    """

    folder: Path
    manifest: Mapping[str, Json]
    report: Mapping[str, Json]

    @property
    def created_at(self) -> str:
        """When the run was created: the only time that enters a release."""
        return str(self.manifest["created_at"])

    @property
    def items_not_made(self) -> list[dict[str, Json]]:
        """The items that were rejected or failed, with stage, code and reason."""
        return [dict(item) for item in self.report.get("items", ()) if item.get("status") != "made"]

    def bundles(self) -> Iterator[dict[str, Json]]:
        """Yield the finished bundles in id order.

        Raises:
            InputError: a line cannot be read, is of another kind, or is out of order.
        """
        previous = ""
        with (self.folder / RECORDS).open("rb") as lines:
            for number, line in enumerate(lines, 1):
                envelope = self._envelope(line, number)
                if number > 1 and envelope["id"] <= previous:
                    raise InputError(
                        [
                            UserError(
                                f"{self.folder / RECORDS}:{number}",
                                expected="ids in ascending order, each once",
                                found=f"{envelope['id']!r} after {previous!r}",
                                fix="run the build again; it writes the file anew",
                            )
                        ]
                    )
                previous = envelope["id"]
                yield envelope["payload"]

    def _envelope(self, line: bytes, number: int) -> dict[str, Json]:
        try:
            envelope = json.loads(line)
            if b"\\ud" in line:
                canonical_bytes(envelope)  # a lone surrogate cannot be written as UTF-8
            record_id = envelope["payload"]["record"]["story_id"]
            if envelope["kind"] == "katha" and envelope["id"] == record_id:
                return dict(envelope)
            found = f"kind {envelope['kind']!r}, id {envelope['id']!r} for the record {record_id!r}"
        except (ValueError, KeyError, TypeError) as error:
            found = f"{type(error).__name__}: {error}"
        raise InputError(
            [
                UserError(
                    f"{self.folder / RECORDS}:{number}",
                    expected="an envelope of kind 'katha' around a record of the same id",
                    found=found,
                    fix="run the build again; it writes the file anew",
                )
            ]
        )


def open_finished_run(folder: Path) -> FinishedRun:
    """Open a run folder for packing.

    Raises:
        RunError: it is no run folder, was made by a newer version, or is not finished.
    """
    manifest = _document(
        folder, "run.json", "a run folder", "give the folder that `fabula build` wrote with --out"
    )
    made_with = manifest.get("format")
    if not isinstance(made_with, int) or made_with > MANIFEST_FORMAT:
        raise RunError(
            str(folder / "run.json"),
            expected=f"format {MANIFEST_FORMAT} or lower",
            found=f"format {made_with!r}",
            fix="use the version of Fabula that made the run, or a newer one",
        )
    if manifest.get("kind") != "katha" or "created_at" not in manifest:
        raise RunError(
            str(folder / "run.json"),
            expected="a run of kind 'katha' with created_at",
            found=f"kind {manifest.get('kind')!r}, created_at {manifest.get('created_at')!r}",
            fix="give the folder of a `fabula build katha` run",
        )
    finish = f"finish it with the same `fabula build katha` command, --out {folder}"
    report = _document(folder, "report.json", "a finished run", finish)
    pending = report.get("totals", {}).get("pending", 0)
    if pending:
        raise RunError(
            str(folder), expected="a finished run", found=f"{pending} items still to do", fix=finish
        )
    if not (folder / RECORDS).is_file():
        raise RunError(str(folder), expected="a finished run", found=f"no {RECORDS}", fix=finish)
    return FinishedRun(folder, manifest, report)


def _document(folder: Path, name: str, expected: str, fix: str) -> dict[str, Json]:
    path = folder / name
    try:
        document = json.loads(path.read_bytes())
    except FileNotFoundError as error:
        raise RunError(str(folder), expected=expected, found=f"no {name}", fix=fix) from error
    except (OSError, ValueError) as error:
        raise RunError(str(path), expected="a readable JSON document", found=str(error), fix=fix) from error
    if not isinstance(document, dict):
        raise RunError(str(path), expected="a JSON object", found=type(document).__name__, fix=fix)
    return document
