"""``fabula evaluate``: have judges look at generated outputs; scoring is another command."""

import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..errors import ConfigError
from . import evaluate_events, evaluate_images
from .advice import summary_first
from .common import (
    JsonOption,
    ReplaceOption,
    example,
    guarded,
    released,
    say,
    show,
    warn,
)
from .run_choices import RunChoices, takes_run_choices

if TYPE_CHECKING:
    from ..engine.estimate import CallPlan
    from ..evaluation.judges.spending import JudgingBudget

app = typer.Typer(
    name="evaluate",
    no_args_is_help=True,
    rich_markup_mode=None,
    help="Have judges look at generated outputs.",
)


@app.callback()
def _evaluate() -> None:
    """Have judges look at generated outputs."""


evaluate_events.register(app)
evaluate_images.register(app)


@app.command(
    "katha",
    epilog=example(
        "fabula evaluate katha --release dist/mine-0.1.0 --judge openai:gpt-4.1-mini --limit 50 --dry-run",
        "fabula evaluate katha --release dist/mine-0.1.0 --outputs storyboards/model-x"
        " --judge google:gemini-2.5-flash --out runs/eval-a",
        "fabula evaluate katha --release dist/mine-0.1.0 --outputs boards/x --outputs boards/y"
        " --judge openai:gpt-4.1-mini --subset strict_gold_400 --max-cost 20 --out runs/eval-b",
        "fabula evaluate katha --release dist/mine-0.1.0 --outputs boards/x --judge openai:gpt-4.1-mini"
        " --matcher embedding:openai:text-embedding-3-small --prompts heldout --out runs/eval-h",
    ),
)
@guarded
@takes_run_choices
def katha(
    release: Annotated[
        Path, typer.Option("--release", help="Release folder, or user/name@tag.", show_default=False)
    ],
    outputs: Annotated[
        list[Path] | None,
        typer.Option("--outputs", help="Storyboards of one method; see `outputs check`. Repeatable."),
    ] = None,
    out: Annotated[
        Path | None, typer.Option("--out", help="Run folder; made if missing, continued if there.")
    ] = None,
    judges: Annotated[
        list[str] | None,
        typer.Option("--judge", help="A judge: openai:NAME, http://HOST/v1#NAME, ... Repeatable."),
    ] = None,
    preset: Annotated[
        str | None, typer.Option("--preset", help="A published ensemble: kathatrace-main, kathatrace-pool.")
    ] = None,
    votes: Annotated[
        int | None, typer.Option("--votes", help="How often each judge answers each question [1].")
    ] = None,
    split: Annotated[
        list[str] | None, typer.Option("--split", help="Only stories of this split. Repeatable.")
    ] = None,
    subset: Annotated[
        str | None, typer.Option("--subset", help="Only stories of this list, such as strict_gold_400.")
    ] = None,
    stories: Annotated[
        list[str] | None, typer.Option("--story", help="Only this story id. Repeatable.")
    ] = None,
    limit: Annotated[int | None, typer.Option("--limit", help="Only the first N stories.")] = None,
    matcher: Annotated[
        list[str] | None,
        typer.Option(
            "--matcher",
            help="Also compare answers with accepted ones by a model or embedding:MODEL; one of each.",
        ),
    ] = None,
    prompts: Annotated[
        str | None,
        typer.Option("--prompts", help="The judges' prompts: main, or heldout for another wording [main]."),
    ] = None,
    questions_only: Annotated[
        bool, typer.Option("--questions-only", help="Leave out moral targets and contrastive pairs.")
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only show what would be asked, and the cost.")
    ] = False,
    replace: ReplaceOption = False,
    *,
    run: RunChoices,
    as_json: JsonOption = False,
) -> int:
    """Ask judges the questions of a release about storyboards.

    Each question is asked under three conditions (KathaTrace): the story alone, the pictures alone, and both.
    Every reply is kept. Scoring needs only the release and the two files written here, judgements.jsonl and
    evaluation.json. It can be stopped at any moment: the same command continues it, and no question that was
    answered is asked again.
    """
    from ..engine.progress import choose_reporter
    from ..evaluation.judges import EvaluateOptions, estimate_evaluation, evaluate_katha
    from ..evaluation.judges.requests import evaluation_request
    from ..evaluation.judges.spending import judging_budget

    options = EvaluateOptions(
        judges=tuple(judges or ()),
        preset=preset,
        votes=votes,
        split=tuple(split or ()),
        subset=subset,
        stories=tuple(stories or ()),
        limit=limit,
        matcher=tuple(matcher or ()) or None,
        prompts=prompts,
        questions_only=questions_only,
        replace=replace,
        **run,
    )
    folders = outputs or []
    release = released(release)
    if dry_run:
        with _folder(out) as folder:
            budget = judging_budget(evaluation_request(release, folders, folder, options))
            plan = estimate_evaluation(release, folders, folder, options) if folders else None
        show(_Forecast(budget, plan), as_json=as_json)
        return 0
    if not folders:
        raise _missing("--outputs", "a folder of storyboards", "fabula outputs check says what it must hold")
    if out is None:
        raise _missing("--out", "a run folder", "for example --out runs/eval-a")
    if not as_json:
        for line in judging_budget(evaluation_request(release, folders, out, options)).lines():
            warn(line)
    with summary_first(out, as_json=as_json):
        report = evaluate_katha(release, folders, out, options, reporter=choose_reporter(as_json=as_json))
    show(report, as_json=as_json)
    return _tell_subject(out, as_json=as_json)


@dataclass(frozen=True)
class _Forecast:
    """What judging would ask: panels and calls by rule, and the cost where there are outputs."""

    budget: "JudgingBudget"
    plan: "CallPlan | None"

    def as_json(self) -> dict[str, Any]:
        plan = None if self.plan is None else self.plan.as_json()
        return {"budget": self.budget.as_json(), "plan": plan}

    def lines(self) -> Iterator[str]:
        yield from self.budget.lines()
        if self.plan is not None:
            yield from self.plan.lines(sample=False)
        else:
            yield "with --outputs, tokens and cost are estimated too"


def _tell_subject(out: Path, *, as_json: bool) -> int:
    """Tell which generations could not be judged; return 1 where the leakage scan stopped one."""
    from ..evaluation.archive import EVALUATION, read_manifest

    leaking = 0
    manifest = read_manifest(out)
    if not as_json:
        evaluate_events.tell_replies(manifest)
    for name, method in manifest.subject["methods"].items():
        leaking += len(method["leaks"])
        if not as_json:
            valid = f"{method['generations_valid']} of {method['generations_requested']} storyboards valid"
            scanned = f"{method['packets_scanned']} packets scanned"
            say(f"{name}: {valid}, {scanned}, {len(method['leaks'])} storyboards held back because of leaks")
            codes = Counter(code for one in method["invalid"] for code in one["codes"])
            for code, count in sorted(codes.items()):
                warn(f"{name}: {count} {code}; {EVALUATION} lists which")
    if not as_json:
        say(f"run: {out}\nnext: fabula score {out}")
    return int(leaking > 0)


@contextmanager
def _folder(out: Path | None) -> Iterator[Path]:
    """Give the run folder of a dry run; nothing is written, so it need not be there."""
    if out is not None:
        yield out
        return
    with tempfile.TemporaryDirectory(prefix="fabula-dry-run-") as scratch:
        yield Path(scratch) / "run"


def _missing(option: str, expected: str, fix: str) -> ConfigError:
    return ConfigError(option, what=f"{expected} is needed", fix=fix)
