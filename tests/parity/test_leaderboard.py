"""StoryEval's published results as submissions that are scored here; printed tables."""

import csv
import importlib.util
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from fabula.cli.main import app
from fabula.evaluation.archive.archive import write_archive
from fabula.evaluation.events.judging import Results, import_results
from fabula.kinds.benchmarks.row import published_table
from fabula.leaderboard.checking import check
from fabula.leaderboard.making import BoardOptions, init
from fabula.leaderboard.standing import standings
from fabula.leaderboard.submission import SubmitOptions, submit
from fabula.releases.events.form import SUITE, load_suite
from fabula.testing.drawn import write_video
from fabula.testing.model_server import Asked, ModelServer

pytestmark = pytest.mark.parity
PRINTED = {"pika1.5": "Pika-1.5", "easyanimate": "EasyAnimate v4", "modelscope": "ModelScope"}


@pytest.mark.slow
def test_storyeval_when_its_results_are_submitted_has_the_printed_rates_and_order(reference, tmp_path):
    prompts = reference / "storyeval" / "prompts" / SUITE
    suite = load_suite(prompts)
    board = tmp_path / "board"
    for name in PRINTED:
        file = reference / "storyeval" / "results" / f"{name}_gpt4o_final.json"
        run = tmp_path / name
        run.mkdir()
        archive = import_results([Results(file)], suite).archive
        write_archive(run, archive.manifest, archive.judgements)
        if not board.exists():
            init(
                board,
                BoardOptions(
                    like=run, release=prompts, board="storyeval-gpt4o", least_coverage=0.9, resamples=200
                ),
            )
        submit(run, board, SubmitOptions(name=name.replace(".", "-"), date="2026-01-01"))
    report = check(board)
    assert [issue for issue in report.issues if issue.level == "error"] == []
    (standing,) = standings(report, board)
    printed = published_table("storyeval-gpt4o").table()
    rates = {row.label: row.scores["average"].value for row in printed.rows}
    for row in standing.rows:
        assert row.submission is not None
        value = row.scores["average"].value
        assert value is not None
        assert round(value, 3) == pytest.approx(rates[PRINTED[row.submission.method]], abs=0.0011)
    order = [row.submission.method for row in standing.rows if row.submission is not None]
    assert order == ["pika1.5", "easyanimate", "modelscope"]
    assert {name: str(rank) for name, rank in standing.ranks.items()} == {
        "pika1-5": "1", "easyanimate": "2", "modelscope": "3",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("key", "file", "scale"),
    [
        ("vistorybench-lite", "vistory_lite_metrics", 1),
        ("storyeval-gpt4o", "storyeval_gpt4o", 100),
        ("storyeval-llava", "storyeval_llava", 100),
    ],
)
def test_published_when_compared_has_every_printed_cell(reference, key, file, scale):
    table = published_table(key)
    with (reference / "tables" / f"{file}.tsv").open(encoding="utf-8") as handle:
        lines = list(csv.DictReader(handle, delimiter="\t"))
    assert len(lines) == len(table.rows)
    for line, cells in zip(lines, table.rows.values(), strict=True):
        for measure, cell in zip(table.measures, cells, strict=True):
            assert isinstance(cell, float)
            assert cell * scale == pytest.approx(float(line[measure.name])), (line, measure.name)


# A maintainer of StoryEval switches: from a clone to a comparison with the numbers that were published.

PRESET = "storyeval@d095e63"


def run(*words: object, code: int = 0) -> str:
    done = CliRunner().invoke(app, [str(word) for word in words])
    assert done.exit_code == code, done.output + done.stderr
    return done.output + done.stderr


def answer(asked: Asked) -> str:
    """Complete the first event of every prompt, whichever it is."""
    numbered = re.findall(r"^ *(\d+)\. ", asked.text, re.MULTILINE)
    flags = ", ".join("0" if int(number) > 1 else "1" for number in numbered)
    return f"Looked at.\n[COMPLETE_LIST]: {flags}" if numbered else "Something moves."


@pytest.mark.slow
def test_walk_when_taken_from_the_clone_ends_in_a_comparison_with_the_published_file(
    reference: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("av")
    monkeypatch.setattr("fabula.prompts.loader.cache_folder", lambda: tmp_path / "cache")
    monkeypatch.setattr("fabula.prompts.fetching.cache_folder", lambda: tmp_path / "cache")
    monkeypatch.setenv("OPENAI_API_KEY", "test-key-0123456789")
    monkeypatch.chdir(tmp_path)
    published = json.loads((reference / "storyeval/results/pika1.5_gpt4o_final.json").read_text("utf-8"))
    suite = json.loads((reference / "storyeval/prompts/all_prompts.json").read_text("utf-8"))
    units = sorted(name for name in suite if name in published)[:3]
    Path("suite.json").write_text(json.dumps({name: suite[name] for name in units}, indent=4))
    Path("pika1.5_gpt4o_final.json").write_text(json.dumps({name: published[name] for name in units}))
    shutil.copytree(reference / "official/storyeval", "clone")
    subprocess.run(["git", "init", "-q", "clone"], check=True)
    Path("videos/pika1.5").mkdir(parents=True)
    for name in units:
        write_video(Path("videos/pika1.5") / name, 20, size=(64, 48))

    told = run("prompts", "fetch", "storyeval", "--from", "clone")
    assert "4 texts of commit d095e63 (commit not checked" in told and "Apache-2.0" in told
    with ModelServer(answer) as server:
        Path("fabula.toml").write_text(f'[models."openai:gpt-4o"]\nbase_url = "{server.openai_url}"\n')
        videos = ("--suite", "suite.json", "--outputs", "videos/pika1.5", "--judge", "openai:gpt-4o")
        run("evaluate", "events", *videos, "--protocol", PRESET, "--workers", 0, "--out", "ours")
        # The drawn videos look alike: their frames are described once for each vote.
        assert {one.status for one in server.log} == {200} and len(server.log) == 3 + 3 * 3
    scores = json.loads(run("score", "ours", "--json"))
    (panel,) = scores["panels"]
    rate = sum(1 / len(suite[name]["event_list"]) for name in units) / 3
    assert panel["alternatives"]["unanimous"]["value"] == pytest.approx(rate)

    results = ("pika1.5_gpt4o_final.json", "--suite", "suite.json", "--judge", "openai:gpt-4o")
    run("import", "storyeval-results", *results, "--out", "theirs")
    refused = run("compare", "ours", "theirs", code=1)
    parts = sorted(set(re.findall(r"--allow (\w+)", refused)))
    assert "prompts" in parts, "the words of a published file are not known"
    allowed = [word for part in parts for word in ("--allow", part)]
    compared = json.loads(run("compare", "ours", "theirs", *allowed, "--json"))
    (pair,) = compared["comparisons"]
    assert (pair["first"], pair["second"], pair["prompts"]) == ("pika1.5", "pika1.5", 3)
    assert {one["path"].partition(".")[0] for one in compared["differences"]} == set(parts)


# The ledger of published numbers is what its program makes of the reference.

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.slow
def test_ledger_when_made_anew_is_the_committed_page(reference, monkeypatch):
    spec = importlib.util.spec_from_file_location("published", ROOT / "benchmarks" / "published.py")
    assert spec is not None and spec.loader is not None
    program = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "published", program)
    spec.loader.exec_module(program)
    found = program.sections(reference)
    for name, made in (
        ("published.md", program.page(found)),
        (program.CELLS, program.compared(found)),
    ):
        assert made == (ROOT / "docs" / name).read_text("utf-8"), (
            f"{name} is not what is made: python benchmarks/published.py --out docs/published.md"
        )
