"""fabula models check: every way that a model can be unfit, told apart, through the real SDKs."""

import io
import json
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image as Pictures

from fabula.cli.model_check import ModelCheck, check_model
from fabula.errors import ConfigError, MissingRequirement
from fabula.models.chat import Image
from fabula.testing import stand_in
from fabula.testing.model_server import (
    Answer,
    Asked,
    BadRequestFault,
    EchoSecrets,
    Fault,
    HtmlPage,
    ModelServer,
    NoQuota,
    NoStructuredOutput,
    NoSuchModel,
    Prose,
    RateLimited,
    Refused,
    ServerError,
    Unauthorized,
    Unsupported,
)
from fabula.testing.page_shell import free_ports

REPLY = {"characters": [{"name": "fox"}, {"name": "crow"}], "moral_label": "generosity"}
KEY = "planted-secret-0123456789"


@pytest.fixture(autouse=True)
def keys(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("OPENAI_API_KEY", "GEMINI_API_KEY", "ANTHROPIC_API_KEY"):
        monkeypatch.setenv(name, KEY)


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with ModelServer(lambda _: REPLY) as server:
        yield server


def steps(found: ModelCheck) -> dict[str, str]:
    return {step.name: step.status for step in found.steps}


def checked(fault: Fault | Answer) -> ModelCheck:
    with ModelServer(lambda _: fault) as server:
        return check_model(f"{server.openai_url}#local", {})


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


def test_check_when_the_model_is_a_local_one_needs_no_key_and_says_that_the_price_is_unknown(server):
    found = check_model(f"{server.openai_url}#local", {})
    assert found.passed and found.fit is None
    assert steps(found) == {
        "model": "ok", "key": "ok", "call": "ok", "reply": "ok", "usage": "ok", "price": "warning",
    }  # fmt: skip
    assert found.cost is None
    (price,) = (step for step in found.steps if step.name == "price")
    assert "prices = {" in price.fix


@pytest.mark.parametrize(
    ("fault", "kind"),
    [
        (Unauthorized(), "key_refused"),
        (EchoSecrets(), "key_refused"),
        (NoQuota(), "no_quota"),
        (NoSuchModel(), "no_such_model"),
        (HtmlPage(), "not_an_api"),
        (NoStructuredOutput(), "unsupported"),
        (Unsupported("seed"), "unsupported"),
        (RateLimited(retry_after=30.0), "rate_limited"),
        (ServerError(503), "server_error"),
    ],
)
def test_check_when_no_reply_comes_says_why_after_one_attempt(fault: Fault, kind: str) -> None:
    found = checked(fault)
    assert not found.passed
    last = found.steps[-1]
    assert last.name == "call" and last.status == "failed"
    assert last.detail.startswith(kind) and last.fix


@pytest.mark.parametrize("fault", [Refused(), Prose(), Answer(text='{"characters": "fox"}')])
def test_check_when_the_reply_is_of_no_use_advises_another_way(fault: Fault | Answer) -> None:
    found = checked(fault)
    assert not found.passed and steps(found)["reply"] == "failed"
    (reply,) = (step for step in found.steps if step.name == "reply")
    assert "structured" in reply.fix


def test_check_when_nothing_listens_says_so(monkeypatch: pytest.MonkeyPatch, capsys) -> None:
    monkeypatch.setattr("fabula.cli.model_check.START", 0.2)
    found = check_model("http://127.0.0.1:9/v1#local", {})
    assert not found.passed and found.steps[-1].detail.startswith("connection")
    assert capsys.readouterr().err == "nothing listens at 127.0.0.1:9 yet; waiting, 0.2 s at most\n"


def test_check_when_the_server_starts_a_moment_later_waits_for_it() -> None:
    port = next(free_ports())
    late = ModelServer(lambda _: REPLY, port=port)
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


def capable(asked: Asked) -> Answer:
    """Answer as a model that reads and sees would."""
    if asked.images:
        assert coloured(asked.images[0]) == ("red", "blue")
        return Answer(text=json.dumps(SIGHT))
    return Answer(text=json.dumps(TEXT if "kite" in asked.text else REPLY))


def coloured(image: Image) -> tuple[str, str]:
    """Return which of red and blue covers more of the left and of the right half of a picture."""
    pixels = np.asarray(Pictures.open(io.BytesIO(image.data)).convert("RGB")).astype(int)
    halves = np.array_split(pixels[:, :, 0] - pixels[:, :, 2], 2, axis=1)  # more red than blue
    left, right = ("red" if half.sum() > 0 else "blue" for half in halves)
    return left, right


def blind(asked: Asked) -> Answer | Fault:
    return BadRequestFault() if asked.images else capable(asked)


def guessing(asked: Asked) -> Answer:
    return (
        Answer(text=json.dumps({**SIGHT, "boats": 2, "left_shape": "triangle"}))
        if asked.images
        else capable(asked)
    )


def deaf(asked: Asked) -> Answer:
    """Answer as a server that passes response_format over: in prose, unless the prompt has the schema."""
    return capable(asked) if "JSON Schema" in asked.text else Answer(text="The crow and the fox are kind.")


def endless(asked: Asked) -> Answer:
    """Answer as a small model that comes to no end where it is to write freely."""
    answer = capable(asked)
    return answer if asked.images or "kite" in asked.text else replace(answer, finish="length")


@pytest.mark.parametrize(
    ("handler", "fit", "said", "calls"),
    [
        (capable, ("drafting", "judging"), {"form": "ok", "text": "ok", "sight": "ok"}, 3),
        (blind, ("drafting",), {"form": "ok", "text": "ok", "sight": "warning"}, 3),
        (guessing, ("drafting",), {"form": "ok", "text": "ok", "sight": "failed"}, 3),
        (None, (), {"form": "ok", "text": "failed", "sight": "failed"}, 3),  # in form, without sense
        (deaf, ("drafting", "judging"), {"form": "warning", "text": "ok", "sight": "ok"}, 4),
        (endless, ("drafting", "judging"), {"form": "warning", "text": "ok", "sight": "ok"}, 5),
        (lambda _: Prose(), (), {"form": "failed", "text": "failed", "sight": "failed"}, 5),
    ],
    ids=["capable", "blind", "guessing", "nonsense", "ignores-response-format", "endless", "prose"],
)
def test_full_check_says_what_a_model_is_fit_for(handler, fit, said, calls):
    with ModelServer(handler) as server:
        spec = f"{server.openai_url}#local"
        found = check_model(spec, {spec: FREE}, full=True)
        assert server.count == calls
    assert found.fit == fit and {name: steps(found)[name] for name in said} == said, list(found.lines())
    assert steps(found)["fit"] == ("ok" if fit else "failed")
    assert found.passed == bool(fit)


def test_model_that_costs_nothing_is_asked_more_unasked_and_a_stand_in_on_request_only() -> None:
    with ModelServer(lambda asked: replace(capable(asked), model="qwen")) as server:
        spec = f"{server.openai_url}#qwen"
        assert check_model(spec, {spec: FREE}).fit == ("drafting", "judging")
    with ModelServer(stand_in.answer) as server:
        spec = f"{server.openai_url}#stand-in"
        assert check_model(spec, {spec: FREE}).passed and server.count == 1
        assert check_model(spec, {spec: FREE}, full=True).fit == ()


def test_full_check_when_a_server_enforces_nothing_names_the_setting_that_helps() -> None:
    with ModelServer(deaf) as server:
        spec = f"{server.openai_url}#local"
        lines = "\n".join(check_model(spec, {spec: FREE}, full=True).lines())
        assert f'write into fabula.toml:\n    [models."{spec}"]\n    structured = "json"' in lines
        helped = check_model(spec, {spec: {**FREE, "structured": "json"}}, full=True)
    assert steps(helped)["form"] == "ok" and helped.passed


def test_full_check_of_a_model_that_costs_something_is_made_on_request_and_says_first_what_it_costs(capsys):
    with ModelServer(capable) as server:
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
    with ModelServer(lambda _: EchoSecrets()) as server:
        (tmp_path / "mine.toml").write_text(f'[models."openai:m"]\nbase_url = "{server.openai_url}"\n')
        done = fabula_command("models", "check", "openai:m", "--config", tmp_path / "mine.toml")
    assert done.returncode == 1, done.stderr
    assert "key_refused" in done.stdout and "fix:" in done.stdout
    assert KEY not in done.stdout + done.stderr


# -- generators


def test_check_when_a_generator_is_well_says_what_came_back_and_what_it_does_not_take() -> None:
    with ModelServer() as server:
        spec = f"image:{server.openai_url}#flux"
        found = check_model(spec, {spec: {"prices": {"picture": 0.04}}})
        assert (server.count, server.log[0].asked.seed) == (1, None)
    assert found.passed and found.cost == pytest.approx(0.04)
    lines = "\n".join(found.lines())
    assert "a picture of 64 x 64 pixels: image/png, 136 bytes" in lines
    assert "not taken: seed" in lines
    assert "0.04 USD per file (settings); this call 0.040000 USD" in lines


def test_check_when_a_video_is_made_says_so_and_what_its_price_is_written_as() -> None:
    with ModelServer() as server:
        found = check_model("video:google:gemini-x", {"video:google:gemini-x": {"base_url": server.url}})
        assert [exchange.asked.step for exchange in server.log] == ["create", "look", "fetch"]
    assert found.passed and found.cost is None
    lines = "\n".join(found.lines())
    assert "a video: video/mp4" in lines
    assert "    prices = { second = PRICE }  # PRICE in USD per second of video" in lines
