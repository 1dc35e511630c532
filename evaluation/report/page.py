"""Pictures of a report: small JPEGs as data URLs, opened with limits, without metadata.

A report as one HTML page: style, script, plots and pictures inside, nothing to load from anywhere.
"""

import base64
from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from markupsafe import Markup

from ...errors import UserError
from ...media.images import encode, open_picture
from ...pages.figures import draw_figure, figure_table, legend_of
from ...pages.grid import DASH, Unit, count_text, effect_text, interval_text, label_text, p_text, value_text
from ...pages.page import environment, policy_of, readable, style_of
from ...schemas.canonical import pretty_bytes
from ...schemas.text import counted, plural
from ...schemas.values import Score
from .model import Case, CaseItem, CountTable, Frame, ReportDocument
from .shot_cards import SHOT_FILTERS

SIDE, QUALITY = 360, 72
"""Longer side in pixels, and quality, of an embedded picture."""


class Thumbnails:
    """Makes the small pictures of a report, each file once.

    Args:
        side: longer side in pixels.
    """

    def __init__(self, side: int = SIDE) -> None:
        self._side = side
        self._made: dict[Path, tuple[str, int, int] | None] = {}

    def frame(self, path: Path | None, label: str, text: str | None = None) -> Frame:
        """Return the frame for a file; without its picture where it is gone or cannot be opened."""
        made = self._of(path) if path is not None else None
        if made is None:
            return Frame(label=label, text=text)
        data, width, height = made
        return Frame(label=label, text=text, width=width, height=height, data=data)

    def _of(self, path: Path) -> tuple[str, int, int] | None:
        if path not in self._made:
            self._made[path] = _thumbnail(path, self._side)
        return self._made[path]


def _thumbnail(path: Path, side: int) -> tuple[str, int, int] | None:
    try:
        picture = open_picture(path)
    except UserError:
        return None
    data = encode(picture, max_side=side, format="jpeg", quality=QUALITY)
    small = open_picture(data)
    return f"data:image/jpeg;base64,{base64.b64encode(data).decode('ascii')}", small.width, small.height


def render_page(document: ReportDocument, beside: dict[str, str] | None = None) -> str:
    """Return the page.

    All text of stories and replies is escaped, isolated in its direction, and shown with its control
    characters made visible. A content security policy in the page allows its own style and script only.

    ``beside``: name for readers -> name of a file in the same folder.
    """
    sheets = []
    if document.shots is not None or document.episodes is not None:
        sheets.append("shots.css")
    if document.episodes is not None:
        sheets.append("episodes.css")
    return with_parts(
        _resource("page.j2"),
        sheets,
        doc=document,
        beside=beside or {},
        manifest=pretty_bytes(document.manifest).decode("utf-8"),
        choices=_choices(document),
        parts=_sections(document),
    )


def with_parts(template: str, sheets: Sequence[str] = (), own: str = "", **shown: object) -> str:
    """Return a page made with the parts, the style and the script of reports, for pages of another layout.

    ``shown``: what the template is filled with. ``doc`` must be there: parts ask it for ``shots``.
    """
    style, script = style_of(), _resource("page.js")
    style += "".join(map(_resource, sheets)) + own
    page: str = (
        _environment()
        .from_string(template)
        .render(style=Markup(style), script=Markup(script), policy=policy_of(style, script), **shown)
    )
    return page


def _sections(document: ReportDocument) -> dict[str, str]:
    """Return the sections that a report has: id -> title."""
    shots, episodes = document.shots, document.episodes
    official = bool(document.controls) and document.controls[0].name == "official_ranks"
    controls = "Ranks of the official summary" if official else "Robustness"
    titles = {
        "results": "Results",
        "details": "In detail" if document.details else "",
        "comparison": "Comparison",
        "controls": controls if document.controls else "",
        "people": "People" if document.people else "",
        "coverage": "Coverage",
        "examples": "What scores look like" if document.examples else "",
        "cases": document.cases.title if document.cases else "",
        "worst": "Worst shots" if shots and shots.worst
        else "Worst entities" if episodes and episodes.worst else "",
        "stories": "Stories" if shots and shots.stories else "",
        "episodes": "Episodes" if episodes and episodes.episodes else "",
        "agreement": "Judges",
        "manifest": "Definitions and manifest",
    }  # fmt: skip
    return {name: title for name, title in titles.items() if title}


def _choices(document: ReportDocument) -> dict[str, tuple[str, ...]]:
    """Return what the cases can be filtered by."""
    shown = document.cases.shown if document.cases else ()
    return {
        "method": tuple(dict.fromkeys(case.method for case in shown)),
        "group": tuple(sorted({item.group for case in shown for item in case.items})),
        "why": tuple(dict.fromkeys(case.why for case in shown)),
    }


PARTS = ("page.j2", "parts.j2", "shots.j2", "episodes.j2")
"""The templates of a report; it imports those of all pages as well."""


@cache
def _resource(name: str) -> str:
    return files(__package__).joinpath(name).read_text("utf-8")


@cache
def _environment() -> Any:  # noqa: ANN401 - a jinja2.Environment, imported late
    made = environment({name: _resource(name) for name in PARTS})
    made.filters |= {
        "value": _value,
        "in_unit": value_text,
        "interval": _interval,
        "coverage": _coverage,
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
        **SHOT_FILTERS,
    }
    made.globals["made_by"] = _made_by
    return made


def _value(score: Score, unit: Unit) -> str:
    return value_text(score.value, unit)


def _interval(score: Score, unit: Unit) -> str:
    return interval_text(score, unit)


def _coverage(score: Score) -> str:
    told = [_counted(count, name) for name, count in score.counts.items()][:2]
    if not told and score.denominator is not None:
        told = [f"n = {count_text(score.denominator)}"]
    return ", ".join(told)


def _counted(count: int, name: str) -> str:
    """Return a count with its name, which is a plural noun or a participle."""
    nouns = {plural(noun): noun for noun in ("question", "story", "dimension", "prompt", "pair", "label")}
    return counted(count, nouns[name]) if name in nouns else f"{count:,} {name.replace('_', ' ')}"


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
