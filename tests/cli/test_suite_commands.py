"""A suite from its release to a study of people: the commands about videos, without a process each."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from fabula.cli.main import app
from fabula.testing.drawn import write_video
from fabula.testing.drawn_shots import draw_shot_outputs, draw_shot_set


def run(*words: object) -> tuple[int, str]:
    done = CliRunner().invoke(app, [str(word) for word in words])
    return done.exit_code, done.output


@pytest.fixture
def made(tmp_path: Path) -> tuple[Path, list[Path]]:
    """A packed suite of three prompts, and the videos of three methods."""
    seeds = tmp_path / "seeds.jsonl"
    rows = ["A dog runs, and then sleeps.", "A lamp glows, and then fades.", "A man jumps, and then sits."]
    seeds.write_text("".join(json.dumps({"prompt": row}) + "\n" for row in rows))
    assert run("build", "events", seeds, "--out", tmp_path / "run", "--workers", 0)[0] == 0
    named = ("--version", "0.1.0", "--license", "CC0-1.0", "--language", "en")
    code, output = run("release", "pack", tmp_path / "run", *named, "--out", tmp_path / "suite")
    assert (code, "3 prompts, 6 events" in output) == (0, True), output
    methods = [tmp_path / "videos" / name for name in "xyz"]
    for folder in methods:
        folder.mkdir(parents=True)
        for name in json.loads((tmp_path / "suite" / "all_prompts.json").read_text()):
            write_video(folder / name, 8)
    return tmp_path / "suite", methods


@pytest.mark.slow
def test_videos_when_the_release_changed_are_not_judged(made: tuple[Path, list[Path]]) -> None:
    release, (first, *_) = made
    videos = ("--release", release, "--outputs", first)
    asked = ("evaluate", "events", *videos, "--judge", "openai:x", "--dry-run")
    code, output = run(*asked, "--json")
    assert (code, json.loads(output)["budget"]["calls"]) == (0, 18)
    suite = release / "all_prompts.json"
    suite.write_text(suite.read_text().replace("sleeps", "snores"))
    code, output = run(*asked)
    assert (code, "all_prompts.json" in output) == (1, True)
    document = json.loads((release / "release.json").read_text())
    (release / "release.json").write_text(json.dumps({**document, "files": {}}))
    code, output = run(*asked)
    assert (code, "does not list all_prompts.json" in output) == (1, True)


def test_study_when_made_as_storyeval_draws_two_methods_of_every_prompt(
    made: tuple[Path, list[Path]], tmp_path: Path
) -> None:
    release, methods = made
    outputs: list[Any] = [word for folder in methods for word in ("--outputs", folder)]
    preset = ("review", "init", tmp_path / "served", "--preset", "storyeval", "--from", release)
    code, output = run(*preset, *outputs[:2], "--dry-run")  # two are to be drawn, and there is one
    assert (code, output.count("short: ")) == (0, 1)
    assert run(*preset, *outputs)[0] == 0
    kept = [json.loads(line) for line in (tmp_path / "served" / "key.jsonl").read_text().splitlines()]
    shown = [each["about"] for each in kept]
    assert len(kept) == 6
    assert all(shown.count(video) == 2 for video in shown)
    assert len({(each["about"], *each["methods"]) for each in kept}) == 6
    for video in methods[0].iterdir():
        video.unlink()
    code, output = run("review", "init", tmp_path / "again", *preset[3:], *outputs)
    assert (code, "the video of a drawn prompt is missing" in output) == (1, True)


def test_a_suite_when_it_breaks_conditions_is_kept_whole_where_asked_and_validate_tells(
    tmp_path: Path,
) -> None:
    entry = {"prompt": "A  dog runs.", "event_list": ["A dog runs", "And then it grins"], "class": ["animal"]}
    given = {"B.mp4": entry, "A.mp4": {**entry, "prompt": "A cup falls.", "event_list": ["It falls"]}}
    suite = tmp_path / "suite.json"
    suite.write_text(json.dumps(given, indent=4) + "\n")
    built = ("build", "events", suite, "--out", tmp_path / "run", "--workers", 0)
    code, output = run(*built)
    assert code != 0 and "event_count" in output and "facial_expression" in output
    assert run(*built, "--keep-all")[0] == 0
    assert (tmp_path / "run" / "all_prompts.json").read_bytes() == suite.read_bytes()
    for place in (suite, tmp_path / "run"):
        code, output = run("validate", place, "--json")
        document = json.loads(output)
        assert (code, document["kind"], document["counts"]) == (
            1, "events", {"event-count": 1, "facial-expression": 1},
        )  # fmt: skip
        assert all(found["message"] and found["cure"] for found in document["issues"])
    suite.write_text(json.dumps({"B.mp4": entry}))
    assert (run("validate", suite)[0], run("validate", suite, "--strict")[0]) == (0, 1)


# Sets of shot scripts and generated shots, as a user types it.


def test_shots_when_imported_copied_checked_and_exported(fabula_command: Callable, tmp_path: Path) -> None:
    source = draw_shot_set(tmp_path / "data", 1)
    done = fabula_command("import", "vistory", source, "--out", tmp_path / "run")
    assert done.returncode == 0, done.stderr
    assert "1 story, 5 shots, 3 characters, 6 references" in done.stdout
    copied = fabula_command("baseline", "copy-paste", "--release", tmp_path / "run", "--out", tmp_path / "cp")
    assert copied.returncode == 0, copied.stderr
    assert "5 pictures" in copied.stdout and copied.stderr == ""
    for image in (source / "ViStory/01/image/The Fox").iterdir():
        image.unlink()
    bare = fabula_command("baseline", "copy-paste", "--release", source, "--out", tmp_path / "bare")
    assert "no reference image and are left out: 1" in bare.stderr
    checked = fabula_command("outputs", "check", tmp_path / "cp", "--release", tmp_path / "run", "--json")
    (told,) = json.loads(checked.stdout)["outputs"]
    assert told["shots_valid"] == told["shots_requested"] == 5
    out = fabula_command("export", "vistory", tmp_path / "run", "--out", tmp_path / "official", "--json")
    assert json.loads(out.stdout)["shots"] == 5
    asked = fabula_command("export", "shots", tmp_path / "run", "--part", "static", "--out", tmp_path / "ask")
    assert asked.returncode == 0, asked.stderr
    assert "5 requests, 3 images" in asked.stdout


def test_shots_when_something_is_wrong_exit_with_1_and_say_what(
    fabula_command: Callable, tmp_path: Path
) -> None:
    source = draw_shot_set(tmp_path / "data", 1)
    (source / "ViStory/01/image/Mira/00.png").write_text("no picture")
    done = fabula_command("import", "vistory", source, "--out", tmp_path / "run")
    assert done.returncode == 1
    assert "[unreadable-picture]" in done.stdout
    outputs = draw_shot_outputs(tmp_path / "model-x", 1)
    (outputs / "01/shots/shot_02.png").unlink()
    checked = fabula_command("outputs", "check", outputs, "--release", tmp_path / "run")
    assert checked.returncode == 1
    assert "warning: model-x/01 [missing-shot]" in checked.stdout
    refused = fabula_command("outputs", "check", outputs, "--release", tmp_path / "run", "--ocr")
    assert refused.returncode == 2
