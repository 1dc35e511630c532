"""Image questions to a judge: fabula beside the bare openai SDK, over the same loopback server, in one run.

    python benchmarks/judging.py [--questions 2000] [--concurrency 64] [--latency 0.2] [--side 512]

Both send the same five pictures per storyboard with six questions each; the server, a process of its own,
answers after a fixed time. The bare SDK gets pictures that are prepared already, as data URLs made once per
storyboard. Of fabula's run the table shows the judging stage, which is compared, and all the rest: checking
and decoding the outputs, encoding each picture once, scanning packets, writing the archive.
"""

import argparse
import asyncio
import base64
import io
import json
import resource
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from fabula.engine.hooks import Event
from fabula.evaluation.judging.packets import question_packets
from fabula.evaluation.judging.settings import ImageSettings, prepare_storyboard
from fabula.evaluation.katha.requests import EvaluateOptions, evaluate_katha
from fabula.models.chat import Image
from fabula.models.spec import ModelSettings
from fabula.releases.loading import Release, load
from fabula.testing.drawn_storyboards import drawn_release
from fabula.testing.model_server import Asked

HERE = Path(__file__)
PER_STORY = 6
ONLY_IMAGES = {
    "judge_text.judges": [], "judge_both.judges": [], "judge_contrasts.judges": [],
    "judge_images.labels": False,
}  # fmt: skip


def answer(_asked: Asked) -> dict[str, str]:
    """Answer, as a handler of the scripted server."""
    return {"answer": "a lion", "evidence_status": "recoverable", "confidence": "high"}


@dataclass(frozen=True)
class Work:
    """What is to be done."""

    url: str
    stories: int
    concurrency: int
    folder: Path


def draw(folder: Path, stories: int, side: int) -> None:
    """Write a release, and storyboards of pictures as large as a generator's: smooth, with some grain."""
    import numpy as np
    from PIL import Image as Pillow

    release = drawn_release(folder / "release", stories + stories // 10 + 2)
    grain = np.random.default_rng(42)
    ramp = np.linspace(0, 255, side)
    for number, record in enumerate(release.records[:stories]):
        place = folder / "outputs" / record.story_id
        place.mkdir(parents=True)
        for panel in range(1, 6):
            waves = [
                np.sin(ramp[:, None] / (20 + channel + panel) + ramp[None, :] / (9 + number % 17))
                for channel in range(3)
            ]
            pixels = np.stack(waves, axis=-1) * 90 + 128 + grain.normal(0, 6, (side, side, 3))
            image = Pillow.fromarray(pixels.clip(0, 255).astype("uint8"))
            file = io.BytesIO()
            image.save(file, "PNG", compress_level=1)
            (place / f"{panel:02d}.png").write_bytes(file.getvalue())


async def bare(work: Work, release: Release) -> float:
    """The questions with nothing but the SDK; return the seconds that asking took."""
    settings, slots = ModelSettings(model="openai:judge"), asyncio.Semaphore(work.concurrency)
    bodies = []
    for record in release.records[: work.stories]:
        files = sorted((work.folder / "outputs" / record.story_id).iterdir())
        pictures = [picture.part for picture in prepare_storyboard(files, ImageSettings())]
        urls = {id(picture): _data_url(picture) for picture in pictures}
        for packet in question_packets(record, "image", pictures, 42):
            request = packet.request(settings, 42)
            messages = [
                {"role": message.role, "content": [_part(part, urls) for part in message.parts]}
                for message in request.messages
            ]
            assert request.schema is not None
            schema = {"name": request.schema.name, "strict": True, "schema": request.schema.schema}
            bodies.append((messages, schema))
    began = time.perf_counter()
    from openai import AsyncOpenAI  # fabula imports it while it asks, too

    async with AsyncOpenAI(base_url=work.url, api_key="none", max_retries=0) as client:

        async def one(messages: object, schema: object) -> None:
            async with slots:
                done = await client.chat.completions.create(
                    model="judge", messages=messages, temperature=0.0, seed=42, max_tokens=1000,  # type: ignore[arg-type]
                    response_format={"type": "json_schema", "json_schema": schema},  # type: ignore[arg-type,typeddict-item]
                )  # fmt: skip
                json.loads(done.choices[0].message.content or "")

        await asyncio.gather(*(one(*body) for body in bodies))
    return time.perf_counter() - began


def _data_url(picture: Image) -> str:
    return f"data:{picture.media_type};base64,{base64.b64encode(picture.data).decode('ascii')}"


def _part(part: object, urls: dict[int, str]) -> dict[str, object]:
    if isinstance(part, str):
        return {"type": "text", "text": part}
    return {"type": "image_url", "image_url": {"url": urls[id(part)]}}


class _Watch:
    """A reporter that notes when stages begin and end."""

    def __init__(self) -> None:
        self.at: dict[tuple[str, str | None], float] = {}

    def emit(self, event: Event) -> None:
        self.at[event.kind, event.stage] = time.perf_counter()

    def close(self) -> None:
        """Nothing to close."""


def engine(work: Work, out: str) -> float:
    """The questions as an evaluation; return the seconds of the stage that asks."""
    judge, watch = f"{work.url}#judge", _Watch()
    given = {judge: {"concurrency": work.concurrency, "prices": {"input": 0.1, "output": 0.4}}}
    options = EvaluateOptions(
        judges=(judge,), models=given, settings=ONLY_IMAGES, limit=work.stories, max_cost=1000.0
    )
    report = evaluate_katha(
        work.folder / "release", work.folder / "outputs", work.folder / out, options, reporter=watch
    )
    assert report.totals["made"] == work.stories
    return watch.at["stage-done", "judge_images"] - watch.at["stage", "judge_images"]


WAYS = ("openai SDK alone", "fabula", "fabula, once more")


def measure_here(way: str, work: Work) -> None:
    """Do it one way and print what it took."""
    began, cpu = time.perf_counter(), time.process_time()
    release = load(work.folder / "release")
    asking = asyncio.run(bare(work, release)) if way == WAYS[0] else engine(work, "run")
    calls = work.stories * PER_STORY
    found = {
        "asking": asking,
        "seconds": time.perf_counter() - began,
        "cpu_ms": (time.process_time() - cpu) * 1000 / calls,
        "peak_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }
    print(json.dumps(found))


def measured(way: str, work: Work) -> dict[str, float]:
    """Measure one way in a process of its own."""
    command = [
        sys.executable, str(HERE), "--way", way, "--url", work.url, "--folder", str(work.folder),
        "--questions", str(work.stories * PER_STORY), "--concurrency", str(work.concurrency),
    ]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(done.stderr)
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found


def compare(url: str, args: argparse.Namespace, stories: int) -> None:
    """Measure all ways and print the table; of several rounds the fastest counts."""
    best: dict[str, dict[str, float]] = {}
    for _ in range(args.rounds):
        with tempfile.TemporaryDirectory() as folder:
            draw(Path(folder), stories, args.side)
            for way in WAYS:
                found = measured(way, Work(url, stories, args.concurrency, Path(folder)))
                if way not in best or found["asking"] < best[way]["asking"]:
                    best[way] = found
    calls = stories * PER_STORY
    ideal = -(-calls // args.concurrency) * args.latency
    print(f"{calls} questions of five pictures, {args.concurrency} at a time: ideal {ideal:.2f} s")
    print(f"{'':<22}{'asking':>9}{'to SDK':>9}{'in all':>9}{'CPU ms/call':>13}{'peak MiB':>10}")
    for way, found in best.items():
        ratio = found["asking"] / best[WAYS[0]]["asking"]
        print(
            f"{way:<22}{found['asking']:>9.2f}{ratio:>9.2f}{found['seconds']:>9.2f}"
            f"{found['cpu_ms']:>13.2f}{found['peak_mib']:>10.0f}"
        )


def main() -> None:
    """Measure and print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--questions", type=int, default=2000)
    parser.add_argument("--concurrency", type=int, default=64)
    parser.add_argument("--latency", type=float, default=0.2)
    parser.add_argument("--side", type=int, default=512, help="Pixels of a picture's sides.")
    parser.add_argument("--rounds", type=int, default=2)
    for name in ("--way", "--url", "--folder"):
        parser.add_argument(name, help=argparse.SUPPRESS)
    args = parser.parse_args()
    stories = -(-args.questions // PER_STORY)
    if args.way:
        measure_here(args.way, Work(args.url, stories, args.concurrency, Path(args.folder)))
        return
    command = [sys.executable, "-m", "fabula.testing.model_server", "--handler", f"{HERE}:answer"]
    process = subprocess.Popen([*command, "--latency", str(args.latency)], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        url = next(line.split()[-1] for line in process.stdout if line.startswith("openai"))
        compare(url, args, stories)
    finally:
        process.terminate()
        process.wait()


if __name__ == "__main__":
    main()
