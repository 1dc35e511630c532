"""What every run may choose: the file of settings, single settings, and what the engine gets of it."""

from dataclasses import replace
from pathlib import Path

import pytest

from fabula.builders.katha.building import BuildOptions
from fabula.engine.run_options import RunOptions, setting_texts


def test_settings_when_given_as_texts_or_as_a_mapping_are_the_same_texts() -> None:
    texts = ["draft_scenes.scenes=6", 'load_stories.language="en"']
    assert RunOptions(settings=texts).texts == texts
    mapping = {"draft_scenes.scenes": 6, "load_stories.language": "en"}
    assert RunOptions(settings=mapping).texts == setting_texts(mapping) == texts


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
