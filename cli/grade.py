"""``fabula grade-suite``: from results of several models to the final suite with easy, medium and hard."""

from pathlib import Path
from typing import Annotated, Literal, cast

import typer

from ..errors import ConfigError
from .common import JsonOption, example, guarded, show


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command(
        "grade-suite",
        epilog=example(
            "fabula grade-suite suite.json --run runs/eval-a --run runs/eval-b --out final.json",
            "fabula grade-suite suite.json --run runs/all --above 0.15 --easy 100 --hard 100"
            " --silent at_least_two --except ModelScope --out final.json",
        ),
    )(grade_suite)


@guarded
def grade_suite(
    suite: Annotated[Path, typer.Argument(help="The suite.", show_default=False)],
    runs: Annotated[
        list[Path], typer.Option("--run", help="An evaluation of it. Repeatable.", show_default=False)
    ],
    out: Annotated[Path, typer.Option("--out", help="The new suite's file.", show_default=False)],
    judge: Annotated[
        str | None, typer.Option("--judge", help="Whose votes count, where several voted.")
    ] = None,
    above: Annotated[
        float, typer.Option("--above", help="Methods with a higher average count for the difficulty.")
    ] = 0.15,
    easy: Annotated[int, typer.Option("--easy", min=0, help="How many prompts are easy.")] = 100,
    hard: Annotated[int, typer.Option("--hard", min=0, help="How many are hard.")] = 100,
    silent: Annotated[
        str,
        typer.Option("--silent", help="Leave out prompts without answers: more_than_two, at_least_two, off."),
    ] = "more_than_two",
    exempt: Annotated[
        list[str] | None, typer.Option("--except", help="A method that --silent does not count. Repeatable.")
    ] = None,
    human: Annotated[
        Path | None, typer.Option("--human", help="People's rates: a table with method, unit and rate.")
    ] = None,
    max_difference: Annotated[
        float | None, typer.Option("--max-difference", help="With --human: leave out what differs by more.")
    ] = None,
    as_json: JsonOption = False,
) -> int:
    """Leave out prompts that cannot be judged well; label the others easy, medium and hard (StoryEval)."""
    from ..evaluation.completion.grading import SILENT, Grading, grade, rates_of
    from ..evaluation.completion.human_rates import read_rates
    from ..evaluation.completion.score import score_folder
    from ..releases.suites import load_suite, write_suite

    if silent not in (*SILENT, "off"):
        raise ConfigError("--silent", expected=f"{', '.join(SILENT)} or off", found=silent, fix="choose one")
    if (human is None) != (max_difference is None):
        raise ConfigError(
            "--human",
            expected="--max-difference beside it",
            found="one of the two",
            fix="give both or neither",
        )
    named = None if silent == "off" else cast("Literal['more_than_two', 'at_least_two']", silent)
    how = Grading(named, tuple(exempt or ()), max_difference, above, easy, hard)
    rates = rates_of([score_folder(run) for run in runs], judge)
    graded = grade(load_suite(suite), rates, how, None if human is None else read_rates(human))
    write_suite(out, graded.suite)
    show(graded, as_json=as_json)
    return 0
