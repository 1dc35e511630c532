"""``fabula memory packets``, ``generate`` and ``export`` as people and scripts use them."""

import json
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner, Result

from fabula.cli import memory_shots
from fabula.cli.command import COMMANDS
from fabula.testing.memory_banks import write_bank
from fabula.testing.written_episodes import write_episodes

pytest.importorskip("av")
SAME = ("--workers", "0", "--created-at", "2026-01-01T00:00:00Z")


def fabula(*words: str) -> Result:
    group = typer.Typer(name="memory", no_args_is_help=True, rich_markup_mode=None, add_completion=False)
    for command in COMMANDS:
        if command.function.__module__ == memory_shots.__name__:
            command.add_to(group)
    return CliRunner().invoke(group, list(words))


@pytest.fixture(scope="module")
def memory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("memory")
    write_episodes(folder / "set")
    return write_bank(folder / "set", folder / "run")


@pytest.mark.slow
def test_commands_when_run_one_after_the_other_make_packets_videos_and_inputs(
    memory: Path, tmp_path: Path
) -> None:
    scripts = ("--scripts", str(memory.parent / "set"))
    done = fabula("packets", str(memory), *scripts, "--out", str(tmp_path / "packets"), *SAME)
    assert done.exit_code == 0, done.output
    assert "7 packets with 20 scheduled entities, none lost; 0 have no description" in done.output
    assert f"layouts: {tmp_path / 'packets/layouts.html'}" in done.output
    made = ("generate", str(tmp_path / "packets"), "--model", "video:drawn:faithful", "--seconds", "1", *SAME)
    done = fabula(*made, "--dry-run", "--json")
    assert json.loads(done.stdout)["calls"] == 7 and not (tmp_path / "mine").exists()
    done = fabula(*made, "--out", str(tmp_path / "mine"), "--json")
    assert done.exit_code == 0, done.output
    answer = json.loads(done.stdout)
    assert (answer["outcomes"], answer["shots"], answer["run"]) == (
        {"made": 7},
        7,
        str(tmp_path / "mine.run"),
    )
    assert (tmp_path / "mine/ep_a/001_002.mp4").is_file()
    done = fabula(
        "export",
        str(tmp_path / "packets"),
        "--for",
        "image-video",
        "--value",
        "seconds=8",
        "--out",
        str(tmp_path / "inputs"),
    )
    assert done.exit_code == 0 and "16 pictures for 7 shots" in done.output


@pytest.mark.slow
def test_packets_when_no_folder_is_named_lie_in_that_of_the_bank(memory: Path) -> None:
    scripts = ("--scripts", str(memory.parent / "set"))
    done = fabula("packets", str(memory), *scripts, "--json", "--memory", "text", *SAME)
    assert done.exit_code == 0, done.output
    answer = json.loads(done.stdout)
    assert (answer["shots"], answer["entities"], answer["unregistered"]) == (7, 20, 0)
    packet = json.loads((memory / "packets-run/packets/ep_a/001_001/packet.json").read_text())
    assert (packet["memory"], packet["images"], packet["keyframes"]) == ("text", [], False)
    done = fabula("generate", str(memory), "--model", "video:drawn:faithful", "--dry-run")
    assert done.exit_code == 0 and "7 calls" in done.output
