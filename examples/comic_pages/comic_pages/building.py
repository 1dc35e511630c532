"""Building pages: the stages of KathaBench up to its questions, and one more that lays out the pages."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from fabula.builders.drafting import Drafting, planner_texts
from fabula.builders.katha.pipeline import PIPELINE as KATHA
from fabula.builders.spending import tell_plan
from fabula.engine.config import resolve_config
from fabula.engine.execute import RunRequest, Source, execute
from fabula.engine.pipeline import Pipeline
from fabula.engine.progress import Reporter
from fabula.engine.report import RunReport
from fabula.engine.run_options import RunOptions, setting_texts
from fabula.engine.running import RunKind
from fabula.engine.stage import Item
from fabula.schemas.canonical import jsonl_lines, write_atomic

from .records import COMICS, PAGES


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
class ComicOptions(RunOptions):
    """How to make pages of stories. What every run may choose comes as keywords.

    Attributes:
        panels: panels of a story; None for the settings' number, 5 by default.
        planner: who drafts: ``rules`` or ``model``; None for the settings' own.
        model: spec of the model that drafts; implies the planner ``model``.
    """

    panels: int | None = None
    planner: str | None = None
    model: str | None = None


def build_comics(
    sources: Sequence[Path | str] | Path | str,
    out: Path | str,
    options: ComicOptions | None = None,
    *,
    reporter: Reporter | None = None,
) -> RunReport:
    """Make pages of stories; sources, errors and the rest are those of :func:`fabula.build_katha`."""
    chosen = options if options is not None else ComicOptions()
    named = [sources] if isinstance(sources, str | Path) else list(sources)
    given = {} if chosen.panels is None else {"draft_scenes.scenes": chosen.panels}
    texts = [*planner_texts(PIPELINE, chosen.planner, chosen.model), *setting_texts(given), *chosen.texts]
    config = resolve_config(PIPELINE, chosen.settings_file, texts, chosen.models, others=chosen.others)
    request = RunRequest(
        Path(out),
        PIPELINE,
        config,
        tuple(Source("stories", Path(path)) for path in named),
        created_at=chosen.created_at,
        options=chosen.for_engine(),
    )
    if reporter is not None:
        tell_plan(request, reporter)
    return execute(request, reporter)


DRAFTING = Drafting(RunKind(PIPELINE, tell_plan), build_comics, ComicOptions)
