"""What a walk knows of items, on disk once there are many: the same runs, and a bounded share of memory."""

import random
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pytest

from fabula.engine import check_journal, runner, spilled, walk
from fabula.engine import journal as journals
from fabula.engine.journal import Journal
from fabula.engine.pipeline import Pipeline
from fabula.engine.spilled import Spilled
from fabula.engine.status import RunReport, run_status, show_item
from fabula.engine.survey import surveyed
from fabula.errors import RunError, TargetError
from fabula.schemas.canonical import digest, digest_rows
from fabula.testing.toy_pipeline import HERE, grouping, run_toy, toy

Run = Callable[..., RunReport]


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nearly nothing stays in memory, and nearly nothing is read at once."""
    for module in (spilled, journals, walk, runner):
        monkeypatch.setattr(module, "HELD", 2)
    for module, name in (
        (spilled, "_TOGETHER"), (journals, "_HEADS_TOGETHER"), (journals, "_PIECE"), (walk, "_TOGETHER"),
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
def test_digest_rows_when_a_list_is_hashed_part_by_part_is_its_digest(
    rows: list[object], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fabula.schemas.canonical._ROWS", 2)
    assert digest_rows(iter(rows)) == digest(rows)


def views(folder: Path, pipeline: Pipeline, changed: str) -> list[object]:
    statuses = [run_status(folder, pipeline, True, sets) for sets in ((), (f"{changed}.suffix=?",))]
    return [*(status.as_json() for status in statuses), show_item(folder, pipeline, "c").as_json()]


@pytest.mark.parametrize(("pipeline", "changed"), [(toy(), "work"), (grouping(), "spell")])
def test_execute_when_items_are_on_disk_gives_the_same_run(
    tmp_path: Path,
    lines: Path,
    run: Run,
    request: pytest.FixtureRequest,
    pipeline: Pipeline,
    changed: str,
) -> None:
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
    tmp_path: Path,
    run: Run,
    lines: Path,
    monkeypatch: pytest.MonkeyPatch,
    do: Callable[[Path, int], None],
    most: int,
) -> None:
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
