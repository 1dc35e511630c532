"""``fabula validate``: every finding about a run, a release, a JSONL file or a suite, in one pass."""

from pathlib import Path

from .command import command
from .common import released, show_findings


@command("validate")
def validate(path: Path, *, strict: bool = False, everything: bool = False, as_json: bool = False) -> int:
    """Check schemas and every rule. Exits with 1 if there are errors; warnings alone do not count.

    Options:
        path: Run, release, JSONL file, suite (.json), shot scripts, episodes.
        strict: Warnings count as errors: they exit with 1 too.

    Examples:
        fabula validate runs/mine
        fabula validate annotations.jsonl --json
        fabula validate runs/shots
        fabula validate runs/eb
        fabula validate all_prompts.json
    """
    from ..kinds.verbs import validate as check

    report = check(released(path))
    return show_findings(report, as_json=as_json, strict=strict, everything=everything)
