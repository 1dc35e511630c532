"""``fabula outputs``: look at generated pictures or videos before anything is spent on judging them."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Protocol

import typer

from ..errors import ConfigError
from ..schemas.text import quoted, tallied
from .command import FLAGS, command
from .common import Findings, emit, finding_lines, released, say, show, warn
from .evaluate import given_suite

if TYPE_CHECKING:
    from ..evaluation.judging.packets import RenderedText
    from ..evaluation.outputs.layout import Wanted
    from ..evaluation.outputs.shots import CheckOptions


@command("outputs check", table="--map", owners="cli.outputs:owners_of_checks")
def check(
    folders: Annotated[Sequence[Path], typer.Argument(metavar="DIR...")],
    *,
    release: Path | None = None,
    suite: Path | None = None,
    splits: Sequence[str] = (),
    ocr: bool = False,
    mode: str | None = None,
    language: str | None = None,
    timestamp: str | None = None,
    first_shot: Annotated[int, typer.Option(min=0, max=1)] = 1,
    cuts_by: str | None = None,
    suggest: Path | None = None,
    table: Path | None = None,
    out: Path | None = None,
    everything: bool = False,
    as_json: bool = False,
) -> int:
    """List outputs that are missing, unreadable or misnumbered.

    Exits with 1 if there are any. Outputs are storyboards; with --suite or a release of events, videos; with
    a set of shot scripts, pictures or clips of shots; with a set of episodes, a video of each shot or of each
    episode. Rendered text, odd pictures and stray files are reported too, but do not change the exit code.
    Where files cannot be told, --suggest writes what each may be. Correct it, give it back with --map, and
    check and evaluate the new folder --out.

    Options:
        folders: Outputs of one method each.
        release: Release, of stories or of events, or a set of shots or of episodes.
        splits: Only stories of this split [all].
        ocr: Also report text rendered inside pictures (extra `ocr`).
        cuts_by: What finds the shots in a video of a whole episode without a cut list: transnetv2, or
            histogram, which needs no torch [transnetv2].
        suggest: Write a map of the files of DIR to this CSV file, and check nothing.
        table: A corrected map, by which the files of DIR are put into --out before they are checked.
        out: With --map, a new folder for the files; its name is the method's.

    Examples:
        fabula outputs check storyboards/model-x --release dist/mine-0.1.0
        fabula outputs check storyboards/* --release dist/mine-0.1.0 --split public_test --json
        fabula outputs check videos/model-x --suite all_prompts.json
        fabula outputs check outputs/model-x --release runs/vistory --timestamp latest
        fabula outputs check videos/model-x --release dist/episodes-0.1.0
        fabula outputs check raw/model-x --release runs/vistory --suggest map.csv
        fabula outputs check raw/model-x --release runs/vistory --map map.csv --out outputs/model-x
    """
    from ..evaluation.outputs.layout import arrange, suggest_map
    from ..evaluation.outputs.shots import CheckOptions, Choice

    if (suggest is not None or table is not None) and len(folders) > 1:
        raise ConfigError("DIR", what="a map is of the outputs of one method", fix="give one folder")
    if (table is None) is not (out is None):
        raise ConfigError("--map, --out", what="only one of the two was given", fix="give both, or none")
    shots = CheckOptions(choice=Choice(mode, language, timestamp), first=first_shot)
    given = {
        "splits": splits, "ocr": ocr, "mode": mode, "language": language, "timestamp": timestamp,
        "first_shot": first_shot != 1, "cuts_by": cuts_by,
    }  # fmt: skip
    judged = _judged(release, suite, _Options(given, shots))
    if suggest is not None:
        counts = suggest_map(folders[0], judged.wanted(), suggest)
        if as_json:
            emit({"map": str(suggest), **counts})
        else:
            told = ", ".join(f"{count} {what}" for what, count in counts.items())
            by = f"--suite {quoted(suite)}" if suite else f"--release {quoted(release)}"
            check = f"fabula outputs check {quoted(folders[0])} {by} --map {quoted(suggest)} --out NEW"
            say(f"{suggest}: {told}; correct it first", f"next: {check}")
        return 0
    if table is not None and out is not None:
        arrange(folders[0], table, judged.wanted(), out)
        folders = [out]
    reports, rendered = judged.check(folders)
    _show(reports, everything=everything, as_json=as_json, rendered=rendered)
    return int(any(not report.ok for report in reports))


@dataclass(frozen=True)
class _Options:
    """What of the command only some kinds know."""

    given: Mapping[str, Any]  # option -> its value; what is empty was not given
    shots: "CheckOptions"


@dataclass(frozen=True)
class _Judged:
    """What outputs are judged by."""

    wanted: "Callable[[], Wanted]"  # what is asked for
    # the reports on folders, and by method the text that is rendered in its pictures
    check: "Callable[[Sequence[Path]], tuple[Sequence[_Checked], Mapping[str, Sequence[RenderedText]]]]"


def _judged(release: Path | None, suite: Path | None, options: _Options) -> _Judged:
    from ..kinds import entities, events
    from ..releases.shots.imports import is_shot_set

    folder = released(release)
    if folder is not None and suite is None and is_shot_set(folder):
        from ..evaluation.outputs.shots import check_shots, wanted_shots
        from ..releases.shots.tree import read_shot_set

        _refuse(options.given, "images")
        shot_set, _ = read_shot_set(folder)
        return _Judged(
            lambda: wanted_shots(shot_set),
            lambda folders: ([check_shots(each, shot_set, options.shots) for each in folders], {}),
        )
    if folder is not None and suite is None and entities.MARKS.match(folder):
        return _episodes(folder, options)
    if suite is None and folder is None:
        raise ConfigError(
            "--release, --suite", what="nothing says what the outputs are of",
            fix="name the release of stories, events, shots or episodes with --release, or a suite with "
            "--suite",
        )  # fmt: skip
    if suite is not None or folder is None or events.MARKS.match(folder):
        from ..evaluation.outputs.videos import check_video_methods, wanted_videos
        from ..releases.events.form import load_suite

        prompts = load_suite(given_suite(suite, folder))
        _refuse(options.given, "events")
        return _Judged(
            lambda: wanted_videos(prompts), lambda folders: (check_video_methods(folders, prompts), {})
        )
    return _storyboards(folder, options)


def _storyboards(folder: Path, options: _Options) -> _Judged:
    from ..evaluation.judging.packets import rendered_in
    from ..evaluation.katha.load_items import variant_stories
    from ..evaluation.outputs.storyboards import check_methods, wanted_storyboards
    from ..kinds.verbs import load_stories
    from ..media.quality import open_reader

    _refuse(options.given, "katha")
    loaded = load_stories(folder)
    variants = variant_stories(loaded, loaded)

    def check_them(
        folders: Sequence[Path],
    ) -> "tuple[Sequence[_Checked], Mapping[str, Sequence[RenderedText]]]":
        reports = check_methods(folders, loaded, options.given["splits"], variants)
        reader = open_reader() if options.given["ocr"] else None
        texts = {report.method: rendered_in(report, loaded.by_id, reader) for report in reports if reader}
        return reports, texts

    return _Judged(lambda: wanted_storyboards([*loaded, *variants]), check_them)


def _episodes(release: Path, options: _Options) -> _Judged:
    from ..evaluation.outputs.entities import CheckOptions, check_episodes, wanted_videos
    from ..evaluation.outputs.named import require_distinct
    from ..media.shot_detection import METHODS
    from ..releases.entities.tree import read_entity_set

    _refuse(options.given, "episodes")
    wanted = options.given["cuts_by"] or "transnetv2"
    finder = next((method for method in METHODS if method == wanted), None)
    if finder is None:
        expected = f"one of {', '.join(METHODS)}"
        raise ConfigError("--cuts-by", expected=expected, found=wanted, fix="check the spelling")
    whole, _ = read_entity_set(release, rules=False)

    def check_them(folders: Sequence[Path]) -> "tuple[Sequence[_Checked], dict[str, list[RenderedText]]]":
        require_distinct([folder.resolve().name for folder in folders])
        return [check_episodes(each, whole, options=CheckOptions(finder)) for each in folders], {}

    return _Judged(lambda: wanted_videos(whole), check_them)


OWNERS = {
    "splits": "katha", "ocr": "katha", "suite": "events", "mode": "images", "language": "images",
    "timestamp": "images", "first_shot": "images", "cuts_by": "episodes",
}  # fmt: skip
"""Option that only one kind of outputs has -> how such outputs are evaluated."""


def owners_of_checks() -> dict[str, tuple[str, ...]]:
    """Return whose options those of ``fabula outputs check`` are that not all have."""
    from ..kinds.registry import judging_named

    return {name: (judging_named(noun).scored().title,) for name, noun in OWNERS.items()}


def _refuse(given: Mapping[str, object], noun: str) -> None:
    """Refuse options that are for outputs of another kind."""
    wrong = [name for name, value in given.items() if value and OWNERS[name] != noun]
    if wrong:
        from ..kinds.registry import judging_named

        owner, title = owners_of_checks()[wrong[0]][0], judging_named(noun).scored().title
        flags = ", ".join(FLAGS.get(name, f"--{name.replace('_', '-')}") for name in wrong)
        raise ConfigError(flags, what=f"only for {owner}; these are {title}", fix="leave it out")


def _within(method: str, where: str) -> str:
    return method if where == "." else f"{method}/{where}"


class _Checked(Findings, Protocol):
    """Findings about the outputs of a method."""

    @property
    def ok(self) -> bool:
        """Whether there is no error."""
        ...

    @property
    def method(self) -> str:
        """The method."""
        ...


def _show(
    reports: Sequence[_Checked],
    *,
    everything: bool,
    as_json: bool,
    rendered: "Mapping[str, Sequence[RenderedText]]" = {},  # noqa: B006 - never changed
) -> None:
    """Print what was found about each method, and the text that is rendered in its pictures."""
    from ..evaluation.outputs.layout import NOTHING_FOUND, UNTOLD

    if as_json:
        texts = {name: {"rendered": [text.as_json() for text in shown]} for name, shown in rendered.items()}
        emit({"outputs": [{**report.as_json(), **texts.get(report.method, {})} for report in reports]})
        return
    for report in reports:
        own = [replace(issue, where=_within(report.method, issue.where)) for issue in report.issues]
        cause = [] if everything else [issue for issue in own if issue.code == NOTHING_FOUND]
        say(*finding_lines(cause or own, everything=everything))
        if more := len(own) - len(cause) if cause else 0:
            say(f"... and {tallied(more, 'more findings')} that follow from it; --all prints them")
        say(*(f"text: {report.method}/{text}" for text in rendered.get(report.method, ())), report.summary())
    untold = sum(issue.code in UNTOLD for report in reports for issue in report.issues)
    if untold and any(not report.ok for report in reports):
        say(f"{tallied(untold, 'names')} cannot be told: --suggest map.csv writes what each file may be")


@command("outputs keyframes")
def keyframes(
    videos: Annotated[Path, typer.Argument(metavar="VIDEOS")],
    *,
    release: Path,
    out: Path,
    review: Path | None = None,
    method: str = "transnetv2",
    threshold: float | None = None,
    device: str = "cpu",
    as_json: bool = False,
) -> int:
    """Cut videos of stories into shots and write their middle frames.

    There is one video per story. Its shots are matched with the shots of the script in order; keyframes.json
    in OUT lists every match and every missing or surplus shot. Correct it and run the command again. Exits
    with 1 while there is something to review.

    Options:
        videos: Folder with one video per story.
        release: A set of shots.
        out: Folder to write the frames to; its name is the method's.
        review: A corrected review file [keyframes.json in OUT].
        method: transnetv2, or histogram, which needs no torch.
        threshold: A change above this value begins a new shot [the method's].
        device: Where the network runs: cpu, cuda, mps.

    Examples:
        fabula outputs keyframes videos/model-x --release runs/vistory --out outputs/model-x
        fabula outputs keyframes videos/model-x --release runs/vistory --out outputs/model-x --review
            corrected.json
    """
    from ..evaluation.shots.keyframes import Finding, take_keyframes
    from ..media.shot_detection import METHODS

    if method not in METHODS:
        raise ConfigError(
            "--method", expected=f"one of {', '.join(METHODS)}", found=method, fix="check the spelling"
        )
    _check_device(method, device)
    finding = Finding(method, threshold, device)
    taken = take_keyframes(videos, released(release), out, finding, review, warn)
    show(taken, as_json=as_json)
    return int(not taken.complete)


def _check_device(method: str, device: str) -> None:
    """Check the device that the network is to run on, before any video is opened."""
    from ..media.shot_detection import identity
    from ..models.vision.weights import Place

    if method == "transnetv2":
        identity("transnetv2")
        Place(device).checked()  # type: ignore[arg-type]
