"""fabula models check vision: the models that look at pictures, from the command line."""

import json
from collections.abc import Callable
from importlib.util import find_spec
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
    assert done.stdout.startswith("missing  adaface-ir101: load:")
    installed = find_spec("insightface") is not None
    fix = "fabula models fetch vision --model adaface-ir101" if installed else 'pip install "fabula[metrics]"'
    assert f"fix: {fix}" in done.stdout


def test_fetch_when_it_is_a_plan_lists_files_terms_and_commands(fabula_command: Callable) -> None:
    done = fabula_command("models", "fetch", "vision", "--metrics", "csd", "--plan")
    assert done.returncode == 0, done.stderr
    assert "about 2.4 GB" in done.stdout and "licence: CC-BY-4.0" in done.stdout
    assert "hf download tomg-group-umd/CSD-ViT-L pytorch_model.bin --revision 5bc26a6fb" in done.stdout
    done = fabula_command("models", "fetch", "vision", "--all", "--plan", "--json")
    plan = json.loads(done.stdout)
    named = {model for source in plan["sources"] for model in source["models"]}
    assert len(named) == 19 and all(source["licence"] for source in plan["sources"])


def test_fetch_when_terms_are_not_accepted_refuses_and_when_they_are_checks_files(
    fabula_command: Callable, tmp_path: Path
) -> None:
    (tmp_path / "scrfd_10g_bnkps.onnx").write_bytes(b"other")
    asked = ("models", "fetch", "vision", "--model", "faces-scrfd-10g", "--from", tmp_path)
    done = fabula_command(*asked)
    assert done.returncode == 2 and "nobody accepted these terms" in done.stderr
    done = fabula_command(*asked, "--accept-licence")
    assert done.returncode == 3 and "instead of 5838f7fe0536" in done.stdout


def test_fetch_when_there_is_no_network_names_everything_that_failed(fabula_command: Callable) -> None:
    asked = ("models", "fetch", "vision", "--model", "clip-vit-b-32", "--model", "dinov2-base")
    done = fabula_command(*asked)
    assert done.returncode == 3 and done.stdout.count("HF_HUB_OFFLINE forbids") == 2
    assert "openai/clip-vit-base-patch32: config.json" in done.stderr
