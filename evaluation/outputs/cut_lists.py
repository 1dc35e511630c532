"""Where the shots of an episode are in one video of all of it: a cut list, or cuts that are found.

A cut list says for each shot its first frame and the one behind its last, counted from 0::

    ep_a.cuts.json    {"1:1": [0, 81], "1:2": [81, 162]}
    ep_a.cuts.csv     shot,start,stop
                      1:1,0,81
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from ...media.shot_detection import Method, detect
from ...schemas.csv_table import CsvTable
from ...schemas.file_names import below
from ...schemas.plain_files import read_plain, reason_of
from .named import pairs_once

ENDINGS = (".cuts.json", ".cuts.csv")
COLUMNS = ("shot", "start", "stop")
_MOST_BYTES = 5_000_000
_MOST_DIGITS = 9


class Span(NamedTuple):
    """A stretch of frames: the first one, and the one behind the last."""

    start: int
    stop: int


class BadCuts(ValueError):
    """A cut list that cannot be used; the text says why."""


@dataclass(frozen=True, slots=True)
class Cuts:
    """Where shots are in one video."""

    spans: Mapping[str, Span]  # key of a shot -> its frames; shots that are nowhere are left out
    source: str  # name of the cut list, or what found the cuts
    detected: tuple[Span, ...] = ()  # all shots that were found, in order; none where a list was given


def list_of(folder: Path, episode_id: str) -> Path | None:
    """Return the cut list of an episode; None where there is none."""
    there = [path for ending in ENDINGS if (path := below(folder, f"{episode_id}{ending}")).exists()]
    if len(there) > 1:
        raise BadCuts(f"there are {there[0].name} and {there[1].name}; keep one of them")
    return there[0] if there else None


def read_cuts(path: Path, frames: int) -> Cuts:
    """Return what a cut list says of a video with so many frames.

    Shots are in the order of their frames and share none; frames between two shots belong to neither.
    """
    try:
        text = read_plain(path, _MOST_BYTES, follow=True).decode("utf-8-sig")
        rows = _json_rows(text) if path.name.endswith(ENDINGS[0]) else _csv_rows(text)
    except (OSError, ValueError, RecursionError) as error:
        raise BadCuts(reason_of(error)[:200]) from error
    spans = {key: Span(_frame(key, start), _frame(key, stop)) for key, start, stop in rows}
    if len(spans) < len(rows):
        raise BadCuts("a shot is listed twice")
    ordered = sorted(spans.items(), key=lambda item: item[1])
    before, reached = "", 0
    for key, span in ordered:
        if not span.start < span.stop:
            raise BadCuts(f"shot {key} ends at frame {span.stop}, and begins at {span.start}")
        if span.start < reached:
            raise BadCuts(f"shots {before} and {key} have frames in common")
        if span.stop > frames:
            raise BadCuts(f"shot {key} ends at frame {span.stop}, and the video has {frames} frames")
        before, reached = key, span.stop
    return Cuts(spans, path.name)


def find_cuts(video: Path, keys: Sequence[str], method: Method, device: str = "cpu") -> Cuts:
    """Return the shots that a detector finds, matched to those of the schedule by their order.

    Only as many as the schedule has can be matched: where their number differs, no shot is anywhere, as the
    wrong text would be judged from the first misfit on.
    """
    shots = detect(video, method, device=device)
    in_order = tuple(Span(span.first, span.last + 1) for span in shots.spans)
    spans = dict(zip(keys, in_order, strict=True)) if len(in_order) == len(keys) else {}
    return Cuts(spans, shots.method, in_order)


def _json_rows(text: str) -> list[tuple[str, object, object]]:
    read = json.loads(text, object_pairs_hook=pairs_once)
    if not isinstance(read, dict) or not all(
        isinstance(span, list) and len(span) == 2 for span in read.values()
    ):
        raise ValueError('expected {"SHOT": [START, STOP]}')
    return [(key, *span) for key, span in read.items()]


def _csv_rows(text: str) -> list[tuple[str, object, object]]:
    table = CsvTable(text)
    if table.columns != COLUMNS:
        raise ValueError(f"expected the columns {','.join(COLUMNS)}")
    rows = [[cell.strip() for cell in cells] for _, cells in table.rows()]
    if any(len(row) != len(COLUMNS) for row in rows):
        raise ValueError(f"a line has not {len(COLUMNS)} values")
    return [(row[0], row[1], row[2]) for row in rows]


def _frame(key: str, value: object) -> int:
    text = str(value)
    if isinstance(value, bool) or not (text.isascii() and text.isdigit() and len(text) <= _MOST_DIGITS):
        raise BadCuts(f"shot {key}: {text[:40]!r} is no number of a frame, from 0")
    return int(text)
