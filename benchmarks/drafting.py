"""Draft stories with a scripted model that takes its time, 64 calls allowed at a time.

    python benchmarks/drafting.py --stories 64 --latency 5 --before ../old/.venv/bin/python

The server is a process of its own; its reviewer finds fault with every story, so that all repairs happen.
With ``--before`` the checkout of another environment drafts the same stories first.
"""

import argparse
import json
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

from measure import measure

from fabula.schemas.canonical import Json
from fabula.testing.katha_model import KathaModel
from fabula.testing.made_stories import write_stories
from fabula.testing.model_server import Asked

HERE = Path(__file__).absolute().parent
"""Where the server finds what the handler imports."""


def answer(asked: Asked) -> Json:
    """Answer as a reviewer who finds fault with every story."""
    return KathaModel(critical=1.0)(asked)


def draft(python: str, stories: Path, folder: Path, url: str) -> tuple[int, float, float]:
    """Return the calls of a run, its seconds, and its processor seconds."""
    planner, verifier = f"{url}#planner", f"{url}#verifier"
    settings = folder / "fabula.toml"
    given = "concurrency = 64\nprices = { input = 0.4, output = 1.6 }\n"
    settings.write_text(f'[models."{planner}"]\n{given}[models."{verifier}"]\n{given}')
    run = folder / "run"
    command = ("-m", "fabula.cli.main", "build", "katha", stories, "--out", run, "--planner", "model")
    models = ("--model", planner, "--verifier", verifier, "--config", settings)
    took = measure(python, *command, *models)
    report = json.loads((run / "report.json").read_text("utf-8"))
    return sum(use["calls"] for use in report["models"]), took.seconds, took.processor


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--stories", type=int, default=64)
    parser.add_argument("--latency", type=float, default=5.0)
    parser.add_argument("--before", help="the Python of another checkout's environment")
    given = parser.parse_args()
    print("| flow | calls a story | seconds | processor s | calls under way |\n|---|---:|---:|---:|---:|")
    with tempfile.TemporaryDirectory(prefix="fabula-drafting-") as name:
        stories = write_stories(Path(name) / "stories.jsonl", given.stories)
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        serving = (
            sys.executable, "-m", "fabula.testing.model_server", "--handler", f"{HERE}/drafting.py:answer",
            "--latency", str(given.latency), "--port", str(port),
        )  # fmt: skip
        with subprocess.Popen(serving, stdout=subprocess.PIPE, cwd=HERE) as server:
            assert server.stdout is not None
            server.stdout.readline()
            for flow, python in (("before", given.before), ("now", sys.executable)):
                if python is not None:
                    (folder := Path(name) / flow).mkdir()
                    calls, seconds, used = draft(python, stories, folder, f"http://127.0.0.1:{port}/v1")
                    mean = calls * given.latency / seconds
                    row = f"{calls / given.stories:.1f} | {seconds:.1f} | {used:.1f} | {mean:.1f}"
                    print(f"| {flow} | {row} |", flush=True)
            server.terminate()


if __name__ == "__main__":
    main()
