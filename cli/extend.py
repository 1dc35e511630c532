"""``fabula extend``: add stories to a run; what it holds stays as it is."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ..schemas.text import quoted
from .build import incomplete_lines, summary_first
from .command import command
from .common import model_bill, say, show, used_since

if TYPE_CHECKING:
    from ..builders.katha.extend import ExtendOptions


@command("extend", "builders.katha.extend:ExtendOptions")
def extend(run: Path, sources: Sequence[Path], *, options: "ExtendOptions", as_json: bool = False) -> int:
    """Add stories to a finished run.

    The records, ids and splits that the run has stay as they are, byte for byte. The new stories pass the
    same stages with the settings of the run. A story is refused if the run has it already (the same text,
    nearly the same, or a translation of it), or if its id was withdrawn.

    Options:
        sources: JSONL or CSV files, or folders of .txt and .md files.

    Examples:
        fabula extend runs/mine new_stories.jsonl
        fabula extend runs/mine new_stories.jsonl --records hand.jsonl --dry-run
        fabula release pack runs/mine --version auto --since dist/mine-0.1.0 --out dist/mine-0.2.0
    """
    from ..api.calling import choose_reporter
    from ..builders.katha.extend import extend_katha

    before = model_bill(run)
    with summary_first(run, as_json=as_json):
        report = extend_katha(run, sources, options, reporter=choose_reporter(as_json=as_json))
    show(report, as_json=as_json)
    if not as_json and report.run is not None:
        used = used_since(before, run)
        say(
            *((used,) if used else ()),
            *incomplete_lines(run),
            f"next: fabula release pack {quoted(run)} --version auto --since RELEASE --out NEW",
            "RELEASE is the one published before, NEW a new folder",
        )
    elif not as_json and options.dry_run:
        say("nothing was written")
    return 0
