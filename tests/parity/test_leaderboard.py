"""StoryEval's published results as submissions that are scored here; printed tables."""

import csv
from pathlib import Path

import pytest

from fabula.evaluation.archive.archive import write_archive
from fabula.evaluation.events.published import Results, import_results
from fabula.leaderboard.board import published_table
from fabula.leaderboard.checking import check
from fabula.leaderboard.making import BoardOptions, init
from fabula.leaderboard.standing import standings
from fabula.leaderboard.submission import SubmitOptions, submit
from fabula.releases.events.suites import SUITE, load_suite

pytestmark = pytest.mark.parity
PRINTED = {"pika1.5": "Pika-1.5", "easyanimate": "EasyAnimate v4", "modelscope": "ModelScope"}


def test_storyeval_when_its_results_are_submitted_has_the_printed_rates_and_order(
    reference: Path, tmp_path: Path
) -> None:
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
def test_published_when_compared_has_every_printed_cell(
    reference: Path, key: str, file: str, scale: int
) -> None:
    table = published_table(key)
    with (reference / "tables" / f"{file}.tsv").open(encoding="utf-8") as handle:
        lines = list(csv.DictReader(handle, delimiter="\t"))
    assert len(lines) == len(table.rows)
    for line, cells in zip(lines, table.rows.values(), strict=True):
        for measure, cell in zip(table.measures, cells, strict=True):
            assert isinstance(cell, float)
            assert cell * scale == pytest.approx(float(line[measure.name])), (line, measure.name)
