"""Tables of scores and counts as text for others: CSV for scripts, Markdown and LaTeX for papers."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from markupsafe import Markup

from ...errors import ConfigError, TargetError
from ...pages.figures import Figure, draw_figure, figure_rows, figure_table, legend_of
from ...pages.grid import (
    DASH,
    MINUS,
    Cell,
    Grid,
    Unit,
    count_text,
    effect_text,
    interval_text,
    label_text,
    latex_of,
    p_text,
    value_text,
)
from ...pages.page import environment, policy_of, readable, style_of
from ...schemas.canonical import Json, csv_text, pretty_bytes, write_atomic, writing
from ...schemas.plain_files import read_json
from ...schemas.text import counted, plural, tallied
from ...schemas.values import Own, Score
from ..stats.uncertainty import Paired
from .model import (
    Case,
    CaseItem,
    Comparison,
    CountTable,
    Definition,
    DrawnBox,
    Leaders,
    Measure,
    ReportDocument,
    ScoreRow,
    ScoreTable,
    SeenEpisode,
    ShotCard,
    StoryGrid,
)
from .people import plain_score

if TYPE_CHECKING:
    import pyarrow as pa


# -- A report as one HTML page: style, script, figures and pictures inside, nothing to load from anywhere
#
# A page is a list of sections; a document's parts become sections in one place, for every protocol.

FOLD = 6
"""The first table of a section without a figure stands open up to so many rows; all others are folded."""
WARMEST, FLAG, COLOURS = 7, 15, 6
"""Darkest cell of a matrix; sides in pixels of a box's number; how many colours boxes have."""


@dataclass(frozen=True)
class Section:
    """A part of the page that answers one question; one that holds nothing is left out."""

    name: str  # in links
    title: str
    note: str = ""  # what it answers, and of what
    lines: tuple[str, ...] = ()  # sentences of a list
    leaders: Leaders | None = None  # a table of ranks, first
    tables: tuple[ScoreTable | CountTable, ...] = ()
    figures: tuple[Figure, ...] = ()
    pairs: tuple[Comparison, ...] = ()  # methods against each other
    kind: str = ""  # which macro of units.j2 shows a unit
    units: tuple[Own, ...] = ()  # a card for each
    definitions: tuple[Definition, ...] = ()
    always: bool = False  # whether it stands there with its note alone

    @property
    def holds(self) -> bool:
        """Whether there is something to see besides heading and note."""
        parts = (self.leaders, self.tables, self.figures, self.pairs, self.units, self.definitions)
        return self.always or any(parts)


def sections_of(doc: ReportDocument) -> list[Section]:
    """Return the sections of a report, in order."""
    return [section for section in (*_numbers(doc), *_looked_at(doc), *_ends(doc)) if section.holds]


def _numbers(doc: ReportDocument) -> Iterator[Section]:
    """Yield what the scores say."""
    leaders = doc.shots.leaders if doc.shots else None
    yield Section(
        "results", "Results", lines=doc.reading, leaders=leaders,
        tables=() if leaders else (doc.headline,), figures=(*doc.plots, *doc.figures),
    )  # fmt: skip
    yield Section("details", "In detail", tables=doc.details)
    pairs = tuple(pair for pair in doc.comparisons if pair.shown)
    some = f" Shown are {len(pairs)} of {len(doc.comparisons):,} pairs; JSON and CSV have all."
    yield Section(
        "comparison", "Comparison of methods", pairs=pairs, always=bool(doc.comparison_note),
        note=doc.comparison_note + (some if len(pairs) < len(doc.comparisons) else ""),
    )  # fmt: skip
    official = bool(doc.controls) and doc.controls[0].name == "official_ranks"
    title = "Ranks of the official summary" if official else "What else could explain the numbers"
    yield Section("controls", title, tables=doc.controls)
    missing = tuple(f"Not shown: {line}" for line in doc.people_missing)
    yield Section(
        "people", "What people said", doc.people_note, tables=doc.people, figures=doc.people_figures,
        lines=missing,
    )  # fmt: skip


def _looked_at(doc: ReportDocument) -> Iterator[Section]:
    """Yield the cards of single things, with what was judged of them."""
    if doc.cases:
        yield Section("cases", doc.cases.title, doc.cases.note, kind="case", units=doc.cases.shown)
    if doc.shots:
        stories_note = f"{doc.shots.stories_note} {doc.shots.pictures_note}"
        yield Section("worst", "Worst shots", doc.shots.worst_note, kind="worstshots", units=doc.shots.worst)
        yield Section("stories", "Stories", stories_note, kind="story", units=doc.shots.stories)
    if doc.episodes:
        note = "Recurring entities, in all shots that they are scheduled in."
        yield Section("worst", "Worst entities", note, kind="worstentities", units=doc.episodes.worst)
        yield Section(
            "episodes", "Episodes", doc.episodes.note, kind="episode", units=doc.episodes.episodes
        )  # fmt: skip
    yield Section(
        "examples", "What scores look like", kind="levels", units=doc.examples,
        note="What has the lowest, the middle and the highest value of each score in this evaluation; among "
        "equal ones a hash decides. It shows what a number means, and says nothing of a method.",
    )  # fmt: skip


def _ends(doc: ReportDocument) -> Iterator[Section]:
    """Yield what was asked, by whom, and how numbers were made."""
    yield Section("coverage", "Coverage and outcomes", tables=doc.accounting)
    cost = (doc.cost,) if doc.cost else ()
    yield Section(
        "agreement", "Judges", doc.agreement_note, tables=(*doc.agreement, *cost),
        always=bool(doc.agreement_note),
    )  # fmt: skip
    yield Section("manifest", "Definitions and manifest", definitions=doc.definitions, always=True)


def render_page(document: ReportDocument, beside: dict[str, str] | None = None) -> str:
    """Return the page.

    All text of stories and replies is escaped, isolated in its direction, and shown with its control
    characters made visible. A content security policy in the page allows its own style and script only.

    ``beside``: name for readers -> name of a file in the same folder.
    """
    sections = sections_of(document)
    return with_parts(
        _resource("page.j2"), doc=document, beside=beside or {}, choices=_choices(document),
        sections=sections, links={section.name: section.title for section in sections}, fold=FOLD,
        manifest=pretty_bytes(document.manifest).decode("utf-8"),
    )  # fmt: skip


def with_parts(template: str, own: str = "", **shown: object) -> str:
    """Return a page made with the parts, the style and the script of reports, for pages of another layout.

    ``own``: style besides that. ``shown``: what the template is filled with.
    """
    style, script = style_of() + _resource("report.css") + own, _resource("page.js")
    page: str = (
        _environment()
        .from_string(template)
        .render(style=Markup(style), script=Markup(script), policy=policy_of(style, script), **shown)
    )
    return page


def _choices(document: ReportDocument) -> dict[str, tuple[str, ...]]:
    """Return what the cases can be filtered by."""
    shown = document.cases.shown if document.cases else ()
    return {
        "method": tuple(dict.fromkeys(case.method for case in shown)),
        "group": tuple(sorted({item.group for case in shown for item in case.items})),
        "why": tuple(dict.fromkeys(case.why for case in shown)),
    }


@cache
def _resource(name: str) -> str:
    return files(__package__).joinpath(name).read_text("utf-8")


@cache
def _environment() -> Any:  # noqa: ANN401 - a jinja2.Environment, imported late
    made = environment({name: _resource(name) for name in ("parts.j2", "units.j2")})
    made.filters |= {
        "value": lambda score, unit: value_text(score.value, unit),
        "interval": interval_text,
        "in_unit": value_text,
        "coverage": coverage_text,
        "count": count_text,
        "label": label_text,
        "p": p_text,
        "effect": effect_text,
        "plot": draw_figure,
        "legend": legend_of,
        "numbers_of": figure_table,
        "tests": lambda pairs: list(dict.fromkeys(name for pair in pairs for name in pair.p)),
        "standing": _standing,
        "wrong": _wrong,
        "wordy": _wordy,
        "made_by": _made_by,
        "digits": digits_text,
        "warmth": lambda value: min(WARMEST, max(0, int(value * (WARMEST + 1)))),
        "told": _told,
        "boxes": drawn_boxes,
        "summed": _summed,
        "leads": _leads,
    }
    return made


# -- Numbers and marks in words

_NOUNS = {plural(noun): noun for noun in (
    "question", "story", "dimension", "prompt", "pair", "label", "picture", "run", "judgement",
)}  # fmt: skip
_SHARES = (
    ("matched", "expected", "matched"), ("answered", "asked", "ratings"), ("valued", "pictures", "pictures"),
    ("counted", "shots", "shots"), ("counted", "characters", "counted"),
)  # fmt: skip
"""Counts of a story's score: part, whole, and what they are of."""


def coverage_text(score: Score) -> str:
    """Return what a score stands on, in words: how many of how many, and what was missed."""
    counts = score.counts
    if "stories_counted" in counts:
        return _of_stories(counts)
    for part, whole, what in _SHARES:
        if part in counts and whole in counts:
            return f"{counts[part]:,} of {counts[whole]:,} {what}"
    if "without_image" in counts and "shots" in counts:
        return f"{counts['shots'] - counts['without_image']:,} of {counts['shots']:,} shots"
    texts = [
        counted(count, _NOUNS[name]) if name in _NOUNS else f"{count:,} {name.replace('_', ' ')}"
        for name, count in counts.items()
    ][:2]
    if not texts and score.denominator is not None:
        texts = [f"n = {count_text(score.denominator)}"]
    return ", ".join(texts)


def _of_stories(counts: Mapping[str, int]) -> str:
    """Return on how many stories of a set a score stands, and what was missed in them."""
    stories, valued = counts.get("stories", counts["stories_counted"]), counts["stories_counted"]
    parts = [counted(stories, "story") if valued == stories else f"{valued:,} of {stories:,} stories"]
    for part, whole, what in (
        ("matched", "expected", "not matched"),
        ("answered", "asked", "ratings missing"),
    ):
        if counts.get(whole, 0) > counts.get(part, counts.get(whole, 0)):
            parts.append(f"{counts[whole] - counts[part]:,} of {counts[whole]:,} {what}")
    if "one_reference" in counts and counts.get("counted", 0) < counts.get("characters", 0):
        parts.append(f"{counts['counted']:,} of {counts['characters']:,} characters")
    if counts.get("without_image"):
        parts.append(f"{counted(counts['without_image'], 'shot')} without picture")
    return ", ".join(parts)


def _standing(score: Score) -> str:
    """Return what stands in place of a value: a dash where people were not asked, else what became of it."""
    if score.counts.get("judgements") == 0:
        return DASH
    return "undefined" if score.status == "undefined" else "failed"


def _wrong(item: CaseItem) -> str:
    """Return the conditions under which an item counts as incorrect, for the filter."""
    return " ".join(condition for condition, correct in item.combined.items() if correct is False)


def _wordy(table: CountTable, name: str) -> bool:
    return any(isinstance(row.values.get(name), str) for row in table.rows)


def _made_by(case: Case) -> str:
    """Return method and seed of a case."""
    seed = "" if case.seed is None else f", seed {case.seed}"
    return f"{readable(case.method)}{seed}"


def digits_text(value: float | None, digits: int) -> str:
    """Return a number with so many digits; a dash where there is none."""
    if value is None:
        return DASH
    text = f"{value:,.{digits}f}"
    return (text.lstrip("-") if float(text.replace(",", "")) == 0 else text).replace("-", MINUS)


def _leads(story: StoryGrid, labels: Mapping[str, str], digits: Mapping[str, int]) -> list[tuple[str, str]]:
    """Return the methods of a story, each with its first score, for the line that the story folds to."""
    leads = []
    for made in story.methods:
        name = next((name for name in labels if name in made.scores), None)
        value = "" if name is None else f"{labels[name]} {digits_text(made.scores[name].value, digits[name])}"
        leads.append((made.method, value))
    return leads


def _summed(episode: SeenEpisode) -> list[str]:
    """Return what an episode holds and how it fared, for the line that it folds to."""
    cells = [cell for entity in episode.entities for cell in entity.cells if cell is not None]
    known = [cell.fidelity for cell in cells if cell.fidelity is not None]
    fates = Counter(cell.status for cell in cells)
    statuses = ", ".join(f"{count:,} {fate}" for fate, count in fates.items())
    return [
        counted(len(episode.shots), "shot"),
        tallied(len(episode.entities), "entities"),
        f"{counted(len(cells), 'appearance')}: {statuses}",
        f"mean fidelity {digits_text(sum(known) / len(known) if known else None, 2)}",
    ]


# -- Shots with what a detector found in them


def _told(card: ShotCard) -> str:
    """Return a shot in words, for those who cannot see its picture."""
    parts = []
    for who in card.cast:
        name = readable(who.character, 80)
        parts.append(f"{name} {who.missed}" if who.box is None else f"{name} in box {who.box}")
    shown = "; ".join(parts) or "nobody expected"
    return (
        f"Shot {card.number} of story {readable(card.story_id, 60)} by {readable(card.method, 80)}: {shown}"
    )


def drawn_boxes(card: ShotCard) -> Markup:
    """Return the boxes of a shot as SVG, in pixels of its embedded picture; dashed where it is nobody."""
    width, height = card.picture.width, card.picture.height
    return Markup("").join(_box(box, width, height) for box in reversed(card.boxes))


def _box(box: DrawnBox, width: int, height: int) -> Markup:
    left, top = box.left * width, box.top * height
    edges = Markup('x="{:.1f}" y="{:.1f}" width="{:.1f}" height="{:.1f}"').format(
        left, top, box.width * width, box.height * height
    )
    colour = f"b{(box.number - 1) % COLOURS}"
    nobody = "" if box.character is not None else " nobody"
    x, y = min(left, width - FLAG), min(top, height - FLAG)
    return Markup(
        '<rect class="box under" {0}/><rect class="box over {1}{2}" {0}/>'
        '<rect class="flag {1}" x="{3:.1f}" y="{4:.1f}" width="{5}" height="{5}"/>'
        '<text class="flagtext" x="{6:.1f}" y="{7:.1f}" text-anchor="middle">{8}</text>'
    ).format(edges, colour, nobody, x, y, FLAG, x + FLAG / 2, y + FLAG - 4, box.number)


# --

Table: TypeAlias = ScoreTable | CountTable
Format = Literal["text", "json", "csv", "markdown", "latex"]
"""How a result is printed: for people, whole for scripts, or its tables in one of three forms."""
Row: TypeAlias = tuple[Cell, ...]

COLUMNS = ("table", "row", "measure", "value", "low", "high", "numerator", "denominator", "status", "reason")
"""Columns of the CSV: a score or a count on a line, values as fractions."""
NUMBERS = ("value", "low", "high", "numerator", "denominator")
REMARK = "Remark"
_MARKDOWN = str.maketrans({"|": r"\|", "\n": " ", "\\": r"\\", "*": r"\*", "_": r"\_", "<": "&lt;"})


def written(tables: Iterable[Table], form: Format, remarks: Sequence[str] = ()) -> str:
    """Return tables as CSV, Markdown or LaTeX.

    ``tables``: in order; those without a row are left out. ``remarks``: what must stand beside them: LaTeX
    comments, a list below the Markdown, rows of a last table ``remarks`` of the CSV.
    """
    some = [table for table in tables if table.rows]
    if form == "csv":
        rows = [row for table in some for row in score_rows(table)]
        rows += [("remarks", str(n), "remark", *plain(remark)) for n, remark in enumerate(remarks, 1)]
        return csv_text(COLUMNS, rows)
    if form == "latex":
        return latex_of(map(grid_of, some), remarks)
    listed = [f"- {readable(remark).translate(_MARKDOWN)}" for remark in remarks]
    return "\n".join([*map(_markdown, some), *listed, *([""] if listed else [])])


def score_rows(table: Table) -> Iterator[Row]:
    """Yield the lines of a table under :data:`COLUMNS`."""
    if isinstance(table, CountTable):
        for row in table.rows:
            yield from ((table.name, row.label, name, *plain(count)) for name, count in row.values.items())
        return
    for scored in table.rows:
        yield from (
            (table.name, scored.label, name, *numbers(score)) for name, score in scored.scores.items()
        )


def long_table(tables: Iterable[Table], name: str | None = None) -> "pa.Table":
    """Return tables as one Arrow table, a number a row, under :data:`COLUMNS`; values as fractions.

    A value that is a text stands in a last column, ``text``, and has no number.

    ``tables``: in order.
    """
    import pyarrow as pa

    some = [table for table in tables if name in (None, table.name)]
    if not some and name is not None:
        fix = "use one of the names in the column table of to_pandas()"
        raise ConfigError(f"table {name}", what="there is no such table", fix=fix)
    rows = [row for table in some for row in score_rows(table)]
    texts = [row[3] if isinstance(row[3], str) else None for row in rows]
    cells = {column: [row[number] for row in rows] for number, column in enumerate(COLUMNS)}
    cells["value"] = [None if isinstance(value, str) else value for value in cells["value"]]
    kinds = {column: pa.float64() if column in NUMBERS else pa.string() for column in COLUMNS}
    return pa.table(
        {column: pa.array(values, kinds[column]) for column, values in cells.items()}
        | {"text": pa.array(texts, pa.string())}
    )


def numbers(score: Score) -> Row:
    """Return the last seven columns of a score."""
    return (
        score.value, score.low, score.high, score.numerator, score.denominator, score.status, score.reason,
    )  # fmt: skip


def plain(value: Cell) -> Row:
    """Return the last seven columns of a count or another plain value."""
    return (value, None, None, None, None, "undefined" if value is None else "ok", None)


def comparison_table(pairs: Sequence[Paired], unit: Unit, difference: str = "") -> ScoreTable:
    """Return paired comparisons as a table, p-values and effect sizes as they are.

    ``difference``: of what the differences are, for readers; empty where the rows say it.
    """
    of = f"Differences of {difference}. " if difference else ""
    units, corrections = ({getattr(pair, name) for pair in pairs} for name in ("unit", "correction"))
    ends = "; in brackets 95 % intervals" if any(pair.low is not None for pair in pairs) else ""
    return ScoreTable(
        name="comparison", title="Methods against each other", heading="First less second",
        note=f"{of}Paired by {', '.join(sorted(units))}{ends}; "
        f"p-values corrected ({', '.join(sorted(corrections))}).",
        measures=(
            Measure(name="difference", label="Difference", unit=unit),
            *p_measures(pairs),
            Measure(name="cohen_d", label="Cohen's d", unit="plain"),
            Measure(name="rank_biserial", label="Rank-biserial", unit="plain"),
        ),
        rows=tuple(_compared(pair) for pair in pairs),
    )  # fmt: skip


def p_measures(pairs: Iterable[Paired]) -> tuple[Measure, ...]:
    """Return the columns of the p-values of comparisons: signed ranks, and by which test the other is."""
    tests = sorted({pair.resampled_test for pair in pairs if pair.p_bootstrap is not None})
    return (
        Measure(name="p_wilcoxon", label="p, Wilcoxon", unit="p"),
        Measure(name="p_bootstrap", label=f"p, {' or '.join(tests) or 'bootstrap'}", unit="p"),
    )


def _compared(pair: Paired) -> ScoreRow:
    why = "undefined for these pairs"
    difference = plain_score(pair.difference, "nothing that both have")
    tests = {
        "p_wilcoxon": pair.p_wilcoxon_corrected, "p_bootstrap": pair.p_bootstrap_corrected,
        "cohen_d": pair.cohen_d, "rank_biserial": pair.rank_biserial,
    }  # fmt: skip
    return ScoreRow(
        label=" ".join([*(f"{what}:" for what in pair.about.values()), pair.first, "less", pair.second]),
        scores={
            "difference": difference.model_copy(update={"low": pair.low, "high": pair.high}),
            **{name: plain_score(value, why) for name, value in tests.items()},
        },
        note=counted(pair.n, pair.unit),
    )


def _cells(table: Table) -> Iterator[list[str]]:
    """Yield head and rows as text; remarks about rows are the last column, where there are some."""
    noted = isinstance(table, ScoreTable) and any(row.note for row in table.rows)
    if isinstance(table, CountTable):
        yield [table.heading, *table.columns.values()]
        for row in table.rows:
            yield [row.label, *(count_text(row.values.get(name)) for name in table.columns)]
        return
    yield [table.heading, *(_named(measure) for measure in table.measures), *[REMARK] * noted]
    for scored in table.rows:
        told = (
            _value(scored.scores.get(measure.name), measure.unit, scored.marks.get(measure.name, ""))
            for measure in table.measures
        )
        yield [scored.label, *told, *[scored.note or ""] * noted]


def _named(measure: Measure) -> str:
    return f"{measure.label}, %" if measure.unit == "percent" else measure.label


def _value(score: Score | None, unit: Unit, mark: str = "") -> str:
    if score is None:
        return ""
    return f"{value_text(score.value, unit)}{mark} {interval_text(score, unit)}".strip()


def _markdown(table: Table) -> str:
    head, *rows = ([readable(cell).translate(_MARKDOWN) for cell in row] for row in _cells(table))
    rule = ["---", *("---" if name == REMARK else "---:" for name in head[1:])]
    lines = [f"| {' | '.join(row)} |" for row in (head, rule, *rows)]
    note = [readable(table.note).translate(_MARKDOWN), ""] if table.note else []
    return "\n".join([f"**{readable(table.title).translate(_MARKDOWN)}**", "", *lines, "", *note])


def grid_of(table: Table) -> Grid:
    """Return a table as people read it: every cell a text."""
    head, *rows = (tuple(readable(cell) for cell in row) for row in _cells(table))
    remark = tuple(number for number, name in enumerate(head) if number and name == REMARK)
    return Grid(table.name, readable(table.title), head, tuple(rows), readable(table.note), remark)


# -- A report as CSV: every score and count on a line, and every verdict, or every shot, on a line
#
# Writing the files of a report.

VERDICTS = (
    "unit", "place", "method", "seed", "why", "item", "group", "question", "valid", "judge", "condition",
    "vote", "outcome", "answer", "status", "confidence", "correct",
)  # fmt: skip

SHOTS = ("method", "story_id", "shot", "picture", "onstage", "found", "expected", "matched")


def scores_csv(document: ReportDocument) -> str:
    """Return every score, comparison and count of a report, one a line; values are fractions."""
    return csv_text(COLUMNS, _score_rows(document))


def verdicts_csv(document: ReportDocument) -> str:
    """Return the verdicts on every question that the report shows, one a line."""
    return csv_text(VERDICTS, _verdict_rows(document))


def shots_csv(document: ReportDocument) -> str:
    """Return every shot of every method, one a line; a score without a value is empty."""
    every = document.shots.every if document.shots is not None else ()
    names = tuple(dict.fromkeys(name for shot in every for name in shot.values))
    rows = (
        (
            shot.method, shot.story_id, shot.number, shot.picture, shot.onstage, shot.found, shot.expected,
            shot.matched, *(shot.values.get(name) for name in names),
        )
        for shot in every
    )  # fmt: skip
    return csv_text((*SHOTS, *names), rows)


def _score_rows(document: ReportDocument) -> Iterator[Row]:
    for table in (document.headline, *document.details, *document.agreement, *document.people):
        yield from score_rows(table)
    for figure in (*document.figures, *document.people_figures):
        for group, series, name, value in figure_rows(figure):
            yield (f"plot_{figure.name}", f"{group} · {series}", name, *plain(value))
    yield from _comparison_rows(document)
    yield from _rank_rows(document)
    for counts in (*document.controls, *document.accounting, *([document.cost] if document.cost else [])):
        yield from score_rows(counts)


def _comparison_rows(document: ReportDocument) -> Iterator[Row]:
    for compared in document.comparisons:
        yield (
            "comparison",
            f"{compared.first} less {compared.second}",
            compared.measure,
            *numbers(compared.difference),
        )
        for name, value in (*compared.p.items(), *compared.effects.items()):
            yield ("comparison", f"{compared.first} less {compared.second}", name, *plain(value))


def _rank_rows(document: ReportDocument) -> Iterator[Row]:
    leaders = document.shots.leaders if document.shots is not None else None
    for row in leaders.rows if leaders is not None else ():
        for name, place in row.places.items():
            status = "ok" if place.rank is not None else "undefined"
            yield (
                "rank", row.method, name, place.rank, place.low, place.high, None, place.stories, status,
                place.why,
            )  # fmt: skip


def _verdict_rows(document: ReportDocument) -> Iterator[Row]:
    for case in document.cases.shown if document.cases else ():
        for item in case.items:
            for one in item.verdicts:
                yield (
                    case.unit, case.place, case.method, case.seed, case.why, item.id, item.group, item.text,
                    item.valid, one.judge, one.condition, one.vote, one.outcome, one.answer, one.status,
                    one.confidence, one.correct,
                )  # fmt: skip
    for episode in document.episodes.episodes if document.episodes else ():
        yield from _reply_rows(episode)


def _reply_rows(episode: SeenEpisode) -> Iterator[Row]:
    """Yield the replies on one episode; what was asked is the group, the entity the item."""
    rows = [(shot.shot, "", reply) for shot in episode.shots for reply in shot.replies]
    for entity in episode.entities:
        rows += [("", entity.name, reply) for reply in entity.replies]
        rows += [(cell.shot, entity.name, reply) for cell in entity.cells if cell for reply in cell.replies]
    for shot, name, reply in rows:
        yield (
            episode.episode_id, shot, episode.method, None, None, name, reply.condition, None, None,
            reply.judge, reply.condition, reply.vote, reply.outcome, reply.answer, reply.status,
            reply.confidence, reply.correct,
        )  # fmt: skip


PAGE = "evaluation_report.html"
"""Name of the page, in the evaluation folder, where no other is given."""


@dataclass(frozen=True)
class Written:
    """A report and where it was written."""

    document: ReportDocument  # the report
    files: dict[str, Path]  # name for readers -> file; the page comes first

    def as_json(self) -> dict[str, Any]:
        """Return the files and the main numbers."""
        main = {
            row.label: {name: score.as_json() for name, score in row.scores.items()}
            for row in self.document.headline.rows
            if row.scores
        }
        return {
            "kind": self.document.kind,
            "files": {name: str(path) for name, path in self.files.items()},
            "headline": main,
            "warnings": list(self.document.warnings),
        }

    def lines(self) -> Iterator[str]:
        """Yield the main numbers and the files."""
        table = self.document.headline
        for row in table.rows:
            told = []
            for measure in table.measures:
                score = row.scores.get(measure.name)
                if score is not None:
                    value, ends = value_text(score.value, measure.unit), interval_text(score, measure.unit)
                    told.append(f"{measure.label} {value} {ends}".strip())
            if told:
                yield f"{row.label}: {'; '.join(told)}"
        yield from (f"note: {warning}" for warning in self.document.warnings)
        yield from (f"{name}: {path}" for name, path in self.files.items())


def check_page(page: Path) -> None:
    """Check that a report can be written as this page, before anything is computed."""
    if page.suffix.lower() not in (".html", ".htm"):
        raise TargetError(
            str(page), what=f"a report is a web page, and {page.name or 'a folder'} does not end in .html",
            fix="give --out such as report.html",
        )  # fmt: skip
    _refuse_others(page.with_suffix(".json"))


def write_report(document: ReportDocument, page: Path) -> Written:
    """Write the page, and JSON and CSV files of the same name beside it."""
    check_page(page)
    stem = page.stem
    files = {
        "page": page,
        "JSON": page.with_name(f"{stem}.json"),
        "scores as CSV": page.with_name(f"{stem}.csv"),
    }
    if document.shots is None:
        files["verdicts as CSV"] = page.with_name(f"{stem}_verdicts.csv")
    else:
        files["shots as CSV"] = page.with_name(f"{stem}_shots.csv")
    beside = {name: path.name for name, path in list(files.items())[1:]}
    contents = (
        render_page(document, beside).encode("utf-8"),
        pretty_bytes(_stored(document.as_json())),
        scores_csv(document).encode("utf-8"),
        (verdicts_csv if document.shots is None else shots_csv)(document).encode("utf-8"),
    )
    with writing(page, "choose another --out", what="the page"):
        page.parent.mkdir(parents=True, exist_ok=True)
        for path, data in zip(files.values(), contents, strict=True):
            write_atomic(path, [data])
    return Written(document, files)


def _refuse_others(path: Path) -> None:
    """Refuse to write over a JSON file that is no report of an earlier time, such as a run's own files."""
    try:
        found = read_json(path, follow=True)
    except FileNotFoundError:
        return
    except (OSError, ValueError):
        found = None
    if not isinstance(found, dict) or not {"headline", "manifest", "schema_version"} <= found.keys():
        raise TargetError(
            str(path), what="the file is there, and it is not an earlier report",
            fix="give the page another name with --out",
        )  # fmt: skip


def _stored(value: Json) -> Json:
    """Return a value that UTF-8 can hold: lone surrogates, as a hostile reply may carry, are replaced."""
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode("utf-8")
    if isinstance(value, list):
        return [_stored(entry) for entry in value]
    if isinstance(value, dict):
        return {_stored(key): _stored(one) for key, one in value.items()}
    return value
