"""Tables as CSV, Markdown and LaTeX: what others read back from them, hostile names included."""

import csv
import io
from types import SimpleNamespace

import numpy as np
import pytest
from markdown_it import MarkdownIt

from fabula.cli.common import chosen_form
from fabula.errors import ConfigError
from fabula.evaluation.archive.replies import remarks_of
from fabula.evaluation.report.formats import COLUMNS, comparison_table, written
from fabula.evaluation.report.model import CountRow, CountTable, Measure, ScoreRow, ScoreTable
from fabula.evaluation.report.showing import sentences
from fabula.evaluation.stats.uncertainty import Pair, Uncertainty, paired
from fabula.schemas.judgement import EvaluationManifest
from fabula.schemas.values import Score

HOSTILE = r"a|b_c* & 5% <b>$x$ \n {z}"
SCORES = ScoreTable(
    name="by_class", title="Scores | all", note="In 100 %.",
    measures=(Measure(name="rate", label="Rate"), Measure(name="gap", label="Gap", unit="points")),
    rows=(
        ScoreRow(
            label=HOSTILE,
            scores={"rate": Score(value=0.5, status="ok", low=0.25, high=0.75, numerator=2, denominator=4)},
        ),
        ScoreRow(
            label="=1+1",
            scores={
                "rate": Score(value=None, status="undefined", reason="nothing was asked"),
                "gap": Score(value=-0.125, status="ok"),
            },
            note="a remark",
        ),
    ),
)  # fmt: skip
COUNTS = CountTable(
    name="counts", title="Counts", columns={"n": "Videos"}, rows=(CountRow(label="m", values={"n": 1234}),)
)
EMPTY = CountTable(name="none", title="Nothing", columns={"n": "Videos"}, rows=())


def markdown_cells(text: str) -> list[list[str]]:
    """Return the cells of all tables as a parser of Markdown reads them, a list for each row."""
    rows: list[list[str]] = []
    for token in MarkdownIt("commonmark").enable("table").parse(text):
        if token.type == "tr_open":
            rows.append([])
        elif token.type == "inline" and rows and token.level > 3:
            rows[-1].append("".join(part.content for part in token.children or ()))
    return rows


def test_markdown_when_names_hold_its_signs_is_read_as_the_same_cells() -> None:
    assert markdown_cells(written([SCORES, EMPTY, COUNTS], "markdown")) == [
        ["Method", "Rate, %", "Gap", "Remark"],
        [HOSTILE, "50.0 [25.0, 75.0]", "", ""],
        ["=1+1", "–", "−12.5", "a remark"],
        ["Method", "Videos"],
        ["m", "1,234"],
    ]


def test_csv_when_read_has_each_number_with_its_interval_and_what_it_was_counted_from() -> None:
    rows = list(csv.DictReader(io.StringIO(written([SCORES, COUNTS], "csv"))))
    assert tuple(rows[0]) == COLUMNS
    assert [rows[0][name] for name in ("row", "measure", "value", "low", "high", "numerator")] == [
        HOSTILE, "rate", "0.5", "0.25", "0.75", "2.0",
    ]  # fmt: skip
    assert (rows[1]["row"], rows[1]["value"], rows[1]["reason"]) == ("'=1+1", "", "nothing was asked")
    assert (rows[3]["table"], rows[3]["measure"], rows[3]["value"]) == ("counts", "n", "1234")


def test_latex_when_names_hold_its_signs_escapes_each() -> None:
    text = written([SCORES], "latex")
    assert r"a$|$b\_c* \& 5\% $<$b$>$\$x\$ \textbackslash{}n \{z\} & 50.0 [25.0, 75.0] &  &  \\" in text
    assert r"=1+1 & -- & $-$12.5 & a remark \\" in text
    assert r"\caption{Scores $|$ all. In 100 \%.}" in text
    assert r"\begin{tabular}{lrrl}" in text


REMARKS = ("judges: compatible:toy_judge", "note: the replies are made up;\nby \u00e9")


def test_tables_when_they_have_remarks_carry_them_in_every_form() -> None:
    latex = written([SCORES], "latex", REMARKS).splitlines()
    assert latex[1:3] == ["% judges: compatible:toy_judge", r"% note: the replies are made up; by \xe9"]
    assert latex[3] == r"\begin{table}"
    markdown = written([SCORES], "markdown", REMARKS).splitlines()
    assert r"- judges: compatible:toy\_judge" in markdown and markdown[-1].startswith(
        "- note: the replies are"
    )
    rows = list(csv.DictReader(io.StringIO(written([SCORES], "csv", REMARKS))))
    told = [(row["table"], row["measure"], row["value"]) for row in rows[-2:]]
    assert told == [("remarks", "remark", remark) for remark in REMARKS]


def test_remarks_of_scores_name_release_judges_definitions_and_notes() -> None:
    manifest = EvaluationManifest(
        kind="katha", subject={}, protocol={"release": {"sha256": "ab"}, "judges": ["compatible:stand-in"]},
        environment={"release": {"version": "0.1.0"}},
    )  # fmt: skip
    made = SimpleNamespace(definitions=Uncertainty(resamples=200), notes=("few stories",))
    assert list(remarks_of(made, [manifest])) == [
        "release 0.1.0: SHA-256 ab",
        "judges: compatible:stand-in",
        "definitions: resamples=200, seed=42, interval=by-size, correction=holm",
        "note: few stories",
    ]


def test_sentences_when_notes_begin_with_names_leave_these_as_they_are() -> None:
    notes = ("my-gen: one is lost", "table-detector, still-flow: programs", "my-generation is long", "a note")
    assert list(sentences(notes, ["my-gen"])) == [
        "my-gen: one is lost.", "table-detector, still-flow: programs.", "My-generation is long.", "A note.",
    ]  # fmt: skip


def test_comparison_table_when_methods_are_paired_has_what_the_comparison_says() -> None:
    first, second = np.array([0.9, 0.8, 0.7, 0.95, 0.6, 0.85]), np.array([0.5, 0.6, 0.65, 0.7, 0.55, 0.6])
    pair = Pair("a", "b", first - second, {"metric": "rate"})
    (made,) = paired([pair], "story", Uncertainty(resamples=200))
    (row,) = comparison_table([made], "points").rows
    assert (row.label, row.note) == ("rate: a less b", "6 stories")
    assert row.scores["difference"].value == made.difference
    assert (row.scores["difference"].low, row.scores["difference"].high) == (made.low, made.high)
    assert row.scores["p_wilcoxon"].value == made.p_wilcoxon_corrected


@pytest.mark.parametrize(
    ("form", "as_json", "chosen"), [(None, False, "text"), (None, True, "json"), ("json", True, "json")]
)
def test_form_when_json_is_asked_for_either_way_is_json(form: str | None, as_json: bool, chosen: str) -> None:
    assert chosen_form(form, as_json=as_json) == chosen


@pytest.mark.parametrize(("form", "as_json"), [("xml", False), ("csv", True)])
def test_form_when_it_is_unknown_or_said_twice_is_refused(form: str, as_json: bool) -> None:
    with pytest.raises(ConfigError, match=r"--format|--json"):
        chosen_form(form, as_json=as_json)
