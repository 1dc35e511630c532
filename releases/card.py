"""The dataset card (also the Hub's README) and the licence notice: templates filled from the facts."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from ..errors import InputError, UserError
from ..schemas.canonical import Json
from ..schemas.plain_files import read_plain
from .facts import Facts
from .front_matter import front_matter, front_matter_text
from .layout import (
    ANNOTATIONS,
    CANARY,
    CARD,
    CHANGES,
    CROISSANT,
    LICENSE,
    MORAL_BALANCE,
    PRODUCERS,
    RELEASE,
    SOURCE_MANIFEST,
    SPLIT_FILES,
    STATISTICS,
    SUBSETS,
    SUMS,
    VARIANTS,
)
from .licence import Licence
from .options import PackOptions
from .subsets.stories import Subset, title_of
from .tables import tables
from .templates import Markup, markdown, render, render_plain, render_properties


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
    (CANARY, "a line that marks copies of this benchmark; see below"),
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
COMPOSITIONS: tuple[tuple[str, str], ...] = (
    ("Narrative types", "narrative_types"),
    ("Moral labels", "moral_labels"),
    ("Transition types", "transition_types"),
    ("Question types", "question_types"),
    ("Contrastive operations", "change_types"),
    ("Validation status", "review.validation_status"),
)
"""Title of a table of the card -> where ``statistics.json`` has its counts."""

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
        files=[*_FILES, *_further_files(facts)],
        subsets=facts.more.subsets,
        closeness=list(_closeness_rows(facts.more.subsets)),
        canary=facts.more.canary,
        commitments=facts.more.commitments,
        reviews_on_file=facts.more.reviewed,
        tables=tables(),
        kinds=_KINDS,
        compositions=[(title, at_path(facts.statistics, path)) for title, path in COMPOSITIONS],
        balance=_BALANCE.get(balance, balance),
        collections=facts.composition.manifest(),
        producer_kinds=producer_kinds,
        producer_rows=producer_rows,
        rules_made=any(kind.startswith("rules@") for kind in producer_kinds),
        checks=[(code, _outcomes(row)) for code, row in sorted(facts.composition.checks.items())],
        left_out=sorted(Counter(entry.why for entry in facts.left_out).items()),
        missing_files=[entry["name"] for entry in facts.left_out_files],
        withdrawn=facts.withdrawn,
        withdrawn_hidden=facts.withdrawn_hidden,
        languages=facts.languages,
    )


def _further_files(facts: Facts) -> Iterator[tuple[str, str]]:
    """Yield the files that not every release has, and what they hold."""
    if facts.since is not None:
        yield CHANGES, "what changed since the version before, by id and path"
    yield from sorted(facts.more.files.items())
    if facts.more.subsets:
        yield SUBSETS, "how close each subset is to the whole, in full"


def _closeness_rows(subsets: Sequence[Subset]) -> Iterator[tuple[str, str, list[str]]]:
    """Yield name, value of the whole, and values of the subsets, as a table has them."""
    if not subsets:
        return
    tables = [subset.closeness for subset in subsets]
    first = tables[0]
    for name in first["fields"]:
        fields = [table["fields"][name] for table in tables]
        for value, row in first["fields"][name]["values"].items():
            cells = [_share(field["values"][value]) for field in fields]
            yield f"{title_of(name)}: {value}", f"{100 * row['full_share']:.1f} %", cells
        tested = [f"{one['total_variation']:.3f}; {one['chi_square']:.2f}" for one in fields]
        degrees = first["fields"][name]["degrees_of_freedom"]
        shown = markdown(f"{title_of(name)}: total variation; chi-square ({degrees} df)")
        yield Markup(f"*{shown}*"), "", tested
    for name in first["means"]:
        rows = [table["means"][name] for table in tables]
        cells = [f"{row['subset']:,.1f} ({100 * row['difference']:+.1f} %)" for row in rows]
        yield f"{name} per story", f"{first['means'][name]['full']:,.1f}", cells


def _share(row: Mapping[str, float]) -> str:
    return f"{100 * row['subset_share']:.1f} % ({100 * row['difference']:+.1f})"


def render_licence(facts: Facts) -> str:
    """Return the licence notice of a release."""
    return render_plain(
        "license.j2",
        about=facts.options.as_json(),
        version=facts.options.version,
        licence=facts.licence,
        attribution=str(facts.licence.spdx_id).startswith("CC-BY"),
    )


def responsible_ai(facts: Facts) -> dict[str, Json]:
    """Return the responsible-AI properties of a release, by their names in the RAI vocabulary."""
    kinds, _ = _producers(facts)
    people = {"by hand", "author", "edit"}
    machines = [kind for kind in kinds if kind not in people]
    properties = render_properties(
        "responsible_ai.j2",
        left_out=len(facts.left_out),
        collections=[source["label"] for source in facts.composition.manifest()],
        created_at=facts.created_at,
        producers=kinds,
        reviewed=facts.reviewed,
        stories=facts.composition.totals["stories"],
        by_people=bool(people & set(kinds)),
    )
    return {**properties, "machineAnnotationTools": machines or ["none"]}


def repository_card(release: Path) -> bytes:
    """Return what the repository's own ``dataset_card.md`` must be: the card of the packed sample benchmark.

    Args:
        release: the folder of the packed sample release.

    Raises:
        InputError: there is no card in the folder.
    """
    try:
        return read_plain(release / CARD)
    except OSError as error:
        problem = UserError(str(release), what=f"its {CARD} cannot be read: {error}", fix="pack it first")
        raise InputError([problem]) from error


def _range(numbers: Sequence[int]) -> str:
    return str(numbers[0]) if len(numbers) == 1 else f"{numbers[0]} to {numbers[-1]}"


def _split_row(facts: Facts, split: str) -> dict[str, Json]:
    return {"name": split, "file": SPLIT_FILES[split], **dict(facts.composition.by_split[split])}


def at_path(statistics: Mapping[str, Any], path: str) -> Any:  # noqa: ANN401 - a table of any shape
    """Return what stands at a dotted path of ``statistics.json``."""
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
