"""How books become files of stories: the stages, what may be chosen, and the files that a run holds."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from pydantic import Field, model_validator
from pydantic_core import PydanticCustomError

from ...engine.pipeline import Pipeline
from ...engine.run_options import Sets
from ...engine.running import RunKind
from ...engine.stage import Item, Made, Outcome, Tools, stage
from ...engine.status import RunReport
from ...schemas.canonical import Json, jsonl_lines, pretty_bytes, write_atomic
from ...schemas.text import slug
from ...schemas.values import Own, vocabulary
from ...validators.retellings import catalogue_keys
from ..drafting import DraftOptions, estimate, listed, planner_texts, tell_plan
from .load_books import ROLE
from .markup import Block, flat, words_of

if TYPE_CHECKING:
    from ...engine.hooks import Reporter


# -- Stage: the stories of a book as rows that ``fabula build stories`` takes, and all that is in none of them
#
# Of each story is said what is known: edition, translator, year, page and chapter, URL, rights with their
# reason, number in a catalogue or in the book. What is not known is null; nothing is taken over from
# elsewhere.

_MARKER = re.compile(r"\[(?:\d{1,3}|[A-Z]|[*†‡])\]")
_SMALL = frozenset(
    ("A", "AN", "AND", "AT", "BY", "FOR", "FROM", "IN", "OF", "ON", "OR", "THE", "TO", "WHO", "WITH")
)
WANTED = (
    "language", "edition", "translator", "year", "page", "chapter", "url", "rights_reason",
    "catalogue_number",
)  # fmt: skip
"""What should be known of the source of each story."""


class Settings(Own):
    """Settings of the stage: what the books do not say, or say otherwise."""

    language: str | None = Field(default=None, description="BCP 47 tag of the texts.")
    collection: str | None = Field(default=None, description="Source family, such as aesop.")
    edition: str | None = Field(default=None, description="Edition, such as a publisher and place.")
    translator: str | None = None
    year: str | None = Field(default=None, description="Year of the edition.")
    url: str | None = Field(default=None, description="Where the text is from.")
    rights: str = Field(default="unresolved", description="Rights status of the texts; see the vocabulary.")
    rights_reason: str | None = Field(default=None, description="Why they have it.")
    keep_unsure: bool = Field(default=False, description="Take what is not plainly one story for one.")

    @model_validator(mode="after")
    def _rights_are_said_with_reason(self) -> "Settings":
        words = vocabulary("rights_status")
        if self.rights not in words.values:
            raise PydanticCustomError("rights", f"rights must be one of: {', '.join(words.values)}")
        if self.rights in words.having("releasable") and not self.rights_reason:
            raise PydanticCustomError(
                "rights", "rights that allow a release need rights_reason: why are they so?"
            )
        return self


@stage(version=2, reads=("book", "outline", "outline_by"), writes=("stories", "left_out"), settings=Settings)
def collect_stories(item: Item, tools: Tools) -> Outcome:
    """Return the rows of the stories, and the stretches of the book that are in none, with the reason."""
    settings = tools.own(Settings)
    book, outline = item["book"], item["outline"]
    blocks = [Block(**block) for block in book["blocks"]]
    out = {int(number): why for number, why in outline["out"].items()}
    noted = any(block.role == "note" for block in blocks)
    taken = []
    for tale in outline["tales"]:
        if tale["unsure"] is not None and not settings.keep_unsure:
            for number in range(tale["blocks"][0], tale["blocks"][-1] + 1):  # with the breaks between them
                out.setdefault(number, f"unsure: {tale['unsure']}")
        else:
            taken.append(tale)
    ids = {tale["at"]: f"{slug(item.id)[:50]}-{number:03d}" for number, tale in enumerate(taken, 1)}
    facts = _facts(book["facts"], settings, item.id)
    by = str(item["outline_by"])
    rows = [_row(tale, blocks, ids, facts, noted=noted) | {"split_by": by} for tale in taken]
    left = list(_stretches(book["file"], blocks, out))
    if book["readings"]:
        left.append({
            "book": book["file"], "from": 1, "to": len(blocks), "reason": "readings",
            "words": book["readings"], "text": "",
        })  # fmt: skip
    return Made({"stories": rows, "left_out": left})


def _facts(said: Mapping[str, str], settings: Settings, name: str) -> dict[str, str | None]:
    """Return what holds for all stories of a book: what a person says goes before what the book says."""
    year = settings.year or (said.get("year") or "")[:10] or None
    return {
        "language": settings.language or said.get("language"),
        "source_collection": settings.collection
        or slug(said.get("collection") or said.get("title") or name).lower(),
        "rights_status": settings.rights,
        "rights_reason": settings.rights_reason,
        "edition": settings.edition or said.get("edition"),
        "translator": settings.translator or said.get("translator"),
        "year": year,
        "url": settings.url or said.get("url"),
    }


def _row(
    tale: Json,
    blocks: Sequence[Block],
    ids: Mapping[int, str],
    facts: Mapping[str, str | None],
    *,
    noted: bool,
) -> dict[str, Json]:
    texts = (flat(blocks[number].text) for number in tale["blocks"])
    text = "\n\n".join(_MARKER.sub("", text) if noted else text for text in texts)
    chapter = ", ".join(tale["chapter"]) or None
    keys = catalogue_keys(tale["title"], " ".join(text.split()[:12]))
    number = keys[0].capitalize() if keys else ", ".join(filter(None, (chapter, tale["number"]))) or None
    page = blocks[tale["blocks"][0]].page
    reference = ", ".join(filter(None, (number or chapter, page and f"p. {page}"))) or None
    return {
        "id": ids[tale["at"]],
        "title": _title(tale["title"]),
        **facts,
        "text": text,
        "source_reference": reference,
        "page": page,
        "chapter": chapter,
        "catalogue_number": number if keys or tale["number"] else None,
        "frame": ids.get(tale["frame"]),
    }


def _title(title: str) -> str:
    """Return a title; one in capitals alone as titles are written in running text."""
    if not title.isupper():
        return title
    words = [word.lower() if word in _SMALL else word.capitalize() for word in title.split()]
    return " ".join([words[0].capitalize(), *words[1:]])


def _stretches(file: str, blocks: Sequence[Block], out: Mapping[int, str]) -> Iterator[Json]:
    """Yield the stretches of blocks that are in no story for one reason."""
    rows = ((number, out[number]) for number in sorted(out))
    for _, stretch in groupby(enumerate(rows), lambda pair: (pair[1][0] - pair[0], pair[1][1])):
        numbers = [number for _, (number, _) in stretch]
        yield {
            "book": file, "from": numbers[0] + 1, "to": numbers[-1] + 1, "reason": out[numbers[0]],
            "words": sum(blocks[number].words for number in numbers),
            "text": "\n\n".join(blocks[number].text for number in numbers),
        }  # fmt: skip


# --

STORIES, LEFT_OUT, SUMMARY = "stories.jsonl", "left_out.jsonl", "summary.json"
PIPELINE = Pipeline(
    name="import-books",
    stages=(f"{__package__}.load_books", f"{__package__}.split_book", f"{__name__}:collect_stories"),
    finish=f"{__name__}:finish",
    identity=f"{__package__}.load_books:identity",
)
RUN = RunKind(PIPELINE, tell_plan, plan=estimate)
"""How books are imported."""


@dataclass(frozen=True, slots=True)
class BookOptions(DraftOptions):
    """How to split books. What every run may choose comes as keywords.

    Attributes:
        language: BCP 47 tag of the texts [as the books say].
        collection: source family of the stories, such as ``aesop`` [the title of the book].
        edition: edition that the texts are from [as the books say].
        translator: who translated them [as the books say].
        year: year of the edition [as the books say].
        url: where the texts are from [as the books say].
        rights: rights status of the stories [unresolved].
        rights_reason: why they have it; needed where the status allows a release.
    """

    language: Annotated[str | None, Sets("collect_stories.language")] = None
    collection: Annotated[str | None, Sets("collect_stories.collection")] = None
    edition: Annotated[str | None, Sets("collect_stories.edition")] = None
    translator: Annotated[str | None, Sets("collect_stories.translator")] = None
    year: Annotated[str | None, Sets("collect_stories.year")] = None
    url: Annotated[str | None, Sets("collect_stories.url")] = None
    rights: Annotated[str | None, Sets("collect_stories.rights")] = None
    rights_reason: Annotated[str | None, Sets("collect_stories.rights_reason")] = None


def import_books(
    books: Sequence[Path | str] | Path | str,
    out: Path | str,
    options: BookOptions | None = None,
    *,
    reporter: "Reporter | None" = None,
) -> RunReport:
    """Split books into stories; an existing run folder is continued."""
    options = options or BookOptions()
    request = options.drafting(PIPELINE, out, listed(books, ROLE, "books"), planner_texts(PIPELINE, options))
    return RUN.make(request, reporter)


def finish(folder: Path, items: Iterable[Item]) -> None:
    """Write the stories, what is in none, and a summary; books come sorted by name."""
    rows: list[Json] = []
    unknown, reasons = Counter[str](), Counter[str]()
    books: list[Json] = []
    missing: list[str] = []

    def stretches() -> Iterator[Json]:
        for item in items:
            rows.extend(item["stories"])
            framed = sum(row["frame"] is not None for row in item["stories"])
            books.append({"book": item.id, "stories": len(item["stories"]), "told_in_others": framed})
            for row in item["left_out"]:
                if row["reason"] == "missing":
                    missing.extend(row["text"].split("\n\n"))
                else:
                    reasons[row["reason"].partition(":")[0]] += row["words"]
                yield row

    write_atomic(folder / LEFT_OUT, jsonl_lines(stretches()))
    write_atomic(folder / STORIES, jsonl_lines(rows))
    for row in rows:
        unknown.update(name for name in WANTED if row[name] is None)
    unresolved = sum(row["rights_status"] == "unresolved" for row in rows)
    words = sum(words_of(row["text"]) for row in rows)
    write_atomic(folder / SUMMARY, [pretty_bytes({
        "stories": len(rows), "words": words, "books": books, "words_left_out": dict(sorted(reasons.items())),
        "missing": missing,
        "not_known": {name: unknown[name] for name in WANTED}, "rights_unresolved": unresolved,
    })])  # fmt: skip
