"""Loading a pipeline finds what does not fit before the first item."""

import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from fabula.builders.katha.building import BuildOptions
from fabula.engine.config import RunSettings, resolve_config
from fabula.engine.execute import Options, RunRequest, execute
from fabula.engine.hooks import SilentReporter
from fabula.engine.journal import decisions, encode
from fabula.engine.pipeline import (
    Pipeline,
    dependencies,
    library_versions,
    load_pipeline,
    load_stage,
    prompt_hashes,
)
from fabula.engine.pool import Task, run_items
from fabula.engine.run_options import RunOptions
from fabula.engine.stage import Made, StageSpec, Tools
from fabula.engine.status import RunReport, run_status
from fabula.errors import BelowThreshold, ConfigError, MissingRequirement
from fabula.prompts.loader import load_prompt
from fabula.testing import toy_pipeline as toys
from fabula.testing.toy_pipeline import HERE, WorkSettings, grouping, run_toy, toy


def with_stage(monkeypatch: pytest.MonkeyPatch, name: str, /, **changes: object) -> Pipeline:
    spec = replace(getattr(toys, name).SPEC, **changes)  # type: ignore[arg-type]
    monkeypatch.setattr(toys, name, SimpleNamespace(SPEC=spec, run=getattr(toys, name).run))
    return toy()


def test_load_pipeline_when_all_fits_knows_stages_and_outputs() -> None:
    loaded = load_pipeline(toy())
    assert loaded.names() == ("read_lines", "work", "count", "number", "shorten", "assemble")
    assert loaded.outputs == ("line",)
    assert loaded.needed_after(3) == {"text", "count", "number", "short", "line"}
    assert loaded.needed_after(5) == {"line"}


def test_load_pipeline_when_a_stage_does_not_fit_says_why(monkeypatch, refusals, snapshot):
    def load(changes: dict[str, object]) -> None:
        with monkeypatch.context() as patch:
            load_pipeline(with_stage(patch, "SHORTEN", **changes))

    assert refusals(load, [
        {"reads": ("texxt",)}, {"reads": ("line",)}, {"reads": ("sources",)}, {"name": "work"},
        {"name": "sources"}, {"writes": ("text",)}, {"writes": ()}, {"shape": "reduce"}, {"stateful": True},
    ]) == snapshot  # fmt: skip


def test_load_pipeline_when_something_cannot_be_loaded_says_what(refusals, snapshot):
    finish = f"{HERE}:finish"
    assert refusals(lambda case: load_pipeline(Pipeline("p", *case)), [
        ((), finish), (("fabula.no_such_module",), finish), ((f"{HERE}:NOPE",), finish),
        (("fabula.engine.journal",), finish), ((f"{HERE}:READ",), f"{HERE}:nope"),
    ]) == snapshot  # fmt: skip


def test_dependencies_when_prompts_are_declared_hold_their_hashes() -> None:
    sha256 = load_prompt("scene_image").sha256
    assert dependencies(toys.WORK_WITH_PROMPT.SPEC) == {"prompt scene_image": sha256}
    assert prompt_hashes(toys.WORK_WITH_PROMPT.SPEC) == {"scene_image": sha256}
    with pytest.raises(ConfigError, match=r"a prompt: .*scene_image.*, found nope"):
        dependencies(StageSpec("s", 1, "map", (), ("a",), prompts=("nope",)))


def test_library_versions_when_one_is_not_installed_says_how_to_install_it() -> None:
    assert set(library_versions(toys.WORK_WITH_LIBRARY.SPEC)) == {"filelock"}
    with pytest.raises(MissingRequirement, match="pip install no-such-thing"):
        library_versions(StageSpec("s", 1, "map", (), ("a",), libraries=("no-such-thing",)))


def test_run_when_a_library_is_not_installed_leaves_no_folder(monkeypatch, tmp_path):
    pipeline = with_stage(monkeypatch, "WORK", libraries=("no-such-thing",))
    with pytest.raises(MissingRequirement):
        execute(RunRequest(tmp_path / "run", pipeline, resolve_config(pipeline)))
    assert not (tmp_path / "run").exists()


# Settings: defaults, then the file, then --set; every mistake says what exists.


def test_resolve_config_when_nothing_is_given_uses_defaults() -> None:
    config = resolve_config(toy(), None, ())
    assert config.run == RunSettings(workers=None, item_timeout=120.0, threshold=0.95, seed=42)
    assert config.stages["work"] == WorkSettings()
    assert config.as_json()["work"] == {"suffix": "!", "ignored": 0}


def test_resolve_config_when_file_and_set_differ_takes_set(tmp_path: Path) -> None:
    toml = tmp_path / "fabula.toml"
    toml.write_text("[run]\nworkers = 3\nthreshold = 1\n[work]\nsuffix = '?'\nignored = 5\n")
    config = resolve_config(toy(), toml, ["work.suffix=plain text", "run.item_timeout = 2.5", "run.seed=7"])
    assert config.run == RunSettings(workers=3, item_timeout=2.5, threshold=1, seed=7)
    assert config.stages["work"] == WorkSettings(suffix="plain text", ignored=5)


@pytest.mark.parametrize(("text", "value"), [('"x y"', "x y"), ("x=y", "x=y"), ("", "")])
def test_set_when_value_is_no_toml_is_a_string(text: str, value: str) -> None:
    settings = resolve_config(toy(), None, [f"work.suffix={text}"]).stages["work"]
    assert isinstance(settings, WorkSettings)
    assert settings.suffix == value


def test_set_when_wrong_says_what_exists(refusals, snapshot):
    assert refusals(lambda text: resolve_config(toy(), None, [text]), [
        "nope.a=1", "work.nope=1", "count.nope=1", "run.nope=1", "work.ignored=x", "work.suffix=3",
        "run.workers=-1", "run.workers=true", "run.threshold=1.1", "run.item_timeout=0",
        "run.item_timeout=nan", "run.seed=1.5", "suffix=1", "work.suffix",
    ]) == snapshot  # fmt: skip


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"[work\n", "valid TOML"),
        (b"\xff\xfe", "valid TOML in UTF-8"),
        (b"suffix = 1\n", "outside"),
        (b"[nope]\n", "no such stage"),
    ],
)
def test_resolve_config_when_file_is_wrong_names_it(tmp_path: Path, content: bytes, expected: str) -> None:
    toml = tmp_path / "fabula.toml"
    toml.write_bytes(content)
    with pytest.raises(ConfigError, match=expected) as caught:
        resolve_config(toy(), toml, ())
    assert str(toml) in str(caught.value)


# What every run may choose: the file of settings, single settings, and what the engine gets of it.


def test_the_settings_file_when_none_is_named_is_that_of_the_working_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert RunOptions().settings_file is None
    (tmp_path / "fabula.toml").write_text("")
    assert RunOptions().settings_file == Path("fabula.toml")
    assert RunOptions(config=Path("other.toml")).settings_file == Path("other.toml")


def test_options_when_given_to_the_engine_are_all_there() -> None:
    given = {"workers": 0, "max_cost": 2.5, "reuse": ["old"], "retry_failed": True}
    chosen = BuildOptions(records=Path("hand.jsonl"), **given)
    made = chosen.for_engine(limit=3)
    assert (made.workers, made.max_cost, made.reuse, made.retry_failed) == (0, 2.5, (Path("old"),), True)
    assert (made.limit, chosen.records) == (3, Path("hand.jsonl"))
    assert replace(chosen, workers=1).for_engine().workers == 1


# -- Items taken apart by an expand and brought back by a group


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "lines.txt"
    path.write_text("a one two three\nb four five\nc six\n")
    return path


def run(folder: Path, source: Path, options: Options | None = None, *sets: str) -> RunReport:
    return run_toy(folder, source, options, grouping(), ["run.threshold=0.1", *sets])


def lines(folder: Path) -> dict[str, dict[str, str]]:
    rows = (folder / "lines.jsonl").read_text().splitlines()
    return {row["id"]: row["words"] for row in map(json.loads, rows)}


def ran(report: RunReport) -> dict[str, tuple[int, int]]:
    return {stage.name: (stage.ran, stage.reused) for stage in report.stages}


def test_group_when_all_children_are_made_brings_their_items_back(tmp_path: Path, source: Path) -> None:
    report = run(tmp_path / "run", source)
    assert lines(tmp_path / "run") == {
        "a": {"a-01": "one!", "a-02": "two!", "a-03": "three!"},
        "b": {"b-01": "four!", "b-02": "five!"},
        "c": {"c-01": "six!"},
    }
    assert report.totals == {"made": 3, "rejected": 0, "failed": 0, "pending": 0}


def test_group_when_children_stop_holds_the_others_and_an_item_without_any_is_gone(tmp_path, source):
    source.write_text("a one reject three\nb fail\nc none\n")
    report = run(tmp_path / "run", source)
    assert lines(tmp_path / "run") == {"a": {"a-01": "one!", "a-03": "three!"}}
    assert [(item.id, item.stage, item.status) for item in report.items] == [
        ("a-02", "spell", "rejected"), ("b-01", "spell", "failed"), ("c", "join", "rejected"),
    ]  # fmt: skip


def test_group_when_one_item_changes_runs_for_that_one_only(tmp_path: Path, source: Path) -> None:
    first = run(tmp_path / "run", source)
    assert ran(first)["join"] == (3, 0)
    assert ran(run(tmp_path / "run", source))["join"] == (0, 3)
    source.write_text("a one two three\nb four else\nc six\n")
    again = run(tmp_path / "run", source)
    assert ran(again) == {"read_lines": (3, 0), "split": (2, 4), "spell": (1, 5), "join": (1, 2)}
    assert lines(tmp_path / "run")["b"] == {"b-01": "four!", "b-02": "else!"}


def test_group_when_its_children_give_the_same_again_is_not_run(tmp_path: Path, source: Path) -> None:
    run(tmp_path / "run", source)
    assert ran(run(tmp_path / "run", source, None, "spell.ignored=1")) == {
        "read_lines": (0, 3), "split": (0, 6), "spell": (6, 0), "join": (0, 3),
    }  # fmt: skip


def test_group_when_children_are_pending_waits_for_them(tmp_path: Path, source: Path) -> None:
    only = Options(workers=0, stages=("read_lines", "split"))
    report = run(tmp_path / "run", source, only)
    assert {item.stage for item in report.items} == {"spell", "join"}
    assert not (tmp_path / "run" / "lines.jsonl").exists()
    assert run(tmp_path / "run", source).totals["made"] == 3


def test_status_when_a_setting_changes_says_what_would_run(tmp_path: Path, source: Path) -> None:
    run(tmp_path / "run", source)
    assert {row.name: row.made for row in run_status(tmp_path / "run", grouping()).stages} == {
        "read_lines": 3, "split": 6, "spell": 6, "join": 3,
    }  # fmt: skip
    changed = run_status(tmp_path / "run", grouping(), sets=("spell.suffix='?'",))
    assert {row.name: row.stale for row in changed.stages} == {
        "read_lines": 0, "split": 0, "spell": 6, "join": 3,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("stages", "found"),
    [(("READ", "WORK", "JOIN"), "too few"), (("READ", "SPLIT", "SPELL", "JOIN", "SHORTEN"), "text")],
)
def test_pipeline_when_a_group_does_not_fit_is_refused(stages: tuple[str, ...], found: str) -> None:
    names = tuple(f"{HERE}:{name}" for name in stages)
    with pytest.raises(ConfigError, match=found):
        load_pipeline(Pipeline("wrong", names, f"{HERE}:finish"))


def test_group_when_a_child_has_the_id_of_an_item_stops(tmp_path: Path, source: Path) -> None:
    source.write_text("a one\na-01 two\n")
    with pytest.raises(ValueError, match="a-01"):
        run(tmp_path / "run", source)


# Stages that take several items at once: one process of their own, one outcome per item.


@pytest.fixture
def batched_source(tmp_path: Path) -> Path:
    path = tmp_path / "lines.txt"
    path.write_text("".join(f"m{number} word{number}\n" for number in range(12)))
    return path


def texts(folder: Path) -> dict[str, str]:
    lines = (folder / "lines.jsonl").read_text().splitlines()
    return {line["id"]: line["text"] for line in map(json.loads, lines)}


@pytest.mark.slow
def test_batched_stage_gives_what_the_plain_one_gives(tmp_path: Path, batched_source: Path) -> None:
    run_toy(tmp_path / "plain", batched_source, Options(workers=0))
    run_toy(tmp_path / "batched", batched_source, Options(workers=1), toy("WORK_BATCHED"))
    assert texts(tmp_path / "plain") == texts(tmp_path / "batched")


@pytest.mark.slow
@pytest.mark.parametrize(("word", "code"), [("raise", "exception"), ("crash", "crashed"), ("fail", "tired")])
def test_batched_stage_when_one_item_goes_wrong_spares_the_others(tmp_path, batched_source, word, code):
    batched_source.write_text(f"{batched_source.read_text()}bad {word}\n")
    report = run_toy(
        tmp_path / "run", batched_source, Options(workers=1), toy("WORK_BATCHED"), ["run.threshold=0.5"],
        SilentReporter(),
    )  # fmt: skip
    assert [(item.id, item.code) for item in report.items] == [("bad", code)]
    assert report.totals["made"] == 12


def test_run_items_when_outcomes_are_lost_fails_those_items_alone() -> None:
    def task(name: str, word: str) -> Task:
        blob = encode(Made({"words": [word]})).blob
        assert blob is not None
        return Task(name, name, ((blob, ("words",)),))

    stage = load_stage(f"{HERE}:WORK_BATCHED")
    tools = Tools(WorkSettings(), "2026-01-01T00:00:00Z")
    done = run_items(stage, tools, [task("a", "x"), task("b", "lose")])
    assert [encoded.status for encoded in done] == ["made", "failed"]
    assert "gave 0 outcomes for 1 items" in str(done[1].reason)


# What a stateful gather decided stays known, whatever became of the item since.


def test_decisions_when_every_item_fails_since_are_still_there(run, lines, tmp_path):
    run()
    lines.write_text("a fail\nb fail\n")
    with pytest.raises(BelowThreshold):
        run()
    assert sorted(decisions(tmp_path / "run", "number")) == ["a", "b", "c", "d"]
