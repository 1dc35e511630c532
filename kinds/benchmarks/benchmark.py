"""What a published benchmark is, as a value: where its data lies, what it needs, how it is judged."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from importlib.resources import files
from pathlib import Path
from typing import Any, Literal

from ...errors import ConfigError
from ...schemas.canonical import Json, Plain, jsonl_lines, write_atomic
from ...schemas.plugins import plugins
from ...schemas.text import tallied, tallies
from .. import SPOKEN

OURS = ("storyeval", "vistorybench", "vistorybench-lite", "entitybench", "kathabench", "kathatrace-demo")
GROUP = "fabula.benchmarks"
"""The entry-point group in which a package names its own: ``mine = "my_package.benchmark:BENCHMARK"``."""
REQUESTS = "requests.jsonl"
RECORDED = "the first fetch records it"
"""Said of a hash that nobody has computed yet."""


@dataclass(frozen=True, slots=True)
class Licence:
    """Under which terms the data is published."""

    name: str  # SPDX id; empty where there is none
    text: str  # what it allows and forbids, and where that is said
    asks: bool = False  # whether somebody has to accept the terms before anything is fetched


@dataclass(frozen=True, slots=True)
class Home:
    """Where the data is published."""

    at: Literal["repository", "hub"]
    name: str  # address of the repository, or OWNER/NAME of the data set on the Hub
    revision: str = ""  # pinned commit; empty where none is known: the first fetch records the one that came
    # files that are read -> bytes and SHA-256; empty where they are not known before the first fetch
    files: Mapping[str, tuple[int, str]] = field(default_factory=dict)
    holds: str = ""  # which file must be there, as a pattern, where the files are not known

    @property
    def address(self) -> str:
        """Where people find it."""
        return self.name if self.at == "repository" else f"https://huggingface.co/datasets/{self.name}"

    @property
    def archive(self) -> str:
        """The address of an archive of the pinned commit; empty on a Hub."""
        return f"{self.name}/archive/{self.revision}.tar.gz" if self.at == "repository" else ""


@dataclass(frozen=True, slots=True)
class Printed:
    """A printed table of results that a new row stands beside."""

    key: str  # in ``published.json``
    judge: str  # who judged the printed rows
    protocol: str  # how, in words
    # column of the printed table -> our measure, where that has another name; empty where we have none
    columns: Mapping[str, str] = field(default_factory=dict)
    # the printed rows' judges: each a pattern of how a judge's name ends. Rows belong to this table whose
    # judges are these, all of them and no other
    judged_by: tuple[str, ...] = ()
    differs: str = ""  # what of the printed rows is never as in a row of ours; empty where nothing is


@dataclass(frozen=True, slots=True)
class PerCall:
    """What a call of a judge holds, about: for the cost before there are any outputs."""

    pictures: int
    tokens: int  # of text
    reply: int  # tokens of the reply


@dataclass(frozen=True, slots=True)
class Orders(Plain):
    """What a generator has to make, as it was written."""

    out: Path  # the folder
    counts: Mapping[str, int]  # how many of what
    expected: tuple[str, ...]  # files below the folder of outputs

    def lines(self) -> Iterator[str]:
        yield f"{self.out}: {tallies(self.counts)}"
        yield f"a generator writes {tallied(len(self.expected), 'files')}, such as OUTPUTS/{self.expected[0]}"


def write_orders(out: Path, lines: Sequence[Json]) -> Path:
    """Write requests, one a line, into a new folder."""
    from ...releases.target import require_free, staged

    require_free(out)
    with staged(out.absolute()) as (draft,):
        write_atomic(draft / REQUESTS, jsonl_lines(lines))
    return out


@dataclass(frozen=True, slots=True)
class Benchmark:
    """A published benchmark."""

    name: str  # on the command line
    title: str  # for people
    about: str  # what it asks, in a sentence
    paper: str  # title and address
    homepage: str  # address of the project; empty where there is none
    licence: Licence  # of the data
    home: Home  # where the data is
    noun: str  # how outputs are judged, as in ``fabula evaluate NOUN``
    protocol: str  # the official protocol, as ``--protocol`` takes it
    layout: str  # where files of outputs lie
    # what its archives call the outputs of a method that were asked for, those that could be judged, and how
    # people call them
    counted: tuple[str, str, str]
    size: Mapping[str, int]  # what there is -> how many; printed by the paper, or counted in the data
    judges: tuple[str, ...]  # those of the paper
    judge: str  # one of these, or one that will do, as ``--judge`` takes it
    per_call: PerCall
    # makes what ``evaluate`` takes of the data: data, new folder or file, model -> path; the model drafts
    # what was not published, and is None where nothing is drafted
    prepare: Callable[[Path, Path, str | None], Path]
    # writes what a generator has to make: set, new folder, generator's form -> what was written
    orders: Callable[[Path, Path, str | None], Orders]
    options: Mapping[str, Any] = field(default_factory=dict)  # of ``evaluate``, besides judge and protocol
    metrics: tuple[str, ...] = ()  # as ``fabula models fetch --metrics`` takes them: those that need weights
    prompts: str | None = None  # official set of prompts; None where no code has them
    paper_prompts: str | None = None  # set that ``prompts fetch --from`` takes out of the paper
    libraries: Mapping[str, str] = field(default_factory=dict)  # that must be there -> extra that brings them
    forms: tuple[str, ...] = ()  # forms of generators that ``orders --for`` writes
    printed: tuple[Printed, ...] = ()  # rows to compare with, the main table first
    drafts: bool = False  # whether a model has to draft what was not published before it can be run
    untried: tuple[str, ...] = ()  # what of all this could not be tried by the project

    @property
    def evaluated(self) -> str:
        """The command that evaluates by it."""
        return f"fabula evaluate {SPOKEN.get(self.noun, self.noun)}"


@cache
def known_files(name: str) -> dict[str, tuple[int, str]]:
    """Return path -> bytes and SHA-256 of a list of files that was computed beforehand."""
    document = json.loads((files(__package__) / "files.json").read_text("utf-8"))
    return {path: (size, sha256) for path, (size, sha256) in document[name].items()}


@cache
def benchmarks() -> Mapping[str, Benchmark]:
    """Return every benchmark by name, ours first."""
    known: dict[str, Benchmark] = {}
    for name in OURS:
        module = import_module(f".{name.removesuffix('-lite').replace('-', '_')}", __package__)
        known[name] = getattr(module, name.replace("-", "_").upper())
    for entry in plugins(GROUP):
        value = entry.load()
        if not isinstance(value, Benchmark) or value.name in known:
            raise ConfigError(
                f"entry point {entry.name} of {GROUP}", expected="a Benchmark with a name of its own",
                found=repr(value.name if isinstance(value, Benchmark) else value),
                fix=f"correct {entry.value}",
            )  # fmt: skip
        known[value.name] = value
    return known


def benchmark_named(name: str) -> Benchmark:
    known = benchmarks()
    if name not in known:
        raise ConfigError(
            f"benchmark {name}", what="there is no benchmark of this name", fix=f"use {', '.join(known)}"
        )
    return known[name]


def is_benchmark(text: str) -> bool:
    """Return whether a text that a user gave is the name of a benchmark, and not of something here."""
    return text in benchmarks() and not Path(text).exists()


def protocol_in_words(benchmark: Benchmark) -> Iterator[tuple[str, str]]:
    """Yield how it is judged, as options of ``fabula evaluate`` with their values."""
    yield "--protocol", benchmark.protocol
    for name, value in benchmark.options.items():
        text = ",".join(value) if isinstance(value, tuple) else str(value)
        yield f"--{name.replace('_', '-')}", text
