"""Pages as releases: one file of pages, flat tables of pages, panels and questions."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from fabula.errors import InputError, UserError
from fabula.examples.comic_pages.comic_pages.records import COMICS, PAGES, SPLIT, ComicPage, as_story
from fabula.examples.comic_pages.comic_pages.rules import check_page
from fabula.releases.diff.form import DiffForm, RecordFile
from fabula.releases.form import Facts, FlatRecords, ReleaseForm
from fabula.releases.loading import LoadedRelease, Release, load_records, read_identified
from fabula.releases.parquet import PlacedRow, read_lines, row_of, table
from fabula.schemas.canonical import Json
from fabula.schemas.paths import SOURCE_MANIFEST, STATISTICS
from fabula.validators.report import IssueBin, Opened, RuleSet

PAGE_TABLE = table(
    "pages", "One row per page.", "page_id",
    ("page_id", "text", "Id of the page."),
    ("story_id", "text", "Id of its story."),
    ("page_number", "integer", "Place of the page in its story, from 1."),
    ("title", "text", "Title of the story."),
    ("language", "text", "BCP 47 language tag."),
    ("text", "text", "The part of the story that the page tells."),
)  # fmt: skip
PANEL_TABLE = table(
    "panels", "One row per panel.", "page_id panel",
    ("page_id", "text", "The page.", "story_id"),
    ("panel", "integer", "Place of the panel on the page, from 1.", "scene_index"),
    ("text", "text", "What the panel tells.", "scene_text"),
    ("characters", "texts", "Who appears."),
    ("must_show", "texts", "What must be visible.", "visual_must_show"),
    references={"page_id": ("pages", "page_id")},
)  # fmt: skip
QUESTION_TABLE = table(
    "questions", "One row per recoverability question.", "question_id",
    ("question_id", "text", "Id of the question."),
    ("page_id", "text", "The page.", "story_id"),
    ("question_type", "text", "Scored dimension."),
    ("question", "text", "The question."),
    ("gold_answer", "text", "Canonical answer."),
    ("accepted_answers", "texts", "Accepted answers."),
    references={"page_id": ("pages", "page_id")},
)  # fmt: skip


@dataclass(frozen=True)
class ComicRelease(LoadedRelease[ComicPage]):
    """Released pages in memory."""

    id_field = "page_id"

    @cached_property
    def stories(self) -> Release:
        """The pages as the recoverability protocol reads them: each a story whose scenes are its panels."""
        stories = tuple(as_story(page, str(self.info["created_at"])) for page in self.records)
        return Release(self.path, self.info, stories, (), ())


def load_comics(path: str | Path) -> ComicRelease:
    """Load released pages.

    Raises:
        InputError: the folder is no such release, or has lines that cannot be read; all of them are listed.
    """
    return ComicRelease(Path(path), *load_records(Path(path), COMICS, PAGES, ComicRelease, ComicPage))


def _rows(folder: Path) -> Iterator[PlacedRow]:
    for page in read_lines(folder / PAGES):
        yield SPLIT, PAGE_TABLE, row_of(PAGE_TABLE, page)
        for listed, part in ((PANEL_TABLE, "panels"), (QUESTION_TABLE, "questions")):
            for row in page[part]:
                yield SPLIT, listed, row_of(listed, row)


def open_pages(path: Path) -> Opened:
    """Read the pages of a run or a release.

    Raises:
        InputError: a line cannot be read; all of them are listed.
    """
    problems: list[UserError] = []
    pages = tuple(read_identified(path / PAGES, ComicPage, "page_id", problems))
    if problems:
        raise InputError(problems)
    return Opened(path, COMICS, pages)


def check_pages(pages: Sequence[ComicPage], found: IssueBin) -> dict[str, int]:
    """Check every page; return how many parts were looked at."""
    for page in pages:
        found.extend(check_page(page, f"{PAGES}:{page.page_id}"))
    return dict(_statistics(Path(), pages)["totals"])


def _statistics(folder: Path, pages: Sequence[ComicPage]) -> dict[str, Json]:  # noqa: ARG001 - as asked
    """Return counts over the pages."""
    types = Counter(one.question_type for page in pages for one in page.questions)
    makers = Counter(f"{part}: {maker}" for page in pages for part, maker in page.producers.items())
    return {
        "totals": {
            "pages": len(pages),
            "stories": len({page.story_id for page in pages}),
            "panels": sum(len(page.panels) for page in pages),
            "questions": sum(len(page.questions) for page in pages),
        },
        "question_types": dict(sorted(types.items())),
        "producers": dict(sorted(makers.items())),
    }


def _summary(facts: Facts) -> str:
    totals = facts.totals
    return (
        f"{totals['pages']} comic pages of {totals['stories']} stories with {totals['panels']} panels and "
        f"{totals['questions']} recoverability questions. No person has reviewed them."
    )


def _nothing(*_: Any) -> Iterator[Any]:  # noqa: ANN401 - there is no official form of comics
    yield from ()


RULES = RuleSet(open_pages, check_pages, lambda path: _statistics(path, open_pages(path).content))
RECORDS = FlatRecords(
    model=ComicPage,
    statistics=_statistics,
    write_official=lambda run, draft, pages: None,  # noqa: ARG005
    official=_nothing,
    check_record=check_page,
    check_official=_nothing,
    notes=_nothing,
    items="stories",
    files=(
        (PAGES, "the pages: panels, transitions, questions with their answers"),
        ("data/TABLE/test.parquet", "the flat tables"),
        (STATISTICS, "counts"),
        (SOURCE_MANIFEST, "what the pages were made from"),
    ),
)
FORM = ReleaseForm(
    kind=COMICS,
    runs={COMICS: PAGES},
    tables=(PAGE_TABLE, PANEL_TABLE, QUESTION_TABLE),
    record_ids={PAGES: "page_id"},
    described=(PAGES, STATISTICS, SOURCE_MANIFEST),
    rows=_rows,
    name="comic-pages",
    title="Comic pages",
    what="pages of comics",
    unit="pages",
    tasks=("text-to-image",),
    tags=("comics", "visual-storytelling", "benchmark", "croissant"),
    keywords=("comics", "visual storytelling", "benchmark"),
    rights_scope="This manifest says what the pages were made from. It gives no right to any drawing.",
    templates=("comic_pages:card.j2", "comic_pages:license.j2", "comic_pages:responsible_ai.j2"),
    load=load_comics,
    changes=DiffForm({PAGES: RecordFile("page", "pages", frozenset(("producers",)))}),
    summary=_summary,
    details=lambda facts: {},  # noqa: ARG005
    **RECORDS.parts(),
)
