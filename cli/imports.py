"""``fabula import``: published data and results become folders that are used like our own."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..errors import ConfigError
from . import entity_sets, import_archive, shot_material, shot_sets
from .common import JsonOption, emit, example, guarded, say, show, warn

if TYPE_CHECKING:
    from ..evaluation.completion.published import Imported

app = typer.Typer(
    name="import", no_args_is_help=True, help="Bring published data and results into folders like our own."
)


@app.callback()
def _import() -> None:
    """Bring published data and results into folders like our own."""


import_archive.register(app)
shot_sets.register_import(app)
shot_material.register_import(app)
entity_sets.register_import(app)


@app.command(
    "katha",
    epilog=example(
        "fabula import katha KathaBench-25K --out dist/kathabench",
        "fabula import katha user/kathabench@v1 --out dist/kathabench",
        "fabula import katha downloads/package --field story_text=story --language en --out dist/package",
    ),
)
@guarded
def katha(
    source: Annotated[
        str,
        typer.Argument(
            metavar="FOLDER|REPO@VERSION",
            help="The official package, with annotations.jsonl.",
            show_default=False,
        ),
    ],
    out: Annotated[Path, typer.Option("--out", help="A new folder.", show_default=False)],
    name: Annotated[str | None, typer.Option("--name", help="Short name [from the source].")] = None,
    version: Annotated[
        str | None, typer.Option("--version", help="Semantic version [from the package, else 0.0.0].")
    ] = None,
    language: Annotated[
        str, typer.Option("--language", help="Language of stories whose records do not name one.")
    ] = "en",
    field: Annotated[
        list[str] | None,
        typer.Option(
            "--field",
            metavar="OURS=THEIRS",
            help="The package calls our field OURS by the name THEIRS. Repeatable.",
        ),
    ] = None,
    as_json: JsonOption = False,
) -> int:
    """Import an official KathaBench package.

    The new folder loads, validates and is judged like a release. The package is a folder, or REPO@VERSION: a
    repository on the Hub with a tag or commit. Nothing is lost: unknown fields are set aside and reported,
    and `fabula export katha` writes them back.
    """
    from ..releases.official_import import import_package
    from ..releases.official_lines import ImportOptions

    options = ImportOptions(
        name=name, version=version, language=language, fields=dict(map(_pair, field or ()))
    )
    tell: Callable[[str], None] = (lambda _: None) if as_json else warn
    show(import_package(source, out, options, tell), as_json=as_json)
    return 0


def _pair(text: str) -> tuple[str, str]:
    ours, equals, theirs = text.partition("=")
    if not equals:
        raise ConfigError(
            "--field", what=f"{text!r} is not written OURS=THEIRS", fix="write it as story_text=story"
        )
    return ours, theirs


@app.command(
    "storyeval-results",
    epilog=example(
        "fabula import storyeval-results pika1.5_gpt4o_final.json --suite all_prompts.json --out runs/pika",
        "fabula import storyeval-results mine.json --method my-model --judge openai:gpt-4o"
        " --suite all_prompts.json --out runs/mine",
    ),
)
@guarded
def storyeval_results(
    files: Annotated[list[Path], typer.Argument(help="Published result files.", show_default=False)],
    suite: Annotated[
        Path, typer.Option("--suite", help="The suite that they belong to.", show_default=False)
    ],
    out: Annotated[Path, typer.Option("--out", help="A new folder.", show_default=False)],
    method: Annotated[
        str | None, typer.Option("--method", help="The video model [from the file name].")
    ] = None,
    judge: Annotated[str | None, typer.Option("--judge", help="The judge [from the file name].")] = None,
    as_json: JsonOption = False,
) -> int:
    """Import published StoryEval result files.

    Every reply is kept; its completion list is read from its text.
    """
    from ..evaluation.completion.published import Results, import_results, save_import
    from ..releases.suites import load_suite

    loaded = load_suite(suite)
    imported = import_results([Results(path, method, judge) for path in files], loaded)
    save_import(out, imported, loaded)
    if as_json:
        emit({"out": str(out), "replies": imported.replies, "differences": _differences(imported)})
        return 0
    answered = sum(one.outcome == "answered" for one in imported.archive.judgements)
    say(f"{out}: {imported.replies} replies, {answered} with a completion list")
    for one in imported.differences:
        why = f" ({one.reason})" if one.reason else ""
        warn(f"{one.unit} vote {one.vote}: published {one.published}, read {one.parsed}{why}")
    say(f"next: fabula score {out}")
    return 0


def _differences(imported: "Imported") -> list[dict[str, object]]:
    return [dict(vars(one)) for one in imported.differences]
