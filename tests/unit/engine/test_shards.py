"""Shards of toy runs, merged: the bytes of one run, whatever is killed, and refusals that name the shard."""

import json
import random
import shutil
import tracemalloc
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fabula.engine import check_journal, runner, spilled, walk
from fabula.engine import journal as journals
from fabula.engine.execute import Options
from fabula.engine.journal import Entry, Journal, encode
from fabula.engine.machines.merging import Merge, MergedRun, merge_shards
from fabula.engine.pipeline import WAITS, Pipeline, Shard
from fabula.engine.running import Again, RunKind, continue_as
from fabula.engine.spilled import Spilled
from fabula.engine.stage import Made
from fabula.engine.status import RunReport, run_status, show_item
from fabula.engine.survey import surveyed
from fabula.errors import ConfigError, RunError, TargetError
from fabula.schemas.canonical import digest, digest_rows
from fabula.testing.toy_pipeline import HERE, grouping, run_toy, toy

OF = 3
KIND = RunKind(toy(), lambda _request, _reporter: None)
Build = Callable[..., RunReport]


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """Forty items; one is empty, one is rejected, one fails."""
    path = tmp_path / "lines.txt"
    text = "".join(f"i{number:02} word{number % 7} cat\n" for number in range(37))
    path.write_text(f"{text}empty\nx1 reject\nx2 fail\n")
    return path


@pytest.fixture
def build(tmp_path: Path, source: Path) -> Build:
    """Run a toy pipeline into a folder, a shard where one is named."""

    def start(
        name: str, shard: str | None = None, pipeline: Pipeline | None = None, **given: Any
    ) -> RunReport:
        options = Options(workers=0, shard=None if shard is None else Shard.parse(shard), **given)
        return run_toy(tmp_path / name, source, options, pipeline, sets=("run.threshold=0.5",))

    return start


def merge(*folders: Path, out: Path, kind: RunKind = KIND, **how: Any) -> MergedRun:
    return merge_shards(folders, out, kind, Merge(workers=0, **how), kind.make)


def files_of(run: Path) -> dict[str, bytes]:
    """Every file of a run but its journal."""
    there = [path for path in run.rglob("*") if path.is_file() and not path.name.startswith("journal.sqlite")]
    return {str(path.relative_to(run)): path.read_bytes() for path in there if path.name != ".lock"}


def shards(build: Build, tmp_path: Path, of: int = OF, **given: Any) -> list[Path]:
    for number in range(1, of + 1):
        build(f"part{number}", f"{number}/{of}", **given)
    return [tmp_path / f"part{number}" for number in range(1, of + 1)]


def test_shard_when_items_are_shared_out_gives_each_to_one() -> None:
    items = [f"item {number}" for number in range(4000)]
    parts = [[item for item in items if Shard(number=number, of=8).holds(item)] for number in range(1, 9)]
    assert sorted(item for part in parts for item in part) == sorted(items)
    assert all(400 < len(part) < 600 for part in parts)  # 500 each, and five standard deviations


@pytest.mark.parametrize("text", ["0/3", "4/3", "1", "a/b", "1/3/5", "-1/3", ""])
def test_shard_when_there_is_no_such_one_says_how_to_write_it(text: str) -> None:
    with pytest.raises(ConfigError, match="--shard 1/8"):
        Shard.parse(text)


@pytest.mark.parametrize("pipeline", [toy(), grouping()], ids=["gathers", "groups"])
def test_merge_when_shards_are_finished_writes_the_bytes_of_one_run(build, tmp_path, pipeline):
    build("whole", pipeline=pipeline)
    folders = shards(build, tmp_path, pipeline=pipeline)
    merge(*reversed(folders), out=tmp_path / "merged", kind=replace(KIND, pipeline=pipeline))
    assert files_of(tmp_path / "merged") == files_of(tmp_path / "whole")


def test_shard_when_run_works_on_its_own_items_up_to_what_needs_all(build: Build, tmp_path: Path) -> None:
    report = build("part", "2/3")
    own = {f"i{number:02}" for number in range(37) if Shard(number=2, of=3).holds(f"i{number:02}")}
    waiting = [item for item in report.items if item.status == "pending"]
    assert {item.id for item in waiting} == own and {(i.stage, i.reason) for i in waiting} == {
        ("count", WAITS)
    }
    assert not (tmp_path / "part/lines.jsonl").exists()
    assert json.loads((tmp_path / "part/run.json").read_text())["shard"] == {"number": 2, "of": 3}
    status = run_status(tmp_path / "part", toy(), explain=True)
    assert status.totals["pending"] == len(own) and "shard 2/3" in " ".join(status.notes)


def test_shards_when_merged_in_rounds_run_every_stage_and_give_the_same_bytes(build, tmp_path):
    build("whole")
    folders, out = shards(build, tmp_path), tmp_path / "merged"
    waiting = merge(*folders, out=out, gather_only=True).waiting
    assert waiting == 37 and not (out / "lines.jsonl").exists()
    reports = [build(folder.name, f"{number}/3", reuse=(out,)) for number, folder in enumerate(folders, 1)]
    assert sum(report.totals["made"] for report in reports) == 37
    assert {stage.name: stage.ran for stage in reports[0].stages}["assemble"] == reports[0].totals["made"]
    assert sum(run_status(folder, toy()).totals["made"] for folder in folders) == 37
    continue_as(KIND, folders[0], Again(workers=0))  # remembers what it was given
    merged = merge(*folders, out=out)
    assert files_of(out) == files_of(tmp_path / "whole")
    assert {stage.name: stage.reused for stage in merged.report.stages} == dict.fromkeys(
        ("read_lines", "work", "count", "number", "shorten", "assemble"), 0
    )


def test_run_when_another_has_the_same_results_takes_them_over(build: Build, tmp_path: Path) -> None:
    build("first")
    report = build("second", reuse=(tmp_path / "first",))
    ran = {stage.name: stage.ran for stage in report.stages}
    assert (ran["work"], ran["shorten"], ran["assemble"]) == (1, 0, 0), "only what failed was tried again"
    shutil.rmtree(tmp_path / "first")
    assert build("second").totals["made"] == 37
    assert files_of(tmp_path / "second")["lines.jsonl"]


def test_merge_when_killed_while_copying_goes_on_to_the_same_bytes(build, tmp_path, monkeypatch):
    from fabula.engine.machines import merging

    build("whole")
    folders, out = shards(build, tmp_path), tmp_path / "merged"
    monkeypatch.setattr(merging, "_TOGETHER", 5)
    real = merging._Copying._together
    for steps in (3, 9, 20):
        left = iter(range(steps))

        def stopping(copying: Any, left: Iterator[int] = left) -> Any:
            if next(left, None) is None:
                raise KeyboardInterrupt
            return real(copying)

        with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
            patch.setattr(merging._Copying, "_together", stopping)
            merge(*folders, out=out)
    merge(*folders, out=out)
    assert files_of(out) == files_of(tmp_path / "whole")


def test_merge_when_a_shard_was_made_further_since_takes_what_is_new(build: Build, tmp_path: Path) -> None:
    folders, out = shards(build, tmp_path), tmp_path / "merged"
    assert merge(*folders, out=out).report.totals == {"made": 37, "rejected": 2, "failed": 1, "pending": 0}
    number = next(number for number in (1, 2, 3) if Shard(number=number, of=3).holds("x2"))
    with Journal.open(folders[number - 1]) as journal:  # as a retry would leave it
        (head,) = [head for head in journal.heads("work") if head.status == "failed"]
        origin = journal.origin(head.seq)
        made = encode(Made({"text": "mended"}))
        journal.put(Entry(head.key, *origin[1:], encoded=made))
    assert merge(*folders, out=out).report.totals["made"] == 38


def test_merge_when_shards_and_sources_have_moved_finds_them_by_content(build, tmp_path, source):
    build("whole")
    moved = [part.rename(tmp_path / f"elsewhere-{part.name}") for part in shards(build, tmp_path)]
    (tmp_path / "new").mkdir()
    place = source.rename(tmp_path / "new" / source.name)
    merge(*moved, out=tmp_path / "merged", sources=(place,))
    whole, merged = files_of(tmp_path / "whole"), files_of(tmp_path / "merged")
    assert whole["lines.jsonl"] == merged["lines.jsonl"]


CASES = {
    "missing": "missing: shard 2/3", "twice": "shard 1/3 is there twice", "whole": "part2 is a whole run",
    "settings": "suffix|settings of work", "count": "numbers of shards", "sources": "source 1 .lines.txt.",
    "time": "creation time", "unfinished": "part2 is not finished",
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_merge_when_shards_do_not_belong_together_names_them(case, build, tmp_path, source, monkeypatch):
    folders = shards(build, tmp_path)
    shutil.rmtree(folders[1])
    shard = {"twice": "1/3", "whole": None, "count": "2/4"}.get(case, "2/3")
    if case == "missing":
        del folders[1]
    elif case == "settings":
        second = Options(workers=0, shard=Shard.parse(shard))
        run_toy(folders[1], source, second, sets=("work.suffix='?'", "run.threshold=0.5"))
    else:
        if case == "sources":
            source.write_text(source.read_text() + "new cat\n")
        if case == "time":
            monkeypatch.setenv("SOURCE_DATE_EPOCH", "1800000000")
        build("part2", shard, **({"limit": 2} if case == "unfinished" else {}))
    with pytest.raises(RunError, match=CASES[case]):
        merge(*folders, out=tmp_path / "merged")
    assert not (tmp_path / "merged").exists()


# -- What a walk knows of items, on disk once there are many: the same runs, and a bounded share of memory

Run = Callable[..., RunReport]


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nearly nothing stays in memory, and nearly nothing is read at once."""
    for module in (spilled, journals, walk, runner):
        monkeypatch.setattr(module, "HELD", 2)
    for module, name in (
        (spilled, "_TOGETHER"), (journals, "_HEADS_TOGETHER"), (journals, "_PIECE"), (walk, "TOGETHER"),
    ):  # fmt: skip
        monkeypatch.setattr(module, name, 2)


def test_spilled_when_used_at_random_is_as_a_dictionary(small: None) -> None:
    rng, mine, peer = random.Random(3), Spilled(), {}
    for number in range(3000):
        key = f"k{rng.randrange(60)}"
        match rng.randrange(5):
            case 0 | 1:
                mine[key] = peer[key] = (number, "x")
            case 2 if key in peer:
                del mine[key], peer[key]
            case 3:
                assert (key in mine, mine.get(key)) == (key in peer, peer.get(key))
            case _:
                assert len(mine) == len(peer) and list(mine) == list(peer)
    assert list(mine.items()) == list(peer.items()) and list(mine.values()) == list(peer.values())
    assert list(mine.in_order()) == sorted(peer) and len(mine.in_order()) == len(peer)
    with pytest.raises(KeyError):
        mine["gone"]
    with pytest.raises(KeyError):
        del mine["gone"]


@pytest.mark.parametrize("rows", [[], ["a"], [["a", "b"], ["c", {"d": 1}]] * 3])
def test_digest_rows_when_a_list_is_hashed_part_by_part_is_its_digest(rows, monkeypatch):
    monkeypatch.setattr("fabula.schemas.canonical._ROWS", 2)
    assert digest_rows(iter(rows)) == digest(rows)


def views(folder: Path, pipeline: Pipeline, changed: str) -> list[object]:
    statuses = [run_status(folder, pipeline, True, sets) for sets in ((), (f"{changed}.suffix=?",))]
    return [*(status.as_json() for status in statuses), show_item(folder, pipeline, "c").as_json()]


@pytest.mark.parametrize(("pipeline", "changed"), [(toy(), "work"), (grouping(), "spell")])
def test_execute_when_items_are_on_disk_gives_the_same_run(tmp_path, lines, run, request, pipeline, changed):
    more = "".join(f"i{number} w{number % 3} x\n" for number in range(9))
    lines.write_text(f"c cat\na ant reject\nb bee\nd dog here\ne\n{more}")
    plain, other = tmp_path / "plain", tmp_path / "other"
    written = run(folder=plain, pipeline=pipeline)
    seen = views(plain, pipeline, changed)
    request.getfixturevalue("small")
    assert run(folder=other, pipeline=pipeline) == written
    assert views(other, pipeline, changed) == seen
    for name in ("lines.jsonl", "run.json", "report.json"):
        assert (plain / name).read_bytes() == (other / name).read_bytes()
    assert sum(stage.ran for stage in run(folder=other, pipeline=pipeline).stages) == 0
    with pytest.raises(RunError, match="i7"):
        show_item(other, pipeline, "i77")


def look(folder: Path, count: int) -> None:
    with surveyed(folder, toy()) as survey:
        assert len(survey.items.stops) == survey.counts["work"].made == count


def check(folder: Path, count: int) -> None:
    report = check_journal.check_journal(folder)
    assert report.rows["results"] == 2 * count + 2 and not report.findings


def expand(folder: Path, count: int) -> None:
    pipeline = Pipeline("read", (f"{HERE}:READ",), f"{HERE}:broken_finish")
    with pytest.raises(TargetError, match="No space left"):  # when all items are written and were read again
        run_toy(folder / "read", folder.parent / "lines.txt", pipeline=pipeline)
    with Journal.open(folder / "read", writable=False) as journal:
        assert sum(1 for _ in journal.heads("read_lines")) == count


@pytest.mark.slow
@pytest.mark.parametrize(("do", "most"), [(look, 40), (check, 160), (expand, 400)])
def test_memory_when_items_are_many_times_as_many_holds_no_more_of_them(
    tmp_path, run, lines, monkeypatch, do, most
):
    peaks = []
    for count in (400, 800, 4000):  # the first has everything loaded
        lines.write_text("".join(f"item_{number:05d} word\n" for number in range(count)))
        run(folder=tmp_path / f"{count}", stages=("read_lines", "work"))
        with monkeypatch.context() as patch:
            for module in (spilled, journals, walk, runner):
                patch.setattr(module, "HELD", 200)
            for module in (journals, check_journal):
                patch.setattr(module, "_PIECE", 1000)
            patch.setattr(journals, "_HEADS_TOGETHER", 100)
            tracemalloc.start()
            do(tmp_path / f"{count}", count)
            peaks.append(tracemalloc.get_traced_memory()[1])
            tracemalloc.stop()
    # Bytes an item: the list as it is stored, three times. An expand that holds its items takes 770.
    assert (peaks[2] - peaks[1]) / 3200 < most, peaks
