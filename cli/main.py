"""Entry point of the ``fabula`` command. It lists the verbs and does nothing else."""

import sys
from collections.abc import Mapping
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from . import (  # noqa: F401 - each notes its commands
    audit,
    baseline,
    benchmark,
    build,
    calibrate,
    correlate,
    doctor,
    edit,
    evaluate,
    experiment,
    export_shots,
    exports,
    extend,
    hub,
    imports,
    init,
    leaderboard,
    memory,
    memory_shots,
    models,
    outputs,
    prompts,
    release,
    report,
    review,
    run,
    schemas,
    score,
    stats,
    validate,
    view,
)
from .command import COMMANDS, examples
from .common import emit, say

GROUPS: Mapping[str, Mapping[str, str]] = {
    "Make a benchmark": {
        "init": "",
        "build": "Build records from source material.",
        "import": "Bring published data and results into folders like our own.",
        "extend": "",
        "edit": "",
        "memory": "Remember entities for generators; make shots of episodes.",
    },
    "Check it": {
        "validate": "",
        "audit": "",
        "stats": "",
        "outputs": "Check generated storyboards and videos.",
    },
    "Publish it": {
        "release": "Package, verify and compare releases.",
        "publish": "",
        "fetch": "",
        "export": "Copy data and results into a folder of their own.",
    },
    "Evaluate generators": {
        "benchmark": "Published benchmarks by name: get them, run them, compare with what is printed.",
        "evaluate": "Have judges look at generated outputs, of a benchmark by name, too.",
        "score": "",
        "compare": "",
        "correlate": "",
        "baseline": "Make the outputs of a baseline.",
        "experiment": "Run studies of plans, renderers, seeds and judges.",
        "leaderboard": "Collect submissions, check and rank them, show them on pages.",
    },
    "Ask people": {
        "review": "Have people review records and outputs, and use their votes.",
        "calibrate": "",
    },
    "Look at it": {
        "view": "",
        "run": "Look at a run; check its journal; retry failures.",
        "report": "",
        "doctor": "",
        "models": "Check language models and models that look at pictures.",
        "prompts": "The prompt files.",
        "schemas": "The published JSON Schemas, and the words for fields.",
    },
}
"""Heading of --help -> verb -> what its nouns do, empty for a verb that has none."""
VERBS = {verb: about for verbs in GROUPS.values() for verb, about in verbs.items()}


class Grouped(TyperGroup):
    """The verbs, under the headings of :data:`GROUPS`."""

    def list_commands(self, ctx: object) -> list[str]:  # noqa: ARG002
        """Return the verbs in the order of their groups."""
        return [verb for verb in VERBS if verb in self.commands]

    def format_commands(self, ctx: object, formatter: Any) -> None:  # noqa: ANN401, ARG002
        """Write each group under its heading, all verbs in one column."""
        width = max(map(len, VERBS))
        limit = formatter.width - 6 - width
        for heading, verbs in GROUPS.items():
            with formatter.section(heading):
                formatter.write_dl(
                    [(f"{verb:{width}}", self.commands[verb].get_short_help_str(limit)) for verb in verbs]
                )


class Evaluates(TyperGroup):
    """The ways of evaluating, and benchmarks by name: each is one of them, under its own protocol."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:  # noqa: ANN401 - a type of Typer's own
        """Put the noun, the set and the protocol of a benchmark in the place of its name."""
        if args and args[0] not in self.commands:
            from ..kinds.benchmarks.benchmark import benchmarks, protocol_in_words

            if (benchmark := benchmarks().get(args[0])) is not None:
                own = [words for words in protocol_in_words(benchmark) if words[0] not in args]
                if "--prompts" in args:
                    own = [words for words in own if words[0] != "--protocol"]
                judged = [word for words in own for word in words]
                args = [benchmark.noun, "--release", args[0], *judged, *args[1:]]
        return super().resolve_command(ctx, args)


app = typer.Typer(
    name="fabula",
    cls=Grouped,
    no_args_is_help=True,
    rich_markup_mode=None,
    help="Build, validate, release and evaluate visual-story benchmarks.",
    epilog=examples(
        "fabula build katha stories.jsonl --planner rules --out runs/mine",
        "fabula release pack runs/mine --version 0.1.0 --license CC-BY-4.0 --allow-drafts --out dist/mine",
        "fabula --install-completion",
    ),
)
for _verb, _about in VERBS.items():
    _cls = Evaluates if _verb == "evaluate" else TyperGroup
    _group = typer.Typer(name=_verb, cls=_cls, no_args_is_help=True, rich_markup_mode=None, help=_about)
    for _command in COMMANDS:
        if _command.name.split()[0] == _verb:
            _command.add_to(_group if _about else app)
    if _about:
        app.add_typer(_group)


def _tell_version(*, as_json: bool) -> None:
    from ..version import __version__

    if not as_json:
        say(f"fabula {__version__}")
        return
    import platform
    import re
    from importlib.metadata import PackageNotFoundError, requires, version

    libraries: dict[str, str | None] = {}
    for needed in requires("fabula") or ():
        name = re.split(r"[\s\[<>=!~;]", needed, maxsplit=1)[0]
        if "extra ==" not in needed:
            try:
                libraries[name] = version(name)
            except PackageNotFoundError:
                libraries[name] = None
    machine = {"python": platform.python_version(), "platform": platform.platform()}
    emit({"fabula": __version__, **machine, "libraries": libraries})


@app.callback(invoke_without_command=True)
def _root(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="With --version: print JSON for scripts.")] = False,
) -> None:
    if version:
        _tell_version(as_json=as_json)
        raise typer.Exit
    if as_json:
        raise typer.BadParameter("goes before a command only with --version; commands have their own --json")
    if context.invoked_subcommand is None:  # pragma: no cover - Typer shows the help before
        raise typer.Exit(2)


def main() -> None:
    """Run the command line."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):  # stories come in every script, whatever the locale says
            stream.reconfigure(encoding="utf-8", errors="backslashreplace")
    app()


if __name__ == "__main__":
    main()
