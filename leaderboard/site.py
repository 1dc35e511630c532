"""The pages of a leaderboard: an index, a page for each submission, the data."""

import re
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib.resources import files
from pathlib import Path
from typing import Any

from ..errors import TargetError
from ..evaluation.archive.replies import stand_in_notes
from ..evaluation.report.formats import Table, with_parts, write_report
from ..evaluation.report.model import (
    Cases,
    CountRow,
    CountTable,
    Measure,
    ReportDocument,
    ScoreTable,
)
from ..evaluation.report.showing import sentences
from ..kinds.benchmarks.row import published_table
from ..kinds.evaluations import make_report
from ..pages.figures import Plot, PlotPoint
from ..schemas.canonical import pretty_bytes, write_atomic, writing
from ..schemas.paths import RELEASE, STATES
from ..schemas.plain_files import read_json
from ..schemas.text import counted
from ..schemas.values import Score, states_told
from .checking import Checked, Report, check, public
from .making import Board
from .standing import HiddenRow, Standing, hidden_rows, standings
from .submission import UNDECLARED, beside_any, opened, release_of

DATA, INDEX, MARK = "leaderboard_data.json", "index.html", ".fabula-leaderboard"
CASES = 6
"""So many cases stand on the page of a submission; its report has them all."""
SHOWN = f"The first {CASES} are here, all of them in the whole report."


@dataclass(frozen=True)
class Line:
    """A row of the table of a board."""

    label: str  # the method
    href: str  # its page
    rank: str  # its range of ranks; empty where it has none
    best: int  # by what the column of ranks is sorted
    note: str  # what stands below its name
    declared: bool  # whether everything is declared
    scores: tuple[Score | None, ...]  # by column
    cells: tuple[str, ...]  # other columns, in order


CELLS = (
    "Seeds", "Outputs and replies", "Model", "Prompt rewriting", "Overlap with training data", "Run by",
)  # fmt: skip


@dataclass(frozen=True)
class Ranking:
    """The table of a board."""

    id: str  # of the table
    title: str  # caption
    note: str  # how ranks were made
    measures: tuple[Measure, ...]  # columns of scores
    lines: tuple[Line, ...]  # rows, the best first
    cells: tuple[str, ...] = CELLS


@dataclass(frozen=True)
class Section:
    """A section of a page; what is empty is left out.

    Attributes:
        name: in links.
        title: of the section.
        note: what it is about.
        subset: public or hidden, for the filter; empty where it is neither.
        facts: label -> text.
        ranking: the table of a board.
        filtered: whether the filter stands before it.
        plots: in order.
        tables: of scores or counts.
        cases: what is behind scores.
        links: text -> address.
    """

    name: str
    title: str
    note: str = ""
    subset: str = ""
    facts: Mapping[str, str] = field(default_factory=dict)
    ranking: Ranking | None = None
    plots: tuple[Plot, ...] = ()
    tables: tuple[Table, ...] = ()
    cases: Cases | None = None
    links: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Page:
    file: str  # where it lies in the site
    title: str  # its title
    kind: str  # what stands above the title
    sections: tuple[Section, ...]  # in order
    facts: Mapping[str, str] = field(default_factory=dict)  # label -> text, below the title
    warnings: tuple[str, ...] = ()  # what readers must know first
    filters: bool = False  # whether rows can be filtered
    home: str = ""  # address of the first page; empty on it
    about: str = ""  # benchmarks and their versions

    @property
    def heading(self) -> str:
        """Title of the window: the benchmark is in it."""
        return self.title if self.about in self.title else f"{self.title} \N{MIDDLE DOT} {self.about}"


@dataclass(frozen=True)
class Built:
    """A site that was written."""

    out: Path  # its folder
    pages: int  # how many pages it has
    report: Report  # what the check found

    def as_json(self) -> dict[str, Any]:
        return {"out": str(self.out), "pages": self.pages, **self.report.as_json()}

    def lines(self) -> Iterator[str]:
        yield self.report.summary()
        yield f"{self.out}: {counted(self.pages, 'page')}; open {self.out / INDEX}"


def build(folder: Path, out: Path, hidden: Path | None = None) -> Built:
    """Check a leaderboard and write its pages.

    A site that was there is replaced when the new one is whole.
    """
    if out.exists() and any(out.iterdir()) and not (out / MARK).exists():
        raise TargetError(
            str(out), what="the folder is not empty, and is no site", fix="choose another --out"
        )
    checked = check(folder, hidden)
    shown = tuple(replace(row, issues=tuple(map(public, row.issues))) for row in checked.rows)
    report = replace(checked, rows=shown)
    boards = standings(report, folder)
    with writing(out, "choose another --out"):
        out.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".site-", dir=out.parent) as scratch:
            site = Path(scratch) / "site"
            (site / "methods").mkdir(parents=True)
            pages = [*_pages(report, boards, folder), *_method_pages(report, boards, folder, site)]
            for page in pages:
                write_atomic(site / page.file, [_rendered(page).encode("utf-8")])
            write_atomic(site / DATA, [pretty_bytes(_data(report, boards))])
            write_atomic(site / "README.md", [_readme(report).encode("utf-8")])
            (site / MARK).touch()
            if out.exists():
                shutil.rmtree(out)
            site.rename(out)
            out.chmod(0o755)
    return Built(out, len(pages), report)


def _rendered(page: Page) -> str:
    own = files(__package__)
    return with_parts(
        (own / "page.j2").read_text("utf-8"), own=(own / "leaderboard.css").read_text("utf-8"),
        page=page, data=f"{'../' if '/' in page.file else ''}{DATA}",
    )  # fmt: skip


def _data(report: Report, boards: Sequence[Standing]) -> dict[str, Any]:
    ranks = {
        name: {"low": rank.low, "high": rank.high, "of": rank.of, "better": rank.better, "worse": rank.worse}
        for standing in boards for name, rank in standing.ranks.items()
    }  # fmt: skip
    return {"leaderboard": report.leaderboard.as_json(), "ranks": ranks, **report.as_json()}


def _short(key: str) -> str:
    return re.split(r"[, ]+(?:of|ViStory|numbers)", published_table(key).source)[0]


def _readme(report: Report) -> str:
    """Return the card with which the folder is a static Space."""
    title = report.leaderboard.title.replace('"', "'")
    head = {
        "title": f'"{title}"', "emoji": "\N{OPEN BOOK}", "colorFrom": "blue", "colorTo": "indigo",
        "sdk": "static", "app_file": INDEX, "pinned": "false",
    }  # fmt: skip
    lines = [f"{name}: {text}" for name, text in head.items()]
    return "\n".join(["---", *lines, "---", "", "Written by `fabula leaderboard build`.", ""])


def _pages(report: Report, boards: Sequence[Standing], folder: Path) -> Iterator[Page]:
    sections = [_board_section(standing, folder) for standing in boards]
    left = [
        row for row in report.rows if row not in [ranked for standing in boards for ranked in standing.rows]
    ]
    if left:
        sections.append(Section("unranked", "Not ranked", tables=(unranked_table(left),)))
    sections += [
        Section(
            f"published-{key}", f"Published: {published_table(key).paper}, {_short(key)}",
            "Rows of another sort: printed in a paper, not run by us, and in no ranking of this page.",
            tables=(published_table(key).table(),),
        )
        for key in dict.fromkeys(key for board in report.leaderboard.boards for key in board.published)
    ]  # fmt: skip
    warnings = [
        f"{row.name}: {note}."
        for row in report.rows
        if row.ranked and row.manifest is not None
        for note in stand_in_notes(row.manifest)
    ]
    warnings += [f"{board.heading}: {board.trained}" for board in report.leaderboard.boards if board.trained]
    warnings += [note for standing in boards for note in standing.notes]
    ranked = sum(len(standing.rows) for standing in boards)
    undeclared = sum(bool(row.submission and row.submission.undeclared) for row in report.rows)
    facts = {
        "Boards": f"{len(boards):,}", "Ranked": f"{ranked:,}", "Not ranked": f"{len(left):,}",
        "Undeclared somewhere": f"{undeclared:,}",
    }  # fmt: skip
    yield Page(
        INDEX, report.leaderboard.title, "Leaderboard", tuple(sections), facts, tuple(warnings), filters=True,
        about=", ".join(board.heading for board in report.leaderboard.boards),
    )  # fmt: skip


def _board_section(standing: Standing, folder: Path) -> Section:
    board = standing.board
    if board.subset == "hidden":
        rows = hidden_rows(folder, board)
        hidden = {row.method: row.scores.get(board.rank_by) for row in rows}
        plot = interval_plot(f"plot-{board.name}", board.ranking.label, board.ranking, hidden)
        return Section(
            board.name, f"{board.heading}: hidden test", subset="hidden",
            facts=board_facts(board, folder), ranking=hidden_ranking(board, rows),
            plots=(plot,) if rows else (),
        )  # fmt: skip
    if not standing.rows:
        return Section(
            board.name,
            board.heading,
            "No row is ranked yet.",
            board.subset,
            board_facts(board, folder),
        )
    scores = {row.submission.method: row.scores.get(board.rank_by) for row in standing.rows if row.submission}
    return Section(
        board.name, board.heading, subset=board.subset, facts=board_facts(board, folder),
        ranking=ranking_of(standing),
        plots=(interval_plot(f"plot-{board.name}", board.ranking.label, board.ranking, scores),),
    )  # fmt: skip


def _method_pages(report: Report, boards: Sequence[Standing], folder: Path, site: Path) -> Iterator[Page]:
    ranks = {name: rank for standing in boards for name, rank in standing.ranks.items()}
    for row in report.rows:
        file = page_of(row)
        if file is None or row.submission is None or row.board is None:
            continue
        document = _report(row, row.board, folder) if row.sound else None
        links = {}
        if document is not None:
            write_report(document, site / "methods" / f"{row.name}-report.html")
            links["the whole report"] = f"{row.name}-report.html"
        links |= {link: link for link in row.submission.links}
        rank = ranks.get(row.name)
        rank_text = f"{rank} of {rank.of}" if rank is not None else "not ranked"
        declared = {label: text or "undeclared" for label, text in row.submission.declared().items()}
        facts = {
            "Rank": rank_text,
            "Subset": subset_of(row.board),
            "Submitted": row.submission.submitted,
            **declared,
        }
        sections = [
            Section(
                "scores",
                "Scores",
                tables=tuple(_tables(row)),
                links=links,
                facts=board_facts(row.board, folder),
            )
        ]
        if row.issues or row.retraction is not None:
            sections.append(Section("check", "What the check found", tables=(_findings(row),)))
        if document is not None and document.cases is not None:
            cases = document.cases.model_copy(update={"shown": document.cases.shown[:CASES]})
            sections.append(Section("cases", cases.title, f"{cases.note} {SHOWN}", cases=cases))
        made_up = () if row.manifest is None else stand_in_notes(row.manifest)
        warnings = [
            *sentences(made_up),
            *([f"Retracted on {row.retraction.date}: {row.retraction.reason}"] if row.retraction else []),
        ]
        title = row.submission.method
        yield Page(
            file,
            title,
            "Submission",
            tuple(sections),
            facts,
            tuple(warnings),
            home="../index.html",
            about=row.board.heading if row.board is not None else "",
        )


def _tables(row: Checked) -> Iterator[ScoreTable | CountTable]:
    yield row.tables[0]
    yield from (table for table in row.tables if table.name in ("by_dimension", "generations", "coverage"))


def _findings(row: Checked) -> CountTable:
    findings = [(issue.code, issue.level, f"{issue.message} ({issue.where})") for issue in row.issues]
    if row.retraction is not None:
        findings.insert(0, ("retracted", "error", row.retraction.reason))
    return CountTable(
        name="findings", title="Findings", heading="Finding", columns={"level": "Level", "what": "What"},
        note="An error keeps a row from being ranked; a warning does not.",
        rows=tuple(
            CountRow(label=code, values={"level": level, "what": text}) for code, level, text in findings
        ),
    )  # fmt: skip


def _report(row: Checked, board: Board, folder: Path) -> ReportDocument | None:
    assert row.submission is not None
    release = release_of(board, folder)
    with opened(row.path, beside_any()) as files:
        try:
            return make_report(files.folder, release)
        except Exception:  # noqa: BLE001 - anybody may have made it; the page does without
            return None  # its protocol has no page, or what the page needs does not lie in an archive


def board_facts(board: Board, folder: Path) -> dict[str, str]:
    """Return what every row of a board has in common."""
    prompts = board.protocol.get("prompts")
    count = len(prompts) if isinstance(prompts, Mapping | list) else 0
    preset = board.protocol.get("preset")
    named = preset.get("name") if isinstance(preset, Mapping) else None
    splits = ", ".join(f"{count:,} {split.replace('_', ' ')}" for split, count in board.splits.items())
    return {
        "Version": board.version,
        "Subset": subset_of(board),
        **({"Splits": splits} if splits else {}),
        **({"Records": states} if (states := _states(board, folder)) else {}),
        "Judges": ", ".join(board.judges) or "none",
        "Conditions": conditions_of(board),
        "Prompts": str(named or (counted(count, "prompt") if count else "not recorded")),
        "Pictures or videos": "–" if board.panels is None else f"{board.panels:,}",
        "Judge calls": f"{sum(board.asked.values()):,}",
        "Least coverage": f"{board.least_coverage:.0%}",
    }


def _states(board: Board, folder: Path) -> str:
    """Return in which state how many records of a board's release are, where it lies here and says so."""
    document = folder / (board.source or "") / RELEASE
    return states_told(read_json(document).get(STATES) or {}) if document.is_file() else ""


def subset_of(board: Board) -> str:
    """Return which part of a benchmark a board is about, and how large it is."""
    return f"{board.subset}, {board.units:,}"


def conditions_of(board: Board) -> str:
    named = board.protocol.get("conditions") or sorted({what.rpartition("/")[2] for what in board.asked})
    return ", ".join(str(each).replace("_", "+") for each in named) or "–"


def ranking_of(standing: Standing) -> Ranking:
    return _ranking(
        standing.board, "Ranked by",
        "Ranks are ranges: a method is surely better than another where the 95 % interval of their paired "
        "difference excludes zero; others share ranks.", tuple(_line(row, standing) for row in standing.rows),
    )  # fmt: skip


def _ranking(board: Board, how: str, note: str, lines: tuple[Line, ...]) -> Ranking:
    better = {"low": ", lower is better", "high": ", higher is better"}.get(board.ranking.better or "", "")
    title = f"{how} {board.ranking.label}{better}"
    return Ranking(f"table-{board.name}", title, f"{note} In brackets 95 % intervals.", board.columns, lines)


def _line(row: Checked, standing: Standing) -> Line:
    submission, board, rank = row.submission, standing.board, standing.ranks[row.name]
    assert submission is not None
    missing = submission.undeclared
    note = f"{len(missing)} of {len(submission.declared())} {UNDECLARED}" if missing else "all declared"
    version = " ".join(text for text in (submission.model, submission.model_version) if text)
    dated = f"{version} ({submission.model_date})" if version and submission.model_date else version
    return Line(
        submission.method, page_of(row) or "", str(rank), rank.low, note, not missing,
        tuple(row.scores.get(measure.name) for measure in board.columns),
        (
            str(submission.seeds), _percent(row.coverage), dated or UNDECLARED,
            submission.prompt_rewriting or UNDECLARED, submission.training_overlap or UNDECLARED,
            submission.ran_by or UNDECLARED,
        ),
    )  # fmt: skip


def _percent(value: float | None) -> str:
    return "–" if value is None else f"{value:.1%}"


def unranked_table(rows: Sequence[Checked]) -> CountTable:
    """Return the rows that are not ranked, with their reasons."""
    return CountTable(
        name="unranked", title="Submissions with their reasons", heading="Submission",
        note="These rows stay visible with what was found.",
        columns={"board": "Board", "code": "Finding", "why": "Reason"},
        rows=tuple(_unranked(row) for row in rows),
    )  # fmt: skip


def _unranked(row: Checked) -> CountRow:
    errors = {issue.code: issue for issue in reversed(row.issues) if issue.level == "error"}
    codes = list(reversed(errors))
    shown = [f"{errors[code].message} ({errors[code].where})" for code in codes]
    if row.retraction is not None:
        shown.insert(0, f"retracted on {row.retraction.date}: {row.retraction.reason}")
        codes.insert(0, "retracted")
    board = row.board.name if row.board is not None else "none"
    return CountRow(
        label=row.name, href=page_of(row) or "",
        values={"board": board, "code": ", ".join(codes), "why": "; ".join(shown)},
    )  # fmt: skip


def page_of(row: Checked) -> str | None:
    """Return the page of a submission; None where nothing could be scored, or hidden stories leak."""
    scored = row.submission is not None and row.board is not None and bool(row.tables)
    leaks = any(issue.code == "hidden-leak" for issue in row.issues)
    return f"methods/{row.name}.html" if scored and not leaks else None


def interval_plot(name: str, title: str, measure: Measure, rows: Mapping[str, Score | None]) -> Plot:
    """Return the values of one measure with their intervals, one method a band."""
    better = {"low": " Further left is better.", "high": " Further right is better."}.get(
        measure.better or "", ""
    )
    return Plot(
        name=name, title=title, axis=measure.label, unit=measure.unit,
        note=f"Values with 95 % intervals.{better}",
        groups={
            label: (PlotPoint(series=measure.label, score=score),)
            for label, score in rows.items() if score is not None
        },
    )  # fmt: skip


def hidden_ranking(board: Board, rows: Sequence[HiddenRow]) -> Ranking:
    """Return the table of a board whose rows the maintainer made with the hidden test."""
    lines = tuple(
        Line(
            row.method, "", row.rank, index, f"run by the maintainer on {row.date}", True,
            tuple(row.scores.get(measure.name) for measure in board.columns),
            (
                str(row.seeds), _percent(row.coverage), row.model or UNDECLARED,
                row.prompt_rewriting or UNDECLARED, row.training_overlap or UNDECLARED, "the maintainer",
            ),
        )
        for index, row in enumerate(rows, 1)
    )  # fmt: skip
    note = "The maintainer judged what each generator made of the hidden stories; no archive is published."
    return _ranking(board, "Hidden test, ranked by", note, lines)
