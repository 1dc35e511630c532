"""Measure a journal as it grows: processor time per item, peak memory and the size of the file.

    python benchmarks/journal_scale.py --items 10000,100000 --replies 1

A run of two stages with so many items, a word each, and so many replies of 200 bytes for each item is filled
in at once, with what stages would write. Then every step is a process of its own: ``write`` puts 5,000 more
results and replies through the journal, on disk at the end; ``open`` opens it; ``survey`` passes all stages;
``status`` is `fabula run status`; ``show`` looks one item up; ``export`` copies the journal and reads every
item, as an export of what there is so far does; ``again`` is the run with nothing to do; ``check`` is
`fabula run check`; ``expand`` makes all items, in a run of their own; ``gather`` runs one more stage that is
given all items; ``merge`` makes one run of two shards, which are filled in first.
"""

import argparse
import json
import os
import resource
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import time
import zlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing
from pathlib import Path

from fabula.engine.calls import Call, call_row
from fabula.engine.check_journal import check_journal
from fabula.engine.execute import Options
from fabula.engine.journal import (
    LEVEL,
    NAME,
    Basis,
    Encoded,
    Entry,
    Journal,
    content_key,
    encode,
    encode_lists,
)
from fabula.engine.journal_file import PUT_CALL, PUT_META, PUT_RESULT
from fabula.engine.machines.merging import Merge, merge_shards
from fabula.engine.manifest import EPOCH, Source, fingerprint, make_manifest, read_manifest, write_manifest
from fabula.engine.pipeline import SOURCES, STATE, Pipeline, Shard, load_pipeline
from fabula.engine.running import RunKind
from fabula.engine.salvage import replayed
from fabula.engine.stage import Made
from fabula.engine.status import run_status, show_item
from fabula.engine.survey import surveyed
from fabula.engine.walk import Walk, root_key
from fabula.models.chat import ChatRequest, Message, Reply, Usage
from fabula.schemas.canonical import canonical_text, digest, sha256_bytes
from fabula.testing.toy_pipeline import HERE, run_toy

FINISH = f"{__name__}:no_outputs"
PIPELINE = Pipeline("scale", (f"{HERE}:READ", f"{HERE}:WORK"), FINISH)
EXPANDING = Pipeline("scale-expand", (f"{HERE}:READ",), FINISH)
GATHERING = Pipeline("scale", (f"{HERE}:READ", f"{HERE}:WORK", f"{HERE}:COUNT"), FINISH)
WORDS, WRITTEN = 977, 5000
CACHE = 2 * 1024 * 1024  # KiB of memory for filling in
OWN = (1, digest({}), digest({}))
SHARDS = (Shard(number=1, of=2), Shard(number=2, of=2))


def no_outputs(folder: Path, items: object) -> None:
    """Write nothing: what is measured is the journal."""


def fill(folder: Path, items: int, replies: int) -> None:
    """Write what a run of both stages writes, without the stages, and replies; nothing waits for the disk."""
    fill_run(folder, "run", items, replies)


def fill_shards(folder: Path, items: int, replies: int) -> None:
    """Write two shards in the same way, each with all items and half of the work and of the replies."""
    for shard in SHARDS:
        fill_run(folder, f"shard-{shard.number}", items, replies, shard)
    shutil.rmtree(folder / "merged", ignore_errors=True)


def fill_run(folder: Path, name: str, items: int, replies: int, shard: Shard | None = None) -> None:
    source, run = folder / "items.txt", folder / name
    shutil.rmtree(run, ignore_errors=True)
    source.write_text("item_00000000 word0\n", "utf-8")
    run_toy(run, source, Options(workers=0, limit=0, shard=shard), pipeline=PIPELINE)
    with source.open("w", encoding="utf-8") as lines:
        lines.writelines(f"item_{number:08d} word{number % WORDS}\n" for number in range(items))
    loaded = load_pipeline(PIPELINE)
    manifest, printed = read_manifest(run), fingerprint(Source("lines", source))
    config, root = manifest.config(loaded), [printed.field()]
    listed = (printed.as_json(run),)
    write_manifest(run, make_manifest(loaded, config, listed, manifest.created_at, shard))
    with Journal.open(run, writable=False) as journal:
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
            if shard is not None and not shard.holds(item):
                continue
            key = work.key(item, [sha256])
            yield row_of(2 * number + 3, entry(work, item, key, texts[number % WORDS], {"words": sha256}))
        lines = ((f"item_{number:08d}", key_of(number)) for number in range(items))
        of, key = {SOURCES: digest(root)}, read.key(SOURCES, [digest(root)])
        yield row_of(2 * items + 2, entry(read, SOURCES, key, encode_lists({"items": lines}), of, "table"))

    with closing(sqlite3.connect(run / NAME, isolation_level=None)) as connection:
        for pragma in ("journal_mode=DELETE", "journal_mode=OFF", "synchronous=OFF", f"cache_size=-{CACHE}"):
            connection.execute(f"PRAGMA {pragma}").fetchone()
        connection.execute("BEGIN")
        connection.execute("DELETE FROM results")
        connection.executemany(PUT_RESULT, results())
        asked = (
            range(items * replies) if shard is None else range(shard.number - 1, items * replies, shard.of)
        )
        connection.executemany(PUT_CALL, calls(asked))
        if shard is not None:
            connection.execute(PUT_META, (STATE, json.dumps({"finished": True, "reuse": []})))
        connection.execute("COMMIT")
        connection.execute("PRAGMA journal_mode=WAL").fetchone()


def calls(numbers: Iterable[int]) -> Iterator[tuple[object, ...]]:
    """Yield calls as rows, each of another question with one of some replies of 200 bytes."""
    rows = [list(call_row(call_of(number))[1]) for number in range(WORDS)]
    asked = call_of(0).asked
    canonical, kept = canonical_text(asked), json.dumps(asked, sort_keys=True)
    for number in numbers:
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


def check(folder: Path, items: int, replies: int) -> None:
    report = check_journal(folder / "run")
    assert not report.findings and report.rows["results"] >= 2 * items
    assert report.rows["calls"] >= items * replies


def expand(folder: Path, items: int, _: int) -> None:
    report = run_toy(folder / "expanded", folder / "items.txt", Options(workers=0), pipeline=EXPANDING)
    assert report.totals["made"] == items


def gather(folder: Path, items: int, _: int) -> None:
    report = run_toy(folder / "run", folder / "items.txt", Options(workers=0), pipeline=GATHERING)
    assert report.stages[-1].ran == items


def merge(folder: Path, items: int, replies: int) -> None:
    kind = RunKind(PIPELINE, lambda *_: None)
    shards = [folder / f"shard-{shard.number}" for shard in SHARDS]
    merged = merge_shards(shards, folder / "merged", kind, Merge(workers=0), kind.execute)
    assert merged.report.totals["made"] == items
    assert merged.report.models[0].calls == items * replies


def forget_expanded(folder: Path, _: int, __: int) -> None:
    shutil.rmtree(folder / "expanded", ignore_errors=True)


def forget_gathered(folder: Path, _: int, __: int) -> None:
    with closing(sqlite3.connect(folder / "run" / NAME)) as connection, connection:
        connection.execute("DELETE FROM results WHERE stage = 'count'")


COMMANDS = {
    "fill": fill, "write": write, "open": open_only, "survey": survey, "status": status, "show": show,
    "export": export, "again": again, "check": check, "expand": expand, "gather": gather, "merge": merge,
}  # fmt: skip
BEFORE = {"expand": forget_expanded, "gather": forget_gathered, "merge": fill_shards}
"""What is done before a step in a process of its own, and not measured."""
WRITES = {"expand": "expanded", "merge": "merged"}
"""The folder of the journal that a step writes, if not that of the run."""


def measured(step: str, folder: Path, items: int, replies: int) -> list[float]:
    """Return seconds, processor seconds and peak resident MiB of one step in a process of its own."""
    command = [sys.executable, __file__, "--folder", str(folder), "--items", str(items)]
    command += ["--replies", str(replies), "--step"]
    if step in BEFORE:
        subprocess.run([*command, f"before-{step}"], check=True, stdout=subprocess.DEVNULL)
    done = subprocess.run([*command, step], stdout=subprocess.PIPE, text=True, check=True)
    figures: list[float] = json.loads(done.stdout)
    return figures


def run_step(step: str, folder: Path, items: int, replies: int) -> None:
    os.environ.setdefault(EPOCH, "1767225600")  # shards of a run have the same time of creation
    if step.startswith("before-"):
        BEFORE[step.removeprefix("before-")](folder, items, replies)
    began, used = time.perf_counter(), time.process_time()
    if step in COMMANDS:
        COMMANDS[step](folder, items, replies)
    figures = [time.perf_counter() - began, time.process_time() - used]
    print(json.dumps([*figures, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024]))


def main() -> None:
    """Print one row for each size and step."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--items", default="10000,100000")
    parser.add_argument("--replies", type=int, default=1, help="for each item")
    parser.add_argument("--steps", default=",".join(COMMANDS))
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
            size = (folder / WRITES.get(step, "run") / NAME).stat().st_size / 1e6
            each = used / (WRITTEN if step == "write" else items) * 1e6
            counts = f"{items:,} | {items * given.replies:,} | {step}"
            row = f"{counts} | {seconds:.1f} | {used:.1f} | {each:.0f} | {peak:.0f} | {size:.0f}"
            print(f"| {row} |", flush=True)
        if given.folder is None:
            shutil.rmtree(folder)


if __name__ == "__main__":
    main()
