"""Orders: what a generator is to make, as data; one line of ``orders.jsonl`` for each storyboard.

Whoever wants pictures writes orders: an experiment for its plans, Semantic Compass for its bridges. The run
that carries them out knows nothing of why.
"""

from collections.abc import Iterable
from pathlib import Path

from pydantic import Field

from ..errors import InputError, UserError
from ..models.generators.drawn.scene import DrawnScene
from ..schemas.canonical import jsonl_lines, write_atomic
from ..schemas.plain_files import read_plain, reason_of
from ..schemas.values import Own, is_unset

ORDERS = "orders.jsonl"


class PanelOrder(Own):
    """One picture."""

    number: int = Field(ge=1, description="Of the picture in its storyboard, from 1.")
    prompt: str = Field(min_length=1, description="What is to be seen, in words.")
    scene: DrawnScene | None = Field(
        default=None, description="The same as data, for the one model that draws from data."
    )
    references: tuple[str, ...] = Field(
        default=(), description="Pictures that it must resemble, by their paths beside the file of orders."
    )


class Order(Own):
    """One storyboard of one method with one seed."""

    method: str = Field(min_length=1, description="Name of the method.")
    story_id: str = Field(min_length=1, description="The story.")
    seed: int | None = Field(description="Generation seed; null for a system that takes none.")
    model: str = Field(description="Spec of the model that makes the pictures.")
    width: int | None = Field(default=None, description="In pixels [the system's].")
    height: int | None = Field(default=None, description="The same.")
    steps: int | None = Field(default=None, description="Steps of denoising [the system's].")
    negative: str | None = Field(default=None, description="What must not be seen.")
    rewrite: str | None = Field(
        default=None, exclude_if=is_unset, description="Chat model that writes the prompts anew before."
    )
    panels: tuple[PanelOrder, ...] = Field(min_length=1, description="Its pictures.")

    @property
    def key(self) -> str:
        """Its id: method, story and, where there is one, seed."""
        seed = "" if self.seed is None else f"/seed_{self.seed}"
        return f"{self.method}/{self.story_id}{seed}"


def write_orders(path: Path, orders: Iterable[Order]) -> None:
    """Write orders, sorted by their keys."""
    listed = sorted(orders, key=lambda order: order.key)
    write_atomic(path, jsonl_lines(order.as_json() for order in listed))


def read_orders(path: Path) -> tuple[Order, ...]:
    """Return the orders in a file."""
    orders: dict[str, Order] = {}
    problems = []
    fix = "correct the line, or have the orders written again"
    try:
        lines = read_plain(path, follow=True).splitlines()
    except OSError as error:
        raise InputError(
            [UserError(str(path), what=f"it cannot be read: {error.strerror}", fix=fix)]
        ) from error
    for number, line in enumerate(lines, 1):
        try:
            order = Order.model_validate_json(line)
        except ValueError as error:
            problems.append(
                UserError(f"{path}:{number}", what=f"no order: {reason_of(error)[:200]}", fix=fix)
            )
            continue
        if order.key in orders:
            problems.append(UserError(f"{path}:{number}", what=f"{order.key} is ordered twice", fix=fix))
        orders[order.key] = order
    if problems:
        raise InputError(problems)
    return tuple(orders.values())
