"""fabula edit --from, release pack --reviews FOLDER --gold, and stats of it, as a user types them."""

import json
import shutil
import sys
from pathlib import Path

import pytest
from click.testing import Result
from typer.testing import CliRunner

import fabula as fabula_package
from fabula.builders.katha.building import BuildOptions, build_katha
from fabula.cli.main import app
from fabula.errors import ExitCode
from fabula.people.review.standing import VoteJournal
from fabula.testing.katha_folders import write_run
from fabula.testing.katha_samples import sample_bundles
from fabula.testing.review_exports import agreed_by, summary_of, votes_on, write_edits, write_review
from fabula.testing.review_studies import toy_study

SAMPLES = Path(fabula_package.__file__).parent / "builders" / "katha" / "samples"
SIMULATED = ("simulated-1", "simulated-2", "simulated-3")


def fabula(*args: object) -> Result:
    return CliRunner().invoke(app, [str(argument) for argument in args])


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of one story."""
    folder = tmp_path_factory.mktemp("runs")
    first = (SAMPLES / "stories.jsonl").read_bytes().splitlines(keepends=True)[0]
    (folder / "stories.jsonl").write_bytes(first)
    options = BuildOptions(workers=0, settings=["run.threshold=1"])
    build_katha(folder / "stories.jsonl", folder / "run", options)
    return folder / "run"


@pytest.fixture
def run(built: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(built, tmp_path / "run"))


def title_of(run: Path) -> str:
    line = (run / "records.jsonl").read_text("utf-8").splitlines()[0]
    return str(json.loads(line)["payload"]["record"]["title"])


def test_corrections_of_a_review_when_applied_are_told_and_then_known(run: Path, tmp_path: Path) -> None:
    row = {
        "id": "kb25k_0001",
        "path": "$.title",
        "old": title_of(run),
        "new": "Once",
        "who": "r1",
        "why": "so",
    }
    file = write_edits(tmp_path / "edits.jsonl", [row])
    tried = fabula("edit", run, "--from", file, "--dry-run")
    assert tried.exit_code == 0, tried.output
    assert "would add 1 correction of 1 record, 0 that follow; nothing is written" in tried.stdout
    done = fabula("edit", run, "--from", file)
    assert 'kb25k_0001 $.title = "Once"' in done.stdout
    assert "applied: " in done.stdout and title_of(run) == "Once"
    assert done.stderr == ""
    again = json.loads(fabula("edit", run, "--from", file, "--json").stdout)
    assert (again["added"], again["known"], again["simulated"]) == ([], 1, False)
    assert "nothing to add" in fabula("edit", run, "--from", file).stdout


def test_corrections_of_programs_when_applied_come_with_a_warning(run: Path, tmp_path: Path) -> None:
    row = {
        "id": "kb25k_0001",
        "path": "$.title",
        "old": title_of(run),
        "new": "Once",
        "who": "a",
        "why": "so",
    }
    done = fabula("edit", run, "--from", write_edits(tmp_path / "edits.jsonl", [row], simulated=True))
    assert done.exit_code == 0
    assert "warning: programs took part in this review" in done.stderr
    assert '"who":"simulated-a"' in (run / "edits.jsonl").read_text("utf-8")


@pytest.mark.parametrize(
    ("arguments", "code", "text"),
    [
        (("--from", "none.jsonl"), 1, "none.jsonl"),
        (("kb25k_0001", "--from", "edits.jsonl"), 2, "the record's id is given, too"),
        (("--from", "edits.jsonl", "--who", "ana"), 2, "--who is given, too"),
        (("--from", "edits.jsonl", "--withdraw"), 2, "--withdraw is given, too"),
        (("kb25k_0001", "$.title", "--new", '"x"', "--dry-run"), 2, "--dry-run: it goes with --from"),
        ((), 2, "the record's id is missing"),
        (("--from", "edits.jsonl"), 1, "the reviewers saw"),
        (("--from", "edits.jsonl", "--release", "."), 2, "another release"),
    ],
)
def test_corrections_when_they_cannot_be_applied_leave_the_run_as_it_was(
    run: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    arguments: tuple[str, ...],
    code: int,
    text: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    row = {"id": "kb25k_0001", "path": "$.title", "old": "Other", "new": "Once", "who": "r1", "why": "so"}
    write_edits(tmp_path / "edits.jsonl", [row], release="0" * 64 if "--release" in arguments else None)
    for name in ("annotations.jsonl", "contrastive_variants.jsonl"):
        (tmp_path / name).write_text("")
    done = fabula("edit", run, *arguments)
    assert done.exit_code == code, done.output
    assert text in " ".join(done.stderr.split())
    assert not (run / "edits.jsonl").exists()


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
    done = fabula("release", "pack", run, "--out", out, *options)
    assert done.exit_code == 0, done.output
    assert "note: subset human_gold: 2 stories" in done.stdout
    assert (
        "programs took part in the review: the release is marked so, and cannot be published" in done.stdout
    )
    shown = fabula("stats", out).stdout
    rows = {line.split("  ")[1]: line.split() for line in shown.splitlines() if line.startswith("  ")}
    assert rows["Consensus records"][-3:] == ["9", "27", "0"]
    assert rows["Moral-target label (12-way)"][5:8] == ["1", "1", "1"]  # everybody accepted it
    assert "Edits and rejections before adjudication (Table 17)" in shown
    table = fabula("stats", out, "--format", "csv").stdout
    assert "agreement,Moral-target label (12-way),value,1.0" in table
    refused = fabula("publish", out, "--repo", "user/mine", "--dry-run")
    assert refused.exit_code == 1
    assert "programs took part in its review" in refused.stderr


@pytest.mark.parametrize(
    ("more", "code", "text"),
    [
        (("--gold", "--allow-drafts"), 2, "found no file of reviews"),
        (("--review-status", "gold"), 2, "expected d7 or a7"),
        (("--reviews", "/nowhere"), 1, "there is no file with this name"),
    ],
)
def test_a_pack_when_reviews_are_missing_or_words_unknown_is_refused(reviewed, tmp_path, more, code, text):
    done = fabula("release", "pack", reviewed[0], "--version", "0.1.0", "--out", tmp_path / "out", *more)
    assert (done.exit_code, text in " ".join(done.stderr.split())) == (code, True), done.output
    assert list(tmp_path.iterdir()) == []


# -- fabula review where its extra is not installed, as a user types it


@pytest.mark.parametrize("command", [["invite", "--count", "3"], ["serve"]])
def test_review_when_its_extra_is_not_installed_says_so_and_invites_nobody(tmp_path, monkeypatch, command):
    study = toy_study(tmp_path / "study").folder
    with VoteJournal(study) as journal:
        before = list(journal.events())
    for library in ("itsdangerous", "starlette", "uvicorn"):
        monkeypatch.setitem(sys.modules, library, None)
    result = CliRunner().invoke(app, ["review", command[0], str(study), *command[1:]])
    assert result.exit_code == ExitCode.MISSING, result.output
    assert 'pip install "fabula[review]"' in result.output
    assert "Traceback" not in result.output
    with VoteJournal(study) as journal:
        assert list(journal.events()) == before
