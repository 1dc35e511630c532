"""The main job through the real command: build, look, validate, pack, verify, correct."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import fabula


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


def test_stats_when_a_file_holds_no_record_is_refused(fabula_command, tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("to do\n- count the stories\n")
    done = fabula_command("stats", tmp_path / "notes.txt")
    assert done.returncode == 2 and "there are no records of stories in it" in done.stderr
    assert done.stdout == ""


@pytest.mark.slow
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
