"""fabula models check: every way that a model can be unfit, told apart, through the real SDKs."""

import io
import json
import re
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image as Pictures

from fabula.cli.model_check import ModelCheck, check_model
from fabula.errors import ConfigError, MissingRequirement
from fabula.models.chat import Image
from fabula.testing import model_server as service
from fabula.testing import stand_in
from fabula.testing.page_shell import free_ports

REPLY = {"characters": [{"name": "fox"}, {"name": "crow"}], "moral_label": "generosity"}
KEY = "planted-secret-0123456789"


@pytest.fixture(autouse=True)
def keys(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("OPENAI_API_KEY", "GEMINI_API_KEY", "ANTHROPIC_API_KEY"):
        monkeypatch.setenv(name, KEY)


@pytest.fixture
def server() -> Iterator[service.ModelServer]:
    with service.ModelServer(lambda _: REPLY) as server:
        yield server


def steps(found: ModelCheck) -> dict[str, str]:
    return {step.name: step.status for step in found.steps}


def told(found: ModelCheck, server: service.ModelServer) -> str:
    """What the command prints, but for where the server is and how long it took, and the number of calls."""
    text = "\n".join(found.lines()).replace(server.url, "http://server")
    text = re.sub(r"[\d.]+ s a call, .*? tokens a second", "SPEED", text)
    return re.sub(r"answered in [\d.]+ s", "answered", text) + f"\ncalls: {server.count}"


@pytest.mark.parametrize("provider", ["openai", "google", "anthropic"])
def test_check_when_a_service_is_well_passes_and_knows_what_it_cost(server, provider):
    url = getattr(server, f"{provider}_url")
    prices = {"input": 2.0, "output": 10.0}
    found = check_model(f"{provider}:m", {f"{provider}:m": {"base_url": url, "prices": prices}})
    assert found.passed, list(found.lines())
    assert set(steps(found).values()) == {"ok"}
    assert found.usage is not None and found.cost is not None
    expected = (found.usage.input_tokens * 2.0 + found.usage.output_tokens * 10.0) / 1_000_000
    assert found.cost == pytest.approx(expected)
    (exchange,) = server.log
    assert exchange.asked.protocol == provider
    assert KEY not in "\n".join(found.lines()) + json.dumps(found.as_json())


def test_check_when_nothing_listens_says_so(monkeypatch: pytest.MonkeyPatch, capsys) -> None:
    monkeypatch.setattr("fabula.cli.model_check.START", 0.2)
    found = check_model("http://127.0.0.1:9/v1#local", {})
    assert not found.passed and found.steps[-1].detail.startswith("connection")
    assert capsys.readouterr().err == "nothing listens at 127.0.0.1:9 yet; waiting, 0.2 s at most\n"


def test_check_when_the_server_starts_a_moment_later_waits_for_it() -> None:
    port = next(free_ports())
    late = service.ModelServer(lambda _: REPLY, port=port)
    timer = threading.Timer(0.5, late.__enter__)
    timer.start()
    try:
        found = check_model(f"http://127.0.0.1:{port}/v1#local", {})
    finally:
        timer.join()
        late.__exit__(None, None, None)
    assert steps(found)["call"] == "ok"


def test_check_when_the_key_is_missing_names_the_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY")
    with pytest.raises(MissingRequirement, match="OPENAI_API_KEY"):
        check_model("openai:m", {})


@pytest.mark.parametrize("spec", ["llamacpp:none.gguf", "hf:none.gguf", "vllm:./none"])
def test_check_when_weights_are_not_there_says_so_as_a_run_does_and_starts_nothing(spec: str) -> None:
    with pytest.raises(ConfigError, match="does not exist, or holds no weights"):
        check_model(spec, {})


def test_command_when_all_is_well_exits_zero_and_reads_the_settings_file(fabula_command, server, tmp_path):
    spec = f"{server.openai_url}#local"
    (tmp_path / "fabula.toml").write_text(
        f'[models."{spec}"]\nprices = {{input = 1, output = 0}}\nstructured = "json"\n'
    )
    done = fabula_command("models", "check", spec, "--json")
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    assert document["passed"] is True and document["cost"] > 0
    assert 'structured = "json"' in next(s for s in document["steps"] if s["name"] == "reply")["detail"]


# -- the full check

TEXT = {
    "flown_by": "Omar", "torn": "the kite of Omar", "colour_made": "blue", "nia_was_angry": False,
    "children": 2,
}  # fmt: skip
SIGHT = {
    "left_shape": "square", "left_colour": "red", "right_shape": "circle", "right_colour": "blue",
    "boats": 3,
}  # fmt: skip
FREE = {"prices": {"input": 0, "output": 0}}


def capable(asked: service.Asked) -> service.Answer:
    """Answer as a model that reads and sees would."""
    if asked.images:
        assert coloured(asked.images[0]) == ("red", "blue")
        return service.Answer(text=json.dumps(SIGHT))
    return service.Answer(text=json.dumps(TEXT if "kite" in asked.text else REPLY))


def coloured(image: Image) -> tuple[str, str]:
    """Return which of red and blue covers more of the left and of the right half of a picture."""
    pixels = np.asarray(Pictures.open(io.BytesIO(image.data)).convert("RGB")).astype(int)
    halves = np.array_split(pixels[:, :, 0] - pixels[:, :, 2], 2, axis=1)  # more red than blue
    left, right = ("red" if half.sum() > 0 else "blue" for half in halves)
    return left, right


def blind(asked: service.Asked) -> service.Answer | service.Fault:
    return service.BadRequestFault() if asked.images else capable(asked)


def guessing(asked: service.Asked) -> service.Answer:
    return (
        service.Answer(text=json.dumps({**SIGHT, "boats": 2, "left_shape": "triangle"}))
        if asked.images
        else capable(asked)
    )


def deaf(asked: service.Asked) -> service.Answer:
    """Answer as a server that passes response_format over: in prose, unless the prompt has the schema."""
    return (
        capable(asked)
        if "JSON Schema" in asked.text
        else service.Answer(text="The crow and the fox are kind.")
    )


def endless(asked: service.Asked) -> service.Answer:
    """Answer as a small model that comes to no end where it is to write freely."""
    answer = capable(asked)
    return answer if asked.images or "kite" in asked.text else replace(answer, finish="length")


FREE_ONES = {
    "capable": capable, "blind": blind, "guessing": guessing, "without sense": None, "endless": endless,
    "ignores response_format": deaf, "in prose": lambda _: service.Prose(),
}  # fmt: skip
MODELS: dict[str, Any] = {
    **FREE_ONES, "of a service": lambda _: REPLY,
    **{f"{fault}"[:40]: lambda _, fault=fault: fault for fault in (
        service.Unauthorized(), service.EchoSecrets(), service.NoQuota(), service.NoSuchModel(),
        service.HtmlPage(), service.NoStructuredOutput(), service.Unsupported("seed"),
        service.RateLimited(retry_after=30.0), service.ServerError(503), service.Refused(), service.Prose(),
        service.Answer(text='{"characters": "fox"}'),
    )},
}  # fmt: skip


@pytest.mark.parametrize("name", MODELS)
def test_check_when_a_model_is_unfit_in_some_way_says_which(name: str, snapshot) -> None:
    is_free = name in FREE_ONES
    with service.ModelServer(MODELS[name]) as server:
        spec = f"{server.openai_url}#local"
        found = check_model(spec, {spec: FREE} if is_free else {}, full=is_free)
        assert told(found, server) == snapshot
    assert found.passed == (name == "of a service" or bool(found.fit))


def test_model_that_costs_nothing_is_asked_more_unasked_and_a_stand_in_on_request_only() -> None:
    with service.ModelServer(lambda asked: replace(capable(asked), model="qwen")) as server:
        spec = f"{server.openai_url}#qwen"
        assert check_model(spec, {spec: FREE}).fit == ("drafting", "judging")
    with service.ModelServer(stand_in.answer) as server:
        spec = f"{server.openai_url}#stand-in"
        assert check_model(spec, {spec: FREE}).passed and server.count == 1
        assert check_model(spec, {spec: FREE}, full=True).fit == ()


def test_full_check_when_a_server_enforces_nothing_is_helped_by_the_setting_that_it_names() -> None:
    with service.ModelServer(deaf) as server:
        spec = f"{server.openai_url}#local"
        helped = check_model(spec, {spec: {**FREE, "structured": "json"}}, full=True)
    assert steps(helped)["form"] == "ok" and helped.passed


def test_full_check_of_a_model_that_costs_something_is_made_on_request_and_says_first_what_it_costs(capsys):
    with service.ModelServer(capable) as server:
        settings = {"openai:m": {"base_url": server.openai_url, "prices": {"input": 2.0, "output": 10.0}}}
        assert check_model("openai:m", settings).fit is None and server.count == 1
        found = check_model("openai:m", settings, full=True)
        assert server.count == 4
    (said,) = capsys.readouterr().err.splitlines()
    most = float(said.rpartition(" for ")[2].partition(" ")[0])
    assert said.startswith("the full check makes 5 calls at most, for ") and found.cost is not None
    assert 0 < found.cost < most
    (speed,) = (step for step in found.steps if step.name == "speed")
    assert "s a call" in speed.detail and "tokens a second" in speed.detail
    assert found.passed and f"{found.cost:.6f} USD for 3 calls" in "\n".join(found.lines())


def test_command_when_the_key_is_refused_exits_one_without_showing_it(fabula_command, tmp_path: Path) -> None:
    with service.ModelServer(lambda _: service.EchoSecrets()) as server:
        (tmp_path / "mine.toml").write_text(f'[models."openai:m"]\nbase_url = "{server.openai_url}"\n')
        done = fabula_command("models", "check", "openai:m", "--config", tmp_path / "mine.toml")
    assert done.returncode == 1, done.stderr
    assert "key_refused" in done.stdout and "fix:" in done.stdout
    assert KEY not in done.stdout + done.stderr


# -- generators


@pytest.mark.parametrize("spec", ["image", "video"])
def test_check_when_a_generator_is_well_says_what_came_back_and_what_it_does_not_take(spec, snapshot) -> None:
    with service.ModelServer() as server:
        spec = f"image:{server.openai_url}#flux" if spec == "image" else "video:google:gemini-x"
        settings = {"prices": {"picture": 0.04}} if spec.startswith("image") else {"base_url": server.url}
        assert told(check_model(spec, {spec: settings}), server) == snapshot
