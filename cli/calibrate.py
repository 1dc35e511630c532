"""``fabula calibrate``: an evaluation beside what people said."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..errors import ConfigError
from ..schemas.text import tallied
from .build import dry_folder
from .command import command
from .common import chosen_form, released, say, show, show_tables, warn

if TYPE_CHECKING:
    from ..evaluation.report.formats import Table
    from ..evaluation.stats.tables import TableCorrelations
    from ..people.audits.auditing import AuditOptions
    from ..people.study import Exclusion


@command("calibrate", "people.study:Exclusion", owners="kinds.evaluations:owners_of_studies")
def calibrate(
    run: Path,
    *,
    options: "Exclusion",
    human: Path,
    release: Path | None = None,
    suite: Path | None = None,
    key: Path | None = None,
    valid: str = "people",
    nonresponse: str | None = None,
    confidence: Sequence[str] = (),
    fit_weights: Path | None = None,
    resamples: Annotated[int, typer.Option(min=0)] = 10_000,
    define: Sequence[str] = (),
    save: bool = False,
    form: str | None = None,
    as_json: bool = False,
) -> int:
    """Compare judges with people; no model is asked.

    Also shows what people answered. For shot images, every score is compared with people's ratings of stories
    and shots.

    Options:
        run: Evaluation folder.
        human: People's answers: .jsonl, .csv, or what `fabula review export` wrote.
        release: Release that was judged [where the evaluation found it].
        suite: Suite that was judged [the evaluation's copy].
        key: Key of anonymised tasks.
        valid: Whose text+image answers make a question valid: people, judges; all.
        nonresponse: No answer counts as incorrect (zero) or is excluded [excluded; events: zero].
        confidence: Probability a level stands for, as high=0.9.
        fit_weights: Write judges' weights here, fitted on the validation split.
        resamples: Bootstrap resamples.
        define: A named definition, such as cids=code, occm=code, csd=code.
        save: Keep it beside the evaluation, so that fabula report shows it.

    Examples:
        fabula calibrate runs/eval-a --human human.jsonl
        fabula calibrate runs/eval-b --human people.csv --key key.json --json
        fabula calibrate runs/eval-c --human people.csv --define cids=code
    """
    from ..evaluation.report.people import write_calibration
    from ..kinds.evaluations import calibrate as compare
    from ..kinds.evaluations import definitions_said, judging_of, require_options_of_study, study_of
    from ..people.against import LEVELS
    from ..people.recoverability import Resampling
    from ..people.study import StudySettings, write_weights

    form = chosen_form(form, as_json=as_json)
    settings = StudySettings(
        exclusion=options,
        resampling=Resampling(resamples),
        levels={**LEVELS, **_levels(confidence, tuple(LEVELS))},
        valid=valid,
        nonresponse=nonresponse,  # type: ignore[arg-type]  # checked by the class
        fit_split=None if fit_weights is None else "validation",
    )
    release = released(release)
    require_options_of_study(
        run,
        {
            "release": release, "suite": suite, "key": key, "nonresponse": nonresponse,
            "confidence": confidence, "fit_weights": fit_weights, "save": save, "define": define,
        },
    )  # fmt: skip
    source = release if release is not None else suite
    if "define" in study_of(run).options:
        warn(*definitions_said(run))
    report = compare(run, human, source, settings, key, define)
    if fit_weights is not None:
        write_weights(report, fit_weights)
    if save:
        write_calibration(run, report.document)
    of_people = judging_of(run).scored().of_people
    show_tables(report, lambda: of_people and of_people(report.document), form)
    return 0


def _levels(texts: Sequence[str], known: tuple[str, ...]) -> dict[str, float]:
    """Return level -> probability from texts such as ``high=0.9``."""
    found = {}
    for text in texts:
        name, _, number = text.partition("=")
        try:
            value = float(number)
        except ValueError:
            value = -1.0
        if name not in known or not 0 <= value <= 1:
            raise ConfigError(
                "--confidence", expected=f"one of {', '.join(known)}, = and a number from 0 to 1",
                found=repr(text), fix="write it as high=0.9",
            )  # fmt: skip
        found[name] = value
    return found


# -- ``fabula audit``: how good the drafts of a planner are


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


# -- ``fabula correlate``: how two tables of numbers correlate


@command("correlate")
def correlate(
    first: Path,
    second: Path,
    *,
    on: str,
    columns: str = "",
    alias: Sequence[str] = (),
    exclude: Sequence[str] = (),
    form: str | None = None,
    as_json: bool = False,
) -> int:
    """Correlate the columns of two tables.

    Rows that only one table has are left out, and so are columns with cells that are no numbers, which are
    named. Gives Pearson, Spearman and Kendall correlations with
    intervals.

    Options:
        first: A table: TSV, or CSV.
        second: Another.
        on: Columns that name a row in both tables, with commas.
        columns: FIRST:SECOND pairs of columns, with commas [those of the same name].
        alias: NAME=OTHER, for a name that the tables spell differently; or a file with such lines.
        exclude: Leave out rows of this name, or pattern such as Story*.

    Examples:
        fabula correlate judge-a.tsv judge-b.tsv --on model
        fabula correlate lite.tsv qwen.tsv --on method,model --columns pa_avg:lite_avg
    """
    from ..evaluation.stats.tables import correlate_tables, read_aliases, read_table

    form = chosen_form(form, as_json=as_json)
    tables = read_table(first), read_table(second)
    names = read_aliases(alias)
    correlations = correlate_tables(*tables, _names(on), _pairs(columns), names, exclude)
    show_tables(correlations, lambda: [_table(correlations)], form)
    return 0


def _table(made: "TableCorrelations") -> "Table":
    from ..evaluation.report.model import Measure, ScoreRow, ScoreTable
    from ..evaluation.report.people import plain_score

    names = list(dict.fromkeys(result.name for pairing in made.pairings for result in pairing.correlations))
    return ScoreTable(
        name="correlations", title="Correlations", heading="Columns",
        note=" ".join([
            f"Over {made.shared} rows shared by {', '.join(made.on)}; in brackets 95 % intervals.",
            *(f"{column}." for column in made.unread),
        ]),
        measures=tuple(Measure(name=name, label=name.capitalize(), unit="number") for name in names),
        rows=tuple(
            ScoreRow(
                label=f"{pairing.first} and {pairing.second}",
                scores={
                    result.name: plain_score(result.value, result.reason).model_copy(
                        update={"low": result.low, "high": result.high}
                    )
                    for result in pairing.correlations
                },
            )
            for pairing in made.pairings
        ),
    )  # fmt: skip


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]


def _pairs(text: str) -> list[tuple[str, str]]:
    pairs = []
    for part in _names(text):
        left, colon, right = part.partition(":")
        pairs.append((left.strip(), right.strip() if colon else left.strip()))
    return pairs
