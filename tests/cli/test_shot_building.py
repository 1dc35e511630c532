"""The commands of shot scripts: build, references, lite, statistics, validation."""

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from fabula.testing.drawn_shots import draw_reference, draw_shot_outputs, draw_shot_set
from fabula.testing.hub import TOKEN, HubServer
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


def test_commands_when_run_one_after_the_other_make_a_set_and_its_subset(
    fabula_command: Fabula, stories: Path, tmp_path: Path
) -> None:
    run = tmp_path / "run"
    done = fabula_command(
        "build", "shots", str(stories), "--shots", "4", "--languages", "en", "--out", str(run)
    )
    assert done.returncode == 0, done.stderr
    assert "scripts: " in done.stdout
    place = tmp_path / "images" / "hat" / "Mira"
    place.mkdir(parents=True)
    (place / "a.png").write_bytes(draw_reference("Mira"))
    done = fabula_command(
        "import", "references", str(tmp_path / "images"), "--to", str(run), "--rights", "CC0-1.0"
    )
    assert done.returncode == 0, done.stderr
    assert "checked 1 image" in done.stdout
    counted = json.loads(fabula_command("stats", str(run), "--json").stdout)
    assert counted["totals"]["references"] == 1
    found = json.loads(fabula_command("validate", str(run), "--json").stdout)
    assert found["kind"] == "shots"
    assert {issue["code"] for issue in found["issues"] if issue["level"] == "error"} == {
        "missing-field", "tag",
    }  # fmt: skip
    done = fabula_command(
        "export", "lite", str(run), "--count", "1", "--out", str(tmp_path / "lite"), "--json"
    )
    assert json.loads(done.stdout)["stories"] == {"full": 2, "subset": 1}


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


def test_references_when_a_detector_is_named_are_looked_at(
    fabula_command: Fabula, stories: Path, tmp_path: Path
) -> None:
    run, place = tmp_path / "run", tmp_path / "images" / "hat" / "Mira"
    fabula_command("build", "shots", str(stories), "--limit", "1", "--out", str(run))
    place.mkdir(parents=True)
    (place / "a.png").write_bytes(draw_reference("Mira"))
    command = ("import", "references", str(tmp_path / "images"), "--to", str(run), "--rights", "CC0-1.0")
    done = fabula_command(*command, "--detector", "nobody")
    assert (done.returncode, "faces-scrfd-10g" in done.stderr) == (2, True)
    detector = "fabula.testing.table_detector:load_table_detector"
    done = fabula_command(*command, "--detector", detector, "--json")
    counts = json.loads(done.stdout)["counts"]
    assert (done.returncode, "nobody-seen" in counts) == (0, False)


def test_release_when_packed_from_a_build_is_verified_diffed_and_published_dry(
    fabula_command: Fabula, stories: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, dist = tmp_path / "run", tmp_path / "dist"
    with ModelServer(answer) as server:
        made = fabula_command(
            "build", "shots", stories, "--shots", "4", "--languages", "en", "--out", run,
            "--planner", "model", "--model", f"{server.openai_url}#tiny",
        )  # fmt: skip
    assert made.returncode == 0, made.stderr
    packed = fabula_command(
        "release", "pack", run, "--version", "0.1.0", "--license", "CC0-1.0", "--language", "en",
        "--allow-stand-in", "--out", dist,
    )  # fmt: skip
    assert packed.returncode == 0, packed.stderr
    assert "packed version 0.1.0: 2 stories, 8 shots" in packed.stdout
    verified = fabula_command("release", "verify", dist)
    assert (verified.returncode, "the release is sound" in verified.stdout) == (0, True), verified.stdout
    assert fabula_command("export", "shots", dist, "--out", tmp_path / "requests").returncode == 0
    assert "step due: none" in fabula_command("release", "diff", dist, dist).stdout
    with HubServer() as server:
        monkeypatch.delenv("HF_HUB_OFFLINE")
        monkeypatch.setenv("HF_TOKEN", TOKEN)
        monkeypatch.setenv("HF_ENDPOINT", server.url)
        dry = fabula_command(
            "publish", dist, "--repo", "user/shots", "--allow-stand-in", "--dry-run", "--json"
        )
        assert dry.returncode == 0, dry.stderr
        done = fabula_command("publish", dist, "--repo", "user/shots", "--allow-stand-in")
        assert done.returncode == 0, done.stderr
        fetched = fabula_command("fetch", "user/shots@0.1.0", "--out", tmp_path / "fetched")
        assert fetched.returncode == 0, fetched.stderr
    copy = tmp_path / "fetched" / "shots-0.1.0"
    assert (copy / "SHA256SUMS").read_bytes() == (dist / "SHA256SUMS").read_bytes()


# Correcting shot scripts, comparing their releases, and releasing a subset, through the real commands.

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
