"""fabula edit --from, release pack --reviews FOLDER --gold, and stats of it, as a user types them."""

import sys
from pathlib import Path

import pytest

from fabula.errors import ExitCode
from fabula.people.review.standing import VoteJournal
from fabula.testing.katha_folders import write_run
from fabula.testing.katha_samples import sample_bundles
from fabula.testing.review_exports import agreed_by, summary_of, votes_on, write_review
from fabula.testing.review_studies import toy_study

from .conftest import invoke

SIMULATED = ("simulated-1", "simulated-2", "simulated-3")


@pytest.fixture(scope="module")
def reviewed(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A run of ten stories, and its review by three programs."""
    bundles, folder = sample_bundles(10), tmp_path_factory.mktemp("reviewed")
    rows = [summary_of(bundle, annotator_ids=list(SIMULATED)) for bundle in bundles]
    votes = [vote for bundle in bundles for vote in votes_on(bundle, SIMULATED)]
    return write_run(folder / "run", bundles), write_review(folder / "review", rows, votes, agreed_by())


@pytest.mark.slow
def test_a_review_when_packed_is_told_counted_and_kept_from_being_published(reviewed, tmp_path):
    run, review = reviewed
    out = tmp_path / "out"
    options = ("--version", "0.1.0", "--reviews", review, "--gold", "--review-status", "a7")
    done = invoke("release", "pack", run, "--out", out, *options)
    assert done.exit_code == 0, done.output
    assert "note: subset human_gold: 2 stories" in done.stdout
    assert (
        "programs took part in the review: the release is marked so, and cannot be published" in done.stdout
    )
    shown = invoke("stats", out).stdout
    rows = {line.split("  ")[1]: line.split() for line in shown.splitlines() if line.startswith("  ")}
    assert rows["Consensus records"][-3:] == ["9", "27", "0"]
    assert rows["Moral-target label (12-way)"][5:8] == ["1", "1", "1"]  # everybody accepted it
    assert "Edits and rejections before adjudication (Table 17)" in shown
    table = invoke("stats", out, "--format", "csv").stdout
    assert "agreement,Moral-target label (12-way),value,1.0" in table
    refused = invoke("publish", out, "--repo", "user/mine", "--dry-run")
    assert refused.exit_code == 1
    assert "programs took part in its review" in refused.stderr


# -- fabula review where its extra is not installed, as a user types it


@pytest.mark.parametrize("command", [["invite", "--count", "3"], ["serve"]])
def test_review_when_its_extra_is_not_installed_says_so_and_invites_nobody(tmp_path, monkeypatch, command):
    study = toy_study(tmp_path / "study").folder
    with VoteJournal(study) as journal:
        before = list(journal.events())
    for library in ("itsdangerous", "starlette", "uvicorn"):
        monkeypatch.setitem(sys.modules, library, None)
    result = invoke("review", command[0], study, *command[1:])
    assert result.exit_code == ExitCode.MISSING, result.output
    assert 'pip install "fabula[review]"' in result.output
    assert "Traceback" not in result.output
    with VoteJournal(study) as journal:
        assert list(journal.events()) == before
