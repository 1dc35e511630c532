"""How a function becomes a command: its options are made when it is chosen, from what says them already.

A parameter is an argument, and one after ``*`` an option. What it means stands under ``Options:`` in the
docstring of the function; examples stand under ``Examples:``. Fields of classes of options are options, too:
what they mean stands under ``Attributes:`` in the class. ``{module:NAMES}`` stands for the names in a list.
"""

import copy
import inspect
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import MISSING, dataclass, field, fields
from importlib import import_module
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeVar, get_args, get_origin, get_type_hints

import typer
from typer.core import TyperCommand
from typer.models import ParameterInfo

from ..engine.run_options import costs_of
from ..errors import FabulaError
from ..schemas.text import listed
from .common import chosen_form, guarded, warn

if TYPE_CHECKING:
    from ..engine.running import RunKind


# -- What the shell offers after an option: names that Fabula declares, and those that a folder holds

MOST = 500
"""So many ids of a file are offered."""
Context = Any  # Typer's, of a type that it does not publish


def _declared(where: str) -> Callable[[Context], Iterable[str]]:
    """Return what offers the names that ``module:NAMES`` holds, or ``module:function`` returns."""

    def offered(_: Context) -> Iterable[str]:
        module, _, name = where.partition(":")
        names = getattr(import_module(f"..{module}", __package__), name)
        return names() if callable(names) else names  # type: ignore[no-any-return]

    return offered


def _run_kind(context: Context) -> "RunKind":
    """Return what executes the runs of a command: by the run that is named, else by its verb and noun."""
    from ..kinds.registry import judging_named, kind_named, run_kind_of

    if context.params.get("run"):
        return run_kind_of(Path(context.params["run"]))
    if context.parent.info_name == "build":
        return kind_named(context.info_name).drafting().run
    return judging_named(context.info_name).protocol().run


def _settings(context: Context) -> Iterator[str]:
    from ..engine.pipeline import load_pipeline

    for stage in load_pipeline(_run_kind(context).pipeline).stages:
        yield from (f"{stage.name}.{field}=" for field in stage.spec.settings.model_fields)


def _stages(context: Context) -> Iterable[str]:
    from ..engine.pipeline import load_pipeline

    return load_pipeline(_run_kind(context).pipeline).names()


def _ids(context: Context) -> Iterator[str]:
    for name in ("run", "release", "path", "stories"):
        given = context.params.get(name)
        files = () if not given else [given] if Path(given).is_file() else Path(given).glob("*.jsonl")
        for file in sorted(map(Path, files)):
            with file.open(encoding="utf-8") as lines:
                for record in map(json.loads, islice(lines, MOST)):
                    yield str(record.get("story_id") or record.get("id") or record.get("prompt_id"))


OFFERS: Mapping[str, Callable[[Context], Iterable[str]]] = {
    "prompt_id": _declared("prompts.loader:prompt_ids"),
    "metrics": _declared("evaluation.metrics.metric:names"),
    "preset": _declared("people.review.plan:preset_names"),
    "form": _declared("cli.common:FORMS"),
    "settings": _settings, "stage": _stages, "item": _ids, "story": _ids, "record": _ids, "stories": _ids,
}  # fmt: skip
"""Parameter -> what offers its values."""


def completer(parameter: str) -> Callable[..., list[str]] | None:
    """Return what completes a parameter, as Typer calls it; None where there is nothing to offer but files.

    Where a folder is missing, unreadable or of another kind, nothing is offered.
    """
    offers = OFFERS.get(parameter)
    if offers is None:
        return None

    def complete(ctx: Any, incomplete: str) -> list[str]:  # noqa: ANN401 - see Context
        with suppress(FabulaError, OSError, ValueError, AttributeError):
            return [name for name in dict.fromkeys(offers(ctx)) if name.startswith(incomplete)]
        return []

    return complete


# --

Function = TypeVar("Function", bound=Callable[..., int | None])
Anything = Any  # a function, a class or an annotation, of which only Python knows what it is

RUN_OPTIONS = "engine.run_options:RunOptions"
FLAGS = {
    "as_json": "--json", "form": "--format", "everything": "--all", "settings": "--set", "judges": "--judge",
    "stories": "--story", "labels": "--label", "units": "--prompt", "parts": "--part",
    "creators": "--creator", "authors": "--author", "links": "--link", "sizes": "--stories",
    "least_coverage": "--coverage",
    "subsets": "--subset", "methods": "--method", "splits": "--split", "moved": "--sources",
    "readings": "--read", "episodes": "--episode", "measures": "--measure",
}  # fmt: skip
"""Parameter -> its option, where that has another name."""
ALSO = {"--judge": ("--model",)}
"""Option -> how else it may be written, where no other option of its command is written so."""
MEANINGS = {
    "run": "Run folder.",
    "release": "Release of events, in place of --suite.",
    "suite": "Suite of events: an all_prompts.json, or the folder of a run with one.",
    "out": "Run folder; made if missing, continued if there.",
    "dry_run": "Only show what models would be asked, and the cost.",
    "mode": "Folder of the mode, if there are several.",
    "language": "En or ch, if there are both.",
    "timestamp": "Time stamp, or latest, if there are several.",
    "first_shot": "Number of the first shot in file names.",
    "everything": "Print every finding [those that repeat once, with their count].",
    "form": "How to print it: csv has each number on a line, markdown and latex have tables.",
    "as_json": "Print JSON for scripts; the same as --format json.",
}
"""Parameter -> what it means where neither its command nor a class of options says it."""
PLAIN = "How to print it: text or json."
"""What ``--format`` means where a command has no tables."""
_FORM = inspect.Parameter("form", inspect.Parameter.KEYWORD_ONLY)
LIMITS, STAGES = "max_cost", "stage_costs"
"""A limit in all, and a mapping of limits by stage: on the command line one option for both."""
LAST = ("everything", "form", "as_json")
_LISTED = re.compile(r"\{([\w.]+:\w+)\}")
_SECTION = re.compile(r"^(Options|Examples|Attributes|Raises):\n", re.MULTILINE)


@dataclass(frozen=True)
class Command:
    """A command of the program."""

    name: str  # what it is called after ``fabula``, such as ``release pack``
    # what it does; it gets what the user gave, and has defaults for the rest
    function: Callable[..., int | None]
    # classes whose fields are options, too. The function gets them in its parameter ``options`` as an object
    # of the only class, or in ``given`` as a mapping of the fields that the user gave.
    takes: tuple[str, ...] = ()
    without: tuple[str, ...] = ()  # fields that are no options of this command
    # parameter or field -> option, where it is not the usual one
    flags: Mapping[str, str] = field(default_factory=dict)
    # ``module:function`` that says whose options are those that not every kind has; empty where all are
    # everybody's
    owners: str = ""

    def add_to(self, app: typer.Typer) -> None:
        """Add it to the group of its verb, in the groups of its nouns if it has several, without options."""

        def chosen() -> None: ...

        chosen.command = self  # type: ignore[attr-defined]
        text = _sections(self.function)
        shown = examples(*_entries(text.get("Examples", "")))
        *nouns, last = self.name.split()[1:] or [self.name]
        for noun in nouns:
            app = _group_in(app, noun)
        app.command(last, cls=_Lazy, help=text[""], epilog=shown)(chosen)

    def with_options(self) -> Callable[..., None]:
        """Return the function that Typer reads the options from, and calls with what the user gave."""

        def run(**parsed: Any) -> None:  # noqa: ANN401 - the options of any command
            given = {
                name: value for name, value in parsed.items() if value is not None and value is not False
            }
            lists = {name: tuple(value) for name, value in given.items() if isinstance(value, list)}
            guarded(self._call, self.name)(**{**given, **lists})

        meanings = self._meanings()
        listed = [
            _parameter(own, own.annotation, own.default, self._flag(own.name), meanings)
            for own in self._own().values()
            if own.name not in ("options", "given")
        ]
        if "form" not in self._own():
            listed.append(_parameter(_FORM, str, None, "--format", meanings | {"form": PLAIN}))
        last = [parameter for parameter in listed if parameter.name in LAST]
        first = [parameter for parameter in listed if parameter not in last]
        every = [*first, *self._taken().values(), *last]
        _also(every)
        run.__signature__ = inspect.Signature(every)  # type: ignore[attr-defined]
        return run

    def _call(self, **values: Any) -> int | None:  # noqa: ANN401 - the options of any command
        if "form" not in self._own():
            form = chosen_form(
                values.pop("form", None), as_json=bool(values.get("as_json")), forms=("text", "json")
            )
            values |= {"as_json": True} if form == "json" else {}
        taken = {name: values.pop(name) for name in self._taken() if name in values}
        if isinstance(limits := taken.pop(LIMITS, None), float | tuple):
            total, stages = costs_of(limits) if isinstance(limits, tuple) else (limits, {})
            taken |= {} if total is None else {LIMITS: total}
            taken |= {STAGES: stages} if stages else {}
        if "options" in self._own():
            cls = _load(self.takes[0])
            if issubclass(cls, _load(RUN_OPTIONS)):
                taken["others"] = _load("kinds.registry:foreign_sections")
            values["options"] = cls(**taken)
        elif self.takes:
            values["given"] = taken
        return self.function(**values)

    def _own(self) -> Mapping[str, inspect.Parameter]:
        return inspect.signature(self.function).parameters

    def _flag(self, name: str) -> str:
        return self.flags.get(name) or FLAGS.get(name) or "--" + name.replace("_", "-")

    def _meanings(self) -> dict[str, str]:
        """Return what each option means: what the function says goes before what its classes say."""
        owners = (_load(RUN_OPTIONS), *map(_load, reversed(self.takes)), self.function)
        return MEANINGS | {name: text for owner in owners for name, text in _meanings(owner).items()}

    def _taken(self) -> dict[str, inspect.Parameter]:
        """Return the options that are fields of classes; those of a class stand before those of its bases."""
        taken: dict[str, inspect.Parameter] = {}
        meanings = self._meanings()
        for cls in map(_load, self.takes):
            hints = get_type_hints(cls, include_extras=True)
            for each in sorted(fields(cls), key=lambda each: each.name not in inspect.get_annotations(cls)):
                if each.name in (*self.without, *self._own(), *taken) or _is_no_option(hints[each.name]):
                    continue
                needed = each.default is MISSING and each.default_factory is MISSING
                by_stage = each.name == LIMITS and STAGES in hints and STAGES not in self.without
                hint = Sequence[str] if by_stage else hints[each.name]
                usual = each.default if "options" in self._own() and each.default is not MISSING else None
                named = inspect.Parameter(each.name, inspect.Parameter.KEYWORD_ONLY)
                taken[each.name] = _parameter(
                    named, hint, named.empty if needed else usual, self._flag(each.name), meanings
                )
        return taken


NOUNS = {"compass": "Semantic Compass: select storyboards, and repair them."}
"""Noun that has commands of its own -> what they do."""
COMMANDS: list[Command] = []
"""All commands, in the order of their files."""


def command(
    name: str, *takes: str, without: Sequence[str] = (), owners: str = "", **flags: str
) -> Callable[[Function], Function]:
    """Return what makes a function a command; see :class:`Command`. Classes are named as ``module:Class``."""

    def register(function: Function) -> Function:
        COMMANDS.append(Command(name, function, takes, tuple(without), flags, owners))
        return function

    return register


def examples(*lines: str) -> str:
    """Return the epilog that shows a command's examples, one a line."""
    return "Examples:\n\n" + "\n\n".join(f"  {line}" for line in lines)


def first_example(epilog: str) -> str:
    """Return the first command of an epilog that :func:`examples` made."""
    return epilog.split("\n\n")[1].strip()


def _group_in(app: typer.Typer, noun: str) -> typer.Typer:
    """Return the group of a noun in the group of its verb; it is made where it is not there."""
    for known in app.registered_groups:
        if known.typer_instance is not None and known.typer_instance.info.name == noun:
            return known.typer_instance
    group = typer.Typer(name=noun, no_args_is_help=True, rich_markup_mode=None, help=NOUNS[noun])
    app.add_typer(group)
    return group


class _Lazy(TyperCommand):
    """A command that has no options before somebody asks for them."""

    def get_params(self, ctx: Any) -> list[Any]:  # noqa: ANN401 - types of Typer's that it does not publish
        if not self.params:
            single = typer.Typer(add_completion=False, rich_markup_mode=None)
            try:
                self.made_of = self.callback.command  # type: ignore[union-attr]
                single.command()(self.made_of.with_options())
            except FabulaError as error:  # such as a package of the user that adds what does not fit
                warn(f"error: {error}")
                raise SystemExit(int(error.exit_code)) from error
            filled = typer.main.get_command(single)
            self.params, self.callback = filled.params, filled.callback
        return super().get_params(ctx)

    def format_options(self, ctx: Any, formatter: Any) -> None:  # noqa: ANN401
        """Write options in the groups of what they concern."""
        for heading, parameters in self.grouped(ctx).items():
            with formatter.section(heading):
                formatter.write_dl([parameter.get_help_record(ctx) for parameter in parameters])

    def grouped(self, ctx: Any) -> dict[str, list[Any]]:  # noqa: ANN401
        """Return heading -> parameters: of the command, of some kinds alone, how it runs, what is printed."""
        parameters = [each for each in self.get_params(ctx) if each.get_help_record(ctx) is not None]
        running = {each.name for each in fields(_load(RUN_OPTIONS))}
        owners: Mapping[str, Sequence[str]] = _load(self.made_of.owners)() if self.made_of.owners else {}
        of_kinds = {name: f"Only for {listed(who)}" for name, who in owners.items()}
        shared_first = sorted(of_kinds, key=lambda name: -len(owners[name]))
        headings = ("Arguments", "Options", *(of_kinds[name] for name in shared_first), *PANELS)
        groups: dict[str, list[Any]] = {heading: [] for heading in headings}
        for parameter in parameters:
            heading = of_kinds.get(parameter.name, PANELS[0] if parameter.name in running else "Options")
            heading = PANELS[1] if parameter.name in (*LAST, "help") else heading
            groups["Arguments" if parameter.param_type_name == "argument" else heading].append(parameter)
        return {heading: group for heading, group in groups.items() if group}


PANELS = ("How it runs", "What is printed")
"""Headings of options that every run has, and of those that every command has."""


def _load(name: str) -> Anything:
    module, _, cls = name.partition(":")
    return getattr(import_module(f"..{module}", __package__), cls)


def _sections(owner: Anything) -> dict[str, str]:
    """Return the sections of a docstring by name; its text has none."""
    text, *rest = _SECTION.split(inspect.cleandoc(owner.__doc__ or ""))
    return {"": text.strip(), **dict(zip(rest[::2], rest[1::2], strict=True))}


def _entries(section: str) -> list[str]:
    """Return the entries of a section; lines that are indented further go on with the one above."""
    return [line.strip() for line in re.sub(r"\n {5,}", " ", section).splitlines() if line.strip()]


def _meanings(owner: Anything) -> dict[str, str]:
    """Return what the docstring of a function, or of a class and its bases, says of each option."""
    meanings: dict[str, str] = {}
    for each in reversed(owner.__mro__) if isinstance(owner, type) else (owner,):
        sections = _sections(each)
        for entry in _entries(sections.get("Options", "") + sections.get("Attributes", "")):
            name, _, text = entry.partition(": ")
            meanings[name] = (text[0].upper() + text[1:]).replace("``", "")
    return meanings


def _origin(annotation: Anything) -> Anything:
    return get_origin(annotation)


def _is_no_option(annotation: Anything) -> bool:
    """Whether what a field holds cannot be written on a command line."""
    kinds = (_origin(annotation), *map(_origin, get_args(annotation)[:1]))
    return Mapping in kinds or Callable in kinds


def _parameter(
    named: inspect.Parameter, annotation: Anything, default: Anything, flag: str, meanings: Mapping[str, str]
) -> inspect.Parameter:
    """Return a parameter as Typer reads it."""
    option = named.kind is named.KEYWORD_ONLY
    info: Anything = typer.Option() if option else typer.Argument()
    if _origin(annotation) is Annotated:
        annotation, given = get_args(annotation)
        info = copy.copy(given) if isinstance(given, ParameterInfo) else info
    info.help = _LISTED.sub(lambda match: ", ".join(_load(match[1])), meanings[named.name])
    info.autocompletion = completer(named.name)
    if option:
        info.param_decls = (flag,)
    annotation = _plain(annotation)
    if option and _origin(annotation) is list:
        info.help += " Repeatable."
        info.metavar = info.metavar or f"<{get_args(annotation)[0].__name__.lower()}>"
    if annotation is bool:
        default = bool(default)
    elif default is not named.empty and (default is None or _origin(annotation) is list):
        annotation, default = annotation | None, None
    return inspect.Parameter(
        named.name, named.KEYWORD_ONLY, default=default, annotation=Annotated[annotation, info]
    )


def _also(parameters: Sequence[inspect.Parameter]) -> None:
    """Let options be written as :data:`ALSO` says, where no other option of the command is written so."""
    infos = [get_args(parameter.annotation)[1] for parameter in parameters]
    names = {name for info in infos for name in info.param_decls or ()}
    for info in infos:
        for flag in info.param_decls or ():
            info.param_decls += tuple(name for name in ALSO.get(flag, ()) if name not in names)


def _plain(annotation: Anything) -> Anything:
    """Return the type that Typer knows: a list for a sequence, a path for a path or text, no None."""
    kinds = [kind for kind in get_args(annotation) if kind is not type(None)]
    if _origin(annotation) is Literal:
        return type(kinds[0])
    if _origin(annotation) in (list, tuple, Sequence):
        return list[_plain(kinds[0])]  # type: ignore[misc]
    if not kinds:
        return annotation
    return Path if Path in kinds else _plain(kinds[0]) if _origin(annotation) else annotation
