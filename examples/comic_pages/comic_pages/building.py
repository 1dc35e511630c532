"""Building pages: the stages of KathaBench up to its questions, and one more that lays out the pages."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from fabula.builders.drafting import Drafting, DraftOptions, listed, planner_texts, tell_plan
from fabula.builders.katha.building import PIPELINE as KATHA
from fabula.engine.execute import RunRequest
from fabula.engine.pipeline import Pipeline
from fabula.engine.run_options import Sets
from fabula.engine.running import RunKind
from fabula.engine.stage import Item
from fabula.examples.comic_pages.comic_pages.records import COMICS, PAGES
from fabula.schemas.canonical import jsonl_lines, write_atomic


def _through(stage: str) -> tuple[str, ...]:
    """Return the stages of KathaBench up to one of them."""
    names = [path.partition(":")[0].rpartition(".")[2] for path in KATHA.stages]
    return KATHA.stages[: names.index(stage) + 1]


PIPELINE = Pipeline(
    name=COMICS,
    stages=(*_through("write_questions"), "comic_pages.lay_out_pages"),
    finish="comic_pages.building:finish",
    final_fields=("pages",),
    identity=KATHA.identity,
)


def finish(folder: Path, items: Iterable[Item]) -> None:
    """Write the pages into the run folder, sorted by id."""
    pages = sorted((page for item in items for page in item["pages"]), key=lambda page: str(page["page_id"]))
    write_atomic(folder / PAGES, jsonl_lines(pages))


@dataclass(frozen=True, slots=True)
class ComicOptions(DraftOptions):
    """How to make pages of stories. What every run may choose comes as keywords.

    Attributes:
        panels: panels of a story [as set, else 5].
    """

    panels: Annotated[int | None, Sets("draft_scenes.scenes")] = None


def comic_request(
    sources: Sequence[Path | str] | Path | str, out: Path | str, options: ComicOptions
) -> RunRequest:
    """Return what the engine is to execute."""
    stories = listed(sources, "stories", "stories")
    return options.drafting(PIPELINE, out, stories, planner_texts(PIPELINE, options))


DRAFTING = Drafting(RunKind(PIPELINE, tell_plan), comic_request, ComicOptions)
"""How pages are made of stories."""
