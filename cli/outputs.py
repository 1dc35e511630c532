"""``fabula outputs``: look at generated storyboards or videos before anything is spent on judging them."""

from pathlib import Path
from typing import Annotated

import typer

from ..errors import ConfigError
from .common import JsonOption, emit, example, guarded, released, say
from .suites import SuiteOption, given_suite

app = typer.Typer(
    name="outputs",
    no_args_is_help=True,
    rich_markup_mode=None,
    help="Check generated storyboards and videos.",
)


@app.callback()
def _outputs() -> None:
    """Check generated storyboards and videos."""


@app.command(
    "check",
    epilog=example(
        "fabula outputs check storyboards/model-x --release dist/mine-0.1.0",
        "fabula outputs check storyboards/* --release dist/mine-0.1.0 --split public_test --json",
        "fabula outputs check videos/model-x --suite all_prompts.json",
    ),
)
@guarded
def check(
    folders: Annotated[
        list[Path], typer.Argument(metavar="DIR...", help="Outputs of one method each.", show_default=False)
    ],
    release: Annotated[
        Path | None, typer.Option("--release", help="Release, of stories or of events.", show_default=False)
    ] = None,
    suite: SuiteOption = None,
    splits: Annotated[
        list[str] | None, typer.Option("--split", help="Only stories of this split. Repeatable [all].")
    ] = None,
    ocr: Annotated[
        bool, typer.Option("--ocr", help="Also report text rendered inside pictures (extra `ocr`).")
    ] = False,
    as_json: JsonOption = False,
) -> int:
    """List missing, unreadable, wrongly numbered and incomplete outputs. Exits with 1 if there are any.

    With --suite, or a release of events, they are videos. Rendered text is reported and is no finding.
    """
    folder = released(release)
    if suite is not None or folder is None or _is_of_events(folder):
        return _check_videos(folders, given_suite(suite, folder), (splits, ocr), as_json=as_json)
    from ..evaluation.judges.outputs import check_methods
    from ..evaluation.judges.rendered import rendered_in
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
        for issue in report.issues:
            say(f"{issue.level}: {report.method}/{issue}")
        for text in texts:
            say(f"text: {report.method}/{text}")
        say(report.summary())
    if as_json:
        emit({"outputs": shown})
    return int(any(not report.ok for report in reports))


def _is_of_events(release: Path) -> bool:
    from ..releases.layout import EVENTS
    from ..releases.loading import kind_of

    return kind_of(release) == EVENTS


def _check_videos(
    folders: list[Path], place: Path, only_stories: tuple[list[str] | None, bool], *, as_json: bool
) -> int:
    """Check videos against a suite; options that say something of storyboards only are refused."""
    from ..evaluation.completion.check_videos import check_video_methods
    from ..releases.suites import load_suite

    splits, ocr = only_stories
    if splits or ocr:
        raise ConfigError(
            "--split" if splits else "--ocr", expected="storyboards", found="videos of a suite",
            fix="leave the option out",
        )  # fmt: skip
    reports = check_video_methods(folders, load_suite(place))
    for report in () if as_json else reports:
        for issue in report.issues:
            say(f"{issue.level}: {report.method}/{issue}")
        say(report.summary())
    if as_json:
        emit({"outputs": [report.as_json() for report in reports]})
    return int(any(not report.ok for report in reports))
