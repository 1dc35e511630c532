"""fabula models check vision: the models that look at pictures, from the command line."""

import json
from collections.abc import Callable
from pathlib import Path

TABLE = "fabula.testing.table_detector:"


def test_check_vision_when_models_are_sound_prints_them_and_succeeds(fabula_command: Callable) -> None:
    names = [f"{TABLE}load_colour_encoder", f"{TABLE}load_brightness"]
    done = fabula_command("models", "check", "vision", "--model", names[0], "--model", names[1], "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["passed"] and {row["model"] for row in found["findings"]} == set(names)


def test_check_vision_when_settings_are_in_the_file_uses_them(
    fabula_command: Callable, tmp_path: Path
) -> None:
    config, name = tmp_path / "mine.toml", f"{TABLE}load_colour_encoder"
    config.write_text(f'[encode_crops]\npictures = ["{name}"]\noptions."{name}".local = "x"\n')
    done = fabula_command("models", "check", "vision", "--model", name, "--config", config)
    assert done.returncode == 1
    assert "the settings are: none" in done.stdout


def test_check_vision_when_weights_are_missing_exits_with_3(fabula_command: Callable) -> None:
    done = fabula_command("models", "check", "vision", "--model", "adaface-ir101")
    assert done.returncode == 3
    assert done.stdout.startswith("missing  adaface-ir101: load:") and "fix:" in done.stdout


def test_check_when_options_of_vision_are_given_for_a_spec_refuses(fabula_command: Callable) -> None:
    done = fabula_command("models", "check", "openai:gpt-4.1-mini", "--model", "x")
    assert done.returncode == 2 and "these options are for `fabula models check vision`" in done.stderr
