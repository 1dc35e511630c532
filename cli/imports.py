"""``fabula import``: published results become an evaluation folder that is scored like our own."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from .common import JsonOption, emit, example, guarded, say, warn

if TYPE_CHECKING:
    from ..evaluation.completion.published import Imported

app = typer.Typer(
    name="import", no_args_is_help=True, help="Bring published results into an evaluation folder."
)


@app.callback()
def _import() -> None:
    """Bring published results into an evaluation folder."""


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
    method: Annotated[str | None, typer.Option("--method", help="The video model [from the name].")] = None,
    judge: Annotated[str | None, typer.Option("--judge", help="The verifier [from the name].")] = None,
    as_json: JsonOption = False,
) -> int:
    """Import StoryEval result files: every reply is kept, and its completion list is read from its text."""
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
