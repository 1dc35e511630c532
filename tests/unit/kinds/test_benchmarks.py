"""Benchmarks by name: what each value says is there, is consistent, and is what its page says."""

import os
import re
from dataclasses import fields, replace
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

import fabula
from fabula.errors import ConfigError
from fabula.evaluation.entities.metrics.catalogue import METRICS
from fabula.evaluation.judging.settings import PRESETS, SERVED
from fabula.evaluation.metrics.metric import registered
from fabula.kinds.benchmarks import benchmark as module
from fabula.kinds.benchmarks.benchmark import OURS, Benchmark, benchmark_named, benchmarks, is_benchmark
from fabula.kinds.benchmarks.page import page
from fabula.kinds.benchmarks.row import _is_of, published_table
from fabula.kinds.registry import judging_named
from fabula.prompts.fetching import official
from fabula.schemas.canonical import sha256_file

PAGES = Path(fabula.__file__).parent / "docs" / "benchmarks"
MAY_BE_EMPTY = {
    "homepage", "options", "metrics", "prompts", "libraries", "forms", "printed", "drafts", "judges",
}  # fmt: skip
named = pytest.mark.parametrize("name", OURS)


@named
def test_benchmark_when_listed_says_everything_that_a_run_needs(name: str) -> None:
    value = benchmark_named(name)
    empty = {field.name for field in fields(Benchmark) if not getattr(value, field.name)}
    assert empty <= MAY_BE_EMPTY
    assert value.printed or name == "kathatrace-demo", "what a row is compared with"
    assert judging_named(value.noun).evaluating is not None
    assert bool(value.home.files) != bool(value.home.holds), "files are known, or which one must be there"
    if value.prompts is not None:
        source = official(value.prompts)
        assert value.protocol == f"{value.prompts}@{source.commit}"
        assert value.home.at == "hub" or (value.home.name, value.home.revision) == (
            source.repository, source.commit,
        )  # fmt: skip


@named
def test_columns_when_compared_are_those_of_the_printed_table_and_of_our_scores(name: str) -> None:
    value = benchmark_named(name)
    ours = {metric.name for _, metric in registered()} | {metric.name for metric in METRICS}
    ours |= {"text", "image", "gap", "moral_target", ""}
    for printed in value.printed:
        columns = {measure.name for measure in published_table(printed.key).measures}
        assert set(printed.columns) <= columns
        if value.noun != "events":  # whose columns are the classes of the suite
            assert {printed.columns.get(column, column) for column in columns} <= ours


@pytest.mark.parity
def test_files_when_hashed_are_the_published_ones(reference: Path) -> None:
    folders = {"storyeval": "storyeval", "entitybench": "entitybench", "kathatrace-demo": "kathatrace_demo"}
    for name, folder in folders.items():
        there = {path.name: path for path in (reference / folder).rglob("*") if path.is_file()}
        for path, (size, sha256) in benchmark_named(name).home.files.items():
            file = there[Path(path).name]
            assert (file.stat().st_size, sha256_file(file)) == (size, sha256), path
    episodes = benchmark_named("entitybench")
    assert len(episodes.home.files) == 144
    seconds = [re.search(r"__T(\d+)\.json$", path) for path in episodes.home.files]
    assert sum(int(match[1]) for match in seconds if match) == episodes.size["seconds of the source"]


@pytest.mark.skipif(not PAGES.is_dir(), reason="the suite runs against an installed wheel, which has no docs")
@named
def test_page_when_made_anew_is_the_one_in_the_documentation(name: str) -> None:
    path, text = PAGES / f"{name}.md", "\n".join(page(benchmark_named(name), whole=False)) + "\n"
    if os.environ.get("UPDATE_GOLDEN"):
        path.write_text(text, encoding="utf-8")
    assert path.read_text("utf-8") == text, "UPDATE_GOLDEN=1 writes it anew"
    assert benchmark_named(name).untried[0].rstrip(".") in text


@pytest.mark.parametrize(
    ("key", "judges", "belongs"),
    [
        ("storyeval-gpt4o", ["openai:gpt-4o"], True),
        ("storyeval-gpt4o", ["published:gpt4o"], True),
        ("storyeval-gpt4o", ["openai:gpt-4o-2024-08-06"], True),
        ("storyeval-gpt4o", ["openai:gpt-4o-mini"], False),
        ("storyeval-llava", ["published:llava"], True),
        ("vistorybench-lite", ["openai:gpt-4.1-mini"], False),
        ("entitybench", ["google:gemini-2.5-pro"], True),
        ("entitybench", ["google:gemini-2.5-flash"], False),
        ("kathabench", ["google:gemini-2.5-flash"], False),  # one of five
        ("kathabench", [], False),
        ("kathabench", [SERVED[name] for name in PRESETS["kathatrace-main"]], True),
        ("storyeval-llava", [SERVED["llava-onevision-72b"]], True),
        ("vistorybench-qwen-full", [f"{SERVED['qwen3-vl-8b']}@{'0' * 40}"], True),
    ],
)
def test_judges_when_they_are_not_those_of_the_paper_belong_to_no_printed_table(key, judges, belongs):
    printed, *_ = (one for value in benchmarks().values() for one in value.printed if one.key == key)
    assert _is_of(printed, judges) is belongs


class Entry(EntryPoint):
    """An entry point of a package that is not installed."""

    def load(self) -> object:
        return replace(benchmark_named("storyeval"), name=self.value.rpartition(":")[2])


def test_benchmark_when_a_package_adds_one_is_known_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    def installed(value: str) -> None:
        monkeypatch.setattr(module, "plugins", lambda group: (Entry("mine", value, group),))
        benchmarks.cache_clear()

    try:
        known = benchmark_named("storyeval")
        monkeypatch.setattr(Entry, "load", lambda self: replace(known, name=self.value.rpartition(":")[2]))
        installed("package:comics")
        assert list(benchmarks()) == [*OURS, "comics"]
        assert is_benchmark("comics") and not is_benchmark("manga")
        installed("package:storyeval")
        with pytest.raises(ConfigError, match="a Benchmark with a name of its own"):
            benchmarks()
    finally:
        monkeypatch.undo()
        benchmarks.cache_clear()
