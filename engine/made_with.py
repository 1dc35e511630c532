"""With what the results of a stage are made, beyond what their keys hold: for whoever compares two runs.

Whatever made something is noted in the journal, each once: a run that was continued with other libraries
says both. Results that are taken over, merged or kept from earlier bring theirs along.
"""

import platform
import subprocess
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Any

from ..schemas.canonical import digest, sha256_bytes
from ..schemas.plain_files import parse_json
from ..version import __version__
from .journal import Journal

FACT = "made with:"
"""What the name of a fact starts with that says with what a stage worked; a digest of it follows."""
_ROOT = Path(__file__).resolve().parents[1]
_PATIENCE, _SHOWN = 20, 12


def note_made_with(journal: Journal, stage: str, settings: object) -> None:
    """Note with what a stage works: our version and commit, Python, and what its settings say of networks.

    Settings that name networks have a method ``networks``: their device, precision and libraries.
    """
    named: dict[str, Any] = getattr(settings, "networks", dict)()
    source = {"fabula": __version__, "commit": commit(), "python": platform.python_version()}
    made = {"stage": stage, "source": source, "networks": named}
    journal.note(f"{FACT}{digest(made)}", made)


def copy_made_with(journal: Journal, other: Journal, stage: str) -> None:
    """Note with what another run's stage worked, whose results are taken over."""
    for name, made in other.facts(FACT):
        if made["stage"] == stage:
            journal.note(name, made)


def made_with(journal: Journal) -> dict[str, Any]:
    """Return ``source`` and, by stage, ``networks``, of all that was noted; several values with commas."""
    noted = [made for _, made in journal.facts(FACT)]
    if not noted:
        return {}
    stages = sorted({made["stage"] for made in noted if made["networks"]})
    networks = {name: joined(made["networks"] for made in noted if made["stage"] == name) for name in stages}
    return {"source": joined(made["source"] for made in noted), "networks": networks}


def joined(values: Iterable[Any]) -> Any:  # noqa: ANN401 - any JSON
    """Return documents of one form as one; where they differ, every value in order."""
    listed = [value for value in values if value not in (None, {})]
    if listed and all(isinstance(value, Mapping) for value in listed):
        names = sorted({name for value in listed for name in value})
        return {name: joined(value.get(name) for value in listed) for name in names}
    return ", ".join(sorted({part for value in listed for part in str(value).split(", ")})) or None


@cache
def commit() -> str | None:
    """Return the commit of the code that runs, with a hash of what was changed since; None where unknown."""
    if (_ROOT / ".git").exists():
        lines = list(_git("rev-parse", "HEAD"))
        changed = next(_git("diff", "HEAD"), b"")
        head = lines[0].decode().strip() if lines else None
        return head and (f"{head}+{sha256_bytes(changed)[:_SHOWN]}" if changed else head)
    try:
        recorded = distribution("fabula").read_text("direct_url.json")
    except PackageNotFoundError:
        return None
    url = None if recorded is None else parse_json(recorded.encode())
    found = url.get("vcs_info", {}).get("commit_id") if isinstance(url, dict) else None
    return None if found is None else str(found)


def _git(*arguments: str) -> Iterator[bytes]:
    """Yield what git prints about the checkout; nothing where it cannot say."""
    command = ["git", "-C", str(_ROOT), *arguments]
    try:
        yield subprocess.run(command, capture_output=True, check=True, timeout=_PATIENCE).stdout
    except (OSError, subprocess.SubprocessError):
        return
