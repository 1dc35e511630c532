"""Scripts, the log file and the command line."""

import http.client
import json
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from fabula.errors import ConfigError
from fabula.testing.model_server import (
    Dropped,
    FaultPlan,
    ModelServer,
    RateLimited,
    Refused,
    TooLong,
    read_plan,
    scripted,
)

SCRIPT = """
- when: {contains: overloaded, call: 1}
  fault: {name: rate_limited, retry_after: 2}
- when: {contains: [overloaded]}
  answer: fine now
- when: {schema: moral_of}
  answer: {moral: pride, words: [a, b]}
- when: {contains: cut}
  reply: {text: "half a", finish: length, usage: {input_tokens: 9, output_tokens: 2}}
- when: {contains: fence}
  fault: fenced
  answer: [1, 2]
- when: {contains: smallest}
"""
PLAN = """
seed: 4
calm_after: 2
always: [{name: too_long, limit: 90}]
rates:
  - {fault: {name: rate_limited, retry_after: 1}, rate: 0.25}
  - {fault: refused, rate: 0.5}
"""


@pytest.fixture
def write(tmp_path: Path) -> Callable[[str, str], Path]:
    def write(name: str, text: str) -> Path:
        path = tmp_path / name
        path.write_text(text, encoding="utf-8")
        return path

    return write


def test_script_when_asked_answers_by_its_first_fitting_entry(serve: Any, sdks: Any, write: Any) -> None:
    server = serve(scripted(write("script.yaml", SCRIPT)))
    status, error = sdks.status(server, "openai", text="overloaded")
    assert (status, error.response.headers["retry-after"]) == (429, "2")
    assert sdks.ask(server, "openai", "overloaded").text == "fine now"
    assert json.loads(sdks.ask(server, "openai", schema=sdks.schema).text)["moral"] == "pride"
    cut = sdks.ask(server, "google", "cut")
    assert (cut.finish, cut.usage) == ("MAX_TOKENS", (9, 2))
    assert sdks.ask(server, "anthropic", "fence").text == "```json\n[1, 2]\n```"
    assert sdks.ask(server, "openai", "smallest").text == "OK"
    status, error = sdks.status(server, "openai", text="something else")
    assert status == 400
    assert "no entry of the script" in str(error)


def test_script_when_json_lines_reads_one_entry_a_line(serve: Any, sdks: Any, write: Any) -> None:
    lines = [{"when": {"protocol": "google", "model": "tiny"}, "answer": "g"}, {"answer": "other"}]
    server = serve(scripted(write("s.jsonl", "".join(json.dumps(line) + "\n" for line in lines))))
    assert [sdks.ask(server, name).text for name in ("google", "openai")] == ["g", "other"]


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("- {when: {contain: x}}", "contain"),
        ("- {fault: rate_limit}", "rate_limit"),
        ("- {fault: {name: slow, second: 1}}", "second"),
        ("- {fault: {name: slow, seconds: long}}", "number"),
        ("- {reply: {txt: x}}", "txt"),
        ("- {reply: {finish: stopped}}", "length"),
        ("- [", "node content"),
        ("- 5", "entry 1"),
    ],
)
def test_script_when_wrong_is_refused_with_the_place(write: Any, text: str, word: str) -> None:
    path = write("script.yaml", text)
    with pytest.raises(ConfigError) as caught:
        scripted(path)
    assert str(path) in str(caught.value)
    assert word in str(caught.value)


def test_script_when_missing_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="No such file"):
        scripted(tmp_path / "none.yaml")


def test_plan_when_read_is_the_plan_written(write: Any) -> None:
    expected = FaultPlan(4, {RateLimited(retry_after=1): 0.25, Refused(): 0.5}, (TooLong(limit=90),), 2)
    assert read_plan(write("plan.yaml", PLAN)) == expected


@pytest.mark.parametrize(
    "text", ["rate: 1", "[]", "rates: [{fault: refused}]", "rates: [{fault: refused, rate: 2}]", "seed: {"]
)
def test_plan_when_wrong_is_refused(write: Any, text: str) -> None:
    with pytest.raises(ConfigError, match=r"plan\.yaml"):
        read_plan(write("plan.yaml", text))


def test_log_file_when_asked_holds_each_question_without_keys(sdks: Any, tmp_path: Path) -> None:
    path = tmp_path / "asked.jsonl"
    with ModelServer(lambda asked: "yes", faults=[None, RateLimited(), Dropped()], log_path=path) as server:
        sdks.ask(server, "openai", images=[sdks.picture])
        first = path.read_text("utf-8")
        assert len(first.splitlines()) == 1
        sdks.status(server, "anthropic")
        with pytest.raises(Exception, match="onnection"):
            sdks.ask(server, "openai")
    with ModelServer(log_path=path) as server:
        sdks.ask(server, "google")
    rows = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    assert [row["number"] for row in rows] == [1, 2, 3, 1]
    assert [row["status"] for row in rows] == [200, 429, 200, 200]
    assert [row["faults"] for row in rows] == [[], ["RateLimited"], ["Dropped"], []]
    assert [row["text"] for row in rows] == ["yes", None, "yes", "OK"]
    assert rows[0]["messages"][0]["parts"][0] == "The fox."
    assert sdks.key not in path.read_text("utf-8")


def test_log_file_when_a_client_leaves_notes_it(tmp_path: Path) -> None:
    path = tmp_path / "asked.jsonl"
    question = json.dumps({"model": "tiny", "messages": [{"role": "user", "content": "Who?"}]})
    with ModelServer(latency=20.0, log_path=path) as server:
        client = http.client.HTTPConnection(urlsplit(server.url).netloc)
        client.request("POST", "/v1/chat/completions", question, {"Content-Type": "application/json"})
        assert server.wait_for(1)
        client.close()
    rows = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    assert rows[-1] == {"lost": True, "number": 1}


def test_wait_when_questions_come_returns(serve: Any, sdks: Any) -> None:
    server = serve()
    assert not server.wait_for(1, timeout=0.01)
    sdks.ask(server, "openai")
    assert server.wait_for(1)


@pytest.fixture
def command(tmp_path: Path) -> Iterator[Callable[..., Any]]:
    """Start the command; returns the process and its URLs by protocol."""
    started: list[subprocess.Popen[str]] = []

    def start(*args: object) -> tuple[subprocess.Popen[str], dict[str, str]]:
        line = [sys.executable, "-m", "fabula.testing.model_server", *map(str, args)]
        child = subprocess.Popen(
            line, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=tmp_path
        )
        started.append(child)
        assert child.stdout
        lines = [child.stdout.readline() for _ in range(3)]
        return child, dict(line.split() for line in lines if line)

    yield start
    for child in started:
        if child.poll() is None:
            child.kill()
        child.communicate()


def test_command_when_given_script_faults_and_log_serves_until_terminated(
    command: Any, write: Any, tmp_path: Path
) -> None:
    import httpx2

    script, plan = write("script.yaml", SCRIPT), write("plan.yaml", PLAN)
    child, urls = command("--script", script, "--faults", plan, "--log", tmp_path / "log.jsonl")
    assert urls.keys() == {"openai", "google", "anthropic"}
    body = {"model": "m", "messages": [{"role": "user", "content": "word " * 100}]}
    reply = httpx2.post(f"{urls['openai']}/chat/completions", json=body)
    assert reply.json()["error"]["code"] == "context_length_exceeded"
    child.send_signal(signal.SIGTERM)
    _, errors = child.communicate(timeout=30)
    assert child.returncode == 0
    assert "1 questions" in errors
    assert json.loads((tmp_path / "log.jsonl").read_text())["faults"] == ["TooLong"]


def test_command_when_given_a_handler_asks_it(command: Any, write: Any) -> None:
    import httpx2

    path = write(
        "mine.py", "def answer(asked):\n    return asked.model.upper() if asked.model != 'x' else 1 / 0\n"
    )
    child, urls = command("--handler", f"{path}:answer", "--latency", "0.01")
    body = {"model": "m", "max_tokens": 5, "messages": [{"role": "user", "content": "hi"}]}
    reply = httpx2.post(f"{urls['anthropic']}/v1/messages", json=body)
    assert reply.json()["content"] == [{"type": "text", "text": "M"}]
    assert httpx2.post(f"{urls['anthropic']}/v1/messages", json={**body, "model": "x"}).status_code == 400
    child.send_signal(signal.SIGINT)
    _, errors = child.communicate(timeout=30)
    assert child.returncode == 1
    assert "ZeroDivisionError" in errors


@pytest.mark.parametrize(
    ("args", "word"),
    [
        (("--handler", "nowhere:answer"), "module:function"),
        (("--handler", "json:answer"), "module:function"),
        (("--script", "none.yaml"), "none.yaml"),
        (("--faults", "none.yaml"), "none.yaml"),
    ],
)
def test_command_when_given_what_is_not_there_says_so(command: Any, args: Any, word: str) -> None:
    child, urls = command(*args)
    assert urls == {}
    _, errors = child.communicate(timeout=30)
    assert child.returncode == 2
    assert word in errors
    assert "Traceback" not in errors


def test_command_when_the_port_is_taken_says_so(command: Any, serve: Any) -> None:
    child, _ = command("--port", serve().port)
    _, errors = child.communicate(timeout=30)
    assert child.returncode == 2
    assert "in use" in errors
