"""The walk of README, doctor, findings that repeat, completion, run check, examples, and our own bugs."""

import json
import logging
import shlex
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
import typer

import fabula
from fabula.cli.checkup import _cv2, _required, checkup
from fabula.cli.common import PLACES, VALUES, finding_lines, guarded
from fabula.cli.main import app
from fabula.errors import InputError, UserError
from fabula.evaluation.metrics import metric
from fabula.prompts.loader import prompt_ids
from fabula.schemas.values import Issue

PYPROJECT = Path(fabula.__file__).parent / "pyproject.toml"
README = PYPROJECT.with_name("README.md")


@pytest.mark.skipif(not README.is_file(), reason="an installed wheel has no README.md")
def test_readme_walk_when_followed_ends_in_a_sound_release(fabula_command, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    walk = README.read_text("utf-8").partition("fabula init ../mine && cd ../mine")[2].partition("```")[0]
    commands = [shlex.split(line, comments=True)[1:] for line in walk.splitlines()[1:]]
    assert [command[0] for command in commands] == ["build", "run", "validate", "release", "release"]
    assert "--allow-drafts" in commands[3]
    assert fabula_command("init", "mine").returncode == 0
    monkeypatch.chdir(tmp_path / "mine")
    for command in commands:
        done = fabula_command(*command)
        assert done.returncode == 0, done.stderr + done.stdout
    loaded = fabula.load("dist/mine-0.1.0")
    assert [scene.scene_index for record in loaded.records for scene in record.scenes] == [1, 2, 3, 4, 5]


@pytest.mark.slow
def test_command_when_quiet_tells_no_progress_and_when_verbose_also_what_is_logged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    story = {"title": "A fox", "language": "en", "text": "A fox ran. It fell. It rose. It ate. It slept."}
    source = {"source_collection": "ours", "rights_status": "public_domain_or_rights_compatible"}
    Path("stories.jsonl").write_text(json.dumps(story | source))
    build = ["build", "katha", "stories.jsonl", "--planner", "rules", "--out"]
    told = {}
    for options in ([], ["-q"], ["-v"]):
        with pytest.raises(SystemExit):
            app([*options, *build, f"run{len(told)}"])
        logging.getLogger("fabula.models.client").info("a retry")
        told[tuple(options)] = capsys.readouterr().err
    assert "draft_scenes" in told[()] and "a retry" not in told[()]
    assert told[("-q",)] == ""
    assert "draft_scenes" in told[("-v",)] and "fabula.models.client: a retry" in told[("-v",)]


@pytest.mark.parametrize(
    ("versions", "status"),
    [
        ({}, "absent"),
        ({"full": "5.0"}, "ok"),
        ({"full": "5.0", "headless": "5.0"}, "ok"),
        ({"full": "5.0", "headless": "4.13"}, "warning"),
    ],
)
def test_doctor_when_two_opencvs_are_there_wants_one_version_of_them(versions, status, monkeypatch):
    names = {"opencv-python": "full", "opencv-python-headless": "headless"}
    monkeypatch.setattr("fabula.cli.checkup._version", lambda name: versions.get(names.get(name, "")))
    finding = _cv2()
    assert (finding.name, finding.status) == ("cv2", status)
    if status == "warning":
        assert "opencv-python 5.0 and opencv-python-headless 4.13" in finding.detail
        assert "pip install --force-reinstall opencv-python opencv-python-headless" in finding.fix


def test_doctor_when_a_key_is_set_never_shows_it(fabula_command) -> None:
    done = fabula_command("doctor", env={"OPENAI_API_KEY": "sk-planted-secret"})
    assert done.returncode == 0, done.stdout
    assert "OPENAI_API_KEY" in done.stdout
    assert "planted" not in done.stdout + done.stderr
    assert "key openai" in done.stdout and "in the environment" in done.stdout
    findings = json.loads(fabula_command("doctor", "--json").stdout)
    assert {"python", "cv2", "disk", "cache", "pydantic"} <= {finding["name"] for finding in findings}
    servers = {each["name"]: each["detail"] for each in findings if each["name"].startswith("server ")}
    assert servers.keys() == {"server vllm", "server sglang", "server llamacpp"}
    assert "python3 -m venv" in servers["server vllm"] and "bin/pip install vllm" in servers["server vllm"]


def test_doctor_when_the_key_file_cannot_be_read_says_so(tmp_path, monkeypatch):
    (tmp_path / ".env").write_bytes(b"\xff\xfe")
    monkeypatch.chdir(tmp_path)
    assert {f.status for f in checkup(tmp_path) if f.name.startswith("key ")} == {"warning"}


def test_guard_when_command_has_a_bug_keeps_the_traceback(capsys: pytest.CaptureFixture[str]) -> None:
    @guarded
    def buggy() -> int:
        raise ZeroDivisionError("ours")

    with pytest.raises(typer.Exit) as stop:
        buggy()
    assert stop.value.exit_code == 70
    assert "Traceback" in capsys.readouterr().err


# Findings that repeat are told once; nothing is lost: the count is there, and --all and --json have them.


def issue(number: int, message: str = "expected a word, found 'x'", code: str = "unlisted-value") -> Issue:
    return Issue(f"records.jsonl:{number} s{number}", "$.moral_label", code, message, "use a listed value")


def test_lines_when_a_finding_repeats_are_its_count_and_first_places() -> None:
    lines = list(finding_lines([issue(n) for n in range(1, 121)], everything=False))
    assert lines[0] == "error: [unlisted-value] expected a word, found 'x', in 120 places:"
    assert lines[1] == "  records.jsonl:1 s1 $.moral_label"
    assert lines[1 + PLACES :] == [
        f"  ... and {120 - PLACES} more places; --all prints them", "  fix: use a listed value"
    ]  # fmt: skip


def test_lines_when_one_rule_finds_many_values_name_the_first_and_count_the_rest() -> None:
    found = [issue(n, f"found {n}") for n in range(50)] + [issue(1, "other", "scene-order")]
    lines = list(finding_lines(found, everything=False))
    assert sum(line.startswith("error: records") for line in lines) == VALUES + 1
    assert sum(line == "  fix: use a listed value" for line in lines) == 2  # each rule says once what to do
    assert lines[-1] == f"... and {50 - VALUES} more of [unlisted-value]; --all prints them"


def test_input_error_when_problems_differ_in_their_place_only_tells_them_once() -> None:
    problems = [UserError(f"a.jsonl:{n}", expected="a word", found="'x'", fix="use it") for n in range(200)]
    other = UserError("a.jsonl:7", expected="a title", found="none", fix="write one")
    assert str(InputError([*problems, other])).splitlines() == [
        "a.jsonl:0: expected a word, found 'x'", "  fix: use it",
        f"  the same at {', '.join(f'a.jsonl:{n}' for n in range(1, 21))} and 179 more places",
        "a.jsonl:7: expected a title, found none", "  fix: write one",
    ]  # fmt: skip
    assert len(InputError([*problems, other]).problems) == 201


# What the shell is offered, asked as a shell asks.

Offered = Callable[..., list[str]]


@pytest.fixture
def offered(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Offered:
    def ask(*words: str) -> list[str]:
        monkeypatch.setenv("_FABULA_COMPLETE", "complete_bash")
        monkeypatch.setenv("COMP_WORDS", " ".join(("fabula", *words)))
        monkeypatch.setenv("COMP_CWORD", str(len(words)))
        with pytest.raises(SystemExit) as stop:
            app(prog_name="fabula")
        said = capsys.readouterr()
        assert (stop.value.code, said.err) == (0, "")
        return said.out.split()

    return ask


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "names"),
    [
        (("b",), ["build", "benchmark", "baseline"]),
        (("run", "sh"), ["show"]),
        (("build", "katha", "stories.jsonl", "--max"), ["--max-cost"]),
        (("build", "katha", "stories.jsonl", "--set", "draft_scenes.sc"), ["draft_scenes.scenes="]),
        (("prompts", "show", "events/"), [name for name in prompt_ids() if name.startswith("events/")]),
        (("evaluate", "images", "--metrics", "c"), [name for name in metric.names() if name[0] == "c"]),
        (("score", "runs/x", "--format", "c"), ["csv"]),
        (("run", "show", "/nowhere", "k"), []),
    ],
)  # fmt: skip
def test_shell_when_it_asks_is_offered_what_is_declared(words, names, offered):
    assert offered(*words) == names


@pytest.mark.slow
def test_shell_when_a_folder_is_named_is_offered_the_ids_in_it(tmp_path: Path, offered: Offered) -> None:
    (tmp_path / "records.jsonl").write_text('{"story_id": "kb_1"}\n{"story_id": "kb_2"}\n')
    assert offered("run", "show", str(tmp_path), "kb") == ["kb_1", "kb_2"]
    (tmp_path / "records.jsonl").write_bytes(b"\xff\x00 no JSON")
    assert offered("run", "show", str(tmp_path), "kb") == []


# fabula run check: a sound journal, a damaged one, and one that was salvaged.


def test_run_check_when_a_result_is_damaged_exits_with_1_and_salvages(fabula_command, sample_run, tmp_path):
    run = Path(shutil.copytree(sample_run, tmp_path / "run"))
    done = fabula_command("run", "check", run)
    assert (done.returncode, done.stderr) == (0, "")
    assert "the journal is sound" in done.stdout
    with closing(sqlite3.connect(run / "journal.sqlite")) as connection, connection:
        connection.execute("UPDATE results SET blob = x'00' WHERE stage = 'draft_scenes'")
    done = fabula_command("run", "check", run, "--json")
    assert done.returncode == 1
    assert json.loads(done.stdout)["findings"][0]["count"] == 24
    done = fabula_command("run", "show", run, "kb25k_0001")
    assert done.returncode == 2
    assert "fabula run check" in done.stderr
    done = fabula_command("run", "check", run, "--salvage")
    assert (done.returncode, done.stderr) == (0, "")
    assert "journal.sqlite.damaged" in done.stdout
    assert fabula_command("run", "check", run).returncode == 0
    before = (run / "records.jsonl").read_bytes()
    assert fabula_command("run", "retry", run).returncode == 0
    assert (run / "records.jsonl").read_bytes() == before


# The examples run as they stand.

EXAMPLES = sorted((Path(fabula.__file__).parent / "examples").glob("*.py"))


@pytest.mark.slow
@pytest.mark.skipif(not EXAMPLES, reason="the suite runs against an installed wheel, which has no examples")
def test_example_when_run_without_arguments_prints_scenes() -> None:
    for example in EXAMPLES:
        done = subprocess.run([sys.executable, example], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        assert "scene 5:" in done.stdout


# -- fabula prompts: what is there, one file as it is, and the messages made from it


def test_list_when_asked_shows_every_prompt_with_its_label(fabula_command) -> None:
    rows = json.loads(fabula_command("prompts", "list", "--json").stdout)
    lines = fabula_command("prompts", "list").stdout.splitlines()
    assert len(rows) == len(lines) > 0
    for row, line in zip(rows, lines, strict=True):
        assert line.startswith(f"{row['id']}@{row['version']}#{row['sha256'][:12]}")
        assert line.endswith(row["purpose"])


def test_render_when_given_a_run_asks_about_its_drafts(fabula_command, sample_run: Path) -> None:
    done = fabula_command(
        "prompts", "render", "katha/answer_questions", "--story", "kb25k_0001", "--run", sample_run, "--json"
    )
    assert done.returncode == 0, done.stderr
    (shown,) = json.loads(done.stdout)
    lines = (sample_run / "records.jsonl").read_text("utf-8").splitlines()
    payload = next(json.loads(line)["payload"] for line in lines if '"kb25k_0001"' in line)
    question = payload["record"]["questions"][0]
    asked = shown["request"]["messages"][-1]["parts"][0]["text"]
    assert question["question"] in asked
    assert shown["prompt"].startswith("katha/answer_questions@")
    assert shown["request"]["schema"]["name"] == "katha_answer_questions"


def test_extra_when_made_of_others_needs_what_they_need() -> None:
    whole, core = set(_required("all")), set(_required(""))
    assert {*_required("review"), *_required("entities")} <= whole
    assert "pydantic" in core and not {"starlette", "av"} & core
