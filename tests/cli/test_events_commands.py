"""Suites, videos, published results and tables through the real command line."""

import json
from pathlib import Path

import pytest

from fabula.testing.drawn import write_video
from fabula.testing.event_model import EventModel
from fabula.testing.model_server import ModelServer

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
    assert "the folder is not empty" in again.stderr


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


def test_build_and_evaluate_when_walked_through_end_in_a_graded_suite(
    fabula_command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seeds, run = tmp_path / "seeds.jsonl", tmp_path / "suite"
    rows = ["A dog runs, and then sleeps.", "A lamp glows, and then fades.", "A man jumps, and then sits."]
    seeds.write_text("".join(json.dumps({"prompt": row}) + "\n" for row in rows))
    built = fabula_command("build", "events", seeds, "--out", run)
    assert built.returncode == 0, built.stderr
    checked = fabula_command("validate", run)
    assert (checked.returncode, checked.stdout) == (0, "checked 3 prompts, 6 events: no findings\n")
    suite, videos = run / "all_prompts.json", tmp_path / "videos" / "model-x"
    videos.mkdir(parents=True)
    for number, name in enumerate(sorted(json.loads(suite.read_text()))):
        write_video(videos / name, 20, size=(48 + 16 * number, 48))
    monkeypatch.setenv("OPENAI_API_KEY", "test-key-0123456789")
    with ModelServer(EventModel({rows[0]: (1, 0), rows[1]: (0, 0)})) as server:
        config = tmp_path / "fabula.toml"
        config.write_text(f'[models."openai:tested"]\nbase_url = "{server.openai_url}"\n')
        asked = (
            "evaluate", "events", "--suite", suite, "--outputs", videos, "--judge", "openai:tested",
            "--config", config,
        )  # fmt: skip
        dry = json.loads(fabula_command(*asked, "--dry-run", "--json").stdout)
        assert dry["budget"] == {"videos": 3, "present": 3, "judges": 1, "calls": 18}
        assert sum(stage["calls"] for stage in dry["plan"]["stages"]) == 18
        assert len(server.log) == 0
        judged = fabula_command(*asked, "--out", tmp_path / "eval")
        assert judged.returncode == 0, judged.stderr
        assert len(server.log) == 18
    assert "model-x: 3 of 3 videos judged, 15 frames" in judged.stdout
    scores = json.loads(fabula_command("score", tmp_path / "eval", "--json").stdout)
    assert scores["panels"][0]["classes"]["average"]["value"] == pytest.approx(0.5)
    status = fabula_command("run", "status", tmp_path / "eval")
    assert status.returncode == 0, status.stderr
    numbers = ("--set", "grade_prompts.easy=1", "--set", "grade_prompts.hard=1")
    graded = fabula_command("build", "events", seeds, "--results", tmp_path / "eval", *numbers, "--out", run)
    assert graded.returncode == 0, graded.stderr
    labels = [entry["class"] for entry in json.loads(suite.read_text()).values()]
    assert [" ".join(one) for one in labels] == [
        "animal medium 2_events", "object hard 2_events", "human easy 2_events",
    ]  # fmt: skip


def test_dry_run_of_a_suite_when_no_option_samples_names_none(fabula_command, tmp_path: Path) -> None:
    (tmp_path / "seeds.jsonl").write_text(json.dumps({"prompt": PROMPT["prompt"]}))
    asked = ("build", "events", tmp_path / "seeds.jsonl", "--model", "http://127.0.0.1:9/v1#any", "--dry-run")
    done = fabula_command(*asked)
    assert done.returncode == 0, done.stderr
    assert "list_events" in done.stdout and "--sample" not in done.stdout
    assert json.loads(fabula_command(*asked, "--json").stdout)["calls"] == 1
