"""Writing the pages of a leaderboard: an index, a page for each measure, part and submission, the data."""

import re
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from importlib.resources import files
from pathlib import Path
from typing import Any

from ..errors import TargetError
from ..evaluation.archive.stand_ins import stand_in_notes
from ..evaluation.report.model import CountRow, CountTable, ReportDocument, ScoreRow, ScoreTable
from ..evaluation.report.page import with_parts
from ..evaluation.report.writing import write_report
from ..kinds.evaluations import make_report
from ..schemas.canonical import pretty_bytes, write_atomic
from ..schemas.text import counted
from .board import Board
from .checking import Checked, Report, check
from .hidden import hidden_rows
from .leaks import public
from .opening import opened
from .pages import (
    Page,
    Section,
    board_facts,
    first_parts,
    hidden_ranking,
    interval_plot,
    page_of,
    polar_of,
    ranking_of,
    subset_of,
    unranked_table,
)
from .published import published_table
from .standing import Standing, standings
from .submission import archive_of, beside_any, release_of

DATA, INDEX, MARK = "leaderboard_data.json", "index.html", ".fabula-leaderboard"
CASES = 6
"""So many cases stand on the page of a submission; its report has them all."""
SHOWN = f"The first {CASES} are here, all of them in the whole report."


@dataclass(frozen=True)
class Built:
    """A site that was written.

    Attributes:
        out: its folder.
        pages: how many pages it has.
        report: what the check found.
    """

    out: Path
    pages: int
    report: Report

    def as_json(self) -> dict[str, Any]:
        """Return it as plain JSON."""
        return {"out": str(self.out), "pages": self.pages, **self.report.as_json()}

    def lines(self) -> Iterator[str]:
        """Yield it as lines for people."""
        yield self.report.summary()
        yield f"{self.out}: {counted(self.pages, 'page')}; open {self.out / INDEX}"


def build(folder: Path, out: Path, hidden: Path | None = None) -> Built:
    """Check a leaderboard and write its pages; a site that was there is replaced when the new one is whole.

    Args:
        folder: the leaderboard.
        out: folder of the site.
        hidden: the hidden test, to search for its texts.

    Raises:
        InputError: the leaderboard, or a release, cannot be read.
        TargetError: the folder holds something else, or cannot be written.
    """
    if out.exists() and any(out.iterdir()) and not (out / MARK).exists():
        raise TargetError(
            str(out), what="the folder is not empty, and is no site", fix="choose another --out"
        )
    checked = check(folder, hidden)
    shown = tuple(replace(row, issues=tuple(map(public, row.issues))) for row in checked.rows)
    report = replace(checked, rows=shown)
    boards = standings(report, folder)
    try:
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
    except OSError as error:
        what = f"the folder cannot be written: {error.strerror or error}"
        raise TargetError(str(out), what=what, fix="choose another --out") from error
    return Built(out, len(pages), report)


def _rendered(page: Page) -> str:
    own = files(__package__)
    return with_parts(
        (own / "page.j2").read_text("utf-8"), ("shots.css",), (own / "leaderboard.css").read_text("utf-8"),
        doc={"shots": None}, page=page, data=f"{'../' if '/' in page.file else ''}{DATA}",
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
    for standing in boards:
        if standing.rows:
            yield from _measure_pages(standing)


def _board_section(standing: Standing, folder: Path) -> Section:
    board = standing.board
    if board.subset == "hidden":
        rows = hidden_rows(folder, board)
        hidden = {row.method: row.scores.get(board.rank_by) for row in rows}
        plot = interval_plot(f"plot-{board.name}", board.ranking.label, board.ranking, hidden)
        return Section(
            board.name, f"{board.heading}: hidden test", subset="hidden",
            facts=board_facts(board), ranking=hidden_ranking(board, rows), plots=(plot,) if rows else (),
        )  # fmt: skip
    if not standing.rows:
        return Section(
            board.name,
            board.heading,
            "No row is ranked yet.",
            board.subset,
            board_facts(board),
        )
    scores = {label: row.scores.get(board.rank_by) for label, row in _labelled(standing)}
    links = {label: file for label, file, *_ in _views(standing)}
    return Section(
        board.name, board.heading, subset=board.subset, facts=board_facts(board),
        ranking=ranking_of(standing), links=links,
        plots=(interval_plot(f"plot-{board.name}", board.ranking.label, board.ranking, scores),),
        polar=polar_of(standing),
    )  # fmt: skip


def _labelled(standing: Standing) -> list[tuple[str, Checked]]:
    return [(row.submission.method, row) for row in standing.rows if row.submission is not None]


def _views(standing: Standing) -> Iterator[tuple[str, str, str, dict[str, ScoreRow]]]:
    """Yield label, file, measure and rows of every page of a measure, or of a part such as a dimension."""
    board = standing.board
    for measure in board.measures:
        rows = {label: ScoreRow(label=label, scores=dict(row.scores)) for label, row in _labelled(standing)}
        yield measure.label, f"{board.name}-{_slug(measure.name)}.html", measure.name, rows
    by_name = {row.name: label for label, row in _labelled(standing)}
    for part, scored in first_parts(standing).items():
        rows = {
            by_name[name]: ScoreRow(label=by_name[name], scores=dict(row.scores))
            for name, row in scored.items()
        }
        yield part, f"{board.name}-part-{_slug(part)}.html", board.rank_by, rows


def _slug(text: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-") or "x"


def _measure_pages(standing: Standing) -> Iterator[Page]:
    board = standing.board
    for label, file, name, rows in _views(standing):
        measure = next(each for each in board.measures if each.name == name)
        sign = 1 if measure.better == "low" else -1
        ordered = sorted(rows.values(), key=lambda row: _sort_key(row, name, sign))
        measures = tuple(each for each in board.measures if any(each.name in row.scores for row in ordered))
        table = ScoreTable(
            name="values", title=f"{label}, by method", measures=measures, rows=tuple(ordered),
            note="The rows are in the order of their values; only the index ranks.",
        )  # fmt: skip
        plot = interval_plot(
            "values-plot", label, measure, {row.label: row.scores.get(name) for row in ordered}
        )
        sections = (Section("values", label, plots=(plot,), tables=(table,)),)
        title = f"{board.heading}: {label}"
        yield Page(file, title, "Leaderboard", sections, board_facts(board), home=INDEX, about=board.heading)


def _sort_key(row: ScoreRow, name: str, sign: int) -> tuple[bool, float, str]:
    score = row.scores.get(name)
    value = None if score is None else score.value
    return value is None, sign * (value or 0.0), row.label


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
            Section("scores", "Scores", tables=tuple(_tables(row)), links=links, facts=board_facts(row.board))
        ]
        if row.issues or row.retraction is not None:
            sections.append(Section("check", "What the check found", tables=(_findings(row),)))
        if document is not None and document.cases is not None:
            cases = document.cases.model_copy(update={"shown": document.cases.shown[:CASES]})
            sections.append(Section("cases", cases.title, f"{cases.note} {SHOWN}", cases=cases))
        made_up = () if row.manifest is None else stand_in_notes(row.manifest)
        warnings = [
            *(f"{note[:1].upper()}{note[1:]}." for note in made_up),
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
            if board.planted is None:
                return make_report(files.folder, release)
            with archive_of(files.folder, row.submission.method) as single:
                return make_report(single, release)
        except Exception:  # noqa: BLE001 - anybody may have made it; the page does without
            return None  # its protocol has no page, or what the page needs does not lie in an archive
