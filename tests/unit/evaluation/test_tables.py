"""Correlating plain tables: only shared rows, gaps counted, nothing guessed."""

import json
import math
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from fabula.errors import ConfigError, InputError, TargetError
from fabula.evaluation.outputs.share import share_storyboards
from fabula.evaluation.outputs.storyboards import check_methods
from fabula.evaluation.stats.tables import Table, correlate_tables, number_of, read_table
from fabula.kinds.verbs import pack
from fabula.releases.loading import load
from fabula.releases.options import PackOptions
from fabula.releases.parquet import parse_front_matter
from fabula.schemas.canonical import sha256_file
from fabula.testing.drawn_storyboards import draw_outputs
from fabula.testing.katha_folders import write_run
from fabula.testing.katha_samples import sample_bundles
from fabula.testing.sample_history import command

FIRST = "model\tpa\tother\na\t1\tx\nb\t2\ty\nc\t3\tz\nd\t-\tw\ne\t9\tv\n"
SECOND = "model\tlite\tpa\nb\t20\t2\na\t10\t1\nc\t35\t3\nd\t40\t4\nf\t1\t1\n"


def table(path: Path, text: str) -> Table:
    path.write_text(text, "utf-8")
    return read_table(path)


@pytest.fixture
def both(tmp_path: Path) -> tuple[Table, Table]:
    return table(tmp_path / "a.tsv", FIRST), table(tmp_path / "b.tsv", SECOND)


def test_two_tables_when_correlated_use_the_rows_that_both_have(both: tuple[Table, Table]) -> None:
    found = correlate_tables(*both, ["model"], [("pa", "lite")])
    assert (found.shared, found.only_first, found.only_second) == (4, (("e",),), (("f",),))
    pearson, spearman, kendall = found.pairings[0].correlations
    # x = 1, 2, 3 and y = 10, 20, 35: cov = 25, sqrt(2 * 316.67) = 25.166
    assert pearson.value == pytest.approx(0.99340, abs=1e-5)
    assert (spearman.value, kendall.value) == (pytest.approx(1), pytest.approx(1))
    assert (pearson.pairs, pearson.left_out) == (3, 1)
    assert any("1 with a number missing" in line for line in found.lines())
    assert found.as_json()["columns"][0]["correlations"]["pearson"]["pairs"] == 3


@pytest.mark.parametrize(
    ("on", "pairs", "said"),
    [
        (["method"], [], "has no column method"),
        (["model"], [("pa", "none")], "has no column none"),
        (["pa"], [("pa", "lite")], "- once"),
        (["model"], [("other", "lite")], "a number"),
    ],
)
def test_a_column_when_it_cannot_be_used_is_refused(both, on, pairs, said, tmp_path):
    first = both[0]
    if said == "- once":
        first = table(tmp_path / "c.tsv", FIRST + "g\t-\tu\n")
    with pytest.raises((ConfigError, InputError), match=said):
        correlate_tables(first, both[1], on, pairs)


def test_two_tables_when_a_name_is_spelt_otherwise_take_the_alias(both: tuple[Table, Table]) -> None:
    found = correlate_tables(*both, ["model"], [("pa", "lite")], {"f": "e"})
    assert (found.shared, found.only_first, found.only_second) == (5, (), ())


def test_two_tables_when_rows_are_excluded_say_which(both: tuple[Table, Table]) -> None:
    found = correlate_tables(*both, ["model"], [("pa", "lite")], {}, ["c", "d*"])
    assert (found.shared, found.excluded) == (2, (("c",), ("d",)))
    assert "2 excluded: c; d" in list(found.lines())
    assert found.as_json()["excluded"] == [["c"], ["d"]]
    with pytest.raises(ConfigError, match="--exclude: no row of both tables is called e"):
        correlate_tables(*both, ["model"], [("pa", "lite")], {}, ["e"])


@pytest.mark.parametrize(
    ("text", "said"),
    [("", "an empty file"), ("a\ta\n1\t2\n", "twice: 'a'"), ("a\tb\n1\n1\t2\t3\n", "row 3")],
)
def test_a_table_when_it_is_damaged_lists_the_problems(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(InputError, match=said):
        table(tmp_path / "a.tsv", text)


def test_columns_when_a_cell_is_no_number_are_left_out_by_name_with_the_first_such_cell(tmp_path):
    text = "model\ta\tnote\tmixed\tgood\nx\t1\tn/a\t12%\t1\ny\t1,234\tlow\t0.13\t2\nz\t3\thigh\t14%\t3\n"
    found = correlate_tables(table(tmp_path / "a.tsv", text), table(tmp_path / "b.tsv", text), ["model"])
    assert [one.first for one in found.pairings] == ["good"]
    assert [line for line in found.lines() if "left out" in line] == [
        "a left out: '1,234' in a.tsv, row y, is no number",
        "note left out: 'low' in a.tsv, row y, is no number",
        "mixed left out: '0.13' in a.tsv, row y, is not in percent as other cells are, or alone is",
    ]
    assert found.as_json()["left_out"][0] == {
        "column": "a", "table": "a.tsv", "row": ("y",), "cell": "1,234", "why": "is no number"
    }  # fmt: skip
    tables = [read_table(tmp_path / name) for name in ("a.tsv", "b.tsv")]
    with pytest.raises(InputError, match=r"expected all numbers in percent, or none, found '0\.13'"):
        correlate_tables(*tables, ["model"], [("mixed", "good")])


@pytest.mark.parametrize(
    ("cell", "number"),
    [
        ("\N{MINUS SIGN}0.5", -0.5), ("**0.5**", 0.5), ("__0.5__", 0.5), ("*-0.5*", -0.5),
        ("<b>0.5</b>", 0.5),
        (r"\textbf{0.5}", 0.5), (r"$\mathbf{-0.5}$", -0.5), (r"\underline{\textbf{12.5\%}}", 12.5),
        ("12%", 12), ("12 %", 12), (r"{\bf 0.5}", 0.5),
        (".5", 0.5), ("5.", 5), ("1e-3", 0.001), ("+2", 2), (" 3\N{NO-BREAK SPACE}", 3),
        ("\N{FULLWIDTH DIGIT ONE}\N{FULLWIDTH FULL STOP}\N{FULLWIDTH DIGIT FIVE}", 1.5),
        ("\N{FULLWIDTH HYPHEN-MINUS}1", -1),
    ],
)  # fmt: skip
def test_a_cell_when_its_number_is_typeset_is_read(cell: str, number: float) -> None:
    assert number_of(cell) == number


@pytest.mark.parametrize(
    "cell", ["", "-", "--", "\N{MINUS SIGN}", "\N{EN DASH}", "n/a", "NaN", "null", r"\textbf{-}"]
)
def test_a_cell_when_it_says_that_there_is_no_number_is_missing(cell: str) -> None:
    assert math.isnan(number_of(cell) or 0)


@pytest.mark.parametrize(
    "cell",
    [
        "1,234", "0,5", "1 234", "1_000", "0.5\N{SUPERSCRIPT TWO}", "10\N{SUPERSCRIPT TWO}", "0.5*",
        "0.5 ± 0.1",
        "5 ms", "inf", "1e999", "true", "\N{EN DASH}0.5", "0.5 (2)", "0x1F", "1/2",
        "\N{ARABIC-INDIC DIGIT THREE}",
    ],
)  # fmt: skip
def test_a_cell_when_it_may_mean_another_number_is_none(cell: str) -> None:
    assert number_of(cell) is None


# -- Storyboards of methods as a data set with pictures


@pytest.fixture
def release(tmp_path: Path) -> Path:
    run = write_run(tmp_path / "run", sample_bundles(4), ())
    return pack(run, tmp_path / "release", PackOptions("0.1.0", name="fables", allow_drafts=True)).folder


@pytest.fixture
def outputs(release: Path, tmp_path: Path) -> list[Path]:
    """Two methods, one of them with two seeds; of the other a storyboard lacks a picture."""
    records = load(release).records
    plain = draw_outputs(tmp_path / "Model Ä", records)
    next(iter(sorted((plain / records[0].story_id).iterdir()))).unlink()
    return [plain, draw_outputs(tmp_path / "seeded", records, (1, 2), side=64)]


def test_storyboards_when_shared_are_pictures_with_their_stories(release, outputs, tmp_path):
    args = [word for folder in outputs for word in ("--outputs", str(folder))]
    said = json.loads(
        command("export", "storyboards", release, *args, "--license", "cc-by-4.0", "--out", tmp_path / "a",
                "--json")
    )  # fmt: skip
    records = load(release).records
    scenes = {record.story_id: len(record.scenes) for record in records}
    whole, less = sum(scenes.values()), sum(scenes.values()) - scenes[records[0].story_id]
    count = len(records)
    assert {name: said[name] for name in ("methods", "storyboards", "pictures", "left out")} == {
        "methods": 2, "storyboards": 3 * count - 1, "pictures": 2 * whole + less, "left out": 1,
    }  # fmt: skip
    rows = pq.read_table(tmp_path / "a/data/storyboards/test.parquet").to_pylist()
    assert len(rows) == 2 * whole + less
    assert {(row["method"], row["seed"]) for row in rows} == {("Model Ä", None), ("seeded", 1), ("seeded", 2)}
    for row in rows:
        assert row["image"]["bytes"] == (tmp_path / "a" / row["file"]).read_bytes()
        assert row["scene"] is not None and row["image"]["path"] == row["file"]
    values = parse_front_matter((tmp_path / "a/README.md").read_text("utf-8"))
    assert values["license"] == "cc-by-4.0"
    assert values["dataset_info"][0]["splits"][0]["num_examples"] == len(rows)
    assert {"name": "image", "dtype": "image"} in values["dataset_info"][0]["features"]
    for line in (tmp_path / "a/SHA256SUMS").read_text("utf-8").splitlines():
        sha256, _, path = line.partition("  ")
        assert sha256_file(tmp_path / "a" / path) == sha256
    share_storyboards(check_methods(outputs, load(release)), load(release), tmp_path / "b", "CC-BY-4.0")
    assert (tmp_path / "b/SHA256SUMS").read_bytes() == (tmp_path / "a/SHA256SUMS").read_bytes()


def test_storyboards_when_they_cannot_be_shared_leave_nothing(release, outputs, tmp_path):
    loaded, out = load(release), tmp_path / "shared"
    methods = check_methods(outputs, loaded)
    with pytest.raises(ConfigError, match="not the SPDX id"):
        share_storyboards(methods, loaded, out, "mine")
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match="no storyboard can be shared"):
        share_storyboards(check_methods([tmp_path / "empty"], loaded), loaded, out, "MIT")
    hidden = type(loaded)(
        loaded.path, {**loaded.info, "visibility": "hidden"}, loaded.records, loaded.variants,
        loaded.producers,
    )  # fmt: skip
    with pytest.raises(ConfigError, match="pictures of hidden stories"):
        share_storyboards(methods, hidden, out, "MIT")
    methods[1].valid[0].files[0].file.write_bytes(b"no picture")
    with pytest.raises(InputError, match="it is no picture"):
        share_storyboards(methods, loaded, out, "MIT")
    assert not out.exists()
    out.mkdir()
    (out / "mine.txt").write_text("-")
    with pytest.raises(TargetError, match="a folder with files"):
        share_storyboards(check_methods(outputs[:1], loaded), loaded, out, "MIT")
