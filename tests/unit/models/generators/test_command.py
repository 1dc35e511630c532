"""A program as a generator: what it is given, how it ends, and what stays out of messages."""

import asyncio
import os
import re
import signal
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from fabula.errors import ConfigError
from fabula.models.chat import CallFault, Image, Reply
from fabula.models.generators.command import CommandImages, CommandVideos
from fabula.models.generators.request import PictureRequest, read_generated
from fabula.models.keys import MARK, Redactor
from fabula.models.options import ModelOptions
from fabula.models.registry import check_adapter
from fabula.models.spec import parse_spec
from fabula.testing.model_server import plain_png

PNG = plain_png(8, 8, "made")
PROGRAM = """
import json, os, pathlib, sys, time
prompt, out, *rest = sys.argv[1:]
kept = {{"prompt": pathlib.Path(prompt).read_text("utf-8"), "rest": rest, "env": dict(os.environ)}}
for place in rest:
    if os.path.isdir(place):
        kept["references"] = [[p.name, p.read_bytes().hex()] for p in sorted(pathlib.Path(place).iterdir())]
    elif os.path.isfile(place):
        kept["negative"] = pathlib.Path(place).read_text("utf-8")
pathlib.Path({seen!r}).write_text(json.dumps(kept))
{body}
"""
WRITES = f"pathlib.Path(out).write_bytes(bytes.fromhex('{PNG.hex()}'))"


def is_gone(process: int) -> bool:
    """Whether a process has ended, or does so soon: what was killed ends when it next gets the processor."""
    stat = Path(f"/proc/{process}/stat")
    for _ in range(600):
        try:
            state = stat.read_text().rpartition(")")[2].split()[0]
        except (FileNotFoundError, ProcessLookupError):  # it can go between opening and reading
            return True
        if state == "Z":
            return True  # dead and not fetched by anybody
        time.sleep(0.1)
    return False


class Program:
    """A program in a file, and what it saw."""

    def __init__(self, folder: Path) -> None:
        self.file, self.seen_at = folder / "gen.py", folder / "seen.json"
        self.redactor = Redactor()
        self.options: dict[str, Any] = {}

    def run(self, body: str = WRITES, *words: Any, adapter: Any = CommandImages, **wanted: Any) -> Reply:
        self.file.write_text(PROGRAM.format(seen=str(self.seen_at), body=body), "utf-8")
        command = [sys.executable, str(self.file), "{prompt_file}", "{out}", *words]
        return self.ask({"command": command, **self.options.pop("extra", {})}, adapter, **wanted)

    def ask(self, extra: dict[str, Any], adapter: Any = CommandImages, **wanted: Any) -> Reply:
        makes = "video" if adapter is CommandVideos else "image"
        spec = parse_spec(f"{makes}:command:mine")
        options = ModelOptions(extra=extra, **self.options)
        picture = PictureRequest(spec.text, **{"prompt": "a fox — «狐»; $(rm)", **wanted})

        async def play() -> Reply:
            model = adapter(spec, options, self.redactor)
            try:
                return await model.complete(options.apply(picture.chat()))
            finally:
                await model.close()

        return asyncio.run(play())

    @property
    def seen(self) -> dict[str, Any]:
        import json

        kept: dict[str, Any] = json.loads(self.seen_at.read_text("utf-8"))
        return kept


@pytest.fixture
def program(tmp_path: Path) -> Program:
    return Program(tmp_path)


def test_program_when_it_writes_a_file_gives_it(program: Program) -> None:
    reply = program.run()
    made = read_generated(reply.text)
    assert (reply.outcome, reply.reported_model, made.file.data) == ("ok", "mine", PNG)
    assert made.file.media_type == "image/png"
    assert program.seen["prompt"] == "a fox — «狐»; $(rm)", "no shell reads it"


def test_program_when_all_is_chosen_gets_it_in_words_and_files(program: Program) -> None:
    words = [
        ["--seed", "{seed}"],
        ["--size={width}x{height}"],
        ["{steps}"],
        ["{negative_file}"],
        ["{references}"],
    ]
    references = (Image(PNG, "image/png"), Image(b"second", "image/jpeg"))
    made = read_generated(
        program.run(
            WRITES, *words, seed=7, width=320, height=200, steps=9, negative="cats", references=references
        ).text
    )
    seen = program.seen
    assert seen["rest"][:4] == ["--seed", "7", "--size=320x200", "9"]
    assert seen["negative"] == "cats"
    assert seen["references"] == [["001.png", PNG.hex()], ["002.jpg", b"second".hex()]]
    assert (made.seed, made.steps, made.unsupported) == (7, 9, ())


@pytest.mark.parametrize(
    ("body", "outcome", "detail"),
    [
        ("sys.stderr.write('not this'); sys.exit(10)", "refused", "not this"),
        ("sys.exit(11)", "blocked", None),
        ("pass", "empty", "the program wrote no file"),
        ("open(out, 'w')", "empty", "the program wrote no file"),
    ],
)
def test_outcome_when_there_is_no_picture_is_the_exit_status(program, body, outcome, detail):
    reply = program.run(body)
    assert (reply.outcome, reply.text, reply.detail) == (outcome, "", detail)


@pytest.mark.parametrize(
    ("body", "kind", "words"),
    [
        ("sys.exit(75)", "server_error", "asks to be started again"),
        ("sys.stderr.write('x' * 200_000 + ' no memory'); sys.exit(3)", "bad_request", "ended with 3: x"),
        ("os.kill(os.getpid(), 9)", "bad_request", "was killed by signal 9"),
        ("open(out, 'wb').truncate(40_000_000)", "too_long", "more than 33,554,432 bytes"),
    ],
)
def test_fault_when_the_program_fails_is_named_and_short(program, body, kind, words):
    with pytest.raises(CallFault) as caught:
        program.run(body)
    assert caught.value.kind == kind and words in caught.value.message
    assert len(caught.value.message) <= 500


def test_fault_when_the_program_takes_too_long_ends_it_and_what_it_started(program, tmp_path):
    program.options = {"call_timeout": 1.5}
    started = tmp_path / "started"
    child = f"import time, os; open({str(started)!r}, 'w').write(str(os.getpid())); time.sleep(60)"
    body = f"import subprocess; subprocess.run([sys.executable, '-c', {child!r}])"
    with pytest.raises(CallFault, match=r"more than 1.5 s") as caught:
        program.run(body)
    assert caught.value.kind == "timeout"
    if started.exists() and started.read_text():
        assert is_gone(int(started.read_text()))


@pytest.mark.parametrize(
    ("extra", "words"),
    [
        ({}, "extra.command: it is missing"),
        (
            {"command": ["no-such-program-here", "{prompt_file}", "{out}"]},
            "no-such-program-here cannot be started",
        ),
        (
            {"command": ["x", "{prompt_file}", "{out}", "{sead}"]},
            "there is no {sead}; placeholders are {prompt_file}",
        ),
        ({"command": ["x", "{prompt_file}"]}, "{out} is missing"),
        ({"command": ["x", "{prompt_file}", "{out}"], "cwd": "/"}, "extra.cwd: there is no such field"),
    ],
)
def test_settings_when_wrong_are_named_and_stop_the_run(program, extra, words):
    with pytest.raises(CallFault) as caught:
        program.ask(extra)
    assert caught.value.kind == "unsupported" and words in caught.value.message


STARTS = """
import subprocess
subprocess.Popen([sys.executable, "-c", "import os, time; {first}; "
    "open({left!r} + '.part', 'w').write(str(os.getpid())); os.rename({left!r} + '.part', {left!r}); "
    "time.sleep(60)"])
while not os.path.exists({left!r}): time.sleep(0.01)
"""


def test_program_when_what_it_started_keeps_the_pipe_is_not_waited_for(program, tmp_path, monkeypatch):
    monkeypatch.setattr("fabula.models.programs.PATIENCE", 0.1)
    left = tmp_path / "left"
    began = time.monotonic()
    assert program.run(STARTS.format(first="os.setsid()", left=str(left)) + WRITES).outcome == "ok"
    assert time.monotonic() - began < 30, "nobody waits for the end of its standard error"
    os.kill(int(left.read_text()), signal.SIGKILL)


def test_program_when_its_call_is_cancelled_is_ended(program: Program, tmp_path: Path) -> None:
    at_work = tmp_path / "at_work"
    program.options = {"call_timeout": 60.0}

    async def play(adapter: CommandImages, request: Any) -> None:
        call = asyncio.create_task(adapter.complete(request))
        while not (at_work.exists() and at_work.read_text()):
            await asyncio.sleep(0.01)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call

    program.file.write_text(PROGRAM.format(
        seen=str(program.seen_at), body=f"open({str(at_work)!r}, 'w').write(str(os.getpid())); time.sleep(60)"
    ))  # fmt: skip
    spec, command = (
        parse_spec("image:command:mine"),
        [sys.executable, str(program.file), "{prompt_file}", "{out}"],
    )
    options = ModelOptions(extra={"command": command}, call_timeout=60.0)
    request = options.apply(PictureRequest(spec.text, prompt="a fox").chat())
    asyncio.run(play(CommandImages(spec, options, Redactor()), request))
    assert is_gone(int(at_work.read_text()))


PLANTED = (
    *("OPENAI_API_KEY", "OPENAI_APIKEY", "AWS_ACCESS_KEY_ID", "GH_PAT", "DATABASE_URL", "NVIDIA_API_KEY"),
    *("HF_TOKEN", "WANDB_APIKEY", "SLACK_WEBHOOK", "CUDA_LICENSE", "GIT_ASKPASS", "MY_PASS"),
)


def test_variables_when_not_on_the_list_stay_out_whatever_they_are_called(program, monkeypatch):
    for name in PLANTED:
        monkeypatch.setenv(name, "planted-0123456789")
    monkeypatch.setenv("HTTPS_PROXY", "http://me:planted-0123456789@proxy:8080")
    monkeypatch.setenv("HTTP_PROXY", "http://proxy:8080")
    program.run()
    environment = program.seen["env"]
    assert "planted" not in str(environment)
    assert environment["HTTP_PROXY"] == "http://proxy:8080"
    assert environment["PATH"] == os.environ["PATH"]


def test_secrets_when_in_the_environment_stay_out_of_the_program_unless_named(program, monkeypatch):
    monkeypatch.setenv("OTHER_API_KEY", "planted-other-0123456789")
    monkeypatch.setenv("MY_TOKEN", "planted-mine-0123456789")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "1")
    program.options = {"extra": {"env": ["MY_TOKEN"]}}
    with pytest.raises(CallFault) as caught:
        program.run("sys.exit('wrong token ' + os.environ['MY_TOKEN'])")
    assert "planted" not in caught.value.message and MARK in caught.value.message
    environment = program.seen["env"]
    assert "OTHER_API_KEY" not in environment
    assert (environment["MY_TOKEN"], environment["CUDA_VISIBLE_DEVICES"]) == ("planted-mine-0123456789", "1")


@pytest.mark.parametrize(
    ("spec", "extra", "said"),
    [
        ("image:drawn:picture", {}, "drawn has no renderer picture"),
        ("image:command:mine", {}, "command"),
        ("image:command:mine", {"command": ["sh", "{prompt_file}"]}, "{out} is missing"),
        ("video:command:mine", {"command": ["no-such-program", "{prompt_file}", "{out}"]}, "is not there"),
    ],
)
def test_adapter_when_renderer_or_program_is_wrong_is_refused_before_any_call(spec, extra, said):
    with pytest.raises(ConfigError, match=re.escape(said)):
        check_adapter(parse_spec(spec), ModelOptions(extra=extra))
    check_adapter(parse_spec("image:drawn:faithful"))
