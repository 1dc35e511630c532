"""Stage: one item per story of a release whose questions a model is to write."""

from collections.abc import Iterator

from ....engine.stage import Child, Item, Made, StageSpec, Tools
from ....errors import ConfigError
from ....releases.loading import load
from ....schemas.values import Own

RELEASE = "release"
"""Role of the source."""


class Settings(Own):
    """Which stories."""

    split: tuple[str, ...] = ()


SPEC = StageSpec(
    name="load_stories",
    version=1,
    shape="expand",
    reads=("sources",),
    writes=("record",),
    settings=Settings,
)


def run(item: Item, tools: Tools) -> Iterator[Child]:
    """Yield one child per story, in the order of ids."""
    (path,) = tools.of_role(item, RELEASE)
    splits = tools.own(Settings).split
    chosen = [record for record in load(path) if not splits or record.split in splits]
    if not chosen:
        raise ConfigError(str(path), what="no story is in these splits", fix="choose another split")
    for record in chosen:
        yield Child(record.story_id, Made({"record": record.as_json()}))
