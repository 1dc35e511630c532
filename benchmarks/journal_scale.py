"""Measure a journal as it grows: processor time per item, peak memory and the size of the file.

    python benchmarks/journal_scale.py --items 10000,100000 --replies 1

A run of two stages with so many items, a word each, and so many replies of 200 bytes for each item is filled
in at once, with what stages would write. Then every step is a process of its own: ``write`` puts 5,000 more
results and replies through the journal, on disk at the end; ``open`` opens it; ``survey`` passes all stages;
``status`` is `fabula run status`; ``show`` looks one item up; ``export`` copies the journal and reads every
item, as an export of what there is so far does; ``again`` is the run with nothing to do.
"""

import argparse
import json
import resource
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import time
import zlib
from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path

from fabula.engine.calls import Call, call_row
from fabula.engine.codec import LEVEL, Basis, Encoded, content_key, encode, encode_lists
from fabula.engine.execute import Options
from fabula.engine.journal import NAME, Entry, Journal
from fabula.engine.journal_file import PUT_CALL, PUT_RESULT
from fabula.engine.manifest import make_manifest, read_manifest, write_manifest
from fabula.engine.pipeline import SOURCES, Pipeline, load_pipeline
from fabula.engine.replay import replayed
from fabula.engine.sources import Source, fingerprint
from fabula.engine.stage import Made
from fabula.engine.status import run_status, show_item
from fabula.engine.survey import surveyed
from fabula.engine.walk import Walk, root_key
from fabula.models.chat import ChatRequest, Message, Reply, Usage
from fabula.schemas.canonical import canonical_text, digest, sha256_bytes
from fabula.testing.toy_pipeline import HERE, run_toy

PIPELINE = Pipeline("scale", (f"{HERE}:READ", f"{HERE}:WORK"), f"{__name__}:no_outputs")
WORDS, WRITTEN = 977, 5000
CACHE = 2 * 1024 * 1024  # KiB of memory for filling in
OWN = (1, digest({}), digest({}))
STEPS = ("fill", "write", "open", "survey", "status", "show", "export", "again")


def no_outputs(folder: Path, items: object) -> None:
    """Write nothing: what is measured is the journal."""


def fill(folder: Path, items: int, replies: int) -> None:
    """Write what a run of both stages writes, without the stages, and replies; nothing waits for the disk."""
    source = folder / "items.txt"
    source.write_text("item_00000000 word0\n", "utf-8")
    run_toy(folder / "run", source, Options(workers=0, limit=0), pipeline=PIPELINE)
    with source.open("w", encoding="utf-8") as lines:
        lines.writelines(f"item_{number:08d} word{number % WORDS}\n" for number in range(items))
    loaded = load_pipeline(PIPELINE)
    manifest, printed = read_manifest(folder / "run"), fingerprint(Source("lines", source))
    config, root = manifest.config(loaded), [printed.field()]
    listed = (printed.as_json(folder / "run"),)
    write_manifest(folder / "run", make_manifest(loaded, config, listed, manifest.created_at))
    with Journal.open(folder / "run", writable=False) as journal:
        read, work = (Walk(loaded, config, journal).basis(stage) for stage in loaded.stages)
    words = [encode(Made({"words": [f"word{number}"]})) for number in range(WORDS)]
    texts = [encode(Made({"text": f"word{number}!"})) for number in range(WORDS)]
    digests = [(word.outputs or {})["words"] for word in words]

    def key_of(number: int) -> str:
        held = ["made", None, None, "words", digests[number % WORDS]]
        return content_key("read_lines", f"item_{number:08d}", held)

    def results() -> Iterator[tuple[object, ...]]:
        made = encode(Made({SOURCES: root}))
        yield row_of(1, Entry(root_key(root), SOURCES, SOURCES, "item", *OWN, {}, made))
        for number in range(items):
            item, sha256 = f"item_{number:08d}", digests[number % WORDS]
            yield row_of(2 * number + 2, entry(read, item, key_of(number), words[number % WORDS], {}))
            key = work.key(item, [sha256])
            yield row_of(2 * number + 3, entry(work, item, key, texts[number % WORDS], {"words": sha256}))
        lines = ((f"item_{number:08d}", key_of(number)) for number in range(items))
        of, key = {SOURCES: digest(root)}, read.key(SOURCES, [digest(root)])
        yield row_of(2 * items + 2, entry(read, SOURCES, key, encode_lists({"items": lines}), of, "table"))

    with closing(sqlite3.connect(folder / "run" / NAME, isolation_level=None)) as connection:
        for pragma in ("journal_mode=DELETE", "journal_mode=OFF", "synchronous=OFF", f"cache_size=-{CACHE}"):
            connection.execute(f"PRAGMA {pragma}").fetchone()
        connection.execute("BEGIN")
        connection.execute("DELETE FROM results")
        connection.executemany(PUT_RESULT, results())
        connection.executemany(PUT_CALL, calls(items * replies))
        connection.execute("COMMIT")
        connection.execute("PRAGMA journal_mode=WAL").fetchone()


def calls(count: int) -> Iterator[tuple[object, ...]]:
    """Yield calls as rows, each of another question with one of some replies of 200 bytes."""
    rows = [list(call_row(call_of(number))[1]) for number in range(WORDS)]
    asked = call_of(0).asked
    canonical, kept = canonical_text(asked), json.dumps(asked, sort_keys=True)
    for number in range(count):
        new = f"question {number}"
        row = rows[number % WORDS]
        row[0] = sha256_bytes(canonical.replace("question 0", new).encode("utf-8"))
        row[4] = zlib.compress(kept.replace("question 0", new).encode("ascii"), LEVEL)
        yield tuple(row)


def entry(
    basis: Basis, item: str, key: str, made: Encoded, inputs: Mapping[str, str], part: str = "item"
) -> Entry:
    """Return one result as the journal takes it."""
    head = (basis.version, basis.settings_digest, basis.libraries_digest)
    return Entry(key, basis.stage, item, part, *head, inputs, made)


def row_of(seq: int, made: Entry) -> tuple[object, ...]:
    """Return one result as a row."""
    kept, inputs = made.encoded, json.dumps(dict(made.inputs))
    head = (
        seq,
        made.key,
        made.stage,
        made.item,
        made.part,
        made.version,
        made.settings,
        made.libraries,
        inputs,
    )
    return (*head, kept.status, None, None, None, json.dumps(dict(kept.outputs or {})), kept.blob)


def call_of(number: int) -> Call:
    """Return a call with a reply of 200 bytes."""
    request = ChatRequest("openai:scale", (Message("user", (f"question {number}",)),))
    reply = Reply("ok", f"{number:08d} ".ljust(200, "abcdefghij"[number % 10]), usage=Usage(20, 50))
    return Call(request.key(), 0, "work", request.model, request.canonical(), reply, 0.0001, 1)


def write(folder: Path, items: int, replies: int) -> None:
    with Journal.open(folder / "run") as journal:
        for number in range(WRITTEN):
            key = digest(["more", number])
            made = encode(Made({"text": f"word{number % WORDS}!"}))
            journal.put(Entry(key, "more", f"item_{number:08d}", "item", *OWN, {"words": key}, made))
            if replies:
                journal.write(call_row(call_of(items * replies + number)))
        journal.flush()


def open_only(folder: Path, _: int, __: int) -> None:
    with Journal.open(folder / "run", writable=False) as journal:
        assert journal.fact("format") is not None


def survey(folder: Path, items: int, _: int) -> None:
    with surveyed(folder / "run", PIPELINE) as seen:
        assert len(seen.items.live) == items


def status(folder: Path, items: int, replies: int) -> None:
    state = run_status(folder / "run", PIPELINE)
    assert state.totals["made"] == items
    assert sum(use.calls for use in state.models) >= items * replies


def show(folder: Path, items: int, _: int) -> None:
    assert show_item(folder / "run", PIPELINE, f"item_{items // 2:08d}").field("text")


def export(folder: Path, items: int, _: int) -> None:
    with replayed(folder / "run", PIPELINE) as run:
        assert sum(1 for _ in run.items) == items


def again(folder: Path, items: int, _: int) -> None:
    report = run_toy(folder / "run", folder / "items.txt", Options(workers=0), pipeline=PIPELINE)
    assert sum(stage.reused for stage in report.stages) == 2 * items


COMMANDS = dict(zip(STEPS, (fill, write, open_only, survey, status, show, export, again), strict=True))


def measured(step: str, folder: Path, items: int, replies: int) -> list[float]:
    """Return seconds, processor seconds and peak resident MiB of one step in a process of its own."""
    command = [sys.executable, __file__, "--step", step, "--folder", str(folder)]
    command += ["--items", str(items), "--replies", str(replies)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    figures: list[float] = json.loads(done.stdout)
    return figures


def run_step(step: str, folder: Path, items: int, replies: int) -> None:
    began, used = time.perf_counter(), time.process_time()
    COMMANDS[step](folder, items, replies)
    figures = [time.perf_counter() - began, time.process_time() - used]
    print(json.dumps([*figures, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024]))


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
    print("| items | replies | step | seconds | CPU s | CPU us/item | peak MiB | journal MB |")
    print("|---:|---:|---|---:|---:|---:|---:|---:|")
    for items in sizes:
        folder = given.folder or Path(tempfile.mkdtemp(prefix="fabula-scale-"))
        folder.mkdir(parents=True, exist_ok=True)
        for step in given.steps.split(","):
            seconds, used, peak = measured(step, folder, items, given.replies)
            size = (folder / "run" / NAME).stat().st_size / 1e6
            each = used / (WRITTEN if step == "write" else items) * 1e6
            counts = f"{items:,} | {items * given.replies:,} | {step}"
            row = f"{counts} | {seconds:.1f} | {used:.1f} | {each:.0f} | {peak:.0f} | {size:.0f}"
            print(f"| {row} |", flush=True)
        if given.folder is None:
            shutil.rmtree(folder)


if __name__ == "__main__":
    main()
