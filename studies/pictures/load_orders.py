"""Stage: the orders of a run, one item for each storyboard, with the content of its reference pictures."""

from collections.abc import Iterator
from pathlib import Path

from ...engine.stage import Child, Item, Made, StageSpec, Tools
from ...errors import InputError
from ...schemas.canonical import Json, sha256_bytes
from ...schemas.plain_files import read_plain
from .plans import Order, read_orders

ROLE = "orders"
"""Role of the sources."""
SPEC = StageSpec(
    name="load_orders", version=1, shape="expand", reads=("sources",), writes=("order", "references"),
)  # fmt: skip


def run(item: Item, tools: Tools) -> Iterator[Child]:
    """Yield one child for each order."""
    for path in tools.of_role(item, ROLE):
        for order in read_orders(path):
            made: dict[str, Json] = {"order": order.as_json(), "references": _references(path.parent, order)}
            yield Child(order.key, Made(made))


def _references(folder: Path, order: Order) -> dict[str, Json]:
    """Return path in the order -> where the picture is, and its hash."""
    names = dict.fromkeys(name for panel in order.panels for name in panel.references)
    listed: dict[str, Json] = {}
    for name in names:
        path = (folder / name).absolute()
        try:
            listed[name] = {"path": str(path), "sha256": sha256_bytes(read_plain(path, follow=True))}
        except OSError as error:
            what = f"the reference picture of {order.key} cannot be read: {error.strerror}"
            raise InputError.one(str(path), what=what, fix="put it there, or order without it") from error
    return listed


def identity(fields: dict[str, Json]) -> Json:
    """Return what makes an order the same order."""
    order = fields["order"]
    return [order["method"], order["story_id"], order["seed"]]
