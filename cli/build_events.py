"""``fabula build events``: seeds in, a prompt suite out."""

import tempfile
from pathlib import Path
from typing import Annotated

import typer

from ..errors import ConfigError
from .advice import summary_first
from .common import (
    JsonOption,
    ReplaceSourcesOption,
    emit,
    example,
    guarded,
    say,
    show,
)
from .run_choices import RunChoices, takes_run_choices

Rates = dict[str, dict[str, float | None]]


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command(
        "events",
        epilog=example(
            "fabula build events seeds.jsonl --out runs/suite",
            "fabula build events seeds.jsonl --model openai:gpt-4.1-mini --generate 600 --most 500"
            " --max-cost 5 --out runs/suite",
            "fabula build events seeds.jsonl --results runs/eval-b --set grade_prompts.easy=20"
            " --out runs/suite",
        ),
    )(events)


@guarded
@takes_run_choices
def events(
    seeds: Annotated[
        list[Path], typer.Argument(help="Files of seeds (.jsonl), or a suite (.json).", show_default=False)
    ],
    out: Annotated[
        Path | None, typer.Option("--out", help="Run folder; made if missing, continued if there.")
    ] = None,
    model: Annotated[
        str | None, typer.Option("--model", help="The model that captions videos and writes prompts.")
    ] = None,
    generate: Annotated[
        int | None, typer.Option("--generate", help="How many prompts the model is asked to write [0].")
    ] = None,
    most: Annotated[int | None, typer.Option("--most", help="Keep at most this many prompts [all].")] = None,
    keep_all: Annotated[
        bool,
        typer.Option(
            "--keep-all",
            help="If the seeds are a suite: keep every prompt, also those that break a condition.",
        ),
    ] = False,
    results: Annotated[
        list[Path] | None,
        typer.Option("--results", help="Evaluation of the suite's videos to grade by. Repeatable."),
    ] = None,
    judge: Annotated[
        str | None,
        typer.Option("--judge", help="With --results: the judge whose votes count, if several voted."),
    ] = None,
    people: Annotated[
        Path | None,
        typer.Option("--people", help="With --results: table of people's rates, with method, unit and rate."),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only show what the model would be asked, and the cost.")
    ] = False,
    replace_sources: ReplaceSourcesOption = False,
    *,
    run: RunChoices,
    as_json: JsonOption = False,
) -> int:
    """Make a suite of event prompts from seeds.

    Seeds are captions of real videos and prompts written by people or by a model. The suite is written to
    all_prompts.json in the official form. Difficulty comes later, from judged videos: give the same command
    with --results. It leaves out prompts that cannot be judged well and labels the others easy, medium or
    hard. Its thresholds are the settings of grade_prompts (docs/events.md).
    """
    from ..builders.events import SuiteOptions, build_suite, estimate_suite
    from ..engine.progress import choose_reporter

    options = SuiteOptions(
        model=model,
        generate=generate,
        keep_all=keep_all or None,
        most=most,
        results=_rates(results or [], judge, people),
        people=None if people is None else _people(people),
        replace_sources=replace_sources,
        **run,
    )
    if dry_run:
        with tempfile.TemporaryDirectory(prefix="fabula-dry-run-") as scratch:
            plan = estimate_suite(seeds, out or Path(scratch) / "run", options)
        if as_json:
            emit(plan.as_json())
        for line in () if as_json else plan.lines(sample=False):
            say(line)
        return 0
    if out is None:
        raise ConfigError("--out", what="the run folder is not given", fix="for example --out runs/suite")
    with summary_first(out, as_json=as_json):
        report = build_suite(seeds, out, options, reporter=choose_reporter(as_json=as_json))
    show(report, as_json=as_json)
    if not as_json:
        say(f"run: {out}\nsuite: {out / 'all_prompts.json'}")
    return 0


def _rates(runs: list[Path], judge: str | None, people: Path | None) -> Rates | None:
    """Return the completion rates of evaluations; None where none is named."""
    from ..evaluation.completion.rates import rates_of
    from ..evaluation.completion.score import score_folder
    from ..evaluation.completion.votes import Definitions

    if not runs:
        if judge is not None or people is not None:
            raise ConfigError(
                "--judge, --people", what="these options go only with --results",
                fix="name the evaluation, or leave the option out",
            )  # fmt: skip
        return None
    return rates_of([score_folder(run, definitions=Definitions(resamples=0)) for run in runs], judge)


def _people(table: Path) -> Rates:
    from ..evaluation.completion.rates import read_rates

    return read_rates(table)
