"""The model server as its page offers it: handlers, scripts, fault plans, the log, the command, the page.

What each service's real SDK makes of every fault is tested by ``contract/test_chat_models.py``.
"""

import hashlib
import http.client
import json
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx2
import jsonschema
import pytest
import yaml
from huggingface_hub import CommitOperationAdd, CommitOperationDelete, HfApi
from huggingface_hub.errors import HfHubHTTPError, RepositoryNotFoundError, RevisionNotFoundError

import fabula
from fabula.errors import ConfigError
from fabula.testing import model_server as service
from fabula.testing.hub import TOKEN, WRITES, CutUpload, HubServer
from fabula.testing.hub import Refused as RefusedOfHub
from fabula.testing.model_server.faults import known_faults

PAGE = Path(fabula.__file__).parent / "docs" / "model_server.md"
KEY = "sk-planted-123456"
SCHEMA = {
    "type": "object",
    "additionalProperties": False,
    "required": ["moral", "words"],
    "properties": {
        "moral": {"type": "string", "enum": ["greed", "pride"]},
        "words": {"type": "array", "items": {"type": "string"}, "minItems": 2},
    },
}


def body_of(text: str, **more: Any) -> dict[str, Any]:
    return {"model": "tiny", "messages": [{"role": "user", "content": text}], **more}


def ask(server: service.ModelServer, text: str = "The fox.", **more: Any) -> Any:
    """Ask once in OpenAI's form; the reply, whatever its status."""
    headers = {"Authorization": f"Bearer {KEY}"}
    return httpx2.post(f"{server.openai_url}/chat/completions", json=body_of(text, **more), headers=headers)


def said(reply: Any) -> str:
    return str(reply.json()["choices"][0]["message"]["content"])


@pytest.fixture
def serve() -> Iterator[Callable[..., service.ModelServer]]:
    """Make servers that run until the test ends."""
    with ExitStack() as stack:
        yield lambda *args, **options: stack.enter_context(service.ModelServer(*args, **options))


@pytest.fixture
def write(tmp_path: Path) -> Callable[[str, str], Path]:
    def write(name: str, text: str) -> Path:
        path = tmp_path / name
        path.write_text(text, encoding="utf-8")
        return path

    return write


def test_handler_when_asked_sees_the_question_and_its_answer_is_sent(serve: Any) -> None:
    server = serve(lambda asked: {"moral": "greed", "words": [asked.text, asked.model]})
    assert json.loads(said(ask(server)))["words"] == ["The fox.", "tiny"]
    assert server.log[0].asked.secrets == (KEY,)
    assert (server.count, server.rejected) == (1, ())


def test_server_when_it_has_no_handler_gives_the_smallest_reply_of_the_schema(serve: Any) -> None:
    server = serve()
    form = {"type": "json_schema", "json_schema": {"name": "moral_of", "schema": SCHEMA}}
    jsonschema.validate(json.loads(said(ask(server, response_format=form))), SCHEMA)
    assert said(ask(server)) == "OK"


def test_handler_when_it_returns_a_fault_is_obeyed(serve: Any) -> None:
    answers = {"limit": service.RateLimited(), "fence": service.Fenced(answer=service.Answer("[1]"))}
    server = serve(lambda asked: answers.get(asked.text, service.Slow(seconds=0.01)))
    assert ask(server, "limit").status_code == 429
    assert said(ask(server, "fence")) == "```json\n[1]\n```"
    assert said(ask(server, "neither")) == "OK"


def test_handler_when_changed_answers_from_then_on(serve: Any) -> None:
    server = serve(faults=service.RateLimited())
    assert ask(server).status_code == 429
    server.faults, server.handler = None, lambda asked: "well again"
    assert said(ask(server)) == "well again"


def wrong(asked: Any) -> Any:
    raise LookupError("no such fox")


@pytest.mark.parametrize("option", ["handler", "faults", "latency"])
def test_function_when_it_raises_answers_400_and_raises_at_the_end(option: str) -> None:
    with pytest.raises(LookupError, match="no such fox"), service.ModelServer(**{option: wrong}) as server:
        assert ask(server).status_code == 400


def test_request_when_not_understood_is_reported(serve: Any) -> None:
    server = serve()
    for body in ({"model": "m"}, body_of("x", stream=True), body_of("x", temperature="warm"), []):
        assert httpx2.post(f"{server.openai_url}/chat/completions", json=body).status_code == 400
    assert httpx2.get(f"{server.url}/nowhere").status_code == 404
    assert len(server.rejected) == 5
    assert "messages" in server.rejected[0] and "stream" in server.rejected[1]
    assert server.count == 0


def test_port_when_taken_is_an_error(serve: Any) -> None:
    with pytest.raises(OSError, match="in use"), service.ModelServer(port=serve().port):
        pass


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "object", "properties": {"a": {"type": "integer", "minimum": 3}}, "required": ["a"]},
        {"type": ["string", "null"], "minLength": 9},
        {"anyOf": [{"type": "number", "exclusiveMinimum": 1}, {"type": "null"}]},
        {"allOf": [{"type": "object"}, {"properties": {"b": {"const": 7}}, "required": ["b"]}]},
        {"$defs": {"x": {"enum": ["one"]}}, "type": "array", "minItems": 2, "items": {"$ref": "#/$defs/x"}},
    ],
)
def test_from_schema_when_asked_gives_a_valid_value(schema: dict[str, Any]) -> None:
    jsonschema.validate(service.from_schema(schema), schema)


def test_from_schema_when_the_schema_never_ends_is_an_error() -> None:
    with pytest.raises(ValueError, match="too deeply"):
        service.from_schema({"$ref": "#"})


RATES = {service.RateLimited(): 0.1, service.Dropped(): 0.05, service.Refused(): 0.02, service.Prose(): 0.03}
KEYS = [hashlib.sha256(str(number).encode()).hexdigest() for number in range(20_000)]


def test_plan_when_drawn_often_keeps_its_rates_and_its_seed_decides() -> None:
    faults = [fault for key in KEYS for fault in service.FaultPlan(1, RATES).decide(key, 1)]
    for fault, rate in RATES.items():
        # Content faults show only where no error struck instead: 0.9 of the time.
        expected = rate * (0.9 if fault.content else 1.0) * len(KEYS)
        assert faults.count(fault) == pytest.approx(expected, rel=0.15)
    first, again, other = (
        [service.FaultPlan(seed, RATES).decide(key, 1) for key in KEYS[:500]] for seed in (7, 7, 8)
    )
    assert first == again != other


def test_plan_when_calm_leaves_only_faults_of_content() -> None:
    plan = service.FaultPlan(3, {service.RateLimited(): 1.0, service.Refused(): 0.5}, calm_after=2)
    assert all(plan.decide(key, 2) == (service.RateLimited(),) for key in KEYS[:100])
    assert {plan.decide(key, 3) for key in KEYS[:100]} == {(), (service.Refused(),)}


@pytest.mark.parametrize("rates", [{service.Prose(): 0.6, service.Refused(): 0.6}, {service.Prose(): -0.1}])
def test_plan_when_rates_cannot_be_is_refused(rates: Any) -> None:
    with pytest.raises(ValueError, match="rate"):
        service.FaultPlan(0, rates)


SCRIPT = """
- when: {contains: overloaded, call: 1}
  fault: {name: rate_limited, retry_after: 2}
- when: {contains: [overloaded]}
  answer: fine now
- when: {contains: cut}
  reply: {text: "half a", finish: length, usage: {input_tokens: 9, output_tokens: 2}}
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


def test_script_when_asked_answers_by_its_first_fitting_entry(serve: Any, write: Any) -> None:
    server = serve(service.scripted(write("script.yaml", SCRIPT)))
    limited = ask(server, "overloaded")
    assert (limited.status_code, limited.headers["retry-after"]) == (429, "2")
    assert said(ask(server, "overloaded")) == "fine now"
    cut = ask(server, "cut").json()
    assert (cut["choices"][0]["finish_reason"], cut["usage"]["prompt_tokens"]) == ("length", 9)
    assert said(ask(server, "smallest")) == "OK"
    other = ask(server, "something else")
    assert other.status_code == 400 and "no entry of the script" in other.text


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("- {when: {contain: x}}", "contain"),
        ("- {fault: rate_limit}", "rate_limit"),
        ("- {fault: {name: slow, second: 1}}", "second"),
        ("- {fault: {name: slow, seconds: long}}", "number"),
        ("- {reply: {finish: stopped}}", "length"),
        ("- [", "node content"),
        ("- 5", "entry 1"),
    ],
)
def test_script_when_wrong_is_refused_with_the_place(write: Any, text: str, word: str) -> None:
    path = write("script.yaml", text)
    with pytest.raises(ConfigError) as caught:
        service.scripted(path)
    assert str(path) in str(caught.value) and word in str(caught.value)


def test_plan_when_read_is_the_plan_written(write: Any) -> None:
    expected = service.FaultPlan(
        4, {service.RateLimited(retry_after=1): 0.25, service.Refused(): 0.5}, (service.TooLong(limit=90),), 2
    )
    assert service.read_plan(write("plan.yaml", PLAN)) == expected


@pytest.mark.parametrize("text", ["rate: 1", "[]", "rates: [{fault: refused, rate: 2}]", "seed: {"])
def test_plan_when_wrong_is_refused(write: Any, text: str) -> None:
    with pytest.raises(ConfigError, match=r"plan\.yaml"):
        service.read_plan(write("plan.yaml", text))


def test_log_file_when_asked_holds_each_question_without_keys(tmp_path: Path) -> None:
    path = tmp_path / "asked.jsonl"
    with service.ModelServer(
        lambda asked: "yes", faults=[None, service.RateLimited(), service.Dropped()], log_path=path
    ) as server:
        assert said(ask(server)) == "yes"
        ask(server)
        with pytest.raises(httpx2.TransportError):
            ask(server)
    with service.ModelServer(log_path=path) as server:
        ask(server)
    rows = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    assert [row["number"] for row in rows] == [1, 2, 3, 1]
    assert [row["faults"] for row in rows] == [[], ["RateLimited"], ["Dropped"], []]
    assert [row["text"] for row in rows] == ["yes", None, "yes", "OK"]
    assert KEY not in path.read_text("utf-8")


def test_log_file_when_a_client_leaves_notes_it(tmp_path: Path) -> None:
    path = tmp_path / "asked.jsonl"
    with service.ModelServer(latency=20.0, log_path=path) as server:
        client = http.client.HTTPConnection(urlsplit(server.url).netloc)
        client.request("POST", "/v1/chat/completions", json.dumps(body_of("Who?")))
        assert server.wait_for(1)
        client.close()
    assert json.loads(path.read_text("utf-8").splitlines()[-1]) == {"lost": True, "number": 1}


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


@pytest.mark.slow
def test_command_when_given_script_faults_and_log_serves_until_terminated(command, write, tmp_path):
    script, plan = write("script.yaml", SCRIPT), write("plan.yaml", PLAN)
    child, urls = command("--script", script, "--faults", plan, "--log", tmp_path / "log.jsonl")
    assert urls.keys() == {"openai", "google", "anthropic"}
    reply = httpx2.post(f"{urls['openai']}/chat/completions", json=body_of("word " * 100))
    assert reply.json()["error"]["code"] == "context_length_exceeded"
    child.send_signal(signal.SIGTERM)
    _, errors = child.communicate(timeout=300)
    assert child.returncode == 0
    assert "1 questions" in errors
    assert json.loads((tmp_path / "log.jsonl").read_text())["faults"] == ["TooLong"]


@pytest.mark.slow
def test_command_when_its_handler_raises_says_so_at_the_end(command: Any, write: Any) -> None:
    path = write("mine.py", "def answer(asked):\n    return asked.model if asked.model != 'x' else 1 / 0\n")
    child, urls = command("--handler", f"{path}:answer", "--latency", "0.01")
    body = {"model": "m", "max_tokens": 5, "messages": [{"role": "user", "content": "hi"}]}
    reply = httpx2.post(f"{urls['anthropic']}/v1/messages", json=body)
    assert reply.json()["content"] == [{"type": "text", "text": "m"}]
    assert httpx2.post(f"{urls['anthropic']}/v1/messages", json={**body, "model": "x"}).status_code == 400
    child.send_signal(signal.SIGINT)
    _, errors = child.communicate(timeout=300)
    assert child.returncode == 1
    assert "ZeroDivisionError" in errors


@pytest.mark.slow
def test_command_when_it_cannot_serve_says_why(command: Any, serve: Any) -> None:
    for args, word in (
        (("--handler", "json:answer"), "module:function"),
        (("--script", "none.yaml"), "none.yaml"),
        (("--port", serve().port), "in use"),
    ):
        child, urls = command(*args)
        assert urls == {}
        _, errors = child.communicate(timeout=300)
        assert child.returncode == 2
        assert word in errors and "Traceback" not in errors


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}(?: [^\n]*)?\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)


@pytest.mark.skipif(not PAGE.exists(), reason="the suite runs against a wheel, without docs")
def test_page_when_followed_is_true(tmp_path: Path) -> None:
    names: dict[str, Any] = {}
    for block in blocks("python"):
        exec(compile(block, PAGE.name, "exec"), names)
    assert names["moody"](names["asked"]) == names["RateLimited"]()
    assert names["plan"].seed == 42
    assert known_faults().keys() <= set(re.findall(r"`(\w+)`", PAGE.read_text("utf-8")))
    script, plan = blocks("yaml")
    assert len(yaml.safe_load(script)) == 5
    for name, text in (("script.yaml", script), ("plan.yaml", plan)):
        (tmp_path / name).write_text(text, encoding="utf-8")
    assert callable(service.scripted(tmp_path / "script.yaml"))
    assert service.read_plan(tmp_path / "plan.yaml").seed == 42


# -- The loopback Hub: what its client relies on, and what a real Hub refuses

REPO = "user/mine"
DATA = {"repo_id": REPO, "repo_type": "dataset"}


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[HubServer]:
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", False)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_DISABLE_XET", True)
    with HubServer(page=2, log_path=tmp_path / "log.jsonl") as server:
        yield server


@pytest.fixture
def api(hub: HubServer) -> HfApi:
    api = HfApi(endpoint=hub.url, token=TOKEN)
    api.create_repo(**DATA)
    return api


def commit(api: HfApi, *operations: object, **more: object) -> str:
    return str(api.create_commit(**DATA, operations=operations, commit_message="x", **more).oid)


def test_space_when_it_is_there_is_kept_whatever_kind_is_asked_for(api: HfApi) -> None:
    space = {"repo_id": "user/board", "repo_type": "space"}
    api.create_repo(**space, space_sdk="static")
    api.create_repo(**space, space_sdk="gradio", exist_ok=True)  # as `hf upload` does
    with pytest.raises(HfHubHTTPError, match="static Spaces only"):
        api.create_repo("user/other", repo_type="space", space_sdk="gradio")


def test_listing_when_longer_than_a_page_is_whole(api: HfApi) -> None:
    names = [f"folder/{number}.txt" for number in range(7)]
    commit(api, *(CommitOperationAdd(name, name.encode()) for name in names))
    listed = [one.path for one in api.list_repo_tree(**DATA, recursive=True)]
    assert sorted(listed) == sorted([".gitattributes", "folder", *names])
    assert [one.path for one in api.list_repo_tree(**DATA)] == [".gitattributes", "folder"]


def test_commit_when_parent_is_not_the_head_is_refused_and_changes_nothing(hub, api):
    first = hub.repository(REPO).branches["main"]
    commit(api, CommitOperationAdd("a.txt", b"a"), parent_commit=first)
    with pytest.raises(HfHubHTTPError) as caught:
        commit(api, CommitOperationAdd("b.txt", b"b"), parent_commit=first)
    assert caught.value.response.status_code == 412
    assert "b.txt" not in hub.files(REPO)


def test_commit_when_one_operation_is_wrong_changes_nothing(hub: HubServer, api: HfApi) -> None:
    with pytest.raises(HfHubHTTPError):
        commit(api, CommitOperationAdd("a.txt", b"a"), CommitOperationDelete("not-there.txt"))
    assert list(hub.files(REPO)) == [".gitattributes"]


def test_large_files_when_uploaded_twice_are_kept_once(hub: HubServer, api: HfApi) -> None:
    commit(api, CommitOperationAdd("a.parquet", b"PAR1" * 10), CommitOperationAdd("b.parquet", b"PAR1" * 10))
    assert len(hub.store.objects) == 1
    entry = hub.repository(REPO).commit_of("main").tree["a.parquet"]
    assert entry.size == 40
    assert entry.pointer_size > 100


def test_large_files_when_larger_than_a_part_come_in_parts_and_again_after_a_cut(hub, api, monkeypatch):
    monkeypatch.setattr(time, "sleep", lambda _: None)
    hub.service.part = 16
    hub.faults = {"lfs-part": [None, CutUpload(4)]}
    commit(api, CommitOperationAdd("a.parquet", b"PAR1" * 10))
    assert hub.asked("lfs-part", "lfs-complete") == ["lfs-part"] * 4 + ["lfs-complete"]
    assert hub.files(REPO)["a.parquet"] == b"PAR1" * 10


def test_tag_when_there_is_refused(api: HfApi) -> None:
    api.create_tag(**DATA, tag="1.0")
    with pytest.raises(HfHubHTTPError) as caught:
        api.create_tag(**DATA, tag="1.0")
    assert caught.value.response.status_code == 409
    api.delete_tag(**DATA, tag="1.0")
    assert api.list_repo_refs(**DATA).tags == []


def test_strangers_when_asking_see_public_and_no_private_repositories(hub: HubServer, api: HfApi) -> None:
    stranger = HfApi(endpoint=hub.url, token="hf_wrong")
    assert stranger.dataset_info(REPO).id == REPO
    api.create_repo("user/secret", repo_type="dataset", private=True)
    with pytest.raises(RepositoryNotFoundError):
        stranger.dataset_info("user/secret")
    with pytest.raises(RevisionNotFoundError):
        api.dataset_info(REPO, revision="9.9.9")


def test_log_when_requests_came_tells_routes_and_no_token(hub: HubServer, api: HfApi, tmp_path: Path) -> None:
    hub.faults = {"tag": [RefusedOfHub(500)]}
    with pytest.raises(HfHubHTTPError):
        api.create_tag(**DATA, tag="1.0")
    assert [(one.route, one.status, one.fault) for one in hub.log] == [
        ("create-repo", 200, None),
        ("tag", 500, "Refused"),
    ]
    assert hub.asked(*WRITES) == ["create-repo", "tag"]
    text = (tmp_path / "log.jsonl").read_text("utf-8")
    assert TOKEN not in text
    assert [json.loads(line)["route"] for line in text.splitlines()] == ["create-repo", "tag"]
