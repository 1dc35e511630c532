"""Structured model calls: fabula beside the bare openai SDK, over the same loopback server, in one run.

    python benchmarks/models.py [--calls 2000] [--concurrency 64] [--latency 0.2] [--rounds 3] [--many 20000]

Both send the same requests with the openai SDK; the server, a process of its own, answers after a fixed time.
Fabula also checks every reply against its schema, keeps a budget, and has every reply on disk before it is
used. Time and CPU are those of the measured process, without the start of the interpreter.
"""

import argparse
import asyncio
import json
import resource
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import model_stage

from fabula.engine.config import resolve_config
from fabula.engine.execute import Options, RunRequest, Source, execute

HERE = Path(__file__)
PRICES = {"input": 0.4, "output": 1.6}


@dataclass(frozen=True)
class Work:
    """What is to be done."""

    url: str
    calls: int
    concurrency: int
    folder: Path


async def bare(work: Work) -> None:
    """The calls with nothing but the SDK."""
    from openai import AsyncOpenAI

    schema = {"name": model_stage.SCHEMA.name, "strict": True, "schema": model_stage.SCHEMA.schema}
    slots = asyncio.Semaphore(work.concurrency)
    async with AsyncOpenAI(base_url=work.url, api_key="none", max_retries=0) as client:

        async def one(number: int) -> None:
            async with slots:
                done = await client.chat.completions.create(
                    model="points",
                    messages=[
                        {"role": "system", "content": "Answer in JSON."},
                        {"role": "user", "content": model_stage.question(f"i{number}")},
                    ],
                    response_format={"type": "json_schema", "json_schema": schema},
                    temperature=0.0,
                    seed=42,
                    max_tokens=2000,
                )
                json.loads(done.choices[0].message.content or "")

        await asyncio.gather(*(one(number) for number in range(work.calls)))


def engine(work: Work, pipeline: str = "PIPELINE") -> None:
    """The calls as a stage of a run."""
    chosen = getattr(model_stage, pipeline)
    source = work.folder / f"items-{work.calls}.txt"
    source.write_text("".join(f"i{number} ask\n" for number in range(work.calls)))
    spec = f"{work.url}#points"
    given = {spec: {"concurrency": work.concurrency, "prices": PRICES}}
    config = resolve_config(chosen, None, [f"ask.model={spec}"], given)
    request = RunRequest(
        work.folder / f"run-{work.calls}", chosen, config, (Source("lines", source),),
        options=Options(workers=0, max_cost=1000.0),
    )  # fmt: skip
    assert execute(request).totals["made"] == work.calls


WAYS = {
    "openai SDK alone": lambda work: asyncio.run(bare(work)),
    "fabula": engine,
    "fabula, once more": engine,
    "fabula, stage changed": lambda work: engine(work, "PIPELINE_V2"),
}


def measure_here(way: str, work: Work) -> None:
    """Do it one way and print what it took."""
    began, cpu = time.perf_counter(), time.process_time()
    WAYS[way](work)
    found = {
        "seconds": time.perf_counter() - began,
        "cpu_ms": (time.process_time() - cpu) * 1000 / work.calls,
        "peak_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }
    print(json.dumps({**found, "sdk": "openai" in sys.modules}))


def measured(way: str, work: Work) -> dict[str, float]:
    """Measure one way in a process of its own."""
    command = [
        sys.executable, str(HERE), "--way", way, "--url", work.url, "--folder", str(work.folder),
        "--calls", str(work.calls), "--concurrency", str(work.concurrency),
    ]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(done.stderr)
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found


def start_server(latency: float) -> tuple[subprocess.Popen[str], str]:
    """Start the scripted server; return it and its base URL."""
    handler = f"{HERE.parent}/model_stage.py:answer"
    command = [sys.executable, "-m", "fabula.testing.model_server", "--handler", handler]
    process = subprocess.Popen([*command, "--latency", str(latency)], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    url = next(line.split()[-1] for line in process.stdout if line.startswith("openai"))
    return process, url


def row(name: str, found: dict[str, float], to: float | None = None) -> str:
    """Return one line of the table."""
    ratio = "" if to is None else f"{found['seconds'] / to:.2f}"
    return f"{name:<28}{found['seconds']:>9.2f}{ratio:>9}{found['cpu_ms']:>13.2f}{found['peak_mib']:>10.0f}"


def compare(url: str, args: argparse.Namespace) -> None:
    """Measure all ways and print the table; of several rounds the fastest counts."""
    best: dict[str, dict[str, float]] = {}
    for _ in range(args.rounds):
        with tempfile.TemporaryDirectory() as folder:
            for way in WAYS:
                found = measured(way, Work(url, args.calls, args.concurrency, Path(folder)))
                if way not in best or found["seconds"] < best[way]["seconds"]:
                    best[way] = found
    ideal = -(-args.calls // args.concurrency) * args.latency
    print(
        f"{args.calls} calls of {args.latency * 1000:g} ms, {args.concurrency} at a time: ideal {ideal:.2f} s"
    )
    print(f"{'':<28}{'seconds':>9}{'to SDK':>9}{'CPU ms/call':>13}{'peak MiB':>10}")
    for way, found in best.items():
        print(row(way, found, best["openai SDK alone"]["seconds"]))
    if args.many:
        with tempfile.TemporaryDirectory() as folder:
            found = measured("fabula", Work(url, args.many, args.concurrency, Path(folder)))
        print(row(f"fabula, {args.many} calls", found))


def main() -> None:
    """Measure and print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--calls", type=int, default=2000)
    parser.add_argument("--concurrency", type=int, default=64)
    parser.add_argument("--latency", type=float, default=0.2)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--many", type=int, default=20_000)
    for name in ("--way", "--url", "--folder"):
        parser.add_argument(name, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.way:
        measure_here(args.way, Work(args.url, args.calls, args.concurrency, Path(args.folder)))
        return
    process, url = start_server(args.latency)
    try:
        compare(url, args)
    finally:
        process.terminate()
        process.wait()


if __name__ == "__main__":
    main()
