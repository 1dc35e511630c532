"""fabula outputs check, as a user types it."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from fabula.kinds.verbs import pack
from fabula.releases.options import PackOptions
from fabula.testing.drawn import write_outputs
from fabula.testing.katha_folders import write_run
from fabula.testing.katha_samples import sample_bundles


@pytest.fixture(scope="module")
def release(tmp_path_factory: pytest.TempPathFactory) -> Path:
    run = write_run(tmp_path_factory.mktemp("runs") / "run", sample_bundles(4))
    return pack(
        run, tmp_path_factory.mktemp("packed") / "fables-0.1.0", PackOptions("0.1.0", allow_drafts=True)
    ).folder


def ids(release: Path) -> list[str]:
    lines = (release / "annotations.jsonl").read_text("utf-8").splitlines()
    return [json.loads(line)["story_id"] for line in lines]


def test_outputs_check_when_sound_exits_with_0(
    fabula_command: Callable, release: Path, tmp_path: Path
) -> None:
    folder = write_outputs(tmp_path / "model-x", ids(release))
    done = fabula_command("outputs", "check", folder, "--release", release)
    assert done.returncode == 0, done.stderr
    assert "generations invalid (0.0%)" in done.stdout


def test_outputs_check_when_broken_lists_it_and_exits_with_1(
    fabula_command: Callable, release: Path, tmp_path: Path
) -> None:
    first, *others = ids(release)
    good, bad = write_outputs(tmp_path / "good", [first, *others]), write_outputs(tmp_path / "bad", others)
    done = fabula_command("outputs", "check", good, bad, "--release", release)
    assert done.returncode == 1
    assert f"error: bad/{first} [missing-storyboard]" in done.stdout
    shown = fabula_command("outputs", "check", good, bad, "--release", release, "--json")
    assert shown.returncode == 1
    one, two = json.loads(shown.stdout)["outputs"]
    assert (one["ok"], two["ok"]) == (True, False)
    assert two["invalid"] == [{"codes": ["missing-storyboard"], "seed": None, "story_id": first}]


def test_outputs_check_when_the_folder_holds_methods_says_that_alone(
    fabula_command: Callable, release: Path, tmp_path: Path
) -> None:
    write_outputs(tmp_path / "outs" / "crayon", ids(release))
    done = fabula_command("outputs", "check", tmp_path / "outs", "--release", release)
    assert done.returncode == 1
    cause, fix, more, *_ = done.stdout.splitlines()
    assert cause == "error: outs [nothing-found] this folder holds the outputs of 1 method"
    assert fix == "  fix: give one of: crayon"
    assert more == f"... and {len(ids(release)) + 1} more findings that follow from it; --all prints them"
    assert "missing-storyboard]" in fabula_command(
        "outputs", "check", tmp_path / "outs", "--release", release, "--all"
    ).stdout  # fmt: skip


def test_outputs_check_when_ocr_is_not_installed_names_the_extra(
    fabula_command: Callable, release: Path, tmp_path: Path
) -> None:
    try:
        import rapidocr  # noqa: F401
    except ImportError:
        folder = write_outputs(tmp_path / "model-x", ids(release))
        done = fabula_command("outputs", "check", folder, "--release", release, "--ocr")
        assert done.returncode == 3
        assert "fabula[ocr]" in done.stderr


# fabula outputs keyframes, as a user types it.
