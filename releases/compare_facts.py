"""What a document states that the data do not give, where another version made it and its words may differ.

Compared are the numbers in sentences and tables that both versions have, and the names that any version has
to state. Wording is not: a sentence that only one of the two has says nothing here.
"""

import html
import re
from collections.abc import Iterator, Sequence

from ..schemas.canonical import Json
from ..schemas.plain_files import parse_json
from .diff.changes import path_text
from .form import Facts
from .front_matter import parse_front_matter
from .layout import CARD, CROISSANT, LICENSE, README

_NUMBER = re.compile(r"\d[\d,]*(?:\.\d+)?")
_WORDING = frozenset(("schema_version", "rights_scope", "label"))
"""Keys of JSON documents whose values another version may word otherwise."""
_STATED_IN_FRONT = ("pretty_name", "license", "language", "size_categories", "configs")
_STATED_IN_CROISSANT = (
    "name", "alternateName", "version", "url", "license", "creator", "datePublished", "inLanguage", "citeAs",
)  # fmt: skip


def false_facts(name: str, stated: bytes, made: bytes, facts: Facts) -> Iterator[str]:
    """Yield what a document of another version states that is not so, one sentence each.

    Args:
        name: path of the document.
        stated: its content.
        made: what this version makes of the same facts.
        facts: the facts.

    Raises:
        ValueError, LookupError, TypeError, AttributeError: it is damaged.
    """
    if name == CROISSANT:
        yield from _false_metadata(parse_json(stated), parse_json(made))
    elif name.endswith(".json"):
        yield from _false_values(parse_json(stated), parse_json(made), ())
    elif name.endswith(".jsonl"):
        if stated != made:
            yield "not what the data give"
    else:
        before, now = stated.decode("utf-8"), made.decode("utf-8")
        yield from _false_numbers(before, now)
        required = [text for text in _required(name, facts) if text in _plain(now)]
        yield from _missing(_plain(before), required)
        if name in (CARD, README):
            yield from _false_front(before, now)
            yield from _false_tables(before, now)


def _false_values(stated: Json, made: Json, steps: tuple[str | int, ...]) -> Iterator[str]:
    if isinstance(stated, dict) and isinstance(made, dict):
        for key in sorted((stated.keys() & made.keys()) - _WORDING):
            yield from _false_values(stated[key], made[key], (*steps, key))
    elif isinstance(stated, list) and isinstance(made, list) and len(stated) == len(made):
        for number, (one, other) in enumerate(zip(stated, made, strict=True)):
            yield from _false_values(one, other, (*steps, number))
    elif stated != made or isinstance(stated, bool) != isinstance(made, bool):
        yield f"{path_text(steps)} is not {_short(made)}, which the data give"


def _false_metadata(stated: Json, made: Json) -> Iterator[str]:
    for key in _STATED_IN_CROISSANT:
        if stated.get(key) != made[key]:
            yield f"$.{key} is not {_short(made[key])}, which the data give"
    for key in sorted(stated.keys() & made.keys()):
        if key == "description" or key.startswith("rai:"):
            for what in _false_numbers(_lines(stated[key]), _lines(made[key])):
                yield f"$.{key}: {what}"


def _false_front(stated: str, made: str) -> Iterator[str]:
    before, now = parse_front_matter(stated), parse_front_matter(made)
    for key in _STATED_IN_FRONT:
        if before.get(key) != now[key]:
            yield f"$.{key} of the front matter is not {_short(now[key])}, which the data give"


def _false_numbers(stated: str, made: str) -> Iterator[str]:
    """Yield sentences that differ in their numbers only."""
    known: dict[str, set[tuple[str, ...]]] = {}
    for line in _sentences(made):
        known.setdefault(_NUMBER.sub("#", line), set()).add(tuple(_NUMBER.findall(line)))
    for line in _sentences(stated):
        wanted = known.get(_NUMBER.sub("#", line))
        if wanted is not None and tuple(_NUMBER.findall(line)) not in wanted:
            yield f"the data give other numbers than {_short(line)}"


def _sentences(text: str) -> Iterator[str]:
    return (_plain(line) for line in text.splitlines() if line.strip() and not line.startswith("|"))


def _false_tables(stated: str, made: str) -> Iterator[str]:
    before, now = _tables(stated), _tables(made)
    for title in sorted(before.keys() & now.keys()):
        if sorted(before[title]) != sorted(now[title]):
            yield f"the table {' '.join(filter(None, title))} has other rows than the data give"


def _tables(card: str) -> dict[tuple[str, str], list[str]]:
    """Return title and header -> rows of the tables that have a column of numbers."""
    tables: dict[tuple[str, str], list[str]] = {}
    title, rows = "", list[str]()
    lines = card.splitlines()
    for number, line in enumerate(lines):
        if line.startswith(("#", "**")):
            title = line
        if line.startswith("|---") and "---:" in line:
            rows = tables.setdefault((title, lines[number - 1]), [])
        elif line.startswith("|"):
            rows.append(_plain(line))
        else:
            rows = []
    return tables


def _missing(stated: str, required: Sequence[str]) -> Iterator[str]:
    for text in required:
        if text not in stated:
            yield f"does not state {_short(text)}"


def _required(name: str, facts: Facts) -> list[str]:
    """Return the names that a document states, as they read; not every kind states all of them."""
    about, licence = facts.options, facts.licence
    texts = [str(licence.spdx_id), str(licence.url), about.version]
    if name == LICENSE:
        texts += [about.title, *about.creators]
    elif facts.canary:
        texts += [facts.canary]
    if name in (CARD, README):
        texts += [f"# {about.title}", about.reference]
    return [_plain(text) for text in texts]


def _lines(value: Json) -> str:
    return "\n".join(map(str, value)) if isinstance(value, list) else str(value)


def _plain(text: str) -> str:
    """Return a text as it reads: versions escape it for Markdown in different ways."""
    return " ".join(html.unescape(text.replace("\\", "")).split())


def _short(value: Json) -> str:
    text = repr(value)
    return text if len(text) <= 100 else f"{text[:97]}..."
