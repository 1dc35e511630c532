"""A maintainer of StoryEval switches: from a clone to a comparison with the numbers that were published."""

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from typer.testing import CliRunner

from fabula.cli.main import app
from fabula.testing.drawn import write_video
from fabula.testing.model_server import Asked, ModelServer

pytestmark = pytest.mark.parity
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


def test_walk_when_taken_from_the_clone_ends_in_a_comparison_with_the_published_file(
    reference: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("av")
    monkeypatch.setattr("fabula.prompts.sets.cache_folder", lambda: tmp_path / "cache")
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
