"""Correcting shot scripts, comparing their releases, and releasing a subset, through the real commands."""

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from fabula.testing.drawn_shots import draw_reference, draw_shot_set
from fabula.testing.model_server import ModelServer
from fabula.testing.shots_model import answer

Fabula = Callable[..., subprocess.CompletedProcess[str]]
TEXT = "Mira walked along the river. An old ferryman saw Mira. Mira waved. The ferryman laughed. Mira slept."
PATH = "$.Shots[1]['Setting Description'].en"
PACK = ("--license", "CC0-1.0", "--language", "en", "--allow-stand-in")


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


def test_script_when_edited_is_released_anew_and_the_diff_shows_text_and_image(
    fabula_command: Fabula, run: Path, tmp_path: Path
) -> None:
    first = fabula_command("release", "pack", run, "--version", "0.1.0", *PACK, "--out", tmp_path / "a")
    assert first.returncode == 0, first.stderr
    signed = ("--who", "ana", "--why", "the text says so")
    noted = fabula_command("edit", run, "hat", PATH, "--new", '"A wooden landing"', *signed)
    assert (noted.returncode, "fabula run retry" in noted.stdout) == (0, True), noted.stderr
    early = fabula_command("release", "pack", run, "--version", "0.2.0", *PACK, "--out", tmp_path / "b")
    assert (early.returncode, "not applied yet" in early.stderr) == (2, True)
    assert fabula_command("run", "retry", run).returncode == 0
    take(fabula_command, tmp_path, "b.png", 5)
    second = fabula_command(
        "release",
        "pack",
        run,
        "--version",
        "auto",
        "--since",
        tmp_path / "a",
        "--allow-stand-in",
        "--out",
        tmp_path / "b",
    )
    assert second.returncode == 0, second.stderr
    found = fabula_command(
        "release", "diff", tmp_path / "a", tmp_path / "b", "--html", tmp_path / "diff.html"
    )
    assert found.returncode == 0
    assert "01 Mira: added 01.png" in found.stdout
    assert 'Setting Description"].en changed' in found.stdout and '"A wooden landing"' in found.stdout
    assert "1 reference image added" in found.stdout
    assert "<img" in (tmp_path / "diff.html").read_text("utf-8")


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


def test_subset_when_exported_is_packed_verified_and_used(
    fabula_command: Fabula, run: Path, tmp_path: Path
) -> None:
    lite, dist = tmp_path / "lite", tmp_path / "dist"
    done = fabula_command(
        "export", "lite", run, "--ids", "01", "--created-at", "2026-01-01T00:00:00Z", "--out", lite
    )
    assert (done.returncode, "fabula release pack" in done.stdout) == (0, True), done.stderr
    packed = fabula_command("release", "pack", lite, "--version", "0.1.0", *PACK, "--out", dist)
    assert packed.returncode == 0, packed.stderr
    assert "1 story, 4 shots" in packed.stdout
    assert fabula_command("release", "verify", dist).returncode == 0
    assert json.loads((dist / "lite.json").read_text("utf-8"))["ids"] == ["01"]
    (record,) = map(json.loads, (dist / "scripts.jsonl").read_text("utf-8").splitlines())
    assert record["source_id"] == "hat"
    assert any("tiny via shots/" in one["producer"] for one in record["producers"])
    assert (dist / "ViStory/01/image/Mira/00.png").is_file()
    assert fabula_command("export", "shots", dist, "--out", tmp_path / "requests").returncode == 0
    again = fabula_command("export", "lite", dist, "--count", "1", "--out", tmp_path / "of-a-release")
    assert again.returncode == 0, again.stderr
    (same,) = map(json.loads, (tmp_path / "of-a-release/scripts.jsonl").read_text("utf-8").splitlines())
    assert same == record
