"""Settings: defaults, then the file, then --set; every mistake says what exists."""

from dataclasses import replace
from pathlib import Path

import pytest

from fabula.builders.katha.building import BuildOptions
from fabula.engine.config import RunSettings, resolve_config
from fabula.engine.run_options import RunOptions
from fabula.errors import ConfigError
from fabula.testing.toy_pipeline import WorkSettings, toy


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
