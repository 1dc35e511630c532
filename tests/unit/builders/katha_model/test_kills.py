"""Whole builds with a model, killed again and again while everything else goes wrong as well."""

import json
import os
import random
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from fabula.builders.katha import write_questions
from fabula.builders.katha.building import BuildOptions, build_katha
from fabula.engine.calls import answered
from fabula.engine.journal import NAME as JOURNAL
from fabula.testing import model_server as service
from fabula.testing.endurance import rounds
from fabula.testing.katha_model import KathaModel
from fabula.testing.made_stories import write_stories

pytestmark = pytest.mark.slow

KILLS = max(4, rounds(10))
OUTPUTS = (
    "records.jsonl",
    "assignments.jsonl",
    "balance.json",
    "edit_distances.json",
    "edit_distances.jsonl",
)
SETTINGS = "prices = { input = 1.0, output = 4.0 }\npatience = 300\nattempts = 20\n"
RATES = {
    # What a model says: bound to the question.
    service.Refused(): 0.002, service.SafetyBlock(): 0.002, service.ContentFilter(): 0.002,
    service.EmptyChoices(): 0.002, service.TruncatedJson(): 0.002, service.MalformedJson(): 0.01,
    service.MalformedJson(kind="unclosed"): 0.01, service.Prose(): 0.01, service.WrongLanguage(): 0.002,
    service.Fenced(): 0.03, service.Thinking(): 0.03,
    # What happens on the way: drawn anew for each attempt.
    service.RateLimited(): 0.01, service.RateLimited(retry_after=0.2): 0.01, service.ServerError(500): 0.01,
    service.ServerError(503): 0.01, service.Slow(0.2): 0.02, service.Dripping(): 0.01,
    service.Dropped(): 0.01, service.TruncatedBody(): 0.01, service.NotJson(): 0.005,
}  # fmt: skip
KEY = "planted-key-77aa31"


@dataclass
class Build:
    """A build through the real command."""

    folder: Path
    stories: Path
    models: tuple[str, ...]
    url: str
    starter: Any

    @property
    def run(self) -> Path:
        return self.folder / "run"

    def start(self) -> Any:
        self.folder.mkdir(exist_ok=True)
        sections = "".join(f'[models."{name}"]\nbase_url = "{self.url}"\n{SETTINGS}' for name in self.models)
        (self.folder / "fabula.toml").write_text(f"[run]\nthreshold = 0.5\n{sections}")
        options = (
            "build", "katha", self.stories, "--model", self.models[0], "--verifier", self.models[-1],
            "--out", "run", "--created-at", "2026-01-01T00:00:00Z",
        )  # fmt: skip
        environment = {**os.environ, "OPENAI_API_KEY": KEY}
        with (self.folder / "errors.txt").open("wb") as errors, Path(os.devnull).open("wb") as nowhere:
            return self.starter.start(
                options, stdout=nowhere, stderr=errors, env=environment, cwd=self.folder
            )

    def finish(self) -> None:
        process = self.start()
        assert process.wait() == 0, (self.folder / "errors.txt").read_text()[-3000:]

    def outputs(self) -> dict[str, bytes]:
        """What a run is for; and what it says of each item, but for how often it had to try."""
        report = json.loads((self.run / "report.json").read_text())
        del report["models"], report["manifest_sha256"]  # attempts differ, and the address of the server
        for stage in report["stages"]:
            del stage["ran"], stage["reused"]
        files = {name: (self.run / name).read_bytes() for name in OUTPUTS}
        return {**files, "report.json": json.dumps(report).encode()}


@contextmanager
def served() -> Iterator[service.ModelServer]:
    plan = service.FaultPlan(seed=5, rates=RATES)
    with service.ModelServer(KathaModel(critical=0.1), faults=plan, latency=0.005) as server:
        yield server


def texts(messages: object) -> str:
    """What identifies a question on both sides: all that was said in it."""
    return json.dumps(messages, ensure_ascii=False)


def asked_in(server: service.ModelServer, start: int) -> list[tuple[str, str]]:
    return [
        (
            entry.asked.model,
            texts([entry.asked.system, *(message.parts[0] for message in entry.asked.messages)]),
        )
        for entry in server.log[start:]
    ]


def committed(run: Path) -> set[tuple[str, str]]:
    if not (run / JOURNAL).exists():
        return set()
    found = set()
    for call in answered(run / JOURNAL):
        said = [message["parts"][0]["text"] for message in call.asked["messages"]]
        found.add((call.model.partition(":")[2], texts(said)))
    return found


@pytest.mark.waits
@pytest.mark.endurance
@pytest.mark.parametrize("seed", range(42, 42 + rounds(10)))
@pytest.mark.parametrize(
    ("stories", "models"),
    [
        pytest.param(80, ("openai:toy",), marks=pytest.mark.skipif(rounds(2) == 1, reason="make endurance")),
        (max(5, rounds(30)), ("openai:toy", "openai:judge")),
    ],
)
def test_build_when_killed_at_random_points_ends_as_the_calm_one_and_pays_nothing_twice(
    tmp_path: Path, starter: Any, stories: int, models: tuple[str, ...], seed: int
) -> None:
    source = write_stories(tmp_path / "stories.jsonl", stories)
    with served() as server:
        calm = Build(tmp_path / "calm", source, models, server.openai_url, starter)
        calm.finish()
        expected, whole = calm.outputs(), len(list(answered(calm.run / JOURNAL)))
    choices = random.Random(seed)
    with served() as server:
        build = Build(tmp_path / "killed", source, models, server.openai_url, starter)
        kills, known = 0, set()
        while kills < KILLS:
            before = server.count
            wanted = before + choices.randint(1, max(2, whole // KILLS))
            server.latency = lambda asked, wanted=wanted: 0.005 if asked.number <= wanted else 3600.0
            process = build.start()
            if choices.random() < 0.15:
                time.sleep(choices.random())
            else:
                assert server.wait_for(wanted, 120)
            time.sleep(choices.random() * 0.05)
            process.send_signal(signal.SIGKILL)
            assert process.wait() == -signal.SIGKILL, "the build ended before it was killed often enough"
            kills += 1
            again = known & set(asked_in(server, before))
            assert not again, f"asked again although the reply was on disk: {sorted(again)[:1]}"
            known = committed(build.run)
        before, server.latency = server.count, 0.005
        build.finish()
        assert not known & set(asked_in(server, before))
        assert build.outputs() == expected
        assert len(list(answered(build.run / JOURNAL))) == whole
        for path in build.run.rglob("*"):
            assert KEY.encode() not in (path.read_bytes() if path.is_file() else b""), path
        _reread(build, server)
        del expected["report.json"]  # it names the stages' versions
        assert build.outputs().items() >= expected.items()


def _reread(build: Build, server: service.ModelServer) -> None:
    """Run again with a new version of one parser: all replies are read anew, nothing is asked."""
    count, step = server.count, write_questions.STEP
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(write_questions, "STEP", replace(step, version=step.version + 1))
        patch.chdir(build.folder)
        patch.setenv("OPENAI_API_KEY", KEY)
        options = BuildOptions(model=build.models[0], verifier=build.models[-1], workers=0)
        report = build_katha(build.stories, "run", options)
    ran = {stage.name: stage.ran for stage in report.stages}
    assert ran["write_questions"] > 0
    assert server.count == count
