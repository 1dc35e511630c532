"""``fabula validate``: every finding about a run, a release, a JSONL file or a suite, in one pass."""

from pathlib import Path

from .command import command
from .common import released, show_findings


@command("validate")
def validate(path: Path, *, strict: bool = False, everything: bool = False, as_json: bool = False) -> int:
    """Check schemas and every rule. Exits with 1 if there are findings.

    Options:
        path: Run, release, JSONL file, suite (.json), shot scripts, episodes.
        strict: Warnings count as findings too.

    Examples:
        fabula validate runs/mine
        fabula validate annotations.jsonl --json
        fabula validate runs/shots
        fabula validate runs/eb
        fabula validate all_prompts.json
    """
    from ..releases.entity_tree import holds_episodes, read_entity_set
    from ..releases.shot_facts import holds_scripts
    from ..releases.shot_tree import read_shot_set
    from ..releases.suites import check_suite
    from ..validators import validate as check

    folder = released(path)
    if holds_scripts(folder):
        report = read_shot_set(folder)[1]
    elif holds_episodes(folder):
        report = read_entity_set(folder)[1]
    else:
        report = check_suite(folder) or check(folder)
    return show_findings(report, as_json=as_json, strict=strict, everything=everything)
