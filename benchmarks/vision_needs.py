"""Memory and time that models take which look at pictures, as a dry run shows them.

    python benchmarks/vision_needs.py --out measured.json
    python benchmarks/vision_needs.py --device cuda --out ~/.cache/fabula/weights/measured.json

Weights are drawn, of the real sizes; neither memory nor speed depends on their values. Each model runs in a
process of its own, so that its peak of memory is its own; libraries are in it. A file that is there is added
to: measurements of the same model, device, numbers, resolution and batch are replaced. Written to the folder
of weights, the measurements count for this machine before those that Fabula ships.
"""

import argparse
import json
import os
import platform
import resource
import subprocess
import sys
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import vision
from vision_weights import MAKERS

from fabula.models.vision.needs import Measurement, as_document, read_measurements
from fabula.schemas.canonical import pretty_bytes, write_atomic


def main() -> None:
    """Measure each model in a process of its own, and write what came out."""
    args = _arguments()
    if args.measure:
        print(json.dumps(as_document([_measured(args)])))
        return
    known = (
        {each.case: each for each in read_measurements(args.out.read_text("utf-8"))}
        if args.out.exists()
        else {}
    )
    for name in args.model or MAKERS:
        for side in args.side:
            command = [
                sys.executable,
                __file__,
                "--measure",
                name,
                "--side",
                side,
                "--batch",
                str(args.batch),
            ]
            command += ["--device", args.device, "--dtype", args.dtype, "--seconds", str(args.seconds)]
            done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
            if done.returncode:
                print(f"{name} at {side}: it did not run", file=sys.stderr)
                continue
            (each,) = read_measurements(done.stdout.splitlines()[-1])
            known[each.case] = each
            print(f"{name} at {side}: {each.ram / 1e9:.2f} GB, {each.seconds:.4f} s a picture", flush=True)
            write_atomic(args.out, [pretty_bytes(as_document(known.values()))])


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--out", type=Path, default=Path("measured.json"))
    parser.add_argument("--model", action="append", choices=tuple(MAKERS), help="[all]; repeatable")
    parser.add_argument(
        "--side", action="append", help="width and height, such as 1024x576 [512x512 and this]"
    )
    parser.add_argument("--device", default="cpu", choices=("cpu", "cuda", "mps"))
    parser.add_argument("--dtype", default="float32", choices=("float32", "float16", "bfloat16"))
    parser.add_argument("--batch", type=int, default=16, help="pictures at once")
    parser.add_argument("--seconds", type=float, default=10, help="of each measurement, about")
    parser.add_argument("--measure", help=argparse.SUPPRESS)
    args = parser.parse_args()
    args.side = args.side or ["512x512", "1024x576"]
    return args


def _measured(args: argparse.Namespace) -> Measurement:
    import torch

    name, (width, height) = args.measure, map(int, args.side[0].split("x"))
    vision.SIZE = (width, height)
    with tempfile.TemporaryDirectory(prefix="fabula-needs-") as scratch:
        os.environ["XDG_CACHE_HOME"] = scratch
        weights = Path(scratch) / "weights"
        given = {"weights": weights, "depth": None, "device": args.device, "dtype": args.dtype}
        if os.fork() == 0:  # drawing weights takes memory that loading them does not
            vision.write_weights(name, weights, None)
            os._exit(0)
        os.wait()
        opened = vision._opened(name, SimpleNamespace(**given, short_side=800))
        batch = min(args.batch, vision.DETECTED) if name in vision.DETECTORS else args.batch
        pictures = [vision._picture(name, number) for number in range(batch)]
        opened.see(pictures[:1])
        seconds = _seconds(opened, pictures, args)
    card = args.device == "cuda" and opened.place.device == "cuda"
    threads, place = f"cores of {_processor()}", opened.place
    return Measurement(
        model=name, device=str(place.device), dtype=str(place.dtype), width=width, height=height, batch=batch,
        seconds=round(seconds, 6), ram=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
        gpu=torch.cuda.max_memory_allocated() if card else None,
        hardware=torch.cuda.get_device_name() if card else threads, weights="random",
        day=datetime.now(UTC).date().isoformat(),
    )  # fmt: skip


def _processor() -> str:
    """Return the name of the processor, as far as the system tells it."""
    try:
        lines = Path("/proc/cpuinfo").read_text("utf-8").splitlines()
    except OSError:
        lines = []
    named = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return named[0] if named else platform.machine()


def _seconds(opened: vision.Opened, pictures: list[Any], args: argparse.Namespace) -> float:
    """Return the seconds that a picture takes; on a CPU of all cores together, whoever else is at work."""
    clock = time.process_time if str(opened.place.device) == "cpu" else time.perf_counter
    looked, began, limit = 0, clock(), time.perf_counter() + args.seconds
    while not looked or time.perf_counter() < limit:
        opened.see(pictures)
        looked += len(pictures)
    return (clock() - began) / looked


if __name__ == "__main__":
    main()
