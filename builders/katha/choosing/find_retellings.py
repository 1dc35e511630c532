"""Stage: which stories retell another one, by title, catalogue number, words and, with an encoder, meaning.

Nothing is turned away for it. ``assign_splits`` keeps what is linked in one split.
"""

from collections.abc import Iterable, Mapping

from pydantic import Field

from ....engine.stage import Item, StageSpec, Tools
from ....schemas.canonical import Json
from ....schemas.values import Own
from ....validators.retellings import MEANING, SHARED, Link, Traces, links_between, links_by_meaning


class Settings(Own):
    """Settings of the stage."""

    titles: bool = Field(default=True, description="Stories of the same title are one story.")
    numbers: bool = Field(default=True, description="Stories of the same catalogue number are one story.")
    shared: float = Field(
        default=SHARED, gt=0, le=1, description="Share of common word groups from which two are one story."
    )
    meaning: float = Field(
        default=MEANING, gt=0, le=1, description="Cosine of vectors from which two are one story."
    )


SPEC = StageSpec(
    name="find_retellings",
    version=1,
    shape="gather",
    reads=("traces", "vector"),
    writes=("links",),
    settings=Settings,
)


def run(items: Iterable[Item], tools: Tools) -> Mapping[str, Mapping[str, Json]]:
    """Return for each story its links to stories of smaller ids: ``stories``, ``by`` and ``evidence``."""
    settings = tools.own(Settings)
    traces, vectors = {}, {}
    for item in items:
        traces[item.id] = Traces.from_json(item["traces"])
        if item["vector"] is not None:
            vectors[item.id] = item["vector"]
    unwanted = {name for name in ("title", "number") if not getattr(settings, f"{name}s")}
    links: list[Link] = [link for link in links_between(traces, settings.shared) if link.by not in unwanted]
    links += links_by_meaning(vectors, settings.meaning)
    rows: dict[str, list[Json]] = {key: [] for key in traces}
    for link in sorted(links):
        rows[link.second].append(link.as_json())
    return {key: {"links": own} for key, own in rows.items()}
