"""Loading a pipeline finds what does not fit before the first item."""

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from fabula.builders.katha.building import BuildOptions
from fabula.engine.config import RunSettings, resolve_config
from fabula.engine.execute import RunRequest, execute
from fabula.engine.pipeline import (
    Pipeline,
    dependencies,
    library_versions,
    load_pipeline,
    prompt_hashes,
)
from fabula.engine.run_options import RunOptions
from fabula.engine.stage import StageSpec
from fabula.errors import ConfigError, MissingRequirement
from fabula.prompts.loader import load_prompt
from fabula.testing import toy_pipeline as toys
from fabula.testing.toy_pipeline import HERE, WorkSettings, toy


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


@pytest.mark.parametrize(
    ("name", "changes", "expected"),
    [
        ("SHORTEN", {"reads": ("texxt",)}, "fields written by an earlier stage, found texxt"),
        ("SHORTEN", {"reads": ("line",)}, "fields written by an earlier stage, found line"),
        ("SHORTEN", {"reads": ("sources",)}, "fields written by an earlier stage, found sources"),
        ("SHORTEN", {"name": "work"}, "a name of its own"),
        ("SHORTEN", {"name": "sources"}, "a name of its own"),
        ("SHORTEN", {"writes": ("text",)}, "found text, written before"),
        ("SHORTEN", {"writes": ()}, "fields that no other stage writes"),
        ("SHORTEN", {"shape": "reduce"}, "one of the shapes expand, map, gather, group"),
        ("SHORTEN", {"stateful": True}, "stateful gathers only"),
    ],
)
def test_load_pipeline_when_a_stage_does_not_fit_says_why(
    monkeypatch: pytest.MonkeyPatch, name: str, changes: dict[str, object], expected: str
) -> None:
    with pytest.raises(ConfigError, match=expected):
        load_pipeline(with_stage(monkeypatch, name, **changes))


@pytest.mark.parametrize(
    ("stages", "finish", "expected"),
    [
        ((), f"{HERE}:finish", "at least one stage"),
        (("fabula.no_such_module",), f"{HERE}:finish", "no module fabula.no_such_module"),
        ((f"{HERE}:NOPE",), f"{HERE}:finish", "an attribute NOPE"),
        (("fabula.engine.codec",), f"{HERE}:finish", "a SPEC and a function run"),
        ((f"{HERE}:READ",), f"{HERE}:nope", "an attribute nope"),
    ],
)
def test_load_pipeline_when_something_cannot_be_loaded_says_what(
    stages: tuple[str, ...], finish: str, expected: str
) -> None:
    with pytest.raises(ConfigError, match=expected):
        load_pipeline(Pipeline("p", stages, finish))


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


def test_run_when_a_library_is_not_installed_leaves_no_folder(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
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


@pytest.mark.parametrize(("text", "value"), [("3", "3"), ('"x y"', "x y"), ("x=y", "x=y"), ("", "")])
def test_set_when_value_is_no_toml_is_a_string(text: str, value: str) -> None:
    if text == "3":
        with pytest.raises(ConfigError, match="valid string"):
            resolve_config(toy(), None, [f"work.suffix={text}"])
        return
    settings = resolve_config(toy(), None, [f"work.suffix={text}"]).stages["work"]
    assert isinstance(settings, WorkSettings)
    assert settings.suffix == value


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("nope.a=1", "there are: run, models, read_lines, work, count, number, shorten, assemble"),
        ("work.nope=1", "there are: suffix, ignored"),
        ("count.nope=1", "this stage has no settings"),
        ("run.nope=1", "there are: workers, item_timeout, threshold, seed"),
        ("work.ignored=x", "valid integer"),
        ("run.workers=-1", "0 or more"),
        ("run.workers=true", "a number of processes"),
        ("run.threshold=1.1", "a share from 0 to 1"),
        ("run.item_timeout=0", "seconds, more than 0"),
        ("run.item_timeout=nan", "seconds, more than 0"),
        ("run.seed=1.5", "a whole number"),
        ("suffix=1", "stage.key=value"),
        ("work.suffix", "stage.key=value"),
    ],
)
def test_set_when_wrong_says_what_exists(text: str, expected: str) -> None:
    with pytest.raises(ConfigError, match=expected):
        resolve_config(toy(), None, [text])


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


def test_the_settings_file_when_none_is_named_is_that_of_the_working_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
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
