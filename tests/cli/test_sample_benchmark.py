"""The main job through the real command: build, look, validate, pack, verify, correct."""

import copy
import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result

import fabula
from fabula.kinds.verbs import pack
from fabula.releases.options import PackOptions
from fabula.testing.hub import TOKEN, Held, HubServer, Refused
from fabula.testing.katha_folders import rehash, write_run
from fabula.testing.katha_samples import sample_bundles

from .conftest import invoke


def test_validate_when_a_record_is_broken_exits_one_and_says_where(fabula_command, sample_run, tmp_path):
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


def test_edit_when_applied_changes_that_field_and_its_producer(fabula_command, sample_run, tmp_path):
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


# -- ``fabula publish`` and ``fetch`` as commands: killed on the way, and what others read afterwards

REPO = "user/fables"
Fabula = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[HubServer]:
    """A Hub that the commands find, with their token."""
    monkeypatch.delenv("HF_HUB_OFFLINE")
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    with HubServer(log_path=tmp_path / "hub.jsonl") as server:
        monkeypatch.setenv("HF_ENDPOINT", server.url)
        yield server


def test_publish_when_killed_between_commit_and_tag_is_finished_by_the_same_command(
    hub: HubServer, sample_release: Path, fabula_command: Fabula, starter: Any, tmp_path: Path
) -> None:
    hub.faults = {"tag": [Held()]}
    running = starter.start(("publish", sample_release, "--repo", REPO))
    try:
        assert hub.wait_for("tag", 300)
    finally:
        running.kill()
    assert running.wait() == -signal.SIGKILL
    commit = hub.repository(REPO).branches["main"]
    assert hub.repository(REPO).tags == {}

    done = fabula_command("publish", sample_release, "--repo", REPO, "--json")
    assert done.returncode == 0, done.stdout + done.stderr
    assert json.loads(done.stdout)["commit"] == commit
    assert (json.loads(done.stdout)["committed"], json.loads(done.stdout)["tagged"]) == (False, True)
    assert hub.repository(REPO).tags == {"0.1.0": commit}
    assert len(hub.repository(REPO).commits) == 2
    log = (tmp_path / "hub.jsonl").read_text("utf-8")
    assert TOKEN not in log + done.stdout + done.stderr

    fetched = fabula_command("fetch", f"{REPO}@0.1.0", "--out", tmp_path / "dist", "--json")
    assert fetched.returncode == 0, fetched.stdout + fetched.stderr
    folder = tmp_path / "dist" / "fables-0.1.0"
    assert json.loads(fetched.stdout)["folder"] == str(folder)
    names = {path.relative_to(sample_release) for path in sample_release.rglob("*") if path.is_file()}
    assert {path.relative_to(folder) for path in folder.rglob("*") if path.is_file()} == names
    assert all((folder / name).read_bytes() == (sample_release / name).read_bytes() for name in names)


def test_fetch_when_the_hub_refuses_the_token_says_so_without_it(
    hub: HubServer, fabula_command: Fabula
) -> None:
    hub.faults = {"refs": Refused(403, echo=True)}
    done = fabula_command("fetch", "user/fables@0.9.0")
    assert done.returncode == 3 and "the token has no right to do this" in done.stderr
    assert TOKEN not in done.stderr


# -- fabula release diff, and pack --since, as a user types them; in this process


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A release ``old``, the run of a second version ``run`` with one corrected answer, and its release."""
    place = tmp_path_factory.mktemp("versions")
    pack(
        write_run(place / "first", sample_bundles(6)),
        place / "old",
        PackOptions("0.1.0", name="fables", allow_drafts=True),
    )
    bundles = copy.deepcopy(sample_bundles(6))
    bundles[0]["record"]["questions"][1]["accepted_answers"].append("dread")
    rehash(bundles[0])
    write_run(place / "run", bundles)
    done = invoke(
        "release",
        "pack",
        place / "run",
        "--allow-drafts",
        "--version",
        "auto",
        "--since",
        place / "old",
        "--out",
        place / "new",
    )
    assert done.exit_code == 0, done.output
    assert "packed version 0.2.0" in done.stdout and "a major step from 0.1.0: 1 story changed" in done.stdout
    return place


def test_diff_when_typed_tells_the_change_and_the_step(folder: Path) -> None:
    done = invoke("release", "diff", folder / "old", folder / "new")
    assert done.exit_code == 0, done.output
    assert 'kb25k_0001 $.questions[1].accepted_answers[2] added "dread"' in done.stdout
    assert "step due: major" in done.stdout and "next version: 0.2.0 or higher" in done.stdout


def test_diff_when_compared_exits_by_the_version_and_never_by_what_differs(folder: Path) -> None:
    same, other = (
        invoke("release", "diff", folder / "old", folder / name, "--json") for name in ("old", "new")
    )
    assert [(one.exit_code, json.loads(one.stdout)["step"]["due"]) for one in (same, other)] == [
        (0, "none"), (0, "major"),
    ]  # fmt: skip
    swapped = invoke("release", "diff", folder / "new", folder / "old", "--json")
    assert swapped.exit_code == 1 and "swapped" in json.loads(swapped.stdout)["step"]["problem"]
    neither = invoke("release", "diff", folder / "new", folder / "run", "--json")
    assert neither.exit_code == 2 and json.loads(neither.stdout)["error"]["exit_code"] == 2


def test_pack_when_the_version_is_too_low_exits_with_2_and_says_which_is_due(folder, tmp_path):
    out = tmp_path / "out"
    done = invoke(
        "release", "pack", folder / "run", "--version", "0.1.1", "--since", folder / "old", "--allow-drafts",
        "--out", out,
    )  # fmt: skip
    assert done.exit_code == 2
    assert "so that 0.2.0 or higher is due" in done.output and not out.exists()
    done = invoke("release", "pack", folder / "run", "--version", "auto", "--out", out)
    assert done.exit_code == 2 and "with --since" in done.output


# -- fabula release pack --subset, --reviews, --salt, and verify --salt, as a user types them


def pack_subset_commands(run: Path, out: Path, *more: object) -> Result:
    return invoke("release", "pack", run, "--version", "0.1.0", "--allow-drafts", "--out", out, *more)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of 24 stories, one of them hidden."""
    return write_run(tmp_path_factory.mktemp("runs") / "run", sample_bundles(24))


@pytest.mark.slow
def test_subsets_when_asked_for_are_told_and_drawn(run: Path, tmp_path: Path) -> None:
    subsets = ("--subset", "small=2:lite", "--subset", "lite=5")
    done = pack_subset_commands(run, tmp_path / "out", *subsets)
    assert done.exit_code == 0, done.output
    assert "note: subset lite: 5 stories" in done.stdout
    assert f"salt of the hidden test: {tmp_path / 'out-hidden.salt'}" in done.stdout
    told = json.loads(pack_subset_commands(run, tmp_path / "again", *subsets, "--json").stdout)
    assert told["salt"] == str(tmp_path / "again-hidden.salt")
    lists = [(tmp_path / out / "subsets/small.jsonl").read_bytes() for out in ("out", "again")]
    assert lists[0] == lists[1]


def test_the_hidden_test_when_proven_by_an_old_document_says_so(run: Path, tmp_path: Path) -> None:
    assert pack_subset_commands(run, tmp_path / "out").exit_code == 0
    proof = (tmp_path / "out/release.json", "--hidden", tmp_path / "out-hidden")
    done = invoke("release", "verify", *proof)
    assert done.exit_code == 0, done.output
    assert done.stdout.splitlines()[-1] == "every commitment is proven"
    (tmp_path / "other.salt").write_text("5a" * 32)
    failed = invoke("release", "verify", *proof, "--salt", tmp_path / "other.salt", "--json")
    assert failed.exit_code == 1
    assert [issue["code"] for issue in json.loads(failed.stdout)["issues"]] == ["commitment"]
    secret = (tmp_path / "out-hidden.salt").read_text().strip()
    assert secret not in done.output + failed.output
