"""A build, its validation and its release do work in proportion to a sentence's length: counted in calls."""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType

import pytest

import fabula
from fabula.builders.katha.building import BuildOptions, build_katha
from fabula.builders.shots.building import ShotOptions, build_shots
from fabula.kinds.verbs import pack
from fabula.releases.options import PackOptions

pytestmark = pytest.mark.slow

UNITS = (
    "the fox ran and the hen saw him because he was hungry ",
    "the fox ran home, the hen was sad, ",
    '"he said, and ran" ',
)
SIZES = (8000, 16000, 32000)
SLACK = 2.3
"""How many times what is added may grow where the length grows twofold; in proportion it grows by 2."""


def story(folder: Path, size: int) -> Path:
    """A story of a single sentence, in which each unit is repeated for a third of the length."""
    text = "".join((unit * (size // len(unit)))[: size // len(UNITS)].strip() + " " for unit in UNITS).strip()
    row = {
        "id": "long", "title": "The Fox", "language": "en", "source_collection": "own",
        "text": f"Now {text}.", "rights_status": "public_domain_or_rights_compatible",
        "moral_label": "honesty", "narrative_type": "moral_semantic",
    }  # fmt: skip
    path = folder / f"{size}.jsonl"
    path.write_text(json.dumps(row) + "\n", "utf-8")
    return path


def calls_of(work: Callable[[], object]) -> int:
    count = 0

    def look(_frame: FrameType, event: str, _argument: object) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(look)
    try:
        work()
    finally:
        sys.setprofile(before)
    return count


def completed(run: Path) -> Path:
    """The record of a run as a person would hand it in, with a word for everything that rules leave out."""
    record = json.loads((run / "records.jsonl").read_text("utf-8"))["payload"]["record"]
    optional = {"intention", "emotion", "moral_target", "visual_evidence"}
    words = {"transition_type": "cause_effect"}
    lists = {
        name: [
            {
                key: words.get(key, "ran") if value is None and key not in optional else value
                for key, value in part.items()
            }
            for part in record[name]
        ]
        for name in ("scenes", "transitions")
    }
    given = {"story_id": record["story_id"], "narrative_type": record["narrative_type"], **lists}
    path = run.with_suffix(".records.jsonl")
    path.write_text(json.dumps(given) + "\n", "utf-8")
    return path


def steps(folder: Path, size: int) -> dict[str, Callable[[], object]]:
    source, run, shots = story(folder, size), folder / f"run-{size}", folder / f"shots-{size}"
    whole = folder / f"whole-{size}"
    options = PackOptions("0.1.0", license="CC-BY-4.0", creators=("a",), allow_drafts=True)
    return {
        "build stories": lambda: build_katha(source, run, BuildOptions(workers=0, keep_unfit=True)),
        "validate": lambda: fabula.validate(run),
        "build from records": lambda: build_katha(
            source, whole, BuildOptions(workers=0, keep_unfit=True, records=completed(run))
        ),
        "release pack": lambda: pack(whole, folder / f"dist-{size}", options),
        "build shots": lambda: build_shots(source, shots, ShotOptions(workers=0)),
    }


def test_commands_when_a_sentence_grows_do_work_in_proportion(tmp_path: Path) -> None:
    (tmp_path / "first").mkdir()
    for work in steps(tmp_path / "first", 600).values():  # lists, schemas and templates are loaded once
        work()
    counted = {size: {name: calls_of(work) for name, work in steps(tmp_path, size).items()} for size in SIZES}
    assert json.loads((tmp_path / f"run-{SIZES[-1]}" / "report.json").read_bytes())["totals"]["made"] == 1
    for name in counted[SIZES[0]]:
        short, middle, long = (counted[size][name] for size in SIZES)
        assert long - middle <= SLACK * (middle - short) + 5000, (name, short, middle, long)
