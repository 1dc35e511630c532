"""A pipeline of tiny stages for tests of the engine: they sleep, crash, hang, reject and fail on demand.

A source is a text file with one item a line: ``id word word ...``. Some words make ``work`` misbehave:
``crash`` (SIGKILL), ``abort`` (SIGABRT), ``exit``, ``hang``, ``raise``, ``reject``, ``fail`` and
``sleep:0.01``.
"""

import os
import signal
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

from ..engine.config import resolve_config
from ..engine.execute import Options, RunRequest, Source, execute
from ..engine.hooks import Reporter
from ..engine.pipeline import Pipeline
from ..engine.stage import Child, Failed, Item, Made, Outcome, Rejected, StageSpec, Tools
from ..engine.status import RunReport
from ..errors import InputError, MissingRequirement, UserError
from ..schemas.canonical import Json, jsonl_lines, write_atomic
from ..schemas.values import Own

HERE = "fabula.testing.toy_pipeline"


def read_lines(item: Item, tools: Tools) -> Iterator[Child]:
    """Expand: one child per line of the source files, with its words."""
    problems = []
    for source, path in zip(item["sources"], tools.paths, strict=True):
        if source["role"] != "lines":
            continue
        with path.open(encoding="utf-8") as lines:
            for number, line in enumerate(lines, 1):
                name, *words = line.split()
                if name == "broken":
                    where = f"{path.name}:{number}"
                    problems.append(UserError(where, expected="an item", found=line, fix="correct it"))
                yield Child(name, Rejected("empty", "no words") if not words else Made({"words": words}))
    if problems:
        raise InputError(problems)


class WorkSettings(Own):
    """Settings of ``work``."""

    suffix: str = "!"
    ignored: int = 0


def _hang() -> None:
    while True:
        time.sleep(0.05)


def _raise() -> None:
    raise RuntimeError("asked to raise")


ACTIONS: dict[str, Callable[[], object]] = {
    "crash": lambda: os.kill(os.getpid(), signal.SIGKILL),
    "abort": os.abort,
    "exit": lambda: sys.exit(3),
    "hang": _hang,
    "raise": _raise,
}
OUTCOMES: dict[str, Outcome] = {
    "reject": Rejected("unwanted", "asked to reject"),
    "fail": Failed("tired", "asked to fail"),
}


def misbehave(words: Iterable[str]) -> Outcome | None:
    """Do what the words ask for."""
    for word in words:
        if word in ACTIONS:
            ACTIONS[word]()
        if word in OUTCOMES:
            return OUTCOMES[word]
        if word.startswith("sleep:"):
            time.sleep(float(word.removeprefix("sleep:")))
    return None


def work_on(item: Item, tools: Tools) -> Outcome:
    """Map: the words as one text, or what they ask for."""
    assert isinstance(tools.settings, WorkSettings)
    return misbehave(item["words"]) or Made({"text": " ".join(item["words"]) + tools.settings.suffix})


def work_on_all(items: Sequence[Item], tools: Tools) -> list[Outcome]:
    """Map, in batches: as ``work``, with the process that did it; ``lose`` loses an outcome."""
    assert isinstance(tools.settings, WorkSettings)
    mark = f" by {os.getpid()}" if tools.settings.suffix == "?" else tools.settings.suffix
    return [
        misbehave(item["words"]) or Made({"text": " ".join(item["words"]) + mark})
        for item in items
        if "lose" not in item["words"]
    ]


def need(_item: Item, _: Tools) -> Outcome:
    """Map: asks for something that is not installed."""
    raise MissingRequirement("work", expected="a library", found="none", fix="pip install it")


def count(items: Iterable[Item], _: Tools) -> Mapping[str, Mapping[str, Json]]:
    """Gather: how many items have the same first letter."""
    letters = {item.id: item["text"][0] for item in items}
    totals: dict[str, int] = {}
    for letter in letters.values():
        totals[letter] = totals.get(letter, 0) + 1
    return {name: {"count": totals[letter]} for name, letter in letters.items()}


def number(items: Iterable[Item], tools: Tools) -> Mapping[str, Mapping[str, Json]]:
    """Stateful gather: a number for each item that never changes once given."""
    given = {name: fields["number"] for name, fields in tools.previous.items()}
    rows = {}
    for item in items:
        rows[item.id] = given.setdefault(item.id, len(given))
    return {name: {"number": value} for name, value in rows.items()}


def shorten(item: Item, _: Tools) -> Outcome:
    """Map: the first letter of the text; many texts give the same."""
    return Made({"short": item["text"][:1]})


def assemble(item: Item, _: Tools) -> Outcome:
    """Map: everything together."""
    line = {"text": item["text"], "count": item["count"], "number": item["number"], "short": item["short"]}
    return Made({"line": line})


def split_lines(item: Item, _: Tools) -> Iterator[Child]:
    """Expand: one child for each word of an item, ``id-01`` and so on."""
    for index, word in enumerate(item["words"], 1):
        yield Child(f"{item.id}-{index:02}", Made({"word": word}))


def work_on_word(item: Item, tools: Tools) -> Outcome:
    """Map: as ``work``, on one word."""
    assert isinstance(tools.settings, WorkSettings)
    return misbehave([item["word"]]) or Made({"text": item["word"] + tools.settings.suffix})


def join_words(members: Iterable[Item], _: Tools) -> Outcome:
    """Group: the texts of an item's words, by their ids."""
    texts = {item.id: item["text"] for item in members}
    return OUTCOMES["reject"] if "none!" in texts.values() else Made({"line": {"words": texts}})


def finish(folder: Path, items: Iterable[Item]) -> None:
    """Write ``lines.jsonl``."""
    write_atomic(folder / "lines.jsonl", jsonl_lines({"id": item.id, **item["line"]} for item in items))


READ = SimpleNamespace(
    SPEC=StageSpec("read_lines", 1, "expand", ("sources",), ("words",), reject_codes={"empty": "no words"}),
    run=read_lines,
)
WORK = SimpleNamespace(
    SPEC=StageSpec(
        "work", 1, "map", ("words",), ("text",), reject_codes={"unwanted": "asked for"}, settings=WorkSettings
    ),
    run=work_on,
)
WORK_V2 = SimpleNamespace(SPEC=replace(WORK.SPEC, version=2), run=work_on)
WORK_WITH_LIBRARY = SimpleNamespace(SPEC=replace(WORK.SPEC, libraries=("filelock",)), run=work_on)
WORK_WITH_PROMPT = SimpleNamespace(SPEC=replace(WORK.SPEC, prompts=("scene_image",)), run=work_on)
WORK_BATCHED = SimpleNamespace(SPEC=WORK.SPEC, run_batch=work_on_all)
NEEDY = SimpleNamespace(SPEC=WORK.SPEC, run=need)
COUNT = SimpleNamespace(SPEC=StageSpec("count", 1, "gather", ("text",), ("count",)), run=count)
NUMBER = SimpleNamespace(SPEC=StageSpec("number", 1, "gather", (), ("number",), stateful=True), run=number)
SHORTEN = SimpleNamespace(SPEC=StageSpec("shorten", 1, "map", ("text",), ("short",)), run=shorten)
ASSEMBLE = SimpleNamespace(
    SPEC=StageSpec("assemble", 1, "map", ("text", "count", "number", "short"), ("line",)), run=assemble
)

SPLIT = SimpleNamespace(SPEC=StageSpec("split", 1, "expand", ("words",), ("word",)), run=split_lines)
SPELL = SimpleNamespace(SPEC=replace(WORK.SPEC, name="spell", reads=("word",)), run=work_on_word)
JOIN = SimpleNamespace(
    SPEC=StageSpec("join", 1, "group", ("text",), ("line",), reject_codes={"unwanted": "asked for"}),
    run=join_words,
)


def broken_finish(folder: Path, items: Iterable[Item]) -> None:
    """Read every item, then fail as a full disk does."""
    for _ in items:
        pass
    raise OSError(28, "No space left on device", str(folder / "lines.jsonl"))


def toy(work: str = "WORK", **changes: str) -> Pipeline:
    """Return the toy pipeline: ``read_lines, work, count, number, shorten, assemble``."""
    names = ("READ", work, "COUNT", "NUMBER", "SHORTEN", "ASSEMBLE")
    stages = tuple(f"{HERE}:{name}" for name in names)
    return Pipeline("toy", stages, changes.get("finish", f"{HERE}:finish"))


def grouping() -> Pipeline:
    """Return a toy pipeline that takes items apart and together again: ``read_lines, split, spell, join``."""
    stages = tuple(f"{HERE}:{name}" for name in ("READ", "SPLIT", "SPELL", "JOIN"))
    return Pipeline("grouping", stages, f"{HERE}:finish")


def run_toy(
    folder: Path,
    source: Path,
    options: Options | None = None,
    pipeline: Pipeline | None = None,
    sets: Sequence[str] = (),
    reporter: Reporter | None = None,
) -> RunReport:
    """Execute the toy pipeline in a folder on one source file."""
    chosen = pipeline or toy()
    config = resolve_config(chosen, None, sets)
    sources = (Source("lines", source),)
    request = RunRequest(folder, chosen, config, sources, options=options or Options(workers=0))
    return execute(request, reporter)
