"""``fabula outputs``: look at generated pictures or videos before anything is spent on judging them."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..errors import ConfigError
from . import keyframes
from .common import JsonOption, emit, example, guarded, released, say, say_findings
from .findings import AllOption, finding_lines
from .suites import SuiteOption, given_suite

if TYPE_CHECKING:
    from ..evaluation.images.outputs import CheckOptions

ModeOption = Annotated[
    str | None, typer.Option("--mode", help="Shots: folder of the mode, if there are several.")
]
LanguageOption = Annotated[str | None, typer.Option("--language", help="Shots: en or ch, if there are both.")]
TimestampOption = Annotated[
    str | None, typer.Option("--timestamp", help="Shots: time stamp, or latest, if there are several.")
]
FirstShotOption = Annotated[
    int, typer.Option("--first-shot", min=0, max=1, help="Shots: number of the first shot in file names.")
]

app = typer.Typer(
    name="outputs",
    no_args_is_help=True,
    rich_markup_mode=None,
    help="Check generated storyboards and videos.",
)
app.command("keyframes", epilog=example(*keyframes.EXAMPLES))(keyframes.keyframes)


@app.callback()
def _outputs() -> None:
    """Check generated storyboards and videos."""


@app.command(
    "check",
    epilog=example(
        "fabula outputs check storyboards/model-x --release dist/mine-0.1.0",
        "fabula outputs check storyboards/* --release dist/mine-0.1.0 --split public_test --json",
        "fabula outputs check videos/model-x --suite all_prompts.json",
        "fabula outputs check outputs/model-x --release runs/vistory --timestamp latest",
    ),
)
@guarded
def check(
    folders: Annotated[
        list[Path], typer.Argument(metavar="DIR...", help="Outputs of one method each.", show_default=False)
    ],
    release: Annotated[
        Path | None,
        typer.Option(
            "--release", help="Release, of stories or of events, or a set of shots.", show_default=False
        ),
    ] = None,
    suite: SuiteOption = None,
    splits: Annotated[
        list[str] | None, typer.Option("--split", help="Only stories of this split. Repeatable [all].")
    ] = None,
    ocr: Annotated[
        bool, typer.Option("--ocr", help="Also report text rendered inside pictures (extra `ocr`).")
    ] = False,
    mode: ModeOption = None,
    language: LanguageOption = None,
    timestamp: TimestampOption = None,
    first_shot: FirstShotOption = 1,
    everything: AllOption = False,
    as_json: JsonOption = False,
) -> int:
    """List outputs that are missing, unreadable or misnumbered.

    Exits with 1 if there are any. Outputs are storyboards; with --suite or a release of events, videos; with
    a set of shot scripts, pictures or clips of shots. Rendered text, odd pictures and stray files are
    reported too, but do not change the exit code.
    """
    folder = released(release)
    if folder is not None and suite is None and _is_of_shots(folder):
        options = shot_options(mode, language, timestamp, first_shot)
        return _check_shots(folders, folder, (splits, ocr), options, everything=everything, as_json=as_json)
    if suite is not None or folder is None or _is_of_events(folder):
        given = given_suite(suite, folder)
        return _check_videos(folders, given, (splits, ocr), everything=everything, as_json=as_json)
    from ..evaluation.judges.outputs import check_methods
    from ..evaluation.judges.secrets import rendered_in
    from ..media.ocr import open_reader
    from ..releases.loading import load

    loaded = load(folder)
    reports = check_methods(folders, loaded, tuple(splits or ()))
    shown = []
    reader = open_reader() if ocr else None
    for report in reports:
        texts = rendered_in(report, loaded.by_id, reader) if reader else []
        if as_json:
            rendered = {"rendered": [text.as_json() for text in texts]} if reader else {}
            shown.append({**report.as_json(), **rendered})
            continue
        for line in finding_lines(report.issues, everything=everything, owner=f"{report.method}/"):
            say(line)
        for text in texts:
            say(f"text: {report.method}/{text}")
        say(report.summary())
    if as_json:
        emit({"outputs": shown})
    return int(any(not report.ok for report in reports))


def shot_options(
    mode: str | None, language: str | None, timestamp: str | None, first_shot: int
) -> "CheckOptions":
    """Return how outputs of shots are read."""
    from ..evaluation.images.layout import Choice
    from ..evaluation.images.outputs import CheckOptions

    return CheckOptions(choice=Choice(mode, language, timestamp), first=first_shot)


def _is_of_shots(release: Path) -> bool:
    from ..releases.shot_import import is_shot_set

    return is_shot_set(release)


def _check_shots(
    folders: list[Path],
    place: Path,
    only_stories: tuple[list[str] | None, bool],
    options: "CheckOptions",
    *,
    everything: bool,
    as_json: bool,
) -> int:
    """Check pictures of shots against a set; options that say something of storyboards only are refused."""
    from ..evaluation.images.outputs import check_shots
    from ..releases.shot_tree import read_shot_set

    _refuse(only_stories, "shots of a set of scripts")
    shot_set, _ = read_shot_set(place)
    reports = [check_shots(folder, shot_set, options) for folder in folders]
    for report in () if as_json else reports:
        say_findings(report, everything=everything, owner=f"{report.method}/")
    if as_json:
        emit({"outputs": [report.as_json() for report in reports]})
    return int(any(not report.complete for report in reports))


def _refuse(only_stories: tuple[list[str] | None, bool], found: str) -> None:
    splits, ocr = only_stories
    if splits or ocr:
        raise ConfigError(
            "--split" if splits else "--ocr",
            what=f"this option is for storyboards, not for {found}",
            fix="leave it out",
        )


def _is_of_events(release: Path) -> bool:
    from ..releases.layout import EVENTS
    from ..releases.loading import kind_of

    return kind_of(release) == EVENTS


def _check_videos(
    folders: list[Path],
    place: Path,
    only_stories: tuple[list[str] | None, bool],
    *,
    everything: bool,
    as_json: bool,
) -> int:
    """Check videos against a suite; options that say something of storyboards only are refused."""
    from ..evaluation.completion.check_videos import check_video_methods
    from ..releases.suites import load_suite

    _refuse(only_stories, "videos of a suite")
    reports = check_video_methods(folders, load_suite(place))
    for report in () if as_json else reports:
        say_findings(report, everything=everything, owner=f"{report.method}/")
    if as_json:
        emit({"outputs": [report.as_json() for report in reports]})
    return int(any(not report.ok for report in reports))
