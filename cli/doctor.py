"""``fabula doctor``: what this machine has, and what that allows."""

import sys
from pathlib import Path

from .command import command
from .common import emit, say


@command("doctor")
def doctor(*, as_json: bool = False) -> int:
    """Check this machine: Python, libraries, extras, keys, disk.

    System libraries and the cache are checked too. Keys are never shown.

    Exits with 3 if something that the core needs is missing.

    Examples:
        fabula doctor
        fabula doctor --json
    """
    from .checkup import checkup

    findings = checkup(Path.cwd())
    if as_json:
        emit([finding.as_dict() for finding in findings])
    else:
        for finding in findings:
            say(f"{finding.status:8}{finding.name:24}{finding.detail}")
            if finding.fix:
                say(f"{'':8}fix: {finding.fix}")
    sys.stdout.flush()
    return 3 if any(finding.status == "missing" for finding in findings) else 0
