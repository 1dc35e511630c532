"""The dataset card (also the Hub's README) and the licence notice: templates filled from the facts."""

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any, Protocol

from ..errors import InputError, UserError
from ..schemas.canonical import Json
from .facts import Facts
from .front_matter import front_matter, front_matter_text
from .layout import (
    ANNOTATIONS,
    CARD,
    CROISSANT,
    LICENSE,
    MORAL_BALANCE,
    PRODUCERS,
    RELEASE,
    SOURCE_MANIFEST,
    SPLIT_FILES,
    STATISTICS,
    SUMS,
    VARIANTS,
)
from .licence import Licence
from .options import PackOptions
from .tables import tables


class Described(Protocol):
    """What the documents of a release of any kind say of it."""

    @property
    def options(self) -> PackOptions:
        """What a person said about it."""
        ...

    @property
    def licence(self) -> Licence:
        """Its licence."""
        ...

    @property
    def created_at(self) -> str:
        """When the run was created."""
        ...

    @property
    def summary(self) -> str:
        """What it is, in a few sentences."""
        ...

    @property
    def languages(self) -> list[str]:
        """The language tags of its texts, sorted."""
        ...


_FILES = (
    (ANNOTATIONS, "one record per story: text, scenes, transitions, questions, provenance, status, split"),
    (VARIANTS, "contrastive variants, linked to their stories"),
    (PRODUCERS, "who made which field of each record"),
    ("data/TABLE/SPLIT.parquet", "the flat tables"),
    (STATISTICS, "counts and distributions"),
    (MORAL_BALANCE, "the audit of the moral-label balance"),
    (SOURCE_MANIFEST, "source collections, references and rights, for traceability"),
    (CROISSANT, "machine-readable description (Croissant 1.1 with responsible-AI fields)"),
    (RELEASE, "version, content hashes, tool versions, what was left out"),
    (LICENSE, "licence notice"),
    (SUMS, "a checksum of every other file"),
)
_KINDS = {
    "text": "string",
    "integer": "integer",
    "boolean": "boolean",
    "texts": "list of strings",
    "integers": "list of integers",
}
_COMPOSITIONS = (
    ("Narrative types", "narrative_types"),
    ("Moral labels", "moral_labels"),
    ("Transition types", "transition_types"),
    ("Question types", "question_types"),
    ("Contrastive operations", "change_types"),
    ("Validation status", "review.validation_status"),
)
_BALANCE = {
    "within_tolerance": "every label is within tolerance of an even share",
    "outside_tolerance": "not every label is within tolerance of an even share",
}


def render_card(facts: Facts) -> str:
    """Return the dataset card of a release, front matter included."""
    producer_kinds, producer_rows = _producers(facts)
    balance = str(facts.balance.get("tolerance_status"))
    return render(
        "card.j2",
        front_matter=front_matter_text(front_matter(facts)),
        about=facts.options.as_json(),
        version=facts.options.version,
        licence=facts.licence,
        counts=facts.composition.totals,
        hidden_stories=facts.hidden.get("stories", 0),
        scenes_per_story=_range(sorted(facts.composition.scene_counts)),
        reviewed=facts.reviewed,
        splits=[_split_row(facts, split) for split in facts.splits],
        files=_FILES,
        tables=tables(),
        kinds=_KINDS,
        compositions=[(title, _at(facts.statistics, path)) for title, path in _COMPOSITIONS],
        balance=_BALANCE.get(balance, balance),
        collections=facts.composition.manifest(),
        producer_kinds=producer_kinds,
        producer_rows=producer_rows,
        rules_made=any(kind.startswith("rules@") for kind in producer_kinds),
        checks=[(code, _outcomes(row)) for code, row in sorted(facts.composition.checks.items())],
        left_out=sorted(Counter(entry.why for entry in facts.left_out).items()),
        missing_files=[entry["name"] for entry in facts.left_out_files],
        languages=facts.languages,
    )


def render_licence(facts: Facts) -> str:
    """Return the licence notice of a release."""
    return render(
        "license.j2",
        about=facts.options.as_json(),
        version=facts.options.version,
        licence=facts.licence,
        attribution=str(facts.licence.spdx_id).startswith("CC-BY"),
    )


def responsible_ai(facts: Facts) -> dict[str, Json]:
    """Return the responsible-AI properties of a release, by their names in the RAI vocabulary."""
    import yaml

    kinds, _ = _producers(facts)
    people = {"by hand", "author", "edit"}
    text = render(
        "responsible_ai.j2",
        left_out=len(facts.left_out),
        collections=[source["label"] for source in facts.composition.manifest()],
        created_at=facts.created_at,
        producers=kinds,
        reviewed=facts.reviewed,
        stories=facts.composition.totals["stories"],
        by_people=bool(people & set(kinds)),
        machines=[kind for kind in kinds if kind not in people],
    )
    return dict(yaml.safe_load(text))


def repository_card(release: Path) -> bytes:
    """Return what the repository's own ``dataset_card.md`` must be: the card of the packed sample benchmark.

    Args:
        release: the folder of the packed sample release.

    Raises:
        InputError: there is no card in the folder.
    """
    try:
        return (release / CARD).read_bytes()
    except OSError as error:
        problem = UserError(
            str(release), expected=f"a release with {CARD}", found=str(error), fix="pack it first"
        )
        raise InputError([problem]) from error


def render(name: str, **values: object) -> str:
    """Return a document of a release from its template.

    Args:
        name: file name of the template in this folder.
        values: what the template needs, all of it.
    """
    return str(_template(name).render(**values))


@cache
def _template(name: str) -> Any:  # noqa: ANN401 - jinja2 is imported late
    import jinja2

    environment = jinja2.Environment(
        loader=jinja2.FunctionLoader(lambda name: (files(__package__) / name).read_text("utf-8")),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        autoescape=False,  # the card is Markdown; the filter `cell` escapes what would break a table
    )
    environment.filters.update(n=_number, cell=_cell, line=_line)
    return environment.get_template(name)


def _number(value: int) -> str:
    return f"{value:,}"


def _line(text: str) -> str:
    return " ".join(str(text).split())


def _cell(text: str) -> str:
    return _line(text).replace("\\", "\\\\").replace("|", "\\|").replace("<", "&lt;")


def _range(numbers: Sequence[int]) -> str:
    return str(numbers[0]) if len(numbers) == 1 else f"{numbers[0]} to {numbers[-1]}"


def _split_row(facts: Facts, split: str) -> dict[str, Json]:
    return {"name": split, "file": SPLIT_FILES[split], **dict(facts.composition.by_split[split])}


def _at(statistics: Mapping[str, Any], path: str) -> Any:  # noqa: ANN401 - a table of any shape
    value: Any = statistics
    for step in path.split("."):
        value = value[step]
    return value


def _producers(facts: Facts) -> tuple[list[str], list[tuple[str, list[str], tuple[int, ...]]]]:
    """Return the kinds of producers, and rows of part, fields and counts; equal counts share a row."""
    table = facts.composition.producers
    kinds = sorted({kind for row in table.values() for kind in row})
    groups: dict[tuple[str, tuple[int, ...]], list[str]] = {}
    for path in sorted(table):
        part, _, name = path.removeprefix("$.").rpartition(".")
        counts = tuple(table[path][kind] for kind in kinds)
        groups.setdefault((part.removesuffix("[*]") or "record", counts), []).append(name)
    return kinds, [(part, names, counts) for (part, counts), names in groups.items()]


def _outcomes(row: Counter[str]) -> dict[str, int]:
    return {name: row[name] for name in ("passed", "failed", "not_judged")}
