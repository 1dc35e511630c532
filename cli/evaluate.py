"""``fabula evaluate``: have judges look at generated outputs; scoring is another command."""

import dataclasses
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..errors import ConfigError
from ..schemas.text import quoted, tallied
from .build import dry_folder, run_folder, shard_lines, summary_first
from .command import command
from .common import Shown, released, say, show, warn

if TYPE_CHECKING:
    from ..engine.estimate import CallPlan
    from ..evaluation.entities.requests import EpisodeOptions
    from ..evaluation.events.requests import EventOptions
    from ..evaluation.katha.requests import EvaluateOptions
    from ..evaluation.running import Evaluating
    from ..evaluation.shots.requests import ImageOptions
    from ..models.vision.needs import VisionPlan
    from ..schemas.judgement import EvaluationManifest

OF_BUILDS = ("replace_sources", "items")


@command("evaluate stories", "evaluation.katha.requests:EvaluateOptions", without=OF_BUILDS)
def stories(
    *,
    release: Path,
    options: "EvaluateOptions",
    outputs: Sequence[Path] = (),
    out: Path | None = None,
    dry_run: bool = False,
    as_json: bool = False,
) -> int:
    """Ask judges the questions of a release about storyboards.

    Each question is asked under three conditions (KathaTrace): the story alone, the pictures alone, and both.
    Every reply is kept. Scoring needs only the release and the two files written here, judgements.jsonl and
    evaluation.json. It can be stopped at any moment: the same command continues it, and no question that was
    answered is asked again.

    Options:
        release: Release folder, or user/name@tag.
        outputs: Storyboards of one method; see `outputs check`.

    Examples:
        fabula evaluate stories --release dist/mine-0.1.0 --judge openai:gpt-4.1-mini --limit 50 --dry-run
        fabula evaluate stories --release dist/mine-0.1.0 --outputs storyboards/model-x
            --judge google:gemini-2.5-flash --out runs/eval-a
        fabula evaluate stories --release dist/mine-0.1.0 --outputs boards/x --outputs boards/y
            --judge openai:gpt-4.1-mini --subset strict_gold_400 --max-cost 20 --out runs/eval-b
        fabula evaluate stories --release dist/mine-0.1.0 --outputs boards/x --judge openai:gpt-4.1-mini
            --matcher embedding:openai:text-embedding-3-small --prompts heldout --out runs/eval-h
    """
    from ..api.calling import choose_reporter
    from ..evaluation.katha.requests import (
        estimate_evaluation,
        evaluate_katha,
        evaluation_request,
        judging_budget,
    )

    release = released(release)
    if dry_run:
        with dry_folder(out) as folder:
            budget = judging_budget(evaluation_request(release, outputs, folder, options))
            plan = estimate_evaluation(release, outputs, folder, options) if outputs else None
        show(Forecast(budget, plan, "with --outputs, tokens and cost are estimated too"), as_json=as_json)
        return 0
    if not outputs:
        fix = "fabula outputs check says what it must hold"
        raise ConfigError("--outputs", what="a folder of storyboards is needed", fix=fix)
    folder = run_folder(out, "runs/eval-a", "a run folder is needed")
    if not as_json:
        warn(*judging_budget(evaluation_request(release, outputs, folder, options)).lines())
    with summary_first(folder, as_json=as_json):
        report = evaluate_katha(release, outputs, folder, options, reporter=choose_reporter(as_json=as_json))
    show(report, as_json=as_json)
    if options.shard is not None:
        say(*([] if as_json else shard_lines(folder, options)))
        return 0
    return _tell_storyboards(folder, as_json=as_json)


@command("evaluate events", "evaluation.events.requests:EventOptions", without=OF_BUILDS)
def events(
    *,
    outputs: Sequence[Path],
    options: "EventOptions",
    suite: Path | None = None,
    release: Path | None = None,
    out: Path | None = None,
    dry_run: bool = False,
    as_json: bool = False,
) -> int:
    """Ask judges which events of its prompt each video completes.

    In each vote (StoryEval), a judge first describes the frames and then scores the events. If a judge
    refuses, the vote is asked again, up to judge_events.retries times. Every reply is kept. The same command
    continues a run.

    Options:
        outputs: Videos of one method, named as in the suite.

    Examples:
        fabula evaluate events --suite suite.json --outputs videos/x --judge openai:gpt-4o --dry-run
        fabula evaluate events --release dist/suite-0.1.0 --outputs videos/x --outputs videos/y
            --judge openai:gpt-4o --votes 3 --out runs/eval-b
    """
    from ..evaluation.events.requests import EVALUATING

    return _evaluate(
        EVALUATING, given_suite(suite, release), outputs, options, _tell_videos,
        out=out, such_as="runs/eval-b", dry_run=dry_run, as_json=as_json,
    )  # fmt: skip


@command("evaluate images", "evaluation.shots.requests:ImageOptions", without=OF_BUILDS)
def images(
    *,
    release: Path,
    outputs: Sequence[Path],
    options: "ImageOptions",
    out: Path | None = None,
    lite: bool = False,
    mode: str | None = None,
    language: str | None = None,
    timestamp: str | None = None,
    first_shot: Annotated[int, typer.Option(min=0, max=1)] = 1,
    references: str = "dataset",
    dry_run: bool = False,
    as_json: bool = False,
) -> int:
    """Measure generated shots with the metrics of ViStoryBench.

    First it checks that the libraries and weights of the chosen metrics are there, and lists all that are
    missing. Each picture is encoded once; all metrics and later runs use the same vectors. Everything found
    and every rating is kept. The same command continues a run.

    Options:
        release: Set of shot scripts.
        outputs: Shots of one method; see `outputs check`.
        metrics: Names with commas between them, all or some of {evaluation.metrics.metric:NAMES} [all].
        lite: Only the stories of the official Lite subset that are there.
        references: Compare with references of the dataset, or generated by the method (Table S8).

    Examples:
        fabula evaluate images --release runs/vistory --outputs outputs/my-model --judge openai:gpt-4.1
            --dry-run
        fabula evaluate images --release runs/vistory --outputs outputs/my-model
            --outputs outputs/copy-paste --metrics cids,csd,occm,copy-paste --out runs/eval
        fabula evaluate images --release runs/vistory --outputs outputs/my-model --metrics alignment
            --judge openai:gpt-4.1 --votes 3 --out runs/eval
    """
    from ..evaluation.shots.requests import EVALUATING

    scripts = released(release)
    read = {"mode": mode, "language": language, "timestamp": timestamp, "first_shot": first_shot}
    read |= {} if references == "dataset" else {"references": references}
    chosen = dataclasses.replace(
        options,
        stories=_lite(scripts, options.stories) if lite else options.stories,
        outputs={name: value for name, value in read.items() if value is not None},
    )
    return _evaluate(
        EVALUATING, scripts, outputs, chosen, _tell_shots,
        out=out, such_as="runs/eval", dry_run=dry_run, as_json=as_json,
    )  # fmt: skip


@command("evaluate episodes", "evaluation.entities.requests:EpisodeOptions", without=OF_BUILDS)
def episodes(
    *,
    release: Path,
    outputs: Sequence[Path],
    options: "EpisodeOptions",
    out: Path | None = None,
    dry_run: bool = False,
    as_json: bool = False,
) -> int:
    """Judge generated episodes with the metrics of EntityBench.

    First it checks that the libraries, the weights and the judge of the chosen pillars are there, and tells
    what the evaluation takes. Each video is decoded once; boxes, crops, vectors and replies are kept. The
    same command continues a run, and with other --pillars adds to it: nothing is asked twice.

    Options:
        release: Set of episodes: a release, a run of `build entities`, or a folder of official episodes.
        outputs: Videos of one method; see `outputs check`.

    Examples:
        fabula evaluate episodes --release runs/episodes --outputs videos/my-model --judge openai:gpt-4.1
            --dry-run
        fabula evaluate episodes --release runs/episodes --outputs videos/my-model --outputs videos/other
            --judge google:gemini-2.5-pro --max-cost 50 --out runs/eval-episodes
        fabula evaluate episodes --release runs/episodes --outputs videos/my-model --pillars 1
            --out runs/eval-episodes
    """
    from ..evaluation.entities.requests import EVALUATING

    return _evaluate(
        EVALUATING, released(release), outputs, options, _tell_shots,
        out=out, such_as="runs/eval-episodes", dry_run=dry_run, as_json=as_json,
    )  # fmt: skip


def _evaluate(
    evaluating: "Evaluating",
    judged_by: Path,
    outputs: Sequence[Path],
    options: "EpisodeOptions | EventOptions | ImageOptions",
    tell: Callable[[Path], None],
    *,
    out: Path | None,
    such_as: str,
    dry_run: bool,
    as_json: bool,
) -> int:
    """Evaluate outputs, or with ``dry_run`` show what that would take.

    Args:
        evaluating: how it is done.
        judged_by: the set, release or suite.
        outputs: a folder for each method.
        options: of the command.
        tell: tells what came of it, from the run folder.
        out: the run folder, if one is given.
        such_as: a name for it, where none is.
        dry_run: whether nothing is asked.
        as_json: whether the result is printed as JSON.
    """
    from ..api.calling import choose_reporter
    from ..models.vision.needs import vision_plan

    if dry_run:
        with dry_folder(out) as folder:
            request = evaluating.request(judged_by, outputs, folder, options)
            budget, plan = evaluating.budget(request), evaluating.estimate(request)
            vision = vision_plan(request.config.stages.values(), getattr(budget, "pictures", None))
        show(Forecast(budget, plan, told=bool(budget.as_json()["calls"]), vision=vision), as_json=as_json)
        return 0
    request = evaluating.request(judged_by, outputs, run_folder(out, such_as), options)
    evaluating.check(request)
    if not as_json:
        warn(*evaluating.budget(request).lines())
    reporter = choose_reporter(as_json=as_json)
    with summary_first(request.folder, as_json=as_json):
        evaluating.tell(request, reporter)
        report = evaluating.run(request, reporter, replace=options.replace)
    show(report, as_json=as_json)
    if not as_json:
        say(*shard_lines(request.folder, options))
    if not as_json and options.shard is None:
        tell(request.folder)
    return 0


@dataclass(frozen=True)
class Forecast:
    """What an evaluation would ask."""

    budget: Shown  # how much it looks at, and calls by rule
    plan: "CallPlan | None"  # about what that costs; None where nothing can say
    instead: str = ""  # what people are told where there is no plan
    told: bool = True  # whether people are told the plan
    vision: "VisionPlan | None" = None  # what the models that look at pictures take; None where nobody looks

    def as_json(self) -> dict[str, Any]:
        """Return it as plain JSON."""
        plan = None if self.plan is None else self.plan.as_json()
        looking = {} if self.vision is None else {"vision": self.vision.as_json()}
        return {"budget": self.budget.as_json(), "plan": plan, **looking}

    def lines(self) -> Iterator[str]:
        """Yield it as lines for people."""
        yield from self.budget.lines()
        if self.plan is None:
            yield self.instead
        elif self.told:
            yield from self.plan.lines(sample=False)
            left = self.budget.as_json().get("total", 0) - self.plan.calls
            if left > 0:
                yield (
                    f"{tallied(left, 'calls')} fewer than by rule: nothing is asked twice, and nothing of "
                    "pictures that cannot be read"
                )
        if self.vision is not None:
            yield from self.vision.lines()


def given_suite(suite: Path | None, release: Path | None) -> Path:
    """Return the file of the suite that was given; a release must be as it was packed.

    Raises:
        ConfigError: not exactly one of the two was given. InputError: the release is no release of events, or
            its files are not those that its checksums are of.
    """
    if suite is not None and release is None:
        return released(suite)
    if suite is not None or release is None:
        raise ConfigError(
            "--suite, --release", what=f"{'one' if suite is None else 'only one'} of the two must be given",
            fix="name a file with --suite, or a release of events with --release",
        )  # fmt: skip
    from ..evaluation.events.requests import suite_of
    from ..releases.events.form import EVENTS
    from ..releases.loading import read_release_document

    folder = released(release)
    if folder.is_file():  # the suite of a benchmark by name
        return folder
    read_release_document(folder, EVENTS)
    return suite_of(folder)


def _lite(scripts: Path, stories: Sequence[str]) -> tuple[str, ...]:
    """Return the stories of the Lite subset that a set has, and of those the ones that are asked for."""
    from ..releases.shots.tree import read_shot_set
    from ..schemas.shots import LITE

    there = read_shot_set(scripts)[0].by_id
    missing = [story for story in LITE if story not in there]
    if missing:
        warn(f"the set has {len(LITE) - len(missing)} of the {len(LITE)} stories of Lite")
    chosen = tuple(story for story in LITE if story in there and (not stories or story in stories))
    if not chosen:
        raise ConfigError("--lite", what="the set has no story of the Lite subset", fix="leave it out")
    return chosen


def _tell_storyboards(out: Path, *, as_json: bool) -> int:
    """Tell which storyboards could not be judged; return 1 where the leakage scan stopped one."""
    from ..evaluation.archive.archive import EVALUATION, read_manifest

    manifest = read_manifest(out)
    leaking = sum(len(method["leaks"]) for method in manifest.subject["methods"].values())
    if as_json:
        return int(leaking > 0)
    _tell_replies(manifest)
    for name, method in manifest.subject["methods"].items():
        valid = f"{method['generations_valid']} of {method['generations_requested']} storyboards valid"
        scanned = f"{tallied(method['packets_scanned'], 'questions')} scanned for leaks"
        say(
            f"{name}: {valid}, {scanned}, "
            f"{tallied(len(method['leaks']), 'storyboards')} held back because of them"
        )
        codes = Counter(code for generation in method["invalid"] for code in generation["codes"])
        warn(*(f"{name}: {count} {code}; {EVALUATION} lists which" for code, count in sorted(codes.items())))
    say(f"run: {out}\nnext: fabula score {quoted(out)}")
    return int(leaking > 0)


def _tell_videos(out: Path) -> None:
    """Tell which videos could not be judged."""
    from ..evaluation.archive.archive import EVALUATION, read_manifest

    manifest = read_manifest(out)
    _tell_replies(manifest)
    for name, method in manifest.subject["methods"].items():
        say(
            f"{name}: {method['valid']} of {method['requested']} videos judged, "
            f"{tallied(method['frames'], 'frames')}"
        )
        codes = Counter(video["code"] for video in method["invalid"])
        warn(*(f"{name}: {count} {code}; {EVALUATION} lists which" for code, count in sorted(codes.items())))
        warn(*(f"{name}: {stray} belongs to no prompt of the suite" for stray in method["strays"][:5]))
    say(f"run: {out}\nnext: fabula score {quoted(out)}")


def _tell_shots(out: Path) -> None:
    """Tell how many shots were looked at, and what was wrong with them."""
    from ..evaluation.archive.archive import read_manifest

    manifest = read_manifest(out)
    _tell_replies(manifest)
    for name, method in manifest.subject["methods"].items():
        say(f"{name}: {method['shots_valid']} of {method['shots_requested']} shots looked at")
        for code, count in method["findings"].items():
            warn(f"{name}: {count} {code}; fabula outputs check lists them")
    say(f"run: {out}\nnext: fabula score {quoted(out)}")


def _tell_replies(manifest: "EvaluationManifest") -> None:
    """Tell of each judge whose replies are not all answers what they are; a judge never fails a run."""
    for judge, counts in manifest.environment["judges"].items():
        outcomes = dict(counts["outcomes"])
        answered, asked = outcomes.pop("answered", 0), sum(counts["outcomes"].values())
        if outcomes:
            others = ", ".join(f"{count} {outcome}" for outcome, count in sorted(outcomes.items()))
            warn(f"{judge}: {answered} of {asked} replies are answers ({others})")
            warn("to ask once more for the others, give the same command with --retry-failed")
