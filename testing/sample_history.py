"""The history of the sample benchmark: its versions 0.1.0 and 0.2.0, made by the commands.

    python -m fabula.testing.sample_history releases/history

Version 0.2.0 adds three stories with their records, corrects one answer and withdraws one story. What is
kept is the manifest (``release.json``) of each version, what changed between them (``changes.json``), and
what ``fabula release diff`` says of it (``diff.txt``); the data are not.
"""

import contextlib
import io
import shutil
import sys
import tempfile
from importlib.resources import as_file, files
from pathlib import Path

from ..schemas.canonical import sha256_bytes

VERSIONS = ("0.1.0", "0.2.0")
CREATED, EXTENDED = "2026-01-01T00:00:00Z", "2026-06-01T00:00:00Z"
SALT = sha256_bytes(b"the sample benchmark has no secrets")
"""The salt of the hidden story, which anybody can read among the samples; a real one is drawn at random."""
ABOUT = (
    *("--name", "fabula-sample-fables"),
    *("--title", "Fabula sample fables"),
    *("--creator", "The Fabula developers"),
    *("--license", "CC-BY-4.0"),
)
CORRECTED = ("--who", "reviewer", "--why", "the text says how much")
CORRECTIONS = (
    ("kb25k_0005", "$.questions[4].gold_answer", "--new", '"A bag of silver"', *CORRECTED),
    ("kb25k_0013", "--withdraw", "--who", "reviewer", "--why", "too harsh for young readers"),
)


DRAFTS = (*ABOUT, "--allow-drafts")
"""No reviewer has read the sample records, and nobody judged the corrected question anew."""


def make_history(folder: Path) -> Path:
    """Make both versions in a folder: ``0.1.0`` and ``0.2.0``, with their run beside them.

    Returns:
        The folder ``history`` in it, which holds what is kept.
    """
    run, salt = folder / "run", folder / "salt"
    first, second = (folder / version for version in VERSIONS)
    salt.write_text(SALT + "\n", "ascii")
    with as_file(files("fabula.builders.katha") / "samples") as samples:
        stories, records = samples / "stories.jsonl", samples / "gold.jsonl"
        command("build", "katha", stories, "--records", records, "--out", run, "--created-at", CREATED)
    command("release", "pack", run, "--version", VERSIONS[0], "--out", first, "--salt", salt, *DRAFTS)
    go_on(run)
    command("release", "pack", run, "--version", "auto", "--since", first, "--out", second, *DRAFTS)
    kept = folder / "history"
    for version in VERSIONS:
        (kept / version).mkdir(parents=True)
        for name in ("release.json", "changes.json"):
            if (folder / version / name).exists():
                shutil.copy(folder / version / name, kept / version / name)
    (kept / VERSIONS[1] / "diff.txt").write_text(command("release", "diff", first, second), "utf-8")
    return kept


def go_on(run: Path) -> None:
    """Take the run of version 0.1.0 to that of 0.2.0."""
    with as_file(files("fabula.builders.katha") / "samples") as samples:
        later, records = samples / "later_stories.jsonl", samples / "later_gold.jsonl"
        command("extend", run, later, "--records", records, "--created-at", EXTENDED, "--workers", 0)
    for correction in CORRECTIONS:
        command("edit", run, *correction)
    command("run", "retry", run, "--workers", 0)


def command(*arguments: object) -> str:
    """Run a command in this process; return its standard output."""
    from ..cli.main import app

    output, errors = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(output), contextlib.redirect_stderr(errors):
        code = app(args=[str(argument) for argument in arguments], standalone_mode=False)
    if code:
        raise RuntimeError(f"fabula {' '.join(map(str, arguments))} exited with {code}: {errors.getvalue()}")
    return output.getvalue()


def main(target: str) -> None:
    """Write the history into a folder, in place of what is there under the names of the versions."""
    with tempfile.TemporaryDirectory(prefix="fabula-history-") as scratch:
        kept = make_history(Path(scratch))
        for version in VERSIONS:
            shutil.rmtree(Path(target) / version, ignore_errors=True)
            shutil.copytree(kept / version, Path(target) / version)


if __name__ == "__main__":
    main(*sys.argv[1:])
