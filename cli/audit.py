"""``fabula audit``: how good the drafts of a planner are."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..errors import ConfigError
from ..schemas.text import tallied
from .build import dry_folder
from .command import command
from .common import chosen_form, released, say, show, show_tables, warn

if TYPE_CHECKING:
    from ..people.audits.auditing import AuditOptions


@command("audit", "people.audits.auditing:AuditOptions", without=("replace_sources", "shard"))
def audit(
    draft: Path,
    *,
    options: "AuditOptions",
    gold: Path | None = None,
    out: Path | None = None,
    sample: Annotated[int, typer.Option(min=0)] = 0,
    dry_run: bool = False,
    form: str | None = None,
    as_json: bool = False,
) -> int:
    """Measure drafts of stories against gold records, and by people.

    Compares scene boundaries, characters, decisive acts, transitions, causes, questions, accepted answers,
    variants and labels. With a model, its answers from the text alone show which questions are sound. For
    people, a form with a rubric is written and read back. Every share has an interval.

    Options:
        draft: Run of build stories, release of stories, or file of records.
        gold: Gold records of the same stories.
        out: Folder for audit.json, audit.html and the form; needed with --model and --sample.
        sample: Write form.csv there, with so many parts of each kind for people to judge.

    Examples:
        fabula audit runs/mine --gold runs/gold
        fabula audit runs/mine --gold runs/gold --model openai:gpt-4.1-mini --max-cost 2 --out runs/audit
        fabula audit runs/mine --sample 40 --out runs/audit
        fabula audit runs/mine --gold runs/gold --read ana.csv --read ben.csv --out runs/audit --json
    """
    from ..api.calling import choose_reporter
    from ..people.audits.auditing import FORM, PAGE, audit, estimate_audit
    from ..people.audits.compare import read_records
    from ..people.audits.form import write_form

    form = chosen_form(form, as_json=as_json)
    draft, gold = released(draft), released(gold)
    if dry_run:
        with dry_folder(out) as folder:
            show(estimate_audit(draft, gold, folder, options), as_json=form == "json")
        return 0
    if sample:
        if out is None:
            raise ConfigError("--out", what="the folder for the form is not given", fix="--out runs/audit")
        count = write_form(out / FORM, read_records(draft), sample, options.seed)
        warn(
            f"written: {out / FORM} ({tallied(count, 'lines')}); "
            "fill the columns sound and reason, read it with --read"
        )
    result = audit(draft, gold, out, options, choose_reporter(as_json=form == "json"))
    show_tables(result, result.tables, form)
    if out is not None and form == "text":
        say(f"page: {out / PAGE}")
    return 0
