"""A report as one HTML page: style, script, figures and pictures inside, nothing to load from anywhere.

A page is a list of sections; a document's parts become sections in one place, for every protocol.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from markupsafe import Markup

from ...pages.figures import Figure, draw_figure, figure_table, legend_of
from ...pages.grid import (
    DASH,
    MINUS,
    count_text,
    effect_text,
    interval_text,
    label_text,
    p_text,
    value_text,
)
from ...pages.page import environment, policy_of, readable, style_of
from ...schemas.canonical import pretty_bytes
from ...schemas.text import counted, plural, tallied
from ...schemas.values import Own, Score
from .model import (
    Case,
    CaseItem,
    Comparison,
    CountTable,
    Definition,
    DrawnBox,
    Leaders,
    ReportDocument,
    ScoreTable,
    SeenEpisode,
    ShotCard,
    StoryGrid,
)

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
    """Return whether a column holds words."""
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
