"""Commands about stories, suites, shots and outputs, on files that other commands, or drawings, made."""

import json
import re
import shlex
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import fabula
from fabula.kinds.verbs import pack
from fabula.releases.options import PackOptions
from fabula.testing.drawn import write_outputs, write_video
from fabula.testing.drawn_shots import draw_shot_set
from fabula.testing.katha_folders import write_run
from fabula.testing.katha_samples import sample_bundles

from .conftest import invoke

# ``fabula extend`` and ``fabula edit --withdraw`` through the real command.

SAMPLES = Path(fabula.__file__).parent / "builders" / "katha" / "samples"


def test_extend_when_the_sources_of_the_run_moved_takes_their_new_place(
    fabula_command, write_stories, tmp_path: Path
) -> None:
    stories, later = write_stories({}), tmp_path / "new.jsonl"
    later.write_text((SAMPLES / "later_stories.jsonl").read_text("utf-8").splitlines()[0] + "\n", "utf-8")
    run, moved = tmp_path / "run", tmp_path / "moved"
    assert fabula_command("build", "katha", stories, "--out", run, "--workers", 0).returncode == 0
    before = (run / "run.json").read_bytes()
    moved.mkdir()
    stories.rename(moved / "renamed.jsonl")
    refused = fabula_command("extend", run, later, "--workers", 0)
    assert refused.returncode == 1 and "say where to with --sources PLACE" in refused.stderr
    assert (run / "run.json").read_bytes() == before
    done = fabula_command("extend", run, later, "--workers", 0, "--sources", moved / "renamed.jsonl")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("1 story added to 1")


# The corrections that the documentation shows, run as they are printed, end in a release.

ROOT = Path(fabula.__file__).parent
DOCUMENTED = ROOT / "builders" / "katha" / "samples"
PAGE = ROOT / "docs" / "versions.md"


@pytest.mark.skipif(not PAGE.is_file(), reason="the suite runs against an installed wheel, which has no docs")
def test_versions_page_when_its_commands_are_run_as_printed_packs_the_next_version(
    fabula_command, sample_run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(sample_run, tmp_path / "runs/mine")
    shutil.copy(DOCUMENTED / "later_stories.jsonl", tmp_path / "new_stories.jsonl")
    packed = fabula_command(
        "release", "pack", sample_run, "--version", "0.1.0", "--out", tmp_path / "dist/mine-0.1.0",
        "--name", "mine", "--title", "Mine", "--creator", "Ana", "--license", "CC-BY-4.0",
    )  # fmt: skip
    assert packed.returncode == 0, packed.stderr
    block = re.search(r"```\n(fabula extend.*?)```", PAGE.read_text("utf-8"), re.DOTALL)
    assert block is not None
    commands = [shlex.split(line, comments=True)[1:] for line in block[1].splitlines()]
    assert [command[0] for command in commands] == ["extend", "edit", "edit", "release"]
    monkeypatch.chdir(tmp_path)
    for command in commands:
        done = fabula_command(*command)
        assert done.returncode == 0, (command, done.stderr + done.stdout)
    released = json.loads((tmp_path / "dist/mine-0.2.0/release.json").read_text("utf-8"))
    assert released["withdrawn"]
    assert fabula_command("release", "verify", tmp_path / "dist/mine-0.2.0").returncode == 0


def test_edit_when_a_gold_answer_changes_says_what_it_noted_and_what_breaks(
    fabula_command, sample_run: Path, tmp_path: Path
) -> None:
    run = Path(shutil.copytree(sample_run, tmp_path / "run"))
    signed = ("--who", "ana", "--why", "the text says so")
    done = fabula_command(
        "edit", run, "kb25k_0007", "$.questions[0].gold_answer", "--new", '"a net"', *signed
    )
    assert done.returncode == 0, done.stderr
    assert "also saved, because it follows from it: $.questions[0].accepted_answers = [" in done.stdout
    assert "is still accepted" in done.stdout
    broken = fabula_command(
        "edit", run, "kb25k_0007", "$.questions[0].gold_answer", "--new", '"yes"', *signed
    )
    assert broken.returncode == 0
    assert "error: kb25k_0007 $.questions[0].accepted_answers[0] [answer-empty]" in broken.stdout
    assert "correct it further" in broken.stdout
    as_json = fabula_command("edit", run, "kb25k_0007", "$.title", "--new", '"Once"', *signed, "--json")
    report = json.loads(as_json.stdout)
    assert (report["path"], report["also"], report["notes"]) == ("$.title", [], [])
    assert [issue["code"] for issue in report["issues"]] == ["answer-empty"]


# -- A suite from its release to a study of people: the commands about videos, without a process each

pytest.importorskip("av")


def run_app(*words: object) -> tuple[int, str]:
    done = invoke(*words)
    return done.exit_code, done.output


@pytest.fixture
def made(tmp_path: Path) -> tuple[Path, list[Path]]:
    """A packed suite of three prompts, and the videos of three methods."""
    seeds = tmp_path / "seeds.jsonl"
    rows = ["A dog runs, and then sleeps.", "A lamp glows, and then fades.", "A man jumps, and then sits."]
    seeds.write_text("".join(json.dumps({"prompt": row}) + "\n" for row in rows))
    assert run_app("build", "events", seeds, "--out", tmp_path / "run", "--workers", 0)[0] == 0
    named = ("--version", "0.1.0", "--license", "CC0-1.0", "--language", "en")
    code, output = run_app("release", "pack", tmp_path / "run", *named, "--out", tmp_path / "suite")
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
    code, output = run_app(*asked, "--json")
    assert (code, json.loads(output)["budget"]["calls"]) == (0, 18)
    suite = release / "all_prompts.json"
    suite.write_text(suite.read_text().replace("sleeps", "snores"))
    code, output = run_app(*asked)
    assert (code, "all_prompts.json" in output) == (1, True)
    document = json.loads((release / "release.json").read_text())
    (release / "release.json").write_text(json.dumps({**document, "files": {}}))
    code, output = run_app(*asked)
    assert (code, "does not list all_prompts.json" in output) == (1, True)


def test_study_when_made_as_storyeval_draws_two_methods_of_every_prompt(made, tmp_path):
    release, methods = made
    outputs: list[Any] = [word for folder in methods for word in ("--outputs", folder)]
    preset = ("review", "init", tmp_path / "served", "--preset", "storyeval", "--from", release)
    code, output = run_app(*preset, *outputs[:2], "--dry-run")  # two are to be drawn, and there is one
    assert (code, output.count("short: ")) == (0, 1)
    assert run_app(*preset, *outputs)[0] == 0
    kept = [json.loads(line) for line in (tmp_path / "served" / "key.jsonl").read_text().splitlines()]
    shown = [each["about"] for each in kept]
    assert len(kept) == 6
    assert all(shown.count(video) == 2 for video in shown)
    assert len({(each["about"], *each["methods"]) for each in kept}) == 6
    for video in methods[0].iterdir():
        video.unlink()
    code, output = run_app("review", "init", tmp_path / "again", *preset[3:], *outputs)
    assert (code, "the video of a drawn prompt is missing" in output) == (1, True)


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


# -- fabula outputs check, as a user types it


@pytest.fixture(scope="module")
def release(tmp_path_factory: pytest.TempPathFactory) -> Path:
    run = write_run(tmp_path_factory.mktemp("runs") / "run", sample_bundles(4))
    return pack(
        run, tmp_path_factory.mktemp("packed") / "fables-0.1.0", PackOptions("0.1.0", allow_drafts=True)
    ).folder


def ids(release: Path) -> list[str]:
    lines = (release / "annotations.jsonl").read_text("utf-8").splitlines()
    return [json.loads(line)["story_id"] for line in lines]


def test_outputs_check_when_sound_exits_with_0(fabula_command, release, tmp_path):
    folder = write_outputs(tmp_path / "model-x", ids(release))
    done = fabula_command("outputs", "check", folder, "--release", release)
    assert done.returncode == 0, done.stderr
    assert "generations invalid (0.0%)" in done.stdout


def test_outputs_check_when_broken_lists_it_and_exits_with_1(fabula_command, release, tmp_path):
    first, *others = ids(release)
    good, bad = write_outputs(tmp_path / "good", [first, *others]), write_outputs(tmp_path / "bad", others)
    done = fabula_command("outputs", "check", good, bad, "--release", release)
    assert done.returncode == 1
    assert f"error: bad/{first} [missing]" in done.stdout
    shown = fabula_command("outputs", "check", good, bad, "--release", release, "--json")
    assert shown.returncode == 1
    one, two = json.loads(shown.stdout)["outputs"]
    assert (one["ok"], two["ok"]) == (True, False)
    assert two["invalid"] == [{"codes": ["missing"], "seed": None, "story_id": first}]


def test_outputs_check_when_ocr_is_not_installed_names_the_extra(fabula_command, release, tmp_path):
    try:
        import rapidocr  # noqa: F401
    except ImportError:
        folder = write_outputs(tmp_path / "model-x", ids(release))
        done = fabula_command("outputs", "check", folder, "--release", release, "--ocr")
        assert done.returncode == 3
        assert "fabula[ocr]" in done.stderr
