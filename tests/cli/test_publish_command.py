"""``fabula publish`` and ``fetch`` as commands: killed on the way, and what others read afterwards."""

import json
import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from fabula.testing.hub import TOKEN, Held, HubServer, Refused

REPO = "user/fables"
Fabula = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[HubServer]:
    """A Hub that the commands find, with their token."""
    monkeypatch.delenv("HF_HUB_OFFLINE")
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    with HubServer(log_path=tmp_path / "hub.jsonl") as server:
        monkeypatch.setenv("HF_ENDPOINT", server.url)
        yield server


def test_publish_when_killed_between_commit_and_tag_is_finished_by_the_same_command(
    hub: HubServer, sample_release: Path, fabula_command: Fabula, starter: Any, tmp_path: Path
) -> None:
    hub.faults = {"tag": [Held()]}
    running = starter.start(("publish", sample_release, "--repo", REPO))
    try:
        assert hub.wait_for("tag", 300)
    finally:
        running.kill()
    assert running.wait() == -signal.SIGKILL
    commit = hub.repository(REPO).branches["main"]
    assert hub.repository(REPO).tags == {}

    done = fabula_command("publish", sample_release, "--repo", REPO, "--json")
    assert done.returncode == 0, done.stdout + done.stderr
    assert json.loads(done.stdout)["commit"] == commit
    assert (json.loads(done.stdout)["committed"], json.loads(done.stdout)["tagged"]) == (False, True)
    assert hub.repository(REPO).tags == {"0.1.0": commit}
    assert len(hub.repository(REPO).commits) == 2
    log = (tmp_path / "hub.jsonl").read_text("utf-8")
    assert TOKEN not in log + done.stdout + done.stderr

    fetched = fabula_command("fetch", f"{REPO}@0.1.0", "--out", tmp_path / "dist", "--json")
    assert fetched.returncode == 0, fetched.stdout + fetched.stderr
    folder = tmp_path / "dist" / "fables-0.1.0"
    assert json.loads(fetched.stdout)["folder"] == str(folder)
    names = {path.relative_to(sample_release) for path in sample_release.rglob("*") if path.is_file()}
    assert {path.relative_to(folder) for path in folder.rglob("*") if path.is_file()} == names
    assert all((folder / name).read_bytes() == (sample_release / name).read_bytes() for name in names)


WRONG = (
    (("publish", "RELEASE", "--repo", "user/fables/x"), 2, "--repo: expected OWNER/NAME"),
    (("fetch", "user/fables@0.9.0"), 3, "the token has no right to do this"),
)


@pytest.mark.parametrize(("arguments", "code", "words"), WRONG)
def test_commands_when_asked_wrongly_say_what_to_do(
    hub: HubServer,
    sample_release: Path,
    fabula_command: Fabula,
    arguments: tuple[str, ...],
    code: int,
    words: str,
) -> None:
    hub.faults = {"refs": Refused(403, echo=True)}
    given = [sample_release if one == "RELEASE" else one for one in arguments]
    done = fabula_command(*given)
    assert done.returncode == code, done.stderr
    assert words in done.stderr
    assert TOKEN not in done.stderr
