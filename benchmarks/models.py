"""Structured model calls: fabula's engine against the bare SDK, over the same loopback server in one run.

Usage: python benchmarks/models.py [--calls 2000] [--concurrency 64] [--latency 0.2] [--rounds 3] [--many 20000]

Both send the same requests with the openai SDK to the same scripted server, which answers after a fixed time.
The engine also checks every reply against its schema, keeps the budget and commits every reply to its journal
before it is used. CPU is that of the measured process; the server is another one.
"""

import argparse
import asyncio
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import model_stage  # noqa: E402

HERE = Path(__file__)


def server(latency: float) -> tuple[subprocess.Popen[str], str]:
    """Start the scripted server; return it and its base URL."""
    command = [
        sys.executable, "-m", "fabula.testing.model_server", "--handler", f"{HERE.parent}/model_stage.py:answer",
        "--latency", str(latency),
    ]  # fmt: skip
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    for line in process.stdout:
        if "openai" in line:
            return process, line.split()[-1]
    raise RuntimeError("the server did not start")


async def bare(url: str, calls: int, concurrency: int) -> None:
    """Do the same with nothing but the SDK."""
    from openai import AsyncOpenAI

    slots = asyncio.Semaphore(concurrency)
    async with AsyncOpenAI(base_url=url, api_key="none", max_retries=0) as client:

        async def one(number: int) -> None:
            async with slots:
                done = await client.chat.completions.create(
                    model="points",
                    messages=[
                        {"role": "system", "content": "Answer in JSON."},
                        {"role": "user", "content": model_stage.question(f"i{number}")},
                    ],
                    response_format={
                        "type": "json_schema",
                        "json_schema": {
                            "name": model_stage.SCHEMA.name,
                            "strict": True,
                            "schema": model_stage.SCHEMA.schema,
                        },
                    },
                    temperature=0.0,
                    seed=42,
                    max_tokens=2000,
                )
                json.loads(done.choices[0].message.content)

        await asyncio.gather(*(one(number) for number in range(calls)))


def engine(url: str, calls: int, concurrency: int, folder: Path) -> None:
    """Run the stage on so many items."""
    from fabula.engine.config import resolve_config
    from fabula.engine.execute import Options, RunRequest, Source, execute

    source = folder / f"items-{calls}.txt"
    source.write_text("".join(f"i{number} ask\n" for number in range(calls)))
    spec = f"{url}#points"
    given = {spec: {"concurrency": concurrency, "prices": {"input": 0.4, "output": 1.6}}}
    config = resolve_config(model_stage.PIPELINE, None, [f"ask.model={spec}"], given)
    options = Options(workers=0, max_cost=1000.0)
    request = RunRequest(folder / f"run-{calls}", model_stage.PIPELINE, config, (Source("lines", source),), options=options)
    assert execute(request).totals["made"] == calls


def measured(kind: str, url: str, calls: int, concurrency: int, folder: str) -> dict[str, float]:
    """Measure one way in a process of its own."""
    command = [
        sys.executable, str(HERE), "--measure", kind, "--url", url, "--folder", folder,
        "--calls", str(calls), "--concurrency", str(concurrency),
    ]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(done.stderr)
    return json.loads(done.stdout.splitlines()[-1])


def measure_here(args: argparse.Namespace) -> None:
    """Run one way and print what it took."""
    began, cpu = time.perf_counter(), time.process_time()
    if args.measure == "bare":
        asyncio.run(bare(args.url, args.calls, args.concurrency))
    else:
        engine(args.url, args.calls, args.concurrency, Path(args.folder))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps({
        "seconds": time.perf_counter() - began,
        "cpu_ms": (time.process_time() - cpu) * 1000 / args.calls,
        "peak_mib": peak,
        "imported": float("openai" in sys.modules),
    }))  # fmt: skip


def main() -> None:
    """Measure and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--calls", type=int, default=2000)
    parser.add_argument("--concurrency", type=int, default=64)
    parser.add_argument("--latency", type=float, default=0.2)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--many", type=int, default=20_000)
    parser.add_argument("--measure", choices=["bare", "engine"])
    parser.add_argument("--url")
    parser.add_argument("--folder")
    args = parser.parse_args()
    if args.measure:
        measure_here(args)
        return
    process, url = server(args.latency)
    rows = []
    try:
        best: dict[str, dict[str, float]] = {}
        for _ in range(args.rounds):
            for kind in ("bare", "engine"):
                with tempfile.TemporaryDirectory() as folder:
                    found = measured(kind, url, args.calls, args.concurrency, folder)
                    if kind not in best or found["seconds"] < best[kind]["seconds"]:
                        best[kind] = found
                    if kind == "engine":
                        again = measured(kind, url, args.calls, args.concurrency, folder)
                        if "again" not in best or again["seconds"] < best["again"]["seconds"]:
                            best["again"] = again
        ideal = -(-args.calls // args.concurrency) * args.latency
        rows.append(["ideal", f"{ideal:.2f}", "", "", ""])
        for kind, name in (("bare", "openai SDK alone"), ("engine", "fabula engine"), ("again", "fabula, again")):
            found = best[kind]
            ratio = found["seconds"] / best["bare"]["seconds"]
            rows.append([name, f"{found['seconds']:.2f}", f"{ratio:.2f}", f"{found['cpu_ms']:.2f}", f"{found['peak_mib']:.0f}"])
        if args.many:
            with tempfile.TemporaryDirectory() as folder:
                found = measured("engine", url, args.many, args.concurrency, folder)
            rows.append([f"fabula, {args.many} calls", f"{found['seconds']:.2f}", "", f"{found['cpu_ms']:.2f}", f"{found['peak_mib']:.0f}"])
    finally:
        process.terminate()
        process.wait()
    print(f"{args.calls} calls, {args.latency * 1000:g} ms each, concurrency {args.concurrency}; best of {args.rounds}")
    for row in (["", "seconds", "to SDK", "CPU ms/call", "peak MiB"], *rows):
        print(f"{row[0]:<22}" + "".join(f"{cell:>13}" for cell in row[1:]))


if __name__ == "__main__":
    main()
