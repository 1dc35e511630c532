"""Entry point of the ``fabula`` command. It lists the verbs and does nothing else."""

import logging
import re
import shlex
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from ..errors import ConfigError, ExitCode, UserError
from ..kinds import SPOKEN
from . import (  # noqa: F401 - each notes its commands
    benchmark,
    build,
    calibrate,
    checkup,
    edit,
    evaluate,
    exports,
    imports,
    init,
    leaderboard,
    memory,
    models,
    outputs,
    prompts,
    release,
    review,
    run,
    score,
    stats,
)
from .command import COMMANDS, examples, first_example
from .common import emit, log_to_stderr, report_error, say
from .folders import KINDS, recognise

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


MANY = 12
"""From so many commands on, a message does not list them."""
WORDING = {
    r"Input should be a valid integer.*": "a whole number is wanted here",
    r"Input should be a valid number.*": "a number is wanted here",
    r"'[^']*' is not a valid integer.*": "a whole number is wanted here",
    r"'[^']*' is not a valid float.*": "a number is wanted here",
    r"\('(\(Possible options: [^)]*\))',\)": r"\1",
    r"No such (command|option):? ('?[^ ]+'??)\.?(?= |$)": r"there is no \1 \2",
}
"""Words of the parser of commands, in its versions -> ours."""
UsageError: Any = typer.BadParameter.__base__  # wherever the installed Typer has it


class Verb(TyperGroup):
    """The commands of a verb. Stories are also called what their files call them."""

    def get_command(self, ctx: Any, cmd_name: str) -> Any:  # noqa: ANN401, ARG002 - types of Typer's own
        """Return a command by its name, or by the other name of the same kind."""
        names = (cmd_name, SPOKEN.get(cmd_name, ""), *(kind for kind in SPOKEN if SPOKEN[kind] == cmd_name))
        return next((self.commands[name] for name in names if name in self.commands), None)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:  # noqa: ANN401
        """Return the command; of a path in its place, say which commands there are.

        Raises:
            ConfigError: there is a path where a command is expected.
        """
        word = args[0]
        if self.get_command(ctx, word) is None and (Path(word).exists() or set(word) & set("./\\")):
            there = [*self.commands]
            kinds = f": {', '.join(there)}" if len(there) < MANY else ""
            fits = () if ctx.parent else KINDS[recognise(Path(word))].fits[:3]
            typed = [f"fabula {fit} {shlex.quote(word)}" for fit in fits or ("build stories",)]
            if ctx.parent and ctx.command.name != "build":
                typed = [first_example(self.commands[there[0]].epilog or "")]
            raise ConfigError(
                ctx.command_path, what=f"{word} stands where one of its commands is expected{kinds}",
                fix=f"for example {', or '.join(typed)}",
            )  # fmt: skip
        return super().resolve_command(ctx, args)


class Grouped(Verb):
    """The verbs, under the headings of :data:`GROUPS`."""

    def invoke(self, ctx: Any) -> Any:  # noqa: ANN401 - a type of Typer's own
        """Run a command; words that cannot be read are an error like any other."""
        with self._telling([*ctx._protected_args, *ctx.args]):
            return super().invoke(ctx)

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:  # noqa: ANN401
        """Read the options before a verb."""
        with self._telling(args):
            return super().parse_args(ctx, args)

    @contextmanager
    def _telling(self, words: list[str]) -> Iterator[None]:
        try:
            yield
            return
        except UserError as error:
            wrong = error
        except UsageError as error:
            if type(error).__name__ == "NoArgsIsHelpError":
                raise
            names, below = ["fabula"], self
            for word in words:
                if isinstance(below, TyperGroup) and (next_one := below.get_command(None, word)):
                    below, names = next_one, [*names, word]
            name = " ".join(names)
            said = error.format_message()
            if near := list(getattr(error, "possibilities", None) or ()):  # nearest first; Click sorts them
                said = said.replace(", ".join(sorted(near)), ", ".join(near))
            for theirs, ours in WORDING.items():
                said = re.sub(theirs, ours, said)
            said = re.sub(r"(?<=argument ')[A-Z_.]+(?=')", lambda its: its[0].strip(".").lower(), said)
            fix = f"see `{name} --help`"
            if (
                type(error).__name__ == "MissingParameter"
                and below
                and (shown := first_example(str(below.epilog)))
            ):
                fix = f"for example {shown}; {fix}"
            wrong = ConfigError(name, what=said, fix=fix)
        report_error(wrong, str(wrong), wrong.exit_code, as_json="--json" in words)
        raise typer.Exit(int(ExitCode.USAGE))

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


class Evaluates(Verb):
    """The ways of evaluating, and benchmarks by name: each is one of them, under its own protocol."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:  # noqa: ANN401 - a type of Typer's own
        """Read the options before a noun; ``--list`` says which nouns and benchmarks there are."""
        if args[:1] == ["--list"]:
            from ..kinds.benchmarks.benchmark import benchmarks

            commands = {name: self.commands[name].get_short_help_str(100) for name in self.commands}
            every = benchmarks()
            named = {
                name: f"{every[name].title}: {SPOKEN.get(every[name].noun, every[name].noun)}"
                for name in every
            }
            width = max(map(len, (*commands, *named)))
            say(*(f"{name:{width}}  {about}" for name, about in {**commands, **named}.items()))
            raise typer.Exit
        return super().parse_args(ctx, args)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:  # noqa: ANN401 - a type of Typer's own
        """Put the noun, the set and the protocol of a benchmark in the place of its name."""
        if self.get_command(ctx, args[0]) is None:
            from ..kinds.benchmarks.benchmark import benchmarks, protocol_in_words

            if (benchmark := benchmarks().get(args[0])) is not None:
                own = [words for words in protocol_in_words(benchmark) if words[0] not in args]
                if "--prompts" in args:
                    own = [words for words in own if words[0] != "--protocol"]
                judged = [word for words in own for word in words]
                args = [benchmark.noun, "--release", args[0], *judged, *args[1:]]
            elif near := get_close_matches(args[0], benchmarks(), 1):
                raise ConfigError(
                    f"fabula evaluate {args[0]}", what="there is no such kind and no such benchmark",
                    fix=f"fabula evaluate {shlex.join([*near, *args[1:]])}",
                )  # fmt: skip
        return super().resolve_command(ctx, args)


app = typer.Typer(
    name="fabula",
    cls=Grouped,
    no_args_is_help=True,
    rich_markup_mode=None,
    help="Build, validate, release and evaluate visual-story benchmarks.",
    epilog=examples(
        "fabula build stories stories.jsonl --planner rules --out runs/mine",
        "fabula release pack runs/mine --version 0.1.0 --license CC-BY-4.0 --allow-drafts --out dist/mine",
        "fabula --install-completion",
    ),
)
for _verb, _about in VERBS.items():
    _cls = Evaluates if _verb == "evaluate" else Verb
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
    verbose: Annotated[
        int,
        typer.Option(
            "--verbose", "-v", count=True, help="Before a command: log retries, with -vv all calls."
        ),
    ] = 0,
    quiet: Annotated[
        bool, typer.Option("--quiet", "-q", help="Before a command: no progress, only warnings and errors.")
    ] = False,
) -> None:
    log_to_stderr(logging.ERROR if quiet else (logging.WARNING, logging.INFO, logging.DEBUG)[min(verbose, 2)])
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
