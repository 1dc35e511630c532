"""Measure a journal as it grows: time per item, peak memory and the size of the file.

    python benchmarks/journal_scale.py --items 10000,100000 --replies 1

A run of two stages is made with so many items, a word each, and so many replies of 200 bytes for each
item are put beside them. Then every step is a process of its own: ``open`` opens the journal; ``survey``
passes all stages; ``status`` is `fabula run status`; ``show`` looks one item up; ``export`` copies the
journal and reads every item, as an export of what there is so far does; ``again`` is the run with nothing to
do.
"""

import argparse
import json
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from fabula.engine.calls import Call, call_row
from fabula.engine.codec import Basis, Encoded, content_key, encode
from fabula.engine.execute import Options
from fabula.engine.journal import NAME, Entry, Journal
from fabula.engine.manifest import make_manifest, read_manifest, write_manifest
from fabula.engine.pipeline import SOURCES, Pipeline, load_pipeline
from fabula.engine.replay import replayed
from fabula.engine.sources import Source, fingerprint
from fabula.engine.stage import Made
from fabula.engine.status import run_status, show_item
from fabula.engine.survey import surveyed
from fabula.engine.walk import Walk, root_key
from fabula.models.chat import ChatRequest, Message, Reply, Usage
from fabula.schemas.canonical import digest
from fabula.testing.toy_pipeline import HERE, run_toy

PIPELINE = Pipeline("scale", (f"{HERE}:READ", f"{HERE}:WORK"), f"{__name__}:no_outputs")
TOGETHER = 1000
STEPS = ("make", "ask", "open", "survey", "status", "show", "export", "again")


def no_outputs(folder: Path, items: object) -> None:
    """Write nothing: what is measured is the journal."""


def make(folder: Path, items: int, _: int) -> None:
    """Write what a run of both stages writes, without the stages."""
    source = folder / "items.txt"
    source.write_text("item_00000000 word0\n", "utf-8")
    run_toy(folder / "run", source, Options(workers=0, limit=0), pipeline=PIPELINE)
    with source.open("w", encoding="utf-8") as lines:
        lines.writelines(f"item_{number:08d} word{number % 977}\n" for number in range(items))
    loaded = load_pipeline(PIPELINE)
    manifest, printed = read_manifest(folder / "run"), fingerprint(Source("lines", source))
    config, root = manifest.config(loaded), [printed.field()]
    listed = (printed.as_json(folder / "run"),)
    write_manifest(folder / "run", make_manifest(loaded, config, listed, manifest.created_at))
    with Journal.open(folder / "run") as journal:
        read, work = (Walk(loaded, config, journal).basis(stage) for stage in loaded.stages)
        put(journal, Basis(SOURCES, 1, {}, {}), SOURCES, root_key(root), encode(Made({SOURCES: root})))
        listing = []
        for number in range(items):
            item, words = f"item_{number:08d}", encode(Made({"words": [f"word{number % 977}"]}))
            (sha256,) = (words.outputs or {}).values()
            key = content_key("read_lines", item, ["made", None, None, "words", sha256])
            put(journal, read, item, key, words)
            text = encode(Made({"text": f"word{number % 977}!"}))
            put(journal, work, item, work.key(item, [sha256]), text, {"words": sha256})
            listing.append([item, key])
        key, table = read.key(SOURCES, [digest(root)]), encode(Made({"items": listing}))
        put(journal, read, SOURCES, key, table, {SOURCES: digest(root)}, "table")


def put(
    journal: Journal, basis: Basis, item: str, key: str, encoded: Encoded, inputs: object = None,
    part: str = "item",
) -> None:  # fmt: skip
    """Queue one result."""
    version, settings, libraries = basis.version, basis.settings_digest, basis.libraries_digest
    given = inputs or {}
    journal.put(Entry(key, basis.stage, item, part, version, settings, libraries, given, encoded))


def ask(folder: Path, items: int, replies: int) -> None:
    with Journal.open(folder / "run") as journal:
        for number in range(items * replies):
            request = ChatRequest("openai:scale", (Message("user", (f"question {number}",)),))
            text = f"{number:08d} ".ljust(200, "abcdefghij"[number % 10])
            usage = Usage(20, 50)
            call = Call(
                request.key(), 0, "work", request.model, request.canonical(),
                Reply("answered", text, usage=usage), 0.0001, 1,
            )  # fmt: skip
            journal.write(call_row(call))


def open_only(folder: Path, _: int, __: int) -> None:
    with Journal.open(folder / "run", writable=False) as journal:
        assert journal.fact("format") is not None


def survey(folder: Path, items: int, _: int) -> None:
    with surveyed(folder / "run", PIPELINE) as seen:
        assert len(seen.items.live) == items


def status(folder: Path, items: int, replies: int) -> None:
    state = run_status(folder / "run", PIPELINE)
    assert state.totals["made"] == items
    assert sum(use.calls for use in state.models) == items * replies


def show(folder: Path, items: int, _: int) -> None:
    assert show_item(folder / "run", PIPELINE, f"item_{items // 2:08d}").field("text")


def export(folder: Path, items: int, _: int) -> None:
    with replayed(folder / "run", PIPELINE) as run:
        assert sum(1 for _ in run.items) == items


def again(folder: Path, items: int, _: int) -> None:
    report = run_toy(folder / "run", folder / "items.txt", Options(workers=0), pipeline=PIPELINE)
    assert sum(stage.reused for stage in report.stages) == 2 * items


COMMANDS = dict(zip(STEPS, (make, ask, open_only, survey, status, show, export, again), strict=True))


def measured(step: str, folder: Path, items: int, replies: int) -> tuple[float, float]:
    """Return seconds and the peak resident memory, in MiB, of one step in a process of its own."""
    command = [sys.executable, __file__, "--step", step, "--folder", str(folder)]
    done = subprocess.run(
        [*command, "--items", str(items), "--replies", str(replies)],
        capture_output=True,
        text=True,
        check=True,
    )
    seconds, peak = json.loads(done.stdout)
    return seconds, peak


def run_step(step: str, folder: Path, items: int, replies: int) -> None:
    began = time.perf_counter()
    COMMANDS[step](folder, items, replies)
    seconds = time.perf_counter() - began
    print(json.dumps([seconds, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024]))


def main() -> None:
    """Print one row for each size and step."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--items", default="10000,100000")
    parser.add_argument("--replies", type=int, default=1, help="for each item")
    parser.add_argument("--steps", default=",".join(STEPS))
    parser.add_argument("--step")
    parser.add_argument("--folder", type=Path, help="keep the run here, and go on with one that is there")
    given = parser.parse_args()
    sizes = [int(size) for size in given.items.split(",")]
    if given.step:
        run_step(given.step, given.folder, sizes[0], given.replies)
        return
    print("| items | replies | step | seconds | us/item | peak MiB | journal MB |")
    print("|---:|---:|---|---:|---:|---:|---:|")
    for items in sizes:
        folder = given.folder or Path(tempfile.mkdtemp(prefix="fabula-scale-"))
        folder.mkdir(parents=True, exist_ok=True)
        for step in given.steps.split(","):
            seconds, peak = measured(step, folder, items, given.replies)
            size = (folder / "run" / NAME).stat().st_size / 1e6
            counts, each = f"{items:,} | {items * given.replies:,}", seconds / items * 1e6
            print(f"| {counts} | {step} | {seconds:.1f} | {each:.0f} | {peak:.0f} | {size:.0f} |", flush=True)
        if given.folder is None:
            shutil.rmtree(folder)


if __name__ == "__main__":
    main()
