"""``fabula import``: published data and results become folders that are used like our own."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..errors import ConfigError
from ..schemas.text import quoted, tallied
from .command import command
from .common import emit, finding_lines, released, say, show, show_findings, warn

if TYPE_CHECKING:
    from ..builders.books.building import BookOptions
    from ..builders.shots.building import Sees
    from ..releases.katha.package_import import ImportOptions


@command("import stories", "releases.katha.package_import:ImportOptions")
def katha(
    source: Annotated[str, typer.Argument(metavar="FOLDER|REPO@VERSION")],
    *,
    options: "ImportOptions",
    out: Path,
    field: Annotated[Sequence[str], typer.Option(metavar="OURS=THEIRS")] = (),
    as_json: bool = False,
) -> int:
    """Import an official KathaBench package.

    The new folder loads, validates and is judged like a release. The package is a folder, or REPO@VERSION: a
    repository on the Hub with a tag or commit. Nothing is lost: every file is kept as it is, fields that
    Fabula does not have are listed, and `fabula export stories` gives the package back.

    Options:
        source: The official package, with annotations.jsonl.
        out: A new folder.
        field: The package calls our field OURS by the name THEIRS.

    Examples:
        fabula import stories KathaBench-25K --out dist/kathabench
        fabula import stories user/kathabench@v1 --out dist/kathabench
        fabula import stories downloads/package --field story_text=story --language en --out dist/package
    """
    from ..releases.katha.package_import import import_package

    whole = replace(options, fields=dict(map(_pair, field)))
    tell: Callable[[str], None] = (lambda _: None) if as_json else warn
    show(import_package(source, out, whole, tell), as_json=as_json)
    return 0


@command("import kathatrace-demo")
def kathatrace_demo(folder: Path, *, out: Path, as_json: bool = False) -> int:
    """Import the authors' demo of KathaTrace: stories, captions of storyboards, and the pictures.

    The new folder holds stories.jsonl and records.jsonl, which `fabula build stories` takes, and the
    storyboards as outputs. A scene's text is the caption of its picture. Words for collections, morals and
    transitions that are none of ours stay the demo's, in source_words.jsonl and in each story's reference;
    summary.json says of each word which of ours it is, and why.

    Options:
        folder: A copy of the demo's repository.
        out: A new folder.

    Examples:
        fabula import kathatrace-demo clones/kathatrace-demo --out runs/demo
    """
    from ..kinds.benchmarks.kathatrace_demo import import_demo

    show(import_demo(folder, out), as_json=as_json)
    return 0


@command("import book", "builders.books.building:BookOptions")
def book(
    books: Sequence[Path],
    *,
    options: "BookOptions",
    out: Path,
    as_json: bool = False,
) -> int:
    """Split books of many tales into stories.

    Text, Markdown, HTML and EPUB are split by headings, numbering and tables of contents; what is not plain
    is left out as unsure, or asked of a model with --model. Licences, prefaces, contents, notes and captions
    are left out. A tale that is told in another names it. stories.jsonl is what `fabula build stories` takes,
    left_out.jsonl holds all other text with the reason, summary.json counts both and what is not known of
    the sources.

    Options:
        books: Books (.txt, .md, .html, .epub), or folders of them.

    Examples:
        fabula import book aesop.epub --collection aesop --rights public_domain_or_rights_compatible
            --rights-reason "translator died in 1926" --out runs/aesop
        fabula import book ocean-of-story/ --model openai:gpt-4.1-mini --max-cost 2 --out runs/ocean
    """
    from ..api.calling import choose_reporter
    from ..builders.books.building import STORIES, SUMMARY, import_books
    from ..schemas.plain_files import read_json

    report = import_books(books, out, options, reporter=choose_reporter(as_json=as_json))
    summary = read_json(out / SUMMARY, follow=True)
    if as_json:
        emit({**report.as_json(), "summary": summary})
        return 0
    show(report, as_json=False)
    say(f"{tallied(summary['stories'], 'stories')} of {summary['words']} words in {out / STORIES}")
    say(
        *(f"  left out: {tallied(words, 'words')}: {why}" for why, words in summary["words_left_out"].items())
    )
    say(*(f"  missing: {document}" for document in summary["missing"]))
    unknown = {name: count for name, count in summary["not_known"].items() if count}
    if summary["rights_unresolved"]:
        unknown["rights"] = summary["rights_unresolved"]
    say(*(f"  not known: {name} of {count} stories" for name, count in unknown.items()))
    say(f"next: fabula build stories {quoted(out / STORIES)} --out runs/mine")
    return 0


def _pair(text: str) -> tuple[str, str]:
    ours, equals, theirs = text.partition("=")
    if not equals:
        raise ConfigError(
            "--field", what=f"{text!r} is not written OURS=THEIRS", fix="write it as story_text=story"
        )
    return ours, theirs


@command("import storyeval-results")
def storyeval_results(
    files: Sequence[Path],
    *,
    suite: Path,
    out: Path,
    method: str | None = None,
    judge: str | None = None,
    as_json: bool = False,
) -> int:
    """Import published StoryEval result files.

    Every reply is kept; its completion list is read from its text.

    Options:
        files: Published result files.
        suite: The suite that they belong to.
        out: A new folder.
        method: The video model [from the file name].
        judge: The judge [from the file name].

    Examples:
        fabula import storyeval-results pika1.5_gpt4o_final.json --suite all_prompts.json --out runs/pika
        fabula import storyeval-results mine.json --method my-model --judge openai:gpt-4o --suite
            all_prompts.json --out runs/mine
    """
    from ..evaluation.events.judging import Results, import_results, save_import
    from ..releases.events.form import load_suite

    loaded = load_suite(released(suite))
    imported = import_results([Results(path, method, judge) for path in files], loaded)
    save_import(out, imported, loaded)
    if as_json:
        differences = [dict(vars(each)) for each in imported.differences]
        emit({"out": str(out), "replies": imported.replies, "differences": differences})
        return 0
    answered = sum(one.outcome == "answered" for one in imported.archive.judgements)
    say(f"{out}: {tallied(imported.replies, 'replies')}, {answered} with a completion list")
    for one in imported.differences:
        why = f" ({one.reason})" if one.reason else ""
        warn(f"{one.unit} vote {one.vote}: published {one.published}, read {one.parsed}{why}")
    say(f"next: fabula score {quoted(out)}")
    return 0


@command("import results")
def results(
    benchmark: Annotated[str, typer.Argument(metavar="BENCHMARK")],
    sources: Sequence[Path],
    *,
    out: Path,
    suite: Path | None = None,
    release: Path | None = None,
    videos: Sequence[Path] = (),
    method: str | None = None,
    judge: str | None = None,
    as_json: bool = False,
) -> int:
    """Import published results by the name of their benchmark.

    storyeval is `import storyeval-results`, entitybench is `import entitybench-results`, and vbench is
    `import vbench-results`. Files of several methods and judges are read at once, each judge for itself.

    Options:
        benchmark: storyeval, entitybench or vbench.
        sources: Result files; of entitybench, folders.
        out: A new folder; of vbench, a new file.
        suite: storyeval: the suite that the results belong to.
        release: entitybench: the episodes that were judged.
        videos: vbench: folders with the videos that it saw.
        method: Whose videos they are of [as the files say].
        judge: storyeval: the judge [from the file name].

    Examples:
        fabula import results storyeval results/*_final.json --suite all_prompts.json --out runs/published
        fabula import results vbench vbench/*_eval_results.json --videos outputs/mine --out vbench.json
    """
    given = {"suite": suite, "release": release, "videos": videos or None, "method": method, "judge": judge}
    if benchmark not in _RESULTS:
        fix = f"use one of {', '.join(_RESULTS)}; for printed tables, leaderboard init --published"
        raise ConfigError(benchmark, what="no results of this benchmark can be imported", fix=fix)
    read, needed, allowed = _RESULTS[benchmark]
    options = {name: value for name, value in given.items() if value is not None}
    if needed and needed not in options:
        raise ConfigError(f"--{needed}", what=f"results of {benchmark} need it", fix=f"give --{needed} PATH")
    if wrong := [name for name in options if name not in allowed]:
        raise ConfigError(f"--{wrong[0]}", what=f"{benchmark} does not take it", fix="leave it out")
    return read(sources, out=out, as_json=as_json, **options)


@command("import archive")
def archive(
    folders: Sequence[Path],
    *,
    out: Path,
    allow: Sequence[str] = (),
    first_wins: bool = False,
    as_json: bool = False,
) -> int:
    """Merge evaluations into one; no model is asked.

    They must have been made under the same protocol, and may differ in judges, methods, stories or machines.
    What is in several of them is kept once. If one judge answered one question differently in two of them,
    the merge is refused and both answers are shown, unless --first-wins is given. The new folder is scored
    like any other.

    Options:
        folders: Evaluation folders, two or more.
        out: A new folder.
        allow: Part of the protocol that may differ, such as decoding.
        first_wins: Where answers to one question differ, keep the first folder's.

    Examples:
        fabula import archive runs/judge-a runs/judge-b --out runs/both
        fabula import archive machine-1/eval machine-2/eval --first-wins --out runs/all
    """
    from ..kinds.evaluations import judging_of, merge_archives

    merged = merge_archives(folders, out, allowed=allow, first_wins=first_wins)
    if as_json:
        emit({"out": str(out), **merged.as_json()})
    else:
        show(merged, as_json=False)
        release = "" if judging_of(out).protocol().archive.alone else " --release RELEASE"
        say(f"next: fabula score {quoted(out)}{release}")
    return 0


@command("import vistory")
def import_vistory(
    source: Annotated[Path, typer.Argument(metavar="FOLDER")],
    *,
    out: Path,
    created_at: str | None = None,
    everything: bool = False,
    as_json: bool = False,
) -> int:
    """Import shot scripts in the official ViStoryBench tree.

    Scripts stay the same field by field, images byte for byte. Everything that is wrong is listed, and the
    command then exits with 1; what can be used is written all the same, and can be packed as a release.

    Options:
        source: The official tree, or the folder above it.
        out: A new folder.
        created_at: Creation time of the run, RFC 3339.

    Examples:
        fabula import vistory /data/ViStory --out runs/vistory
    """
    from ..releases.shots.imports import import_set

    made = import_set(source, out, created_at)
    if not as_json:
        for line in finding_lines(made.report.issues, everything=everything):
            say(line)
    show(made, as_json=as_json)
    return int(not made.report.ok)


@command("import entitybench")
def import_entitybench(
    source: Annotated[Path, typer.Argument(metavar="FOLDER")],
    *,
    out: Path,
    created_at: str | None = None,
    everything: bool = False,
    as_json: bool = False,
) -> int:
    """Import episodes in the official EntityBench form.

    The new folder is used like a run. Files stay the same byte for byte. Findings are counted by code; fabula
    validate lists them. Exits with 1 if a file could not be used, or an episode cannot be released as it is.

    Options:
        source: Folder with scripts/ and splits/, or a folder of scripts.
        out: A new folder.
        created_at: Creation time of the run, RFC 3339.

    Examples:
        fabula import entitybench EntityBench/data --out runs/eb
    """
    from ..releases.entities.form import import_episodes

    made = import_episodes(source, out, created_at)
    if not as_json:
        for line in finding_lines(made.lost, everything=everything):
            say(line)
    show(made, as_json=as_json)
    return int(bool(made.lost))


@command("import entitybench-results")
def entitybench_results(
    folders: Sequence[Path],
    *,
    out: Path,
    method: str | None = None,
    release: Path | None = None,
    as_json: bool = False,
) -> int:
    """Import results of EntityBench's evaluator.

    Its public code writes a JSON file for each episode. They are scored and compared like evaluations of
    ours. Several folders are several methods, judged alike. The files give plain means of episodes exactly.
    Corrected means need the episodes that were judged; those of fidelity cannot be rebuilt. What can and what
    cannot is said with the result.

    Options:
        folders: Folders that the public evaluator wrote, its --out_dir.
        out: A new folder.
        method: Whose videos they are of [as its manifest says].
        release: Episodes that were judged: a release, a run, or a folder of official episodes.

    Examples:
        fabula import entitybench-results eval_results/storymem --release EntityBench/data --out runs/storymem
        fabula import entitybench-results eval_results/mine --method mine --out runs/mine
    """
    from ..evaluation.entities.published import import_results

    show(import_results(folders, out, method, released(release)), as_json=as_json)
    return 0


@command("import vbench-results")
def vbench_results(
    files: Sequence[Path],
    *,
    videos: Sequence[Path],
    out: Path,
    as_json: bool = False,
) -> int:
    """Match VBench's own results to the videos of shots.

    Each value is kept under the hash of its video, so that evaluations of these videos can use it: motion
    smoothness, which VBench measures with a network that Fabula does not run, and the other five measures. A
    result belongs to the video of its file and folder name. What has no counterpart is told. VBench's
    summaries are not used.

    Options:
        files: Result files of VBench (*_eval_results.json).
        videos: Folders with the videos that VBench saw; several with one option each.
        out: A new file.

    Examples:
        fabula import vbench-results vbench/*_eval_results.json --videos outputs/my-method --out vbench.json
    """
    from ..evaluation.entities.quality import match_results, write_results

    matched = match_results(files, videos)
    write_results(out, matched)
    if as_json:
        emit({"out": str(out), **matched.as_json()})
    else:
        say(f"{out}:", *matched.lines())
    return 0


@command("import references", out="--to")
def references(
    folder: Path,
    *,
    out: Path,
    source: str | None = None,
    rights: str | None = None,
    detector: str | None = None,
    everything: bool = False,
    as_json: bool = False,
) -> int:
    """Add reference images to a set of shot scripts.

    Each image is checked: readable, large enough, not there already, at most 10 per character. Source and
    rights come from --source and --rights, or for single files from references.jsonl in the folder. Exits
    with 1 if an image could not be added; an image that is there already is only reported.

    Options:
        folder: Images, as STORY/CHARACTER/*.jpg.
        out: The run or set to add them to.
        source: Where the images come from, unless references.jsonl says it.
        rights: Under which licence or right they may be used, unless references.jsonl says it.
        detector: Report images in which this detector finds nobody.

    Examples:
        fabula import references drawings/ --to runs/shots --rights "CC0-1.0" --source "drawn by Ana"
        fabula import references stills/ --to runs/shots --detector faces-scrfd-10g
    """
    from ..builders.shots.building import Terms, import_references

    terms = Terms(source=source, rights=rights)
    report = import_references(folder, out, terms, None if detector is None else _looks(detector))
    return show_findings(report, as_json=as_json, everything=everything)


def _looks(name: str) -> "Sees":
    """Return what looks at a picture with a detector."""
    from ..models.vision.registry import open_vision
    from ..models.vision.store import Detector
    from ..models.vision.weights import Place

    model = open_vision(name, Place(), kind="detector")
    assert isinstance(model, Detector)
    return lambda image: bool(model.detect([image])[0])


_RESULTS: dict[str, tuple[Callable[..., int], str, tuple[str, ...]]] = {
    "storyeval": (storyeval_results, "suite", ("suite", "method", "judge")),
    "entitybench": (entitybench_results, "", ("release", "method")),
    "vbench": (vbench_results, "videos", ("videos",)),
}
"""Benchmark -> the command that reads its results, the option that it needs, and those that it takes."""
