"""Servers of open models, started, shared, watched and ended, with programs that speak their protocol."""

import asyncio
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import psutil
import pytest

from fabula.engine.calls import model_uses
from fabula.engine.execute import execute
from fabula.engine.journal import NAME as JOURNAL
from fabula.engine.manifest import read_manifest
from fabula.engine.status import run_status
from fabula.errors import ConfigError, FabulaError, MissingRequirement, ModelUnavailable
from fabula.models.chat import CallFault, ChatRequest, Message, Reply
from fabula.models.client import ModelClient
from fabula.models.keys import Redactor
from fabula.models.local.served import Lease, ServedChat, servers_folder
from fabula.models.local.servers import find_program, gguf_files, launch_of
from fabula.models.options import ModelOptions, options_for
from fabula.models.registry import check_adapter
from fabula.models.spec import OpenWeights, parse_spec
from fabula.testing.endurance import rounds
from fabula.testing.toy_models import model_request, toy_models

COMMIT = "0123456789abcdef0123456789abcdef01234567"
VLLM = f"vllm:org/tiny@{COMMIT}"
FAKE = Path(__file__).with_name("fake_server.py")


@pytest.fixture
def programs(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder on PATH with ``vllm`` and ``llama-server``; sockets have short paths."""
    with tempfile.TemporaryDirectory(prefix="fs", dir="/tmp") as folder:
        for name in ("vllm", "llama-server"):
            program = Path(folder) / name
            program.write_text(f"#!{sys.executable} -ISs\n{FAKE.read_text()}")
            program.chmod(0o700)
        monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")
        monkeypatch.setattr(tempfile, "tempdir", folder)
        monkeypatch.setenv("TMPDIR", folder)
        monkeypatch.setenv("XDG_DATA_HOME", folder)
        yield Path(folder)
        assert left_in(Path(folder)) == []


def left_in(folder: Path) -> list[str]:
    """Return what still runs when a server, and what kept it, has had the time to end."""
    end = time.monotonic() + 120
    while (left := processes_of(folder)) and time.monotonic() < end:
        time.sleep(0.05)
    return left


def processes_of(folder: Path) -> list[str]:
    """Return the command lines of what runs from a folder, or was started by what did."""
    log = "".join(path.read_text() for path in folder.rglob("log"))
    engines = {int(word) for line in log.splitlines() for word in line.partition("; engine ")[2].split()}
    found = []
    for process in psutil.process_iter(["cmdline", "pid", "status"]):
        line = " ".join(process.info["cmdline"] or ())
        is_engine = process.info["pid"] in engines and line == "sleep 600"
        if (str(folder) in line or is_engine) and process.info["status"] != psutil.STATUS_ZOMBIE:
            found.append(line)
    return found


def opened(text: str = VLLM, **settings: Any) -> tuple[ServedChat, ModelOptions, Redactor]:
    spec, redactor = parse_spec(text), Redactor()
    options = options_for(spec, {text: settings})
    return ServedChat(spec, options, redactor), options, redactor


def ask(text: str = VLLM, **settings: Any) -> Reply:
    model, options, _ = opened(text, **settings)

    async def call() -> Reply:
        client = ModelClient(model, options)
        try:
            request = options.apply(ChatRequest(text, (Message("user", ("hi",)),)))
            return (await client.call(request)).reply
        finally:
            await client.close()

    return asyncio.run(call())


# How they are started.


def flags_of(text: str, **settings: Any) -> list[str]:
    spec = parse_spec(text)
    return list(launch_of(spec, options_for(spec, {text: settings})).words[1:])


def test_flags_when_a_model_of_the_hub_is_served_name_its_commit_and_nothing_of_its_sampling(programs):
    assert flags_of(VLLM, context=4096, images=5, quantization="awq", args=["--seed", "2"]) == [
        "serve", "org/tiny", "--revision", COMMIT, "--served-model-name", "org/tiny", "--dtype", "auto",
        "--quantization", "awq", "--max-model-len", "4096", "--limit-mm-per-prompt", '{"image": 5}',
        "--generation-config", "vllm", "--host", "127.0.0.1", "--port", "{port}", "--seed", "2",
    ]  # fmt: skip
    shutil.copy(sys.executable, python := programs / "python3")
    assert flags_of(f"sglang:org/tiny@{COMMIT}", program=str(python)) == [
        "-m", "sglang.launch_server", "--model-path", "org/tiny", "--revision", COMMIT,
        "--served-model-name", "org/tiny", "--dtype", "auto", "--sampling-defaults", "openai",
        "--config", "{folder}/sglang.yaml", "--host", "127.0.0.1", "--port", "{port}",
    ]  # fmt: skip
    (file := programs / "tiny.gguf").write_bytes(b"GGUF")
    assert flags_of(f"llamacpp:{file}") == [
        "--model", str(file.resolve()), "--alias", "tiny.gguf", "--parallel", "4", "--ctx-size", "32768",
        "--jinja", "--host", "127.0.0.1", "--port", "{port}",
    ]  # fmt: skip


def test_keys_are_handed_over_by_environment_or_private_file_never_on_the_command_line(programs, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "of-somebody-else")
    monkeypatch.setenv("PYTHONPATH", "/our/libraries")
    spec = parse_spec(VLLM)
    launch = launch_of(spec, options_for(spec, {}))
    assert launch.environment["VLLM_API_KEY"] == "{key}" and "{key}" not in " ".join(launch.words)
    assert not {"OPENAI_API_KEY", "PYTHONPATH"} & launch.environment.keys()
    spec = parse_spec(f"sglang:org/tiny@{COMMIT}")
    shutil.copy(sys.executable, programs / "python3")
    launch = launch_of(spec, options_for(spec, {spec.text: {"program": str(programs / "python3")}}))
    assert launch.files == {"sglang.yaml": "api-key: {key}\n"} and "{key}" not in " ".join(launch.words)


def test_program_when_it_is_not_there_shows_the_two_commands_that_make_it(programs, monkeypatch):
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(MissingRequirement) as caught:
        check_adapter(parse_spec(VLLM), options_for(parse_spec(VLLM), {}))
    place = programs / "fabula/vllm"
    assert f"python3 -m venv {place}; {place}/bin/pip install vllm; then it is found there" in str(
        caught.value
    )
    (place / "bin").mkdir(parents=True)
    shutil.copy(programs / "vllm", place / "bin/vllm")
    assert find_program("vllm") == [str(place / "bin/vllm"), "serve"]
    with pytest.raises(MissingRequirement, match="/no/such is not on this machine"):
        check_adapter(parse_spec(VLLM), options_for(parse_spec(VLLM), {VLLM: {"program": "/no/such"}}))


def test_gguf_files_of_a_repository_are_chosen_by_quantization_with_what_lets_them_see(tmp_path, monkeypatch):
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    snapshot = tmp_path / f"models--org--g/snapshots/{COMMIT}"
    snapshot.mkdir(parents=True)
    names = ["m-Q4_K_M.gguf", "m-Q4_K_M_L.gguf", "m-Q8_0.gguf", "mmproj-m-Q8_0.gguf", "mmproj-m-f16.gguf"]
    for name in names:
        (snapshot / name).write_bytes(b"GGUF")
    monkeypatch.setattr("fabula.models.vision.weights.hub_file", lambda _, name, __: Path(name))
    chosen = {
        quantization: gguf_files(OpenWeights("org/g", None, quantization), COMMIT)
        for quantization in ("Q4_K_M", "q8_0")
    }
    assert chosen == {
        "Q4_K_M": (Path("m-Q4_K_M.gguf"), Path("mmproj-m-f16.gguf")),
        "q8_0": (Path("m-Q8_0.gguf"), Path("mmproj-m-Q8_0.gguf")),
    }
    with pytest.raises(ConfigError, match=r"has this name in it: m-Q4_K_M\.gguf"):
        gguf_files(OpenWeights("org/g", None, "F16"), COMMIT)
    with pytest.raises(
        MissingRequirement, match=r"forbids to ask the Hub(?s:.)*hf download org/h --revision 01"
    ):
        gguf_files(OpenWeights("org/h", None, "Q4_K_M"), COMMIT)
    # Where the Hub can be asked, what it lists counts, not what happens to lie here; what it refuses is said.
    monkeypatch.setattr("fabula.models.vision.weights.unreachable", lambda: None)
    monkeypatch.setattr("huggingface_hub.HfApi.list_repo_files", lambda *_, **__: ["m-F16.gguf"])
    assert gguf_files(OpenWeights("org/g", None, "F16"), COMMIT) == (Path("m-F16.gguf"), None)
    monkeypatch.setattr("huggingface_hub.HfApi.list_repo_files", Mock(side_effect=OSError("403 Forbidden")))
    with pytest.raises(MissingRequirement, match="403 Forbidden"):
        gguf_files(OpenWeights("org/g", None, "F16"), COMMIT)


# What they do.


@pytest.mark.slow
def test_server_when_needed_is_started_asked_and_ended_with_all_that_it_started(programs: Path) -> None:
    reply = ask(VLLM)
    assert (reply.outcome, reply.text, reply.reported_model) == ("ok", "yes", "org/tiny")
    log = next(programs.rglob("log"))
    assert "engine" in log.read_text()
    assert (log.stat().st_mode & 0o077, servers_folder().stat().st_mode & 0o077) == (0, 0)


@pytest.mark.slow
def test_server_when_it_loads_answers_503_and_is_waited_for(programs, monkeypatch):
    monkeypatch.setenv("VLLM_FAKE_SECONDS", "0.7")
    (file := programs / "tiny.gguf").write_bytes(b"GGUF")
    assert ask(f"llamacpp:{file}").text == "yes"


@pytest.mark.slow
def test_server_of_the_same_model_is_one_for_all_and_ends_with_the_last(programs: Path) -> None:
    spec = parse_spec(VLLM)
    launch = launch_of(spec, options_for(spec, {}))
    first, second = Lease.take(launch), Lease.take(launch)
    assert first.state["pid"] == second.state["pid"]
    other = Lease.take(launch_of(spec, options_for(spec, {VLLM: {"dtype": "float16"}})))
    assert other.state["pid"] != first.state["pid"]
    other.close()
    first.close()
    assert psutil.pid_exists(second.state["pid"])
    second.close()
    assert not psutil.pid_exists(second.state["pid"])
    third = Lease.take(launch)  # right behind the one that went
    assert third.state["pid"] != second.state["pid"]
    third.close()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("fate", "settings", "said"),
    [
        ("crash", {}, "it ended, with exit status 1.*line 29\n    ValueError: no such architecture"),
        ("oom", {}, "memory did not suffice.*CUDA out of memory.*fix: take a smaller or a quantized model"),
        ("crash-asked", {}, "it ended, with exit status 3.*illegal memory access"),
        ("hang", {"call_timeout": 5.0}, r"it was not ready within 5 s \(call_timeout\)"),
    ],
)
def test_server_when_it_fails_ends_the_run_with_its_last_lines_and_no_key(
    fate: str, settings: dict[str, Any], said: str, programs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VLLM_FAKE", fate)
    model, options, _ = opened(VLLM, **settings)

    async def call() -> None:
        client = ModelClient(model, options)
        try:
            await client.call(options.apply(ChatRequest(VLLM, (Message("user", ("hi",)),))))
        finally:
            await client.close()

    with pytest.raises(ModelUnavailable, match=f"(?s){said}") as caught:
        asyncio.run(call())
    log = next(programs.rglob("log"))
    key = log.read_text().partition(" with ")[2].partition(";")[0]
    assert len(key) == 48 and key not in str(caught.value)
    assert str(caught.value).count("\n    line ") < 20
    assert str(log) in str(caught.value)


@pytest.mark.slow
def test_server_when_it_hangs_in_the_middle_is_given_up_after_call_timeout(programs, monkeypatch):
    monkeypatch.setenv("VLLM_FAKE", "hang-asked")
    with pytest.raises(CallFault, match="call_timeout"):
        ask(VLLM, call_timeout=5.0, attempts=1)  # it begins within them, too


@pytest.mark.slow
def test_server_whose_program_cannot_be_started_says_why(programs: Path) -> None:
    (broken := programs / "broken").write_text("#!/no/such/interpreter\n")
    broken.chmod(0o700)
    with pytest.raises(ModelUnavailable, match="No such file or directory"):
        ask(VLLM, program=str(broken))


def test_folder_of_servers_that_others_can_enter_is_refused(programs: Path) -> None:
    servers_folder().chmod(0o755)
    with pytest.raises(FabulaError, match="not yours alone"):
        servers_folder()


@pytest.mark.slow
def test_run_when_its_server_ends_in_the_middle_goes_on_with_another_and_asks_nothing_twice(
    programs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (lines := programs / "lines.txt").write_text("a: cat 2\nb: dog 3\nc: owl 4\n")

    def make(**settings: Any) -> None:
        free = {"prices": None, **settings}
        execute(model_request(programs / "run", (lines, VLLM), settings=free))

    monkeypatch.setenv("VLLM_FAKE", "crash-asked")
    with pytest.raises(ModelUnavailable, match="it ended, with exit status 3"):
        make()
    monkeypatch.delenv("VLLM_FAKE")
    make()
    (use,) = model_uses(programs / "run" / JOURNAL)
    assert (use.model, use.calls, use.cost, use.uncertain, use.unpriced) == (VLLM, 3, 0.0, 0, 0)
    assert read_manifest(programs / "run").models[VLLM]["weights"] == COMMIT
    (programs / "vllm").rename(programs / "moved")  # another program, another place, another concurrency
    make(program=str(programs / "moved"), concurrency=1)
    assert model_uses(programs / "run" / JOURNAL) == (use,)
    status = run_status(programs / "run", toy_models())
    assert 0.0 < status.seconds[VLLM] < 60.0, "of both servers"
    assert f"{VLLM}: 0.00 h on this machine" in status.lines()


HOLDS = """
import sys, time
from fabula.models.local.served import Lease
from fabula.models.local.servers import launch_of
from fabula.models.options import options_for
from fabula.models.spec import parse_spec
spec = parse_spec(sys.argv[1])
lease = Lease.take(launch_of(spec, options_for(spec, {})))
while lease.look() == "loading" and sys.argv[2] == "ready":
    time.sleep(0.02)
print(lease.look(), flush=True)
time.sleep(600)
"""


@pytest.mark.slow
@pytest.mark.waits
@pytest.mark.endurance
def test_server_when_its_user_is_killed_at_any_moment_leaves_no_orphan(programs: Path) -> None:
    draw = random.Random(11)
    for number in range(rounds(50)):
        words = [sys.executable, "-c", HOLDS, VLLM, "ready" if number % 2 else "now"]
        user = subprocess.Popen(words, stdout=subprocess.DEVNULL)
        time.sleep(draw.uniform(0.4, 1.4))  # from the reading of the libraries to a server that answers
        user.kill()
        user.wait()
        assert left_in(programs) == [], f"after kill {number}"


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="only Linux ends the children of a killed process")
def test_server_when_its_keeper_is_killed_ends_too_and_the_next_one_starts(programs: Path) -> None:
    spec = parse_spec(VLLM)
    launch = launch_of(spec, options_for(spec, {}))
    lease = Lease.take(launch)
    server = psutil.Process(lease.state["pid"])
    server.parent().kill()  # type: ignore[union-attr]
    psutil.wait_procs([server], timeout=120)
    assert lease.look() == "ended"
    again = Lease.take(launch)
    assert again.state["pid"] != server.pid
    again.close()
    lease.close()
