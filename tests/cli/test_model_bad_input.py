"""The real command against models that are wrong in every way: nothing is lost, or paid above the limit."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import fabula
from fabula.models.chat import Usage
from fabula.testing.katha_model import KathaModel
from fabula.testing.made_stories import write_stories as make_stories
from fabula.testing.model_server import (
    Answer,
    Asked,
    Dropped,
    Fault,
    HtmlPage,
    Huge,
    ModelServer,
    NoQuota,
    NoStructuredOutput,
    NoSuchModel,
    RateLimited,
    ServerError,
    TooLong,
    Unauthorized,
)

STORIES = Path(fabula.__file__).parent / "builders" / "katha" / "samples" / "stories.jsonl"
KEYS = {"openai": "OPENAI_API_KEY", "google": "GEMINI_API_KEY", "anthropic": "ANTHROPIC_API_KEY"}
PRICES = "prices = {input = 1.0, output = 2.0}\n"
CREATED = ("--created-at", "2026-01-01T00:00:00Z")
Build = Callable[..., Any]


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in (*KEYS.values(), "GOOGLE_API_KEY"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def build(fabula_command) -> Build:
    """Build from sample stories with a model at a server, at known prices and with a cost limit."""

    def run(server: ModelServer, *options: object, stories: Path = STORIES, settings: str = "") -> Any:
        spec = spec_of(server)
        Path("fabula.toml").write_text(f'[models."{spec}"]\n{PRICES}{settings}')
        base = ("build", "katha", stories, "--model", spec, "--workers", 0, "--out", "run", *CREATED)
        return fabula_command(*base, *(() if "--max-cost" in options else ("--max-cost", 5)), *options)

    return run


def spec_of(server: ModelServer) -> str:
    return f"{server.openai_url}#local"


def totals(done: Any) -> dict[str, int]:
    return json.loads(done.stdout)["totals"]


def usages(fabula_command: Any) -> list[dict[str, Any]]:
    """What the run says that it used of models."""
    done = fabula_command("run", "status", "run", "--json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)["models"]


def cost(usage: Usage) -> float:
    return (usage.input_tokens * 1.0 + usage.output_tokens * 2.0) / 1_000_000


@pytest.mark.parametrize("noun", ["katha", "shots"])
def test_dry_run_when_nobody_serves_the_model_is_refused(fabula_command, noun: str) -> None:
    done = fabula_command("build", noun, STORIES, "--model", "opnai:gpt-4.1-mini", "--dry-run")
    assert done.returncode == 2 and done.stdout == ""
    assert "there are: openai, google" in done.stderr


@pytest.mark.parametrize("provider", sorted(KEYS))
def test_build_when_the_key_is_missing_names_the_variable(fabula_command, provider: str) -> None:
    done = fabula_command("build", "katha", STORIES, "--limit", 1, "--model", f"{provider}:m", "--out", "run")
    assert done.returncode == 3, done.stderr
    assert KEYS[provider] in done.stderr and "fix:" in done.stderr


HOPELESS = {
    Unauthorized(): "check the key",
    NoQuota(): "add credit",
    NoSuchModel(): "check the name",
    HtmlPage(): "check the address",
    NoStructuredOutput(): 'structured = "json"',
}


# That every adapter tells every one of these faults is seen in contract/test_chat_models.py.
@pytest.mark.parametrize(
    ("provider", "fault"),
    [
        *(("compatible", fault) for fault in HOPELESS),
        ("anthropic", NoQuota()),
        ("google", NoSuchModel()),
        ("openai", Unauthorized()),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Fault) else value,
)
def test_build_when_no_request_can_succeed_stops_at_once_and_goes_on_when_all_is_well(
    fabula_command, monkeypatch: pytest.MonkeyPatch, provider: str, fault: Fault
) -> None:
    with ModelServer(lambda _: fault) as server:
        spec = spec_of(server) if provider == "compatible" else f"{provider}:m"
        base = "" if provider == "compatible" else f'base_url = "{getattr(server, f"{provider}_url")}"\n'
        Path("fabula.toml").write_text(f'[models."{spec}"]\n{base}{PRICES}')
        if provider in KEYS:
            monkeypatch.setenv(KEYS[provider], "planted-0123456789")
        options = ("build", "katha", STORIES, "--limit", 2, "--workers", 0, "--model", spec, "--max-cost", 5)
        done = fabula_command(*options, "--out", "run")
        assert done.returncode == 3, done.stderr
        assert HOPELESS[fault] in done.stderr and "same command again" in done.stderr
        assert len(server.log) <= 2, "no request is sent twice"
        assert sum(use["cost"] + use["uncertain_cost"] for use in usages(fabula_command)) == 0
        if provider != "compatible":
            return
        server.handler = KathaModel()
        assert totals(fabula_command(*options, "--out", "run", "--json"))["made"] == 2


def test_build_when_the_rate_limit_never_ends_stops_and_costs_nothing(build: Build, fabula_command) -> None:
    with ModelServer(lambda _: RateLimited()) as server:
        done = build(server, "--limit", 3, settings="patience = 1\n")
        assert done.returncode == 3, done.stderr
        assert "patience" in done.stderr and "429" in done.stderr
        assert sum(use["uncertain_cost"] for use in usages(fabula_command)) == 0
        server.handler = KathaModel()
        assert totals(build(server, "--limit", 3, "--json"))["made"] == 3


@pytest.mark.parametrize("fault", [ServerError(500), Dropped()], ids=lambda fault: type(fault).__name__)
def test_build_when_every_request_fails_ends_soon_within_the_limit_and_goes_on_later(
    build: Build, fabula_command, fault: Fault
) -> None:
    with ModelServer(lambda _: fault) as server:
        done = build(server, "--max-cost", 0.1, "--limit", 6, settings="patience = 1\n")
        assert done.returncode in (3, 4), done.stderr
        assert done.stderr.splitlines()[-1].startswith("  fix: ")
        assert sum(use["cost"] + use["uncertain_cost"] for use in usages(fabula_command)) <= 0.1
        server.handler = KathaModel()
        done = build(server, "--limit", 6, "--json")
        assert totals(done)["made"] == 6
        plan = json.loads(done.stderr.splitlines()[0])
        assert plan.get("uncertain", 0) == plan.get("spent", 0)


def test_build_when_only_one_call_at_a_time_is_allowed_asks_for_every_story(build: Build) -> None:
    with ModelServer(KathaModel()) as server:
        done = build(server, "--limit", 4, "--json", settings="concurrency = 1\n")
        assert done.returncode == 0, done.stderr
        assert totals(done)["made"] == 4 and server.busiest == 1


@pytest.mark.parametrize("fits", [True, False])
def test_build_when_a_story_is_above_the_context_length_fails_it_alone_and_pays_nothing_for_it(
    build: Build, write_stories: Callable[..., Path], fits: bool
) -> None:
    sound = [json.loads(line) for line in STORIES.read_text("utf-8").splitlines()[:3]]
    words = " ".join(story["text"] for story in sound).split()
    long = {**sound[0], "id": "kb25k_9001", "text": " ".join((words * (12_000 // len(words) + 1))[:12_000])}
    stories = write_stories(long, *sound[1:])
    asked_long: list[Asked] = []
    model = KathaModel()

    def answer(asked: Asked) -> Any:
        if len(asked.text) < 50_000:
            return model(asked)
        asked_long.append(asked)
        return TooLong(limit=8192)

    with ModelServer(answer) as server:
        limit = ("--set", f"assess_story.max_input_tokens={200_000 if fits else 8_000}")
        options = ("--set", "screen_stories.max_words=40000", *limit, "--set", "run.threshold=0.5", "--json")
        done = build(server, *options, stories=stories)
    assert done.returncode == 0, done.stderr
    assert totals(done) == {"failed": 1, "made": 2, "pending": 0, "rejected": 0}
    assert len(asked_long) == fits, "it is asked once, and not at all above max_input_tokens"
    assert "too_long" in done.stdout
    assert all(use["uncertain"] == 0 for use in json.loads(done.stdout)["models"])


def test_build_when_replies_belong_to_another_story_keeps_none_of_them(build: Build) -> None:
    model, first = KathaModel(), {}

    def answer(asked: Asked) -> Any:
        reply = first.setdefault(asked.schema_name, model(asked))
        return reply if "story_id" not in asked.text else {**reply, "story_id": "kb25k_0099"}

    with ModelServer(answer) as server:
        options = ("--limit", 4, "--set", "run.threshold=0.1", "--json")
        done = build(server, *options, settings="concurrency = 1\n")
    assert done.returncode == 0, done.stderr
    assert totals(done)["made"] == 1, "the story that the replies were made for"
    texts = {
        json.loads(line)["id"]: json.loads(line)["text"] for line in STORIES.read_text("utf-8").splitlines()
    }
    for line in Path("run/records.jsonl").read_text("utf-8").splitlines():
        story = json.loads(line)["payload"]["record"]
        names = {name for scene in story["scenes"] for name in scene["characters"]}
        assert all(name.lower() in texts[story["story_id"]].lower() for name in names)


def test_build_when_a_reply_has_five_megabytes_fails_that_story_and_counts_the_reply(build: Build) -> None:
    model, huge = KathaModel(), []

    def answer(asked: Asked) -> Any:
        if asked.schema_name != "katha_write_questions" or huge:
            return model(asked)
        huge.append(asked)
        return Huge(size=5_000_000, answer=model(asked))

    with ModelServer(answer) as server:
        done = build(server, "--limit", 3, "--set", "run.threshold=0.5", "--json")
        assert done.returncode == 0, done.stderr
        assert totals(done)["made"] == 2 and totals(done)["failed"] == 1
        assert sum(use["uncertain"] for use in json.loads(done.stdout)["models"]) == 1
        assert totals(build(server, "--limit", 3, "--retry-failed", "--json"))["made"] == 3


def test_build_when_the_price_was_not_known_says_so_when_it_goes_on(build: Build, fabula_command) -> None:
    with ModelServer(KathaModel()) as server:
        start = ("build", "katha", STORIES, "--workers", 0, "--model", spec_of(server), "--out", "run")
        assert fabula_command(*start, "--limit", 1).returncode == 0
        done = fabula_command(*start, "--limit", 2)
    assert done.returncode == 0, done.stderr
    calls = re.search(r"without (\d+) calls at a price that is not known", done.stderr.splitlines()[0])
    assert calls is not None and f"{calls[1]} model calls are answered" in done.stderr


def test_build_when_the_limit_is_reached_with_64_calls_in_flight_never_exceeds_it(
    build: Build, fabula_command
) -> None:
    model, limit = KathaModel(), 1.7
    stories = make_stories(Path("made.jsonl"), 80)

    def answer(asked: Asked) -> Answer:
        spent = Usage(len(asked.text) // 4, asked.params["max_tokens"])  # all that the request allows
        return Answer(text=json.dumps(model(asked)), usage=spent)

    def latency(asked: Asked) -> float:
        return 3.0 if asked.number <= 64 else 0.0

    with ModelServer(answer, latency=latency) as server:
        done = build(server, "--max-cost", limit, stories=stories, settings="concurrency = 64\n")
        assert done.returncode == 4, done.stderr
        assert "--max-cost" in done.stderr
        assert server.busiest == 64

        def paid() -> float:
            answered = [exchange for exchange in server.log if exchange.answer]
            return sum(cost(exchange.answer.tokens(exchange.asked)) for exchange in answered)

        assert 0.5 * limit < paid() <= limit
        uses = usages(fabula_command)
        assert sum(use["cost"] for use in uses) == pytest.approx(paid())
        assert all(use["uncertain"] == 0 for use in uses)
        again = build(server, "--max-cost", limit, stories=stories, settings="concurrency = 64\n")
        # What was set aside for calls in flight and not spent may do for one more.
        assert again.returncode == 4 and paid() <= limit


def test_build_when_the_clock_jumps_waits_no_longer_and_writes_the_same(
    build: Build, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = KathaModel()

    def answer(asked: Asked) -> Any:
        if asked.attempt == 1:
            return RateLimited(retry_after=1, as_date=True, clock_error=86_400 * (-1) ** asked.number)
        return model(asked)

    jumping = (
        "import itertools, time\n"
        "real, jumps = time.time, itertools.cycle((0.0, 36000.0, -36000.0, 1e6))\n"
        "time.time = lambda: real() + next(jumps)\n"
    )
    Path("patched").mkdir()
    Path("patched/sitecustomize.py").write_text(jumping)
    with ModelServer(model) as server:
        calm = build(server, "--limit", 2, "--out", "calm")
        assert calm.returncode == 0, calm.stderr
        server.handler = answer
        monkeypatch.setenv("PYTHONPATH", str(Path("patched").absolute()))
        jumped = build(server, "--limit", 2)
    assert jumped.returncode == 0, jumped.stderr
    assert Path("run/records.jsonl").read_bytes() == Path("calm/records.jsonl").read_bytes()
