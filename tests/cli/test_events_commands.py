"""Importing published results and correlating tables through the real command line."""

import json
from pathlib import Path

import pytest

UNIT = "A_cup_falls_and_then_breaks.mp4"
PROMPT = {
    "prompt": "A cup falls, and then breaks.",
    "event_list": ["A cup falls", "And then the cup breaks"],
    "class": ["object", "2_events"],
}


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    """A suite of one prompt and a result file whose second reply says otherwise than its published list."""
    suite, results = tmp_path / "suite.json", tmp_path / "model_judge_final.json"
    suite.write_text(json.dumps({UNIT: PROMPT}))
    reply = {"completion_list": [1, 0], "completion_score": 0.5, "description": "A cup."}
    votes = {
        "output0": {**reply, "scoring_output": "[COMPLETE_LIST]: 1, 0"},
        "output1": {**reply, "scoring_output": "[COMPLETE_LIST]: 1, 1"},
    }
    results.write_text(json.dumps({UNIT: {**PROMPT, **votes}}))
    return suite, results


def test_import_when_a_reply_reads_otherwise_says_so_and_writes_an_archive(
    fabula_command, files: tuple[Path, Path], tmp_path: Path
) -> None:
    suite, results = files
    out = tmp_path / "out"
    done = fabula_command("import", "storyeval-results", results, "--suite", suite, "--out", out)
    assert done.returncode == 0, done.stderr
    assert "2 replies, 2 with a completion list" in done.stdout
    assert "published [1, 0], read [1, 1]" in done.stderr
    assert sorted(path.name for path in out.iterdir()) == [
        "all_prompts.json", "evaluation.json", "judgements.jsonl",
    ]  # fmt: skip
    again = fabula_command("import", "storyeval-results", results, "--suite", suite, "--out", out)
    assert again.returncode == 2
    assert "a new or empty folder" in again.stderr


def test_correlate_when_a_name_is_spelt_otherwise_takes_the_alias(fabula_command, tmp_path: Path) -> None:
    first, second = tmp_path / "a.tsv", tmp_path / "b.tsv"
    first.write_text("model\tpa\nx\t1\ny\t2\nz\t4\n")
    second.write_text("model\tlite\nx\t1\ny\t3\nzz\t9\n")
    options = ("--on", "model", "--columns", "pa:lite", "--json")
    plain = json.loads(fabula_command("correlate", first, second, *options).stdout)
    assert (plain["shared"], plain["only_second"]) == (2, [["zz"]])
    aliased = json.loads(fabula_command("correlate", first, second, *options, "--alias", "zz=z").stdout)
    assert aliased["columns"][0]["correlations"]["spearman"]["value"] == pytest.approx(1)
    wrong = fabula_command("correlate", first, second, *options, "--alias", "zz")
    assert wrong.returncode == 2
