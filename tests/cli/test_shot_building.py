"""The commands of shot scripts: build, references, lite, statistics, validation."""

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from fabula.testing.drawn_shots import draw_reference
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
