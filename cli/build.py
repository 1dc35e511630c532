"""``fabula build``: source material in, a run of drafted records out."""

import re
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..errors import BelowThreshold, ConfigError
from ..schemas.text import listed, quoted, tallied
from .command import command
from .common import emit, model_bill, say, show, used_since, warn

if TYPE_CHECKING:
    from ..builders.entities.building import EntityOptions
    from ..builders.events.building import SuiteOptions
    from ..builders.katha.building import BuildOptions
    from ..builders.katha.extend import ExtendOptions
    from ..builders.shots.building import ShotOptions
    from ..engine.execute import RunRequest
    from ..engine.run_options import RunOptions
    from ..engine.status import RunReport

Rates = dict[str, dict[str, float | None]]


@command("build stories", "builders.katha.building:BuildOptions")
def stories(
    sources: Sequence[Path],
    *,
    options: "BuildOptions",
    out: Path | None = None,
    dry_run: bool = False,
    sample: Annotated[int, typer.Option(min=0)] = 0,
    as_json: bool = False,
) -> int:
    """Turn stories into KathaBench records.

    A record has scenes, transitions, questions and contrastive variants. Works without a model or network
    unless --planner model is given. It can be stopped at any moment: the same command continues it, and no
    question that was answered is asked again.

    Options:
        sources: JSONL, JSON, CSV or Parquet files, folders of .txt and .md files, or hf://datasets/OWNER/NAME.
        sample: With --dry-run: draft N stories with the model first, and estimate from them.

    Examples:
        fabula build stories stories.jsonl --planner rules --out runs/mine
        fabula build stories tales/ --language en --out runs/mine --set draft_scenes.scenes=6 --limit 10
        fabula build stories hf://datasets/user/tales --map name=title --map body=text --out runs/mine
        fabula build stories stories.jsonl --records hand.jsonl --out runs/mine --json
        fabula build stories stories.jsonl --planner model --model openai:gpt-4.1-mini --dry-run
        fabula build stories stories.jsonl --model openai:gpt-4.1-mini --max-cost 5 --out runs/mine
    """
    from ..api.calling import choose_reporter
    from ..builders.katha.building import DRAFTING

    if dry_run:
        if sample:
            what = "--sample, which keeps the drafts that it pays for, needs a run folder"
            out = run_folder(out, "runs/mine", what)
        with dry_folder(out) as folder:
            reporter = choose_reporter(as_json=as_json)
            show(
                DRAFTING.estimate(sources, folder, options, sample=sample, reporter=reporter), as_json=as_json
            )
        return 0
    if sample:
        raise ConfigError(
            "--sample", what="this option goes only with --dry-run", fix="to build a part, use --limit"
        )
    folder = run_folder(out, "runs/mine", "a build needs a run folder")
    if not as_json:
        warn(*guessed_lines(DRAFTING.request(sources, folder, options)))
    if _build(DRAFTING.build, sources, folder, options, as_json=as_json):
        say(*incomplete_lines(folder), f"run: {folder}", f"next: fabula validate {quoted(folder)}")
    return 0


@command("build shots", "builders.shots.building:ShotOptions")
def shots(
    sources: Sequence[Path],
    *,
    options: "ShotOptions",
    out: Path | None = None,
    dry_run: bool = False,
    as_json: bool = False,
) -> int:
    """Turn stories into shot scripts for image generators.

    Each shot has a plot, a setting, a perspective, the characters on stage and what is seen. Works without a
    model or network unless --planner model is given; the rules planner writes only the story's language. The
    official tree is written to ViStory/ in the run folder; findings.jsonl lists what the rules object to.

    Options:
        sources: JSONL, JSON, CSV or Parquet files, folders of .txt and .md files, or hf://datasets/OWNER/NAME.

    Examples:
        fabula build shots stories.jsonl --planner rules --out runs/shots
        fabula build shots stories.jsonl --shots 12 --languages en,ch --model openai:gpt-4.1-mini
            --max-cost 5 --out runs/shots
        fabula build shots stories.jsonl --scripts cast.jsonl --model openai:gpt-4.1-mini --dry-run
    """
    from ..builders.shots.building import DRAFTING

    if options.languages is not None:  # en,ch
        named = [language.strip() for text in options.languages for language in text.split(",")]
        options = replace(options, languages=named)
    if dry_run:
        with dry_folder(out) as folder:
            show(DRAFTING.estimate(sources, folder, options), as_json=as_json)
        return 0
    folder = run_folder(out, "runs/shots")
    if not as_json:
        warn(*guessed_lines(DRAFTING.request(sources, folder, options)))
    if _build(DRAFTING.build, sources, folder, options, as_json=as_json):
        say(f"run: {folder}", f"scripts: {folder / 'ViStory'}")
    return 0


@command("build entities", "builders.entities.building:EntityOptions")
def entities(
    videos: Sequence[Path],
    *,
    options: "EntityOptions",
    out: Path | None = None,
    dry_run: bool = False,
    as_json: bool = False,
) -> int:
    """Turn videos into episodes with a schedule and scripts.

    An episode is a series of shots with its people, places and things, a schedule that says who is in which
    shot, and scripts. Detectors find the people, or --detections gives a file that says where they are.
    Without --model, rules only name people and places and say who is seen. The official tree is written to
    data/ in the run folder; funnel.json counts what was left out at each step. With --dry-run, shots and
    people are found all the same, to say what the model would be asked.

    Options:
        videos: Video files, or folders of them.

    Examples:
        fabula build entities films/ --out runs/episodes
        fabula build entities films/ --detections people.jsonl --model google:gemini-2.5-flash
            --max-cost 20 --out runs/episodes
        fabula build entities films/ --model google:gemini-2.5-flash --dry-run --out runs/episodes
    """
    from ..builders.entities.building import build_entities, estimate_entities

    if dry_run:
        with dry_folder(out) as folder:
            show(estimate_entities(videos, folder, options), as_json=as_json)
        return 0
    folder = run_folder(out, "runs/episodes")
    try:
        whole = _build(build_entities, videos, folder, options, as_json=as_json)
    except BelowThreshold:
        if not as_json:
            say(*_funnel(folder, advice=True))
        raise
    if whole:
        say(*_funnel(folder), f"run: {folder}", f"episodes: {folder / 'data'}")
    return 0


@command("build events", "builders.events.building:SuiteOptions")
def events(
    seeds: Sequence[Path],
    *,
    options: "SuiteOptions",
    out: Path | None = None,
    results: Sequence[Path] = (),
    judge: str | None = None,
    people: Path | None = None,
    dry_run: bool = False,
    as_json: bool = False,
) -> int:
    """Make a suite of event prompts from seeds.

    Seeds are captions of real videos and prompts written by people or by a model. The suite is written to
    all_prompts.json in the official form. Difficulty comes later, from judged videos: give the same command
    with --results. It leaves out prompts that cannot be judged well and labels the others easy, medium or
    hard. Its thresholds are the settings of grade_prompts (docs/events.md).

    Options:
        seeds: Files of seeds (.jsonl), or a suite (.json).
        results: Evaluation of the suite's videos to grade by.
        judge: With --results: the judge whose votes count, if several voted.
        people: With --results: table of people's rates, with method, unit and rate.

    Examples:
        fabula build events seeds.jsonl --out runs/suite
        fabula build events seeds.jsonl --model openai:gpt-4.1-mini --generate 600 --most 500
            --max-cost 5 --out runs/suite
        fabula build events seeds.jsonl --results runs/eval-b --set grade_prompts.easy=20
            --out runs/suite
    """
    from ..builders.events.building import DRAFTING

    rated = replace(
        options, results=_rates(results, judge, people), people=None if people is None else _people(people)
    )
    if dry_run:
        with dry_folder(out) as folder:
            plan = DRAFTING.estimate(seeds, folder, rated)
        if as_json:
            emit(plan.as_json())
        else:
            say(*plan.lines(sample=False))
        return 0
    folder = run_folder(out, "runs/suite")
    if _build(DRAFTING.build, seeds, folder, rated, as_json=as_json):
        say(f"run: {folder}", f"suite: {folder / 'all_prompts.json'}")
    return 0


@contextmanager
def dry_folder(out: Path | None) -> Iterator[Path]:
    """Give the run folder of a dry run; nothing is written, so it need not be there."""
    with tempfile.TemporaryDirectory(prefix="fabula-dry-run-") as scratch:
        yield out or Path(scratch) / "run"


def run_folder(out: Path | None, such_as: str, what: str = "the run folder is not given") -> Path:
    """Return the run folder that was given.

    Raises:
        ConfigError: none was given.
    """
    if out is None:
        raise ConfigError("--out", what=what, fix=f"for example --out {such_as}")
    return out


def _build(
    build: Callable[..., "RunReport"],
    sources: Sequence[Path],
    out: Path,
    options: "RunOptions",
    *,
    as_json: bool,
) -> bool:
    """Build, and tell how it went; return whether people are to be told more of what lies in the folder."""
    from ..api.calling import choose_reporter

    with summary_first(out, as_json=as_json):
        report = build(sources, out, options, reporter=choose_reporter(as_json=as_json))
    show(report, as_json=as_json)
    if as_json:
        return False
    say(*keep_lines(out, report))
    say(*shard_lines(out, options))
    return options.shard is None


def shard_lines(run: Path, options: "RunOptions") -> Iterator[str]:
    """Yield lines that say how it goes on with a shard; none for a whole run."""
    if options.shard is not None:
        yield f"shard {options.shard}: {run}"
        yield "when all shards are finished: fabula run merge SHARD... --out RUN"


@contextmanager
def summary_first(run: Path, *, as_json: bool) -> Iterator[None]:
    """Print the run's report before the error of a run that came out below its threshold."""
    try:
        yield
    except BelowThreshold:
        from ..engine.status import read_report

        if not as_json:
            report = read_report(run)
            say(*report.lines(), *keep_lines(run, report))
        raise


def guessed_lines(request: "RunRequest") -> Iterator[str]:
    """Yield which languages are guessed for stories that name none, and texts that may begin with titles."""
    from ..builders.rows import Settings, guessed_languages, unmarked_titles

    settings = request.config.stages["load_stories"]
    assert isinstance(settings, Settings)
    stories = [source.path for source in request.sources if source.role == "stories"]
    if by_name := guessed_languages(stories, settings):
        counts = ", ".join(f"{name} ({tallied(count, 'stories')})" for name, count in by_name.items())
        yield f"note: language guessed where none is named: {counts}; --language says it"
    if titled := unmarked_titles(stories, settings):
        others = [f"{len(titled) - 3} more"] if len(titled) > 3 else []
        yield (
            f"note: {listed([*titled[:3], *others])}: the first line may be a title, and is read as story; "
            "begin it with '# ' if it is one"
        )


def keep_lines(run: Path, report: "RunReport") -> Iterator[str]:
    """Yield for each reason why items were rejected what would keep them."""
    from ..engine.pipeline import load_pipeline
    from ..kinds.verbs import pipeline_of

    stages = {stage.name: stage.spec for stage in load_pipeline(pipeline_of(run)).stages}
    codes = sorted({(item.stage, item.code or "") for item in report.items if item.status == "rejected"})
    for stage, code in codes:
        if cure := stages[stage].keep.get(code):
            yield f"  to keep {code}: {cure}"


def incomplete_lines(run: Path) -> Iterator[str]:
    """Yield lines about the records of a run that lack a required string; none if all are complete."""
    from ..schemas.paths import RECORDS
    from ..schemas.plain_files import open_plain, parse_json
    from ..validators.katha.scene_rules import missing_fields

    path = run / RECORDS
    if not path.exists():
        return
    stories, lacking, unsaid = 0, 0, 0
    absent: Counter[str] = Counter()
    with open_plain(path, follow=True) as lines:
        for line in lines:
            bundle = parse_json(line)["payload"]
            missing = missing_fields(bundle["record"], bundle["variants"])
            stories += 1
            unsaid += bundle["record"]["provenance"]["source_rights_status"] == "unresolved"
            lacking += bool(missing)
            absent.update([*dict.fromkeys(re.sub(r"\[\d+\]", "[*]", path) for path in missing)])
    if unsaid:
        yield f"{unsaid} of {stories} records stay out of releases, because nobody has said their rights:"
        yield "  fix: --rights licensed_with_permission, or as `fabula schemas words rights_status` says"
    if lacking:
        yield (f"{lacking} of {stories} records are incomplete; they are packed with --allow-drafts alone:")
        yield from (
            f"  {name}: missing in {tallied(count, 'stories')}" for name, count in absent.most_common()
        )
        plain = [name for name in ("moral_label", "narrative_type") if any(name in path for path in absent)]
        with_stories = f"give {' and '.join(plain)} with the stories, and the rest" if plain else "give them"
        yield f"  fix: {with_stories} with --records;"
        yield f"    `fabula validate {quoted(run)} --all` names every missing field of every story"


def _funnel(out: Path, *, advice: bool = False) -> list[str]:
    """Return the funnel of a run as lines for people; with advice, which settings decided about it."""
    from ..builders.entities.building import FUNNEL, Step, advice_lines, funnel_lines
    from ..schemas.plain_files import read_json

    if not (out / FUNNEL).is_file():
        return []
    names = ("name", "unit", "before", "after", "codes")
    rows = read_json(out / FUNNEL, follow=True)
    steps = [Step(**{name: row[name] for name in names}) for row in rows]
    return [*funnel_lines(steps), *(advice_lines(steps) if advice else ())]


def _rates(runs: Sequence[Path], judge: str | None, people: Path | None) -> Rates | None:
    """Return the completion rates of evaluations; None where none is named."""
    from ..evaluation.events.score import rates_of, score_folder
    from ..evaluation.events.votes import Definitions

    if not runs:
        if judge is not None or people is not None:
            raise ConfigError(
                "--judge, --people", what="these options go only with --results",
                fix="name the evaluation, or leave the option out",
            )  # fmt: skip
        return None
    return rates_of([score_folder(run, definitions=Definitions(resamples=0)) for run in runs], judge)


def _people(table: Path) -> Rates:
    from ..evaluation.events.score import read_rates

    return read_rates(table)


# -- ``fabula extend``: add stories to a run; what it holds stays as it is


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
    from ..schemas.values import UNREAD, state_of
    from ..validators.katha.dataset import iter_bundles

    before = model_bill(run)
    with summary_first(run, as_json=as_json):
        report = extend_katha(run, sources, options, reporter=choose_reporter(as_json=as_json))
    show(report, as_json=as_json)
    if not as_json and report.run is not None:
        used = used_since(before, run)
        states = {state_of(each["record"]["validation_status"], each["checks"]) for each in iter_bundles(run)}
        drafts = "" if states.isdisjoint(UNREAD) else " --allow-drafts"
        say(
            *((used,) if used else ()),
            *incomplete_lines(run),
            f"next: fabula release pack {quoted(run)} --version auto --since RELEASE{drafts} --out NEW",
            "RELEASE is the one published before, NEW a new folder",
        )
    elif not as_json and options.dry_run:
        say("nothing was written")
    return 0
