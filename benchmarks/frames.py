"""How long the replies of an evaluation take to reach a frame, and how much memory that needs.

    python benchmarks/frames.py [REPLIES]

Writes an archive of so many synthetic judgements (a million) to a temporary folder: what the toy judge of the
samples answers, 163 questions by 3 conditions and methods without end. Then each way to a frame is taken in a
process of its own, and its time and the highest memory of that process are printed.
"""

import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from fabula.evaluation.archive.archive import JUDGEMENTS
from fabula.schemas.canonical import canonical_text

WAYS = ("to_arrow", "to_pandas", "to_polars")
REPLY = {"answer": "He pulls them up into the tree", "evidence_status": "supported", "confidence": "high"}


def write(folder: Path, replies: int) -> int:
    judge = {"spec": "compatible:toy", "provider": "compatible", "model": "toy", "reported_model": "toy"}
    base = {
        "schema_version": "1", "protocol": "katha", "kind": "question", "judge": judge, "vote": 0,
        "prompt": "judge/answer_image@1#6b3469a28404", "outcome": "answered", "reason": None,
        "input_tokens": 632, "output_tokens": 42, "cost": 0.0012, "time": "2026-01-01T00:00:00Z",
    }  # fmt: skip
    conditions = ("text", "image", "text_image")
    with (folder / JUDGEMENTS).open("w", encoding="utf-8") as file:
        for number in range(replies):
            story, item = divmod(number // 3 % 25_000 * 7, 7)
            parsed = {**REPLY, "answer": f"{REPLY['answer']} ({number})"}
            row = {
                **base, "condition": conditions[number % 3], "method": f"model-{number // 525_000}",
                "unit": f"kb25k_{story:05d}", "item": f"kb25k_{story:05d}_q{item:02d}_{number}", "seed": None,
                "parsed": parsed, "raw": json.dumps(parsed),
            }  # fmt: skip
            file.write(canonical_text(row) + "\n")
    return (folder / JUDGEMENTS).stat().st_size


def measure(way: str, folder: Path) -> None:
    from fabula.api.results import Evaluation
    from fabula.schemas.judgement import EvaluationManifest

    manifest = EvaluationManifest(kind="katha", protocol={}, subject={}, environment={})
    evaluation = Evaluation(folder, manifest)
    before, start = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.perf_counter()
    cpu = time.process_time()
    frame = getattr(evaluation, way)()
    wall, cpu = time.perf_counter() - start, time.process_time() - cpu
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(
        f"{way:<10} {len(frame):>9,} rows  {wall:6.1f} s  {cpu:6.1f} s of a core  "
        f"peak {peak / 1024:,.0f} MiB ({(peak - before) / 1024:,.0f} more than before)",
        flush=True,
    )


def main(replies: int) -> None:
    with tempfile.TemporaryDirectory(prefix="fabula-frames-") as scratch:
        size = write(Path(scratch), replies)
        print(f"{replies:,} judgements, {size / 2**20:,.0f} MiB", flush=True)
        for way in WAYS:
            command = [sys.executable, __file__, way, scratch]
            subprocess.run(command, check=True)


if __name__ == "__main__":
    if len(sys.argv) == 3:
        measure(sys.argv[1], Path(sys.argv[2]))
    else:
        main(int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000)
