"""The main job through the real command: build, look, validate, pack, verify, correct."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import fabula

SAMPLES_COUNT = 24


def test_build_when_samples_are_built_makes_every_story(sample_run: Path) -> None:
    report = json.loads((sample_run / "report.json").read_text("utf-8"))
    assert report["totals"]["made"] == SAMPLES_COUNT, report["items"]
    assert report["totals"]["failed"] == 0
    lines = (sample_run / "records.jsonl").read_text("utf-8").splitlines()
    assert len(lines) == SAMPLES_COUNT


def test_build_when_repeated_changes_nothing(fabula_command, sample_run: Path) -> None:
    before = {path.name: path.read_bytes() for path in sample_run.glob("*.json*")}
    again = fabula_command("run", "retry", sample_run, "--json")
    assert again.returncode == 0, again.stderr
    events = [json.loads(line) for line in again.stderr.splitlines() if line.startswith("{")]
    assert events or again.stdout
    after = {path.name: path.read_bytes() for path in sample_run.glob("*.json*")}
    assert {name: before[name] == after[name] for name in before if name != "report.json"} == {
        name: True for name in before if name != "report.json"
    }


def test_status_when_run_is_complete_shows_every_stage(fabula_command, sample_run: Path) -> None:
    done = fabula_command("run", "status", sample_run, "--explain")
    assert done.returncode == 0, done.stderr
    for stage in ("load_stories", "draft_scenes", "assign_splits", "assemble_records"):
        assert stage in done.stdout


def test_show_when_item_exists_names_what_each_stage_wrote(fabula_command, sample_run: Path) -> None:
    done = fabula_command("run", "show", sample_run, "kb25k_0001", "--json")
    assert done.returncode == 0, done.stderr
    assert "draft_scenes" in done.stdout
    missing = fabula_command("run", "show", sample_run, "kb25k_9999")
    assert missing.returncode == 2
    assert "kb25k_9999" in missing.stderr


def test_validate_when_run_is_sound_exits_zero(fabula_command, sample_run: Path) -> None:
    done = fabula_command("validate", sample_run, "--json")
    report = json.loads(done.stdout)
    assert [issue for issue in report["issues"] if issue["level"] == "error"] == []
    assert done.returncode == 0


def test_validate_when_a_record_is_broken_exits_one_and_says_where(
    fabula_command, sample_run: Path, tmp_path: Path
) -> None:
    broken = tmp_path / "run"
    shutil.copytree(sample_run, broken)
    lines = (broken / "records.jsonl").read_text("utf-8").splitlines()
    envelope = json.loads(lines[0])
    envelope["payload"]["record"]["moral_label"] = "cunning"
    lines[0] = json.dumps(envelope, ensure_ascii=False)
    (broken / "records.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    done = fabula_command("validate", broken)
    assert done.returncode == 1
    assert "$.moral_label" in done.stdout
    assert "cunning" in done.stdout


def test_release_when_packed_has_the_papers_files(sample_release: Path) -> None:
    names = {path.name for path in sample_release.iterdir()}
    assert {
        "annotations.jsonl", "contrastive_variants.jsonl", "statistics.json",
        "moral_balance_requirements.json",
        "dataset_card.md", "README.md", "source_manifest.json", "croissant_metadata.json", "LICENSE",
        "release.json",
    } <= names  # fmt: skip
    release = json.loads((sample_release / "release.json").read_text("utf-8"))
    assert "human_gold_1k.jsonl" in json.dumps(release["left_out"])


def test_repository_card_when_compared_is_the_card_of_the_sample_release(sample_release: Path) -> None:
    card = Path(fabula.__file__).parent / "dataset_card.md"
    if not card.exists():
        pytest.skip("the suite runs against an installed wheel, which has no repository card")
    kept, made = (
        # How large the Parquet files are depends on the version of pyarrow.
        [line for line in path.read_text("utf-8").splitlines() if "download_size:" not in line]
        for path in (card, sample_release / "dataset_card.md")
    )
    assert kept == made, (
        "the card has drifted: run make demo and copy dist/demo-0.1.0/dataset_card.md to dataset_card.md"
    )


def test_verify_when_release_is_untouched_exits_zero(fabula_command, sample_release: Path) -> None:
    done = fabula_command("release", "verify", sample_release)
    assert done.returncode == 0, done.stdout + done.stderr


def test_verify_when_one_byte_changes_exits_one_and_names_the_file(
    fabula_command, sample_release: Path, tmp_path: Path
) -> None:
    copy = tmp_path / "release"
    shutil.copytree(sample_release, copy)
    target = copy / "annotations.jsonl"
    data = bytearray(target.read_bytes())
    data[len(data) // 2] ^= 1
    target.write_bytes(data)
    done = fabula_command("release", "verify", copy, "--quick")
    assert done.returncode == 1
    assert "annotations.jsonl" in done.stdout


def test_pack_when_target_exists_is_refused(fabula_command, sample_run: Path, sample_release: Path) -> None:
    before = sorted(path.name for path in sample_release.iterdir())
    done = fabula_command("release", "pack", sample_run, "--version", "0.1.0", "--out", sample_release)
    assert done.returncode == 2
    assert "fix:" in done.stderr
    assert sorted(path.name for path in sample_release.iterdir()) == before


def test_pack_when_version_is_not_semantic_is_refused(
    fabula_command, sample_run: Path, tmp_path: Path
) -> None:
    done = fabula_command("release", "pack", sample_run, "--version", "one", "--out", tmp_path / "r")
    assert done.returncode == 2
    assert "0.1.0" in done.stderr


def test_edit_when_applied_changes_that_field_and_its_producer(
    fabula_command, sample_run: Path, tmp_path: Path
) -> None:
    run = tmp_path / "run"
    shutil.copytree(sample_run, run)
    args = (
        "edit",
        run,
        "kb25k_0002",
        "$.title",
        "--new",
        '"A better title"',
        "--who",
        "ana",
        "--why",
        "clearer",
    )
    noted = fabula_command(*args)
    assert noted.returncode == 0, noted.stderr
    applied = fabula_command("run", "retry", run)
    assert applied.returncode == 0, applied.stderr
    records = [json.loads(line) for line in (run / "records.jsonl").read_text("utf-8").splitlines()]
    payload = next(line["payload"] for line in records if line["id"] == "kb25k_0002")
    assert payload["record"]["title"] == "A better title"
    assert {"path": "$.title", "producer": "edit:ana"} in payload["producers"]
    others = [line for line in records if line["id"] != "kb25k_0002"]
    original = [json.loads(line) for line in (sample_run / "records.jsonl").read_text("utf-8").splitlines()]
    assert others == [line for line in original if line["id"] != "kb25k_0002"]


def test_stats_when_asked_for_json_counts_the_samples(fabula_command, sample_run: Path) -> None:
    done = fabula_command("stats", sample_run, "--json")
    assert done.returncode == 0, done.stderr
    assert f": {SAMPLES_COUNT}" in done.stdout


def test_stats_when_a_file_holds_no_record_is_refused(fabula_command, tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("to do\n- count the stories\n")
    done = fabula_command("stats", tmp_path / "notes.txt")
    assert done.returncode == 2 and "there are no records of stories in it" in done.stderr
    assert done.stdout == ""


def test_status_when_a_setting_is_tried_says_what_would_run_again(fabula_command, sample_run: Path) -> None:
    before = (sample_run / "run.json").read_bytes()
    done = fabula_command(
        "run", "status", sample_run, "--explain", "--set", "draft_scenes.scenes=4", "--json"
    )
    assert done.returncode == 0, done.stderr
    stages = {stage["name"]: stage for stage in json.loads(done.stdout)["stages"]}
    assert stages["analyze_story"]["stale"] == 0
    assert stages["draft_scenes"]["stale"] == SAMPLES_COUNT
    assert any("scenes" in reason for reason in stages["draft_scenes"]["reasons"])
    assert (sample_run / "run.json").read_bytes() == before
    wrong = fabula_command("run", "status", sample_run, "--set", "draft_scenes.sceens=4")
    assert wrong.returncode == 2


def test_pack_when_target_is_in_the_run_is_refused(fabula_command, sample_run: Path) -> None:
    done = fabula_command(
        "release", "pack", sample_run, "--version", "0.1.0", "--out", sample_run / "release"
    )
    assert done.returncode == 2
    assert not (sample_run / "release").exists()


def test_build_when_the_reader_of_progress_goes_away_goes_on(write_stories, tmp_path: Path) -> None:
    command = [
        sys.executable,
        "-m",
        "fabula.cli.main",
        "build",
        "katha",
        write_stories({}),
        "--out",
        tmp_path / "r",
    ]
    env = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE}
    with subprocess.Popen([*map(str, command)], env=env, **quiet) as build:
        assert build.stderr is not None
        build.stderr.close()
        assert build.wait(timeout=120) == 0
    assert (tmp_path / "r" / "records.jsonl").exists()
