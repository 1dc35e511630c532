"""``fabula evaluate events``: have judges look at generated videos; scoring is another command."""

import tempfile
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..errors import ConfigError
from .advice import summary_first
from .common import (
    JsonOption,
    ReplaceOption,
    emit,
    example,
    guarded,
    say,
    show,
    warn,
)
from .run_choices import RunChoices, takes_run_choices
from .suites import SuiteOption, SuiteReleaseOption, given_suite

if TYPE_CHECKING:
    from ..schemas.judgement import EvaluationManifest


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command(
        "events",
        epilog=example(
            "fabula evaluate events --suite suite.json --outputs videos/x --judge openai:gpt-4o --dry-run",
            "fabula evaluate events --release dist/suite-0.1.0 --outputs videos/x --outputs videos/y"
            " --judge openai:gpt-4o --votes 3 --out runs/eval-b",
        ),
    )(events)


@guarded
@takes_run_choices
def events(
    outputs: Annotated[
        list[Path],
        typer.Option(
            "--outputs", help="Videos of one method, named as in the suite. Repeatable.", show_default=False
        ),
    ],
    suite: SuiteOption = None,
    release: SuiteReleaseOption = None,
    out: Annotated[
        Path | None, typer.Option("--out", help="Run folder; made if missing, continued if there.")
    ] = None,
    judges: Annotated[
        list[str] | None,
        typer.Option("--judge", help="A judge: openai:NAME, http://HOST/v1#NAME, ... Repeatable."),
    ] = None,
    votes: Annotated[
        int | None,
        typer.Option(
            "--votes", help="Votes of each judge on each video [3; 2 for a model on your own server]."
        ),
    ] = None,
    labels: Annotated[
        list[str] | None, typer.Option("--label", help="Only prompts with this label. Repeatable.")
    ] = None,
    prompts: Annotated[
        list[str] | None, typer.Option("--prompt", help="Only the prompt with this file name. Repeatable.")
    ] = None,
    limit: Annotated[int | None, typer.Option("--limit", help="Only the first N prompts.")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show what would be asked.")] = False,
    replace: ReplaceOption = False,
    *,
    run: RunChoices,
    as_json: JsonOption = False,
) -> int:
    """Ask judges which events of its prompt each video completes.

    In each vote (StoryEval), a judge first describes the frames and then scores the events. If a judge
    refuses, the vote is asked again, up to judge_events.retries times. Every reply is kept. The same command
    continues a run.
    """
    from ..engine.progress import choose_reporter
    from ..evaluation.completion.requests import (
        EventOptions,
        estimate_events,
        events_request,
        tell_events,
        video_budget,
    )
    from ..evaluation.running import check_request, run_evaluation

    place = given_suite(suite, release)
    options = EventOptions(
        judges=tuple(judges or ()),
        votes=votes,
        labels=tuple(labels or ()),
        units=tuple(prompts or ()),
        limit=limit,
        replace=replace,
        **run,
    )
    if dry_run:
        with tempfile.TemporaryDirectory(prefix="fabula-dry-run-") as scratch:
            request = events_request(place, outputs, out or Path(scratch) / "run", options)
            budget, plan = video_budget(request), estimate_events(request)
        if as_json:
            emit({"budget": budget.as_json(), "plan": plan.as_json()})
        else:
            for line in (*budget.lines(), *plan.lines(sample=False)):
                say(line)
        return 0
    if out is None:
        raise ConfigError("--out", what="the run folder is not given", fix="for example --out runs/eval-b")
    request = events_request(place, outputs, out, options)
    if not as_json:
        for line in video_budget(request).lines():
            warn(line)
    reporter = choose_reporter(as_json=as_json)
    with summary_first(out, as_json=as_json):
        check_request(request, replace=replace, reporter=reporter)
        tell_events(request, reporter)
        report = run_evaluation(request, reporter)
    if as_json:
        emit(report.as_json())
    else:
        show(report, as_json=False)
        _tell_subject(out)
    return 0


def _tell_subject(out: Path) -> None:
    """Tell which videos could not be judged."""
    from ..evaluation.archive import EVALUATION, read_manifest

    manifest = read_manifest(out)
    tell_replies(manifest)
    for name, method in manifest.subject["methods"].items():
        say(f"{name}: {method['valid']} of {method['requested']} videos judged, {method['frames']} frames")
        for code, count in sorted(Counter(one["code"] for one in method["invalid"]).items()):
            warn(f"{name}: {count} {code}; {EVALUATION} lists which")
        for stray in method["strays"][:5]:
            warn(f"{name}: {stray} belongs to no prompt of the suite")
    say(f"run: {out}\nnext: fabula score {out}")


def tell_replies(manifest: "EvaluationManifest") -> None:
    """Tell of each judge whose replies are not all answers what they are; a judge never fails a run."""
    for judge, told in manifest.environment["judges"].items():
        outcomes = dict(told["outcomes"])
        answered, asked = outcomes.pop("answered", 0), sum(told["outcomes"].values())
        if outcomes:
            others = ", ".join(f"{count} {outcome}" for outcome, count in sorted(outcomes.items()))
            warn(f"{judge}: {answered} of {asked} replies are answers ({others})")
            warn("to ask once more for the others, give the same command with --retry-failed")
