"""Stage: one item per page, method and seed; what the stage of the same name does for stories."""

from collections.abc import Iterator
from dataclasses import replace

from fabula.engine.stage import Child, Item, Tools
from fabula.evaluation.katha import load_items as stories
from fabula.examples.comic_pages.comic_pages.form import load_comics

SPEC = replace(stories.SPEC, version=1)


def run(item: Item, tools: Tools) -> Iterator[Child]:
    """Yield one child per page, method and seed, by method."""
    return stories.generations(item, tools, lambda folder: load_comics(folder).stories)
