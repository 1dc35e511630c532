"""The commands of shot scripts: build, references, lite, statistics, validation."""

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from fabula.testing.drawn_shots import draw_reference, draw_shot_outputs, draw_shot_set
from fabula.testing.model_server import ModelServer
from fabula.testing.shots_model import answer

Fabula = Callable[..., subprocess.CompletedProcess[str]]
TEXT = "Mira walked along the river. An old ferryman saw Mira. Mira waved. The ferryman laughed. Mira slept."


@pytest.fixture
def stories(tmp_path: Path) -> Path:
    row = {
        "id": "hat", "title": "The Hat", "language": "en", "text": TEXT, "source_collection": "own",
        "rights_status": "public_domain_or_rights_compatible",
    }  # fmt: skip
    path = tmp_path / "stories.jsonl"
    path.write_text("".join(json.dumps({**row, "id": name}) + "\n" for name in ("hat", "boat")), "utf-8")
    return path


def test_build_when_options_are_wrong_says_so(fabula_command: Fabula, stories: Path, tmp_path: Path) -> None:
    done = fabula_command(
        "build", "shots", str(stories), "--languages", "en,zh", "--out", str(tmp_path / "run")
    )
    assert (done.returncode, "ch" in done.stderr) == (2, True)
    done = fabula_command("build", "shots", str(stories))
    assert (done.returncode, "--out" in done.stderr) == (2, True)


def test_lite_when_the_official_ids_are_not_there_says_so(
    fabula_command: Fabula, stories: Path, tmp_path: Path
) -> None:
    run = tmp_path / "run"
    fabula_command("build", "shots", str(stories), "--out", str(run))
    done = fabula_command("export", "lite", str(run), "--ids", "official", "--out", str(tmp_path / "lite"))
    assert (done.returncode, "the set has no story" in done.stderr) == (2, True)


# Correcting shot scripts, comparing their releases, and releasing a subset, through the real commands.


@pytest.fixture
def run(fabula_command: Fabula, tmp_path: Path) -> Path:
    """A run of two stories by a stand-in for a model, with one reference image."""
    row = {
        "id": "hat", "title": "The Hat", "language": "en", "text": TEXT, "source_collection": "own",
        "rights_status": "public_domain_or_rights_compatible",
    }  # fmt: skip
    stories = tmp_path / "stories.jsonl"
    stories.write_text("".join(json.dumps({**row, "id": name}) + "\n" for name in ("hat", "boat")), "utf-8")
    with ModelServer(answer) as server:
        done = fabula_command(
            "build", "shots", stories, "--shots", "4", "--languages", "en", "--out", tmp_path / "run",
            "--planner", "model", "--model", f"{server.openai_url}#tiny",
        )  # fmt: skip
    assert done.returncode == 0, done.stderr
    take(fabula_command, tmp_path, "a.png", 0)
    return tmp_path / "run"


def take(fabula_command: Fabula, folder: Path, name: str, number: int) -> None:
    place = folder / "images" / "hat" / "Mira"
    place.mkdir(parents=True, exist_ok=True)
    (place / name).write_bytes(draw_reference("Mira", number))
    fabula_command("import", "references", folder / "images", "--to", folder / "run", "--rights", "CC0-1.0")


@pytest.mark.parametrize(
    ("path", "new", "expected"),
    [
        ("$.Shots[9]['Setting Description'].en", '"x"', "the script has 4 shots"),
        ("$.Characters.Mira.tag", '"human"', "expected one of realistic_human"),
        ("$['a", '"x"', "cannot read the JSON path"),
    ],
)
def test_edit_when_it_cannot_be_applied_is_refused(
    fabula_command: Fabula, run: Path, path: str, new: str, expected: str
) -> None:
    done = fabula_command("edit", run, "hat", path, "--new", new, "--who", "ana", "--why", "x")
    assert (done.returncode, expected in done.stderr) == (2, True), done.stderr
    assert not (run / "edits.jsonl").exists()


def test_edit_when_the_set_was_imported_says_what_to_do(fabula_command: Fabula, tmp_path: Path) -> None:
    fabula_command("import", "vistory", draw_shot_set(tmp_path / "data"), "--out", tmp_path / "run")
    done = fabula_command(
        "edit", tmp_path / "run", "01", "$.Characters.Mira.tag", "--new", '"x"', "--who", "a", "--why", "b"
    )
    assert (done.returncode, "fabula import vistory" in done.stderr) == (2, True)


# Sets of shot scripts and generated shots, as a user types it.


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
