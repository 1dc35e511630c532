"""``fabula stats``: counts and distributions beside the published targets."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, groupby
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..errors import ConfigError
from ..schemas.values import MEANINGS, state_of
from .command import command
from .common import answer, chosen_form, released, show_findings, show_tables
from .exports import usable_set

if TYPE_CHECKING:
    from ..evaluation.report.model import CountTable
    from ..releases.katha.reviews import ShownTable
    from ..validators.entities.statistics import EntityStatistics
    from ..validators.entities.tables import Row, Table


@command("stats", owners="cli.stats:owners_of_counts")
def stats(
    path: Path,
    *,
    html: Path | None = None,
    split: str | None = None,
    form: str | None = None,
    as_json: bool = False,
) -> int:
    """Count records and compare each distribution with its target.

    Of a release that people reviewed, print the tables of the review, too. For episodes, print the tables of
    the EntityBench paper by tier, and below each the paper's own numbers.

    Options:
        path: Run, release, JSONL file, suite (.json), shot scripts, episodes.
        html: Also write tables and distributions as one page here.
        split: Split file of the tiers [that of most episodes].

    Examples:
        fabula stats runs/mine
        fabula stats dist/mine-0.1.0 --json
        fabula stats all_prompts.json
        fabula stats runs/eb --html eb.html
        fabula stats runs/eb --format latex
    """
    from ..kinds.verbs import count

    form = chosen_form(form, as_json=as_json)
    folder = released(path)
    code = entity_stats(folder, html, split, form)
    if code is not None:
        return code
    wrong = [f"--{name}" for name in owners_of_counts() if {"html": html, "split": split}[name] is not None]
    if wrong:
        raise ConfigError(", ".join(wrong), what=f"only for episodes; {path} holds none", fix="leave it out")
    counted = Counted(count(folder))
    show_tables(counted, lambda: counted.tables(for_people=form != "csv"), form)
    return 0


def owners_of_counts() -> dict[str, tuple[str, ...]]:
    """Return whose options those are that not all have."""
    return dict.fromkeys(("html", "split"), ("episodes",))


def with_states(document: dict[str, Any]) -> dict[str, Any]:
    """Return counts with how many records are in which state, where they have statuses."""
    statuses = document.get("review", {}).get("validation_status", {})
    reached = Counter[str]()
    for status, row in statuses.items():
        reached[state_of(status)] += row["count"]
    states = {state: reached[state] for state in MEANINGS if state != "withdrawn"}
    return {**document, "states": states} if statuses else document


@dataclass(frozen=True)
class Counted:
    """Counts of a run, release or file of one kind."""

    document: dict[str, Any]  # name -> count, or counts within it

    def as_json(self) -> dict[str, Any]:
        """Return the counts as plain JSON."""
        return self.document

    def lines(self) -> Iterable[str]:
        """Return the tables as text."""
        from ..evaluation.report.formats import grid_of
        from ..pages.grid import text_of

        return text_of(map(grid_of, self.tables(for_people=True)))

    def tables(self, *, for_people: bool) -> "list[CountTable]":
        """Return them as tables, in order, and those of a review as its card has them.

        Args:
            for_people: write shares in per cent, and say what a sum of splits is.
        """
        from ..evaluation.report.model import CountRow, CountTable

        counts, tables = _apart(with_states(self.document))
        if for_people and not counts.get("not_counted"):
            counts.pop("not_counted", None)
        return [
            *(_for_people(table) if for_people else table for table in _tables(counts)),
            *(
                CountTable(
                    name=table.name, title=table.title, heading=table.heading, columns=dict(table.columns),
                    rows=tuple(CountRow(label=label, values=dict(values)) for label, values in table.rows),
                )
                for table in tables
            ),
        ]  # fmt: skip


def _for_people(table: "CountTable") -> "CountTable":
    """Return a table with shares in per cent, and a name for the sum of the test splits."""
    rows = tuple(
        row.model_copy(
            update={
                "label": _SUMS.get((table.name, row.label), row.label),
                "values": {name: _per_cent(name, value) for name, value in row.values.items()},
            }
        )
        for row in table.rows
    )
    return table.model_copy(update={"rows": rows})


_SUMS = {("splits", "test"): "public_test + hidden_test"}


def _per_cent(name: str, value: Any) -> Any:  # noqa: ANN401 - whatever a cell holds
    if not isinstance(value, float) or name not in ("share", "target_share", "deviation"):
        return value
    shown = f"{100 * value:+.1f} %" if name == "deviation" else f"{100 * value:.1f} %"
    return shown.replace("-", "−")


def _apart(document: Mapping[str, Any]) -> "tuple[dict[str, Any], list[ShownTable]]":
    """Return counts without the tables of a review, and these."""
    review = document.get("review")
    if not isinstance(review, dict) or "validation" not in review:
        return dict(document), []
    from ..releases.katha.reviews import review_tables_shown

    tables = review_tables_shown(review)
    names = {*(table.name for table in tables), "confidence"}
    counts = {name: value for name, value in review.items() if name not in names}
    return {**document, "review": counts}, tables


def _tables(node: Mapping[str, Any], *above: str) -> "Iterator[CountTable]":
    """Yield counts as tables: neighbours that count the same are its rows, and so are those of one part."""
    values = {key: {"value": value} for key, value in node.items() if not isinstance(value, dict)}
    if values:
        yield _table(above or ("counts",), values)
    parts = [(key, value) for key, value in node.items() if isinstance(value, dict) and value]
    for names, group in groupby(parts, lambda part: tuple(part[1]) if _is_row(part[1]) else part[0]):
        rows = dict(group)
        name, part = next(iter(rows.items()))
        if isinstance(names, tuple) and len(rows) > 1:
            yield _table((*above, ", ".join(rows)), rows)
        elif isinstance(part, dict) and all(_is_row(row) for row in part.values()):
            yield _table((*above, name), part)
        else:
            yield from _tables(part, *above, name)


def _is_row(node: object) -> bool:
    return isinstance(node, dict) and not any(isinstance(value, dict) for value in node.values())


def _table(names: tuple[str, ...], rows: Mapping[str, Mapping[str, Any]]) -> "CountTable":
    from ..evaluation.report.model import CountRow, CountTable

    columns = dict.fromkeys(name for values in rows.values() for name in values)
    return CountTable(
        name=".".join(names), title=_readable(": ".join(names)), heading="",
        columns={name: _readable(name) for name in columns},
        rows=tuple(
            CountRow(label=label, values={name: _cell(value) for name, value in values.items()})
            for label, values in rows.items()
        ),
    )  # fmt: skip


def _cell(value: object) -> int | float | str | None:
    return value if value is None or isinstance(value, int | float | str) else ", ".join(map(str, value))  # type: ignore[call-overload]


def _readable(name: str) -> str:
    words = name.replace("_", " ")
    return words[:1].upper() + words[1:]


_LABEL, _CELL = 52, 19


def entity_stats(folder: Path, html: Path | None, split: str | None, form: str) -> int | None:
    """Print the statistics of the episodes in a folder; return the exit code, None where there are none."""
    from ..kinds.entities import MARKS

    if not MARKS.match(folder):
        return None
    from ..releases.entities.tree import statistics_of_set

    entity_set, code = usable_set(folder)
    statistics = statistics_of_set(entity_set, split)
    if html is not None:
        from ..releases.entities.tree import write_page

        write_page(html, entity_set, statistics, folder.absolute().name)
    show_tables(CountedEpisodes(statistics, html), lambda: map(_count_table, statistics.tables), form)
    return code


@dataclass(frozen=True)
class CountedEpisodes:
    """Statistics of episodes, and the page that was written of them, if one was."""

    statistics: "EntityStatistics"
    page: Path | None

    def as_json(self) -> dict[str, Any]:
        """Return the statistics as plain JSON."""
        return self.statistics.as_json()

    def lines(self) -> Iterable[str]:
        """Return the tables as text."""
        return chain(lines(self.statistics), () if self.page is None else (f"page: {self.page}",))


def _count_table(table: "Table") -> "CountTable":
    from ..evaluation.report.model import CountRow, CountTable
    from ..validators.entities.measures import value_text

    rows = []
    for row in table.rows:
        rows.append(
            CountRow(label=row.label, values={tier: value_text(value) for tier, value in row.values.items()})
        )
        if row.published:
            rows.append(CountRow(label=f"{row.label}, as printed in the paper", values=dict(row.published)))
    columns = {tier: tier for tier in table.rows[0].values} if table.rows else {}
    return CountTable(name=table.key, title=table.title, heading="Of", columns=columns, rows=tuple(rows))


def lines(statistics: "EntityStatistics") -> Iterator[str]:
    """Yield the tables as text; below a row stands what the paper prints of its own data."""
    for table in statistics.tables:
        yield from _by_tier(table)
        yield ""
    yield "Lines with 'paper' are the paper's numbers for its own data; --json says how each row is counted."


def _by_tier(table: "Table") -> Iterator[str]:
    tiers = list(table.rows[0].values)
    yield f"{table.title:<{_LABEL}}" + "".join(f"{tier:>{_CELL}}" for tier in tiers)
    for row in table.rows:
        yield from _row(row, tiers)


def _row(row: "Row", tiers: list[str]) -> Iterator[str]:
    from ..validators.entities.measures import value_text

    yield f"  {row.label:<{_LABEL - 2}}" + "".join(
        f"{value_text(row.values[tier]):>{_CELL}}" for tier in tiers
    )
    if row.published:
        cells = "".join(f"{row.published.get(tier, ''):>{_CELL}}" for tier in tiers)
        yield f"    {'paper':<{_LABEL - 4}}{cells}".rstrip()


# -- ``fabula schemas``: the published JSON Schemas, and the words that fields may hold


@command("schemas list")
def list_schemas(*, as_json: bool = False) -> int:
    """List the schemas.

    Examples:
        fabula schemas list
    """
    from ..schemas.export import PUBLISHED

    lines = (f"{name:24}{(kind.__doc__ or '').splitlines()[0]}" for name, kind in sorted(PUBLISHED.items()))
    return answer(sorted(PUBLISHED), lines, as_json=as_json)


@command("schemas export")
def export(*, out: Path, as_json: bool = False) -> int:
    """Write the schemas as NAME.schema.json (draft 2020-12).

    Options:
        out: Folder to write to.

    Examples:
        fabula schemas export --out schemas/
    """
    from ..schemas.export import export_schemas

    paths = [str(path) for path in export_schemas(out)]
    return answer(paths, paths, as_json=as_json)


USES: dict[str, str] = {
    "moral_label": "moral_label of a story",
    "narrative_type": "narrative_type of a story",
    "rights_status": "rights_status of a story",
    "source_dataset": "source_collection of a story",
    "transition_type": "transition_type of a transition",
    "question_type": "question_type of a question",
    "answerability": "answerability of a question",
    "variant_kind": "variant_kind of a variant",
    "change_type": "change_type of a variant",
    "split": "split of a record",
    "validation_status": "validation_status of a record",
    "resolution": "evidence_status.resolution of a record",
    "decision": "decision of a review",
    "story_type": "story_type of a script",
    "style_category": "style of a script",
    "culture": "culture of a script",
    "character_tag": "tag of a character",
    "gender": "gender of a character",
    "shot_distance": "Shot Perspective Design of a shot",
    "camera_angle": "Shot Perspective Design of a shot",
    "camera_type": "Shot Perspective Design of a shot",
}
"""Word list -> the field that takes its words. What input needs first comes first."""

EVENTS: dict[str, tuple[str, dict[str, str]]] = {
    "participants": (
        "participants of a seed, class of a prompt",
        {
            "human": "People lead the story.",
            "animal": "Animals lead the story.",
            "object": "Things lead the story.",
        },
    ),
    "origin": (
        "class of a prompt",
        {
            "retrieval": "It captions something that can happen.",
            "creative": "It can never happen in the real world.",
        },
    ),
    "difficulty": (
        "class of a prompt",
        {
            "easy": "Video models complete most of its events.",
            "medium": "Neither easy nor hard.",
            "hard": "Video models complete few of its events.",
        },
    ),
}
"""The labels of a prompt suite: list -> the field that takes its words, and what each means."""


@dataclass(frozen=True, slots=True)
class WordList:
    """Words that a field may hold."""

    name: str  # its name
    field: str  # the field that takes its words
    closed: bool  # whether other words are errors; else they are kept, with a warning
    words: dict[str, str]  # word -> its meaning
    source: str  # the paper's table, and what is ours

    def as_json(self) -> dict[str, Any]:
        """Return it as plain JSON."""
        return {"field": self.field, "closed": self.closed, "words": self.words, "source": self.source}

    def lines(self) -> Iterator[str]:
        """Yield it as lines for people."""
        others = "no other words" if self.closed else "other words are kept, with a warning"
        yield f"{self.name}: {self.field}; {others}"
        width = max(map(len, self.words)) + 2
        yield from (f"  {word:{width}}{meaning}" for word, meaning in self.words.items())


@command("schemas words")
def words(
    names: Annotated[Sequence[str], typer.Argument(metavar="[LIST...]")] = (), *, as_json: bool = False
) -> int:
    """Print the words that fields may hold, and what they mean.

    A list can also be named by a field that uses it: source_collection shows the list source_dataset.

    Options:
        names: Only these lists.

    Examples:
        fabula schemas words
        fabula schemas words moral_label rights_status
        fabula schemas words --json
    """
    lists = {words.name: words for words in word_lists()}
    called = {words.field.split(" of ")[0].split(".")[-1]: name for name, words in lists.items()}
    unknown = [name for name in names if name not in lists and name not in called]
    if unknown:
        raise ConfigError(
            "fabula schemas words", what=f"there is no list {unknown[0]!r}",
            fix=f"the lists are: {', '.join(lists)}",
        )  # fmt: skip
    chosen = [lists[name] if name in lists else lists[called[name]] for name in names or lists]
    lines = (line for number, words in enumerate(chosen) for line in (*[""][: number > 0], *words.lines()))
    return answer({words.name: words.as_json() for words in chosen}, lines, as_json=as_json)


def word_lists() -> Iterator[WordList]:
    """Yield every list, those that input needs first."""
    from ..schemas.values import vocabulary

    for name, field in USES.items():
        listed = vocabulary(name)
        meanings = {word: str(entry["description"]) for word, entry in listed.entries.items()}
        yield WordList(name, field, listed.closed, meanings, listed.source)
    for name, (field, meanings) in EVENTS.items():
        yield WordList(name, field, False, meanings, "StoryEval, prompt suite")


# -- ``fabula validate``: every finding about a run, a release, a JSONL file or a suite, in one pass


@command("validate")
def validate(path: Path, *, strict: bool = False, everything: bool = False, as_json: bool = False) -> int:
    """Check schemas and every rule. Exits with 1 if there are errors; warnings alone do not count.

    Options:
        path: Run, release, JSONL file, suite (.json), shot scripts, episodes.
        strict: Warnings count as errors: they exit with 1 too.

    Examples:
        fabula validate runs/mine
        fabula validate annotations.jsonl --json
        fabula validate runs/shots
        fabula validate runs/eb
        fabula validate all_prompts.json
    """
    from ..kinds.verbs import validate as check

    report = check(released(path))
    return show_findings(report, as_json=as_json, strict=strict, everything=everything)
