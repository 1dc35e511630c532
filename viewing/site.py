"""The pages that are shown: an address in, a page out. Nothing is kept between pages but open files."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from importlib.resources import files
from typing import Any
from urllib.parse import parse_qs, quote, unquote, urlencode, urlsplit

from ..engine.edits import NAME as EDITS
from ..engine.edits import edits_of, is_withdrawal, read_edits
from ..errors import FabulaError
from ..kinds import SPOKEN
from ..pages.page import policy_of, style_of, template_of
from ..releases.entities.tree import EPISODE_STYLE, EPISODE_TEMPLATE, shown_episode
from ..schemas.paths import STATES
from ..schemas.values import MEANINGS, states_told
from ..validators.entities.view import view_of
from .records import (
    Laid,
    are_checks,
    are_rewritten,
    asked_about,
    corrected,
    episode_of,
    gist_of,
    item_in,
    laid_out,
    listed_of,
    makers_in,
    name_of,
    part_name,
    producers_in,
    record_of,
    short_texts,
    stamp_of,
    stated,
    under,
)
from .shelf import (
    BESIDE,
    Differing,
    Shelf,
    answer_of,
    audit_page,
    corrections_in,
    diff_page,
    leads_of,
    progress_of,
    releases_before,
    report_page,
)

MOST_CHANGES = 200
"""Corrections on their page."""
EDITED = ("records", "scripts")
"""Files whose rows are items of a run that `fabula edit` corrects."""
MOST = 50
"""Rows on a page of a list."""
SHOWN = 6
"""Columns of a list."""
FACTS = {
    "kind": "Kind", "version": "Version", "license": "Licence", "visibility": "Who may see it",
    "created_at": "Made at", "fabula_version": "Made with Fabula",
}  # fmt: skip
"""What a folder says of itself -> what the first page calls it; the rest is for programs."""
HTML = "text/html; charset=utf-8"


@dataclass(frozen=True, slots=True)
class Answer:
    """What a browser gets."""

    status: int  # of HTTP
    type: str  # of the body
    body: bytes  # the page or picture
    again: int = 0  # seconds after which the browser asks again; 0 for never


@dataclass(frozen=True)
class Site:
    """The pages of a folder, or of two evaluations side by side."""

    shelf: Shelf  # the folder
    differing: Differing | None = None  # the two evaluations, where there are two
    editor: str = ""  # token of whoever may edit, for the requests of our page; empty where nobody may
    style: str = field(default_factory=lambda: style_of("view.css", __package__, EPISODE_STYLE))

    def answer(self, address: str) -> Answer:
        """Return what an address shows; a page that says so where there is nothing."""
        parts = urlsplit(address)
        asked = {name: values[-1] for name, values in parse_qs(parts.query).items()}
        steps = [unquote(step) for step in parts.path.split("/") if step]
        self.shelf.look_again()
        try:
            return self._answer(steps, asked) or self._lost(f"there is nothing at {parts.path}")
        except FabulaError as error:
            return self._lost(str(error), 500)
        except ValueError as error:
            return self._lost(f"the address says {error}", 400)
        except Exception as error:  # noqa: BLE001 - anybody may have made the folder
            return self._lost(f"this cannot be shown: {type(error).__name__}: {error}"[:300], 500)

    def _answer(self, steps: Sequence[str], asked: Mapping[str, str]) -> Answer | None:
        shown: Answer | None = None
        match steps:
            case []:
                shown = self._home(asked) if self.differing is None else self._differences(asked)
            case ["rows", file] if file in self.shelf.rows:
                shown = self._rows(file, asked)
            case ["row", file, name] if file in self.shelf.rows:
                shown = self._row(file, name)
            case ["record", name] if self.shelf.judged_by is not None:
                shown = self._judged(name)
            case ["unit", method, unit] if self.shelf.judged:
                shown = self._unit(method, unit)
            case ["calls"] if self.shelf.calls is not None:
                shown = self._calls(asked)
            case ["call", request, sample] if self.shelf.calls is not None:
                shown = self._call(request, whole(sample))
            case ["picture", *path] if (picture := self.shelf.picture("/".join(path))) is not None:
                shown = Answer(200, picture[1], picture[0])
            case [lead, *_] if tuple(steps) in dict(self._leads).values():
                shown = self._led(lead, steps, asked)
        return shown

    @property
    def _leads(self) -> Sequence[tuple[str, tuple[str, ...]]]:
        return tuple(leads_of(self.shelf.folder, self.shelf.rows)) if self.differing is None else ()

    def _led(self, lead: str, steps: Sequence[str], asked: Mapping[str, str]) -> Answer:
        folder = self.shelf.folder
        if lead == "progress":
            progress = progress_of(folder)
            page = self._page("progress", "Progress", progress=progress)
            return replace(page, again=0 if "still" in asked else progress.again)
        if lead == "corrections":
            edits = corrections_in(folder)
            return self._page("corrections", "Corrections", edits=edits[:MOST_CHANGES], count=len(edits))
        if lead == "report":
            return _as_page(report_page(folder, stamp_of(folder / "judgements.jsonl")))
        if lead == "audit":
            return _as_page(audit_page(folder))
        older = next(old for old in releases_before(folder) if old.name == steps[1])
        return _as_page(diff_page(older, folder))

    @cached_property
    def _name(self) -> str:
        return self.shelf.folder.resolve().name

    def _page(self, view: str, title: str, status: int = 200, **values: object) -> Answer:
        own = "form-action 'self'; img-src 'self' data:"
        script = _script() if self.editor and values.get("editing") else ""
        own += "; connect-src 'self'" if script else ""
        policy = policy_of(self.style, script).replace("img-src data:; ", "")
        policy = policy.replace("form-action 'none'", own)
        shown = template_of("page.j2", __package__, EPISODE_TEMPLATE).render(
            view=view, title=title, name=self._name, style=self.style, policy=policy, shelf=self.shelf,
            differing=self.differing, leads=self._leads, script=script, token=self.editor,
            made_up=() if self.differing else self.shelf.made_up(),
            **HELPERS, **{"editing": None, "outputs": {}, "state": None, **values},
        )  # fmt: skip
        return Answer(status, HTML, shown.encode("utf-8", "replace"))

    def _lost(self, text: str, status: int = 404) -> Answer:
        return self._page("lost", "Nothing here", status, text=text)

    def _home(self, asked: Mapping[str, str]) -> Answer:
        facts = {
            label: told(self.shelf.about[name], 60)
            for name, label in FACTS.items()
            if isinstance(self.shelf.about.get(name), str | int | float)
        }
        if "kind" in self.shelf.about:
            facts["Kind"] = SPOKEN.get(facts["Kind"], facts["Kind"])
        facts |= {"Records": states_told(self._states())} if self._states() else {}
        outputs = self.shelf.outputs() if self.shelf.judged else {}
        if outputs:
            return self._page(
                "home", self._name, facts=facts, first=None, outputs=self._table(outputs, asked)
            )
        file = next(iter(self.shelf.rows), "")
        return self._page("home", self._name, facts=facts, first=self._list(file, {}) if file else None)

    def _table(self, outputs: Mapping[str, Mapping[str, int]], asked: Mapping[str, str]) -> Mapping[str, Any]:
        """Return a page of the outputs of an evaluation as its template shows it."""
        number = page_in(asked)
        units = list(outputs)[(number - 1) * MOST : number * MOST]
        return {
            "what": "Storyboards" if "frames" in self.shelf.rows else "Outputs", "count": len(outputs),
            "methods": sorted({method for methods in outputs.values() for method in methods}),
            "units": [(unit, self._title_of(unit), outputs[unit]) for unit in units],
            "whole": self.shelf.rows["judgements"].whole,
            "number": number, "last": number * MOST >= len(outputs),
        }  # fmt: skip

    def _title_of(self, unit: str) -> str:
        known = self.shelf.judged_by.named(unit) if self.shelf.judged_by is not None else []
        return title_in(record_of(known[0][1])) if known else ""

    def _states(self) -> Mapping[str, int]:
        """Return in which state how many records are, as a release says it or a run has it."""
        stated = [rows for rows in self.shelf.rows.values() if "state" in rows.fields]
        if STATES in self.shelf.about or not stated:
            return self.shelf.about.get(STATES) or {}
        corrections = self.shelf.folder / EDITS
        edits = read_edits(corrections) if corrections.is_file() else ()
        gone = {edit.id for edit in edits if is_withdrawal(edit) and not stated[0].named(edit.id)}
        return {**dict(stated[0].values("state")), "withdrawn": len(gone)}

    def _list(self, file: str, asked: Mapping[str, str]) -> Mapping[str, Any]:
        rows = self.shelf.rows[file]
        chosen = {name: asked[name] for name in rows.fields if asked.get(name)}
        words, number = asked.get("q", ""), page_in(asked)
        page = rows.page(words, (number - 1) * MOST, MOST, **chosen)
        lines = [(name_of(row, at), listed_of(row)) for at, row in page.rows]
        return {
            "file": file, "page": page, "number": number, "words": words, "chosen": chosen,
            "filters": {name: in_order(rows.values(name)) for name in rows.fields},
            "columns": columns_of(lines, rows.fields), "lines": lines,
            "more": urlencode({"q": words, **chosen, "page": number + 1}),
            "fewer": urlencode({"q": words, **chosen, "page": number - 1}),
            "last": number * MOST >= page.count, "problem": rows.problem,
        }  # fmt: skip

    def _rows(self, file: str, asked: Mapping[str, str]) -> Answer:
        listed = self._list(file, asked)
        editing = json.dumps({"file": file, "q": listed["words"], **listed["chosen"]})
        return self._page(
            "rows", file.replace("_", " "), list=listed, editing=editing if self._edits(file) else None
        )

    def _edits(self, file: str) -> bool:
        return bool(self.editor) and file in EDITED

    def names(self, file: str, asked: Mapping[str, str]) -> list[str]:
        """Return the ids of all records that a list shows under words and filters, on whatever page."""
        rows = self.shelf.rows[file]
        chosen = {name: asked[name] for name in rows.fields if asked.get(name)}
        whole = rows.page(asked.get("q", ""), 0, -1, **chosen)  # no limit
        return [item_in(row, number) for number, row in whole.rows]

    def _row(self, file: str, name: str) -> Answer | None:
        rows = self.shelf.rows[file].named(name)
        if not rows:
            return None
        item = item_in(rows[0][1], rows[0][0])
        edits = edits_of(self.shelf.folder, item)
        beside = {
            other: [row for _, row in self.shelf.rows[other].named(name)]
            for other in self.shelf.rows
            if other in BESIDE and other not in (file, "producers", "edits" if edits else "")
        }
        lines = self.shelf.rows["producers"].named(name) if "producers" in self.shelf.rows else []
        made = producers_in([entry for _, line in lines for entry in line.get("fields", ())])
        calls = self.shelf.calls.of_item(name) if self.shelf.calls is not None else []
        waiting = edits if self._edits(file) else ()
        state = "withdrawn" if any(map(is_withdrawal, edits)) else stated(rows[0][1]).get("state")
        laid = [corrected(laid_out(row), waiting) for _, row in rows]
        outputs = self.shelf.outputs() if self.shelf.judged else {}
        return self._page(
            "row", title_in(laid[0].record) or name, row=name, laid=laid, made=made, edits=edits, calls=calls,
            beside={other: lines for other, lines in beside.items() if lines}, state=state,
            episodes=episodes_in(name, laid), editing=item if self._edits(file) else None,
            outputs=outputs.get(name, {}),
        )  # fmt: skip

    def _judged(self, name: str) -> Answer | None:
        assert self.shelf.judged_by is not None
        laid = [laid_out(row) for _, row in self.shelf.judged_by.named(name)]
        if not laid:
            return None
        title = title_in(laid[0].record) or name
        return self._page(
            "row", title, row=name, laid=laid, made={}, edits=[], beside={}, calls=[],
            episodes=episodes_in(name, laid), outputs=self.shelf.outputs().get(name, {}),
        )  # fmt: skip

    def _unit(self, method: str, unit: str) -> Answer | None:
        rows = self.shelf.rows["judgements"]
        shown = [row for _, row in rows.page(most=5000, method=method, unit=unit).rows]
        frames = self.shelf.rows.get("frames")
        drawn = (
            []
            if frames is None
            else [row for _, row in frames.page(most=5000, method=method, unit=unit).rows]
        )
        if not shown and not drawn:
            return None
        # What was asked about the text alone is of no method.
        shown += [row for _, row in rows.page(most=5000, method="", unit=unit).rows]
        boards = [
            [
                {"label": f"Picture {number}", "text": "", "data": f"/picture/{frame['file']}", "width": 0}
                for number, frame in enumerate(board["frames"], 1)
                if frame and "file" in frame
            ]
            for board in drawn
        ]
        items: dict[str, list[Mapping[str, Any]]] = {}
        for row in shown:
            items.setdefault(str(row["item"]), []).append(row)
        known = self.shelf.judged_by.named(unit) if self.shelf.judged_by is not None else []
        record = laid_out(known[0][1]).record if known else {}
        asked = {item: asked_about(record, item) or {} for item in items}
        items = {item: items[item] for item in sorted(items, key=lambda item: not asked[item])}
        return self._page(
            "unit", f"{unit} by {method}", method=method, unit=unit, boards=boards, items=items, asked=asked,
            record=record,
        )  # fmt: skip

    def _calls(self, asked: Mapping[str, str]) -> Answer:
        assert self.shelf.calls is not None
        chosen = {name: asked[name] for name in ("stage", "model") if asked.get(name)}
        number = page_in(asked)
        lines, count = self.shelf.calls.page((number - 1) * MOST, MOST, **chosen)
        return self._page(
            "calls", "Calls of models", lines=lines, count=count, number=number, chosen=chosen,
            filters={name: self.shelf.calls.values(name) for name in ("stage", "model")},
            more=urlencode({**chosen, "page": number + 1}), fewer=urlencode({**chosen, "page": number - 1}),
            last=number * MOST >= count,
        )  # fmt: skip

    def _call(self, request: str, sample: int) -> Answer | None:
        assert self.shelf.calls is not None
        whole = self.shelf.calls.whole(request, sample)
        if whole is None:
            return None
        line, asked, reply = whole
        return self._page(
            "call", f"{line.stage}: {line.model}", line=line, asked=without_pictures(asked), reply=reply
        )

    def _differences(self, asked: Mapping[str, str]) -> Answer:
        assert self.differing is not None
        number = page_in(asked)
        chosen = {name: asked[name] for name in ("q", "only") if asked.get(name)}
        page = self.differing.page(
            asked.get("q", ""), (number - 1) * MOST, MOST, everything=asked.get("only") == "all"
        )
        return self._page(
            "differences", f"{self.differing.first.folder.name} and {self.differing.second.folder.name}",
            page=page, number=number, words=asked.get("q", ""), everything=asked.get("only") == "all",
            more=urlencode({**chosen, "page": number + 1}), fewer=urlencode({**chosen, "page": number - 1}),
            last=number * MOST >= page.count,
        )  # fmt: skip


@cache
def _script() -> str:
    return (files(__package__) / "edit.js").read_text("utf-8")


def _as_page(text: str) -> Answer:
    return Answer(200, HTML, text.encode("utf-8", "replace"))


def episodes_in(name: str, laid: Sequence[Laid]) -> Sequence[Mapping[str, Any] | None]:
    """Return the episode in each row as its template shows it; None for a row without one."""
    scripts = [episode_of(row.record) for row in laid]
    return [
        None if script is None else shown_episode(view_of(name, script), number)
        for number, script in enumerate(scripts, 1)
    ]


def whole(text: str) -> int:
    """Return the whole number in an address."""
    if len(text) > 15:
        raise ValueError(f"{text[:40]}, and no number here is so long")
    return int(text)


def page_in(asked: Mapping[str, str]) -> int:
    return max(1, whole(asked.get("page", "1")))


def address_of(*steps: object) -> str:
    return "/" + "/".join(quote(str(step), safe="") for step in steps)


def told(value: Any, most: int = 0) -> str:  # noqa: ANN401 - any JSON value
    """Return a plain value as a table shows it, cut to so many characters if there is a most."""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    text = "" if value is None else {"true": "yes", "false": "no"}.get(text, text)
    return text if not most or len(text) <= most else text[: most - 1] + "…"


def title_in(record: Mapping[str, Any]) -> str:
    """Return the title of a record; empty where it has none."""
    title = record.get("title")
    return title if isinstance(title, str) else ""


def in_order(values: list[tuple[str, int]]) -> list[tuple[str, int]]:
    """Return the values of a filter, the most frequent first; states in the order of states."""
    order = {str(state): number for number, state in enumerate(MEANINGS)}
    return sorted(values, key=lambda each: order.get(each[0], 0))


def columns_of(lines: Sequence[tuple[str, Mapping[str, Any]]], filters: Sequence[str]) -> list[str]:
    """Return the fields that a list shows beside name and title: those of filters, then other plain ones."""
    plain = dict.fromkeys(
        name
        for line, row in lines
        for name, value in row.items()
        if isinstance(value, str | int | float)
        and not isinstance(value, bool)
        and value != line
        and name not in ("schema_version", "title", "story_text", "source_text", "validation_status")
    )
    first = [name for name in filters if any(row.get(name) not in (None, "") for _, row in lines)]
    return [*first, *(name for name in plain if name not in first)][:SHOWN]


def without_pictures(document: Any) -> Any:  # noqa: ANN401 - any JSON value
    """Return what was asked, without the bytes of its pictures."""
    if isinstance(document, Mapping):
        return {name: without_pictures(value) for name, value in document.items()}
    if isinstance(document, list):
        return [without_pictures(value) for value in document]
    if isinstance(document, str) and len(document) > 20_000:
        return f"{document[:200]}… ({len(document):,} characters)"
    return document


HELPERS = {
    "address": address_of, "told": told, "answer_of": answer_of, "makers": makers_in, "gist": gist_of,
    "short": short_texts, "under": under, "part": part_name, "title_in": title_in, "are_checks": are_checks,
    "are_rewritten": are_rewritten, "meanings": MEANINGS,
}  # fmt: skip
"""What the template calls."""
