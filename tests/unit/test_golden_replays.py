"""Runs, releases and evaluations that earlier code made are continued, packed, read and scored as they were.

``fabula.testing.golden_runs`` made what is in ``tests/golden/replays``, and makes it anew only on purpose.
Nobody listens any more where the models were, so a question that is asked again is a call that fails.
"""

import csv
import io
import json
import shutil
import socket
import tarfile
from collections.abc import Callable, Iterable
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest

import fabula
from fabula.testing.golden_runs import GOLDEN, REPLAY, with_versions
from fabula.testing.latex import latex_problems
from fabula.testing.sample_history import command

REPLAYS = Path(__file__).parents[1] / "golden" / "replays"
PACKED = [name for name, golden in GOLDEN.items() if golden.pack is not None]
ASKED = [name for name in GOLDEN if not name.endswith("-rules")]
DEAR = ("evaluate-katha", "evaluate-images")
"""Their reports take long."""
WITH_VIDEOS = {"entities-model", "evaluate-events"}
WITH_PICTURES = WITH_VIDEOS | {"evaluate-katha", "evaluate-images"}
DECODERS = {"av", "pillow", "numpy"}
WRITERS = ("pyarrow", "jinja2", "pyyaml", "pydantic")
AS_THEN = ("--interval", "percentile", "--correction", "bonferroni")
ADDED = ("interval", "correction", "higher", "lower", "equal")
"""What scores and comparisons did not say yet."""
OF_VARIANTS = ("variant_accuracy", "both_accuracy")
"""Scores of outputs of variants, which nobody made yet."""
LATER_MEASURES = ("moral_target", "coverage")
RANKS = "official_ranks"
"""The table of ranks as the official summary makes them, which no report had."""
LATER = {"benchmark", "examples", "figures"}
"""Parts that a report did not have yet."""
GONE: dict[str, Any] = {
    "clip_score": "hessel", "clip_text": "static", "ensemble": "average", "least": None, "splits": 1,
    "inception_deviation": None, "partial": "answered",
}  # fmt: skip
"""Definitions that nobody can choose any more, with what was used."""
HOW_SURE = (
    "low", "high", "p", "effects", "verdict", "better", "worse", "definitions", "warnings", "note",
    "comparison_note",
)  # fmt: skip
"""Parts of a report that changed with intervals and p-values."""
Kept = Callable[[str], "Replay"]


class Replay:
    """A copy of what is kept under a name, and the calls that were tried."""

    def __init__(self, folder: Path, calls: list[Any]) -> None:
        self.folder, self.calls = folder, calls
        document = json.loads((folder / REPLAY).read_bytes())
        self.commands, self.says, self.versions = document["commands"], document["says"], document["versions"]

    def made_with(self, libraries: Iterable[str]) -> bool:
        """Whether these libraries have the versions here that they had there."""
        return all(metadata.version(name) == self.versions[name] for name in libraries)

    def files(self, *names: str) -> dict[str, bytes]:
        """Every file below some folders, but journals and locks, which say when and how often."""
        paths = [path for name in names for path in sorted((self.folder / name).rglob("*")) if path.is_file()]
        return {
            str(path.relative_to(self.folder)): path.read_bytes()
            for path in paths
            if not path.name.startswith("journal.sqlite") and path.suffix != ".lock"
        }


@pytest.fixture(scope="module")
def unpacked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("kept")
    for name in GOLDEN:
        with tarfile.open(REPLAYS / f"{name}.tar.xz") as archive:
            archive.extractall(folder / name, filter="data")
    return folder


@pytest.fixture
def kept(unpacked: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Kept:
    """Copies what is kept under a name and goes into the copy."""
    calls: list[Any] = []

    def refuse(self: socket.socket, address: Any) -> None:
        calls.append(address)
        raise ConnectionRefusedError(str(address))

    def copy(name: str) -> Replay:
        if name in WITH_VIDEOS:
            pytest.importorskip("av")
        folder = Path(shutil.copytree(unpacked / name, tmp_path / name))
        monkeypatch.chdir(folder)
        monkeypatch.setattr(socket.socket, "connect", refuse)
        return Replay(folder, calls)

    return copy


def assert_same(made: Any, wanted: Any, where: str = "$") -> None:
    """Values as they were, numbers to nine digits, as libraries add in any order, sentences in any words."""
    if isinstance(wanted, dict):
        assert made.keys() == wanted.keys(), where
        for key in wanted:
            assert_same(made[key], wanted[key], f"{where}.{key}")
    elif isinstance(wanted, list):
        assert len(made) == len(wanted), where
        for place, (new, old) in enumerate(zip(made, wanted, strict=True)):
            assert_same(new, old, f"{where}[{place}]")
    elif isinstance(wanted, float):
        assert made == pytest.approx(wanted, rel=1e-9, abs=1e-12), where
    elif not (is_sentence(made) and is_sentence(wanted)):
        assert made == wanted, where


def is_sentence(value: Any) -> bool:
    return isinstance(value, str) and " " in value.strip()


def read(data: bytes, name: str) -> Any:
    """A JSON, JSONL or CSV file as values."""
    text = data.decode("utf-8")
    if name.endswith(".csv"):
        return [[number(cell) for cell in row] for row in csv.reader(io.StringIO(text))]
    return json.loads(text) if name.endswith(".json") else [json.loads(line) for line in text.splitlines()]


def in_old_form(value: Any) -> Any:
    """Scores and comparisons as they were when each kind compared on its own: two gave corrected p-values."""
    if isinstance(value, list):
        return [in_old_form(one) for one in value]
    if not isinstance(value, dict):
        return value
    if isinstance(value.get("notes"), list):  # nothing said that the judge was a stand-in, or of training
        later = [note for note in value["notes"] if note.endswith("nothing") or "split train" in note]
        value = value | {"notes": [note for note in value["notes"] if note not in later]}
    if "p_bootstrap_corrected" in value and ("metric" in value or "judge" in value):
        value = {key: one for key, one in value.items() if not key.endswith("_corrected")} | {
            key: value[f"{key}_corrected"] for key in ("p_bootstrap", "p_wilcoxon")
        }
    if "metric" in value and "rank_biserial" in value:
        value = {key: one for key, one in value.items() if key != "rank_biserial"}
    added = ADDED if "correction" in value else ()
    if value.get("curve") is False:
        added += ("curve",)
    added += (RANKS, "stand_ins")  # validation did not say that stand-ins made the records
    if {"accuracy", *OF_VARIANTS} <= value.keys():
        assert all(value[key] is None or value[key]["value"] is None for key in OF_VARIANTS)
        added += OF_VARIANTS
    return {key: in_old_form(one) for key, one in value.items() if key not in added}


def without_gone(value: Any) -> Any:
    """What was kept without definitions that are none any more; all of it was made with what stayed."""
    if isinstance(value, list):
        return [without_gone(one) for one in value]
    if not isinstance(value, dict):
        return value
    told = any(key in value for key in ("ensemble", "inception_deviation", "voting"))
    gone = GONE.keys() & value.keys() if told else set()
    assert all(value[key] == GONE[key] for key in gone)
    return {key: without_gone(one) for key, one in value.items() if key not in gone}


def without_later(headline: Any) -> Any:
    """The main table of a report as it was before it had the moral target, as Table 2 has, and coverage."""
    measures = [measure for measure in headline["measures"] if measure["name"] not in LATER_MEASURES]
    rows = [
        row | {"scores": {name: score for name, score in row["scores"].items() if name not in LATER_MEASURES}}
        for row in headline["rows"]
    ]
    return headline | {"measures": measures, "rows": rows}


def values_alone(page: Any) -> Any:
    """A report without its words, and without what says how sure its numbers are."""
    if isinstance(page, str):
        return None
    if isinstance(page, dict):
        return {key: values_alone(one) for key, one in page.items() if key not in HOW_SURE}
    if isinstance(page, list) and page and isinstance(page[0], list):
        return [[*row[:4], *row[6:]] for row in page if row[0] != "comparison"]
    return [values_alone(one) for one in page] if isinstance(page, list) else page


def number(cell: str) -> float | str:
    try:
        return float(cell)
    except ValueError:
        return cell


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=[pytest.mark.slow] if name == "entities-model" else []) for name in GOLDEN],
)
def test_run_when_its_command_is_given_again_asks_nothing_and_stays_as_it_was(kept: Kept, name: str) -> None:
    replay = kept(name)
    before = replay.files("run")
    with with_versions(replay.versions):
        report = json.loads(command(*replay.commands["run"], "--json"))
    assert replay.calls == []
    assert command("run", "status", "run"), "settings that stages no longer have are no hindrance"
    after = replay.files("run")
    made, now = (json.loads(files["run/run.json"])["stages"] for files in (before, after))
    if made == now:
        assert {stage["name"]: stage["ran"] for stage in report["stages"] if stage["ran"]} == {}
        assert without_versions(after) == without_versions(before)
    elif [(one["name"], one["version"]) for one in made] == [(one["name"], one["version"]) for one in now]:
        assert without_books(after) == without_books(before)  # a stage takes another library to make the same


def without_versions(files: dict[str, bytes]) -> dict[str, object]:
    """What a run made, without the versions of scores and the list of pictures, which came later."""
    changed: dict[str, object] = dict(files)
    if changed.pop("run/pictures.jsonl", None) is not None:
        report = json.loads(files["run/report.json"])
        report["outputs"].pop("pictures.jsonl")
        changed["run/report.json"] = report
    elif "run/shots.jsonl" in files:
        changed["run/report.json"] = json.loads(files["run/report.json"])
    if (evaluation := files.get("run/evaluation.json")) is not None:
        document, report = json.loads(evaluation), json.loads(files["run/report.json"])
        document["protocol"].pop("metrics", None)
        report["outputs"].pop("evaluation.json")
        changed |= {"run/evaluation.json": document, "run/report.json": report}
    return changed


def without_books(files: dict[str, bytes]) -> dict[str, bytes]:
    """What a run made, without the files that name the versions of libraries."""
    own = ("run/run.json", "run/report.json", "run/evaluation.json")
    return {name: content for name, content in files.items() if name not in own}


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=[pytest.mark.slow] if name == "entities-model" else []) for name in ASKED],
)
def test_run_when_every_library_is_another_asks_nothing_again(kept: Kept, name: str) -> None:
    replay = kept(name)
    if name in WITH_PICTURES and not replay.made_with(DECODERS & replay.versions.keys()):
        pytest.skip("another decoder may give other pixels, and other pixels are another question")
    others = {library: f"{version}.1" for library, version in replay.versions.items()}
    before = replay.files("run")
    with with_versions(others):
        report = json.loads(command(*replay.commands["run"], "--json"))
    assert replay.calls == []
    after = replay.files("run")
    # One that was begun with other prompts keeps what it holds.
    assert any(stage["ran"] for stage in report["stages"]) or after == before
    if versions_of(before) == versions_of(after):  # a stage that is another one now makes something else
        assert without_books(after) == without_books(before)


def versions_of(files: dict[str, bytes]) -> list[tuple[str, int]]:
    """The stages of a run and their versions."""
    return [(stage["name"], stage["version"]) for stage in json.loads(files["run/run.json"])["stages"]]


@pytest.mark.parametrize("name", PACKED)
def test_run_when_packed_again_gives_the_bytes_of_its_release(kept: Kept, name: str) -> None:
    replay = kept(name)
    folders = [path.name for path in replay.folder.glob("release*") if path.is_dir()]
    before = replay.files(*folders)
    for folder in folders:
        shutil.rmtree(replay.folder / folder)
    with with_versions(replay.versions):
        # What was packed before the options were there.
        command(*replay.commands["pack"], "--allow-drafts", "--allow-stand-in")
    after = replay.files(*folders)
    if not replay.made_with(WRITERS):
        before, after = (
            {name: data for name, data in files.items() if name.endswith(".jsonl")}
            for files in (before, after)
        )
    assert after == before


@pytest.mark.parametrize("name", PACKED)
def test_release_when_it_is_an_earlier_one_verifies_and_loads(kept: Kept, name: str) -> None:
    replay = kept(name)
    # The loaders of others take seconds to start, so they read one release only.
    whole = ("--hidden", "release-hidden", "--salt", "salt") if name == "katha-rules" else ("--quick",)
    assert json.loads(command("release", "verify", "release", *whole, "--json"))["ok"]
    assert fabula.load(replay.folder / "release") is not None
    assert tuple(fabula.load(replay.folder / "release", streaming=True))


@pytest.mark.parametrize("name", [name for name in GOLDEN if name.startswith("evaluate-")])
def test_tables_when_an_earlier_evaluation_is_printed_as_latex_are_set_by_plain_latex(kept, name):
    kept(name)
    for said in (("score", "run"), ("compare", "run")):
        latex = command(*said, "--resamples", "50", "--format", "latex")
        assert latex.count("\\begin{table}") == latex.count("\\end{table}") > 0
        assert list(latex_problems(latex)) == []


def drawn_once(document: Any) -> Any:
    """Return a report without what earlier ones drew from the numbers of their tables."""
    made = {key: value for key, value in document.items() if key not in ("plots", "schema_version")}
    if (shots := made.get("shots")) is not None:
        made["shots"] = {**shots, "polar": None}
    if made["kind"] == "events":  # prompts at 100 % are no worst ones any more, and frames no panels
        shown = [
            {**case, "why": "", "frames": [{**frame, "label": ""} for frame in case["frames"]]}
            for case in sorted(made["cases"]["shown"], key=lambda case: (case["method"], case["unit"]))
        ]
        made["cases"] = {**made["cases"], "shown": shown}
    return made


def leave_long_descriptions(file: str, made: Any, wanted: Any) -> None:
    """Take out what a rule said of descriptions of more than 12 words, which now finds more than 30."""
    if file == "entities-model/said/validate.json":
        assert made.pop("counts") == {} and wanted.pop("counts") == {"description-long": 8}
        assert made.pop("issues") == [] and len(wanted.pop("issues")) == 8


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.slow] if name in DEAR else []) for name in GOLDEN]
)
def test_commands_when_given_about_what_is_kept_say_what_they_said(kept: Kept, name: str) -> None:
    replay = kept(name)
    before = replay.files("said")
    shutil.rmtree(replay.folder / "said")
    (replay.folder / "said").mkdir()
    for file, said in replay.says.items():
        as_then = AS_THEN if said[0] in ("score", "compare") else ()
        as_then = ("--least-coverage", "0") if said[0] == "report" else as_then  # there was no line then
        (replay.folder / "said" / file).write_text(command(*said, *as_then), "utf-8")
    after = replay.files("said")
    assert after.keys() - before.keys() <= {"said/report/page.html"}
    for file, data in before.items():
        made, wanted = in_old_form(read(after[file], file)), without_gone(read(data, file))
        if name == "evaluate-events" and file == "said/compare.json":  # then each method with itself
            pairs = [(pair["first"], pair["second"]) for pair in made.pop("comparisons")]
            assert pairs == [("model-a", "model-b")] and wanted.pop("comparisons")
        leave_long_descriptions(f"{name}/{file}", made, wanted)
        if file == "said/report/page.json":
            assert made.pop("episodes") is None  # no kind had any then
            for part in LATER & made.keys() - wanted.keys():
                made.pop(part)
            made, wanted = drawn_once(made), drawn_once(wanted)
            made["controls"] = [table for table in made["controls"] if table["name"] != RANKS]
            made["headline"] = without_later(made["headline"])
        if file == "said/report.json":
            made["headline"] = {
                method: {name: score for name, score in scores.items() if name not in LATER_MEASURES}
                for method, scores in made["headline"].items()
            }
        if file == "said/report/page.csv":
            wanted = [row for row in wanted if not str(row[0]).startswith("plot_")]
            made = [
                row for row in made
                if row[0] != RANKS and not (row[0] == "headline" and row[2] in LATER_MEASURES)
                and not str(row[0]).startswith("plot_")
            ]  # fmt: skip
        if name == "evaluate-events" and file == "said/report/page_verdicts.csv":
            made, wanted = (sorted([*row[:4], "", *row[5:]] for row in rows) for rows in (made, wanted))
        if file.startswith("said/report"):
            made, wanted = values_alone(made), values_alone(wanted)
        assert_same(made, wanted, file)
