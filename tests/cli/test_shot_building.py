"""Sets of shot scripts and generated shots, as a user types it."""

import json
from collections.abc import Callable
from pathlib import Path

from fabula.testing.drawn_shots import draw_shot_outputs, draw_shot_set


def test_shots_when_imported_copied_checked_and_exported(fabula_command: Callable, tmp_path: Path) -> None:
    source = draw_shot_set(tmp_path / "data", 1)
    done = fabula_command("import", "vistory", source, "--out", tmp_path / "run")
    assert done.returncode == 0, done.stderr
    assert "1 story, 5 shots, 3 characters, 6 references" in done.stdout
    copied = fabula_command("baseline", "copy-paste", "--release", tmp_path / "run", "--out", tmp_path / "cp")
    assert copied.returncode == 0, copied.stderr
    assert "5 pictures" in copied.stdout and copied.stderr == ""
    for image in (source / "ViStory/01/image/The Fox").iterdir():
        image.unlink()
    bare = fabula_command("baseline", "copy-paste", "--release", source, "--out", tmp_path / "bare")
    assert "no reference image and are left out: 1" in bare.stderr
    checked = fabula_command("outputs", "check", tmp_path / "cp", "--release", tmp_path / "run", "--json")
    (told,) = json.loads(checked.stdout)["outputs"]
    assert told["shots_valid"] == told["shots_requested"] == 5
    out = fabula_command("export", "vistory", tmp_path / "run", "--out", tmp_path / "official", "--json")
    assert json.loads(out.stdout)["shots"] == 5
    asked = fabula_command("export", "shots", tmp_path / "run", "--part", "static", "--out", tmp_path / "ask")
    assert asked.returncode == 0, asked.stderr
    assert "5 requests, 3 images" in asked.stdout


def test_shots_when_something_is_wrong_exit_with_1_and_say_what(
    fabula_command: Callable, tmp_path: Path
) -> None:
    source = draw_shot_set(tmp_path / "data", 1)
    (source / "ViStory/01/image/Mira/00.png").write_text("no picture")
    done = fabula_command("import", "vistory", source, "--out", tmp_path / "run")
    assert done.returncode == 1
    assert "[unreadable-picture]" in done.stdout
    outputs = draw_shot_outputs(tmp_path / "model-x", 1)
    (outputs / "01/shots/shot_02.png").unlink()
    checked = fabula_command("outputs", "check", outputs, "--release", tmp_path / "run")
    assert checked.returncode == 1
    assert "warning: model-x/01 [missing-shot]" in checked.stdout
    refused = fabula_command("outputs", "check", outputs, "--release", tmp_path / "run", "--ocr")
    assert refused.returncode == 2
