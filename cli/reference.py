"""Pages of the documentation that are made from code: ``python -m fabula.cli.reference FOLDER``.

Each function returns the text of one page in Markdown. What a page says is what commands, functions, stages,
prompts, rules, schemas and metrics declare of themselves, so no page can differ from the program.
"""

import inspect
import json
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

from ..errors import MEANINGS

Lines = Iterator[str]
_NAMED = re.compile(r":(?:func|class|meth|mod|data|attr):`[.~]*(?:[\w.]+\.)?(\w+)`")


def _cell(text: object) -> str:
    return " ".join(str(text).replace("|", "\\|").replace("<", "&lt;").split())


def _plain(text: str) -> str:
    """Return a docstring as Markdown has it."""
    return _NAMED.sub(r"`\1`", text).replace("``", "`")


def _table(head: Iterable[str], rows: Iterable[Iterable[object]]) -> Lines:
    head = list(head)
    yield "| " + " | ".join(head) + " |"
    yield "|" + "---|" * len(head)
    for row in rows:
        yield "| " + " | ".join(map(_cell, row)) + " |"
    yield ""


def commands() -> Lines:
    """Yield the list of all commands, in the groups of ``fabula --help``, and the exit codes."""
    from .main import GROUPS

    yield from ("# Commands", "", "A page for each says what its `--help` says.", "")
    for heading, verbs in GROUPS.items():
        yield from (f"## {heading}", "")
        yield from _table(("command", "what it does"), ((_linked(verb), _first(verb)) for verb in verbs))
    yield from ("## Exit codes", "")
    yield from _table(("code", "what happened"), ((int(code), text) for code, text in MEANINGS.items()))


def _linked(verb: str) -> str:
    names = list(_leaves(_program().commands[verb], f"fabula {verb}"))
    page = f"commands/{verb}.md"
    links = (
        f"[{name.removeprefix(f'fabula {verb} ')}]({page}#{name.replace(' ', '-')})" for name in names[1:]
    )
    return ", ".join([f"[fabula {verb}]({page})", *links])


def _leaves(node: Any, name: str) -> Iterator[str]:  # noqa: ANN401 - a type of Typer's that it does not publish
    """Yield the names of a group and of the commands in it at any depth, or of a command."""
    if name.count(" ") == 1 or not hasattr(node, "commands"):
        yield name
    for sub, child in getattr(node, "commands", {}).items():
        yield from _leaves(child, f"{name} {sub}")


def _first(verb: str) -> str:
    return inspect.cleandoc(_program().commands[verb].help or "").partition("\n\n")[0]


def _program() -> Any:  # noqa: ANN401 - a type of Typer's that it does not publish
    import typer

    from .main import app

    return typer.main.get_command(app)


def command(verb: str) -> Lines:
    """Yield a command, or a group of commands, with options and examples."""
    yield from (f"# fabula {verb}", "")
    yield from _command(_program().commands[verb], f"fabula {verb}")


def _command(node: Any, name: str) -> Lines:  # noqa: ANN401 - a type of Typer's that it does not publish
    import typer

    if hasattr(node, "commands"):
        yield from (*inspect.cleandoc(node.help or "").splitlines(), "")
        for sub, child in node.commands.items():
            yield from _command(child, f"{name} {sub}")
        return
    if name.count(" ") > 1:
        yield from (f"## {name}", "")
    yield from (*inspect.cleandoc(node.help or "").splitlines(), "")
    for heading, group in node.grouped(typer.Context(node)).items():
        own = [each for each in group if getattr(each, "help", None) and each.name != "help"]
        names = (each.opts[0] if each.opts[0].startswith("-") else each.name.upper() for each in own)
        rows = ((f"`{name}`", each.help) for name, each in zip(names, own, strict=True))
        yield from _table((heading.lower(), "what it is"), rows)
    shown = [line.strip() for line in (node.epilog or "").splitlines()[1:] if line.strip()]
    yield from ("```", *shown, "```", "")


def python() -> Lines:
    """Yield every name that ``import fabula`` offers, with its signature and docstring."""
    package = import_module("..", __package__)
    yield from (
        "# Python",
        "",
        "What `import fabula` offers. [A tour with examples](../python.md) comes first.",
        "",
    )
    for name in package.__all__:
        value = getattr(package, name)
        if not callable(value):
            continue
        yield from (f"## fabula.{name}", "", "```python", _signature(name, value), "```", "")
        yield from _docstring(inspect.getdoc(value) or "")


def _signature(name: str, value: Callable[..., Any]) -> str:
    signature = inspect.signature(value)
    parameters = [_parameter(str(each)) for each in signature.parameters.values()]
    keywords = [each.kind is each.KEYWORD_ONLY for each in signature.parameters.values()]
    if True in keywords:
        parameters.insert(keywords.index(True), "*")
    joined = f"{name}({', '.join(parameters)})"
    return (
        joined if len(joined) < 90 else "\n".join((f"{name}(", *(f"    {each}," for each in parameters), ")"))
    )


def _parameter(text: str) -> str:
    text = re.sub(r"\b(?:[a-z]\w*\.)+(?=[A-Z])", "", text)
    text = re.sub(r"Annotated\[(.*), <.*?>\]", r"\1", text)
    return re.sub(r" = <.*>$", " = ...", text)


def _docstring(text: str) -> Lines:
    """Yield a docstring; its sections become lists and blocks."""
    first, *rest = re.split(
        r"^(Args|Attributes|Returns|Raises|Examples?|Yields):\n", text, flags=re.MULTILINE
    )
    yield from (_plain(first.strip()), "")
    for heading, body in zip(rest[::2], rest[1::2], strict=True):
        lines = inspect.cleandoc(body).splitlines()
        if heading.startswith("Example"):
            yield from ("```python", *lines, "```", "")
            continue
        yield from (f"**{heading}**", "")
        entries = re.sub(r"\n +", " ", inspect.cleandoc(body)).splitlines()
        for entry in filter(None, entries):
            name, colon, meaning = entry.partition(": ")
            yield f"- `{name}`: {_plain(meaning)}" if colon and " " not in name else f"- {_plain(entry)}"
        yield ""


def settings() -> Lines:
    """Yield the settings of every stage, by the kinds of runs."""
    from ..engine.pipeline import load_pipeline
    from ..engine.stage import OneStage
    from ..kinds.registry import kinds, run_kinds

    yield from (
        "# Settings",
        "",
        "Settings of stages stand in `fabula.toml` under the stage's name, or in",
        "",
    )
    yield from (
        "`--set STAGE.FIELD=VALUE`. A changed setting runs that stage again, and what depends on it.",
        "",
    )
    for kind in kinds():
        for run in run_kinds(kind):
            loaded = load_pipeline(run.pipeline)
            yield from (f"## Runs of `{loaded.name}`", "")
            for stage, path in zip(loaded.stages, loaded.pipeline.stages, strict=True):
                place, _, name = path.partition(":")
                value = getattr(sys.modules[place], name, None)
                documented = value.run if isinstance(value, OneStage) else sys.modules[place]
                what = (inspect.getdoc(documented) or "").partition("\n\n")[0]
                what = " ".join(what.split()).removeprefix("Stage: ")
                yield from (f"### {loaded.name}: {stage.name}", "", _plain(what[:1].upper() + what[1:]), "")
                fields = stage.spec.settings.model_fields
                if fields:
                    yield from _table(
                        ("setting", "type", "default", "what it is"),
                        (
                            (
                                f"`{name}`",
                                f"`{_type(each.annotation)}`",
                                f"`{_default(each)}`",
                                each.description or "",
                            )
                            for name, each in fields.items()
                        ),
                    )


def _type(annotation: Any) -> str:  # noqa: ANN401 - an annotation
    text = annotation.__name__ if isinstance(annotation, type) else str(annotation)
    return re.sub(r"\b(?:typing|collections\.abc|fabula)(?:\.\w+)*\.", "", text)


def _default(each: Any) -> object:  # noqa: ANN401 - a field of pydantic's
    value = each.get_default(call_default_factory=True)
    return value.model_dump() if hasattr(value, "model_dump") else value


def prompts() -> Lines:
    """Yield every prompt with what it is for, its inputs and its text."""
    from ..prompts.loader import load_prompt, prompt_ids, prompt_source

    yield from ("# Prompts", "", "`fabula prompts render` fills one in for a story. A prompt whose text")
    yield from ("changes has another hash, and what was asked with it is asked again.", "")
    room = ""
    for name in prompt_ids():
        if name.partition("/")[0] != room:
            room = name.partition("/")[0]
            yield from (f"## {room}", "")
        prompt = load_prompt(name)
        card = prompt.card
        yield from (f"### {name}", "", card.purpose, "")
        inputs = ", ".join(card.inputs) or "none"
        yield f"Version {card.version}, SHA-256 `{prompt.sha256[:12]}`, inputs: {inputs}."
        yield from ("", '??? note "Text"', "", "    ```jinja")
        yield from (f"    {line}".rstrip() for line in prompt_source(name).decode().splitlines())
        yield from ("    ```", "")


def codes() -> Lines:
    """Yield every code that a validator reports."""
    from ..validators import report as tables

    packages = sorted(path.parent for path in Path(tables.__file__).parent.rglob("codes.toml"))
    yield from ("# Codes of findings", "", "[Rules](../rules.md) says when each set of rules is applied.", "")
    for package in packages:
        name = package.name if package != Path(tables.__file__).parent else "stories and all kinds"
        dotted = "..validators" + ("" if name == "stories and all kinds" else f".{name}")
        read = tables.read_codes(import_module(dotted, __package__).__name__)
        yield from (f"## {name.capitalize()}", "", *tables.rule_table(read).splitlines(), "")


def schemas() -> Lines:
    """Yield the fields of every published schema."""
    from ..schemas.export import PUBLISHED, json_schema

    yield from ("# Schemas", "", "`fabula schemas export --out FOLDER` writes them as JSON Schema.", "")
    for name, kind in sorted(PUBLISHED.items()):
        schema: Any = json_schema(name)
        yield from (f"## {name}", "", _plain((inspect.getdoc(kind) or "").partition("\n\n")[0]), "")
        needed = schema.get("required", ())
        yield from _table(
            ("field", "type", "required", "what it is"),
            (
                (
                    f"`{field}`",
                    f"`{_kind(each)}`",
                    "yes" if field in needed else "",
                    each.get("description", ""),
                )
                for field, each in schema.get("properties", {}).items()
            ),
        )


def _kind(schema: Mapping[str, Any]) -> str:
    if "anyOf" in schema:
        return " or ".join(map(_kind, schema["anyOf"]))
    if not {"$ref", "type", "enum", "const"} & schema.keys():
        return "any"
    if "$ref" in schema:
        return str(schema["$ref"].rpartition("/")[2])
    if schema.get("type") == "array":
        return f"list of {_kind(schema.get('items', {}))}"
    return str(
        schema.get("type") or ("one of a list" if "enum" in schema else json.dumps(schema.get("const")))
    )


def metrics() -> Lines:
    """Yield a card for every metric of pictures and episodes."""
    from ..evaluation.entities.metrics.catalogue import METRICS
    from ..evaluation.metrics.metric import registered

    yield from ("# Metrics", "", "How they are computed and where papers and public code differ:")
    yield from (
        "[shot images](../images.md), [episodes](../episodes-evaluation.md), [scoring](../scoring.md).",
        "",
    )
    yield from ("## Shot images", "")
    for name, metric in registered():
        low, high = metric.range
        chosen = ", ".join(f"`{each.name}={' or '.join(each.options)}`" for each in metric.choices)
        yield from (f"### {metric.label}", "", metric.meaning, "")
        facts = {
            "name": f"`{metric.name}`, version {metric.version}",
            "asked for as": f"`--metrics {name}`",
            "better": metric.better or "neither, it is a diagnostic",
            "range": f"{low:g} to {high:g}",
            "models": ", ".join(f"`{_models(need.model)}`" for need in metric.needs) or "none",
            "definitions": chosen or "one",
        }
        yield from _table(("what", "value"), facts.items())
    yield from ("## Episodes", "")
    yield from _table(
        ("metric", "pillar", "about", "over", "better", "other names"),
        (
            (
                f"`{each.name}`",
                each.pillar,
                each.type or "shots",
                each.unit,
                each.direction,
                ", ".join(each.aliases),
            )
            for each in METRICS
        ),
    )


def _models(model: str | tuple[str, ...]) -> str:
    return model if isinstance(model, str) else ", ".join(model)


PAGES: Mapping[str, Callable[[], Lines]] = {
    "commands": commands,
    "python": python,
    "settings": settings,
    "prompts": prompts,
    "codes": codes,
    "schemas": schemas,
    "metrics": metrics,
}
"""Page -> what writes it."""


def write_pages(folder: Path) -> None:
    """Write every page into a folder, made if missing, as NAME.md, and commands/NAME.md of each command."""
    (folder / "commands").mkdir(parents=True, exist_ok=True)
    pages = {name: page() for name, page in PAGES.items()}
    pages |= {f"commands/{verb}": command(verb) for verb in _program().commands}
    for name, lines in pages.items():
        (folder / f"{name}.md").write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    write_pages(Path(sys.argv[1]))
