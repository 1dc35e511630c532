"""How books become files of stories: the stages, what may be chosen, and the files that a run holds."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from ...engine.pipeline import Pipeline
from ...engine.run_options import Sets
from ...engine.running import RunKind
from ...engine.stage import Item
from ...engine.status import RunReport
from ...schemas.canonical import Json, jsonl_lines, pretty_bytes, write_atomic
from ..drafting import DraftOptions, estimate, listed, planner_texts, tell_plan
from .blocks import words_of
from .collect_stories import WANTED
from .load_books import ROLE

if TYPE_CHECKING:
    from ...engine.progress import Reporter

STORIES, LEFT_OUT, SUMMARY = "stories.jsonl", "left_out.jsonl", "summary.json"
PIPELINE = Pipeline(
    name="import-books",
    stages=tuple(f"{__package__}.{name}" for name in ("load_books", "split_book", "collect_stories")),
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
