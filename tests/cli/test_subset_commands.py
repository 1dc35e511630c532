"""fabula release pack --subset, --reviews, --salt, and verify --salt, as a user types them."""

import json
from pathlib import Path

import pytest
from click.testing import Result
from typer.testing import CliRunner

from fabula.cli.main import app
from fabula.testing.katha_folders import write_run
from fabula.testing.katha_samples import sample_bundles


def fabula(*args: object) -> Result:
    return CliRunner().invoke(app, [str(one) for one in args])


def pack(run: Path, out: Path, *more: object) -> Result:
    return fabula("release", "pack", run, "--version", "0.1.0", "--allow-drafts", "--out", out, *more)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of 24 stories, one of them hidden."""
    return write_run(tmp_path_factory.mktemp("runs") / "run", sample_bundles(24))


@pytest.mark.slow
def test_subsets_when_asked_for_are_told_and_drawn(run: Path, tmp_path: Path) -> None:
    subsets = ("--subset", "small=2:lite", "--subset", "lite=5")
    done = pack(run, tmp_path / "out", *subsets)
    assert done.exit_code == 0, done.output
    assert "note: subset lite: 5 stories" in done.stdout
    assert f"salt of the hidden test: {tmp_path / 'out-hidden.salt'}" in done.stdout
    told = json.loads(pack(run, tmp_path / "again", *subsets, "--json").stdout)
    assert told["salt"] == str(tmp_path / "again-hidden.salt")
    lists = [(tmp_path / out / "subsets/small.jsonl").read_bytes() for out in ("out", "again")]
    assert lists[0] == lists[1]


def test_the_hidden_test_when_proven_by_an_old_document_says_so(run: Path, tmp_path: Path) -> None:
    assert pack(run, tmp_path / "out").exit_code == 0
    proof = (tmp_path / "out/release.json", "--hidden", tmp_path / "out-hidden")
    done = fabula("release", "verify", *proof)
    assert done.exit_code == 0, done.output
    assert done.stdout.splitlines()[-1] == "every commitment is proven"
    (tmp_path / "other.salt").write_text("5a" * 32)
    failed = fabula("release", "verify", *proof, "--salt", tmp_path / "other.salt", "--json")
    assert failed.exit_code == 1
    assert [issue["code"] for issue in json.loads(failed.stdout)["issues"]] == ["commitment"]
    secret = (tmp_path / "out-hidden.salt").read_text().strip()
    assert secret not in done.output + failed.output
